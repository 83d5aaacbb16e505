//! The admin interface: configuration tables and variables in three layers (disk, memory, runtime), live tables,
//! and ProxySQL's command dialect.
//!
//! This crate owns the row types of configuration tables and the typed [`Variables`]. It reaches the daemon only
//! through [`Runtime`].

mod access;
mod answer;
mod attributes;
mod beginning;
mod catalog;
mod checksums;
mod collations;
mod command;
mod config_file;
mod current;
pub mod ddl;
mod error;
pub mod history;
mod information_schema;
mod interfaces;
mod live;
mod proxysql_servers;
mod query_rules;
mod read;
pub mod rows;
mod runtime_tables;
mod serve;
mod store;
mod stored;
mod tables;
#[cfg(test)]
mod tests;
mod upgrade;
mod value;
pub mod variables;

use access::Database;
pub use answer::Answer;
use checksums::Checksums;
pub use config_file::ConfigFile;
use current::Client;
pub use error::failed;
pub use interfaces::parse_interfaces;
use parking_lot::{Mutex, RwLock};
use runtime_tables::PublishedState;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use store::Store;
pub use value::Value;
pub use variables::Variables;
use variables::registry;
use wire::SqlError;

/// A validated set of configuration, as LOAD ... TO RUNTIME publishes it.
#[derive(Clone)]
pub enum ConfigSet {
    /// LOAD MYSQL SERVERS: servers and every hostgroup table, in one commit.
    Servers(rows::ServersConfig),
    /// LOAD MYSQL USERS.
    Users(Vec<rows::UserRow>),
    /// LOAD MYSQL QUERY RULES: rules and fast routing, in one commit.
    QueryRules(rows::QueryRulesConfig),
    /// LOAD PROXYSQL SERVERS.
    ProxysqlServers(Vec<rows::ProxysqlServerRow>),
    /// LOAD MYSQL / ADMIN / SQLITESERVER VARIABLES: the whole of the variables after the change.
    Variables(Box<Variables>),
}

/// What a published set led to: counted in the OK packet's info.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Rows or values that were left out as ProxySQL leaves them out, by table and key. Who leaves one out logs it.
    pub ignored: Vec<String>,
}

/// What SAVE MYSQL SERVERS FROM RUNTIME writes to mysql_servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedServers {
    /// The rows.
    pub rows: Vec<rows::ServerRow>,
    /// Where they are other than runtime_mysql_servers shows, for the OK packet's info.
    pub notes: Vec<String>,
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
    /// `stats_history`.
    History,
    /// `information_schema`.
    Information,
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
    /// PROXYSQL RESTART: stop, and begin anew from what disk holds.
    Restart,
    /// PROXYSQL KILL: end without stopping anything first.
    Kill,
    /// PROXYSQL PAUSE: new clients are refused.
    Pause,
    /// PROXYSQL RESUME: after a pause.
    Resume,
    /// PROXYSQL STOP: clients are disconnected and refused.
    Stop,
    /// PROXYSQL START: after a stop.
    Start,
    /// PROXYSQL RELOAD TLS: the certificate's files as they are now, for new connections.
    ReloadTls,
    /// PROXYSQL FLUSH MYSQL CLIENT HOSTS: forgets which clients' addresses failed.
    FlushClientHosts,
    /// KILL CONNECTION: ends the session with this connection id.
    KillConnection(u32),
    /// KILL QUERY: ends the statement that runs in this session.
    KillQuery(u32),
}

/// What the admin interface asks of the running daemon.
pub trait Runtime: Send + Sync {
    /// Puts a set of configuration in force before it returns. An error leaves everything as it was.
    fn publish(&self, set: ConfigSet) -> Result<Published, SqlError>;
    /// Runs a process command.
    fn command(&self, command: ProcessCommand) -> Result<(), SqlError>;
    /// The servers in force as rows of mysql_servers.
    fn servers_to_save(&self) -> SavedServers;
    /// How often servers were published.
    fn servers_version(&self) -> u64;
    /// SAVE MYSQL DIGEST TO DISK: moves stats_mysql_query_digest to `stats_history`. Returns how many rows there were.
    fn save_digests(&self) -> Result<u64, SqlError>;
    /// SHOW PROMETHEUS METRICS: what is counted, in Prometheus' text format.
    fn metrics(&self) -> String;
}

/// Which configuration a start begins with: the database's where there is one, unless this says otherwise.
#[derive(Default, Clone, Copy)]
pub struct Start<'a> {
    /// The configuration file, if there is one.
    pub file: Option<&'a ConfigFile>,
    /// `--initial`: the database is put aside, and the file counts.
    pub initial: bool,
    /// `--reload`: the file's rows and values replace those of the database that have the same keys.
    pub reload: bool,
}

/// Why the admin store could not be opened. The text names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Memory that SQLite has taken in the whole process, in bytes.
pub fn sqlite_memory() -> u64 {
    live::sqlite_memory()
}

/// Longest an admin statement may run.
pub const STATEMENT_LIMIT: Duration = Duration::from_secs(60);
/// What `admin-version` and `VERSION()` say. Tools decide by the number in front, which is that of the ProxySQL whose admin
/// interface this is.
pub const VERSION: &str = concat!("3.0.0-pointsman-", env!("CARGO_PKG_VERSION"));

