//! Framing: packets over a stream, with sequence numbers and packets of more than 16 MiB.

mod bounds;
mod codec;
mod compression;
mod incoming;
mod numbers;

use crate::WireError;
use crate::packet::{HEADER, put_framed};
use crate::socket::{Buffered, Socket, Stream};
pub use compression::Algorithm;
use compression::{Compression, Written};
use incoming::{Extent, Headers};
use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Read buffer of a connection whose packets have needed no more, in bytes: many clients are idle, and most statements are short.
const FIRST_BUFFER: usize = 512;
/// The same for answers that are forwarded.
const ANSWER_BUFFER: usize = 1024;
/// Most buffer memory that an idle connection keeps, in bytes.
const IDLE_BUFFER: usize = 4 * 1024;
/// Buffer for forwarding answers that do not fit into the idle one, in bytes.
const FORWARD_BUFFER: usize = 16 * 1024;

/// One end of a MySQL connection: the stream, a read buffer that stays small while idle, and the sequence number.
pub struct Channel {
    stream: Stream,
    compression: Option<Box<Compression>>,
    /// Read buffer; all of it is initialised, `start..end` holds bytes that have not been used.
    input: Vec<u8>,
    start: usize,
    end: usize,
    output: Vec<u8>,
    sequence: u8,
    traffic: Traffic,
    /// The command that was read last, while the buffer still has it.
    command: Option<Extent>,
}

/// Bytes that went over a connection: packets with their headers, before compression and TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from the peer.
    pub received: u64,
    /// Bytes to the peer.
    pub sent: u64,
}

impl Channel {
    /// A channel over a plain socket, sequence number 0.
    pub fn new(socket: Socket) -> Self {
        Self::over(Stream::Plain(socket))
    }
    fn over(stream: Stream) -> Self {
        Self {
            stream,
            compression: None,
            input: Vec::new(),
            start: 0,
            end: 0,
            output: Vec::new(),
            sequence: 0,
            traffic: Traffic::default(),
            command: None,
        }
    }
    /// What went over it so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
    /// The stream below.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
    /// Exchanges the stream, as TLS does in the middle of a login; the sequence goes on. What has come already is TLS's.
    pub(crate) fn upgrade(
        self,
        wrap: impl FnOnce(Buffered) -> Result<Stream, WireError>,
    ) -> Result<Self, WireError> {
        let ahead = self.input.get(self.start..self.end).unwrap_or_default();
        let stream = wrap(Buffered::new(self.stream.socket().clone(), ahead))?;
        let Traffic { received, sent } = self.traffic;
        // These bytes are read again, as TLS.
        let traffic = Traffic { received: received.saturating_sub(ahead.len() as u64), sent };
        Ok(Self { sequence: self.sequence, traffic, ..Self::over(stream) })
    }
    /// Compresses what follows, both ways, as the login has agreed.
    pub(crate) fn compress(&mut self, algorithm: Algorithm) {
        let ahead = self.input.get(self.start..self.end).unwrap_or_default();
        self.compression = Some(Box::new(Compression::new(algorithm, ahead)));
        self.start = self.end;
    }
    /// The same on a connection to a server.
    pub(crate) fn compress_with_server(&mut self, algorithm: Algorithm) {
        self.compress(algorithm);
        self.compression.iter_mut().for_each(|compression| compression.with_server());
    }

