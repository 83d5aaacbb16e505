//! Result sets: from SQLite's values to MySQL's text rows, one row at a time.

use crate::database::sql_error;
use rusqlite::types::ValueRef;
use rusqlite::{Params, Row, Statement};
use std::io::Write;
use std::ops::Range;
use wire::reply::{Column, Reply, Rows};
use wire::{ColumnType, WireError};

/// Runs a statement that yields rows and streams them. An error of SQLite's is answered, not returned. `ran` is called when
/// the statement has run to its end, before the client learns of that.
pub(crate) fn send(
    statement: &mut Statement<'_>,
    values: impl Params,
    reply: Reply<'_>,
    ran: impl FnOnce(),
) -> Result<(), WireError> {
    let declared: Vec<(String, Option<ColumnType>)> = statement
        .columns()
        .map(|column| (column.name().to_owned(), column.decl_type().and_then(declared_kind)))
        .collect();
    let mut source = match statement.query(values) {
        Ok(source) => source,
        Err(error) => return reply.error(&sql_error(&error)),
    };
    // Columns without a declared type take that of the first row's values, so that row is needed before the header goes out.
    let mut step = source.next();
    let first = match &step {
        Ok(first) => *first,
        Err(error) => return reply.error(&sql_error(error)),
    };
    let columns: Vec<Column> = declared
        .into_iter()
        .enumerate()
        .map(|(index, (name, declared))| {
            Column::new(name, kind(declared, first.and_then(|row| row.get_ref(index).ok())))
        })
        .collect();
    let mut sink = reply.rows(&columns)?;
    let mut line = Line::default();
    loop {
        match step {
            Ok(Some(row)) => match line.format(row, columns.len()) {
                Ok(()) => line.send(row, &mut sink)?,
                Err(error) => return sink.fail(&sql_error(&error)),
            },
            Ok(None) => {
                ran();
                return sink.finish();
            }
            Err(error) => return sink.fail(&sql_error(&error)),
        }
        step = source.next();
    }
}

/// The numbers of one row as text; texts and blobs are sent from where SQLite holds them. Reused from row to row.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    numbers: Vec<Option<Range<usize>>>,
}

impl Line {
    fn format(&mut self, row: &Row<'_>, columns: usize) -> rusqlite::Result<()> {
        self.text.clear();
        self.numbers.clear();
        for index in 0..columns {
            let start = self.text.len();
            // Writing into a Vec cannot fail.
            let _ = match row.get_ref(index)? {
                ValueRef::Integer(value) => write!(self.text, "{value}"),
                // `{:?}` keeps the ".0" of a whole number, as SQLite prints it.
                ValueRef::Real(value) => write!(self.text, "{value:?}"),
                ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => {
                    self.numbers.push(None);
                    continue;
                }
            };
            self.numbers.push(Some(start..self.text.len()));
        }
        Ok(())
    }

    fn send(&self, row: &Row<'_>, sink: &mut Rows<'_>) -> Result<(), WireError> {
        sink.row(self.numbers.iter().enumerate().map(|(index, number)| match number {
            Some(range) => self.text.get(range.clone()),
            None => match row.get_ref(index) {
                Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Some(bytes),
                _ => None,
            },
        }))
    }
}

/// The type a declaration fixes, by SQLite's affinity rules; `None` for NUMERIC, whose values may be of any type.
fn declared_kind(declaration: &str) -> Option<ColumnType> {
    let declaration = declaration.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declaration.contains(word));
    if has(&["INT"]) {
        Some(ColumnType::MYSQL_TYPE_LONGLONG)
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        Some(ColumnType::MYSQL_TYPE_VAR_STRING)
    } else if has(&["BLOB"]) {
        Some(ColumnType::MYSQL_TYPE_BLOB)
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        Some(ColumnType::MYSQL_TYPE_DOUBLE)
    } else {
        None
    }
}

/// The type to announce: as declared, unless the first value is of a kind that a client could not read as that.
fn kind(declared: Option<ColumnType>, first: Option<ValueRef<'_>>) -> ColumnType {
    use ColumnType::{MYSQL_TYPE_BLOB, MYSQL_TYPE_DOUBLE, MYSQL_TYPE_LONGLONG, MYSQL_TYPE_VAR_STRING};
    let numeric = matches!(declared, Some(MYSQL_TYPE_LONGLONG | MYSQL_TYPE_DOUBLE));
    match (declared, first) {
        (_, Some(ValueRef::Blob(_))) => MYSQL_TYPE_BLOB,
        (Some(_), Some(ValueRef::Text(_))) if numeric => MYSQL_TYPE_VAR_STRING,
        (Some(declared), _) => declared,
        (None, Some(ValueRef::Integer(_))) => MYSQL_TYPE_LONGLONG,
        (None, Some(ValueRef::Real(_))) => MYSQL_TYPE_DOUBLE,
        (None, _) => MYSQL_TYPE_VAR_STRING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnType::{MYSQL_TYPE_BLOB, MYSQL_TYPE_DOUBLE, MYSQL_TYPE_LONGLONG, MYSQL_TYPE_VAR_STRING};

    #[test]
    fn declared_types_decide() {
        for (declaration, expected) in [
            ("INTEGER", Some(MYSQL_TYPE_LONGLONG)),
            ("bigint unsigned", Some(MYSQL_TYPE_LONGLONG)),
            ("VARCHAR(10)", Some(MYSQL_TYPE_VAR_STRING)),
            ("double precision", Some(MYSQL_TYPE_DOUBLE)),
            ("BLOB", Some(MYSQL_TYPE_BLOB)),
            ("DECIMAL(10,2)", None),
            ("DATETIME", None),
        ] {
            assert_eq!(declared_kind(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn values_decide_where_no_type_is_declared_or_it_is_not_kept() {
        assert_eq!(kind(None, Some(ValueRef::Integer(1))), MYSQL_TYPE_LONGLONG);
        assert_eq!(kind(None, Some(ValueRef::Real(1.0))), MYSQL_TYPE_DOUBLE);
        assert_eq!(kind(None, Some(ValueRef::Blob(b""))), MYSQL_TYPE_BLOB);
        assert_eq!(kind(None, None), MYSQL_TYPE_VAR_STRING);
        assert_eq!(kind(Some(MYSQL_TYPE_LONGLONG), Some(ValueRef::Text(b"x"))), MYSQL_TYPE_VAR_STRING);
        assert_eq!(kind(Some(MYSQL_TYPE_LONGLONG), Some(ValueRef::Null)), MYSQL_TYPE_LONGLONG);
    }
}
