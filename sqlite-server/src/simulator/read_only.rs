//! Simulated read_only values: the table, and the copy of it that checks are answered from.

use super::snapshot::{Snapshot, host_and_port as key};
use crate::text;
use rusqlite::Connection;
use std::collections::HashMap;
use std::convert::Infallible;

/// The table's name.
pub(super) const NAME: &str = "READONLY_STATUS";

/// The table: hostname as configured in mysql_servers, not an address.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS READONLY_STATUS (
    hostname TEXT NOT NULL,
    port INTEGER NOT NULL,
    read_only INTEGER NOT NULL CHECK (read_only IN (0,1)),
    PRIMARY KEY (hostname, port)
);";

const CHECK: [&str; 3] = ["SELECT", "@@global.read_only", "read_only"];

/// What follows a read_only check, if the statement is one.
pub(super) fn suffix(sql: &str) -> Option<&str> {
    let mut words = text::words(sql);
    CHECK.iter().all(|expected| words.next().is_some_and(|word| word.eq_ignore_ascii_case(expected))).then(
        || {
            let suffix = words.next().unwrap_or_default();
            if words.next().is_some() { "" } else { suffix }
        },
    )
}

/// Reads `hostname:port`.
pub(super) fn host_and_port(suffix: &str) -> Option<(String, u16)> {
    let (host, port) = suffix.rsplit_once(':')?;
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

type Values = HashMap<(String, u16), bool>;

/// The committed rows of the table, or why it cannot be read.
pub(super) struct ReadOnly(Snapshot<Result<Values, String>>);

impl Default for ReadOnly {
    fn default() -> Self {
        Self(Snapshot::new(Ok(Values::new())))
    }
}

impl ReadOnly {
    /// The value of a host (letter case of the name aside); read-only where none is stored, the safe default. `Err` says why the
    /// table could not be read when it was written last.
    pub(super) fn get(&self, hostname: &str, port: u16) -> Result<bool, String> {
        self.0.look(|values| {
            let values = values.as_ref().map_err(Clone::clone)?;
            Ok(values.get(&(hostname.to_ascii_lowercase(), port)).copied().unwrap_or(true))
        })
    }

    /// Reads the table anew, after a commit.
    pub(super) fn refresh(&self, connection: &Connection) {
        let Ok(_) = self.0.refresh(|| {
            Ok::<_, Infallible>(read(connection).map_err(|error| {
                log::error!("simulator: cannot read {NAME}: {error}");
                format!("cannot read {NAME}: {error}")
            }))
        });
    }
}

fn read(connection: &Connection) -> rusqlite::Result<Values> {
    let mut statement = connection.prepare("SELECT hostname, port, read_only FROM READONLY_STATUS")?;
    let rows = statement.query_map([], |row| {
        let Some((hostname, port)) = key(row) else { return Ok(None) };
        Ok(Some(((hostname.to_ascii_lowercase(), port), row.get(2)?)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database with the table, and the values read from it.
    fn fixture() -> (Connection, ReadOnly) {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        let read_only = ReadOnly::default();
        read_only.refresh(&connection);
        (connection, read_only)
    }

    #[test]
    fn missing_hosts_are_read_only_and_stored_ones_as_stored() {
        let (connection, read_only) = fixture();
        assert_eq!(read_only.get("db-1", 3306), Ok(true));
        connection.execute_batch("INSERT INTO READONLY_STATUS VALUES ('DB-1', 3306, 0)").unwrap();
        read_only.refresh(&connection);
        assert_eq!(read_only.get("db-1", 3306), Ok(false));
        assert_eq!(read_only.get("db-1", 3307), Ok(true));
        connection.execute_batch("DELETE FROM READONLY_STATUS").unwrap();
        read_only.refresh(&connection);
        assert_eq!(read_only.get("db-1", 3306), Ok(true));
    }

    #[test]
    fn rows_that_no_check_can_ask_for_do_no_harm() {
        let (connection, read_only) = fixture();
        connection
            .execute_batch(
                "INSERT INTO READONLY_STATUS VALUES
                 ('db-1', 3306, 0), ('db-1', 99999, 0), ('db-1', 'x', 0), ('db-1', 1.5, 0), (x'ff', 3306, 0),
                 (CAST(x'ff' AS TEXT), 3306, 0), ('db-1', -1, 0)",
            )
            .unwrap();
        read_only.refresh(&connection);
        assert_eq!(read_only.get("db-1", 3306), Ok(false));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_no_value() {
        let (connection, read_only) = fixture();
        connection.execute_batch("DROP TABLE READONLY_STATUS").unwrap();
        read_only.refresh(&connection);
        let error = read_only.get("db-1", 3306).unwrap_err();
        assert!(error.contains("READONLY_STATUS"), "{error}");
        connection.execute_batch(TABLE).unwrap();
        read_only.refresh(&connection);
        assert_eq!(read_only.get("db-1", 3306), Ok(true));
    }
}
