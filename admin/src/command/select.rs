//! `SELECT @@variable`: what SQLite cannot answer, and drivers ask when they connect.

use super::casts::with_casts;
use super::run_sql;
use super::text::{Quotes, after, literal, split_outside_quotes};
use crate::Admin;
use crate::answer::Answer;
use crate::current::{Client, Role};
use crate::variables::registry;
use wire::SqlError;

/// System variables of a MySQL server that drivers and tools ask for, as this interface answers them.
pub(super) const SYSTEM: &[(&str, Option<&str>)] = &[
    ("auto_increment_increment", Some("1")),
    ("autocommit", Some("1")),
    ("basedir", Some("")),
    ("character_set_client", Some("utf8mb4")),
    ("character_set_connection", Some("utf8mb4")),
    ("character_set_database", Some("utf8mb4")),
    ("character_set_results", Some("utf8mb4")),
    ("character_set_server", Some("utf8mb4")),
    ("character_set_system", Some("utf8mb4")),
    ("collation_connection", Some("utf8mb4_general_ci")),
    ("collation_database", Some("utf8mb4_general_ci")),
    ("collation_server", Some("utf8mb4_general_ci")),
    ("datadir", Some("")),
    ("default_storage_engine", Some("SQLite")),
    ("event_scheduler", Some("OFF")),
    ("gtid_mode", Some("OFF")),
    ("have_openssl", Some("YES")),
    ("have_ssl", Some("YES")),
    ("hostname", Some("")),
    ("init_connect", Some("")),
    ("innodb_version", Some("")),
    ("interactive_timeout", Some("28800")),
    ("license", Some("")),
    ("lower_case_file_system", Some("OFF")),
    ("lower_case_table_names", Some("0")),
    ("max_allowed_packet", Some("67108864")),
    ("net_buffer_length", Some("16384")),
    ("net_read_timeout", Some("30")),
    ("net_write_timeout", Some("60")),
    ("performance_schema", Some("0")),
    ("query_cache_size", Some("0")),
    ("query_cache_type", Some("OFF")),
    ("server_id", Some("0")),
    ("skip_name_resolve", Some("1")),
    ("socket", None),
    ("sql_auto_is_null", Some("0")),
    ("sql_mode", Some("")),
    ("sql_select_limit", Some("18446744073709551615")),
    ("system_time_zone", Some("UTC")),
    ("time_zone", Some("SYSTEM")),
    ("transaction_isolation", Some("SERIALIZABLE")),
    ("transaction_read_only", Some("0")),
    ("tx_isolation", Some("SERIALIZABLE")),
    ("tx_read_only", Some("0")),
    ("version", Some(crate::VERSION)),
    ("version_comment", Some("(ProxySQL Admin Module)")),
    ("version_compile_machine", Some(std::env::consts::ARCH)),
    ("version_compile_os", Some(std::env::consts::OS)),
    ("wait_timeout", Some("28800")),
];

/// System variables that tell whether changes are refused.
pub(super) const READ_ONLY: &[&str] = &["read_only", "super_read_only"];

/// Answers a SELECT with `@@variables`, or FROM DUAL; `rest` is what follows the word. `None`: another SELECT.
pub(super) fn run(admin: &Admin, client: &Client, rest: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(items) = list(rest) {
        let columns = items.iter().map(|item| item.column.to_owned()).collect();
        let values = items.iter().map(|item| value(admin, client, item.name)).collect::<Result<Vec<_>, _>>();
        return Some(values.map(|values| Answer::texts(columns, vec![values])));
    }
    let sql = of_sqlite(admin, client, rest)?;
    Some(sql.and_then(|sql| run_sql(admin, client, &sql)))
}

/// Whether `run` answers it.
pub(super) fn is_own(admin: &Admin, client: &Client, rest: &str) -> bool {
    list(rest).is_some() || of_sqlite(admin, client, rest).is_some()
}

/// A list of variables alone.
fn list(rest: &str) -> Option<Vec<Item<'_>>> {
    let limit = rest.to_ascii_lowercase().rfind(" limit ");
    let list = match limit {
        Some(at) if rest[at + " limit ".len()..].trim().bytes().all(|b| b.is_ascii_digit()) => &rest[..at],
        _ => rest,
    };
    split_outside_quotes(list, ',').into_iter().map(item).collect()
}

struct Item<'a> {
    name: &'a str,
    column: &'a str,
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.'
}

/// `@@[scope.]name [[AS] alias]`
fn item(text: &str) -> Option<Item<'_>> {
    let (variable, alias) = text.split_once(' ').unwrap_or((text, ""));
    let name = variable_name(variable.strip_prefix("@@")?);
    let alias = after(alias, "AS").unwrap_or(alias).trim_matches(['`', '\'', '"']);
    let known = !name.is_empty() && name.chars().all(is_plain) && alias.chars().all(is_plain);
    known.then_some(Item { name, column: if alias.is_empty() { variable } else { alias } })
}

/// The name without its scope.
fn variable_name(text: &str) -> &str {
    let scope = ["GLOBAL.", "SESSION.", "LOCAL."].iter().find_map(|scope| {
        let (head, rest) = text.split_at_checked(scope.len())?;
        head.eq_ignore_ascii_case(scope).then_some(rest)
    });
    scope.unwrap_or(text)
}

