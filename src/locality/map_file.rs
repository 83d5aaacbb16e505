//! A provider that reads a file: names to places.
//!
//! ```text
//! # name                                               region      zone         zone id    account
//! self                                                 eu-north-1  eu-north-1a
//! db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com       eu-north-1  eu-north-1a  eun1-az1   123456789012
//! ```
//!
//! The zone, its id and the account may be absent, or `-`. Capitals do not matter. The file is read at each request, so that a change
//! is seen at the next refresh.

use super::provider::{Answer, Category, Lease, Location, Provider, Subject};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// The proxy's own entry.
const OWN: &str = "self";

/// The file.
#[derive(Debug)]
pub struct MapFile {
    path: PathBuf,
    /// What was said of it last, so that it is said once.
    told: Mutex<Option<String>>,
}

impl MapFile {
    /// Of this path. It need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, told: Mutex::default() }
    }
    fn tell(&self, problem: Option<String>) {
        let mut told = self.told.lock();
        let path = self.path.display();
        match &problem {
            Some(problem) if told.as_ref() != Some(problem) => log::warn!("locality: {path}: {problem}"),
            None if told.is_some() => log::info!("locality: {path} is in order again"),
            _ => {}
        }
        *told = problem;
    }
}

impl Provider for MapFile {
    fn name(&self) -> &str {
        "file"
    }
    fn shows_table(&self) -> bool {
        true
    }
    fn request(&self, leases: Vec<Lease>) {
        let (places, problem) = match read(&self.path) {
            Ok(text) => {
                let (places, problem) = parse(&text);
                (Some(places), problem)
            }
            Err(error) => (None, Some(format!("{error}; it is read again when places are asked for"))),
        };
        self.tell(problem);
        for lease in leases {
            let answer: Answer = match &places {
                None => Err(Category::ProviderError),
                Some(places) => places.get(name_of(lease.subject())).cloned().ok_or(Category::NotFound),
            };
            // Closed: nobody waits for it.
            let _ = lease.answer(answer);
        }
    }
    fn shut_down(&self) {}
}

fn name_of(subject: &Subject) -> &str {
    match subject {
        Subject::Own => OWN,
        Subject::Endpoint(host) => host,
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(LARGEST + 1).read_to_string(&mut text)?;
    match read as u64 > LARGEST {
        true => Err(std::io::Error::other("it is larger than 16 MiB")),
        false => Ok(text),
    }
}

/// The places, and what is wrong with the first line that is not as it should be.
fn parse(text: &str) -> (HashMap<String, Location>, Option<String>) {
    let mut places = HashMap::new();
    let mut problem = None;
    // Editors on Windows put a byte order mark first.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut fields =
            line.split_whitespace().map(|field| if field == "-" { "" } else { field }.to_ascii_lowercase());
        let Some(name) = fields.next() else { continue };
        let mut field = || fields.next().unwrap_or_default();
        let location = Location { region: field(), zone: field(), zone_id: field(), account: field() };
        let more = fields.next().is_some();
        let mut wrong = |what: &str| {
            problem.get_or_insert_with(|| format!("line {number} {what}"));
        };
        if location.region.is_empty() {
            wrong("names no Region and is passed over; a line is NAME REGION [ZONE [ZONE_ID [ACCOUNT]]]");
            continue;
        }
        if more {
            wrong("has more than NAME REGION [ZONE [ZONE_ID [ACCOUNT]]]; the rest of it is passed over");
        }
        places.insert(name.trim_end_matches('.').to_owned(), location);
    }
    (places, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locality::provider::Inbox;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const HOST: &str = "db-1.cabc.eu-north-1.rds.amazonaws.com";

    /// What the file says of the proxy and of a server.
    fn ask(file: &MapFile) -> [Answer; 2] {
        let inbox = Arc::new(Inbox::default());
        let subjects = [Subject::Own, Subject::Endpoint(HOST.into())];
        let leases = (0..).zip(subjects).map(|(ticket, subject)| inbox.lease(ticket, subject).unwrap());
        file.request(leases.collect());
        let mut answers = inbox.wait(Some(Instant::now() + Duration::from_secs(10)));
        answers.sort_by_key(|(ticket, _)| *ticket);
        answers.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>().try_into().unwrap()
    }

    #[test]
    fn lines_tell_places_and_a_change_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map");
        let file = MapFile::new(path.clone());
        assert_eq!(ask(&file), [Err(Category::ProviderError), Err(Category::ProviderError)]);
        assert!(file.told.lock().is_some());
        std::fs::write(
            &path,
            format!("# a comment\n\nself eu-north-1 eu-north-1a # here\n{HOST} eu-north-1\n"),
        )
        .unwrap();
        let [own, server] = ask(&file).map(Result::unwrap);
        assert_eq!((&*own.region, &*own.zone, &*own.zone_id), ("eu-north-1", "eu-north-1a", ""));
        assert_eq!((&*server.region, &*server.zone), ("eu-north-1", ""));
        assert_eq!(*file.told.lock(), None);
        let upper = HOST.to_uppercase();
        // As an editor on Windows writes it.
        let text = format!("\u{FEFF}{upper}. EU-NORTH-1 - EUN1-AZ1 123456789012\r\nself\r\n");
        std::fs::write(&path, text).unwrap();
        let [own, server] = ask(&file);
        assert_eq!(own, Err(Category::NotFound));
        let server = server.unwrap();
        assert_eq!((&*server.region, &*server.zone), ("eu-north-1", ""));
        assert_eq!((&*server.zone_id, &*server.account), ("eun1-az1", "123456789012"));
        assert!(file.told.lock().as_deref().unwrap().starts_with("line 2 names no Region"));
    }

    #[test]
    fn lines_that_are_not_as_they_should_be_are_told() {
        for (text, told) in [
            ("a eu-north-1 eu-north-1a eun1-az1 123456789012\n", None),
            ("a eu-north-1\n\nA. eu-west-1\n", None),
            ("\na eu-north-1 eu-north-1a eun1-az1 123456789012 x\n", Some("line 2 has more than")),
            ("a\na eu-west-1 - - - -\n", Some("line 1 names no Region")),
        ] {
            let (places, problem) = parse(text);
            assert_eq!(places.len(), 1, "{text}");
            assert_eq!(&*places["a"].region, if text.contains("west") { "eu-west-1" } else { "eu-north-1" });
            match told {
                Some(told) => assert!(problem.unwrap().starts_with(told), "{text}"),
                None => assert_eq!(problem, None),
            }
        }
    }

    #[test]
    fn a_file_that_is_too_large_or_no_text_tells_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map");
        let file = MapFile::new(path.clone());
        for content in [vec![b'#'; LARGEST as usize + 1], vec![0xFF, 0xFE]] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(ask(&file)[0], Err(Category::ProviderError));
        }
    }
}
