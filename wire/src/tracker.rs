//! Follows a server's answer to one command, byte by byte, without a socket and without holding rows:
//! tells the forwarder where the answer ends and what it said.

use crate::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

/// State of one answer.
pub struct ResponseTracker {}

/// What the bytes fed so far amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The answer goes on; all bytes belong to it.
    More,
    /// The answer is complete after this many of the bytes just fed (normally all of them).
    Done(usize),
}

/// What a finished answer said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Status flags of the last OK or EOF.
    pub status: Option<StatusFlags>,
    /// The ERR packet, if it ended with one.
    pub error: Option<SqlError>,
    /// Rows passed.
    pub rows: u64,
}

impl ResponseTracker {
    /// For the answer to `command` under the capabilities in force (the same on both sides).
    pub fn new(_command: Command, _capabilities: CapabilityFlags) -> Self {
        unimplemented!()
    }
    /// Whether the command has an answer at all (COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA have none).
    pub fn expects_answer(_command: Command) -> bool {
        unimplemented!()
    }
    /// Feeds the next bytes as they came from the server, in any chunking.
    pub fn feed(&mut self, _bytes: &[u8]) -> Result<Progress, WireError> {
        unimplemented!()
    }
    /// What the answer said, once `Done`.
    pub fn outcome(&self) -> &Outcome {
        unimplemented!()
    }
    /// Whether no byte of the answer has been fed yet.
    pub fn is_untouched(&self) -> bool {
        unimplemented!()
    }
}
