//! Packets: one statement each, or several from clients that may send them so.
//!
//! Statements of SQL that follow each other take effect together or not at all. A command takes effect when it runs. The first
//! error ends the packet.

use super::text::statements;
use super::{is_sql, run_one, transaction};
use crate::answer::Answer;
use crate::current::{Client, Role};
use crate::error::{failed, from_sqlite, printable};
use crate::{Admin, STATEMENT_LIMIT};
use std::time::Instant;
use wire::SqlError;

/// What a packet led to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Answers of what took effect.
    pub answers: Vec<Answer>,
    /// What ended the packet early.
    pub error: Option<SqlError>,
    /// Whether the client believes afterwards that a transaction is open; `None`: as before.
    pub begun: Option<bool>,
}

/// Answers a packet; `many` if it may hold several statements.
pub(crate) fn run(admin: &Admin, client: &Client, sql: &str, many: bool) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.error = run_all(admin, client, sql, many, &mut outcome).err().map(printable);
    outcome
}

fn run_all(
    admin: &Admin,
    client: &Client,
    sql: &str,
    many: bool,
    outcome: &mut Outcome,
) -> Result<(), SqlError> {
    if sql.contains('\0') {
        return Err(failed("the statement contains a NUL byte"));
    }
    if sql.trim().is_empty() {
        return Err(SqlError::new(1065, "42000", "Query was empty"));
    }
    let statements = statements(sql);
    outcome.begun = transaction(&statements);
    let answers = &mut outcome.answers;
    match statements.as_slice() {
        // Comments alone, as mysqldump writes them.
        [] => answers.push(Answer::done()),
        [one] => answers.push(run_one(admin, client, one)?),
        _ if !many => {
            let text =
                "several statements in one packet need the client's option for them (multi statements)";
            return Err(SqlError::new(1064, "42000", text));
        }
        several => {
            let mut rest = several;
            while let Some(first) = rest.first() {
                let of_sql = rest.iter().take_while(|sql| is_sql(admin, client, sql)).count();
                if of_sql > 1 && client.role == Role::Admin {
                    answers.extend(together(admin, client, &rest[..of_sql])?);
                    rest = &rest[of_sql..];
                } else {
                    answers.push(run_one(admin, client, first)?);
                    rest = &rest[1..];
                }
            }
        }
    }
    Ok(())
}

/// Runs statements of SQL, all or none.
fn together(admin: &Admin, client: &Client, statements: &[String]) -> Result<Vec<Answer>, SqlError> {
    let may_change = admin.check_writable().is_ok();
    let until = Instant::now() + STATEMENT_LIMIT;
    let store = admin.store.lock_for_client()?;
    store.conn.execute_batch("SAVEPOINT packet").map_err(|error| from_sqlite(&error))?;
    let answers = statements.iter().map(|sql| {
        let left = until.saturating_duration_since(Instant::now());
        store.client_statement(client, sql, left, may_change)
    });
    let answers = answers.collect::<Result<Vec<_>, _>>();
    let ended = match &answers {
        Ok(_) => store.conn.execute_batch("RELEASE packet").map_err(|error| from_sqlite(&error)),
        Err(_) => Ok(()),
    };
    if answers.is_err() || ended.is_err() {
        store.undo("packet");
    }
    ended?;
    answers
}
