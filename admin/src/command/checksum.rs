//! CHECKSUM of a table in memory or on disk, and SELECT GLOBAL_CHECKSUM() of what is in force.

use super::load_save::variables_prefix;
use super::text::{after, literal};
use crate::answer::Answer;
use crate::tables::{Group, TABLES};
use crate::{Admin, checksums};
use wire::SqlError;

/// `CHECKSUM [DISK|MEMORY|MEM] MYSQL SERVERS`, and so on for each table and for variables; `None`: another statement.
pub(super) fn run(admin: &Admin, statement: &str) -> Option<Result<Answer, SqlError>> {
    let rest = after(statement, "CHECKSUM")?;
    let memory = |words| after(rest, words).map(|rest| ("main", rest));
    let disk = after(rest, "DISK").map(|rest| ("disk", rest));
    let (schema, words) =
        disk.or_else(|| memory("MEMORY")).or_else(|| memory("MEM")).unwrap_or(("main", rest));
    let (table, condition) = target(words)?;
    Some(sum(admin, schema, table, &condition).map(|sum| {
        let columns = vec!["table".to_owned(), "checksum".to_owned()];
        Answer::texts(columns, vec![vec![Some(table.to_owned()), Some(sum)]])
    }))
}

fn sum(admin: &Admin, schema: &str, table: &str, condition: &str) -> Result<String, SqlError> {
    let store = admin.store.lock();
    if schema == "disk" {
        store.file.check()?;
    }
    checksums::of_table(&store.conn, schema, table, condition)
}

/// The table that words such as MYSQL QUERY RULES name, and which of its rows.
fn target(words: &str) -> Option<(&'static str, String)> {
    if let Some(prefix) = variables_prefix(words) {
        let pattern = literal(&format!("{prefix}%"));
        return Some(("global_variables", format!("variable_name LIKE {pattern}")));
    }
    let name = words.to_ascii_lowercase().replace(' ', "_");
    let table = TABLES.iter().find(|table| table.name == name && table.group != Group::Variables)?;
    Some((table.name, "1".into()))
}

/// `GLOBAL_CHECKSUM()` behind SELECT; `None`: another SELECT.
pub(super) fn select(admin: &Admin, rest: &str) -> Option<Result<Answer, SqlError>> {
    is_global(rest).then(|| {
        Ok(Answer::texts(vec!["GLOBAL_CHECKSUM()".into()], vec![vec![Some(admin.checksums.global())]]))
    })
}

/// Whether a SELECT is about that.
pub(super) fn is_global(rest: &str) -> bool {
    after(rest, "GLOBAL_CHECKSUM()") == Some("")
}
