//! The difference between how a server lays out its answers and how a client expects them.

use super::answer::Said;
use super::edit::{Chunk, Head};
use super::notices::{Admitted, Notices};
use super::whole::Whole;
use crate::packet::{
    Ending, Fields, HEADER, eof, is_eof, put_framed, put_lenenc_bytes, put_lenenc_int, put_ok,
};
use crate::{CapabilityFlags, StatusFlags, WireError};

/// The two sides of a relay.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// Capabilities in force with the server.
    pub server: CapabilityFlags,
    /// Capabilities in force with the client.
    pub client: CapabilityFlags,
    /// Which changes of its session the client is told of; `None` for all that come.
    pub notices: Option<&'a Notices>,
    /// Status flags of the session, for EOF packets that the server does not send.
    pub status: StatusFlags,
    /// The client's id of the statement it prepares; `None` for the server's.
    pub statement: Option<u32>,
    /// How many answers the command has, one after the other, as far as its text tells: EOF packets that the server does not send
    /// say before the rows of all but the last that more results follow. 0 is as good as 1.
    pub answers: usize,
    /// Numbers in the first column of text rows that are others for the client: the server's, by which they are sorted, and the
    /// client's. Where there are none, rows pass unread.
    pub numbers: &'a [(u64, u64)],
}

impl Sides<'_> {
    /// Two sides that agree, where everything passes.
    pub fn same(capabilities: CapabilityFlags) -> Self {
        let status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        Self {
            server: capabilities,
            client: capabilities,
            notices: None,
            status,
            statement: None,
            answers: 1,
            numbers: &[],
        }
    }
    /// The client expects an EOF after definitions, and the server sends none.
    pub(super) fn lack_eof(&self) -> bool {
        const FLAG: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
        self.server.contains(FLAG) && !self.client.contains(FLAG)
    }
}

/// Status flags that say something of the session. The others are about the answer they come in: elsewhere they would promise more
/// results, or changes of state in the packet.
pub const LASTING: StatusFlags = StatusFlags::SERVER_STATUS_IN_TRANS
    .union(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY)
    .union(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
    .union(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES)
    // MariaDB's SERVER_STATUS_ANSI_QUOTES.
    .union(StatusFlags::from_bits_retain(0x8000));

/// Status flags that MySQL gives a procedure's OUT parameters before their row, not after it.
const PROMISES: StatusFlags =
    StatusFlags::SERVER_PS_OUT_PARAMS.union(StatusFlags::SERVER_MORE_RESULTS_EXISTS);

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    AsItIs,
    /// It is the first row, and goes out after an EOF that takes its status from what comes next.
    Held,
    LeftOut,
    /// A row that begins with this number.
    Row(u64),
    /// COM_STMT_PREPARE_OK with this id.
    Numbered(u32),
    /// An OK becomes an EOF, with this status and so many warnings.
    Eof(StatusFlags, u16),
    /// An EOF becomes an OK, or an OK keeps so many bytes of its session-track data, or says that there are none.
    Ok {
        admitted: Option<u64>,
    },
}

/// Translates the packets of one answer.
pub(super) struct Translation<'a> {
    sides: Sides<'a>,
    /// Packets put in less packets left out: what the client's sequence numbers are ahead of the server's.
    shift: u8,
    /// The client expects an EOF where definitions have ended. It is put in before the next packet, because that may tell
    /// its status, or be all that the client expects there.
    eof_due: bool,
    held_row: Vec<u8>,
    /// Of what came so far: whether a transaction is in progress that a statement has begun; and before the last packet.
    begun: bool,
    begun_before: bool,
    /// What the EOF before the rows says of the result and the one after them does not: OUT parameters, more results.
    promised: StatusFlags,
    /// Answers that have ended with a promise of more.
    ended: usize,
}

