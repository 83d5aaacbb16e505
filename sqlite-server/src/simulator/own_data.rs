//! Data of a backend's own: a database file for each backend that has a row in RDS_BGD_BACKEND. What a client creates and
//! writes through the proxy is on the backend that it was sent to and on no other.

use super::Endpoint;
use crate::database;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of these files in the data directory.
const DIRECTORY: &str = "sqlite3server-backends";

/// Where the files are.
pub(super) struct OwnData {
    directory: PathBuf,
    /// How often each backend's data was abandoned.
    abandoned: Mutex<HashMap<Endpoint, u64>>,
}

impl OwnData {
    /// Files beside the database that all backends share.
    pub(super) fn beside(shared: &Path) -> Self {
        Self { directory: shared.with_file_name(DIRECTORY), abandoned: Mutex::default() }
    }

    /// Removes what an earlier start left. Called while no session has a file open.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// A backend's file.
    pub(super) fn file(&self, endpoint: &Endpoint) -> PathBuf {
        let number = self.abandoned.lock().get(endpoint).copied().unwrap_or(0);
        self.directory.join(format!("{}-{}-{number}.db", endpoint.ip, endpoint.port))
    }

    /// Makes a backend's file, if it has none yet.
    pub(super) fn make(&self, file: &Path) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        database::keep_private(file)
    }

    /// Gives up a backend's data: it has another file from now on. A session that is in a transaction goes on with the old
    /// file until that ends, and holds up nobody.
    pub(super) fn abandon(&self, endpoint: Endpoint) {
        let file = self.file(&endpoint);
        *self.abandoned.lock().entry(endpoint).or_default() += 1;
        for suffix in ["", "-wal", "-shm"] {
            let path = PathBuf::from(format!("{}{suffix}", file.display()));
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    log::warn!("simulator: cannot remove {}: {error}", path.display());
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn files_are_separate_abandoned_and_gone_with_the_next_start() {
        let datadir = tempfile::tempdir().unwrap();
        let data = OwnData::beside(&datadir.path().join("shared.db"));
        data.remove().unwrap();
        let [a, b] = ["127.10.0.11", "::1"].map(|ip| Endpoint { ip: ip.into(), port: 3306 });
        let open = |endpoint: &Endpoint| {
            data.make(&data.file(endpoint)).unwrap();
            database::open(&data.file(endpoint)).unwrap()
        };
        let count = |connection: &Connection| {
            connection
                .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        let (first, second) = (open(&a), open(&b));
        first.execute_batch("CREATE TABLE t (i); BEGIN; INSERT INTO t VALUES (1)").unwrap();
        second.execute_batch("CREATE TABLE t (i)").unwrap();
        let before = data.file(&a);
        data.abandon(a.clone());
        assert!(!before.exists());
        assert_eq!((count(&open(&a)), count(&second)), (0, 1));
        first.execute_batch("INSERT INTO t VALUES (2); COMMIT").unwrap();
        assert_eq!(count(&open(&a)), 0);
        data.abandon(Endpoint { ip: "127.10.0.12".into(), port: 3306 });
        data.remove().unwrap();
        assert!(!data.file(&b).exists());
    }
}
