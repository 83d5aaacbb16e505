//! The database behind the admin interface: `main` in memory, `disk` on file, and `stats` and `monitor` for live tables. One
//! connection writes; those that read see the same.

mod connections;
mod failures;
mod file;

use crate::answer::{Answer, RESULT_LIMIT, SMALL_RESULT};
use crate::beginning::{self, Beginning};
use crate::command::read_only_error;
use crate::config_file::Loaded;
use crate::current::{Client, Current};
use crate::live::Registered;
use crate::tables::{self, TABLES, TableDef};
use crate::upgrade;
use crate::variables::registry::VARIABLES;
use crate::{Start, StoreError, Variables, error};
use connections::{
    BUSY_TIMEOUT, attach, attach_disk, connect_writer, file_place, no_place, unwritable_place,
};
use failures::{cause, check};
use file::{lock, probe};
use rusqlite::{Connection, params};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wire::SqlError;

pub(crate) use connections::{Places, connect_reader, file_uri};
pub(crate) use failures::{explain, not_ours};
pub(crate) use file::{DiskFile, beside, is_empty};

/// The database's file name in the data directory.
pub(crate) const DATABASE: &str = "pointsman.db";
const EMPTY_LOG: &str = "PRAGMA disk.wal_checkpoint(TRUNCATE)";

/// The open database.
pub(crate) struct Store {
    pub conn: Connection,
    pub live: Registered,
    pub places: Places,
    /// Bytes of results that clients are still reading.
    pub held: Arc<AtomicUsize>,
    current: Current,
    pub file: DiskFile,
    /// Whether the file can be written, as far as is known.
    pub writable: bool,
    /// Held as long as the store is open; a second daemon on the same directory cannot take it.
    _lock: Option<File>,
}

impl Store {
    /// Opens the database of a data directory; the memory layer starts as `defaults`, overlaid with what disk holds. Before that
    /// the file goes to disk, where `start` says that it counts.
    pub fn open(datadir: &Path, defaults: &Variables, start: &Start<'_>) -> Result<Self, StoreError> {
        let datadir = datadir.canonicalize().map_err(|error| {
            let path = datadir.display();
            StoreError(format!("{path}: {error}; the data directory must exist and be accessible"))
        })?;
        let probed = probe(&datadir);
        let lock = lock(&datadir, probed.is_ok())?;
        let path = datadir.join(DATABASE);
        if let Err(reason) = probed {
            return Self::open_unwritable(path, lock, defaults, start, &reason);
        }
        let start = Beginning::of(start, &path)?;
        let file = DiskFile::create(path.clone())?;
        let live = Registered::default();
        let current = Current::default();
        let places = Places::new(file_place(&path).map_err(|error| explain(&path, &error))?);
        let conn = connect_writer(&places, &live, &current).map_err(|error| explain(&path, &error))?;
        check(&conn, &path)?;
        let held = Arc::default();
        let mut store = Self { conn, live, places, held, current, file, writable: true, _lock: lock };
        store.make_ready(start.fresh)?;
        if let Some(loaded) = &start.loaded {
            store.merge("disk", loaded).map_err(|error| explain(&path, &error))?;
        }
        store.fill_memory(defaults).map_err(|error| explain(&path, &error))?;
        Ok(store)
    }

    /// The same in a directory that cannot be written, for `reason`: with what can be read.
    fn open_unwritable(
        path: PathBuf,
        lock: Option<File>,
        defaults: &Variables,
        start: &Start<'_>,
        reason: &io::Error,
    ) -> Result<Self, StoreError> {
        let start = Beginning::of(start, &path)?;
        if start.fresh && start.loaded.is_none() {
            let path = path.display();
            return Err(StoreError(format!(
                "{path}: {reason}; make room in the data directory and let this user write there"
            )));
        }
        log::error!(
            "{}: {reason}; the start goes on with what can be read, and nothing can be saved before that has changed",
            path.display()
        );
        let explained = |error: rusqlite::Error| explain(&path, &error);
        let place = if start.fresh { no_place(&path) } else { unwritable_place(&path) };
        let places = Places::new(place.map_err(explained)?);
        let (live, current) = (Registered::default(), Current::default());
        let conn = connect_writer(&places, &live, &current).map_err(explained)?;
        if !start.fresh {
            check(&conn, &path)?;
            upgrade::check(&conn, &path)?;
        }
        for table in TABLES {
            conn.execute_batch(table.ddl).map_err(explained)?;
            if start.fresh {
                conn.execute_batch(&table.ddl_in("disk")).map_err(explained)?;
            }
            upgrade::copy(&conn, table).map_err(explained)?;
        }
        add_defaults(&conn, "", defaults).map_err(explained)?;
        let file = if start.fresh { DiskFile::none(path.clone()) } else { DiskFile::find(path.clone()) };
        let held = Arc::default();
        let mut store = Self { conn, live, places, held, current, file, writable: false, _lock: lock };
        if let Some(loaded) = &start.loaded {
            store.merge("main", loaded).map_err(|error| explain(&path, &error))?;
        }
        Ok(store)
    }

