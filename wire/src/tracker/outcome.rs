//! What an answer amounts to.

use super::SessionChanges;
use crate::{SqlError, StatusFlags};

/// What a finished answer said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Status flags of the last OK or EOF.
    pub status: Option<StatusFlags>,
    /// The ERR packet, if it ended with one.
    pub error: Option<Box<SqlError>>,
    /// Rows passed.
    pub rows: u64,
    /// Rows of the last result, if that was a result set.
    pub last_result: Option<u64>,
    /// Rows affected by the statement, as the last OK has them.
    pub affected_rows: u64,
    /// The last id that was generated, of all results together; 0 for none.
    pub last_insert_id: u64,
    /// Warnings left by the statement, as the last OK or EOF has them.
    pub warnings: u16,
    /// What the server says of changes in the session, all results together.
    pub changes: SessionChanges,
    /// The statement that was prepared.
    pub prepared: Option<Prepared>,
}

/// What COM_STMT_PREPARE_OK says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The server's id of the statement.
    pub id: u32,
    /// Parameters in it.
    pub parameters: u16,
    /// Columns of its result; 0 if it has none.
    pub columns: u16,
}
