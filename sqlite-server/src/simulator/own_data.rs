//! Data of a backend's own: a database file for each backend that has a row in RDS_BGD_BACKEND. What a client creates and
//! writes through the proxy is on the backend that it was sent to and on no other.

use super::Endpoint;
use crate::database;
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of these files in the data directory.
const DIRECTORY: &str = "sqlite3server-backends";

/// Where the files are.
pub(super) struct OwnData {
    directory: PathBuf,
}

impl OwnData {
    /// Files beside the database that all backends share.
    pub(super) fn beside(shared: &Path) -> Self {
        Self { directory: shared.with_file_name(DIRECTORY) }
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
        self.directory.join(format!("{}-{}.db", endpoint.ip, endpoint.port))
    }

    /// Makes a backend's file, if it has none yet.
    pub(super) fn make(&self, file: &Path) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        database::keep_private(file)
    }

    /// Empties a backend's file. It is not removed, since sessions may have it open.
    pub(super) fn erase(&self, endpoint: &Endpoint) -> rusqlite::Result<()> {
        let file = self.file(endpoint);
        if !file.exists() {
            return Ok(());
        }
        let mut connection = database::open(&file)?;
        let erase = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for (kind, name) in objects(&erase)? {
            erase.execute_batch(&format!("DROP {kind} \"{}\"", name.replace('"', "\"\"")))?;
        }
        erase.commit()
    }
}

/// Tables and views; indexes and triggers go with them.
fn objects(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_separate_emptied_and_gone_with_the_next_start() {
        let datadir = tempfile::tempdir().unwrap();
        let data = OwnData::beside(&datadir.path().join("shared.db"));
        data.remove().unwrap();
        let [a, b] = ["127.10.0.11", "::1"].map(|ip| Endpoint { ip: ip.into(), port: 3306 });
        let open = |endpoint: &Endpoint| {
            data.make(&data.file(endpoint)).unwrap();
            database::open(&data.file(endpoint)).unwrap()
        };
        let (first, second) = (open(&a), open(&b));
        let schema =
            "CREATE TABLE \"t \"\"1\" (i INTEGER PRIMARY KEY AUTOINCREMENT); CREATE VIEW v AS SELECT 1;";
        first.execute_batch(schema).unwrap();
        second.execute_batch(schema).unwrap();
        data.erase(&a).unwrap();
        assert_eq!(objects(&first).unwrap(), []);
        assert_eq!(objects(&second).unwrap().len(), 2);
        data.erase(&Endpoint { ip: "127.10.0.12".into(), port: 3306 }).unwrap();
        data.remove().unwrap();
        assert!(!data.file(&b).exists());
    }
}
