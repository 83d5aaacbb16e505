//! Hosts files, in the order of /etc/hosts: address first, then its names.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

type Names = HashMap<String, Vec<IpAddr>>;

/// Tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

/// One hosts file, read again when it changes.
pub struct HostsFile {
    path: PathBuf,
    /// A system without the file is nothing to report.
    optional: bool,
    read: Mutex<(Option<Stamp>, Arc<Names>)>,
}

impl HostsFile {
    /// The file that the command line names; its absence is logged.
    pub fn named(path: PathBuf) -> Self {
        Self::open(path, false)
    }
    /// /etc/hosts.
    pub fn system() -> Self {
        Self::open(PathBuf::from("/etc/hosts"), true)
    }
    /// Addresses of a name (lower case, without a trailing dot), in the order of the file; empty if it is not there.
    pub fn addresses(&self, name: &str) -> Vec<IpAddr> {
        self.refresh();
        let names = self.read.lock().1.clone();
        names.get(name).cloned().unwrap_or_default()
    }

    fn open(path: PathBuf, optional: bool) -> Self {
        let file = Self { path, optional, read: Mutex::default() };
        if let (Err(error), false) = (file.stamp(), optional) {
            log::error!("hosts file {}: {error}; it is read as soon as it can be", file.path.display());
        }
        file
    }
    /// The stamp is taken before the content is read: a change between the two is seen the next time.
    fn refresh(&self) {
        let stamp = self.stamp().ok();
        if stamp == self.read.lock().0 {
            return;
        }
        let names = match std::fs::read(&self.path) {
            Ok(content) => {
                let (names, bad) = parse(&String::from_utf8_lossy(&content));
                if let Some(first) = bad.first() {
                    log::warn!(
                        "hosts file {}: {} lines are not `address name...` and are skipped, the first is line {first}",
                        self.path.display(),
                        bad.len()
                    );
                }
                names
            }
            Err(error) => {
                if !self.optional {
                    log::warn!("hosts file {}: {error}; its names are not known now", self.path.display());
                }
                Names::new()
            }
        };
        *self.read.lock() = (stamp, Arc::new(names));
    }
    fn stamp(&self) -> io::Result<Stamp> {
        let data = std::fs::metadata(&self.path)?;
        Ok(Stamp { modified: (data.mtime(), data.mtime_nsec()), size: data.size(), inode: data.ino() })
    }
}

/// Names with their addresses, and the numbers of lines that are neither an entry nor empty.
fn parse(content: &str) -> (Names, Vec<usize>) {
    let mut names = Names::new();
    let mut bad = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().peekable();
        let Some(address) = words.next() else { continue };
        let (Ok(address), Some(_)) = (address.parse::<IpAddr>(), words.peek()) else {
            bad.push(number + 1);
            continue;
        };
        for name in words {
            let addresses = names.entry(super::normalise(name)).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    (names, bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_entries_and_reports_bad_lines() {
        let content = "\u{feff}# comment\n127.0.0.1 a B.Example. # c\n\nname-first 1.2.3.4\n::1\ta\n\
                       10.0.0.1\n10.0.0.2 a\n127.0.0.1 a\n";
        let (names, bad) = parse(content);
        let expected: Vec<IpAddr> = ["127.0.0.1", "::1", "10.0.0.2"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!(names["a"], expected);
        assert_eq!(names["b.example"], expected[..1]);
        assert_eq!((names.len(), bad), (2, vec![1, 4, 6]));
    }

    #[test]
    fn reads_again_what_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hosts");
        let file = HostsFile::named(path.clone());
        assert!(file.addresses("a").is_empty());
        for address in ["10.0.0.1", "10.0.0.22"] {
            std::fs::write(&path, format!("{address} a\n")).unwrap();
            assert_eq!(file.addresses("a"), [address.parse::<IpAddr>().unwrap()]);
        }
        // Same size and perhaps the same time, but another file.
        let other = directory.path().join("other");
        std::fs::write(&other, "10.0.0.33 a\n").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(file.addresses("a"), ["10.0.0.33".parse::<IpAddr>().unwrap()]);
        std::fs::remove_file(&path).unwrap();
        assert!(file.addresses("a").is_empty());
    }
}
