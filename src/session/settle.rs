//! The answer to a command, and its consequences for the session and for the connection in its hands.

use super::classify::Effect;
use super::commands::Kind;
use super::forward::{Last, Relayed, deliver, relay};
use super::hold::Reason;
use super::learn::heed;
use super::local::Answer;
use super::registry::count;
use super::state::{Pending, Role, Session, Step, TRANSACTION};
use super::watch::Watch;
use crate::pool::{Lease, is_restorable};
use std::sync::Arc;
use wire::backend::SURPLUS;
use wire::channel::Channel;
use wire::tracker::{Changes, LASTING, Notices, Outcome, ResponseTracker, Sides};
use wire::{SqlError, StatusFlags, WireError};

/// Errors of a statement that ended with its connection, or, as 1317, perhaps without: the server's shutdown, KILL, and MariaDB's
/// KILL CONNECTION.
const INTERRUPTIONS: [u16; 3] = [1053, 1317, 1927];

impl Session<'_> {
    /// Passes the answer on and draws the consequences.
    pub fn relay(&mut self, client: &mut Channel, pending: &mut Pending) -> Step {
        match self.glance(client, pending) {
            Some(Ok((outcome, last))) => return self.answered(client, pending, &outcome, &last, None),
            Some(Err(error)) => return self.unanswered(pending, &error, 0),
            None => pending.straight = false,
        }
        let numbers = self.process_ids(client, pending.command, &pending.statement);
        let Some(lease) = &mut self.lease else { return Step::End(None) };
        let limit = self.route.timeout.unwrap_or(self.variables.default_query_timeout);
        let deadline = self.started.checked_add(limit);
        let mut watch = Watch::new(self.shared, &self.registered.entry, &self.socket, deadline);
        let backend = lease.backend();
        let before = backend.tracking.as_mut().and_then(|notices| heed(notices, &pending.statement.effect));
        let sides = Sides {
            server: backend.capabilities,
            client: self.capabilities,
            notices: backend.tracking.as_ref(),
            status: backend.status,
            statement: pending.role.new_id(),
            answers: pending.statement.answers(),
            numbers: &numbers,
        };
        let mut tracker = ResponseTracker::new(pending.command, sides);
        let (relayed, volume) = relay(client, &mut backend.channel, &mut tracker, |pause| watch.tick(pause));
        let outcome = tracker.into_outcome();
        lease.count(pending.command, pending.sent, volume.received);
        match relayed {
            Relayed::Done(last) => self.answered(client, pending, &outcome, &last, before),
            Relayed::Lost(error) => self.unanswered(pending, &error, volume.received),
            Relayed::Truncated(error) => {
                lease.log_loss("amid an answer", &error);
                self.drop_lease();
                Step::End(None)
            }
            Relayed::ClientLost => {
                watch.abandon("its client has gone");
                self.drop_lease();
                Step::End(None)
            }
            Relayed::OutOfOrder => {
                self.drop_lease();
                Step::End(Some(SqlError::out_of_order()))
            }
            Relayed::Cancelled => {
                self.drop_lease();
                Step::End(None)
            }
        }
    }
    /// An answer has come to its end: it is counted, the client gets the last piece of it, and the consequences are drawn. `before`: what
    /// the client was to be told of, if the statement has set that and failed.
    fn answered(
        &mut self,
        client: &mut Channel,
        pending: &mut Pending,
        outcome: &Outcome,
        last: &Last,
        before: Option<Notices>,
    ) -> Step {
        self.account(pending.statement.kind, [outcome.affected_rows, outcome.rows]);
        if let Some(error) = &outcome.error {
            self.count_error_of_server(error);
        }
        let Some(lease) = &mut self.lease else { return Step::End(None) };
        if !deliver(client, &mut lease.backend().channel, last) {
            self.drop_lease();
            return Step::End(None);
        }
        if lease.has_surplus() {
            lease.log_loss("after an answer", &SURPLUS);
        }
        if outcome.error.is_some() && before.is_some() {
            lease.backend().tracking = before;
        }
        let named = outcome.last_insert_id != 0
            && self.may_name(client, &pending.role, pending.statement.kind, outcome.last_insert_id);
        self.settle(pending, outcome, named);
        self.unpark();
        Step::Silent
    }
    /// The server was lost before the answer was complete, of which so many bytes have come.
    fn unanswered(&mut self, pending: &Pending, error: &WireError, received: u64) -> Step {
        // A server that has asked for a file has read its command.
        let closed = matches!(error, WireError::Closed) && received == 0;
        if closed && self.part_unread(pending) { Step::Again } else { self.lost(error) }
    }
    /// The server was lost with a statement that it may have executed. Without the state that was on the connection
    /// the session cannot go on.
    pub(super) fn lost(&mut self, error: &WireError) -> Step {
        let told = lost_connection(error);
        self.count_error_of_server(&told);
        if let Some(lease) = &self.lease {
            lease.log_loss("with a statement", error);
            if lease.is_retired() {
                count(&self.shared.registry.counters.offline);
            }
        }
        let stateful = self.hold.reasons.leave_something();
        self.drop_lease();
        self.status.remove(TRANSACTION);
        self.unpark();
        if stateful { Step::End(Some(told)) } else { Step::Answer(Answer::Error(told)) }
    }
    /// Takes note of what a statement has done, and lets the connection go if nothing holds it.
    #[inline]
    fn settle(&mut self, pending: &mut Pending, outcome: &Outcome, named: bool) {
        if self.settle_straight(pending, outcome) {
            return;
        }
        let Pending { statement, role, .. } = pending;
        let (effect, role) = (std::mem::take(&mut statement.effect), std::mem::replace(role, Role::Plain));
        if let Effect::Set(setting) = &effect {
            self.shared.registry.counters.note_setting(setting);
        }
        let Some(lease) = &mut self.lease else { return };
        let (before, sql_mode) = (lease.backend().status, lease.backend().sql_mode);
        if self.sql_mode != sql_mode {
            self.sql_mode = sql_mode;
            *self.shared.sql_mode.lock() = sql_mode;
        }
        if let Some(status) = outcome.status {
            (self.status, lease.backend().status) = (status & LASTING, status);
        }
        self.hold.interrupted =
            outcome.error.as_ref().is_some_and(|error| INTERRUPTIONS.contains(&error.code));
        if let Some(notices) = &mut lease.backend().tracking {
            notices.follow(&outcome.changes);
        }
        // A rule that keeps the connection may do so because of what nothing else tells of.
        let functions = statement.calls.any() && statement.calls.routines(lease.backend().is_mariadb());
        if self.route.keeps_connection || functions {
            lease.touch(self.want.session);
        }
        self.called_functions |= functions && !self.route.ignores_variables;
        let failed = outcome.error.is_some();
        if statement.changes_schema && !failed {
            self.shared.backends.schema_changed();
        }
        // An error tells no status: without autocommit a statement may have opened a transaction before it failed, and a deadlock
        // ends one.
        if failed && !self.expects_autocommit() {
            self.status.insert(StatusFlags::SERVER_STATUS_IN_TRANS);
        }
        self.hold.in_doubt = failed && self.in_transaction();
        let set_back = self.hold.set_back.is_some();
        if (failed || set_back || outcome.changes.state_changed || effect != Effect::Nothing)
            && !self.take_effect(effect, outcome)
        {
            return;
        }
        self.follow_transaction(statement.kind, outcome, before);
        self.note_readable(statement, outcome, named);
        self.settle_role(role, outcome);
        let delayed = !self.variables.connection_delay_multiplex.is_zero();
        let shared = self.lease.as_ref().is_none_or(Lease::multiplexes);
        match self.variables.multiplexing && shared && !self.route.keeps_connection {
            true => self.hold.reasons.remove(Reason::MultiplexingOff),
            false => self.hold.add(Reason::MultiplexingOff),
        }
        if self.called_functions {
            self.hold.add(Reason::StoredFunction);
        }
        if !self.hold.linger && !delayed && !self.must_keep() {
            self.give_back();
        }
    }
    /// Takes note of what a statement, or functions in it, have changed beyond what the status tells. False if the connection is gone
    /// for it.
    #[inline(never)]
    fn take_effect(&mut self, effect: Effect, outcome: &Outcome) -> bool {
        let failed = outcome.error.is_some();
        let Some(lease) = &mut self.lease else { return false };
        // Other statements may change the session by the functions and triggers in them: that they did is all we know.
        let explained = matches!(effect, Effect::Use(_) | Effect::Set(_) | Effect::Hold(_));
        let mut set_back = self.hold.set_back.take();
        if let Effect::Passing(words) = &effect {
            let known = set_back.get_or_insert_default();
            if !known.contains(words.as_str()) && known.len() < MOST_SET_BACK {
                known.push_str(words);
            }
        }
        let explained =
            explained || set_back.as_deref().is_some_and(|words| are_set_back(words, &outcome.changes));
        if !outcome.changes.state_changed || matches!(effect, Effect::Passing(_)) {
            self.hold.set_back = set_back;
        }
        match effect {
            Effect::Nothing | Effect::Passing(_) => {}
            Effect::Use(schema) if !failed => {
                self.enter_schema(outcome.changes.schema.as_ref().unwrap_or(&schema))
            }
            // A connection taken for this statement was there before it failed.
            Effect::Use(_) | Effect::Set(_) if failed && lease.profile() != &self.want.profile => {
                self.drop_lease();
                return false;
            }
            Effect::Use(_) => {}
            Effect::Set(setting) if failed => {
                // Some of several may be in force.
                if setting.assignments.len() > 1 {
                    self.hold.add(Reason::State);
                }
            }
            Effect::Set(setting) => self.learn(&setting, outcome),
            Effect::Hold(Reason::UserVariable) if self.route.ignores_variables => {}
            Effect::Hold(reason) => {
                self.hold.add(reason);
                self.learn_quoting(outcome);
                // EXECUTE IMMEDIATE 'USE ...' and the like.
                outcome.changes.schema.iter().for_each(|schema| self.enter_schema(schema));
            }
            Effect::Release(reason) if !failed => self.hold.reasons.remove(reason),
            Effect::Release(_) => {}
        }
        if outcome.changes.state_changed && !explained && !self.was_elsewhere(outcome) {
            self.hold.add(Reason::State);
            self.learn_quoting(outcome);
            outcome.changes.schema.iter().for_each(|schema| self.enter_schema(schema));
        }
        true
    }
    /// The server went to another schema and came back: it runs a prepared statement in the schema of its preparation.
    fn was_elsewhere(&self, outcome: &Outcome) -> bool {
        let changes = &outcome.changes;
        changes.variables.is_empty()
            && changes.schema.is_some()
            && changes.schema.as_deref() == self.want.profile.schema.as_deref()
    }
    /// The session is in another schema; in none if its name is empty.
    fn enter_schema(&mut self, schema: &str) {
        if self.want.profile.schema.as_deref() != Some(schema) {
            let schema = Some(schema).filter(|schema| !schema.is_empty()).map(Arc::from);
            Arc::make_mut(&mut self.want.profile).schema = schema;
        }
        self.entered = true;
        if let Some(lease) = &mut self.lease {
            lease.set_profile(&self.want.profile);
        }
    }
    /// The connection in hand carries what the session wants, but for a schema that could not be had.
    pub(super) fn profile_in_force(&mut self) {
        let Some(lease) = &mut self.lease else { return };
        let (wanted, schema) = (&self.want.profile, lease.profile().schema.clone());
        match schema == wanted.schema {
            true => lease.set_profile(wanted),
            false => lease.set_profile(&Arc::new(wanted.in_schema(schema))),
        }
    }
    /// What holds a connection beside open transactions: what was set for the next one, until it is over.
    fn follow_transaction(&mut self, kind: Kind, outcome: &Outcome, before: StatusFlags) {
        let succeeded = outcome.error.is_none();
        if self.hold.reasons.contains(Reason::Savepoint) {
            let ended = before.intersects(TRANSACTION) && !self.in_transaction();
            let said = succeeded && matches!(kind, Kind::Commit | Kind::Rollback);
            if ended || said || self.expects_autocommit() {
                self.hold.reasons.remove(Reason::Savepoint);
            }
        } else if kind == Kind::Savepoint && succeeded && !self.in_transaction() && !self.expects_autocommit()
        {
            self.hold.add(Reason::Savepoint);
        }
        if self.hold.reasons.contains(Reason::NextTransaction) {
            let ended = before.intersects(TRANSACTION) && !self.in_transaction();
            let used = outcome.changes.transaction_characteristics.as_deref() == Some("");
            if ended || used {
                self.hold.reasons.remove(Reason::NextTransaction);
            }
        }
        // Autocommit was turned off in a way that nobody told, so it could not be turned off elsewhere.
        if !self.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT) && self.expects_autocommit() {
            self.hold.add(Reason::State);
        }
    }
    /// Whether autocommit is on as far as the session and its server have said.
    pub(super) fn expects_autocommit(&mut self) -> bool {
        match self.want.profile.get("autocommit") {
            Some(value) => value != "'OFF'",
            None => self.lease.as_mut().is_none_or(|lease| lease.backend().autocommits),
        }
    }
}

/// Most bytes of words that are remembered of a session's SET STATEMENTs.
const MOST_SET_BACK: usize = 4096;

/// MariaDB reports the variables of SET STATEMENT, which it sets back. Of some, such as `timestamp`, it reports that later.
fn are_set_back(words: &str, changes: &Changes) -> bool {
    let is_set_back = |name: &str| is_restorable(name) && words.split(' ').any(|word| word == name);
    changes.schema.is_none() && changes.variables.iter().all(|(name, _)| is_set_back(name))
}

impl Role {
    /// The id that the client is to know a new statement by.
    fn new_id(&self) -> Option<u32> {
        match self {
            Self::Prepare(preparing) => Some(preparing.id),
            _ => None,
        }
    }
}

pub(super) fn lost_connection(error: &WireError) -> SqlError {
    SqlError::new(2013, "HY000", format!("Lost connection to MySQL server during query ({error})"))
}
