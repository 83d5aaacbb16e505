//! The answer to a command, and its consequences for the session and for the connection in its hands.

use super::classify::Effect;
use super::forward::{Relayed, relay};
use super::hold::Reason;
use super::local::Answer;
use super::settings::{Setting, Settings};
use super::state::{LASTING, Pending, Role, Session, Step, TRANSACTION};
use super::watch::Watch;
use std::sync::Arc;
use wire::channel::Channel;
use wire::tracker::{Outcome, ResponseTracker, Sides};
use wire::{Command, SqlError, StatusFlags, WireError};

impl Session<'_> {
    /// Passes the answer on and draws the consequences.
    pub fn relay(&mut self, client: &mut Channel, pending: Pending) -> Step {
        let Some(lease) = &mut self.lease else { return Step::End(None) };
        let deadline = self.started.checked_add(self.shared.config.variables().default_query_timeout);
        let mut watch = Watch::new(self.shared, &self.registered.entry, &self.socket, deadline);
        let backend = lease.backend();
        let sides = Sides {
            server: backend.capabilities,
            client: self.capabilities,
            notices: backend.tracking.as_ref(),
            status: backend.status,
            statement: pending.role.new_id(),
        };
        let tracker = ResponseTracker::new(pending.command, sides);
        let (relayed, volume) = relay(client, &mut backend.channel, tracker, |pause| watch.tick(pause));
        lease.count(pending.sent, volume.received);
        match relayed {
            Relayed::Done(outcome) => {
                self.settle(pending, &outcome);
                Step::Silent
            }
            Relayed::Unanswered(error) => self.lost(&error),
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
            Relayed::Cancelled => {
                self.drop_lease();
                Step::End(None)
            }
        }
    }
    /// The server was lost with a statement that it may have executed. Without the state that was on the connection
    /// the session cannot go on.
    pub(super) fn lost(&mut self, error: &WireError) -> Step {
        if let Some(lease) = &self.lease {
            lease.log_loss("with a statement", error);
        }
        let stateful = self.hold.reasons.leave_something();
        self.drop_lease();
        self.status.remove(TRANSACTION);
        let error = lost_connection(error);
        if stateful { Step::End(Some(error)) } else { Step::Answer(Answer::Error(error)) }
    }
    /// Takes note of what a statement has done, and lets the connection go if nothing holds it.
    fn settle(&mut self, pending: Pending, outcome: &Outcome) {
        let Pending { command, statement, role, .. } = pending;
        let Some(lease) = &mut self.lease else { return };
        let before = lease.backend().status;
        if let Some(status) = outcome.status {
            (self.status, lease.backend().status) = (status & LASTING, status);
        }
        let failed = outcome.error.is_some();
        match statement.effect {
            Effect::Nothing => {}
            Effect::Use(schema) if !failed => {
                self.want.profile.schema = Some(Arc::from(schema));
                lease.set_profile(self.want.profile.clone());
            }
            // A connection taken for this statement was there before it failed.
            Effect::Use(_) if lease.profile() != &self.want.profile => return self.drop_lease(),
            Effect::Use(_) => {}
            Effect::Set(setting) if !failed => {
                if !remember(&mut self.settings, setting, before) {
                    self.hold.add(Reason::State);
                }
                self.want.profile.settings = self.settings.texts();
                lease.set_profile(self.want.profile.clone());
            }
            Effect::Set(_) | Effect::State => self.hold.add(Reason::State),
        }
        self.hold.unresettable |= command == Command::COM_SET_OPTION;
        if outcome.last_insert_id != 0 {
            self.insert_id = outcome.last_insert_id;
            self.hold.own_insert_id = true;
        }
        self.hold.own_diagnostics |= failed || outcome.warnings != 0;
        self.hold.linger =
            failed || statement.read_by_next || outcome.last_insert_id != 0 || outcome.warnings != 0;
        self.settle_statement(role, outcome);
        if !self.hold.linger && !self.must_keep() {
            self.give_back();
        }
    }
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

/// Remembers a setting, unless it says only what was so before. False if it cannot be remembered.
fn remember(settings: &mut Settings, setting: Setting, before: StatusFlags) -> bool {
    let no_change = setting.is_autocommit_on()
        && !settings.sets("autocommit")
        && before.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
    no_change || settings.add(setting)
}

fn lost_connection(error: &WireError) -> SqlError {
    SqlError::new(2013, "HY000", format!("Lost connection to MySQL server during query ({error})"))
}
