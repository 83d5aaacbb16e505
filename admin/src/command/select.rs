//! `SELECT @@variable`: what SQLite cannot answer, and drivers ask when they connect.

use super::text::{after, split_outside_quotes};
use crate::Admin;
use crate::answer::Answer;
use wire::SqlError;

/// System variables of a MySQL server that drivers ask for, as this interface answers them.
const SYSTEM: &[(&str, Option<&str>)] = &[
    ("auto_increment_increment", Some("1")),
    ("autocommit", Some("1")),
    ("character_set_client", Some("utf8mb4")),
    ("character_set_connection", Some("utf8mb4")),
    ("character_set_database", Some("utf8mb4")),
    ("character_set_results", Some("utf8mb4")),
    ("character_set_server", Some("utf8mb4")),
    ("collation_connection", Some("utf8mb4_general_ci")),
    ("collation_database", Some("utf8mb4_general_ci")),
    ("collation_server", Some("utf8mb4_general_ci")),
    ("init_connect", Some("")),
    ("interactive_timeout", Some("28800")),
    ("license", Some("")),
    ("lower_case_table_names", Some("0")),
    ("max_allowed_packet", Some("67108864")),
    ("net_write_timeout", Some("60")),
    ("performance_schema", Some("0")),
    ("query_cache_size", Some("0")),
    ("query_cache_type", Some("OFF")),
    ("read_only", Some("0")),
    ("socket", None),
    ("sql_mode", Some("")),
    ("system_time_zone", Some("UTC")),
    ("time_zone", Some("SYSTEM")),
    ("transaction_isolation", Some("SERIALIZABLE")),
    ("transaction_read_only", Some("0")),
    ("tx_isolation", Some("SERIALIZABLE")),
    ("tx_read_only", Some("0")),
    ("version_comment", Some("(ProxySQL Admin Module)")),
    ("wait_timeout", Some("28800")),
];

/// Answers a SELECT whose list is `@@variables` alone; `rest` is what follows the word. `None`: another SELECT.
pub(super) fn run(admin: &Admin, rest: &str) -> Option<Result<Answer, SqlError>> {
    let limit = rest.to_ascii_lowercase().rfind(" limit ");
    let list = match limit {
        Some(at) if rest[at + " limit ".len()..].trim().bytes().all(|b| b.is_ascii_digit()) => &rest[..at],
        _ => rest,
    };
    let items = split_outside_quotes(list, ',').into_iter().map(item).collect::<Option<Vec<_>>>()?;
    let columns = items.iter().map(|item| item.column.to_owned()).collect();
    let values = items.iter().map(|item| value(admin, item.name)).collect::<Result<Vec<_>, _>>();
    Some(values.map(|values| Answer::texts(columns, vec![values])))
}

struct Item<'a> {
    name: &'a str,
    column: &'a str,
}

/// `@@[scope.]name [[AS] alias]`
fn item(text: &str) -> Option<Item<'_>> {
    let (variable, alias) = text.split_once(' ').unwrap_or((text, ""));
    let name = variable.strip_prefix("@@")?;
    let scope = ["GLOBAL.", "SESSION.", "LOCAL."].iter().find_map(|scope| {
        let (head, rest) = name.split_at_checked(scope.len())?;
        head.eq_ignore_ascii_case(scope).then_some(rest)
    });
    let name = scope.unwrap_or(name);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let alias = after(alias, "AS").unwrap_or(alias).trim_matches(['`', '\'', '"']);
    let known = !name.is_empty() && name.chars().all(plain) && alias.chars().all(plain);
    known.then_some(Item { name, column: if alias.is_empty() { variable } else { alias } })
}

fn value(admin: &Admin, name: &str) -> Result<Option<String>, SqlError> {
    if let Some(value) = admin.store.lock().variable(name) {
        return Ok(Some(value));
    }
    if name.eq_ignore_ascii_case("version") {
        return Ok(Some(crate::VERSION.into()));
    }
    let system = SYSTEM.iter().find(|(each, _)| each.eq_ignore_ascii_case(name));
    let unknown = || SqlError::new(1193, "HY000", format!("Unknown system variable '{name}'"));
    system.map(|(_, value)| value.map(str::to_owned)).ok_or_else(unknown)
}
