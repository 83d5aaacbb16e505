//! Answers a server writes: OK, ERR, EOF and text result sets.

use crate::channel::Channel;
use crate::{CapabilityFlags, ColumnType, SqlError, StatusFlags, WireError};

/// Writes the answer to one command. Consumed by the call that completes the answer, so that an answer cannot be left half written.
pub struct Reply<'a> {
    /// Where to write.
    pub channel: &'a mut Channel,
    /// Capabilities in force.
    pub capabilities: CapabilityFlags,
    /// Status flags to report.
    pub status: StatusFlags,
}

/// One result column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Schema, table (empty if none) and column name.
    pub schema: String,
    /// Table.
    pub table: String,
    /// Name.
    pub name: String,
    /// Type as MySQL names it.
    pub kind: ColumnType,
}

impl Column {
    /// A text column with a name alone.
    pub fn text(_name: impl Into<String>) -> Self {
        unimplemented!()
    }
}

impl<'a> Reply<'a> {
    /// OK with affected rows, last insert id and info text.
    pub fn ok(self, _affected: u64, _last_insert_id: u64, _info: &str) -> Result<(), WireError> {
        unimplemented!()
    }
    /// ERR.
    pub fn error(self, _error: &SqlError) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Starts a text result set.
    pub fn rows(self, _columns: &[Column]) -> Result<Rows<'a>, WireError> {
        unimplemented!()
    }
}

/// A result set being written: rows, then `finish` (or `fail`). Flushes as it grows.
pub struct Rows<'a> {
    _reply: Reply<'a>,
}

impl Rows<'_> {
    /// One row; NULL is `None`.
    pub fn row<'v>(&mut self, _values: impl IntoIterator<Item = Option<&'v [u8]>>) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Ends the result set.
    pub fn finish(self) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Ends it with an error after some rows.
    pub fn fail(self, _error: &SqlError) -> Result<(), WireError> {
        unimplemented!()
    }
}
