//! Tables of `stats_history` that keep rows as a table of the schema `stats` showed them, each with the time when it did.

use super::{DAY, History};
use crate::Value;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};

/// Bytes that a table may have, about, when rows come: those that came first go first.
const MOST: i64 = 32 << 20;

/// Such a table. Its first column is the time in seconds since 1970.
#[derive(Debug)]
pub struct RecordTable {
    pub(super) name: &'static str,
    pub(super) ddl: &'static str,
    time: &'static str,
    /// How long rows are kept, in seconds.
    kept: i64,
    /// What a row takes, in bytes (SQL).
    size: &'static str,
}

/// stats_mysql_connection_pool at times.
pub static CONNECTION_POOL: RecordTable = RecordTable {
    name: "history_stats_mysql_connection_pool",
    time: "timestamp",
    kept: 2 * DAY,
    size: "LENGTH(srv_host) + 120",
    ddl: "CREATE TABLE history_stats_mysql_connection_pool (
    timestamp INT NOT NULL,
    hostgroup INT NOT NULL,
    srv_host VARCHAR NOT NULL,
    srv_port INT NOT NULL,
    status VARCHAR,
    ConnUsed INT,
    ConnFree INT,
    ConnOK INT,
    ConnERR INT,
    MaxConnUsed INT,
    Queries INT,
    Queries_GTID_sync INT,
    Bytes_data_sent INT,
    Bytes_data_recv INT,
    Latency_us INT,
    PRIMARY KEY (timestamp, hostgroup, srv_host, srv_port)
)",
};

/// stats_mysql_query_digest, as it was saved and cleared.
pub static QUERY_DIGEST: RecordTable = RecordTable {
    name: "history_mysql_query_digest",
    time: "dump_time",
    kept: 365 * DAY,
    size: "LENGTH(digest_text) + 200",
    ddl: "CREATE TABLE history_mysql_query_digest (
    dump_time INT NOT NULL,
    hostgroup INT NOT NULL,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    client_address VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    digest_text VARCHAR NOT NULL,
    count_star INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    sum_time INTEGER NOT NULL,
    min_time INTEGER NOT NULL,
    max_time INTEGER NOT NULL,
    sum_rows_affected INTEGER NOT NULL,
    sum_rows_sent INTEGER NOT NULL
)",
};

pub(super) static RECORDS: [&RecordTable; 2] = [&CONNECTION_POOL, &QUERY_DIGEST];

impl History {
    /// Keeps rows as they are at a time, all or none. Returns how many.
    pub fn record(&self, table: &RecordTable, time: i64, rows: Vec<Vec<Value>>) -> Result<u64, String> {
        self.file.in_place()?;
        let mut conn = self.conn.lock();
        let work = || {
            let transaction = conn.transaction()?;
            table.make_room(&transaction, MOST)?;
            let count = rows.len() as u64;
            for row in rows {
                let places = ", ?".repeat(row.len());
                let sql = format!("INSERT OR REPLACE INTO {} VALUES (?{places})", table.name);
                let cells = std::iter::once(Cell::Integer(time)).chain(row.into_iter().map(Cell::from));
                transaction.prepare_cached(&sql)?.execute(params_from_iter(cells))?;
            }
            transaction.commit().map(|()| count)
        };
        work().map_err(|error: rusqlite::Error| error.to_string())
    }
}

impl RecordTable {
    /// Forgets what is too old at `now`.
    pub(super) fn forget(&self, conn: &Connection, now: i64) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM {} WHERE {} < ?1", self.name, self.time);
        conn.execute(&sql, [now - self.kept]).map(drop)
    }
    /// Forgets the times whose rows are beyond `most` bytes, counted from the last. Returns how many rows.
    fn make_room(&self, conn: &Connection, most: i64) -> rusqlite::Result<usize> {
        let Self { name, time, size, .. } = self;
        let sql = format!(
            "DELETE FROM {name} WHERE {time} <= (SELECT MAX({time}) FROM (
                 SELECT {time}, SUM(SUM({size})) OVER (ORDER BY {time} DESC) AS sum FROM {name} GROUP BY {time}
             ) WHERE sum > ?1)"
        );
        conn.execute(&sql, [most])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn shown(history: &Arc<History>, table: &RecordTable) -> Vec<Vec<Value>> {
        let tables = history.tables();
        (tables.iter().find(|live| live.name == table.name).unwrap().rows)()
    }

    fn digest() -> Vec<Value> {
        let text = |text: &str| Value::Text(text.to_owned());
        let mut row = vec![Value::Int(1)];
        row.extend(["shop", "app", "", "0xAB", "SELECT ?"].map(text));
        row.extend((0..8).map(Value::Int));
        row
    }

    #[test]
    fn rows_are_kept_with_their_time_and_forgotten_with_age() {
        let dir = tempfile::tempdir().unwrap();
        let history = Arc::new(History::open(dir.path()).unwrap());
        assert_eq!(history.record(&QUERY_DIGEST, 1_000, vec![digest()]), Ok(1));
        assert_eq!(history.record(&QUERY_DIGEST, 1_000 + DAY, vec![digest()]), Ok(1));
        let expected = [vec![Value::Int(1_000)], digest()].concat();
        assert_eq!(shown(&history, &QUERY_DIGEST)[0], expected);
        let mut server = vec![Value::Int(0), Value::Text("db".into()), Value::Int(3306)];
        server.push(Value::Text("ONLINE".into()));
        server.extend((0..10).map(Value::Int));
        assert_eq!(history.record(&CONNECTION_POOL, 1_000, vec![server.clone()]), Ok(1));
        assert_eq!(shown(&history, &CONNECTION_POOL), [[vec![Value::Int(1_000)], server].concat()]);
        history.roll_up(1_001 + 2 * DAY).unwrap();
        assert_eq!((shown(&history, &CONNECTION_POOL).len(), shown(&history, &QUERY_DIGEST).len()), (0, 2));
        history.roll_up(1_001 + 365 * DAY).unwrap();
        assert_eq!(shown(&history, &QUERY_DIGEST).len(), 1);
    }

    #[test]
    fn a_row_that_does_not_fit_keeps_all_of_them_out() {
        let dir = tempfile::tempdir().unwrap();
        let history = Arc::new(History::open(dir.path()).unwrap());
        let mut broken = digest();
        broken[5] = Value::Null;
        history.record(&QUERY_DIGEST, 1, vec![digest(), broken]).unwrap_err();
        assert!(shown(&history, &QUERY_DIGEST).is_empty());
    }

    #[test]
    fn what_came_first_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let history = Arc::new(History::open(dir.path()).unwrap());
        for time in 1..=4 {
            history.record(&QUERY_DIGEST, time, vec![digest(), digest()]).unwrap();
        }
        // Of four times 2 * 208 bytes two and a half fit.
        assert_eq!(QUERY_DIGEST.make_room(&history.conn.lock(), 1_040), Ok(4));
        let times: Vec<_> = shown(&history, &QUERY_DIGEST).iter().map(|row| row[0].clone()).collect();
        assert_eq!(times, [3, 3, 4, 4].map(Value::Int));
        assert_eq!(QUERY_DIGEST.make_room(&history.conn.lock(), 1_040), Ok(0));
        assert_eq!(CONNECTION_POOL.make_room(&history.conn.lock(), 0), Ok(0), "none are there");
    }
}
