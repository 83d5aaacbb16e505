//! How a simulated backend treats application traffic: the table, and what a session makes of its backend's row.
//!
//! A backend with a row also has data of its own (see `own_data`).

use super::Endpoint;
use super::snapshot::{Snapshot, host_and_port};
use rusqlite::Connection;
use std::collections::HashMap;
use std::time::Duration;

/// The table. It begins empty with every start, and so do the backends' data.
pub(super) const TABLE: &str = "DROP TABLE IF EXISTS RDS_BGD_BACKEND;
CREATE TABLE RDS_BGD_BACKEND (
    backend_ip TEXT NOT NULL,
    backend_port INTEGER NOT NULL,
    mode TEXT NOT NULL DEFAULT 'serve' CHECK (mode IN ('serve','read_only','refuse','stall')),
    latency_ms INTEGER NOT NULL DEFAULT 0 CHECK (latency_ms BETWEEN 0 AND 60000),
    close_after INTEGER NOT NULL DEFAULT 0 CHECK (close_after BETWEEN 0 AND 4294967295),
    PRIMARY KEY (backend_ip, backend_port)
);";

/// What a backend does with connections and statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Answers.
    Serve,
    /// Answers what only reads; error 1290 for the rest.
    ReadOnly,
    /// Closes connections before the greeting, and open ones at their next statement.
    Refuse,
    /// Accepts connections and statements, and answers neither.
    Stall,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behaviour {
    /// What it does.
    pub mode: Mode,
    /// How long it takes over each statement of a client.
    pub latency: Duration,
    /// After how many statements it closes a connection; 0 for never.
    pub close_after: u32,
}

/// The committed rows of the table.
pub(super) struct Behaviours(Snapshot<HashMap<Endpoint, Behaviour>>);

impl Default for Behaviours {
    fn default() -> Self {
        Self(Snapshot::new(HashMap::new()))
    }
}

impl Behaviours {
    /// The row of a backend.
    pub(super) fn get(&self, endpoint: &Endpoint) -> Option<Behaviour> {
        self.0.look(|rows| rows.get(endpoint).copied())
    }

    /// Reads the table anew, after a commit; the backends that had a row and have none any more.
    pub(super) fn refresh(&self, connection: &Connection) -> rusqlite::Result<Vec<Endpoint>> {
        let Some(mut before) = self.0.refresh(|| read(connection))? else { return Ok(Vec::new()) };
        self.0.look(|now| before.retain(|endpoint, _| !now.contains_key(endpoint)));
        Ok(before.into_keys().collect())
    }
}

fn read(connection: &Connection) -> rusqlite::Result<HashMap<Endpoint, Behaviour>> {
    let mut statement = connection.prepare(
        "SELECT backend_ip, backend_port, mode, CAST(latency_ms AS INTEGER), CAST(close_after AS INTEGER)
        FROM RDS_BGD_BACKEND",
    )?;
    let rows = statement.query_map([], |row| {
        let Some((ip, port)) = host_and_port(row) else { return Ok(None) };
        let mode = match row.get::<_, String>(2)?.as_str() {
            "read_only" => Mode::ReadOnly,
            "refuse" => Mode::Refuse,
            "stall" => Mode::Stall,
            // The table's constraint allows no other.
            _ => Mode::Serve,
        };
        let latency = Duration::from_millis(row.get::<_, u32>(3)?.into());
        let behaviour = Behaviour { mode, latency, close_after: row.get(4)? };
        Ok(Some((Endpoint { ip, port }, behaviour)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(ip: &str) -> Endpoint {
        Endpoint { ip: ip.into(), port: 3306 }
    }

    #[test]
    fn rows_are_typed_and_those_that_vanish_are_told() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        let behaviours = Behaviours::default();
        let insert =
            "INSERT INTO RDS_BGD_BACKEND VALUES ('a', 3306, 'stall', 20, 3), ('b', 99999, 'refuse', 0, 0),
            (x'ff', 3306, 'refuse', 0, 0), ('b', 'x', 'refuse', 0, 0), (CAST(x'ff' AS TEXT), 3306, 'refuse', 0, 0);
            INSERT INTO RDS_BGD_BACKEND (backend_ip, backend_port) VALUES ('c', 3306)";
        connection.execute_batch(insert).unwrap();
        assert_eq!(behaviours.refresh(&connection), Ok(vec![]));
        let latency = Duration::from_millis(20);
        assert_eq!(
            behaviours.get(&endpoint("a")),
            Some(Behaviour { mode: Mode::Stall, latency, close_after: 3 })
        );
        let plain = Behaviour { mode: Mode::Serve, latency: Duration::ZERO, close_after: 0 };
        assert_eq!(behaviours.get(&endpoint("c")), Some(plain));
        assert_eq!(behaviours.get(&endpoint("b")), None);
        connection.execute_batch("DELETE FROM RDS_BGD_BACKEND WHERE backend_ip = 'a'").unwrap();
        assert_eq!(behaviours.refresh(&connection), Ok(vec![endpoint("a")]));
        assert_eq!((behaviours.get(&endpoint("a")), behaviours.get(&endpoint("c"))), (None, Some(plain)));
    }

    #[test]
    fn the_table_takes_no_nonsense_and_begins_empty() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        for values in [
            "'a', 1, 'sleep', 0, 0",
            "'a', 1, 'serve', -1, 0",
            "'a', 1, 'serve', 'x', 0",
            "'a', 1, 'serve', 0, -1",
        ] {
            let insert = format!("INSERT INTO RDS_BGD_BACKEND VALUES ({values})");
            assert!(connection.execute_batch(&insert).is_err(), "{values}");
        }
        connection.execute_batch("INSERT INTO RDS_BGD_BACKEND VALUES ('a', 1, 'serve', 0, 0)").unwrap();
        connection.execute_batch(TABLE).unwrap();
        assert_eq!(connection.query_row("SELECT count(*) FROM RDS_BGD_BACKEND", [], |row| row.get(0)), Ok(0));
    }
}