/// The admin interface: its database, and the listener's sessions once `serve` is called for each.
///
/// The store is not locked while the daemon publishes, so that it may register tables meanwhile; the rows of live tables are
/// collected with the store locked, so that the daemon must hold none of the locks they need when it calls in here.
pub struct Admin {
    store: Database,
    /// Bytes of results that clients are still reading.
    held: Arc<AtomicUsize>,
    /// What variables are where nothing else says so.
    defaults: Variables,
    /// `--set` of this start, and of a restart.
    overrides: Vec<(&'static str, String)>,
    published: Arc<Mutex<PublishedState>>,
    runtime: RwLock<Option<Arc<dyn Runtime>>>,
    /// Where LOAD ... FROM CONFIG reads.
    config_file: Option<PathBuf>,
    datadir: PathBuf,
    checksums: Arc<Checksums>,
    /// Held by LOAD and SAVE, which run one at a time.
    moving: Mutex<()>,
}

impl Admin {
    /// Opens DATADIR/pointsman.db (made if missing) as `start` says, attaches the in-memory schemas and copies disk to memory
    /// (disk -> main). Variables that disk does not hold start as `defaults`. `overrides` are `--set NAME=VALUE`: they win
    /// over stored values for this start and are never saved by themselves.
    pub fn open(
        datadir: &Path,
        defaults: Variables,
        overrides: &[(String, String)],
        start: &Start<'_>,
    ) -> Result<Self, StoreError> {
        let mut store = Store::open(datadir, &defaults, start)?;
        let values = overrides.iter().map(|(name, value)| {
            let var = registry::find(name).ok_or_else(|| {
                StoreError(format!(
                    "--set {name}: there is no such variable; SHOW VARIABLES on the admin port lists them"
                ))
            })?;
            let value = command::set::canonical(var, value);
            Ok((var.name, value.map_err(|error| StoreError(format!("--set {name}: {}", error.message)))?))
        });
        let overrides = values.collect::<Result<Vec<_>, StoreError>>()?;
        store.set_variables(&overrides).map_err(|error| StoreError(format!("--set: {error}")))?;
        let admin = Self {
            held: Arc::clone(&store.held),
            checksums: Checksums::new(&store.live),
            store: Database::new(store),
            defaults,
            overrides,
            published: Arc::default(),
            runtime: RwLock::default(),
            config_file: start.file.map(|file| file.path().to_path_buf()),
            datadir: datadir.canonicalize().unwrap_or_else(|_| datadir.to_path_buf()),
            moving: Mutex::default(),
        };
        let database = admin.datadir.join(store::DATABASE);
        for line in admin.check_rows(&admin.store.lock().conn)? {
            log::error!("{}: {line}", database.display());
        }
        let own = runtime_tables::tables(&admin.published)
            .into_iter()
            .chain([collations::table(), admin.checksums.table()]);
        let own = own.chain(information_schema::tables(&admin.store.live));
        for table in own {
            admin.register(table)?;
        }
        Ok(admin)
    }

    /// Adds a live table (runtime_*, stats_*, monitor logs). An error where its DDL does not parse or its name is taken.
    pub fn register(&self, table: LiveTable) -> Result<(), StoreError> {
        let store = self.store.lock();
        let name = table.name;
        store
            .live
            .add(&store.conn, table)
            .map_err(|error| StoreError(format!("live table {name}: {}", error::text(&error))))
    }

    /// Connects the daemon. Before this LOAD is refused.
    pub fn attach(&self, runtime: Arc<dyn Runtime>) {
        *self.runtime.write() = Some(runtime);
    }

    /// Disconnects the daemon, which holds this in turn, so that the store can be closed.
    pub fn detach(&self) {
        *self.runtime.write() = None;
    }

    /// The daemon, once it is connected.
    fn daemon(&self) -> Result<Arc<dyn Runtime>, SqlError> {
        self.runtime.read().clone().ok_or_else(|| error::failed("the daemon is starting; try again"))
    }

    /// Variables as stored now (memory layer), overrides applied.
    pub fn variables(&self) -> Result<Variables, SqlError> {
        self.variables_of(&self.store.lock().conn)
    }

    fn variables_of(&self, conn: &Connection) -> Result<Variables, SqlError> {
        let rows = read::variables(conn, "")?;
        command::load_save::typed_variables(&self.defaults, &rows).map(|(variables, _)| variables)
    }

    /// Whether a start can do with what is in `main`, which came from disk. Variables whose values do not fit have their defaults
    /// there afterwards; returns a line for each.
    fn check_rows(&self, conn: &Connection) -> Result<Vec<String>, StoreError> {
        let path = self.datadir.join(store::DATABASE);
        let replaced = stored::replace_unfit(conn, &self.defaults);
        let replaced = replaced.map_err(|error| store::explain(&path, &error))?;
        read::all_rows(conn).map_err(|error| {
            let (path, why) = (path.display(), error.message);
            StoreError(format!(
                "{path}: {why}; correct it with sqlite3, or move the file away to start empty"
            ))
        })?;
        Ok(replaced)
    }

    /// Whether the daemon could start from what disk holds now.
    fn check_restart(&self) -> Result<(), SqlError> {
        let _one_at_a_time = self.moving.lock();
        let store = self.store.lock();
        let refuse =
            |error: StoreError| error::failed(format!("not restarted, as the start would fail: {error}"));
        let Some(conn) = store.rehearse().map_err(refuse)? else { return Ok(()) };
        store::set_variables(&conn, &self.overrides).map_err(|error| error::from_sqlite(&error))?;
        // What it says of variables is for the log of the start.
        self.check_rows(&conn).map(drop).map_err(refuse)
    }

    /// LOAD for servers and users, then for variables, at start: publishing the variables opens the listeners, and by then all
    /// that they serve is in force.
    pub fn load_all(&self) -> Result<(), SqlError> {
        command::load_save::load_all(self)?;
        self.store.lock().finish_start()
    }

    /// Runs one statement as an admin session would, for start-up and tests.
    pub fn execute(&self, sql: &str) -> Result<Answer, SqlError> {
        command::run(self, &Client::daemon(), sql)
    }
}
