//! The database behind the admin interface: `main` in memory, `disk` on file, and `stats` and `monitor` for live tables. One
//! connection writes; those that read see the same.

use crate::answer::{Answer, RESULT_LIMIT, SMALL_RESULT};
use crate::beginning::{self, Beginning};
use crate::command::read_only_error;
use crate::config_file::Loaded;
use crate::current::{Client, Current, Role};
use crate::live::Registered;
use crate::tables::{self, TABLES};
use crate::upgrade;
use crate::variables::registry::VARIABLES;
use crate::{Start, StoreError, VERSION, Variables, error};
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use wire::SqlError;

/// The database's file name in the data directory.
pub(crate) const DATABASE: &str = "pointsman.db";
const LOCK: &str = "pointsman.lock";
/// Longest value and statement, in bytes.
const LENGTH_LIMIT: i32 = 64 << 20;
/// Deeper expressions could overflow the stack of the thread that runs them.
const DEPTH: i32 = 200;
/// Longest LIKE pattern, in bytes: SQLite recurses on its wildcards.
const PATTERN_LIMIT: i32 = 1_000;
/// Pages of 4 KiB that the memory layer may grow to, and the file.
const PAGES: u32 = 65_536;
/// Memory SQLite may take in the whole process, the SQLite3 server's sessions included, in bytes. A statement that needs
/// more fails.
const HEAP_LIMIT: u64 = 512 << 20;
/// How long a statement waits for another program that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const EMPTY_LOG: &str = "PRAGMA disk.wal_checkpoint(TRUNCATE)";
/// Virtual machine steps between looks at the clock.
const STEPS: i32 = 10_000;

/// The open database.
pub(crate) struct Store {
    pub conn: Connection,
    pub live: Registered,
    pub places: Places,
    /// Bytes of results that clients are still reading.
    pub held: Arc<AtomicUsize>,
    current: Current,
    file: DiskFile,
    /// Held as long as the store is open; a second daemon on the same directory cannot take it.
    _lock: File,
}

impl Store {
    /// Opens the database of a data directory; the memory layer starts as `defaults`, overlaid with what disk holds. Before that
    /// the file goes to disk, where `start` says that it counts.
    pub fn open(datadir: &Path, defaults: &Variables, start: &Start<'_>) -> Result<Self, StoreError> {
        let datadir = datadir.canonicalize().map_err(|error| {
            let path = datadir.display();
            StoreError(format!("{path}: {error}; the data directory must exist and be accessible"))
        })?;
        let lock = lock(&datadir)?;
        let path = datadir.join(DATABASE);
        let start = Beginning::of(start, &path)?;
        let file = DiskFile::create(path.clone())?;
        let live = Registered::default();
        let current = Current::default();
        let places = Places::new(&path);
        let conn = connect_writer(&places, &live, &current).map_err(|error| explain(&path, &error))?;
        check(&conn, &path)?;
        let held = Arc::default();
        let mut store = Self { conn, live, places, held, current, file, _lock: lock };
        store.make_ready(start.fresh)?;
        if let Some(loaded) = &start.loaded {
            store.merge("disk", loaded).map_err(|error| explain(&path, &error))?;
        }
        store.fill_memory(defaults).map_err(|error| explain(&path, &error))?;
        Ok(store)
    }

    /// Brings the file to this version's tables.
    fn make_ready(&mut self, fresh: bool) -> Result<(), StoreError> {
        let path = self.file.path.clone();
        upgrade::run(&mut self.conn, &path)?;
        self.create_tables(fresh).map_err(|error| explain(&path, &error))
    }

