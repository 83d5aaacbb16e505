//! Preparing a statement on a connection for one's own use of its id.

use super::{Backend, PARTIAL};
use crate::packet::Fields;
use crate::{CapabilityFlags, Command, SqlError, WireError};
use std::time::Instant;

/// The largest packet of a definition, in bytes.
const DEFINITION: usize = 1 << 20;

/// A statement that a server has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The server's id of it.
    pub id: u32,
    /// How many parameters it has.
    pub parameters: u16,
}

impl Backend {
    /// Prepares a statement (COM_STMT_PREPARE). After `WireError::Sql` the connection can still be used.
    pub fn prepare(&mut self, sql: &[u8], deadline: Instant) -> Result<Statement, WireError> {
        self.within(deadline, |backend| {
            backend.send(Command::COM_STMT_PREPARE, sql)?;
            backend.read_prepared()
        })
    }
    fn read_prepared(&mut self) -> Result<Statement, WireError> {
        let payload = self.channel.read_packet(DEFINITION, PARTIAL)?;
        match payload.first() {
            Some(0x00) => {}
            Some(0xFF) => return Err(SqlError::from_payload(payload)?.into()),
            _ => return Err(WireError::Malformed("neither COM_STMT_PREPARE_OK nor ERR")),
        }
        let mut fields = Fields::new(payload);
        fields.u8()?;
        let id = fields.u32()?;
        let (columns, parameters) = (fields.u16()?, fields.u16()?);
        let ends = !self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        for definitions in [parameters, columns] {
            let packets = u32::from(definitions) + u32::from(ends && definitions > 0);
            for _ in 0..packets {
                self.channel.read_packet(DEFINITION, PARTIAL)?;
            }
        }
        Ok(Statement { id, parameters })
    }
}
