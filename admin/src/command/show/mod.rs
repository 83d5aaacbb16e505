//! SHOW.

mod server;

use super::columns::{self, filtered, schema_of};
use super::run_sql;
use super::select::{READ_ONLY, SYSTEM};
use super::text::{after, literal, unquote};
use crate::Admin;
use crate::answer::Answer;
use crate::current::{Client, Role};
use crate::error::failed;
use wire::SqlError;

const VARIABLES: &str =
    "SELECT variable_name AS Variable_name, variable_value AS Value FROM main.global_variables";

/// Answers `SHOW ...`; `rest` is what follows the word. `None`: not a SHOW known here.
pub(super) fn run(admin: &Admin, client: &Client, rest: &str) -> Option<Result<Answer, SqlError>> {
    let from = |words| after(rest, words).and_then(|rest| after(rest, "FROM").or_else(|| after(rest, "IN")));
    for (words, full) in
        [("FIELDS", false), ("COLUMNS", false), ("FULL FIELDS", true), ("FULL COLUMNS", true)]
    {
        if let Some(rest) = from(words) {
            return Some(columns::fields(admin, client, rest, full));
        }
    }
    if let Some(rest) = from("INDEX").or_else(|| from("INDEXES")).or_else(|| from("KEYS")) {
        return Some(columns::indexes(admin, client, rest));
    }
    if let Some(rest) = after(rest, "CREATE TABLE") {
        return Some(columns::create_table(admin, client, rest));
    }
    if let Some(rest) = after(rest, "TABLE STATUS") {
        return Some(columns::table_status(admin, client, rest));
    }
    if let Some(filter) = after(rest, "DATABASES").or_else(|| after(rest, "SCHEMAS")) {
        return Some(databases(admin, client, filter));
    }
    if rest.eq_ignore_ascii_case("PROMETHEUS METRICS") {
        let text = admin.daemon().map(|daemon| daemon.metrics());
        return Some(text.map(|text| Answer::texts(vec!["Data".into()], vec![vec![Some(text)]])));
    }
    if let Some(rest) = after(rest, "CREATE DATABASE").or_else(|| after(rest, "CREATE SCHEMA")) {
        return Some(server::create_database(rest));
    }
    if let Some(answer) = variables(admin, client, rest) {
        return Some(answer);
    }
    if let Some(shown) = server::run(client, rest) {
        return Some(filtered(admin, client, &shown.columns, shown.rows, shown.liked, shown.filter));
    }
    let sql = match tables(client, rest).or_else(|| processlist(rest)).or_else(|| status(rest)) {
        Some(sql) => sql,
        None if client.role == Role::Admin => configured(rest)?.to_owned(),
        None => return None,
    };
    Some(run_sql(admin, client, &sql))
}

/// Number, name and file of each schema, as SQLite lists them.
fn databases(admin: &Admin, client: &Client, filter: &str) -> Result<Answer, SqlError> {
    let list =
        |conn: &rusqlite::Connection| Answer::collect(conn, "PRAGMA database_list", usize::MAX, || Ok(()));
    let listed = match admin.store.with_reader(client, |reader| list(&reader.conn))? {
        Some(listed) => listed,
        None => list(&admin.store.lock().conn),
    };
    let Answer::Rows { columns, integers, mut rows } = listed? else {
        return Err(failed("SQLite does not list its databases"));
    };
    // What tools ask of MySQL is no database of ours.
    rows.retain(|row| row.get(1).is_none_or(|name| name.as_deref() != Some("information_schema")));
    if filter.is_empty() {
        return Ok(Answer::Rows { columns, integers, rows });
    }
    filtered(admin, client, &["seq", "name", "file"], rows, "name", filter)
}

