//! Answers to admin statements, collected whole so that no lock is held while a client reads.

use crate::catalog::is_integer;
use crate::error::{failed, from_sqlite};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Row};
use wire::SqlError;

/// Most memory that results may take, those that clients are still reading together, in bytes.
pub(crate) const RESULT_LIMIT: usize = 256 << 20;
/// Memory that any result may take, however much others take, so that slow readers lock nobody out, in bytes.
pub(crate) const SMALL_RESULT: usize = 256 << 10;

/// The answer to one admin statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// OK with affected rows and info text.
    Ok {
        /// Affected rows.
        affected: u64,
        /// Info text.
        info: String,
    },
    /// A result set.
    Rows {
        /// Column names.
        columns: Vec<String>,
        /// For each column whether all its values are integers.
        integers: Vec<bool>,
        /// Rows as text; NULL is `None`.
        rows: Vec<Vec<Option<String>>>,
    },
}

impl Answer {
    /// OK without anything to say.
    pub(crate) fn done() -> Self {
        Self::Ok { affected: 0, info: String::new() }
    }

    /// A result set of texts.
    pub(crate) fn texts(columns: Vec<String>, rows: Vec<Vec<Option<String>>>) -> Self {
        let integers = vec![false; columns.len()];
        Self::Rows { columns, integers, rows }
    }

    /// A result set of whole numbers.
    pub(crate) fn numbers(columns: Vec<String>, rows: Vec<Vec<Option<String>>>) -> Self {
        let integers = vec![true; columns.len()];
        Self::Rows { columns, integers, rows }
    }

    /// Memory that the rows take, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Ok { .. } => 0,
            Self::Rows { rows, .. } => rows.iter().map(|row| size(row)).sum(),
        }
    }

    /// Runs one SQL statement and collects what it returns; an error where that takes more than `room` bytes. `admit` is asked
    /// when SQLite has read the statement, before it runs.
    pub(crate) fn collect(
        conn: &Connection,
        sql: &str,
        room: usize,
        admit: impl FnOnce() -> Result<(), SqlError>,
    ) -> Result<Self, SqlError> {
        let mut statement = match conn.prepare(sql) {
            Ok(statement) => statement,
            Err(Error::Empty) => return Ok(Self::done()),
            Err(error) => return Err(from_sqlite(&error)),
        };
        admit()?;
        // SQLite would take NULL for them. MySQL's own client even counts on an error: it sends `select $$` when it connects and
        // reads no result.
        if statement.parameter_count() > 0 {
            return Err(failed("the statement has parameters (?, :name, @name or $name) without a value"));
        }
        if statement.column_count() == 0 {
            let before = conn.total_changes();
            statement.raw_execute().map_err(|error| from_sqlite(&error))?;
            // `changes` keeps the count of the last statement that made any.
            let affected = if conn.total_changes() == before { 0 } else { conn.changes() };
            return Ok(Self::Ok { affected, info: String::new() });
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let declared = statement.columns().map(|column| column.decl_type().is_some_and(is_integer));
        let mut kinds: Vec<Kind> = declared.map(Kind::new).collect();
        let mut rows = Vec::new();
        let mut taken = 0;
        let mut cursor = statement.raw_query();
        while let Some(row) = cursor.next().map_err(|error| from_sqlite(&error))? {
            let row = texts(row, &mut kinds).map_err(|error| from_sqlite(&error))?;
            taken += size(&row);
            if taken > room {
                return Err(failed(format!(
                    "the result, with those that other clients are still reading, is larger than {} MiB",
                    RESULT_LIMIT >> 20
                )));
            }
            rows.push(row);
        }
        Ok(Self::Rows { columns, integers: kinds.iter().map(Kind::is_integer).collect(), rows })
    }
}

fn size(row: &[Option<String>]) -> usize {
    let cells = row.iter().map(|cell| size_of_val(cell) + cell.as_ref().map_or(0, String::len));
    size_of::<Vec<String>>() + cells.sum::<usize>()
}

/// What is known of a column's values.
struct Kind {
    declared: bool,
    integer: bool,
    other: bool,
}

impl Kind {
    fn new(declared: bool) -> Self {
        Self { declared, integer: false, other: false }
    }

    /// SQLite lets any value into any column, so a declaration alone does not make a column of integers.
    fn is_integer(&self) -> bool {
        !self.other && (self.declared || self.integer)
    }
}

fn texts(row: &Row<'_>, kinds: &mut [Kind]) -> rusqlite::Result<Vec<Option<String>>> {
    let cells = kinds.iter_mut().enumerate().map(|(index, kind)| {
        let value = row.get_ref(index)?;
        kind.integer |= matches!(value, ValueRef::Integer(_));
        kind.other |= !matches!(value, ValueRef::Integer(_) | ValueRef::Null);
        Ok(match value {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(format!("{number:?}")),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        })
    });
    cells.collect()
}
