//! What the packets of an answer mean, one after the other (MySQL protocol, "Command Phase").

use super::whole::Whole;
use super::{Outcome, Prepared, ResponseTracker, Sides};
use crate::packet::{Counts, Ending, Fields, MAX_PAYLOAD};
use crate::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

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
    /// So many definitions of a prepared statement, EOF unless that is deprecated, and as many columns after it.
    Prepared {
        left: u16,
        columns: u16,
    },
    /// EOF after such definitions.
    PreparedEnd {
        columns: u16,
    },
    /// OK, EOF or ERR, alone.
    Verdict,
    /// One packet of text, or ERR.
    Text,
    /// The client sends a file; OK or ERR, or the next result, comes after it.
    File,
    Done,
}

/// What a packet that was read is, as far as its form depends on capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// It has one form only.
    Plain,
    /// A first row that was to be read.
    FirstRow,
    /// A row whose first column may be another for the client.
    Row,
    /// EOF between definitions and what follows them.
    DefinitionsEnd(StatusFlags),
    /// OK or EOF. `cursor`: it ends definitions whose rows a cursor keeps.
    Ending { status: StatusFlags, warnings: u16, cursor: bool },
    /// COM_STMT_PREPARE_OK.
    Prepared,
}

const CURSOR: StatusFlags = StatusFlags::SERVER_STATUS_CURSOR_EXISTS;
/// Most columns of a result: a prepared statement has room for the number of no more, and servers have fewer.
const MOST_COLUMNS: u64 = u16::MAX as u64;
/// Longest packet that is read, in bytes: far beyond any OK, EOF or ERR.
const LONGEST_READ: usize = 4 << 20;
/// Longest row that can wait for what comes after it, in bytes.
pub(super) const LONGEST_HELD: usize = 64 << 10;

/// Where an answer stands, and what it said so far.
pub(super) struct Answer {
    phase: Phase,
    pub(super) deprecates_eof: bool,
    tracks_session: bool,
    /// Whether the answer may stop after the column definitions because a cursor keeps the rows.
    may_open_cursor: bool,
    may_ask_for_files: bool,
    /// Whether the first row of each result is read, so that it can wait for what comes after it.
    pub(super) reads_first_row: bool,
    /// Whether all rows are read that are not too long, because of what they begin with.
    pub(super) reads_rows: bool,
    /// The result that is passing is a procedure's OUT parameters: another result follows, though MySQL's EOF after the row,
    /// unlike the one before it, does not say so.
    out_parameters: bool,
    /// Rows of the results before the one that is passing.
    earlier_rows: u64,
    pub(super) outcome: Outcome,
}