    /// Makes what tables are missing. A fresh database is marked until its start comes to its end.
    fn create_tables(&mut self, fresh: bool) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        for table in TABLES {
            for schema in ["main", "disk"] {
                let create = format!("CREATE TABLE IF NOT EXISTS {schema}.");
                transaction.execute_batch(&table.ddl.replacen("CREATE TABLE ", &create, 1))?;
            }
        }
        if fresh {
            // What a start that never came to its end took over is worth nothing.
            for table in TABLES {
                transaction.execute(&format!("DELETE FROM disk.{}", table.name), [])?;
            }
            transaction.pragma_update(Some("disk"), beginning::MARK, beginning::UNFINISHED)?;
        }
        upgrade::sign(&transaction)?;
        transaction.commit()
    }

    /// From now on the database counts, and no longer the file that it was made from.
    pub fn finish_start(&self) -> Result<(), SqlError> {
        let finish = || {
            let mark: i32 = self.conn.pragma_query_value(Some("disk"), beginning::MARK, |row| row.get(0))?;
            if mark == 0 { Ok(()) } else { self.conn.pragma_update(Some("disk"), beginning::MARK, 0) }
        };
        finish().map_err(|error| self.file_error(&error))
    }

    /// Puts rows and values of a file into a layer, in place of those with the same keys. Returns how many.
    pub fn merge(&mut self, schema: &str, loaded: &Loaded) -> rusqlite::Result<u64> {
        let transaction = self.conn.transaction()?;
        loaded.rows.iter().try_for_each(|row| row.replace_into(&transaction, schema))?;
        for (name, value) in &loaded.variables {
            let sql = format!("INSERT OR REPLACE INTO {schema}.global_variables VALUES (?1, ?2)");
            transaction.execute(&sql, params![name, value])?;
        }
        transaction.commit()?;
        Ok((loaded.rows.len() + loaded.variables.len()) as u64)
    }

    fn fill_memory(&mut self, defaults: &Variables) -> rusqlite::Result<()> {
        self.disk_to_memory(tables::Group::Servers)?;
        self.disk_to_memory(tables::Group::Users)?;
        self.disk_to_memory(tables::Group::QueryRules)?;
        self.disk_to_memory(tables::Group::ProxysqlServers)?;
        self.variables_to_memory("", defaults)
    }

    /// Replaces a group's tables in memory by those on disk.
    pub fn disk_to_memory(&mut self, group: tables::Group) -> rusqlite::Result<()> {
        self.copy(group, "disk", "main")
    }

    /// Replaces a group's tables on disk by those in memory, all or nothing.
    pub fn memory_to_disk(&mut self, group: tables::Group) -> rusqlite::Result<()> {
        self.copy(group, "main", "disk")?;
        self.empty_log();
        Ok(())
    }

    fn copy(&mut self, group: tables::Group, from: &str, to: &str) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        for table in tables::of(group) {
            let name = table.name;
            transaction.execute(&format!("DELETE FROM {to}.{name}"), [])?;
            transaction.execute(&format!("INSERT INTO {to}.{name} SELECT * FROM {from}.{name}"), [])?;
        }
        transaction.commit()
    }

    /// Sets the variables in memory whose names begin with `prefix` to what disk holds, and to `defaults` where it holds nothing.
    pub fn variables_to_memory(&mut self, prefix: &str, defaults: &Variables) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        let pattern = format!("{prefix}%");
        transaction.execute("DELETE FROM main.global_variables WHERE variable_name LIKE ?1", [&pattern])?;
        transaction.execute(
            "INSERT INTO main.global_variables SELECT * FROM disk.global_variables WHERE variable_name LIKE ?1",
            [&pattern],
        )?;
        for var in VARIABLES.iter().filter(|var| var.name.starts_with(prefix)) {
            let conflict = if var.is_read_only() { "REPLACE" } else { "IGNORE" };
            transaction.execute(
                &format!("INSERT OR {conflict} INTO main.global_variables VALUES (?1, ?2)"),
                params![var.name, var.show(defaults)],
            )?;
        }
        transaction.commit()
    }

    /// Replaces the variables on disk whose names begin with `prefix` by those in memory.
    pub fn variables_to_disk(&mut self, prefix: &str) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        let pattern = format!("{prefix}%");
        transaction.execute("DELETE FROM disk.global_variables WHERE variable_name LIKE ?1", [&pattern])?;
        transaction.execute(
            "INSERT INTO disk.global_variables SELECT * FROM main.global_variables WHERE variable_name LIKE ?1",
            [&pattern],
        )?;
        transaction.commit()?;
        self.empty_log();
        Ok(())
    }

    /// Puts what the write-ahead log holds into the file, so that a copy of the file alone is whole, and a file that is put in its
    /// place is not mixed with it. What was saved is safe without: another program that reads the file is not waited for.
    fn empty_log(&self) {
        let empty = || {
            self.conn.busy_timeout(Duration::ZERO)?;
            self.conn.query_row(EMPTY_LOG, [], |_| Ok(()))
        };
        let emptied = empty();
        if let Err(error) = emptied.and(self.conn.busy_timeout(BUSY_TIMEOUT)) {
            log::debug!("{}: the log is not emptied: {}", self.file.path.display(), error::text(&error));
        }
    }

    /// What a client is told where reading or writing the file failed.
    pub fn file_error(&self, error: &rusqlite::Error) -> SqlError {
        match cause(error) {
            Some((what, remedy)) => error::failed(format!(
                "{}: {what}; nothing was saved or loaded: {remedy} and try again",
                self.file.path.display()
            )),
            None => error::from_sqlite(error),
        }
    }

    /// Sets variables in memory. Returns how many rows that made or changed.
    pub fn set_variables(&mut self, values: &[(&str, String)]) -> rusqlite::Result<u64> {
        let transaction = self.conn.transaction()?;
        for (name, value) in values {
            transaction.execute(
                "INSERT OR REPLACE INTO main.global_variables VALUES (?1, ?2)",
                params![name, value],
            )?;
        }
        transaction.commit()?;
        Ok(values.len() as u64)
    }

    /// Runs a client's statement: within `limit`, and without what could reach other files or change the schema.
    pub fn client_statement(
        &self,
        client: &Client,
        sql: &str,
        limit: Duration,
        may_change: bool,
    ) -> Result<Answer, SqlError> {
        let _running = self.current.begin(client, limit);
        if !may_change && self.conn.prepare(sql).is_ok_and(|statement| !statement.readonly()) {
            return Err(read_only_error());
        }
        Answer::collect(&self.conn, sql, room(&self.held))
    }

    /// Undoes what was done since a savepoint, and forgets it.
    pub fn undo(&self, savepoint: &str) {
        let undo = format!("ROLLBACK TO {savepoint}; RELEASE {savepoint}");
        if let Err(error) = self.conn.execute_batch(&undo) {
            // SQLite has undone it by itself when an error ended the whole transaction.
            log::debug!("{}", error::text(&error));
        }
    }

    /// Leaves the database file and opens the one that is there now, which may be another.
    pub fn reopen_file(&mut self) -> Result<(), StoreError> {
        let path = self.file.path.clone();
        let file = DiskFile::create(path.clone())?;
        let explained = |error: rusqlite::Error| explain(&path, &error);
        // The write-ahead log goes by the path: emptied into the old file, it is none of the new one.
        self.conn.query_row(EMPTY_LOG, [], |_| Ok(())).map_err(explained)?;
        // What is no database is refused while the one before is still open.
        let scratch = Connection::open_in_memory().map_err(explained)?;
        let place = file_uri(&path).map_err(explained)? + "?vfs=unix&mode=ro&immutable=1";
        attach(&scratch, &place, "disk").map_err(explained)?;
        check(&scratch, &path)?;
        self.conn.execute_batch("DETACH DATABASE disk").map_err(explained)?;
        attach_disk(&self.conn, &path).map_err(explained)?;
        self.file = file;
        self.make_ready(false)
    }

    /// An error where the database file is not the one that was opened: SQLite would go on with a removed file, and what is
    /// saved there is gone at the next start.
    pub fn check_file(&self) -> Result<(), SqlError> {
        self.file.check()
    }
}

