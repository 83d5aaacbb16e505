//! Locality providers in shared objects, through the real program: `--locality-provider library:PATH`.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

#[allow(missing_docs, reason = "shared with another program of tests")]
#[path = "support/zones.rs"]
mod zones;

#[allow(dead_code, missing_docs, reason = "shared with tests of the library")]
#[path = "support/providers.rs"]
mod providers;

use mysql::prelude::Queryable;
use pair::{PATIENCE, program};
use std::path::{Path, PathBuf};
use std::process::Output;
use support::within;
use zones::{FAR, NEAR, World, place};

fn arguments(library: &Path, config: &str) -> Vec<String> {
    let library = format!("library:{}", library.display());
    ["--locality-provider", &library, "--locality-config", config].map(str::to_owned).to_vec()
}

fn journal(datadir: &Path) -> PathBuf {
    datadir.join("journal")
}

fn misbehaving(datadir: &Path, macros: &[&str], mode: &str) -> Vec<String> {
    let config = format!("{mode} {}", journal(datadir).display());
    arguments(&providers::misbehaving(datadir, macros), &config)
}

fn known(near: &str, far: &str) -> [zones::Place; 3] {
    [
        place("", "fresh", near, None),
        place(FAR, "fresh", far, Some(1.0)),
        place(NEAR, "fresh", near, Some(9.0)),
    ]
}

/// Switches it on and waits until all places are known.
fn switch_on(world: &mut World, near: &str, far: &str) {
    world.switch(true);
    let expected = known(near, far);
    assert!(within(PATIENCE, || world.places() == expected), "{:?}\n{}", world.places(), world.proxy.log());
}

/// Waits until the misbehaving library has noted something.
fn noted(world: &World, what: &str) {
    let journal = journal(world.proxy.datadir());
    let noted = within(PATIENCE, || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains(what)));
    assert!(noted, "{what}: {}", world.proxy.log());
}

/// Ends the proxy, and returns its log and what has happened to the misbehaving library.
fn end(world: World) -> (String, Vec<String>) {
    let journal = journal(world.proxy.datadir());
    let copy = tempfile::NamedTempFile::new().unwrap();
    std::fs::remove_file(copy.path()).unwrap();
    // The data directory goes with the daemon.
    std::fs::hard_link(&journal, copy.path()).unwrap();
    let (status, log) = world.proxy.terminate();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{log}");
    let lines = std::fs::read_to_string(copy.path()).unwrap().lines().map(str::to_owned).collect();
    (log, lines)
}

#[test]
fn the_example_is_as_good_as_a_map_file() {
    let mut world = World::new(|_| {
        let places = format!("self eu-north-1 a; {NEAR} eu-north-1 a; {FAR} eu-north-1 b");
        arguments(&providers::example(), &places)
    });
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
    switch_on(&mut world, "a", "b");
    let share = world.share_of_near();
    assert!((0.8..0.97).contains(&share), "{share}, not about 0.9");
    world.switch(false);
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
    let (status, log) = world.proxy.terminate();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{log}");
    let mut lines = log.lines().filter(|line| line.contains("locality: "));
    assert!(lines.all(|line| line.contains("INFO")), "{log}");
}

#[test]
fn answers_come_from_a_thread_of_the_librarys_and_the_end_is_orderly() {
    let mut world = World::without_servers(|datadir| misbehaving(datadir, &[], "later"));
    switch_on(&mut world, "n", "f");
    noted(&world, "answered from a thread");
    let (log, journal) = end(world);
    assert!(!log.contains("stays loaded"), "{log}");
    assert_eq!(
        journal,
        ["create", "request", "answered from a thread: 0", "shut_down", "destroy", "unloaded"],
        "{log}"
    );
}

#[test]
fn questions_under_way_are_returned_at_the_end() {
    let mut world = World::without_servers(|datadir| misbehaving(datadir, &[], "late-thread"));
    world.switch(true);
    noted(&world, "request");
    let (log, journal) = end(world);
    assert!(!log.contains("stays loaded"), "{log}");
    assert_eq!(journal[1..], ["request", "shut_down", "answered from a thread: 2", "destroy", "unloaded"]);
}

#[test]
fn a_library_that_keeps_questions_stays_loaded() {
    let mut world = World::without_servers(|datadir| misbehaving(datadir, &[], "keep"));
    world.switch(true);
    noted(&world, "request");
    let pending = [
        place("", "pending", "", None),
        place(FAR, "pending", "", Some(1.0)),
        place(NEAR, "pending", "", Some(1.0)),
    ];
    assert_eq!(world.places(), pending);
    let (log, journal) = end(world);
    assert_eq!(log.matches("stays loaded until the process ends").count(), 1, "{log}");
    // The process's end unloads what is still loaded, too.
    assert_eq!(journal, ["create", "request", "shut_down", "unloaded"]);
}

#[test]
fn a_library_that_does_not_come_back_holds_nobody_up() {
    let mut world = World::new(|datadir| misbehaving(datadir, &[], "hang-in-request"));
    world.switch(true);
    noted(&world, "request");
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
    world.switch(false);
    let (log, journal) = end(world);
    assert_eq!(log.matches("stays loaded until the process ends").count(), 1, "{log}");
    assert_eq!(journal, ["create", "request", "unloaded"]);
}

#[test]
fn mistakes_of_a_library_are_told() {
    let mut world = World::without_servers(|datadir| misbehaving(datadir, &[], "no-region"));
    world.switch(true);
    let wrong = "SELECT DISTINCT state, last_error FROM stats_mysql_aws_locality";
    let mut states = || world.admin.query::<(String, String), _>(wrong).unwrap();
    let expected = [("error".to_owned(), "invalid_answer".to_owned())];
    assert!(within(PATIENCE, || states() == expected), "{:?}", states());
    let log = world.proxy.log();
    assert_eq!(log.matches("invalid_answer").count(), 3, "{log}");
    assert!(log.contains("locality: asked\\nand answered"), "its own line, and one: {log}");
}

#[test]
fn the_table_is_there_only_if_the_library_wants_it() {
    let mut world = World::without_servers(|datadir| misbehaving(datadir, &["-DFLAGS=0"], "well"));
    world.switch(true);
    let error = world.admin.query_drop("SELECT * FROM stats_mysql_aws_locality").unwrap_err().to_string();
    assert!(error.contains("no such table"), "{error}");
    noted(&world, "request");
}

/// Starts a daemon that is not to start.
fn refused(datadir: &Path, arguments: &[String]) -> Output {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = support::command(program(), datadir, &arguments);
    command.current_dir(datadir).output().unwrap()
}

#[test]
fn the_daemon_does_not_start_with_a_library_that_is_of_no_use() {
    let directory = tempfile::tempdir().unwrap();
    let datadir = directory.path();
    let absent = arguments(Path::new("./absent.so"), "");
    let other_version = misbehaving(datadir, &["-DABI_VERSION=7"], "well");
    for (arguments, reason) in [
        (
            absent,
            "./absent.so: cannot open shared object file: No such file or directory; --locality-provider",
        ),
        (
            other_version,
            "its ABI version is 7, not 1; build it with this version's include/pointsman_locality.h",
        ),
    ] {
        let output = refused(datadir, &arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(reason), "{message}");
    }
}

#[test]
fn a_path_is_relative_to_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let datadir = directory.path();
    providers::misbehaving(datadir, &[]);
    let output = refused(datadir, &arguments(Path::new("provider.so"), "refuse"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("provider.so: it refuses to start: it is not its day"), "{message}");
}