impl Answer {
    pub(super) fn new(command: Command, sides: &Sides<'_>) -> Self {
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
            deprecates_eof: sides.server.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            tracks_session: sides.server.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
            may_open_cursor: command == Command::COM_STMT_EXECUTE,
            may_ask_for_files: sides.client.contains(CapabilityFlags::CLIENT_LOCAL_FILES),
            // A procedure's OUT parameters are a row by itself, and are told by the status before it.
            reads_first_row: command == Command::COM_STMT_EXECUTE && sides.lack_eof(),
            reads_rows: command != Command::COM_STMT_EXECUTE && !sides.numbers.is_empty(),
            out_parameters: false,
            earlier_rows: 0,
            outcome: Outcome::default(),
        }
    }
    /// Whether the answer to a statement is about to begin.
    pub(super) fn is_fresh(&self) -> bool {
        self.phase == Phase::Result
    }
    /// Takes in all of an answer.
    #[inline]
    pub(super) fn take(&mut self, whole: &Whole) {
        self.phase = Phase::Done;
        self.outcome = whole.outcome();
    }
    /// The server has nothing more to say, or waits for a file.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::File)
    }
    pub(super) fn wants_file(&self) -> bool {
        self.phase == Phase::File
    }
    /// Whether the next packet may be an error.
    pub(super) fn may_fail(&self) -> bool {
        use Phase::*;
        matches!(self.phase, Result | Rows | Fields | Prepare | Verdict | Text)
    }
    /// Whether more definitions are to come, or the EOF after them.
    pub(super) fn is_amid_definitions(&self) -> bool {
        use Phase::*;
        matches!(self.phase, Columns(_) | ColumnsEnd | Prepared { .. } | PreparedEnd { .. })
    }
    /// The client has sent the file.
    pub(super) fn resume(&mut self) {
        if self.phase == Phase::File {
            self.phase = Phase::Result;
        }
    }
    /// Whether a packet must be read, to go by its first byte and the length of its first part; it passes unread otherwise.
    ///
    /// A row may begin with 0xFE like an end, if its first value has 16 MiB or more; its packet is then longer than any
    /// OK or EOF.
    #[inline]
    pub(super) fn reads(&self, first: Option<u8>, length: usize) -> bool {
        match (self.phase, first) {
            (Phase::Rows, Some(0xFE)) => length < if self.deprecates_eof { MAX_PAYLOAD } else { 9 },
            (Phase::Rows, Some(0x00..=0xFD)) => {
                let first = self.reads_first_row && self.outcome.rows == self.earlier_rows;
                first && length <= LONGEST_HELD || self.reads_rows && length <= LONGEST_READ
            }
            (Phase::Rows, Some(first)) => first == 0xFF,
            // A definition begins with the length of the catalog's name, "def".
            (Phase::Columns(_) | Phase::Prepared { .. }, Some(first)) => first >= 0xFE,
            (Phase::Fields, Some(first)) => first >= 0xFE,
            _ => true,
        }
    }
    /// Takes note of a packet that passes unread: a row or a definition. True if it was the last definition and no EOF follows.
    #[inline]
    pub(super) fn pass(&mut self) -> bool {
        match &mut self.phase {
            Phase::Rows => {
                self.outcome.rows += 1;
                return false;
            }
            Phase::Columns(left) if *left > 1 => {
                *left -= 1;
                return false;
            }
            Phase::Prepared { left, .. } if *left > 1 => {
                *left -= 1;
                return false;
            }
            _ => {}
        }
        self.phase = match self.phase {
            Phase::Columns(_) if self.deprecates_eof => Phase::Rows,
            Phase::Columns(_) => Phase::ColumnsEnd,
            Phase::Prepared { columns, .. } if self.deprecates_eof => definitions(columns, 0),
            Phase::Prepared { columns, .. } => Phase::PreparedEnd { columns },
            _ => return false,
        };
        self.deprecates_eof
    }
    /// Takes in a packet that must be read.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<Said, WireError> {
        let Some(&first) = payload.first() else {
            return Err(WireError::Malformed("an empty packet in an answer"));
        };
        if payload.len() > LONGEST_READ {
            return Err(WireError::Malformed(
                "a packet of more than 4 MiB that is neither row nor definition",
            ));
        }
        if first == 0xFF {
            return self.failed(payload);
        }
        match (self.phase, first) {
            (Phase::Result, 0x00) | (Phase::Rows, 0xFE) => self.end_of_result(payload),
            (Phase::Result, 0xFB) if self.may_ask_for_files => self.plain(Phase::File),
            (Phase::Result, 0xFB) => {
                Err(WireError::Malformed("a request for a file from a client that offers none"))
            }
            (Phase::Result, _) => match Fields::new(payload).lenenc_int()? {
                0 => Err(WireError::Malformed("a result set without columns")),
                count if count > MOST_COLUMNS => {
                    Err(WireError::Malformed("a result set of more than 65,535 columns"))
                }
                count => self.plain(Phase::Columns(count)),
            },
            (Phase::ColumnsEnd, 0xFE) => {
                let (status, warnings) = self.note_ending(payload)?;
                let cursor = status.contains(CURSOR) && self.may_open_cursor;
                self.out_parameters = status.contains(StatusFlags::SERVER_PS_OUT_PARAMS);
                self.phase = if cursor { Phase::Done } else { Phase::Rows };
                Ok(match cursor {
                    true => Said::Ending { status, warnings, cursor },
                    false => Said::DefinitionsEnd(status),
                })
            }
            (Phase::Rows, 0x00..=0xFD) => {
                self.outcome.rows += 1;
                Ok(if self.reads_rows { Said::Row } else { Said::FirstRow })
            }
            (Phase::Fields, 0xFE) | (Phase::Verdict, 0x00 | 0xFE) => {
                let (status, warnings) = self.note_ending(payload)?;
                self.phase = Phase::Done;
                Ok(Said::Ending { status, warnings, cursor: false })
            }
            (Phase::Prepare, 0x00) => self.prepared(payload),
            (Phase::PreparedEnd { columns }, 0xFE) => {
                let (status, _) = self.note_ending(payload)?;
                self.phase = definitions(columns, 0);
                Ok(Said::DefinitionsEnd(status))
            }
            (Phase::Text | Phase::Done, _) => self.plain(Phase::Done),
            _ => Err(WireError::Malformed("a packet that does not belong into the answer")),
        }
    }
    #[cold]
    fn failed(&mut self, payload: &[u8]) -> Result<Said, WireError> {
        self.outcome.error = Some(Box::new(SqlError::from_payload(payload)?));
        self.plain(Phase::Done)
    }
    fn plain(&mut self, next: Phase) -> Result<Said, WireError> {
        self.phase = next;
        Ok(Said::Plain)
    }
    #[inline]
    fn note_ending(&mut self, payload: &[u8]) -> Result<(StatusFlags, u16), WireError> {
        let ending = Ending::parse(payload)?;
        let outcome = &mut self.outcome;
        outcome.status = Some(ending.status);
        outcome.warnings = ending.warnings;
        if let Some(Counts { affected_rows, last_insert_id }) = ending.counts {
            outcome.affected_rows = affected_rows;
            if last_insert_id != 0 {
                outcome.last_insert_id = last_insert_id;
            }
            if self.tracks_session && ending.status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED) {
                let (_text, data) = ending.tracked()?;
                outcome.changes.add(data)?;
            }
        }
        Ok((ending.status, ending.warnings))
    }
    fn end_of_result(&mut self, payload: &[u8]) -> Result<Said, WireError> {
        let (status, warnings) = self.note_ending(payload)?;
        let rows = self.outcome.rows - self.earlier_rows;
        let is_set = self.phase == Phase::Rows;
        let cursor = is_set && rows == 0 && status.contains(CURSOR) && self.may_open_cursor;
        self.outcome.last_result = is_set.then_some(rows);
        self.earlier_rows = self.outcome.rows;
        let promised = std::mem::take(&mut self.out_parameters);
        let more = promised || status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
        self.phase = if more { Phase::Result } else { Phase::Done };
        Ok(Said::Ending { status, warnings, cursor })
    }
    fn prepared(&mut self, payload: &[u8]) -> Result<Said, WireError> {
        let mut fields = Fields::new(payload);
        fields.u8()?;
        let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
        self.outcome.prepared = Some(Prepared { id, parameters, columns });
        self.phase = definitions(parameters, columns);
        Ok(Said::Prepared)
    }
}

/// What follows COM_STMT_PREPARE_OK: a list of definitions, and another one; an empty list is not there at all.
fn definitions(left: u16, columns: u16) -> Phase {
    match (left, columns) {
        (0, 0) => Phase::Done,
        (0, left) => Phase::Prepared { left, columns: 0 },
        (left, columns) => Phase::Prepared { left, columns },
    }
}
