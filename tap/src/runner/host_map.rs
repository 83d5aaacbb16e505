//! The names that a group wants to be known, and the hosts files made from them.

use super::RunError;
use super::run_directory::RunDirectory;
use crate::hosts::address_first;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the machine's own names are.
pub const SYSTEM_HOSTS: &str = "/etc/hosts";

/// The map in the file `path`, as lines of a hosts file.
pub fn read(path: &Path) -> Result<String, RunError> {
    let text = fs::read_to_string(path).map_err(RunError::io(format!("reading {}", path.display())))?;
    address_first(&text).map_err(|line| RunError::HostMap { path: path.to_owned(), line })
}

/// Writes the hosts file that takes the place of the machine's own inside a namespace: that one, then the group's names.
pub fn write_with_system(map: &str, run: &RunDirectory) -> Result<PathBuf, RunError> {
    // A machine without the file knows no names but those of DNS.
    let system = fs::read_to_string(SYSTEM_HOSTS).unwrap_or_default();
    write(&format!("{}\n{map}", system.trim_end()), run)
}

/// Writes the hosts file for the daemon's `--hosts-file`.
pub fn write(map: &str, run: &RunDirectory) -> Result<PathBuf, RunError> {
    let path = run.hosts();
    fs::write(&path, map).map_err(RunError::io(format!("writing {}", path.display())))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_map_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        assert!(read(&missing).unwrap_err().to_string().contains("missing"));
        let map = directory.path().join("map");
        fs::write(&map, "127.0.0.1 a\nb c\n").unwrap();
        let error = read(&map).unwrap_err().to_string();
        assert!(error.ends_with("map: 'b c' is not a host name and its address"), "{error}");
    }

    #[test]
    fn inside_a_namespace_the_machines_names_stay_known() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::existing(directory.path().to_owned());
        let path = write_with_system("127.10.0.11 db-1.example\n", &run).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let system = fs::read_to_string(SYSTEM_HOSTS).unwrap();
        assert!(
            text.starts_with(system.trim_end()) && text.ends_with("\n127.10.0.11 db-1.example\n"),
            "{text}"
        );
    }
}
