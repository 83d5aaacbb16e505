//! One checksum of many rows.

use crate::error;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use twox_hash::XxHash3_64;
use wire::SqlError;

/// Cells are hashed in pieces of about this size.
const PIECE: usize = 1 << 16;

/// A checksum that grows row by row.
#[derive(Default)]
pub(crate) struct Sum {
    bytes: Vec<u8>,
    hash: u64,
}

impl Sum {
    /// Adds a row's cells, each with its kind and length, so that no two different rows look the same.
    pub fn row<'a>(&mut self, cells: impl Iterator<Item = ValueRef<'a>>) {
        self.bytes.push(b'r');
        for cell in cells {
            let (kind, length) = match cell {
                ValueRef::Null => (b'n', 0),
                ValueRef::Integer(number) => {
                    self.bytes.push(b'i');
                    self.bytes.extend(number.to_le_bytes());
                    continue;
                }
                ValueRef::Real(number) => {
                    self.bytes.push(b'f');
                    self.bytes.extend(number.to_bits().to_le_bytes());
                    continue;
                }
                ValueRef::Text(bytes) => (b't', bytes.len()),
                ValueRef::Blob(bytes) => (b'b', bytes.len()),
            };
            self.bytes.push(kind);
            self.bytes.extend((length as u64).to_le_bytes());
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = cell {
                self.bytes.extend(bytes);
            }
        }
        if self.bytes.len() >= PIECE {
            self.fold();
        }
    }

    fn fold(&mut self) {
        self.hash = XxHash3_64::oneshot_with_seed(self.hash, &self.bytes);
        self.bytes.clear();
    }

    /// As tables show it.
    pub fn show(mut self) -> String {
        self.fold();
        format!("0x{:016X}", self.hash)
    }
}

/// The checksum of a table's rows, whatever order they were made in. `condition` follows WHERE.
pub(crate) fn of_table(
    conn: &Connection,
    schema: &str,
    table: &str,
    condition: &str,
) -> Result<String, SqlError> {
    let read = || {
        let probe = conn.prepare(&format!("SELECT * FROM {schema}.{table} LIMIT 0"))?;
        let columns = probe.column_count();
        let order: Vec<String> = (1..=columns).map(|column| column.to_string()).collect();
        let sql = format!("SELECT * FROM {schema}.{table} WHERE {condition} ORDER BY {}", order.join(", "));
        let mut statement = conn.prepare(&sql)?;
        let mut cursor = statement.query([])?;
        let mut sum = Sum::default();
        while let Some(row) = cursor.next()? {
            let cells =
                (0..columns).map(|column| row.get_ref(column)).collect::<rusqlite::Result<Vec<_>>>()?;
            sum.row(cells.into_iter());
        }
        Ok(sum.show())
    };
    read().map_err(|error: rusqlite::Error| error::from_sqlite(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn sum(rows: &[&[Value]]) -> String {
        let mut sum = Sum::default();
        rows.iter().for_each(|row| sum.row(row.iter().map(ValueRef::from)));
        sum.show()
    }

    #[test]
    fn rows_that_differ_have_other_checksums() {
        let text = |text: &str| Value::Text(text.into());
        let long = text(&"x".repeat(PIECE));
        let all = [
            sum(&[]),
            sum(&[&[]]),
            sum(&[&[Value::Null]]),
            sum(&[&[Value::Int(0)]]),
            sum(&[&[text("")]]),
            sum(&[&[text("0")]]),
            sum(&[&[text("ab"), text("c")]]),
            sum(&[&[text("a"), text("bc")]]),
            sum(&[&[text("ab")], &[text("c")]]),
            sum(&[&[text("c")], &[text("ab")]]),
            sum(&[&[long.clone(), Value::Null], &[text("a")]]),
            sum(&[&[long.clone(), Value::Null], &[text("b")]]),
            sum(&[&[text("a")], &[long, Value::Null]]),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|shown| shown.len() == 18 && shown.starts_with("0x")), "{all:?}");
    }

    #[test]
    fn a_table_has_one_checksum_however_it_was_filled() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE a (n INT, t VARCHAR); CREATE TABLE b (n INT, t VARCHAR);
             INSERT INTO a VALUES (1, 'x'), (2, NULL); INSERT INTO b VALUES (2, NULL), (1, 'x');",
        )
        .unwrap();
        let of = |table, condition| of_table(&conn, "main", table, condition).unwrap();
        assert_eq!(of("a", "1"), of("b", "1"));
        assert_ne!(of("a", "1"), of("a", "n = 1"));
        conn.execute_batch("UPDATE b SET t = '' WHERE n = 2").unwrap();
        assert_ne!(of("a", "1"), of("b", "1"));
        assert!(of_table(&conn, "main", "none", "1").is_err());
    }
}