/// The database file, as it was when it was opened.
struct DiskFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl DiskFile {
    /// Makes the file if it is missing, readable for its owner alone since it holds passwords.
    fn create(path: PathBuf) -> Result<Self, StoreError> {
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        match file.and_then(|file| {
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.metadata()
        }) {
            Ok(found) => Ok(Self { path, identity: (found.dev(), found.ino()) }),
            Err(error) => Err(StoreError(format!(
                "{}: {error}; it must be readable and writable for this user",
                path.display()
            ))),
        }
    }

    fn check(&self) -> Result<(), SqlError> {
        let what = match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == self.identity => return Ok(()),
            Ok(_) => "the file was replaced while the daemon runs".to_owned(),
            Err(error) => error.to_string(),
        };
        let path = self.path.display();
        Err(error::failed(format!(
            "{path}: {what}; nothing was saved or loaded: restart to use what is there"
        )))
    }
}

/// Makes sure that no other daemon uses the directory.
fn lock(datadir: &Path) -> Result<File, StoreError> {
    let path = datadir.join(LOCK);
    let refuse = |reason: String| StoreError(format!("{}: {reason}", path.display()));
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| refuse(format!("{error}; the data directory must be writable")))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(refuse(
            "locked: another pointsman uses this data directory; stop it or choose another with -D".into(),
        )),
        Err(TryLockError::Error(error)) => Err(refuse(format!("cannot be locked: {error}"))),
    }
}

