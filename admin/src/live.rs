//! Virtual tables over live state: each scan begins with a snapshot of the rows, so that a slow reader holds nobody up.
//!
//! The only unsafe code of the crate: SQLite wants the structs below to begin with its own.
#![allow(unsafe_code)]

use crate::{LiveTable, Schema, Value};
use parking_lot::RwLock;
use rusqlite::types::Null;
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexInfo, Module, VTab, VTabConnection, VTabCursor, VTabKind,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

const MODULE_NAME: &CStr = c"live";

/// The live tables of one store, by name.
#[derive(Clone, Default)]
pub(crate) struct Registered(Arc<RwLock<HashMap<&'static str, LiveTable>>>);

/// The same, without keeping it.
pub(crate) struct WeakRegistered(Weak<RwLock<HashMap<&'static str, LiveTable>>>);

impl WeakRegistered {
    pub(crate) fn upgrade(&self) -> Option<Registered> {
        self.0.upgrade().map(Registered)
    }
}

impl Registered {
    pub(crate) fn downgrade(&self) -> WeakRegistered {
        WeakRegistered(Arc::downgrade(&self.0))
    }

    /// Schema, name and CREATE TABLE text of each table.
    pub(crate) fn tables(&self) -> Vec<(Schema, &'static str, &'static str)> {
        self.0.read().values().map(|table| (table.schema, table.name, table.ddl)).collect()
    }

    /// The table of that name, in any case.
    pub(crate) fn find(&self, name: &str) -> Option<LiveTable> {
        self.0.read().values().find(|table| table.name.eq_ignore_ascii_case(name)).cloned()
    }

    /// Makes the module known to a connection. Once for each connection.
    pub(crate) fn install(&self, conn: &Connection) -> Result<()> {
        const MODULE: &Module<'static, Table> = &Module::read_only_module();
        conn.create_module(MODULE_NAME, MODULE, Some(self.clone()))
    }

    /// Adds a table and makes it visible in its schema.
    pub(crate) fn add(&self, conn: &Connection, table: LiveTable) -> Result<()> {
        let (name, schema) = (table.name, table.schema);
        if self.0.read().contains_key(name) {
            return Err(Error::ModuleError(format!("live table {name} exists already")));
        }
        self.0.write().insert(name, table);
        let created =
            conn.execute_batch(&format!("CREATE VIRTUAL TABLE {}.{name} USING live", schema.name()));
        if created.is_err() {
            self.0.write().remove(name);
        }
        created
    }

    fn get(&self, name: &[u8]) -> Option<LiveTable> {
        std::str::from_utf8(name).ok().and_then(|name| self.0.read().get(name).cloned())
    }
}

impl Schema {
    /// The schema's name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Stats => "stats",
            Self::Monitor => "monitor",
            Self::History => "stats_history",
            Self::Information => "information_schema",
        }
    }
}

/// Memory that SQLite has taken in the whole process, in bytes.
pub(crate) fn sqlite_memory() -> u64 {
    // SAFETY: it takes nothing, and may be called by any thread at any time.
    u64::try_from(unsafe { rusqlite::ffi::sqlite3_memory_used() }).unwrap_or(0)
}

/// What SQLite is told of a table: names and types alone, because keys and CHECKs of a virtual table would only mislead its planner.
fn declaration(table: &LiveTable) -> Result<CString> {
    let scratch = Connection::open_in_memory()?;
    scratch.execute_batch(table.ddl)?;
    let mut statement = scratch.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
    let columns = statement.query_map([table.name], |row| {
        Ok(format!("\"{}\" {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let columns = columns.collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        return Err(Error::ModuleError(format!("the DDL of {} makes another table", table.name)));
    }
    CString::new(format!("CREATE TABLE x({})", columns.join(", "))).map_err(Error::NulError)
}

#[repr(C)]
struct Table {
    // SQLite's part must come first.
    base: sqlite3_vtab,
    live: LiveTable,
}

// SAFETY: `Table` is repr(C) and begins with `sqlite3_vtab`.
unsafe impl<'vtab> VTab<'vtab> for Table {
    type Aux = Registered;
    type Cursor = Cursor<'vtab>;

    fn connect(
        _db: &mut VTabConnection,
        aux: Option<&Registered>,
        _module: &[u8],
        _database: &[u8],
        table: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let live = aux.and_then(|registered| registered.get(table));
        let live = live.ok_or_else(|| Error::ModuleError("no such live table".into()))?;
        Ok((declaration(&live)?.into(), Self { base: sqlite3_vtab::default(), live }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        // Every scan takes a snapshot: make many scans in a nested loop look as dear as they are.
        info.set_estimated_cost(10_000.);
        info.set_estimated_rows(1_000);
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Self::Cursor> {
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), live: &self.live, rows: Vec::new(), position: 0 })
    }
}

impl CreateVTab<'_> for Table {
    const KIND: VTabKind = VTabKind::Default;
}

#[repr(C)]
struct Cursor<'vtab> {
    // SQLite's part must come first.
    base: sqlite3_vtab_cursor,
    live: &'vtab LiveTable,
    rows: Vec<Vec<Value>>,
    position: usize,
}

// SAFETY: `Cursor` is repr(C) and begins with `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _index: c_int, _index_name: Option<&str>, _args: &Filters<'_>) -> Result<()> {
        // A panic must not unwind into SQLite's C frames, which would end the process.
        let rows = catch_unwind(AssertUnwindSafe(|| (self.live.rows)()));
        self.rows = rows.map_err(|_| Error::ModuleError(format!("collecting {} failed", self.live.name)))?;
        self.position = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.position += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.position >= self.rows.len()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let cell = usize::try_from(column).ok();
        let cell = cell.and_then(|column| self.rows.get(self.position)?.get(column));
        match cell {
            Some(Value::Int(value)) => context.set_result(*value),
            Some(Value::Real(value)) => context.set_result(*value),
            Some(Value::Text(value)) => context.set_result(value.as_str()),
            Some(Value::Null) | None => context.set_result(Null),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(i64::try_from(self.position).unwrap_or(i64::MAX))
    }
}