/// The statement in words that SQLite knows; `None` where it is that already.
fn of_sqlite(admin: &Admin, client: &Client, rest: &str) -> Option<Result<String, SqlError>> {
    let cast = with_casts(rest);
    let rewritten = rewritten(admin, client, &cast);
    rewritten.or_else(|| (cast != rest).then(|| Ok(format!("SELECT {cast}"))))
}

/// The statement with variables replaced by their values, and without FROM DUAL, which SQLite does not know. `None`: there is
/// nothing of that in it.
fn rewritten(admin: &Admin, client: &Client, rest: &str) -> Option<Result<String, SqlError>> {
    let (rest, dual) = without_dual(rest);
    if !dual && !rest.contains("@@") {
        return None;
    }
    let mut out = String::from("SELECT ");
    let (mut quotes, mut tail, mut found) = (Quotes::default(), rest.as_str(), dual);
    while let Some(c) = tail.chars().next() {
        let quoted = quotes.hold(c);
        let name = tail.strip_prefix("@@").filter(|_| !quoted);
        if let Some(after) = name {
            let end = name_length(after);
            match value(admin, client, variable_name(&after[..end])) {
                Ok(Some(value)) => out.push_str(&literal(&value)),
                Ok(None) => out.push_str("NULL"),
                Err(error) => return Some(Err(error)),
            }
            found = true;
            // A value has no name of its own, and the column's is what was asked for.
            let alone = matches!(after[end..].trim_start().chars().next(), None | Some(','));
            let first =
                matches!(rest[..rest.len() - tail.len()].trim_end().chars().next_back(), None | Some(','));
            if alone && first {
                out.push_str(&format!(" AS \"@@{}\"", &after[..end]));
            }
            tail = &after[end..];
            continue;
        }
        out.push(c);
        tail = &tail[c.len_utf8()..];
    }
    found.then_some(Ok(out))
}

/// The length of the name that a text begins with. What follows a dash is part of it where a variable of the daemon has that name;
/// otherwise the dash may be a minus.
fn name_length(text: &str) -> usize {
    let length = |belongs: fn(char) -> bool| text.find(|c| !belongs(c)).unwrap_or(text.len());
    let longest = length(is_plain);
    if registry::find(variable_name(&text[..longest])).is_some() {
        return longest;
    }
    length(|c| is_plain(c) && c != '-')
}

fn without_dual(rest: &str) -> (String, bool) {
    let upper = rest.to_ascii_uppercase();
    match upper.rfind(" FROM DUAL") {
        Some(at) => {
            let after = &rest[at + " FROM DUAL".len()..];
            let quoted = ['\'', '"', '`'].iter().any(|quote| rest[..at].matches(*quote).count() % 2 == 1);
            let ends = !quoted && (after.is_empty() || after.starts_with(' '));
            if ends { (format!("{}{after}", &rest[..at]), true) } else { (rest.to_owned(), false) }
        }
        None => (rest.to_owned(), false),
    }
}

/// What a variable of that name is: of this daemon, of its counters, or of a MySQL server.
fn value(admin: &Admin, client: &Client, name: &str) -> Result<Option<String>, SqlError> {
    let name_literal = literal(name);
    let stored = |table: &str| {
        let sql =
            format!("SELECT variable_value FROM {table} WHERE variable_name = {name_literal} COLLATE NOCASE");
        match run_sql(admin, client, &sql) {
            Ok(Answer::Rows { rows, .. }) => rows.into_iter().next().and_then(|row| row.into_iter().next()),
            _ => None,
        }
    };
    if client.role == Role::Admin
        && let Some(value) = stored("main.global_variables")
    {
        return Ok(value);
    }
    if READ_ONLY.iter().any(|each| each.eq_ignore_ascii_case(name)) {
        return Ok(Some(
            i32::from(client.role == Role::Stats || admin.check_writable().is_err()).to_string(),
        ));
    }
    let system = SYSTEM.iter().find(|(each, _)| each.eq_ignore_ascii_case(name));
    if let Some((_, value)) = system {
        return Ok(value.map(str::to_owned));
    }
    let unknown = || SqlError::new(1193, "HY000", format!("Unknown system variable '{name}'"));
    stored("stats.stats_mysql_global").ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::super::text::collapse;
    use super::*;

    #[test]
    fn dual_is_taken_off() {
        assert_eq!(without_dual("1 from dual"), ("1".into(), true));
        assert_eq!(without_dual("1 FROM DUAL WHERE 1"), ("1 WHERE 1".into(), true));
        assert_eq!(without_dual("'x from dual y'"), ("'x from dual y'".into(), false));
        assert_eq!(without_dual("1 FROM duality"), ("1 FROM duality".into(), false));
    }

    #[test]
    fn a_dash_belongs_to_the_names_of_the_daemons_variables() {
        for (text, name) in [
            ("admin-version, 1", "admin-version"),
            ("global.mysql-wait_timeout+1", "global.mysql-wait_timeout"),
            ("wait_timeout-1", "wait_timeout"),
            ("mysql-nothing", "mysql"),
        ] {
            assert_eq!(&text[..name_length(text)], name);
        }
    }

    #[test]
    fn lists_of_variables_are_told_apart() {
        let names = |rest: &str| {
            list(&collapse(rest))
                .map(|items| items.iter().map(|item| item.column.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(names("@@a , @@session.b AS `x` limit 1").unwrap(), ["@@a", "x"]);
        assert!(names("@@a, 1").is_none() && names("a").is_none() && names("@@a + 1").is_none());
    }
}
