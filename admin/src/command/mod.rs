//! The command dialect: a statement is a command of ProxySQL's admin, something drivers send when they connect, or SQL.

mod config_file;
pub(crate) mod load_save;
mod select;
pub(crate) mod set;
mod show;
mod text;

use crate::answer::Answer;
use crate::current::Client;
use crate::error::{failed, not_allowed};
use crate::{Admin, ProcessCommand, STATEMENT_LIMIT};
use text::{after, collapse, strip};
use wire::SqlError;

/// Statements that open or end what this interface does not have: transactions and table locks.
const NO_OPERATION: &[&str] = &[
    "BEGIN",
    "START TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "LOCK TABLES",
    "LOCK TABLE",
    "UNLOCK TABLES",
    "UNLOCK TABLE",
    "USE",
];

/// Statements that reach other files or the connection's own settings.
const REFUSED: &[&str] = &["PRAGMA", "ATTACH", "DETACH"];

/// Answers one statement.
pub(crate) fn run(admin: &Admin, client: &Client, sql: &str) -> Result<Answer, SqlError> {
    if sql.contains('\0') {
        return Err(failed("the statement contains a NUL byte"));
    }
    let sql = sql.trim();
    if sql.is_empty() {
        return Err(SqlError::new(1065, "42000", "Query was empty"));
    }
    let sql = strip(sql);
    let statement = collapse(sql);
    if sql.is_empty() || NO_OPERATION.iter().any(|words| after(&statement, words).is_some()) {
        return Ok(Answer::done());
    }
    if REFUSED.iter().any(|word| after(&statement, word).is_some()) {
        return Err(not_allowed());
    }
    match command(admin, client, &statement) {
        Some(answer) => answer,
        None => admin.store.lock().client_statement(client, sql, STATEMENT_LIMIT),
    }
}

/// Answers what is not SQL; `None` where the statement is.
fn command(admin: &Admin, client: &Client, statement: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(rest) = after(statement, "SET") {
        return Some(set::run(admin, rest));
    }
    if let Some(rest) = after(statement, "SHOW") {
        return show::run(admin, client, rest);
    }
    if let Some(rest) = after(statement, "SELECT") {
        return config_file::select(admin, rest).or_else(|| select::run(admin, rest));
    }
    if let Some((module, way)) = load_save::parse(statement) {
        return Some(load_save::run(admin, module, way));
    }
    if let Some(answer) = config_file::run(admin, statement) {
        return Some(answer);
    }
    if let Some(rest) = after(statement, "TRUNCATE") {
        let table = after(rest, "TABLE").unwrap_or(rest);
        let known = ["stats_mysql_query_digest", "stats.stats_mysql_query_digest"];
        let known = known.iter().any(|name| name.eq_ignore_ascii_case(table));
        return known.then(|| process_command(admin, ProcessCommand::TruncateDigests));
    }
    if let Some(rest) = after(statement, "KILL") {
        return Some(kill(rest).and_then(|kill| process_command(admin, kill)));
    }
    let process = match after(statement, "PROXYSQL")?.to_ascii_uppercase().as_str() {
        "SHUTDOWN" => ProcessCommand::Shutdown,
        "SHUTDOWN SLOW" => ProcessCommand::ShutdownSlow,
        _ => return None,
    };
    Some(process_command(admin, process))
}

fn process_command(admin: &Admin, command: ProcessCommand) -> Result<Answer, SqlError> {
    admin.daemon().and_then(|daemon| daemon.command(command)).map(|()| Answer::done())
}

/// `KILL [CONNECTION|QUERY] n`, whatever follows KILL.
fn kill(rest: &str) -> Result<ProcessCommand, SqlError> {
    let (make, id): (fn(u32) -> ProcessCommand, &str) = match after(rest, "QUERY") {
        Some(id) => (ProcessCommand::KillQuery, id),
        None => (ProcessCommand::KillConnection, after(rest, "CONNECTION").unwrap_or(rest)),
    };
    let usage = || {
        failed(
            "KILL needs a number: KILL CONNECTION n or KILL QUERY n, with a SessionID of stats_mysql_processlist",
        )
    };
    id.parse().map(make).map_err(|_| usage())
}
