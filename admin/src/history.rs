//! How figures were over time: a database of its own beside the configuration, shown in the schema `stats_history`.
//!
//! A table of samples holds those of the last days. From these come one row for each hour, and from those one for each day: the average of
//! what goes up and down, the last of what only grows.

mod records;

use crate::store::DiskFile;
use crate::{LiveTable, Schema, StoreError, Value};
use parking_lot::Mutex;
use records::RECORDS;
pub use records::{CONNECTION_POOL, QUERY_DIGEST, RecordTable};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The database's file name in the data directory.
const DATABASE: &str = "pointsman_stats.db";
/// Pages of 4 KiB that the file may grow to.
const PAGES: u32 = 32_768;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// How long samples and their sums are kept, in seconds.
const KEPT: [i64; 3] = [2 * DAY, 365 * DAY, 3_650 * DAY];

/// What becomes of a column's values when they are rolled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Goes up and down.
    Level,
    /// Only grows while the daemon runs.
    Total,
}
use Kind::{Level, Total};

/// A table of samples, with its sums by hour and by day.
#[derive(Debug)]
pub struct HistoryTable {
    names: [&'static str; 3],
    ddl: [&'static str; 3],
    columns: &'static [(&'static str, Kind)],
}

macro_rules! history_table {
    ($name:literal, $(($column:literal, $kind:ident)),+) => {
        HistoryTable {
            names: [$name, concat!($name, "_hour"), concat!($name, "_day")],
            ddl: [
                concat!("CREATE TABLE ", $name, " (\n    timestamp INT NOT NULL", $(",\n    ", $column, " INT",)+ ",\n    PRIMARY KEY (timestamp)\n)"),
                concat!("CREATE TABLE ", $name, "_hour (\n    timestamp INT NOT NULL", $(",\n    ", $column, " INT",)+ ",\n    PRIMARY KEY (timestamp)\n)"),
                concat!("CREATE TABLE ", $name, "_day (\n    timestamp INT NOT NULL", $(",\n    ", $column, " INT",)+ ",\n    PRIMARY KEY (timestamp)\n)"),
            ],
            columns: &[$(($column, $kind)),+],
        }
    };
}

/// Clients, servers and statements.
pub static MYSQL_CONNECTIONS: HistoryTable = history_table!(
    "mysql_connections",
    ("Client_Connections_aborted", Total),
    ("Client_Connections_connected", Level),
    ("Client_Connections_created", Total),
    ("Server_Connections_aborted", Total),
    ("Server_Connections_connected", Level),
    ("Server_Connections_created", Total),
    ("ConnPool_get_conn_failure", Total),
    ("ConnPool_get_conn_immediate", Total),
    ("ConnPool_get_conn_success", Total),
    ("Questions", Total),
    ("Slow_queries", Total),
    ("GTID_consistent_queries", Total)
);

/// What pools gave out and took back.
pub static MYHGM_CONNECTIONS: HistoryTable = history_table!(
    "myhgm_connections",
    ("MyHGM_myconnpoll_destroy", Total),
    ("MyHGM_myconnpoll_get", Total),
    ("MyHGM_myconnpoll_get_ok", Total),
    ("MyHGM_myconnpoll_push", Total),
    ("MyHGM_myconnpoll_reset", Total)
);

/// Time of the processor that the process took.
pub static SYSTEM_CPU: HistoryTable =
    history_table!("system_cpu", ("tms_utime", Total), ("tms_stime", Total));

/// Memory that the process has.
pub static SYSTEM_MEMORY: HistoryTable = history_table!(
    "system_memory",
    ("allocated", Level),
    ("resident", Level),
    ("active", Level),
    ("mapped", Level),
    ("metadata", Level),
    ("retained", Level)
);

static TABLES: [&HistoryTable; 4] = [&MYSQL_CONNECTIONS, &MYHGM_CONNECTIONS, &SYSTEM_CPU, &SYSTEM_MEMORY];

/// The database. Its own connection: nobody who works on the configuration waits for it.
pub struct History {
    conn: Mutex<Connection>,
    file: DiskFile,
}