/// Memory left for a result while clients read others that take `held` bytes.
pub(crate) fn room(held: &AtomicUsize) -> usize {
    RESULT_LIMIT.saturating_sub(held.load(Ordering::Relaxed)).max(SMALL_RESULT)
}

/// Where the schemas are. Those in memory have names that no other store of the process has, under which every connection of
/// this one finds them (SQLite's VFS "memdb"; they go with the last connection).
#[derive(Clone)]
pub(crate) struct Places {
    main: String,
    stats: String,
    monitor: String,
    information: String,
    disk: PathBuf,
}

impl Places {
    fn new(disk: &Path) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let place = |schema: &str| format!("file:/pointsman-{number}-{schema}?vfs=memdb");
        Self {
            main: place("main"),
            stats: place("stats"),
            monitor: place("monitor"),
            information: place("information"),
            disk: disk.to_owned(),
        }
    }
}

fn open(place: &str) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(place, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    Ok(conn)
}

fn attach(conn: &Connection, place: &str, schema: &str) -> rusqlite::Result<()> {
    conn.execute(&format!("ATTACH DATABASE ?1 AS {schema}"), [place]).map(drop)
}

pub(crate) fn file_uri(path: &Path) -> rusqlite::Result<String> {
    let path = path.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(path.into()))?;
    let mut uri = String::from("file:");
    for c in path.chars() {
        match c {
            '%' | '?' | '#' => uri.push_str(&format!("%{:02x}", u32::from(c))),
            _ => uri.push(c),
        }
    }
    Ok(uri)
}

/// Named as a URI, for the sake of the VFS: otherwise it were that of `main`, in memory.
fn attach_disk(conn: &Connection, path: &Path) -> rusqlite::Result<()> {
    attach(conn, &(file_uri(path)? + "?vfs=unix"), "disk")?;
    conn.execute_batch(&format!(
        "PRAGMA disk.journal_mode = WAL; PRAGMA disk.synchronous = FULL; PRAGMA disk.max_page_count = {PAGES};"
    ))
}

fn connect_writer(places: &Places, live: &Registered, current: &Current) -> rusqlite::Result<Connection> {
    let conn = open(&places.main)?;
    attach_disk(&conn, &places.disk)?;
    attach(&conn, &places.stats, "stats")?;
    attach(&conn, &places.monitor, "monitor")?;
    attach(&conn, &places.information, "information_schema")?;
    conn.execute_batch(&format!(
        "PRAGMA main.max_page_count = {PAGES}; PRAGMA hard_heap_limit = {HEAP_LIMIT};"
    ))?;
    prepare(conn, Role::Admin, live, current)
}

/// A connection that only reads. That of a reader of statistics has nothing else in it.
pub(crate) fn connect_reader(
    places: &Places,
    role: Role,
    live: &Registered,
    current: &Current,
) -> rusqlite::Result<Connection> {
    let conn = match role {
        Role::Admin => {
            let conn = open(&places.main)?;
            attach_disk(&conn, &places.disk)?;
            conn
        }
        Role::Stats => open(&places.stats)?,
    };
    attach(&conn, &places.stats, "stats")?;
    attach(&conn, &places.monitor, "monitor")?;
    if role == Role::Admin {
        attach(&conn, &places.information, "information_schema")?;
    }
    conn.execute_batch("PRAGMA query_only = 1")?;
    prepare(conn, role, live, current)
}

