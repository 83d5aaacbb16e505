//! What a statement leaves for the next one to read, and what is done so that it is this session's: ids, warnings and errors.

use super::classify::Statement;
use super::commands::Kind;
use super::named_id::may_name;
use super::state::{Role, Session};
use super::unseen::CLEAR;
use std::time::Instant;
use wire::WireError;
use wire::backend::OWN_ANSWER;
use wire::channel::Channel;
use wire::tracker::Outcome;

impl Session<'_> {
    /// What the next statement may read of this one.
    /// `named`: the id that it reports may be one that the statement has named.
    pub(super) fn note_readable(&mut self, statement: &Statement, outcome: &Outcome, named: bool) {
        if outcome.last_insert_id != 0 {
            let before = std::mem::replace(&mut self.insert_id, outcome.last_insert_id);
            if !self.hold.own_insert_id {
                self.hold.note_reported(before, named);
            }
            self.hold.named_insert_id = named;
            self.hold.unknown_insert_id = false;
        } else if (statement.returns_rows || statement.sets_insert_id) && outcome.last_result.is_some() {
            self.hold.note_unknown_insert_id();
        }
        let complaint = outcome.error.is_some() || outcome.warnings != 0;
        self.warnings = if outcome.error.is_some() { 1 } else { outcome.warnings };
        self.hold.own_diagnostics |= complaint;
        self.hold.complaint = complaint || self.hold.complaint && statement.keeps_diagnostics();
        if complaint {
            self.hold.warnings = outcome.warnings;
            self.hold.error_state = outcome.error.as_ref().map(|error| error.state);
        }
        self.counts.note(outcome, statement.calculates_rows);
        self.see(statement, outcome);
        let told_by_none = statement.calculates_rows || statement.sets_insert_id;
        self.hold.linger = self.hold.complaint || told_by_none || self.counts.asked || named;
    }
    /// Whether the command at hand may have named the id that its answer reports.
    pub(super) fn may_name(&mut self, client: &Channel, role: &Role, kind: Kind, id: u64) -> bool {
        let Some(command) = client.last_command().filter(|command| command.head.len() == command.length)
        else {
            return true;
        };
        let argument = command.head.get(1..).unwrap_or_default();
        let quoting = self.quoting();
        match role {
            _ if kind == Kind::Load => true,
            Role::Execute(statement) => {
                // Behind the statement's id, flags, and the number of executions.
                let parameters = argument.get(9..).unwrap_or_default();
                self.statements.get(*statement).is_none_or(|open| {
                    // What was sent in pieces is not at hand any more.
                    open.long_data || may_name(id, open.text.sql(), parameters, quoting)
                })
            }
            _ => may_name(id, argument, b"", quoting),
        }
    }
    /// Makes LAST_INSERT_ID() on this connection what it is in this session, instead of what another left there. What else can be read
    /// there is lost by that, and told the connection again if the statement reads it.
    pub(super) fn bring_insert_id(&mut self, statement: &Statement) -> Result<(), WireError> {
        if statement.reads_diagnostics {
            self.read_complaints()?;
        }
        if self.hold.unproven_insert_id.is_some() {
            self.ask_for_insert_id()?;
            if self.hold.own_insert_id {
                return Ok(());
            }
        }
        // A server without DO has no ids of its sessions either.
        self.ask_here(&format!("DO LAST_INSERT_ID({})", self.insert_id))?;
        self.hold.own_insert_id = true;
        self.counts.moved();
        Ok(())
    }
    /// Reads LAST_INSERT_ID() before the connection is gone that knows it. One that is not the session's own, nor what was reported,
    /// is another session's: then it is as before.
    pub(super) fn ask_for_insert_id(&mut self) -> Result<(), WireError> {
        let there = self.ask_number_here("SELECT LAST_INSERT_ID()")?;
        let reported = std::mem::take(&mut self.hold.reported_insert_ids);
        match (there, self.hold.unproven_insert_id.take()) {
            (Some(id), Some(before)) if id != self.insert_id && !reported.contains(&id) => {
                self.insert_id = before;
            }
            (there, _) => {
                self.insert_id = there.unwrap_or(self.insert_id);
                self.hold.own_insert_id = true;
            }
        }
        self.hold.unknown_insert_id = false;
        self.hold.named_insert_id = false;
        Ok(())
    }
    /// Reads FOUND_ROWS() before the connection is gone that knows it.
    pub(super) fn ask_for_found_rows(&mut self) -> Result<(), WireError> {
        if self.counts.is_found_there()
            && let Some(found) = self.ask_number_here("SELECT FOUND_ROWS()")?
        {
            self.counts.learn_found(found);
        }
        Ok(())
    }
    /// Has the server report the variables that it set back after SET STATEMENT, which it does with the next change, so that it does
    /// not with another session's.
    pub(super) fn hear_what_is_set_back(&mut self) -> Result<(), WireError> {
        if self.hold.set_back.is_some() {
            self.ask_here("SET sql_notes=@@sql_notes")?;
        }
        Ok(())
    }
    /// Takes away warnings and errors that another session left on this connection, and with them what else can be read there.
    pub(super) fn clear_diagnostics(&mut self) -> Result<(), WireError> {
        self.ask_here(CLEAR)?;
        self.hold.own_diagnostics = true;
        // It has counts of its own.
        self.counts.moved();
        Ok(())
    }
    /// The rows of a statement of our own on the connection in hand; none if the server refuses it.
    pub(super) fn ask_here(&mut self, sql: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, WireError> {
        let Some(lease) = &mut self.lease else { return Ok(Vec::new()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        match lease.backend().query(sql, OWN_ANSWER, deadline) {
            Ok(answer) => Ok(answer.rows),
            Err(WireError::Sql(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
    fn ask_number_here(&mut self, sql: &str) -> Result<Option<u64>, WireError> {
        let value = self.ask_here(sql)?.into_iter().flatten().flatten().next();
        Ok(value.and_then(|value| String::from_utf8(value).ok()?.parse().ok()))
    }
}