impl<'a> Translation<'a> {
    pub(super) fn new(sides: Sides<'a>) -> Self {
        let begun = sides.notices.is_some_and(|notices| notices.begun);
        Self {
            sides,
            begun,
            begun_before: begun,
            shift: 0,
            eof_due: false,
            held_row: Vec::new(),
            promised: StatusFlags::empty(),
            ended: 0,
        }
    }
    /// [`Whole::translate`], amid the other answers to a command.
    #[inline]
    pub(super) fn whole(
        &self,
        whole: &Whole,
        waits_for_end: bool,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let Sides { server, client, .. } = self.sides;
        whole.translate((server, client), self.status_before_rows(), waits_for_end, bytes, out)
    }
    pub(super) fn shift(&self) -> u8 {
        self.shift
    }
    fn client_has(&self, flag: CapabilityFlags) -> bool {
        self.sides.client.contains(flag)
    }
    /// Definitions have ended without an EOF from the server.
    pub(super) fn definitions_ended(&mut self) {
        self.eof_due = self.sides.lack_eof();
    }
    /// Prepares for a packet that passes unread, or for another part of it; returns the number that it has for the client.
    #[inline]
    pub(super) fn pass(&mut self, chunk: &mut Chunk<'_>, sequence: u8, continued: bool) -> u8 {
        if self.eof_due && !continued {
            self.put_eof(chunk.output(), sequence, eof(self.status_before_rows(), 0));
        }
        sequence.wrapping_add(self.shift)
    }
    /// Ends an answer whose last packet the server has numbered `sequence`.
    pub(super) fn end(&mut self, chunk: &mut Chunk<'_>, sequence: u8) {
        self.pass(chunk, sequence.wrapping_add(1), false);
    }
    /// Passes on a packet that was read, in the client's form. Its payload is `kept`, or else it lies whole at the chunk's
    /// present place.
    pub(super) fn packet(
        &mut self,
        chunk: &mut Chunk<'_>,
        head: Head,
        kept: Option<&[u8]>,
        said: Said,
    ) -> Result<(), WireError> {
        let payload = kept.unwrap_or(chunk.payload(head.length));
        let (form, status) = self.form(said, payload)?;
        if self.eof_due && form != Form::Held {
            match said {
                // This packet is the one EOF that the client expects: it fetches the rows.
                Said::Ending { cursor: true, .. } => self.eof_due = false,
                Said::Ending { .. } => {
                    let as_it_ends = match form {
                        Form::Eof(status, _) => status,
                        _ => flag(status, false),
                    };
                    self.put_eof(chunk.output(), head.sequence, eof(as_it_ends, 0));
                }
                _ => self.put_eof(chunk.output(), head.sequence, eof(self.status_before_rows(), 0)),
            }
        }
        self.sides.status = status;
        if matches!(said, Said::Ending { .. }) && status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS) {
            self.ended = self.ended.saturating_add(1);
        }
        let sequence = head.sequence.wrapping_add(self.shift);
        if kept.is_none() && form == Form::AsItIs {
            if self.shift != 0 {
                chunk.renumber(sequence);
            }
            chunk.pass(HEADER + head.length);
            return Ok(());
        }
        let (payload, out) = match kept {
            Some(payload) => (payload, chunk.output()),
            None => chunk.take_packet(head.length),
        };
        match form {
            Form::LeftOut => self.shift = self.shift.wrapping_sub(1),
            Form::Held => self.held_row = payload.to_vec(),
            form => put_packet(out, sequence, |out| self.put(out, form, payload))?,
        }
        Ok(())
    }
    /// The status in an EOF that the server has not sent, after definitions whose rows follow.
    fn status_before_rows(&self) -> StatusFlags {
        let mut status = self.sides.status & LASTING;
        status
            .set(StatusFlags::SERVER_MORE_RESULTS_EXISTS, self.sides.answers.saturating_sub(1) > self.ended);
        status
    }
    /// The EOF that is due, and the row that waited for it, before the packet that the server numbered `sequence`.
    fn put_eof(&mut self, out: &mut Vec<u8>, sequence: u8, eof: [u8; 5]) {
        let held = std::mem::take(&mut self.held_row);
        let ahead = self.shift.wrapping_sub(u8::from(!held.is_empty()));
        let mut sequence = sequence.wrapping_add(ahead);
        put_framed(out, &mut sequence, &eof);
        if !held.is_empty() {
            put_framed(out, &mut sequence, &held);
        }
        self.shift = self.shift.wrapping_add(1);
        self.eof_due = false;
    }
    /// The client's form of a packet, and the session's status after it.
    #[inline]
    fn form(&mut self, said: Said, payload: &[u8]) -> Result<(Form, StatusFlags), WireError> {
        let form = match said {
            Said::Plain => Form::AsItIs,
            Said::FirstRow => Form::Held,
            Said::Row => self.sides.number_for(payload).map_or(Form::AsItIs, Form::Row),
            Said::DefinitionsEnd(_) if !self.client_has(CapabilityFlags::CLIENT_DEPRECATE_EOF) => {
                Form::AsItIs
            }
            Said::DefinitionsEnd(status) => {
                let promises = status.contains(StatusFlags::SERVER_PS_OUT_PARAMS);
                self.promised = if promises { status & PROMISES } else { StatusFlags::empty() };
                Form::LeftOut
            }
            Said::Prepared => self.sides.statement.map_or(Form::AsItIs, Form::Numbered),
            Said::Ending { status, warnings, .. } => {
                return Ok((self.ending_form(payload, status, warnings)?, status));
            }
        };
        Ok((form, self.sides.status))
    }
    fn ending_form(&mut self, payload: &[u8], status: StatusFlags, warnings: u16) -> Result<Form, WireError> {
        let client_expects_eof =
            payload.first() == Some(&0xFE) && !self.client_has(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        let (is_eof, flagged) = (is_eof(payload), status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED));
        if client_expects_eof {
            if is_eof {
                // MariaDB's flag in an EOF is due to what we have asked the server to report.
                let hides = flagged && self.sides.notices.is_some();
                return Ok(if hides { Form::Eof(flag(status, false), warnings) } else { Form::AsItIs });
            }
            let told = self.sides.has_data(is_eof, status) && self.admitted(payload)? != Admitted::Nothing;
            let flags_eof = self.sides.notices.is_some_and(|notices| notices.flags_eof);
            return Ok(Form::Eof(flag(status, told && flags_eof), warnings));
        }
        if is_eof {
            return Ok(Form::Ok { admitted: None });
        }
        let client_tracks = self.client_has(CapabilityFlags::CLIENT_SESSION_TRACK);
        if !self.sides.has_data(is_eof, status) {
            // Servers encode the text's length though the manual says otherwise. The client relies on it, and with the flag
            // it would look for data behind the end of the packet.
            let misleading = client_tracks && (flagged || has_unencoded_text(payload)?);
            return Ok(if misleading { Form::Ok { admitted: None } } else { Form::AsItIs });
        }
        let admitted = if client_tracks { self.admitted(payload)? } else { Admitted::Nothing };
        Ok(match admitted {
            Admitted::All => Form::AsItIs,
            Admitted::Part(length) => Form::Ok { admitted: Some(length) },
            Admitted::Nothing => Form::Ok { admitted: None },
        })
    }
    /// How much the client is told of an OK's session-track data.
    #[cold]
    fn admitted(&mut self, payload: &[u8]) -> Result<Admitted, WireError> {
        let ending = Ending::parse(payload)?;
        let (_, data) = ending.tracked()?;
        match self.sides.notices {
            _ if data.is_empty() => Ok(Admitted::Nothing),
            None => Ok(Admitted::All),
            Some(notices) => {
                self.begun_before = self.begun;
                notices.admitted(data, &mut self.begun)
            }
        }
    }
    /// Appends a packet's payload in its new form.
    fn put(&self, out: &mut Vec<u8>, form: Form, payload: &[u8]) -> Result<(), WireError> {
        match form {
            Form::Numbered(id) => {
                let mut fields = Fields::new(payload);
                out.extend_from_slice(fields.bytes(1)?);
                fields.u32()?;
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(fields.rest());
            }
            Form::Row(number) => {
                let mut fields = Fields::new(payload);
                fields.text_value()?;
                put_lenenc_bytes(out, number.to_string().as_bytes());
                out.extend_from_slice(fields.rest());
            }
            Form::Eof(status, warnings) => out.extend_from_slice(&eof(status, warnings)),
            Form::Ok { admitted } => self.put_ok(out, payload, admitted)?,
            Form::AsItIs | Form::Held | Form::LeftOut => out.extend_from_slice(payload),
        }
        Ok(())
    }
    fn put_ok(&self, out: &mut Vec<u8>, payload: &[u8], admitted: Option<u64>) -> Result<(), WireError> {
        let ending = Ending::parse(payload)?;
        let (text, data) = match self.sides.has_data(ending.counts.is_none(), ending.status) {
            true => ending.tracked()?,
            false => (encoded_text(ending.tail).unwrap_or(ending.tail), &[][..]),
        };
        let mut status = ending.status;
        status.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, admitted.is_some());
        if ending.counts.is_none() {
            status.insert(self.promised);
        }
        let first = payload.first().copied().unwrap_or_default();
        put_ok(out, first, ending.counts.unwrap_or_default(), status, ending.warnings);
        if admitted.is_some() || !text.is_empty() {
            put_lenenc_bytes(out, text);
        }
        if let (Some(length), Some(notices)) = (admitted, self.sides.notices) {
            put_lenenc_int(out, length);
            notices.put_admitted(out, data, self.begun_before)?;
        }
        Ok(())
    }
}

