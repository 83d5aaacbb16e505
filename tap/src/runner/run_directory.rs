//! What one run leaves behind: a numbered directory of its own with every output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Makes the directory with the next free number in `parent`, which is made, too, if it is missing. Runs that begin at the
    /// same time get different ones.
    pub fn create(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        // The daemon and the namespace's mount want it whatever the working directory is.
        let parent = parent.canonicalize()?;
        let mut number = 1_u32;
        loop {
            let path = parent.join(number.to_string());
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// One that [`Self::create`] has made.
    pub fn existing(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Standard output and standard error of the daemon.
    pub fn daemon_log(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    /// The daemon's process number, while it runs.
    pub fn daemon_pid(&self) -> PathBuf {
        self.0.join("daemon.pid")
    }

    /// The runner's own process number, while it runs.
    pub fn runner_pid(&self) -> PathBuf {
        self.0.join("runner.pid")
    }

    /// The daemon's data directory.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The names that the daemon knows.
    pub fn hosts(&self) -> PathBuf {
        self.0.join("hosts")
    }

    /// The report in JUnit's format.
    pub fn junit(&self) -> PathBuf {
        self.0.join("junit.xml")
    }

    /// Standard output and standard error of one run of one binary.
    pub fn output(&self, binary: &str, round: u32) -> PathBuf {
        self.0.join(format!("{binary}.{round}.log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn runs_side_by_side_get_different_directories() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("logs");
        let made: Vec<_> = std::thread::scope(|scope| {
            let create = || (0..8).map(|_| RunDirectory::create(&parent).unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let paths: HashSet<_> = made.iter().map(RunDirectory::path).collect();
        assert_eq!(paths.len(), 32);
        assert!(paths.iter().all(|path| path.is_absolute() && path.is_dir()));
    }
}
