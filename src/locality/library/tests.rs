//! Libraries that behave, and others.

use super::super::provider::{Answer, Category, Inbox, Provider, Subject};
use super::Library;
use crate::testing::eventually;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[allow(dead_code, missing_docs, reason = "shared with the tests of the daemon as a process")]
#[path = "../../../tests/support/providers.rs"]
pub mod providers;

const HOST: &str = "far.cabc.eu-north-1.rds.amazonaws.com";
/// For functions that never come back; the others must be able to on a busy machine.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(10);

/// A misbehaving library, the file where it notes what happens to it, and where its answers arrive.
struct Site {
    directory: tempfile::TempDir,
    library: Library,
    inbox: Arc<Inbox>,
}

impl Site {
    fn new(mode: &str, grace: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = providers::misbehaving(directory.path(), &[]);
        let config = format!("{mode} {}", journal(directory.path()).display());
        let library = Library::open_within(&path, &config, LONG, grace).unwrap();
        Self { directory, library, inbox: Arc::default() }
    }
    fn ask(&self) {
        let subjects = [Subject::Own, Subject::Endpoint(HOST.into())];
        let leases = (1..).zip(subjects).map(|(ticket, subject)| self.inbox.lease(ticket, subject).unwrap());
        self.library.request(leases.collect());
    }
    /// The zones, or why they are not known: the proxy's, then the server's.
    fn answers(&self) -> Vec<Result<String, Category>> {
        let mut answers = Vec::new();
        let deadline = Instant::now() + LONG;
        while answers.len() < 2 && Instant::now() < deadline {
            answers.extend(self.inbox.wait(Some(deadline)));
        }
        answers.sort_by_key(|(ticket, _)| *ticket);
        answers.into_iter().map(|(_, answer): (_, Answer)| answer.map(|place| place.zone)).collect()
    }
    /// Ends it as the manager does.
    fn close(&self) {
        self.inbox.close();
        self.library.shut_down();
    }
    fn journal(&self) -> Vec<String> {
        read(&journal(self.directory.path()))
    }
    /// Lets it go, and returns what has happened to it in the end.
    fn end(self) -> Vec<String> {
        let Self { directory, library, inbox: _ } = self;
        drop(library);
        read(&journal(directory.path()))
    }
}

fn journal(directory: &Path) -> PathBuf {
    directory.join("journal")
}

fn read(journal: &Path) -> Vec<String> {
    fs::read_to_string(journal).unwrap().lines().map(str::to_owned).collect()
}

fn known() -> Vec<Result<String, Category>> {
    vec![Ok("n".into()), Ok("f".into())]
}

#[test]
fn it_is_asked_ended_destroyed_and_unloaded() {
    let site = Site::new("well", LONG);
    assert_eq!((site.library.name(), site.library.shows_table()), ("misbehaving", true));
    site.ask();
    assert_eq!(site.answers(), known());
    site.close();
    assert!(site.inbox.drain(Instant::now()));
    assert_eq!(site.end(), ["create", "request", "shut_down", "destroy", "unloaded"]);
}

#[test]
fn it_is_ended_in_order_even_if_the_daemon_has_not_started() {
    assert_eq!(Site::new("well", LONG).end(), ["create", "shut_down", "destroy", "unloaded"]);
}

#[test]
fn nothing_is_asked_after_the_end() {
    let site = Site::new("well", LONG);
    site.library.shut_down();
    site.ask();
    assert_eq!(site.answers(), [Err(Category::ProviderError), Err(Category::ProviderError)]);
    assert_eq!(site.journal(), ["create", "shut_down"]);
}

#[test]
fn it_is_not_told_to_end_while_it_is_asked() {
    let site = Arc::new(Site::new("slow", LONG));
    let asking = Arc::clone(&site);
    let asked = std::thread::spawn(move || asking.ask());
    eventually("it is asked", || site.journal().len() >= 2);
    site.close();
    asked.join().unwrap();
    assert!(site.inbox.drain(Instant::now()));
    assert_eq!(site.journal(), ["create", "request", "slow, but here", "shut_down"]);
}

#[test]
fn a_thread_of_the_librarys_answers_later() {
    let site = Site::new("later", LONG);
    site.ask();
    assert_eq!(site.answers(), known());
    // The note says what the last answer came to, and so is written after it.
    eventually("it notes so", || site.journal().len() == 3);
    site.close();
    let journal = site.end();
    assert_eq!(
        journal,
        ["create", "request", "answered from a thread: 0", "shut_down", "destroy", "unloaded"]
    );
}

#[test]
fn a_lease_that_is_returned_twice_and_one_that_is_made_up_are_refused() {
    let site = Site::new("twice", LONG);
    site.ask();
    assert_eq!(site.answers(), known());
    assert_eq!(site.journal(), ["create", "request", "twice: 0 1 1 1", "twice: 0 1 1 1"]);
}

#[test]
fn an_answer_without_a_region_is_an_invalid_one() {
    let site = Site::new("no-region", LONG);
    site.ask();
    assert_eq!(site.answers(), [Err(Category::InvalidAnswer), Err(Category::InvalidAnswer)]);
    assert_eq!(site.journal()[2..], ["no Region: 3", "no Region: 3"]);
}

