//! An SQLite database behind the MySQL protocol, so that the daemon can be tried without a database server.
//!
//! With the feature `test-rds-bgd` it also simulates the topology tables and read_only values of RDS blue/green deployments.

use std::path::Path;
use wire::auth::Accounts;
use wire::login::ServerOptions;
use wire::service::Accepted;

/// Where the server listens unless configured otherwise.
pub const DEFAULT_INTERFACES: &str =
    if cfg!(feature = "test-rds-bgd") { "0.0.0.0:3306" } else { "127.0.0.1:6030" };

/// Why the database could not be opened. The text names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// The server's shared state. Listening is the caller's: it hands over accepted connections.
pub struct SqliteServer {}

impl SqliteServer {
    /// Opens (or makes) DATADIR/sqlite3server.db, in WAL mode.
    pub fn open(_datadir: &Path) -> Result<Self, OpenError> {
        unimplemented!()
    }
    /// Serves one connection to its end, on the caller's thread (2 MiB of stack).
    pub fn serve(&self, _accepted: Accepted, _options: &ServerOptions, _accounts: &dyn Accounts) {
        unimplemented!()
    }
}
