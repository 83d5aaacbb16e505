//! Reading packets into the buffer: at a glance where one has come whole, otherwise piece by piece.

use super::{Channel, FIRST_BUFFER, IDLE_BUFFER};
use crate::WireError;
use crate::packet::{HEADER, MAX_PAYLOAD, parse_header};
use crate::socket::Socket;
use std::io::{self, Read};
use std::time::Duration;

/// Where a packet lies in the read buffer.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Length of the first part's payload, and of all parts together.
    pub(super) first: usize,
    pub(super) length: usize,
}

/// What becomes of the headers of a packet in several parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    Keep,
    Remove,
}

impl Channel {
    #[inline]
    pub(super) fn receive(
        &mut self,
        limit: usize,
        partial: Duration,
        headers: Headers,
    ) -> Result<Extent, WireError> {
        if self.compression.is_none() {
            if self.start == self.end {
                self.make_room(FIRST_BUFFER);
                self.read_once()?;
            }
            if let Some(packet) = self.whole_packet(limit, headers) {
                return Ok(packet);
            }
        }
        self.receive_in_pieces(limit, partial, headers)
    }
    /// The packet that comes next, if it is all here and of one part.
    #[inline]
    fn whole_packet(&mut self, limit: usize, headers: Headers) -> Option<Extent> {
        let (start, present) = (self.start, self.input.get(self.start..self.end)?);
        let (length, sequence) = parse_header(*present.first_chunk()?);
        let whole = length < MAX_PAYLOAD && HEADER + length <= present.len();
        if !whole || length > limit || headers == Headers::Keep && sequence != 0 {
            return None;
        }
        self.sequence = sequence.wrapping_add(1);
        self.start = start + HEADER + length;
        Some(Extent { start, end: self.start, first: length, length })
    }
    #[cold]
    fn receive_in_pieces(
        &mut self,
        limit: usize,
        partial: Duration,
        headers: Headers,
    ) -> Result<Extent, WireError> {
        let mut patience = Patience::new(partial);
        let received = self.receive_parts(limit, headers, &mut patience);
        patience.restore(self.stream.socket());
        let packet = received?;
        self.start = packet.end;
        if let Some(compression) = &mut self.compression {
            compression.received();
        }
        Ok(packet)
    }
    fn receive_parts(
        &mut self,
        limit: usize,
        headers: Headers,
        patience: &mut Patience,
    ) -> Result<Extent, WireError> {
        let (mut end, mut length, mut first) = (0, 0, None);
        let mut expected = 0u8;
        loop {
            // Offsets are relative to `start`, which moves when the buffer is compacted.
            self.require(end + HEADER, patience)?;
            let at = self.start + end;
            let header = self.input.get(at..at + HEADER).and_then(|h| h.try_into().ok()).unwrap_or_default();
            let (part, sequence) = parse_header(header);
            self.sequence = sequence.wrapping_add(1);
            if headers == Headers::Keep && sequence != expected {
                self.renumber(at, expected)?;
            }
            expected = expected.wrapping_add(1);
            length += part;
            if length > limit {
                return Err(WireError::TooLarge { limit });
            }
            self.require(end + HEADER + part, patience)?;
            if first.is_some() && headers == Headers::Remove {
                let at = self.start + end;
                self.input.copy_within(at + HEADER..self.end, at);
                self.end -= HEADER;
                end += part;
            } else {
                end += HEADER + part;
            }
            let first = *first.get_or_insert(part);
            if part < MAX_PAYLOAD {
                return Ok(Extent { start: self.start, end: self.start + end, first, length });
            }
        }
    }
    /// Gives the packet at `at` its right number, where its sender need not have done so.
    fn renumber(&mut self, at: usize, number: u8) -> Result<(), WireError> {
        let place = self.input.get_mut(at + HEADER - 1).filter(|_| self.compression.is_some());
        *place.ok_or(WireError::Malformed("packets out of order"))? = number;
        self.sequence = number.wrapping_add(1);
        Ok(())
    }
    /// Reads until `wanted` bytes of the packet are buffered.
    fn require(&mut self, wanted: usize, patience: &mut Patience) -> Result<(), WireError> {
        while self.end - self.start < wanted {
            let present = self.end - self.start;
            if present > 0 || self.compression.as_ref().is_some_and(|inside| inside.buffered() > 0) {
                patience.begin(self.stream.socket());
            }
            if present == 0 || self.end == self.input.len() {
                // Memory follows what has really come, so that a header alone cannot claim 16 MiB. As long as it is little it is doubled,
                // so that the next packet, which may be longer, comes in one piece.
                let twice = (2 * present).max(FIRST_BUFFER);
                self.make_room(if twice <= IDLE_BUFFER { twice } else { wanted.min(twice) });
            }
            match self.read_once() {
                Err(WireError::Closed) if present > 0 => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                result => result?,
            }
        }
        Ok(())
    }
    /// Makes the buffer hold at least `wanted` bytes from `start` on, and at least one more than it has.
    pub(super) fn make_room(&mut self, wanted: usize) {
        self.command = None;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start > 0 && self.start + wanted > self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = wanted.max(self.end + 1).max(FIRST_BUFFER);
        if wanted > self.input.len() {
            self.input.resize(wanted, 0);
        }
    }
    /// One read into the free end of the buffer. It may bring nothing where packets are compressed.
    #[inline]
    pub(super) fn read_once(&mut self) -> Result<(), WireError> {
        let free = self.input.get_mut(self.end..).unwrap_or_default();
        if let Some(compression) = &mut self.compression {
            let count = compression.read(&mut self.stream, free)?;
            self.traffic.received += count as u64;
            self.end += count;
            return Ok(());
        }
        let count = loop {
            match self.stream.read(free) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if count == 0 {
            return Err(WireError::Closed);
        }
        self.traffic.received += count as u64;
        self.end += count;
        Ok(())
    }
}

/// The time limit on the rest of a packet that has begun. It touches the socket only when a packet does not come in one
/// piece; a deadline in force is limit enough.
struct Patience {
    partial: Duration,
    idle: Option<Option<Duration>>,
}

impl Patience {
    fn new(partial: Duration) -> Self {
        Self { partial, idle: None }
    }
    fn begin(&mut self, socket: &Socket) {
        if self.idle.is_none() && !socket.has_deadline() {
            self.idle = Some(socket.replace_read_timeout(Some(self.partial)));
        }
    }
    fn restore(&mut self, socket: &Socket) {
        if let Some(idle) = self.idle.take() {
            socket.replace_read_timeout(idle);
        }
    }
}