/// What every connection has: live tables, functions, limits.
fn prepare(
    mut conn: Connection,
    role: Role,
    live: &Registered,
    current: &Current,
) -> rusqlite::Result<Connection> {
    live.install(&conn)?;
    functions(&conn, role, current)?;
    conn.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, DEPTH)?;
    conn.set_limit(Limit::SQLITE_LIMIT_PARSER_DEPTH, DEPTH)?;
    conn.set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, DEPTH)?;
    conn.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20)?;
    conn.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_LIMIT)?;
    conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_LIMIT)?;
    conn.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, LENGTH_LIMIT)?;
    let running = current.clone();
    conn.authorizer(Some(move |context: AuthContext<'_>| match running.is_running() {
        true => authorize(&context.action),
        false => Authorization::Allow,
    }))?;
    let running = current.clone();
    conn.progress_handler(STEPS, Some(move || running.is_over()))?;
    Ok(conn)
}

/// Functions of MySQL that drivers call when they connect. As in ProxySQL, the database is `admin` or `stats` and connections have
/// no number.
fn functions(conn: &Connection, role: Role, current: &Current) -> rusqlite::Result<()> {
    let constant = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, text) in [("version", VERSION), ("database", role.database()), ("schema", role.database())] {
        conn.create_scalar_function(name, 0, constant, move |_| Ok(text))?;
    }
    for name in ["user", "current_user"] {
        let running = current.clone();
        conn.create_scalar_function(name, 0, FunctionFlags::SQLITE_UTF8, move |_| Ok(running.user()))?;
    }
    conn.create_scalar_function("connection_id", 0, constant, |_| Ok(0))
}

/// What a client's statement may do: read and write rows. Transactions are refused because all clients share the connection,
/// and the schema is the daemon's: a trigger would run inside LOAD and SAVE, a table or view could hide a live one.
fn authorize(action: &AuthAction<'_>) -> Authorization {
    use AuthAction::*;
    match action {
        Select
        | Read { .. }
        | Insert { .. }
        | Update { .. }
        | Delete { .. }
        | Function { .. }
        | Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

/// Looks for damage before anything is read.
fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = conn.query_row("PRAGMA disk.quick_check(1)", [], |row| row.get::<_, String>(0));
    match found {
        Ok(text) if text == "ok" => Ok(()),
        Ok(text) => Err(damaged(path, &text)),
        Err(error) => Err(explain(path, &error)),
    }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    let what = what.replace('\n', " ");
    StoreError(format!(
        "{}: the database is damaged ({what}); restore it from a backup or move it away to start empty",
        path.display()
    ))
}

/// What a failure of the file comes from, and what to do.
fn cause(error: &rusqlite::Error) -> Option<(String, &'static str)> {
    let said = |what: &str| what.to_owned();
    Some(match error.sqlite_error_code()? {
        ErrorCode::DiskFull => {
            (said("the disk is full, or the database as large as it may be (256 MiB)"), "make room")
        }
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => (
            error::text(error),
            "make sure that its disk has room, works and lets this user write files beside it",
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            (said("it cannot be written"), "make the file and its directory writable for this user")
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (said("another program holds it locked"), "end that program")
        }
        ErrorCode::DatabaseCorrupt => {
            (format!("the database is damaged ({})", error::text(error)), "restore it from a backup")
        }
        ErrorCode::NotADatabase => (said("not a pointsman database"), "restore it from a backup"),
        _ => return None,
    })
}

/// Why the file cannot be used at a start.
pub(crate) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path_text = path.display();
    match (error.sqlite_error_code(), cause(error)) {
        (Some(ErrorCode::NotADatabase), _) => not_ours(path, ""),
        (Some(ErrorCode::DatabaseCorrupt), _) => damaged(path, &error::text(error)),
        (_, Some((what, remedy))) => StoreError(format!("{path_text}: {what}; {remedy}")),
        (_, None) => {
            StoreError(format!("{path_text}: {}; check the file and its permissions", error::text(error)))
        }
    }
}

/// The refusal of a file that pointsman did not make.
pub(crate) fn not_ours(path: &Path, detail: &str) -> StoreError {
    StoreError(format!(
        "{}: not a pointsman database{detail}; move it away to start empty, or choose another directory with -D",
        path.display()
    ))
}
