//! Several commands in one round trip: written together, answered in order.

use super::query::read_results;
use super::{Backend, LOGIN_PACKET, PARTIAL, TextResult};
use crate::packet::Ending;
use crate::{Command, SqlError, WireError};
use std::time::Instant;

/// A command and its argument.
pub type Request<'a> = (Command, &'a [u8]);

impl Backend {
    /// Sends commands in one write and reads their answers in order, each of at most `limit` bytes, by `deadline`. Every
    /// command is answered, whatever became of those before it. Meant for commands that are short and have short answers: COM_QUERY,
    /// COM_INIT_DB, COM_RESET_CONNECTION, COM_PING. After an error of the exchange itself the connection is of no more use.
    pub fn exchange(
        &mut self,
        requests: &[Request<'_>],
        limit: usize,
        deadline: Instant,
    ) -> Result<Vec<Result<TextResult, SqlError>>, WireError> {
        self.within(deadline, |backend| {
            for &(command, argument) in requests {
                backend.queue(command, argument);
            }
            backend.channel.flush()?;
            requests.iter().map(|&(command, _)| backend.answer(command, limit)).collect()
        })
    }
    fn answer(&mut self, command: Command, limit: usize) -> Result<Result<TextResult, SqlError>, WireError> {
        let answered = match command {
            Command::COM_QUERY => self.results(limit),
            _ => self.verdict().map(|_warnings| TextResult::default()),
        };
        if command == Command::COM_RESET_CONNECTION && answered.is_ok() {
            self.complains = false;
        }
        match answered {
            Ok(result) => Ok(Ok(result)),
            Err(WireError::Sql(error)) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }
    /// Reads all results of a statement and returns the first.
    pub(super) fn results(&mut self, limit: usize) -> Result<TextResult, WireError> {
        let first = read_results(&mut self.channel, self.capabilities, limit, &mut self.status);
        self.complains |= !matches!(first, Ok(TextResult { warnings: 0, .. }));
        first
    }
    /// Reads the one packet that answers a simple command; returns how many warnings it tells of.
    pub(super) fn verdict(&mut self) -> Result<u16, WireError> {
        let payload = self.channel.read_answer(LOGIN_PACKET, PARTIAL)?;
        match payload.first() {
            Some(0x00 | 0xFE) => {
                let ending = Ending::parse(payload)?;
                self.status = ending.status;
                Ok(ending.warnings)
            }
            Some(0xFF) => Err(SqlError::from_payload(payload)?.into()),
            _ => Err(WireError::Malformed("neither OK nor ERR answers the command")),
        }
    }
}
