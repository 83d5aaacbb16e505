//! Framing: packets over a stream, with sequence numbers and packets of more than 16 MiB.

use crate::WireError;
use crate::socket::{Socket, Stream};
use std::time::{Duration, Instant};

/// One end of a MySQL connection: the stream, a read buffer that stays small while idle, and the sequence number.
pub struct Channel {
    _stream: Stream,
}

impl Channel {
    /// A channel over a plain socket, sequence number 0.
    pub fn new(_socket: Socket) -> Self {
        unimplemented!()
    }
    /// The stream below.
    pub fn stream(&self) -> &Stream {
        unimplemented!()
    }
    /// Reads one packet, joined if it came in several parts, and returns its payload. The payload stays valid until the next call.
    /// `limit` bounds the payload in bytes. Once a first byte has come the rest must follow within
    /// `partial` between reads, whatever the socket's own (idle) timeout is.
    pub fn read_packet(&mut self, _limit: usize, _partial: Duration) -> Result<&[u8], WireError> {
        unimplemented!()
    }
    /// As `read_packet` for a command (sequence restarts at 0): the packet is kept as it came, headers
    /// included, so that it can be sent on unchanged.
    pub fn read_command(&mut self, _limit: usize, _partial: Duration) -> Result<RawCommand<'_>, WireError> {
        unimplemented!()
    }
    /// Queues a packet with the next sequence number, split where it exceeds 16 MiB - 1.
    pub fn queue(&mut self, _payload: &[u8]) {
        unimplemented!()
    }
    /// Queues bytes that are framed already.
    pub fn queue_raw(&mut self, _framed: &[u8]) {
        unimplemented!()
    }
    /// Writes framed bytes at once, after anything queued, in as few system calls as possible.
    pub fn write_raw(&mut self, _framed: &[u8]) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Bytes queued and not flushed; callers flush when this grows large.
    pub fn queued(&self) -> usize {
        unimplemented!()
    }
    /// Writes all that is queued.
    pub fn flush(&mut self) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Reads once, whatever is there (at least one byte), and returns it; for forwarding. `consume` says how much was used.
    pub fn fill(&mut self) -> Result<&[u8], WireError> {
        unimplemented!()
    }
    /// Marks the first `n` buffered bytes as used.
    pub fn consume(&mut self, _n: usize) {
        unimplemented!()
    }
    /// Restarts the sequence number, as each command does.
    pub fn reset_sequence(&mut self) {
        unimplemented!()
    }
    /// Sets the sequence number that the next queued packet carries.
    pub fn set_sequence(&mut self, _next: u8) {
        unimplemented!()
    }
    /// Bounds every read and write until `None` is set: each is given the time left.
    pub fn set_deadline(&mut self, _deadline: Option<Instant>) {
        unimplemented!()
    }
    /// Frees buffer memory beyond what an idle connection needs.
    pub fn shrink(&mut self) {
        unimplemented!()
    }
}

/// A command as the client framed it.
pub struct RawCommand<'a> {
    /// All bytes, headers of every part included.
    pub framed: &'a [u8],
    /// The first part's payload: command byte and what follows (all of it unless the command is over 16 MiB).
    pub head: &'a [u8],
    /// Payload bytes over all parts.
    pub length: usize,
}
