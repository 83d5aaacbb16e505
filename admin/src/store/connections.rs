//! Connections to the database: where its schemas are, and what a connection has and may do.

use super::file::{beside, is_empty};
use crate::VERSION;
use crate::current::{Current, Role};
use crate::live::Registered;
use parking_lot::Mutex;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Virtual machine steps between looks at the clock.
const STEPS: i32 = 10_000;

/// Where the schemas are. Those in memory have names that no other store of the process has, under which every connection of
/// this one finds them (SQLite's VFS "memdb"; they go with the last connection).
#[derive(Clone)]
pub(crate) struct Places {
    main: String,
    stats: String,
    monitor: String,
    history: String,
    information: String,
    /// That of the file changes with it.
    disk: Arc<Mutex<String>>,
}

impl Places {
    pub(super) fn new(disk: String) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let place = |schema: &str| format!("file:/pointsman-{number}-{schema}?vfs=memdb");
        Self {
            main: place("main"),
            stats: place("stats"),
            monitor: place("monitor"),
            history: place("history"),
            information: place("information"),
            disk: Arc::new(Mutex::new(disk)),
        }
    }

    fn disk(&self) -> String {
        self.disk.lock().clone()
    }

    /// New connections have this as `disk`.
    pub(super) fn move_disk(&self, place: String) {
        *self.disk.lock() = place;
    }
}

fn open(place: &str) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(place, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    Ok(conn)
}

pub(super) fn attach(conn: &Connection, place: &str, schema: &str) -> rusqlite::Result<()> {
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

/// Where a file is that is read and written. A URI, for the sake of the VFS: otherwise it were that of `main`, in memory.
pub(super) fn file_place(path: &Path) -> rusqlite::Result<String> {
    Ok(file_uri(path)? + "?vfs=unix")
}

/// Where a file is that can only be read, and nothing can be made beside it. What its write-ahead log holds counts; where
/// there is none, SQLite needs no other file.
pub(super) fn unwritable_place(path: &Path) -> rusqlite::Result<String> {
    let is_whole = is_empty(&beside(path, "-wal"));
    Ok(file_place(path)? + "&mode=ro" + if is_whole { "&immutable=1" } else { "" })
}

/// Where a schema is that stands for a file which is not there.
pub(super) fn no_place(path: &Path) -> rusqlite::Result<String> {
    Ok(file_uri(path)? + "?vfs=memdb")
}

pub(super) fn attach_disk(conn: &Connection, place: &str) -> rusqlite::Result<()> {
    attach(conn, place, "disk")?;
    conn.execute_batch(&format!("PRAGMA disk.synchronous = FULL; PRAGMA disk.max_page_count = {PAGES};"))
}

pub(super) fn connect_writer(
    places: &Places,
    live: &Registered,
    current: &Current,
) -> rusqlite::Result<Connection> {
    let conn = open(&places.main)?;
    attach_disk(&conn, &places.disk())?;
    attach(&conn, &places.stats, "stats")?;
    attach(&conn, &places.monitor, "monitor")?;
    attach(&conn, &places.history, "stats_history")?;
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
            attach_disk(&conn, &places.disk())?;
            conn
        }
        Role::Stats => open(&places.stats)?,
    };
    attach(&conn, &places.stats, "stats")?;
    attach(&conn, &places.monitor, "monitor")?;
    attach(&conn, &places.history, "stats_history")?;
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
        true => {
            if context.database_name == Some("disk") {
                running.note_disk();
            }
            authorize(&context.action)
        }
        false => Authorization::Allow,
    }))?;
    let running = current.clone();
    conn.progress_handler(STEPS, Some(move || running.is_over()))?;
    Ok(conn)
}

/// Functions of MySQL that drivers call when they connect or ask for columns. As in ProxySQL, the database is `admin` or `stats` and connections have
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
    conn.create_scalar_function("ucase", 1, constant, |values| {
        Ok(values.get::<Option<String>>(0)?.map(|text| text.to_uppercase()))
    })?;
    conn.create_scalar_function("locate", 2, constant, |values| {
        let (part, text): (Option<String>, Option<String>) = (values.get(0)?, values.get(1)?);
        let place = |(part, text): (String, String)| match text.split_once(&part) {
            Some((before, _)) => before.chars().count() + 1,
            None => 0,
        };
        Ok(part.zip(text).map(|pair| place(pair) as i64))
    })?;
    conn.create_scalar_function("least", 2, constant, |values| {
        let (one, other): (Option<i64>, Option<i64>) = (values.get(0)?, values.get(1)?);
        Ok(one.zip(other).map(|(one, other)| one.min(other)))
    })?;
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
