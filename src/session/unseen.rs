//! Answers of our own leave something for the next statement as a server's do: counts, and what there is to complain of. A connection
//! is told of them when a statement reads it there.

use super::classify::Statement;
use super::left_behind::LeftBehind;
use super::local::Answer;
use super::state::Session;
use std::time::Instant;
use wire::backend::{OWN_ANSWER, Request};
use wire::tracker::Outcome;
use wire::{Command, SqlError, WireError};

/// Warnings and errors that no connection has: as an answer of our own has left them, or a connection that was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Complaints {
    /// None.
    Gone,
    /// This one.
    Error(SqlError),
    /// What was read of them.
    LeftBehind(Box<LeftBehind>),
}

/// Has a server take its warnings and errors away: MariaDB keeps them over a statement that reads no table; a derived one is enough.
pub const CLEAR: &str = "SELECT 1 FROM (SELECT 1) t";
/// A result set that changes neither FOUND_ROWS() nor warnings and errors.
const LEAVE_ALL: &str = "SHOW WARNINGS LIMIT 0";
/// Longest MESSAGE_TEXT of SIGNAL.
const MESSAGE: usize = 128;

impl Session<'_> {
    /// Takes note of an answer of our own.
    pub(super) fn note_answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Alive(_) | Answer::End | Answer::Text(_) | Answer::Several(..) => {}
            Answer::Error(_) => self.warnings = 1,
            Answer::Ok | Answer::Note(_) | Answer::Row(..) | Answer::Table { .. } | Answer::Status(..) => {
                self.warnings = 0;
            }
        }
        match answer {
            Answer::Ok | Answer::Alive(_) | Answer::Note(_) => self.counts.note_here(0, None),
            Answer::End => self.counts.note_here(-1, None),
            Answer::Text(_) => {}
            Answer::Several(_, last) => self.note_answer(last),
            Answer::Error(error) => {
                self.counts.note_here(-1, None);
                self.unseen = Some(Complaints::Error(error.clone()));
            }
            Answer::Row(..) => {
                self.counts.note_here(-1, Some(1));
                if !self.is_mariadb() {
                    self.unseen = Some(Complaints::Gone);
                }
            }
            Answer::Table { found, .. } => self.counts.note_here(-1, *found),
            // Of tables, as servers see it.
            Answer::Status(status, _) => {
                self.counts.note_here(-1, Some(status.found().count() as u64));
                self.unseen = Some(Complaints::Gone);
            }
        }
    }
    /// Takes note of a server's answer, after which there may be others.
    pub(super) fn see(&mut self, statement: &Statement, outcome: &Outcome) {
        let Some(lease) = self.lease.as_mut().filter(|_| self.unseen.is_some()) else { return };
        let complaint = outcome.error.is_some() || outcome.warnings != 0;
        if complaint || !(lease.backend().is_mariadb() && statement.keeps_diagnostics()) {
            self.unseen = None;
        }
    }
    /// Has the connection in hand know what the statement reads of our own answers.
    pub(super) fn bring_unseen(&mut self, statement: &Statement) -> Result<(), WireError> {
        let counts = if statement.reads_counts { self.counts.take_here() } else { None };
        let complaints = if statement.reads_diagnostics { self.unseen.take() } else { None };
        let Some(lease) = self.lease.as_mut().filter(|_| counts.is_some() || complaints.is_some()) else {
            return Ok(());
        };
        let statements = statements(counts, complaints.as_ref());
        let mut requests: Vec<Request<'_>> =
            statements.iter().map(|sql| (Command::COM_QUERY, sql.as_bytes())).collect();
        if matches!(counts, Some((0, _))) {
            requests.push((Command::COM_PING, b""));
        }
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        // SIGNAL is answered with its error.
        if let Err(error) = lease.backend().exchange(&requests, OWN_ANSWER, deadline) {
            self.unseen = complaints;
            return Err(error);
        }
        if let Some(complaints) = complaints {
            self.hold.own_diagnostics = true;
            let made = match complaints {
                Complaints::Gone => None,
                Complaints::Error(error) => Some(error),
                Complaints::LeftBehind(left) => left.last(),
            };
            self.hold.complaint = made.is_some();
            self.hold.error_state = made.map(|error| error.state);
            self.hold.warnings = 1;
        }
        Ok(())
    }
}

/// Statements that leave these counts, but for a ROW_COUNT() of 0, and these complaints.
fn statements(counts: Option<(i64, Option<u64>)>, complaints: Option<&Complaints>) -> Vec<String> {
    let mut statements = Vec::new();
    match (counts, complaints) {
        (Some((_, Some(rows))), Some(_)) => statements.push(select(rows, " FROM (SELECT 1) t")),
        (Some((_, Some(rows))), None) => statements.push(select(rows, "")),
        (_, Some(Complaints::Gone)) => statements.push(CLEAR.to_owned()),
        _ => {}
    }
    match complaints {
        Some(Complaints::Error(error)) => statements.push(signal(error)),
        Some(Complaints::LeftBehind(left)) => statements.extend(left.last().as_ref().map(signal)),
        Some(Complaints::Gone) | None => {}
    }
    if statements.is_empty() && matches!(counts, Some((-1, _))) {
        statements.push(LEAVE_ALL.to_owned());
    }
    statements
}

/// A result of so many rows.
fn select(rows: u64, from: &str) -> String {
    match rows {
        0 => "SELECT 1 FROM (SELECT 1) t WHERE FALSE".to_owned(),
        _ => (0..rows).map(|_| format!("SELECT 1{from}")).collect::<Vec<_>>().join(" UNION ALL "),
    }
}

/// The statement that fails with an error. How quotes are read depends on the sql_mode and the character set, so it has none
/// of its text.
fn signal(error: &SqlError) -> String {
    let text: String = error.message.chars().take(MESSAGE).collect();
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let state: String =
        error.state.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(|&b| b as char).collect();
    format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO={}, MESSAGE_TEXT=_utf8mb4 x'{hex}'", error.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_complaints_are_made_by_as_few_statements_as_leave_them() {
        let error = Complaints::Error(SqlError::new(1094, "HY000", "a'b"));
        let signal = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=1094, MESSAGE_TEXT=_utf8mb4 x'612762'";
        for (counts, complaints, expected) in [
            (None, Some(&Complaints::Gone), vec![CLEAR]),
            (None, Some(&error), vec![signal]),
            (Some((0, None)), None, vec![]),
            (Some((-1, None)), None, vec![LEAVE_ALL]),
            (Some((-1, Some(1))), None, vec!["SELECT 1"]),
            (Some((-1, Some(0))), None, vec!["SELECT 1 FROM (SELECT 1) t WHERE FALSE"]),
            (Some((0, Some(2))), None, vec!["SELECT 1 UNION ALL SELECT 1"]),
            (Some((-1, Some(1))), Some(&Complaints::Gone), vec![CLEAR]),
            (Some((-1, Some(1))), Some(&error), vec![CLEAR, signal]),
        ] {
            assert_eq!(statements(counts, complaints), expected, "{counts:?} {complaints:?}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let sql = super::signal(&SqlError::new(1, "HY000", "ü".repeat(200)));
        assert!(sql.ends_with(&format!("x'{}'", "c3bc".repeat(MESSAGE))), "{sql}");
    }
}