/// The query behind `SHOW [FULL] TABLES [FROM|IN db] [LIKE pattern | WHERE condition]`.
fn tables(client: &Client, rest: &str) -> Option<String> {
    let (kind, rest) = match after(rest, "FULL") {
        Some(rest) => (", 'BASE TABLE' AS Table_type", rest),
        None => ("", rest),
    };
    let rest = after(rest, "TABLES")?;
    let (schema, rest) = match after(rest, "FROM").or_else(|| after(rest, "IN")) {
        Some(rest) => {
            let (schema, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (schema_of(client, &unquote(schema)), rest)
        }
        None => ("main".to_owned(), rest),
    };
    let filter = match rest {
        "" => String::new(),
        rest => match after(rest, "LIKE") {
            Some(pattern) => format!(" WHERE tables LIKE {pattern} ESCAPE '\\'"),
            None => format!(" WHERE {}", after(rest, "WHERE")?),
        },
    };
    Some(format!(
        "SELECT * FROM (SELECT name AS tables{kind} FROM \"{}\".sqlite_master \
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'){filter} ORDER BY tables",
        schema.replace('"', "\"\"")
    ))
}

/// The query behind `SHOW [FULL] PROCESSLIST`; without FULL statements are cut.
fn processlist(rest: &str) -> Option<String> {
    let (info, rest) = match after(rest, "FULL") {
        Some(rest) => ("info", rest),
        None => ("substr(info, 1, 100) AS info", rest),
    };
    after(rest, "PROCESSLIST")?.is_empty().then(|| {
        format!("SELECT SessionID, user, db, hostgroup, command, time_ms, {info} FROM stats.stats_mysql_processlist")
    })
}

/// The query behind `SHOW [GLOBAL|SESSION|LOCAL|MYSQL] STATUS [LIKE pattern | WHERE condition]`.
fn status(rest: &str) -> Option<String> {
    let scopes = ["STATUS", "GLOBAL STATUS", "SESSION STATUS", "LOCAL STATUS", "MYSQL STATUS"];
    let rest = scopes.iter().find_map(|words| after(rest, words))?;
    let filter = condition(rest)?;
    Some(format!(
        "SELECT * FROM (SELECT Variable_Name AS Variable_name, Variable_Value AS Value FROM stats.stats_mysql_global) \
         WHERE 1{filter} ORDER BY Variable_name"
    ))
}

/// ` AND ...` for what follows a list of names and values; `None` where it is no filter.
fn condition(rest: &str) -> Option<String> {
    if rest.is_empty() {
        Some(String::new())
    } else if let Some(pattern) = after(rest, "LIKE") {
        Some(format!(" AND Variable_name LIKE {pattern} ESCAPE '\\'"))
    } else {
        Some(format!(" AND ({})", after(rest, "WHERE")?))
    }
}

/// `SHOW [GLOBAL|SESSION|LOCAL|ALL|MYSQL|ADMIN|SQLITESERVER] VARIABLES [LIKE pattern | WHERE condition]`: the variables of this
/// daemon; a filter finds those of a MySQL server, too, which drivers and tools ask for by name.
fn variables(admin: &Admin, client: &Client, rest: &str) -> Option<Result<Answer, SqlError>> {
    let scopes = [
        ("VARIABLES", ""),
        ("GLOBAL VARIABLES", ""),
        ("SESSION VARIABLES", ""),
        ("LOCAL VARIABLES", ""),
        ("ALL VARIABLES", ""),
        ("MYSQL VARIABLES", "mysql-"),
        ("ADMIN VARIABLES", "admin-"),
        ("SQLITESERVER VARIABLES", "sqliteserver-"),
    ];
    let scope = scopes.iter().find_map(|(words, prefix)| after(rest, words).map(|rest| (*prefix, rest)));
    let (prefix, rest) = scope?;
    let filter = condition(rest)?;
    let mut source = match client.role {
        Role::Admin => VARIABLES.to_owned(),
        Role::Stats => "SELECT '' AS Variable_name, '' AS Value WHERE 0".to_owned(),
    };
    if prefix.is_empty() && !filter.is_empty() {
        let read_only = client.role == Role::Stats || admin.check_writable().is_err();
        let of_server = SYSTEM.iter().map(|(name, value)| (*name, value.unwrap_or_default()));
        let read_only = READ_ONLY.iter().map(|name| (*name, if read_only { "ON" } else { "OFF" }));
        let rows = of_server.chain(read_only).map(|(name, value)| format!("('{name}', {})", literal(value)));
        source.push_str(&format!(" UNION ALL VALUES {}", rows.collect::<Vec<_>>().join(", ")));
    }
    let of_scope = literal(&format!("{prefix}%"));
    let sql = format!(
        "SELECT * FROM ({source}) WHERE Variable_name LIKE {of_scope}{filter} ORDER BY Variable_name"
    );
    Some(run_sql(admin, client, &sql))
}

/// The query behind what ProxySQL has a short form of.
fn configured(rest: &str) -> Option<&'static str> {
    match rest.to_ascii_uppercase().as_str() {
        "MYSQL USERS" => Some("SELECT * FROM main.mysql_users ORDER BY username, backend"),
        "MYSQL SERVERS" => Some("SELECT * FROM main.mysql_servers ORDER BY hostgroup_id, hostname, port"),
        _ => None,
    }
}
