//! An SQLite database behind the MySQL protocol, so that the daemon can be tried without a database server.
//!
//! With the feature `test-rds-bgd` it also simulates the topology tables and read_only values of RDS blue/green deployments.

mod database;
mod rows;
mod session;
#[cfg(feature = "test-rds-bgd")]
mod simulator;
mod statement;
mod system;
mod text;

use database::Deadline;
use parking_lot::Mutex;
use rusqlite::Connection;
use session::{Identity, Session};
use std::path::{Path, PathBuf};
use wire::WireError;
use wire::auth::Accounts;
use wire::login::ServerOptions;
use wire::serve::{Entrance, serve};
use wire::service::Accepted;

/// Where the server listens unless configured otherwise.
pub const DEFAULT_INTERFACES: &str =
    if cfg!(feature = "test-rds-bgd") { "0.0.0.0:3306" } else { "127.0.0.1:6030" };

/// The database's file name in the data directory.
const FILE: &str = "sqlite3server.db";

/// Why the database could not be opened. The text names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// The server's shared state. Listening is the caller's: it hands over accepted connections.
pub struct SqliteServer {
    file: PathBuf,
    #[cfg(feature = "test-rds-bgd")]
    simulator: std::sync::Arc<simulator::Simulator>,
    /// Held so that the write-ahead log is not removed and made again whenever the last session ends.
    _keeper: Mutex<Connection>,
}

impl SqliteServer {
    /// Opens (or makes) DATADIR/sqlite3server.db, in WAL mode.
    ///
    /// # Errors
    /// The file cannot be opened or made, or is not a sound SQLite database.
    pub fn open(datadir: &Path) -> Result<Self, OpenError> {
        let file = datadir.join(FILE);
        let failed = |error: rusqlite::Error| {
            OpenError(format!(
                "cannot open {}: {error}; check its permissions, or move it away to start with an empty one",
                file.display()
            ))
        };
        database::keep_private(&file).map_err(|error| {
            OpenError(format!("cannot open {}: {error}; check its permissions and its owner", file.display()))
        })?;
        let keeper = database::open(&file).map_err(failed)?;
        // Reads the schema, so that a damaged file is found now and not by the first client.
        keeper.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(())).map_err(failed)?;
        Ok(Self {
            #[cfg(feature = "test-rds-bgd")]
            simulator: std::sync::Arc::new(simulator::Simulator::open(&keeper, &file).map_err(failed)?),
            file,
            _keeper: Mutex::new(keeper),
        })
    }

    /// Serves one connection to its end, on the caller's thread (2 MiB of stack). A statement that runs when the socket is
    /// shut down both ways is interrupted.
    pub fn serve(&self, accepted: Accepted, options: &ServerOptions, accounts: &dyn Accounts) {
        let (id, peer) = (accepted.id, accepted.peer);
        match self.serve_client(accepted, options, accounts) {
            Ok(()) | Err(WireError::Closed) => {}
            Err(error) => log::warn!("SQLite server: connection {id} from {peer}: {error}"),
        }
    }

    fn serve_client(
        &self,
        accepted: Accepted,
        options: &ServerOptions,
        accounts: &dyn Accounts,
    ) -> Result<(), WireError> {
        #[cfg(feature = "test-rds-bgd")]
        self.simulator.greet(&accepted.socket)?;
        let (mut channel, login) = wire::login::login(accepted.socket, accepted.id, options, accounts)?;
        let identity = Identity {
            server_version: options.server_version.clone(),
            connection_id: accepted.id,
            user: login.user.clone(),
        };
        let opened = Session::open(
            &self.file,
            Deadline::new(channel.stream().socket().clone()),
            identity,
            #[cfg(feature = "test-rds-bgd")]
            simulator::Backend::new(&self.simulator, channel.stream()),
        );
        match opened {
            Ok(mut session) => {
                let entrance = Entrance { options, accounts };
                serve(&mut channel, &login, entrance, system::MAX_ALLOWED_PACKET, &mut session)
            }
            Err(error) => {
                log::error!("SQLite server: cannot open {} for a session: {error}", self.file.display());
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        drop(SqliteServer::open(directory.path()).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(SqliteServer::open(directory.path()).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        std::fs::write(&file, "this is no database, however long one looks at it. ".repeat(40)).unwrap();
        let error = SqliteServer::open(directory.path()).err().unwrap().to_string();
        assert!(error.contains(&file.display().to_string()), "{error}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let error = SqliteServer::open(&missing).err().unwrap().to_string();
        assert!(error.contains(&missing.display().to_string()), "{error}");
    }
}
