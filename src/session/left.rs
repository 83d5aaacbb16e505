//! What a statement leaves for the next one to read, and what is done so that it is this session's: ids, warnings and errors.

use super::classify::Statement;
use super::state::Session;
use super::unseen::CLEAR;
use std::time::Instant;
use wire::WireError;
use wire::backend::OWN_ANSWER;
use wire::tracker::Outcome;

impl Session<'_> {
    /// What the next statement may read of this one.
    pub(super) fn note_readable(&mut self, statement: &Statement, outcome: &Outcome) {
        if outcome.last_insert_id != 0 {
            let before = std::mem::replace(&mut self.insert_id, outcome.last_insert_id);
            if !self.hold.own_insert_id {
                self.hold.unproven_insert_id.get_or_insert(before);
            }
            self.hold.unknown_insert_id = false;
        } else if statement.returns_rows && outcome.last_result.is_some() {
            self.hold.own_insert_id = true;
            self.hold.unknown_insert_id = true;
            self.hold.unproven_insert_id = None;
        }
        let complaint = outcome.error.is_some() || outcome.warnings != 0;
        self.hold.own_diagnostics |= complaint;
        self.hold.complaint = complaint || self.hold.complaint && statement.keeps_diagnostics();
        self.counts.note(outcome);
        self.see(statement, outcome);
        self.hold.linger = self.hold.complaint || statement.read_by_next || self.counts.asked;
    }
    /// Makes LAST_INSERT_ID() on this connection what it is in this session, instead of what another left there.
    pub(super) fn bring_insert_id(&mut self) -> Result<(), WireError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        if let Some(before) = self.hold.unproven_insert_id.take() {
            let there = lease.backend().query("SELECT LAST_INSERT_ID()", OWN_ANSWER, deadline);
            let reported = self.insert_id.to_string();
            match there.map(|result| result.rows.into_iter().flatten().next().flatten()) {
                Ok(Some(id)) if id != reported.as_bytes() => self.insert_id = before,
                Ok(_) | Err(WireError::Sql(_)) => {
                    self.hold.own_insert_id = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        let text = format!("DO LAST_INSERT_ID({})", self.insert_id);
        match lease.backend().query(&text, OWN_ANSWER, deadline) {
            // A server without DO has no ids of its sessions either.
            Ok(_) | Err(WireError::Sql(_)) => self.hold.own_insert_id = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }
    /// Reads LAST_INSERT_ID() before the connection is gone that knows it.
    pub(super) fn ask_for_insert_id(&mut self) -> Result<(), WireError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        let answer = lease.backend().query("SELECT LAST_INSERT_ID()", OWN_ANSWER, deadline)?;
        let value = answer.rows.into_iter().flatten().flatten().next();
        let id = value.and_then(|value| String::from_utf8(value).ok()?.parse().ok());
        self.insert_id = id.unwrap_or(self.insert_id);
        self.hold.unknown_insert_id = false;
        Ok(())
    }
    /// Has the server report the variables that it set back after SET STATEMENT, which it does with the next change, so that it does
    /// not with another session's.
    pub(super) fn hear_what_is_set_back(&mut self) -> Result<(), WireError> {
        let Some(lease) = self.lease.as_mut().filter(|_| self.hold.set_back.is_some()) else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        match lease.backend().query("SET sql_notes=@@sql_notes", OWN_ANSWER, deadline) {
            Ok(_) | Err(WireError::Sql(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
    /// Takes away warnings and errors that another session left on this connection.
    pub(super) fn clear_diagnostics(&mut self) -> Result<(), WireError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        match lease.backend().query(CLEAR, OWN_ANSWER, deadline) {
            Ok(_) | Err(WireError::Sql(_)) => self.hold.own_diagnostics = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
