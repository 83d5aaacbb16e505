//! The admin interface: configuration tables and variables in three layers (disk, memory, runtime), live tables,
//! and ProxySQL's command dialect.
//!
//! This crate owns the row types of configuration tables and the typed [`Variables`]. It reaches the daemon only
//! through [`Runtime`].

pub mod rows;
pub mod variables;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
pub use variables::Variables;
use wire::SqlError;

/// A validated set of configuration, as LOAD ... TO RUNTIME publishes it.
#[derive(Clone)]
pub enum ConfigSet {
    /// LOAD MYSQL SERVERS: servers and every hostgroup table, in one commit.
    Servers(rows::ServersConfig),
    /// LOAD MYSQL USERS.
    Users(Vec<rows::UserRow>),
    /// LOAD MYSQL / ADMIN / SQLITESERVER VARIABLES: the whole of the variables after the change.
    Variables(Box<Variables>),
}

/// What a published set led to: shown in the OK packet's info.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Rows or values that were left out as ProxySQL leaves them out (each logged by table and key).
    pub ignored: Vec<String>,
}

/// A cell of a live table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// INTEGER
    Int(i64),
    /// TEXT
    Text(String),
}

/// Schema a live table appears in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// `main`: the runtime_ tables.
    Main,
    /// `stats`.
    Stats,
    /// `monitor`.
    Monitor,
}

/// A table over live state. Rows are taken when a scan begins.
#[derive(Clone)]
pub struct LiveTable {
    /// Table name.
    pub name: &'static str,
    /// Where it appears; unqualified names find it in any schema.
    pub schema: Schema,
    /// CREATE TABLE text, as SHOW CREATE TABLE prints it and as the columns are declared.
    pub ddl: &'static str,
    /// Collects the rows, in the order they are shown.
    pub rows: Arc<dyn Fn() -> Vec<Vec<Value>> + Send + Sync>,
}

/// Commands that concern the process, not the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessCommand {
    /// PROXYSQL SHUTDOWN: stop at once.
    Shutdown,
    /// PROXYSQL SHUTDOWN SLOW: stop as SIGTERM does.
    ShutdownSlow,
}

/// What the admin interface asks of the running daemon.
pub trait Runtime: Send + Sync {
    /// Puts a set of configuration in force before it returns. An error leaves everything as it was.
    fn publish(&self, set: ConfigSet) -> Result<Published, SqlError>;
    /// Runs a process command.
    fn command(&self, command: ProcessCommand) -> Result<(), SqlError>;
}

/// Why the admin store could not be opened. The text names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// The admin interface: its database, and the listener's sessions once `serve` is called for each.
pub struct Admin {}

impl Admin {
    /// Opens DATADIR/pointsman.db (made if missing), attaches the in-memory schemas and copies disk to memory
    /// (disk -> main). `overrides` are `--set NAME=VALUE`: they win over stored values for this start and are never saved by themselves.
    pub fn open(_datadir: &Path, _overrides: &[(String, String)]) -> Result<Self, StoreError> {
        unimplemented!()
    }
    /// Adds a live table (runtime_*, stats_*, monitor logs).
    pub fn register(&self, _table: LiveTable) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Removes a live table.
    pub fn unregister(&self, _name: &str) {
        unimplemented!()
    }
    /// Connects the daemon. Before this LOAD is refused.
    pub fn attach(&self, _runtime: Arc<dyn Runtime>) {
        unimplemented!()
    }
    /// Variables as stored now (memory layer), overrides applied.
    pub fn variables(&self) -> Result<Variables, SqlError> {
        unimplemented!()
    }
    /// LOAD for users, servers and variables, at start.
    pub fn load_all(&self) -> Result<(), SqlError> {
        unimplemented!()
    }
    /// Serves one accepted admin connection to its end: login against `accounts`, then statements.
    pub fn serve(
        &self,
        _accepted: wire::service::Accepted,
        _options: &wire::login::ServerOptions,
        _accounts: &dyn wire::auth::Accounts,
    ) {
        unimplemented!()
    }
    /// Runs one statement as an admin session would, for start-up and tests: (column names, rows) or affected rows.
    pub fn execute(&self, _sql: &str) -> Result<Answer, SqlError> {
        unimplemented!()
    }
}

/// The answer to one admin statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// OK with affected rows and info text.
    Ok {
        /// Affected rows.
        affected: u64,
        /// Info text.
        info: String,
    },
    /// A result set.
    Rows {
        /// Column names.
        columns: Vec<String>,
        /// Rows as text; NULL is `None`.
        rows: Vec<Vec<Option<String>>>,
    },
}

/// Addresses in an interface list such as `0.0.0.0:6032;[::1]:6032`.
pub fn parse_interfaces(_list: &str) -> Result<Vec<SocketAddr>, String> {
    unimplemented!()
}

/// Longest an admin statement may run.
pub const STATEMENT_LIMIT: Duration = Duration::from_secs(60);