    /// Brings the file to this version's tables.
    fn make_ready(&mut self, fresh: bool) -> Result<(), StoreError> {
        let path = self.file.path.clone();
        // The log is asked for in the file's header: that of another program's stays as it is.
        upgrade::check(&self.conn, &path)?;
        self.file.protect().map_err(|error| StoreError(format!("{}: {error}", path.display())))?;
        self.conn.execute_batch("PRAGMA disk.journal_mode = WAL").map_err(|error| explain(&path, &error))?;
        upgrade::run(&mut self.conn, &path)?;
        self.create_tables(fresh).map_err(|error| explain(&path, &error))
    }

    /// Makes what tables are missing. A fresh database is marked until its start comes to its end.
    fn create_tables(&mut self, fresh: bool) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        for table in TABLES {
            for schema in ["main", "disk"] {
                transaction.execute_batch(&table.ddl_in(schema))?;
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
        if !self.writable {
            return Ok(());
        }
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
        let transaction = self.conn.transaction()?;
        let rows = TABLES.iter().filter(|table| table.group != tables::Group::Variables);
        copy(&transaction, rows, "disk", "main")?;
        variables_to_memory(&transaction, "", defaults)?;
        transaction.commit()
    }

    /// Replaces a group's tables in memory by those on disk, and of variables those whose names begin with `prefix`. Memory stays
    /// as it was where `check` refuses what it finds in `main` then.
    pub fn disk_to_memory(
        &mut self,
        group: tables::Group,
        prefix: &str,
        defaults: &Variables,
        check: impl FnOnce(&Connection) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let path = self.file.path.clone();
        let transaction = self.conn.transaction().map_err(|error| file_error(&path, &error))?;
        let copied = match group {
            tables::Group::Variables => variables_to_memory(&transaction, prefix, defaults),
            group => copy(&transaction, tables::of(group), "disk", "main"),
        };
        copied.map_err(|error| file_error(&path, &error))?;
        check(&transaction)?;
        transaction.commit().map_err(|error| file_error(&path, &error))
    }

    /// Replaces a group's tables on disk by those in memory, all or nothing.
    pub fn memory_to_disk(&mut self, group: tables::Group) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        copy(&transaction, tables::of(group), "main", "disk")?;
        transaction.commit()?;
        self.empty_log();
        Ok(())
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
        file_error(&self.file.path, error)
    }

    /// Sets variables in memory, all or none.
    pub fn set_variables(&mut self, values: &[(&str, String)]) -> rusqlite::Result<()> {
        let transaction = self.conn.transaction()?;
        set_variables(&transaction, values)?;
        transaction.commit()
    }

    /// Runs a client's statement: within `limit`, and without what could reach other files or change the schema.
    pub fn client_statement(
        &self,
        client: &Client,
        sql: &str,
        limit: Duration,
        may_change: bool,
    ) -> Result<Answer, SqlError> {
        let running = self.current.begin(client, limit);
        if !may_change && self.conn.prepare(sql).is_ok_and(|statement| !statement.readonly()) {
            return Err(read_only_error());
        }
        Answer::collect(&self.conn, sql, room(&self.held), || running.check_disk(&self.file))
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
        let directory = path.parent().unwrap_or(Path::new("/"));
        probe(directory).map_err(|reason| StoreError(format!("{}: {reason}", directory.display())))?;
        let file = DiskFile::create(path.clone())?;
        let explained = |error: rusqlite::Error| explain(&path, &error);
        // What is no database of this program's and version's is refused while the one before is still open.
        self.look_at_file()?;
        self.conn.execute_batch("DETACH DATABASE disk").map_err(explained)?;
        let place = file_place(&path).map_err(explained)?;
        attach_disk(&self.conn, &place).map_err(explained)?;
        self.places.move_disk(place);
        self.file.become_other(&file);
        self.writable = true;
        self.make_ready(false)
    }

