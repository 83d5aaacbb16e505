//! TRUNCATE: of statistics that can be counted from nothing, those with a table that resets what it shows.

use super::text::unquote;
use crate::answer::Answer;
use crate::{Admin, Schema};
use wire::SqlError;

/// Answers `TRUNCATE [TABLE] [stats.]name`; `None` where the table is no such one.
pub(super) fn run(admin: &Admin, table: &str) -> Option<Result<Answer, SqlError>> {
    let name = match table.split_once('.') {
        Some((schema, name)) if unquote(schema.trim()).eq_ignore_ascii_case("stats") => name.trim(),
        Some(_) => return None,
        None => table,
    };
    let name = unquote(name);
    let base = name.strip_suffix("_reset").unwrap_or(&name);
    let live = &admin.store.live;
    let reset = live.find(&format!("{base}_reset")).filter(|table| table.schema == Schema::Stats)?;
    // Reading it is what resets.
    drop((reset.rows)());
    Some(Ok(Answer::done()))
}
