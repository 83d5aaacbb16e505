//! The command dialect: a statement is a command of ProxySQL's admin, something drivers send when they connect, or SQL.

mod casts;
mod checksum;
mod columns;
mod config_file;
pub(crate) mod load_save;
mod load_user;
pub(crate) mod packet;
pub(crate) mod prepared;
mod process;
mod save;
mod select;
pub(crate) mod set;
mod show;
pub(crate) mod text;
mod truncate;

use crate::answer::Answer;
use crate::current::{Client, Role};
use crate::error::{failed, not_allowed};
use crate::{Admin, STATEMENT_LIMIT};
pub(crate) use packet::run as run_packet;
use text::{after, collapse, first_word};
use wire::SqlError;

/// Statements that open or end what this interface does not have: transactions and table locks. And FLUSH, as tools send it: what
/// is there to be flushed has commands of its own.
const NO_OPERATION: &[&str] = &[
    "BEGIN",
    "START TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE SAVEPOINT",
    "LOCK TABLES",
    "LOCK TABLE",
    "UNLOCK TABLES",
    "UNLOCK TABLE",
    "FLUSH LOGS",
    "FLUSH HOSTS",
    "FLUSH TABLES",
    "FLUSH PRIVILEGES",
    "FLUSH STATUS",
    "USE",
];

/// Statements that reach other files or the connection's own settings.
const REFUSED: &[&str] = &["PRAGMA", "ATTACH", "DETACH"];

/// First words of statements that are SQL whatever follows; the first ones of these change rows.
const SQL: &[&str] = &["INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "EXPLAIN"];
const CHANGES: usize = 4;

/// Answers the statements of a packet; of several, what the last one is answered.
pub(crate) fn run(admin: &Admin, client: &Client, sql: &str) -> Result<Answer, SqlError> {
    let outcome = run_packet(admin, client, sql, true);
    match (outcome.error, outcome.answers.into_iter().next_back()) {
        (Some(error), _) => Err(error),
        (None, answer) => Ok(answer.unwrap_or_else(Answer::done)),
    }
}

/// Answers one statement, as `text::statements` cuts them.
fn run_one(admin: &Admin, client: &Client, sql: &str) -> Result<Answer, SqlError> {
    // A long list of rows need not be looked through for words.
    if SQL.contains(&first_word(sql).as_str()) {
        return run_sql(admin, client, sql);
    }
    let statement = collapse(sql);
    let is = |words: &&str| after(&statement, words).is_some();
    if NO_OPERATION.iter().any(is) {
        return Ok(Answer::done());
    }
    if REFUSED.iter().any(is) {
        return Err(not_allowed());
    }
    command(admin, client, &statement).unwrap_or_else(|| run_sql(admin, client, sql))
}

/// Answers what is not SQL; `None` where the statement is.
fn command(admin: &Admin, client: &Client, statement: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(rest) = after(statement, "SET") {
        return Some(set::run(admin, client, rest));
    }
    if let Some(rest) = after(statement, "SHOW") {
        return show::run(admin, client, rest);
    }
    if let Some(rest) = after(statement, "SELECT") {
        let own = match client.role {
            Role::Admin => config_file::select(admin, rest).or_else(|| checksum::select(admin, rest)),
            Role::Stats => None,
        };
        return own.or_else(|| select::run(admin, client, rest));
    }
    if let Some(rest) = after(statement, "DESCRIBE").or_else(|| after(statement, "DESC")) {
        return Some(columns::describe(admin, client, rest));
    }
    // Readers of statistics have no commands: what they send is SQL, or an error of it.
    if client.role == Role::Stats {
        return None;
    }
    if let Some((module, way)) = load_save::parse(statement) {
        return Some(load_save::run(admin, module, way));
    }
    if let Some(answer) = load_user::run(admin, statement).or_else(|| config_file::run(admin, statement)) {
        return Some(answer);
    }
    if let Some(answer) = checksum::run(admin, statement) {
        return Some(answer);
    }
    if let Some(rest) = after(statement, "TRUNCATE") {
        return truncate::run(admin, after(rest, "TABLE").unwrap_or(rest));
    }
    process::run(admin, statement)
}

/// What statements say of transactions: whether the last of them begins one, or ends it. `None`: nothing.
fn transaction(statements: &[String]) -> Option<bool> {
    let of_one = |statement: &String| match first_word(statement).as_str() {
        "BEGIN" | "START" => Some(true),
        "COMMIT" => Some(false),
        "ROLLBACK" => after(&collapse(statement), "ROLLBACK TO").is_none().then_some(false),
        _ => None,
    };
    statements.iter().rev().find_map(of_one)
}

/// Whether a statement is SQL for certain, and no command.
fn is_sql(admin: &Admin, client: &Client, sql: &str) -> bool {
    match first_word(sql).as_str() {
        "SELECT" => {
            let own = |rest: &str| {
                after(rest, "CONFIG").is_some()
                    || checksum::is_global(rest)
                    || select::is_own(admin, client, rest)
            };
            !after(&collapse(sql), "SELECT").is_some_and(own)
        }
        word => SQL.contains(&word),
    }
}

/// Runs SQL: beside others where it only reads.
fn run_sql(admin: &Admin, client: &Client, sql: &str) -> Result<Answer, SqlError> {
    let changes = SQL.iter().take(CHANGES).any(|word| first_word(sql) == *word);
    if (!changes || client.role == Role::Stats)
        && let Some(answer) = admin.store.read(client, sql)?
    {
        return Ok(answer);
    }
    let may_change = admin.check_writable().is_ok();
    admin.store.lock_for_client()?.client_statement(client, sql, STATEMENT_LIMIT, may_change)
}

impl Admin {
    /// An error while `admin-read_only` is on.
    pub(crate) fn check_writable(&self) -> Result<(), SqlError> {
        let published = self.published.lock();
        let read_only = published.variables.as_ref().is_some_and(|variables| variables.admin_read_only);
        if read_only { Err(read_only_error()) } else { Ok(()) }
    }
}

/// What a change is answered while `admin-read_only` is on.
pub(crate) fn read_only_error() -> SqlError {
    failed("the admin interface is read-only (admin-read_only); PROXYSQL READWRITE ends that")
}