    /// A connection that has the file that is there now as `disk`, which only reads. An error where the file is no database of this
    /// program's and version's.
    fn look_at_file(&self) -> Result<Connection, StoreError> {
        let path = &self.file.path;
        let explained = |error: rusqlite::Error| explain(path, &error);
        // The write-ahead log goes by the path: emptied into the old file, it is none of the new one.
        if self.writable {
            self.conn.query_row(EMPTY_LOG, [], |_| Ok(())).map_err(explained)?;
        }
        let scratch = Connection::open_in_memory().map_err(explained)?;
        // What the log still holds belongs to the file in use, and to no other.
        let how = if self.file.check().is_ok() { "" } else { "&immutable=1" };
        let place = file_place(path).map_err(explained)? + "&mode=ro" + how;
        attach(&scratch, &place, "disk").map_err(explained)?;
        check(&scratch, path)?;
        upgrade::check(&scratch, path)?;
        Ok(scratch)
    }

    /// What a start would find in memory: the rows of the file that is there now, as `main`. `None` where there is no file, or an
    /// empty one.
    pub fn rehearse(&self) -> Result<Option<Connection>, StoreError> {
        let path = &self.file.path;
        if is_empty(path) {
            return Ok(None);
        }
        let scratch = self.look_at_file()?;
        for table in TABLES {
            scratch.execute_batch(table.ddl).map_err(|error| explain(path, &error))?;
            upgrade::copy(&scratch, table).map_err(|error| explain(path, &error))?;
        }
        Ok(Some(scratch))
    }
}

fn file_error(path: &Path, error: &rusqlite::Error) -> SqlError {
    match cause(error) {
        Some((what, remedy)) => error::failed(format!(
            "{}: {what}; nothing was saved or loaded: {remedy} and try again",
            path.display()
        )),
        None => error::from_sqlite(error),
    }
}

/// Replaces tables in one schema by those in another.
fn copy(
    conn: &Connection,
    tables: impl Iterator<Item = &'static TableDef>,
    from: &str,
    to: &str,
) -> rusqlite::Result<()> {
    for table in tables {
        let name = table.name;
        conn.execute(&format!("DELETE FROM {to}.{name}"), [])?;
        conn.execute(&format!("INSERT INTO {to}.{name} SELECT * FROM {from}.{name}"), [])?;
    }
    Ok(())
}

/// Sets the variables in memory whose names begin with `prefix` to what disk holds, and to `defaults` where it holds nothing.
fn variables_to_memory(conn: &Connection, prefix: &str, defaults: &Variables) -> rusqlite::Result<()> {
    let pattern = format!("{prefix}%");
    conn.execute("DELETE FROM main.global_variables WHERE variable_name LIKE ?1", [&pattern])?;
    conn.execute(
        "INSERT INTO main.global_variables SELECT * FROM disk.global_variables WHERE variable_name LIKE ?1",
        [&pattern],
    )?;
    add_defaults(conn, prefix, defaults)
}

/// Adds the variables that memory lacks, of those whose names begin with `prefix`.
fn add_defaults(conn: &Connection, prefix: &str, defaults: &Variables) -> rusqlite::Result<()> {
    for var in VARIABLES.iter().filter(|var| var.name.starts_with(prefix)) {
        let conflict = if var.is_read_only() { "REPLACE" } else { "IGNORE" };
        conn.execute(
            &format!("INSERT OR {conflict} INTO main.global_variables VALUES (?1, ?2)"),
            params![var.name, var.show(defaults)],
        )?;
    }
    Ok(())
}

/// Sets variables in `main`.
pub(crate) fn set_variables(conn: &Connection, values: &[(&str, String)]) -> rusqlite::Result<()> {
    let mut statement = conn.prepare("INSERT OR REPLACE INTO main.global_variables VALUES (?1, ?2)")?;
    values.iter().try_for_each(|(name, value)| statement.execute(params![name, value]).map(drop))
}

/// Memory left for a result while clients read others that take `held` bytes.
pub(crate) fn room(held: &AtomicUsize) -> usize {
    RESULT_LIMIT.saturating_sub(held.load(Ordering::Relaxed)).max(SMALL_RESULT)
}
