//! Simulated read_only values: the table, and the copy of it that checks are answered from.

use crate::text;
use parking_lot::RwLock;
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Whether a statement may have changed the table.
pub(crate) fn concerns(sql: &str) -> bool {
    sql.as_bytes().windows(NAME.len()).any(|part| part.eq_ignore_ascii_case(NAME.as_bytes()))
}

/// The committed rows of the table, so that a check takes no lock of the database.
#[derive(Default)]
pub(super) struct ReadOnly {
    tickets: AtomicU64,
    cached: RwLock<Cached>,
}

#[derive(Default)]
struct Cached {
    ticket: u64,
    values: HashMap<(String, u16), bool>,
}

impl ReadOnly {
    /// The value of a host (letter case of the name aside); read-only where none is stored, the safe default.
    pub(super) fn get(&self, hostname: &str, port: u16) -> bool {
        self.cached.read().values.get(&(hostname.to_ascii_lowercase(), port)).copied().unwrap_or(true)
    }

    /// Reads the table anew. Called after a commit, never inside a transaction.
    ///
    /// The ticket is drawn before the table is read. So the newest ticket has seen every commit whose own refresh is
    /// older, and a slower refresh with an older ticket is dropped.
    pub(super) fn refresh(&self, connection: &Connection) -> rusqlite::Result<()> {
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst) + 1;
        let mut statement = connection.prepare("SELECT hostname, port, read_only FROM READONLY_STATUS")?;
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })?;
        let mut values = HashMap::new();
        for row in rows {
            let (hostname, port, read_only) = row?;
            // A port outside the range belongs to no server, so nobody can ask for it.
            if let Ok(port) = u16::try_from(port) {
                values.insert((hostname.to_ascii_lowercase(), port), read_only);
            }
        }
        let mut cached = self.cached.write();
        if cached.ticket < ticket {
            *cached = Cached { ticket, values };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_hosts_are_read_only_and_stored_ones_as_stored() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        let read_only = ReadOnly::default();
        read_only.refresh(&connection).unwrap();
        assert!(read_only.get("db-1", 3306));
        connection
            .execute_batch("INSERT INTO READONLY_STATUS VALUES ('DB-1', 3306, 0), ('db-2', 99999, 0)")
            .unwrap();
        read_only.refresh(&connection).unwrap();
        assert!(!read_only.get("db-1", 3306));
        assert!(read_only.get("db-1", 3307));
        connection.execute_batch("DELETE FROM READONLY_STATUS").unwrap();
        read_only.refresh(&connection).unwrap();
        assert!(read_only.get("db-1", 3306));
    }

    #[test]
    fn statements_on_the_table_are_recognised() {
        assert!(concerns("insert or replace into readonly_status VALUES ('a', 1, 1)"));
        assert!(!concerns("DELETE FROM READONLY"));
    }
}