    /// Whether packets are compressed. Clients that compress are free with the numbers of the packets inside.
    pub fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Reads one packet, joined if it came in several parts, and returns its payload, valid until the next call.
    /// `limit` bounds the payload in bytes. Once a first byte has come the rest must follow within
    /// `partial` between reads, whatever the socket's own (idle) timeout is.
    ///
    /// The sequence number is taken over from the packet, so that the answer to it carries the next one.
    pub fn read_packet(&mut self, limit: usize, partial: Duration) -> Result<&[u8], WireError> {
        let packet = self.receive(limit, partial, Headers::Remove)?;
        Ok(self.input.get(packet.start + HEADER..packet.end).unwrap_or_default())
    }
    /// As `read_packet` for a packet in an answer to a command of our own. Answers are numbered from 1: an error numbered 0 answers
    /// nothing, but says that the server closes the connection.
    pub(crate) fn read_answer(&mut self, limit: usize, partial: Duration) -> Result<&[u8], WireError> {
        let packet = self.receive(limit, partial, Headers::Remove)?;
        let payload = self.input.get(packet.start + HEADER..packet.end).unwrap_or_default();
        match (self.sequence, payload.first()) {
            (1, Some(0xFF)) => Err(WireError::Closed),
            _ => Ok(payload),
        }
    }
    /// As `read_packet` for a command (sequence restarts at 0): the packet is kept as it came, headers
    /// included, so that it can be sent on unchanged. A sequence that does not start at 0 and go up by one is malformed:
    /// the server it is sent on to would end its connection for it. Clients that compress number their compressed packets
    /// and are free with these (MySQL's own are): theirs are put right.
    pub fn read_command(&mut self, limit: usize, partial: Duration) -> Result<RawCommand<'_>, WireError> {
        if let Some(compression) = &mut self.compression {
            compression.restart();
        }
        let packet = self.receive(limit, partial, Headers::Keep)?;
        self.command = Some(packet);
        Ok(self.command_at(packet))
    }
    /// The command that was read last, once more; `None` if something was read since.
    pub fn last_command(&self) -> Option<RawCommand<'_>> {
        self.command.map(|packet| self.command_at(packet))
    }
    fn command_at(&self, packet: Extent) -> RawCommand<'_> {
        let framed = self.input.get(packet.start..packet.end).unwrap_or_default();
        let head = framed.get(HEADER..HEADER + packet.first).unwrap_or_default();
        RawCommand { framed, head, length: packet.length }
    }

    /// Queues a packet with the next sequence number, split where it exceeds 16 MiB - 1.
    pub fn queue(&mut self, payload: &[u8]) {
        put_framed(&mut self.output, &mut self.sequence, payload);
    }
    /// Queues bytes that are framed already.
    pub fn queue_raw(&mut self, framed: &[u8]) {
        self.output.extend_from_slice(framed);
    }
    /// Writes framed bytes at once, after anything queued, in as few system calls as possible.
    pub fn write_raw(&mut self, framed: &[u8]) -> Result<(), WireError> {
        if self.output.is_empty() {
            return self.write_all(framed);
        }
        if framed.len() <= FORWARD_BUFFER {
            self.queue_raw(framed);
            return self.flush();
        }
        self.flush()?;
        self.write_all(framed)
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.traffic.sent += bytes.len() as u64;
        match &mut self.compression {
            None => Ok(self.stream.write_all(bytes)?),
            Some(compression) => compression.write(&mut self.stream, bytes, Written::Turn),
        }
    }
    /// Writes framed bytes of a file that the server has asked for, at once.
    pub fn write_file(&mut self, framed: &[u8]) -> Result<(), WireError> {
        match &mut self.compression {
            None => Ok(self.stream.write_all(framed)?),
            Some(compression) => compression.write(&mut self.stream, framed, Written::File),
        }
    }
    /// What is queued; framed bytes may be added, as `queue_raw` does.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }
    /// Bytes queued and not flushed; callers flush when this grows large.
    pub fn queued(&self) -> usize {
        self.output.len()
    }
    /// Writes all that is queued.
    pub fn flush(&mut self) -> Result<(), WireError> {
        let mut output = std::mem::take(&mut self.output);
        let written = self.write_all(&output);
        output.clear();
        self.output = output;
        written
    }
    /// Reads once, whatever is there (at least one byte), and returns it; for forwarding. `consume` says how much was used.
    /// Bytes that are buffered and not consumed are returned first, without a read.
    pub fn fill(&mut self) -> Result<&mut [u8], WireError> {
        if self.start == self.end {
            // Most answers are small; one that filled the buffer is worth a larger one.
            let filled = self.end == self.input.len() && self.end > 0;
            self.make_room(if filled { FORWARD_BUFFER } else { ANSWER_BUFFER });
        }
        while self.start == self.end {
            self.read_once()?;
        }
        Ok(self.input.get_mut(self.start..self.end).unwrap_or_default())
    }
    /// What is buffered and not consumed, without a read.
    pub fn pending(&self) -> &[u8] {
        self.input.get(self.start..self.end).unwrap_or_default()
    }
    /// Marks the first `n` buffered bytes as used.
    pub fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }
    /// Bytes received and not used yet, which `poll` on the socket does not see: in the buffers, inside compression and
    /// inside TLS.
    pub fn buffered(&self) -> usize {
        let compressed = self.compression.as_ref().map_or(0, |inside| inside.buffered());
        self.end - self.start + compressed + self.stream.buffered()
    }
    /// Whether more was received than was used: on a server's connection something that nobody has asked for, once the answer
    /// is complete.
    pub fn has_surplus(&self) -> bool {
        self.start < self.end
    }
    /// Restarts the sequence number, as each command does.
    pub fn reset_sequence(&mut self) {
        if let Some(compression) = &mut self.compression {
            compression.restart();
        }
        self.set_sequence(0);
    }
    /// The sequence number that the next queued packet carries.
    #[cfg(test)]
    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }
    /// Sets the sequence number that the next queued packet carries.
    pub fn set_sequence(&mut self, next: u8) {
        self.sequence = next;
    }
    /// Bounds every read and write until `None` is set: each is given the time left.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.stream.socket().set_deadline(deadline);
    }
    /// Frees buffer memory beyond what an idle connection needs.
    pub fn shrink(&mut self) {
        self.command = None;
        if self.input.len() > IDLE_BUFFER && self.end - self.start <= IDLE_BUFFER {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.input.truncate(IDLE_BUFFER);
            self.input.shrink_to_fit();
        }
        if self.output.capacity() > IDLE_BUFFER && self.output.len() <= IDLE_BUFFER {
            self.output.shrink_to(IDLE_BUFFER);
        }
        if let Some(compression) = &mut self.compression {
            compression.shrink();
        }
        self.stream.shrink();
    }
    /// Ends the connection so that the peer can still read what was written last: closing with bytes unread would
    /// reset it and take the answer along. Reads and drops what comes for at most `time`.
    pub fn close_gently(&mut self, time: Duration) {
        let socket = self.stream.socket().clone();
        socket.shutdown(Shutdown::Write);
        socket.set_deadline(Some(Instant::now() + time));
        self.consume(usize::MAX);
        while self.fill().is_ok() {
            self.consume(usize::MAX);
        }
        socket.shutdown(Shutdown::Both);
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

/// A command of this payload as it goes over the wire.
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(HEADER + payload.len());
    put_framed(&mut framed, &mut 0, payload);
    framed
}

#[cfg(test)]
mod peers_tests;
#[cfg(test)]
mod tests;
