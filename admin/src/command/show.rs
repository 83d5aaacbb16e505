//! SHOW.

use super::text::{after, literal, unquote};
use crate::answer::Answer;
use crate::current::Client;
use crate::error::failed;
use crate::{Admin, STATEMENT_LIMIT};
use wire::SqlError;

const VARIABLES: &str =
    "SELECT variable_name AS Variable_name, variable_value AS Value FROM main.global_variables";

/// Answers `SHOW ...`; `rest` is what follows the word. `None`: not a SHOW known here.
pub(super) fn run(admin: &Admin, client: &Client, rest: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(rest) = after(rest, "CREATE TABLE") {
        return Some(create_table(admin, rest));
    }
    if after(rest, "DATABASES") == Some("") || after(rest, "SCHEMAS") == Some("") {
        return Some(admin.store.lock().query("PRAGMA database_list"));
    }
    if after(rest, "WARNINGS").is_some() {
        let columns = ["Level", "Code", "Message"].map(str::to_owned).to_vec();
        return Some(Ok(Answer::texts(columns, Vec::new())));
    }
    let sql = tables(rest).or_else(|| processlist(rest)).or_else(|| variables(rest))?;
    Some(admin.store.lock().client_statement(client, &sql, STATEMENT_LIMIT))
}

/// The query behind `SHOW TABLES [FROM|IN db] [LIKE pattern]`.
fn tables(rest: &str) -> Option<String> {
    let rest = after(rest, "TABLES")?;
    let (schema, rest) = match after(rest, "FROM").or_else(|| after(rest, "IN")) {
        Some(rest) => {
            let (schema, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (unquote(schema), rest)
        }
        None => ("main".to_owned(), rest),
    };
    let filter = match rest {
        "" => String::new(),
        rest => format!(" AND name LIKE {} ESCAPE '\\'", after(rest, "LIKE")?),
    };
    Some(format!(
        "SELECT name AS tables FROM \"{}\".sqlite_master \
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'{filter} ORDER BY name",
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

/// The query behind `SHOW [GLOBAL|SESSION|ALL|MYSQL|ADMIN] VARIABLES [LIKE pattern | WHERE condition]`.
fn variables(rest: &str) -> Option<String> {
    let scopes = [
        ("VARIABLES", ""),
        ("GLOBAL VARIABLES", ""),
        ("SESSION VARIABLES", ""),
        ("ALL VARIABLES", ""),
        ("MYSQL VARIABLES", "mysql-"),
        ("ADMIN VARIABLES", "admin-"),
        ("SQLITESERVER VARIABLES", "sqliteserver-"),
    ];
    let scope = scopes.iter().find_map(|(words, prefix)| after(rest, words).map(|rest| (prefix, rest)));
    let (prefix, rest) = scope?;
    let filter = if rest.is_empty() {
        String::new()
    } else if let Some(pattern) = after(rest, "LIKE") {
        format!(" AND Variable_name LIKE {pattern} ESCAPE '\\'")
    } else {
        format!(" AND ({})", after(rest, "WHERE")?)
    };
    let of_scope = literal(&format!("{prefix}%"));
    Some(format!(
        "SELECT * FROM ({VARIABLES}) WHERE Variable_name LIKE {of_scope}{filter} ORDER BY Variable_name"
    ))
}

fn create_table(admin: &Admin, rest: &str) -> Result<Answer, SqlError> {
    let (schema, name) = match rest.split_once('.') {
        Some((schema, name)) => (Some(unquote(schema.trim())), unquote(name.trim())),
        None => (None, unquote(rest)),
    };
    let store = admin.store.lock();
    let mut ddl = store.live.ddl(schema.as_deref(), &name).map(str::to_owned);
    if ddl.is_none() {
        let schema = schema.as_deref().unwrap_or("main").replace('"', "\"\"");
        let sql = format!("SELECT sql FROM \"{schema}\".sqlite_master WHERE name = ?1 COLLATE NOCASE");
        ddl = store.conn.query_row(&sql, [&name], |row| row.get(0)).ok();
    }
    let ddl = ddl.ok_or_else(|| failed(format!("no such table: {name}")))?;
    let columns = vec!["table".to_owned(), "Create Table".to_owned()];
    Ok(Answer::texts(columns, vec![vec![Some(name), Some(ddl)]]))
}