#[test]
fn an_answer_at_the_end_is_refused_and_returns_its_lease() {
    for (mode, order) in [
        ("at-the-end", ["shut_down", "answered from a thread: 2", "destroy"]),
        ("late-thread", ["shut_down", "answered from a thread: 2", "destroy"]),
    ] {
        let site = Site::new(mode, LONG);
        site.ask();
        site.close();
        assert!(site.inbox.drain(Instant::now() + LONG), "{mode}: leases are out");
        assert_eq!(site.end()[2..5], order, "{mode}");
    }
}

#[test]
fn kept_leases_stay_out_until_somebody_returns_them() {
    let site = Site::new("keep", LONG);
    site.ask();
    site.close();
    assert!(!site.inbox.drain(Instant::now()));
    assert_eq!(site.journal(), ["create", "request", "shut_down"]);
}

#[test]
fn a_function_that_does_not_come_back_is_left_alone() {
    let ends = |mode: &str, expected: &[&str]| assert_eq!(Site::new(mode, SHORT).end(), expected, "{mode}");
    // Side by side, for each takes its time.
    std::thread::scope(|scope| {
        scope.spawn(|| ends("hang-in-shut-down", &["create", "shut_down"]));
        scope.spawn(|| ends("hang-in-destroy", &["create", "shut_down", "destroy"]));
        let site = Arc::new(Site::new("hang-in-request", SHORT));
        let asking = Arc::clone(&site);
        // It does not come back, and so is not joined.
        std::thread::spawn(move || asking.ask());
        eventually("it asks", || site.journal().len() == 2);
        site.close();
        assert!(!site.inbox.drain(Instant::now()));
        assert_eq!(site.journal(), ["create", "request"], "it was not told to end");
    });
}

fn refusal(path: &Path, config: &str) -> String {
    Library::open(path, config).err().unwrap().to_string()
}

#[test]
fn what_is_no_provider_is_refused_with_the_reason() {
    for (macros, reason) in [
        (&["-DNO_ENTRY"][..], "does not export pointsman_locality_provider"),
        (&["-DABI_VERSION=2"], "its ABI version is 2, not 1"),
        (&["-DABI_VERSION=0"], "its ABI version is 0, not 1"),
        (&["-DSIZE=72"], "its description is too short"),
        (&["-DSIZE=0"], "its description is too short"),
        (&["-DFLAGS=3"], "it has flags that are not known"),
        (&["-DNAME={0}"], "its name is empty, or no text"),
        (&["-DNAME=\"\\xFF\""], "its name is empty, or no text"),
        (&["-DDESTROY=NULL"], "one of its functions is null"),
        (&["-DDESCRIPTION=NULL"], "a null or misaligned pointer"),
        (&["-DDESCRIPTION=(void*)((char*)&provider+1)"], "a null or misaligned pointer"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let message = refusal(&providers::misbehaving(directory.path(), macros), "well");
        assert!(
            message.contains(reason) && message.contains("pointsman_locality.h"),
            "{macros:?}: {message}"
        );
        assert!(message.contains("provider.so"), "{message}");
    }
}

#[test]
fn what_is_no_shared_object_is_refused_with_the_loaders_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("provider.so");
    assert!(refusal(&path, "").contains("No such file"), "{}", refusal(&path, ""));
    fs::write(&path, "no shared object").unwrap();
    assert!(refusal(&path, "").contains("library:PATH needs a shared object"), "{}", refusal(&path, ""));
    // One that the loader would find in its own search path.
    assert!(refusal(Path::new("libc.so.6"), "").contains("No such file"));
}

#[test]
fn a_library_that_does_not_want_to_start_says_why_and_is_unloaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = providers::misbehaving(directory.path(), &[]);
    let journal = journal(directory.path());
    let refused = |mode: &str| refusal(&path, &format!("{mode} {}", journal.display()));
    assert!(refused("refuse").contains("it refuses to start: it is not its day; see --locality-config"));
    assert!(refused("refuse-mutely").contains("it does not say why"));
    assert!(refused("refuse-at-length").contains(&"x".repeat(512)));
    assert_eq!(read(&journal), ["unloaded"; 3]);
    assert!(refusal(&path, "a\0b").contains("NUL"));
}

#[test]
fn a_library_that_is_not_ready_in_time_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = providers::misbehaving(directory.path(), &[]);
    let start = Duration::from_secs(1);
    let error = Library::open_within(&path, "hang-in-create", start, LONG).err().unwrap().to_string();
    assert!(error.contains("it is not ready after 1 s"), "{error}");
}

#[test]
fn the_examples_tell_what_their_configuration_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("places");
    fs::write(&file, format!("self eu-north-1 n\n{HOST} eu-north-1 f")).unwrap();
    let in_c = providers::example_in_c(directory.path());
    for (path, config) in [
        (providers::example(), format!("self eu-north-1 n; {HOST} eu-north-1 f")),
        (providers::example(), format!("@{}", file.display())),
        (in_c.clone(), format!("self=eu-north-1/n,{HOST}=eu-north-1/f")),
    ] {
        let library = Library::open(&path, &config).unwrap();
        assert!(library.shows_table());
        let site = Site { directory: tempfile::tempdir().unwrap(), library, inbox: Arc::default() };
        site.ask();
        assert_eq!(site.answers(), known(), "{config}");
        site.close();
        assert!(site.inbox.drain(Instant::now() + LONG));
    }
    assert!(refusal(&in_c, "self=eu-north-1").contains("place 1 is not HOST=REGION/ZONE"));
    assert!(refusal(&providers::example(), "self").contains("self has no Region"));
    assert!(refusal(&providers::example(), "").contains("no places are told"));
}
