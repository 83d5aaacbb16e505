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
        _ => {
            let text = text(error);
            match is_of_server(&text) {
                true => SqlError::new(1146, "42S02", format!("ProxySQL Admin Error: {text}")),
                false => failed(text),
            }
        }
    }
}

/// Whether a table is missing that only a server could have: tools know by the code that an older one has it not.
fn is_of_server(text: &str) -> bool {
    const SCHEMAS: [&str; 4] = ["information_schema.", "performance_schema.", "mysql.", "sys."];
    let table = text.strip_prefix("no such table: ").map(str::to_ascii_lowercase);
    table.is_some_and(|table| SCHEMAS.iter().any(|schema| table.starts_with(schema)))
}

/// What SQLite says, without the statement's own text, which rusqlite adds.
pub(crate) fn text(error: &Error) -> String {
    match error {
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// A statement that failed for a reason of ours.
pub fn failed(text: impl std::fmt::Display) -> SqlError {
    SqlError::new(1045, "28000", format!("ProxySQL Admin Error: {text}"))
}

/// The same with control characters escaped: errors show values that anybody may have written, and terminals obey them.
pub(crate) fn printable(error: SqlError) -> SqlError {
    SqlError { message: escaped(&error.message), ..error }
}

/// A text with its control characters escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Statements that could reach other files or change the admin schema.
pub(crate) fn not_allowed() -> SqlError {
    failed("Command not allowed")
}
