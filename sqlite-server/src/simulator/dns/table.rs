//! What the responder knows of names: the table and how its rows are read.

use crate::database;
use rusqlite::Connection;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// The table. It begins empty with every start.
pub(in crate::simulator) const TABLE: &str = "DROP TABLE IF EXISTS RDS_BGD_DNS;
CREATE TABLE RDS_BGD_DNS (
    name TEXT NOT NULL COLLATE NOCASE CHECK (name NOT LIKE '%.'),
    address TEXT NOT NULL DEFAULT '',
    ttl INTEGER NOT NULL DEFAULT 1 CHECK (ttl BETWEEN 0 AND 2147483647),
    mode TEXT NOT NULL DEFAULT 'answer' CHECK (mode IN ('answer','nxdomain','servfail','drop','delay')),
    delay_ms INTEGER NOT NULL DEFAULT 500 CHECK (delay_ms BETWEEN 0 AND 60000),
    PRIMARY KEY (name, address)
);";

/// What becomes of a question for a name. Of a name's rows the one with the last of these decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// The addresses, at once.
    Answer,
    /// The addresses, after a while.
    Delay,
    /// There is no such name.
    NxDomain,
    /// The server failed.
    ServFail,
    /// Nothing.
    Drop,
}

/// All rows of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// In the order of the rows, without those that have none.
    pub addresses: Vec<IpAddr>,
    /// Seconds; the shortest of the rows.
    pub ttl: u32,
    /// What to do.
    pub mode: Mode,
    /// How long [`Mode::Delay`] takes; the longest of the rows.
    pub delay: Duration,
}

/// A connection of the responder's own.
pub(super) struct Table(Connection);

impl Table {
    /// Opens the simulator's database file.
    pub(super) fn open(file: &Path) -> rusqlite::Result<Self> {
        database::open(file).map(Self)
    }

    /// The entry of a name (without a dot at its end, in any letter case), `None` where it has no row. An address that is
    /// none makes the name fail as a broken zone would.
    pub(super) fn entry(&self, name: &str) -> rusqlite::Result<Option<Entry>> {
        let mut statement = self.0.prepare_cached(
            "SELECT address, CAST(ttl AS INTEGER), mode, CAST(delay_ms AS INTEGER) FROM RDS_BGD_DNS
            WHERE name = ?1 ORDER BY rowid",
        )?;
        let mut rows = statement.query([name])?;
        let mut entry: Option<Entry> = None;
        while let Some(row) = rows.next()? {
            let address: String = row.get(0)?;
            let (ttl, mode) = (row.get(1)?, mode(&row.get::<_, String>(2)?));
            let delay = Duration::from_millis(row.get::<_, u32>(3)?.into());
            let entry = entry.get_or_insert(Entry { addresses: vec![], ttl, mode, delay });
            entry.ttl = entry.ttl.min(ttl);
            entry.mode = entry.mode.max(mode);
            entry.delay = entry.delay.max(delay);
            match address.parse() {
                Ok(address) => entry.addresses.push(address),
                Err(_) if address.is_empty() => {}
                Err(_) => {
                    log::error!("simulator: RDS_BGD_DNS: '{address}' of {name} is no IP address");
                    entry.mode = entry.mode.max(Mode::ServFail);
                }
            }
        }
        Ok(entry)
    }
}

fn mode(text: &str) -> Mode {
    match text {
        "delay" => Mode::Delay,
        "nxdomain" => Mode::NxDomain,
        "servfail" => Mode::ServFail,
        "drop" => Mode::Drop,
        // The table's constraint allows no other.
        _ => Mode::Answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLE).unwrap();
        Table(connection)
    }

    #[test]
    fn the_rows_of_a_name_are_one_entry() {
        let table = table();
        table
            .0
            .execute_batch(
                "INSERT INTO RDS_BGD_DNS (name, address, ttl) VALUES ('A.test', '10.0.0.2', 9), ('a.test', '::1', 5);
                INSERT INTO RDS_BGD_DNS VALUES ('a.test', '10.0.0.1', 7, 'delay', 80)",
            )
            .unwrap();
        let entry = table.entry("a.TEST").unwrap().unwrap();
        let addresses: Vec<_> = entry.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.2", "::1", "10.0.0.1"]);
        assert_eq!((entry.ttl, entry.mode, entry.delay), (5, Mode::Delay, Duration::from_millis(500)));
        assert_eq!(table.entry("b.test"), Ok(None));
    }

    #[test]
    fn the_strongest_mode_decides_and_a_wrong_address_is_a_failure() {
        let table = table();
        let modes = ["answer", "delay", "nxdomain", "servfail", "drop"];
        let expected = [Mode::Answer, Mode::Delay, Mode::NxDomain, Mode::ServFail, Mode::Drop];
        for (last, (mode, expected)) in modes.into_iter().zip(expected).enumerate() {
            let insert = "INSERT INTO RDS_BGD_DNS (name, address, mode) VALUES ('a', ?1, ?2)";
            table.0.execute(insert, (format!("10.0.0.{last}"), mode)).unwrap();
            assert_eq!(table.entry("a").unwrap().unwrap().mode, expected);
        }
        table
            .0
            .execute_batch("INSERT INTO RDS_BGD_DNS (name, address) VALUES ('b', 'here'), ('c', '')")
            .unwrap();
        assert_eq!(table.entry("b").unwrap().unwrap().mode, Mode::ServFail);
        assert_eq!(
            table.entry("c").unwrap().unwrap(),
            Entry { addresses: vec![], ttl: 1, mode: Mode::Answer, delay: Duration::from_millis(500) }
        );
    }

    #[test]
    fn the_table_takes_no_nonsense() {
        let table = table();
        for values in [
            "'a.', '', 1, 'answer', 0",
            "'a', '', -1, 'answer', 0",
            "'a', '', 1, 'no', 0",
            "'a', '', 1, 'delay', -1",
        ] {
            assert!(
                table.0.execute_batch(&format!("INSERT INTO RDS_BGD_DNS VALUES ({values})")).is_err(),
                "{values}"
            );
        }
    }
}
