//! What an operator is told where the database file cannot be used.

use crate::{StoreError, error};
use rusqlite::{Connection, ErrorCode};
use std::path::Path;

/// Looks for damage before anything is read.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = conn.query_row("PRAGMA disk.quick_check(1)", [], |row| row.get::<_, String>(0));
    match found {
        Ok(text) if text == "ok" => Ok(()),
        Ok(text) => Err(damaged(path, &text)),
        Err(error) => Err(explain(path, &error)),
    }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    let what = what.replace('\n', " ");
    StoreError(format!(
        "{}: the database is damaged ({what}); restore it from a backup or move it away to start empty",
        path.display()
    ))
}

/// What a failure of the file comes from, and what to do.
pub(super) fn cause(error: &rusqlite::Error) -> Option<(String, &'static str)> {
    let said = |what: &str| what.to_owned();
    Some(match error.sqlite_error_code()? {
        ErrorCode::DiskFull => {
            (said("the disk is full, or the database as large as it may be (256 MiB)"), "make room")
        }
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => (
            error::text(error),
            "make sure that its disk has room, works and lets this user write files beside it",
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            (said("it cannot be written"), "make the file and its directory writable for this user")
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (said("another program holds it locked"), "end that program")
        }
        ErrorCode::DatabaseCorrupt => {
            (format!("the database is damaged ({})", error::text(error)), "restore it from a backup")
        }
        ErrorCode::NotADatabase => (said("not a pointsman database"), "restore it from a backup"),
        _ => return None,
    })
}

/// Why the file cannot be used at a start.
pub(crate) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path_text = path.display();
    match (error.sqlite_error_code(), cause(error)) {
        (Some(ErrorCode::NotADatabase), _) => not_ours(path, ""),
        (Some(ErrorCode::DatabaseCorrupt), _) => damaged(path, &error::text(error)),
        (_, Some((what, remedy))) => StoreError(format!("{path_text}: {what}; {remedy}")),
        (_, None) => {
            StoreError(format!("{path_text}: {}; check the file and its permissions", error::text(error)))
        }
    }
}

/// The refusal of a file that pointsman did not make.
pub(crate) fn not_ours(path: &Path, detail: &str) -> StoreError {
    StoreError(format!(
        "{}: not a pointsman database{detail}; move it away to start empty, or choose another directory with -D",
        path.display()
    ))
}