impl Sides<'_> {
    /// What the number that a row begins with is for the client, if it is another.
    fn number_for(&self, row: &[u8]) -> Option<u64> {
        let first = Fields::new(row).text_value().ok()??;
        let number: u64 = str::from_utf8(first).ok()?.parse().ok()?;
        let at = self.numbers.binary_search_by_key(&number, |(servers, _)| *servers).ok()?;
        self.numbers.get(at).map(|(_, clients)| *clients)
    }
    /// Whether an OK has session-track data. MariaDB sets the flag in EOF packets as well, which have none.
    fn has_data(&self, is_eof: bool, status: StatusFlags) -> bool {
        !is_eof
            && self.server.contains(CapabilityFlags::CLIENT_SESSION_TRACK)
            && status.contains(StatusFlags::SERVER_SESSION_STATE_CHANGED)
    }
}

/// Whether the text of an OK without session-track data is not encoded.
fn has_unencoded_text(payload: &[u8]) -> Result<bool, WireError> {
    let Ending { tail, .. } = Ending::parse(payload)?;
    Ok(!tail.is_empty() && encoded_text(tail).is_none())
}

/// A text of which the length is encoded and which is all there is.
fn encoded_text(tail: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::new(tail);
    fields.lenenc_bytes().ok().filter(|_| fields.is_empty())
}

/// The status in an EOF, which has no session-track data, whatever the OK in its place has: whether it has their flag is up to
/// `flagged`.
fn flag(mut status: StatusFlags, flagged: bool) -> StatusFlags {
    status.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, flagged);
    status
}

/// Appends one packet of less than 16 MiB.
fn put_packet(
    out: &mut Vec<u8>,
    sequence: u8,
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    if let Err(error) = payload(out) {
        out.truncate(start);
        return Err(error);
    }
    let [a, b, c, ..] = (out.len() - start - HEADER).to_le_bytes();
    if let Some(length) = out.get_mut(start..start + 3) {
        length.copy_from_slice(&[a, b, c]);
    }
    Ok(())
}