impl History {
    /// Opens it in the data directory, and makes what is missing.
    pub fn open(datadir: &Path) -> Result<Self, StoreError> {
        let path = datadir.join(DATABASE);
        let explain = |error: rusqlite::Error| {
            let path = path.display();
            StoreError(format!(
                "{path}: {error}; there is no stats_history until it can be opened or is moved away"
            ))
        };
        // Statements of clients are in it. Where this fails, opening it tells why.
        let _ = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
        let conn = Connection::open(&path).map_err(explain)?;
        conn.busy_timeout(Duration::from_secs(1)).map_err(explain)?;
        conn.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA max_page_count = {PAGES};"
        ))
        .map_err(explain)?;
        let records = RECORDS.iter().map(|table| table.ddl);
        for ddl in TABLES.iter().flat_map(|table| table.ddl).chain(records) {
            let create = ddl.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
            conn.execute_batch(&create).map_err(explain)?;
        }
        Ok(Self { conn: Mutex::new(conn), file: DiskFile::find(path) })
    }
    /// Adds what `value` says of each column at a time, in seconds since 1970.
    pub fn add(
        &self,
        table: &HistoryTable,
        timestamp: i64,
        value: impl Fn(&str) -> Option<i64>,
    ) -> Result<(), String> {
        self.file.in_place()?;
        let places = ", ?".repeat(table.columns.len());
        let sql = format!("INSERT OR REPLACE INTO {} VALUES (?{places})", table.names[0]);
        let values = table.columns.iter().map(|(name, _)| value(name));
        let row = std::iter::once(Some(timestamp)).chain(values);
        let conn = self.conn.lock();
        let mut insert = conn.prepare_cached(&sql).map_err(|error| error.to_string())?;
        insert.execute(params_from_iter(row)).map(drop).map_err(|error| error.to_string())
    }
    /// Makes the rows of the hours and days that are over at `now`, and forgets what is too old.
    pub fn roll_up(&self, now: i64) -> Result<(), String> {
        let mut conn = self.conn.lock();
        let mut work = || {
            let transaction = conn.transaction()?;
            for table in TABLES {
                let [samples, hours, days] = table.names;
                for (from, to, length) in [(samples, hours, HOUR), (hours, days, DAY)] {
                    transaction.execute(&table.roll_up(from, to, length), [now])?;
                }
                for (name, kept) in table.names.iter().zip(KEPT) {
                    transaction.execute(&format!("DELETE FROM {name} WHERE timestamp < ?1"), [now - kept])?;
                }
            }
            RECORDS.iter().try_for_each(|table| table.forget(&transaction, now))?;
            transaction.commit()
        };
        work().map_err(|error: rusqlite::Error| error.to_string())
    }
    /// The tables of the schema `stats_history`.
    pub fn tables(self: &Arc<Self>) -> Vec<LiveTable> {
        let records = RECORDS.iter().map(|table| (table.name, table.ddl));
        let all = TABLES.iter().flat_map(|table| table.names.into_iter().zip(table.ddl)).chain(records);
        let live = |(name, ddl)| {
            let history = Arc::clone(self);
            LiveTable { name, schema: Schema::History, ddl, rows: Arc::new(move || history.rows(name)) }
        };
        all.map(live).collect()
    }
    fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        let read = || {
            let conn = self.conn.lock();
            let mut select = conn.prepare(&format!("SELECT * FROM {table} ORDER BY 1"))?;
            let count = select.column_count();
            let cell = |cell| match cell {
                Cell::Integer(value) => Value::Int(value),
                Cell::Text(value) => Value::Text(value),
                _ => Value::Null,
            };
            let row = |row: &rusqlite::Row<'_>| (0..count).map(|at| row.get(at).map(cell)).collect();
            select.query_map([], row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().unwrap_or_else(|error| {
            log::warn!("{DATABASE}: {error}; {table} is shown as empty");
            Vec::new()
        })
    }
}

impl HistoryTable {
    /// Sums up what `to` does not have yet and what is over at ?1.
    fn roll_up(&self, from: &str, to: &str, length: i64) -> String {
        let column = |(name, kind): &(&str, Kind)| match kind {
            Level => format!(", CAST(ROUND(AVG({name})) AS INT)"),
            Total => format!(", MAX({name})"),
        };
        let columns: String = self.columns.iter().map(column).collect();
        format!(
            "INSERT OR REPLACE INTO {to} SELECT timestamp / {length} * {length} AS start{columns} FROM {from} \
             WHERE timestamp >= (SELECT COALESCE(MAX(timestamp) + {length}, 0) FROM {to}) \
             AND timestamp < ?1 / {length} * {length} GROUP BY start"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midnight of some day.
    const START: i64 = 20_000 * DAY;

    fn shown(history: &Arc<History>, name: &str) -> Vec<Vec<Value>> {
        let tables = history.tables();
        (tables.iter().find(|table| table.name == name).unwrap().rows)()
    }

    fn ints(row: &[Value]) -> Vec<i64> {
        row.iter().map(|value| if let Value::Int(number) = value { *number } else { -1 }).collect()
    }

    #[test]
    fn samples_become_hours_and_days_and_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let history = Arc::new(History::open(dir.path()).unwrap());
        for minute in 0..=DAY / 60 {
            let value = |name: &str| match name {
                "resident" => Some(100 + minute % 2),
                "mapped" => Some(7),
                _ => None,
            };
            history.add(&SYSTEM_MEMORY, START + minute * 60, value).unwrap();
            history.add(&SYSTEM_CPU, START + minute * 60, |_| Some(minute)).unwrap();
        }
        // The last hour is not over, as the next day has just begun.
        for _ in 0..2 {
            history.roll_up(START + DAY + 59).unwrap();
        }
        assert_eq!(shown(&history, "system_cpu").len(), 1_441);
        let hours = shown(&history, "system_cpu_hour");
        assert_eq!((hours.len(), ints(&hours[1])), (24, vec![START + HOUR, 119, 119]));
        let days = shown(&history, "system_memory_day");
        assert_eq!(days.len(), 1);
        assert_eq!(ints(&days[0]), [START, -1, 101, -1, 7, -1, -1]);
        history.roll_up(START + 3 * DAY + 61).unwrap();
        assert_eq!(shown(&history, "system_cpu").len(), 0);
        assert_eq!(shown(&history, "system_cpu_hour").len(), 25, "the hour that was begun is over, too");
        history.roll_up(START + 400 * DAY).unwrap();
        assert_eq!(
            (shown(&history, "system_cpu_hour").len(), shown(&history, "system_cpu_day").len()),
            (0, 2)
        );
        // It is all there again after a restart.
        drop(history);
        let history = Arc::new(History::open(dir.path()).unwrap());
        assert_eq!(shown(&history, "system_cpu_day").len(), 2);
    }

    #[test]
    fn nobody_else_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DATABASE);
        let history = History::open(dir.path()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let beside = dir.path().join(format!("{DATABASE}-wal"));
        assert_eq!((mode(&path), mode(&beside)), (0o600, 0o600));
        drop(history);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _history = History::open(dir.path()).unwrap();
        assert_eq!((mode(&path), mode(&beside)), (0o600, 0o600), "made by an earlier version");
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(DATABASE), "no database at all. ".repeat(300)).unwrap();
        let error = History::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains(DATABASE), "{error}");
    }
}
