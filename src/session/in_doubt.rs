//! What the server alone knows after an error, which tells no status: whether a transaction is open, and how much there is to
//! complain of. It is asked where an answer of our own has to say so.

use super::hold::Reason;
use super::local::Answer;
use super::state::{Session, Step, TRANSACTION};
use std::net::Shutdown;
use std::time::Instant;
use wire::tracker::LASTING;
use wire::{Command, WireError};

impl Session<'_> {
    /// COM_PING: its answer tells how many warnings the last statement has left, MySQL's with errors among them. MariaDB's tells none.
    pub(super) fn ping(&mut self) -> Step {
        let tells = !self.is_mariadb();
        if (tells && self.knows_warnings() || self.hold.in_doubt)
            && let Err(step) = self.ask()
        {
            return step;
        }
        Step::Answer(Answer::Alive(if tells { self.warnings } else { 0 }))
    }
    /// An answer of our own is to be written, which is to have the session's status.
    pub fn answer(&mut self, answer: Answer) -> Step {
        let has_status = !matches!(answer, Answer::Error(_) | Answer::Text(_));
        let asked = if has_status && self.hold.in_doubt { self.ask() } else { Ok(()) };
        let step = asked.err().unwrap_or(Step::Answer(answer));
        if let Step::Answer(answer) = &step {
            self.note_answer(answer);
        }
        step
    }
    /// Whether the connection in hand has had the last statement, and there is something to complain of.
    fn knows_warnings(&self) -> bool {
        self.hold.complaint && self.warnings != 0 && self.unseen.is_none()
    }
    /// Asks the connection in hand. Where nothing is lost with it, its loss is the next statement's to find.
    fn ask(&mut self) -> Result<(), Step> {
        let (kept, knows_warnings) = (self.must_keep(), self.knows_warnings());
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        let backend = lease.backend();
        let before = backend.status;
        match backend.simple(Command::COM_PING, b"", deadline) {
            Ok(warnings) => {
                self.status = backend.status & LASTING;
                self.hold.in_doubt = false;
                if knows_warnings {
                    self.warnings = warnings;
                }
                if before.intersects(TRANSACTION) && !self.in_transaction() {
                    self.hold.reasons.remove(Reason::Savepoint);
                    self.hold.reasons.remove(Reason::NextTransaction);
                }
                Ok(())
            }
            Err(WireError::Sql(_)) => Ok(()),
            Err(error) if kept => Err(self.lost(&error)),
            Err(_) => {
                // An answer that comes late would be taken for the next statement's.
                backend.channel.stream().socket().shutdown(Shutdown::Both);
                Ok(())
            }
        }
    }
}
