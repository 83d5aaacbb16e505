//! PROXYSQL ..., KILL, PULL VERSION and SAVE MYSQL DIGEST: what concerns the process and not its configuration.

use super::text::after;
use crate::answer::Answer;
use crate::error::failed;
use crate::{Admin, ConfigSet, ProcessCommand};
use wire::SqlError;

const COMMANDS: &[(&str, ProcessCommand)] = &[
    ("SHUTDOWN", ProcessCommand::Shutdown),
    ("SHUTDOWN SLOW", ProcessCommand::ShutdownSlow),
    ("RESTART", ProcessCommand::Restart),
    ("KILL", ProcessCommand::Kill),
    ("PAUSE", ProcessCommand::Pause),
    ("RESUME", ProcessCommand::Resume),
    ("STOP", ProcessCommand::Stop),
    ("START", ProcessCommand::Start),
    ("RELOAD TLS", ProcessCommand::ReloadTls),
    ("FLUSH MYSQL CLIENT HOSTS", ProcessCommand::FlushClientHosts),
];

/// What is to be flushed in ProxySQL and never kept here: the log goes to standard error as it is written, and no results are kept.
const NOTHING_KEPT: &[&str] = &["FLUSH LOGS", "FLUSH QUERY CACHE", "FLUSH MYSQL QUERY CACHE"];

/// Answers a command; `None` where it is none of these.
pub(super) fn run(admin: &Admin, statement: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(rest) = after(statement, "KILL") {
        return Some(kill(rest).and_then(|kill| tell(admin, kill)));
    }
    if statement.eq_ignore_ascii_case("PULL VERSION MYSQL SERVERS") {
        return Some(admin.daemon().map(|daemon| {
            Answer::numbers(vec!["version".into()], vec![vec![Some(daemon.servers_version().to_string())]])
        }));
    }
    if statement.eq_ignore_ascii_case("SAVE MYSQL DIGEST TO DISK") {
        let saved = admin.daemon().and_then(|daemon| daemon.save_digests());
        return Some(saved.map(|affected| Answer::Ok { affected, info: String::new() }));
    }
    let command = after(statement, "PROXYSQL")?;
    let is = |words: &str| words.eq_ignore_ascii_case(command);
    if let Some((_, command)) = COMMANDS.iter().find(|(words, _)| is(words)) {
        return Some(tell(admin, *command));
    }
    if NOTHING_KEPT.iter().any(|words| is(words)) {
        return Some(Ok(Answer::done()));
    }
    if is("FLUSH CONFIGDB") {
        return Some(reopen(admin));
    }
    let read_only = if is("READONLY") {
        true
    } else if is("READWRITE") {
        false
    } else {
        return None;
    };
    Some(set_read_only(admin, read_only))
}

fn tell(admin: &Admin, command: ProcessCommand) -> Result<Answer, SqlError> {
    let daemon = admin.daemon()?;
    if command == ProcessCommand::Restart {
        admin.check_restart()?;
    }
    daemon.command(command).map(|()| Answer::done())
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

/// Uses the database file that is there now.
fn reopen(admin: &Admin) -> Result<Answer, SqlError> {
    let _one_at_a_time = admin.moving.lock();
    let mut store = admin.store.lock();
    admin.store.forget_readers();
    store.reopen_file().map_err(failed)?;
    Ok(Answer::done())
}

/// Changes the variable in force alone, so that the way back is open while nothing else may be changed.
fn set_read_only(admin: &Admin, read_only: bool) -> Result<Answer, SqlError> {
    let _one_at_a_time = admin.moving.lock();
    let daemon = admin.daemon()?;
    let variables = admin.published.lock().variables.clone();
    let mut variables = variables.ok_or_else(|| failed("nothing was loaded to runtime yet"))?;
    variables.admin_read_only = read_only;
    daemon.publish(ConfigSet::Variables(Box::new(variables.clone())))?;
    admin.published.lock().variables = Some(variables);
    Ok(Answer::done())
}
