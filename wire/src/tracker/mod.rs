//! Follows a server's answer to one command, byte by byte, without a socket and without holding rows:
//! tells the forwarder where the answer ends and what it said.

mod changes;
mod framing;

use crate::packet::{Counts, Ending, Fields, MAX_PAYLOAD};
use crate::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};
pub use changes::SessionChanges;
use framing::{Framing, Packet};

/// State of one answer.
pub struct ResponseTracker {
    framing: Framing,
    answer: Answer,
}

/// What the bytes fed so far amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The answer goes on; all bytes belong to it.
    More,
    /// The answer is complete after this many of the bytes just fed (normally all of them).
    Done(usize),
    /// After this many bytes the server waits for the file that it has named (LOCAL INFILE): the client speaks next, in
    /// packets whose sequence numbers go on, the last of them empty. What the server says then is fed to the same tracker.
    FileWanted(usize),
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
    /// Rows of the last result, if that was a result set.
    pub last_result: Option<u64>,
    /// Rows affected by the statement, as the last OK has them.
    pub affected_rows: u64,
    /// The last id that was generated, of all results together; 0 for none.
    pub last_insert_id: u64,
    /// Warnings left by the statement, as the last OK or EOF has them.
    pub warnings: u16,
    /// What the server says of changes in the session, all results together.
    pub changes: SessionChanges,
    /// The statement that was prepared.
    pub prepared: Option<Prepared>,
}

/// What COM_STMT_PREPARE_OK says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The server's id of the statement.
    pub id: u32,
    /// Parameters in it.
    pub parameters: u16,
    /// Columns of its result; 0 if it has none.
    pub columns: u16,
}

impl ResponseTracker {
    /// For the answer to `command` under the capabilities in force (the same on both sides).
    pub fn new(command: Command, capabilities: CapabilityFlags) -> Self {
        Self { framing: Framing::default(), answer: Answer::new(command, capabilities) }
    }
    /// Whether the command has an answer at all (COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA and COM_QUIT have none).
    pub fn expects_answer(command: Command) -> bool {
        !matches!(command, Command::COM_STMT_CLOSE | Command::COM_STMT_SEND_LONG_DATA | Command::COM_QUIT)
    }
    /// Feeds the next bytes as they came from the server, in any chunking.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, WireError> {
        let mut rest = bytes;
        if self.answer.phase == Phase::File {
            self.answer.phase = Phase::Result;
        }
        while !matches!(self.answer.phase, Phase::Done | Phase::File) {
            match self.framing.next(&mut rest) {
                Some(packet) => self.answer.packet(&packet)?,
                None => return Ok(Progress::More),
            }
        }
        let used = bytes.len() - rest.len();
        Ok(if self.answer.phase == Phase::File { Progress::FileWanted(used) } else { Progress::Done(used) })
    }
    /// What the answer said, once `Done`.
    pub fn outcome(&self) -> &Outcome {
        &self.answer.outcome
    }
}

/// What the next packet can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// OK, ERR, or the column count of a result set.
    Result,
    /// This many column definitions, then EOF unless that is deprecated, then rows.
    Columns(u64),
    /// EOF after the column definitions.
    ColumnsEnd,
    /// Rows, then EOF or OK.
    Rows,
    /// Definitions that answer COM_FIELD_LIST, then EOF or OK.
    Fields,
    /// COM_STMT_PREPARE_OK or ERR.
    Prepare,
    /// This many packets after it, definitions and EOF.
    Prepared(u32),
    /// OK, EOF or ERR, alone.
    Verdict,
    /// One packet of text, or ERR.
    Text,
    /// The client sends a file; OK or ERR, or the next result, comes after it.
    File,
    Done,
}

/// The meaning of an answer's packets (MySQL protocol, "Command Phase").
struct Answer {
    phase: Phase,
    deprecates_eof: bool,
    tracks_session: bool,
    /// Whether the answer may stop after the column definitions because a cursor keeps the rows.
    may_open_cursor: bool,
    /// Rows of the results before the one that is passing.
    earlier_rows: u64,
    outcome: Outcome,
}

