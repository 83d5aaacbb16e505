//! Preparing a statement on a connection for one's own use of its id.

use super::{Backend, PARTIAL, Request};
use crate::packet::Fields;
use crate::tracker::Prepared;
use crate::{CapabilityFlags, Command, SqlError, WireError};
use std::time::Instant;

/// The largest packet of a definition, in bytes.
const DEFINITION: usize = 1 << 20;

impl Backend {
    /// Prepares a statement (COM_STMT_PREPARE) between the commands `before`, which make the connection what the statement
    /// needs, and `after`, which undo that: one round trip for all. After `WireError::Sql` the connection can still be used.
    pub fn prepare(
        &mut self,
        before: &[Request<'_>],
        sql: &[u8],
        after: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Prepared, WireError> {
        self.within(deadline, |backend| {
            for &(command, argument) in before.iter().chain([&(Command::COM_STMT_PREPARE, sql)]).chain(after)
            {
                backend.queue(command, argument);
            }
            backend.channel.flush()?;
            let ready = backend.read_verdicts(before.len());
            let prepared = backend.read_prepared();
            if !matches!(&ready, Ok(()) | Err(WireError::Sql(_)))
                || !matches!(&prepared, Ok(_) | Err(WireError::Sql(_)))
            {
                return ready.and(prepared);
            }
            // A connection that cannot be brought back is of no use.
            match backend.read_verdicts(after.len()) {
                Err(WireError::Sql(_)) => {
                    return Err(WireError::Malformed("a setting that was accepted before"));
                }
                undone => undone?,
            }
            match (ready, prepared) {
                (Ok(()), prepared) => prepared,
                (Err(error), Ok(prepared)) => {
                    // Prepared, but not where it should be.
                    backend.channel.queue_raw(&crate::statement::close(prepared.id));
                    Err(error)
                }
                (Err(error), Err(_)) => Err(error),
            }
        })
    }
    /// Reads so many answers of OK or ERR; the first ERR is returned once all are read.
    fn read_verdicts(&mut self, count: usize) -> Result<(), WireError> {
        let mut result = Ok(());
        for _ in 0..count {
            match self.verdict() {
                Err(error @ WireError::Sql(_)) => result = result.and(Err(error)),
                verdict => _ = verdict?,
            }
        }
        result
    }
    fn read_prepared(&mut self) -> Result<Prepared, WireError> {
        let payload = self.channel.read_answer(DEFINITION, PARTIAL)?;
        match payload.first() {
            Some(0x00) => {}
            Some(0xFF) => return Err(SqlError::from_payload(payload)?.into()),
            _ => return Err(WireError::Malformed("neither COM_STMT_PREPARE_OK nor ERR")),
        }
        let mut fields = Fields::new(payload);
        fields.u8()?;
        let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let ends = !self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        for definitions in [parameters, columns].map(u32::from) {
            for _ in 0..definitions + u32::from(ends && definitions > 0) {
                self.channel.read_packet(DEFINITION, PARTIAL)?;
            }
        }
        Ok(Prepared { id, parameters, columns })
    }
}
