//! COM_SET_OPTION: whether a command may have several statements. To a server that is a matter of the login, so a session
//! that changes it wants connections of another class from then on, and nothing is left on those it gives back.

use super::classify::Statement;
use super::local::Answer;
use super::state::{Message, Role, Session, Step};
use std::sync::Arc;
use wire::channel::RawCommand;
use wire::{CapabilityFlags, Command, SqlError};

impl Session<'_> {
    /// The command; a server is told only if the session has its connection in hand.
    pub(super) fn set_option(&mut self, command: &RawCommand<'_>) -> Step {
        let argument = command.head.get(1..).unwrap_or_default();
        let on = match self.wording().padded(argument) {
            Some([0, 0]) => true,
            Some([1, 0]) => false,
            Some(_) => return Step::Answer(Answer::Error(SqlError::unknown_command())),
            None => return Step::Answer(Answer::Error(self.wording().malformed_packet())),
        };
        if self.lease.is_some() {
            let role = Role::SetOption { multi_statements: on };
            return self.send(
                Command::COM_SET_OPTION,
                Statement::default(),
                Message::Framed(command.framed),
                role,
            );
        }
        self.allow_multi_statements(on);
        Step::Answer(Answer::End)
    }
    pub(super) fn allows_multi_statements(&self) -> bool {
        self.want.identity.class.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    }
    /// What the session wants of its connections from now on.
    pub(super) fn allow_multi_statements(&mut self, on: bool) {
        let identity = Arc::make_mut(&mut self.want.identity);
        identity.class.set(CapabilityFlags::CLIENT_MULTI_STATEMENTS, on);
        if let Some(lease) = &mut self.lease {
            lease.set_identity(Arc::clone(&self.want.identity));
        }
    }
}
