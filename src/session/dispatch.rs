//! One command of the client: answered here, or sent to a server.

use super::classify::{Effect, Statement, classify};
use super::local::{self, Answer};
use super::state::{Pending, Session, Step};
use wire::channel::RawCommand;
use wire::tracker::ResponseTracker;
use wire::{Command, SqlError, StatusFlags};

impl Session<'_> {
    /// Handles one command up to its answer.
    pub fn handle(&mut self, command: &RawCommand<'_>) -> Step {
        let Some((&code, argument)) = command.head.split_first() else { return unknown_command() };
        let Some(code) = wire::command(code) else { return unknown_command() };
        let complete = command.head.len() == command.length;
        let statement = match code {
            Command::COM_QUIT => return Step::End(None),
            Command::COM_PING => return Step::Answer(Answer::Ok),
            Command::COM_STATISTICS => return Step::Answer(Answer::Text(self.shared.statistics())),
            Command::COM_RESET_CONNECTION => return self.reset(),
            Command::COM_QUERY if complete => {
                if let Some(answer) = local::answer(argument, self.id, &self.want.identity.user, self.peer) {
                    return Step::Answer(answer);
                }
                classify(argument, self.status.contains(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES))
            }
            Command::COM_INIT_DB => match str::from_utf8(argument) {
                Ok(schema) => Effect::Use(schema.to_owned()).into(),
                Err(_) => Effect::State.into(),
            },
            // Too long to be judged, or meant to leave something.
            Command::COM_QUERY | Command::COM_STMT_PREPARE | Command::COM_SET_OPTION => Effect::State.into(),
            Command::COM_FIELD_LIST
            | Command::COM_STMT_EXECUTE
            | Command::COM_STMT_SEND_LONG_DATA
            | Command::COM_STMT_CLOSE
            | Command::COM_STMT_RESET
            | Command::COM_STMT_FETCH => Statement::default(),
            _ => return unknown_command(),
        };
        self.send(code, statement, command.framed)
    }
    /// Sends a command to a server. It is sent a second time only if the first was cut short by a failing write: a command
    /// that a server has not whole it cannot have executed.
    fn send(&mut self, command: Command, statement: Statement, framed: &[u8]) -> Step {
        if let Err(step) = self.leave_unusable() {
            return step;
        }
        let answered = ResponseTracker::expects_answer(command);
        if self.lease.is_none() && !answered {
            return Step::Silent;
        }
        let held = self.lease.is_some() && self.must_keep();
        let mut again = true;
        loop {
            let written = match self.connected(&statement) {
                Ok(lease) => lease.backend().channel.write_raw(framed),
                Err(step) => return step,
            };
            match written {
                Ok(()) if answered => {
                    return Step::Relay(Pending { command, statement, sent: framed.len() as u64 });
                }
                Ok(()) => return Step::Silent,
                Err(error) if held || !again => return self.lost(&error),
                Err(_) => self.drop_lease(),
            }
            again = false;
        }
    }
    /// COM_RESET_CONNECTION: the session starts anew, whatever connection it gets next.
    fn reset(&mut self) -> Step {
        self.clean_up();
        self.settings.clear();
        self.want.profile.settings = self.settings.texts();
        self.status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        self.insert_id = 0;
        Step::Answer(Answer::Ok)
    }
}

impl From<Effect> for Statement {
    fn from(effect: Effect) -> Self {
        Self { effect, ..Self::default() }
    }
}

fn unknown_command() -> Step {
    Step::Answer(Answer::Error(SqlError::unknown_command()))
}