impl Answer {
    fn new(command: Command, capabilities: CapabilityFlags) -> Self {
        let phase = match command {
            Command::COM_QUERY | Command::COM_STMT_EXECUTE | Command::COM_PROCESS_INFO => Phase::Result,
            Command::COM_STMT_FETCH => Phase::Rows,
            Command::COM_STMT_PREPARE => Phase::Prepare,
            Command::COM_FIELD_LIST => Phase::Fields,
            Command::COM_STATISTICS => Phase::Text,
            command if !ResponseTracker::expects_answer(command) => Phase::Done,
            _ => Phase::Verdict,
        };
        Self {
            phase,
            deprecates_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            tracks_session: capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
            may_open_cursor: command == Command::COM_STMT_EXECUTE,
            earlier_rows: 0,
            outcome: Outcome::default(),
        }
    }

    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), WireError> {
        match (self.phase, packet.prefix.first()) {
            (Phase::Rows, Some(0x00..=0xFD)) => self.outcome.rows += 1,
            (Phase::Rows, Some(0xFE)) if !self.ends_rows(packet) => self.outcome.rows += 1,
            _ => self.phase = self.after(packet)?,
        }
        Ok(())
    }
    /// A row may begin with 0xFE as well, the length of a first value of 16 MiB or more; its packet is longer than any
    /// OK or EOF.
    fn ends_rows(&self, packet: &Packet<'_>) -> bool {
        packet.length < if self.deprecates_eof { MAX_PAYLOAD } else { 9 }
    }
    /// What follows a packet that is no row.
    fn after(&mut self, packet: &Packet<'_>) -> Result<Phase, WireError> {
        let Some(&first) = packet.prefix.first() else {
            return Err(WireError::Malformed("an empty packet in an answer"));
        };
        if first == 0xFF {
            self.outcome.error = Some(SqlError::from_payload(packet.prefix)?);
            return Ok(Phase::Done);
        }
        match (self.phase, first) {
            (Phase::Result, 0x00) => self.end_of_result(packet),
            (Phase::Result, 0xFB) => Ok(Phase::File),
            (Phase::Result, _) => match Fields::new(packet.prefix).lenenc_int()? {
                0 => Err(WireError::Malformed("a result set without columns")),
                count => Ok(Phase::Columns(count)),
            },
            (Phase::Columns(count), _) if count > 1 => Ok(Phase::Columns(count - 1)),
            (Phase::Columns(_), _) if self.deprecates_eof => Ok(Phase::Rows),
            (Phase::Columns(_), _) => Ok(Phase::ColumnsEnd),
            (Phase::ColumnsEnd, 0xFE) => {
                let status = self.note_ending(packet)?;
                let cursor =
                    self.may_open_cursor && status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS);
                Ok(if cursor { Phase::Done } else { Phase::Rows })
            }
            (Phase::Rows, 0xFE) => self.end_of_result(packet),
            (Phase::Fields, 0xFE) | (Phase::Verdict, 0x00 | 0xFE) => {
                self.note_ending(packet)?;
                Ok(Phase::Done)
            }
            (Phase::Fields, _) => Ok(Phase::Fields),
            (Phase::Prepare, 0x00) => self.prepared(packet),
            (Phase::Prepared(left), _) => {
                if first == 0xFE {
                    self.note_ending(packet)?;
                }
                Ok(if left > 1 { Phase::Prepared(left - 1) } else { Phase::Done })
            }
            (Phase::Text | Phase::Done, _) => Ok(Phase::Done),
            _ => Err(WireError::Malformed("a packet that does not belong into the answer")),
        }
    }
    fn note_ending(&mut self, packet: &Packet<'_>) -> Result<StatusFlags, WireError> {
        let ending = Ending::parse(packet.prefix)?;
        let outcome = &mut self.outcome;
        outcome.status = Some(ending.status);
        outcome.warnings = ending.warnings;
        if let Some(Counts { affected_rows, last_insert_id }) = ending.counts {
            outcome.affected_rows = affected_rows;
            if last_insert_id != 0 {
                outcome.last_insert_id = last_insert_id;
            }
            let changed = ending.status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED);
            if changed && self.tracks_session && packet.prefix.len() == packet.length {
                let (_text, data) = ending.tracked()?;
                outcome.changes.add(data)?;
            }
        }
        Ok(ending.status)
    }
    fn end_of_result(&mut self, packet: &Packet<'_>) -> Result<Phase, WireError> {
        let more = self.note_ending(packet)?.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
        let rows = self.outcome.rows;
        self.outcome.last_result = (self.phase == Phase::Rows).then_some(rows - self.earlier_rows);
        self.earlier_rows = rows;
        Ok(if more { Phase::Result } else { Phase::Done })
    }
    /// COM_STMT_PREPARE_OK: definitions of parameters follow, then of columns, each list with its EOF unless that is
    /// deprecated.
    fn prepared(&mut self, packet: &Packet<'_>) -> Result<Phase, WireError> {
        let mut fields = Fields::new(packet.prefix);
        fields.u8()?;
        let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
        self.outcome.prepared = Some(Prepared { id, parameters, columns });
        let mut packets = 0;
        for definitions in [columns, parameters].map(u32::from) {
            packets += definitions + u32::from(definitions > 0 && !self.deprecates_eof);
        }
        Ok(if packets > 0 { Phase::Prepared(packets) } else { Phase::Done })
    }
}

#[cfg(test)]
mod tests;
