//! What admin clients are told when a statement fails.

use rusqlite::{Error, ErrorCode};
use wire::SqlError;

/// A statement SQLite refused. Clients of ProxySQL's admin know these errors as 1045 with this prefix.
pub(crate) fn from_sqlite(error: &Error) -> SqlError {
    match error.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied) => not_allowed(),
        Some(ErrorCode::OperationInterrupted) => {
            failed("interrupted: the statement ran longer than an admin statement may")
        }
        _ => failed(text(error)),
    }
}

/// What SQLite says, without the statement's own text, which rusqlite adds.
pub(crate) fn text(error: &Error) -> String {
    match error {
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// A statement that failed for a reason of ours.
pub(crate) fn failed(text: impl std::fmt::Display) -> SqlError {
    SqlError::new(1045, "28000", format!("ProxySQL Admin Error: {text}"))
}

/// Statements that could reach other files or change the admin schema.
pub(crate) fn not_allowed() -> SqlError {
    failed("Command not allowed")
}
