//! The compressed protocol: between packets and the stream, from the login's OK on
//! (MySQL protocol, "Compression", "Compressed Packet").
//!
//! A compressed packet's bounds have nothing to do with those of the packets inside. Its numbers are its own: they restart
//! with each command and go on in the answer. What comes is decompressed straight into the reader's buffer, so that a
//! length that somebody claims costs no memory.

use super::bounds::{Bounds, groups};
use super::codec::{Decompression, Step, compress};
use super::numbers::Numbers;
use crate::WireError;
use crate::packet::{MAX_PAYLOAD, SEQUENCE};
use crate::read_ahead::ReadAhead;
use crate::socket::Stream;
use std::io::{Read, Write};

/// Three bytes of length as compressed, one of sequence number, three of length as it was (0: it is not compressed).
const HEADER: usize = 7;
/// Shorter payloads are not compressed, in bytes (MySQL's MIN_COMPRESS_LENGTH).
const WORTH_IT: usize = 50;
/// Most bytes of several packets put into one compressed packet. Readers wait for all of one, and its compression takes
/// memory.
const MOST: usize = 16 * 1024;
/// Compressed packets are written together up to about this many bytes.
const WRITE_AT: usize = 64 * 1024;

/// How packets are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM.
    Zstd {
        /// For what we send, 1 to 22.
        level: u8,
    },
}

/// Both directions of a compressed connection.
pub(super) struct Compression {
    algorithm: Algorithm,
    input: ReadAhead,
    packet: Option<Packet>,
    /// The beginning of a packet, to be sent when the rest of it has come.
    begun: Vec<u8>,
    bounds: Bounds,
    output: Vec<u8>,
    sequence: u8,
    /// A command begins, and its first compressed packet has not come.
    restarted: bool,
    /// Of a connection to a server, whose numbers are its own.
    numbers: Option<Numbers>,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Answers, or commands: of these each packet numbered 0 begins one.
    Turn,
    /// The contents of a file amid an answer, whatever their numbers.
    File,
}

/// A compressed packet whose header has been read.
struct Packet {
    length: usize,
    /// Bytes of the packet still to be used, and of its contents still to be handed out.
    input_left: usize,
    output_left: usize,
    /// `None` where it is not compressed.
    decompression: Option<Decompression>,
}

impl Compression {
    /// Begins behind `ahead`, what has been read from the stream already.
    pub(super) fn new(algorithm: Algorithm, ahead: &[u8]) -> Self {
        let mut input = ReadAhead::default();
        input.extend(ahead);
        Self {
            algorithm,
            input,
            packet: None,
            begun: Vec::new(),
            bounds: Bounds::default(),
            output: Vec::new(),
            sequence: 0,
            restarted: false,
            numbers: None,
        }
    }
    /// The other end is a server.
    pub(super) fn with_server(&mut self) {
        self.numbers = Some(Numbers::default());
    }
    /// A new command begins: numbers restart.
    pub(super) fn restart(&mut self) {
        (self.sequence, self.restarted) = (0, true);
    }
    /// A command has come whole. One that shares a compressed packet with the command before it is answered
    /// as if it had come in a packet of its own.
    pub(super) fn received(&mut self) {
        if std::mem::take(&mut self.restarted) {
            self.sequence = 1;
        }
    }
    /// Bytes received and not handed out.
    pub(super) fn buffered(&self) -> usize {
        self.input.len() + self.packet.as_ref().map_or(0, |packet| packet.output_left)
    }
    pub(super) fn shrink(&mut self) {
        self.input.shrink();
        if self.begun.is_empty() && self.begun.capacity() > MOST {
            self.begun = Vec::new();
        }
        if self.output.capacity() > MOST {
            self.output = Vec::new();
        }
    }

    /// Hands out at most `out.len()` bytes, after at most one read of the stream: none if that was not enough.
    pub(super) fn read(&mut self, stream: &mut Stream, out: &mut [u8]) -> Result<usize, WireError> {
        let needs_more = match &self.packet {
            None => self.input.len() < HEADER,
            Some(packet) => packet.input_left > 0 && self.input.is_empty(),
        };
        if needs_more && self.input.fill(|free| stream.read(free))? == 0 {
            return Err(if self.buffered() == 0 && self.packet.is_none() {
                WireError::Closed
            } else {
                std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()
            });
        }
        if self.packet.is_none() {
            self.packet = self.begin()?;
        }
        self.unpack(out)
    }
    /// The next packet, if its header is there.
    fn begin(&mut self) -> Result<Option<Packet>, WireError> {
        let Some(&[a, b, c, sequence, d, e, f]) = self.input.data().first_chunk::<HEADER>() else {
            return Ok(None);
        };
        self.input.consume(HEADER);
        match &mut self.numbers {
            // It answers one command after the other, and says which by beginning anew.
            Some(numbers) => numbers.begins(sequence),
            None if sequence != self.sequence => {
                return Err(WireError::Malformed("compressed packets out of order"));
            }
            None => {}
        }
        self.sequence = sequence.wrapping_add(1);
        self.restarted = false;
        let input_left = u32::from_le_bytes([a, b, c, 0]) as usize;
        let length = u32::from_le_bytes([d, e, f, 0]) as usize;
        Ok(Some(match length {
            0 => Packet { length, input_left, output_left: input_left, decompression: None },
            _ => {
                let decompression = Some(Decompression::begin(self.algorithm)?);
                Packet { length, input_left, output_left: length, decompression }
            }
        }))
    }
    fn unpack(&mut self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut written = 0;
        while let Some(packet) = &mut self.packet {
            let input = self.input.data();
            let input = input.get(..packet.input_left).unwrap_or(input);
            let room = out.get_mut(written..).unwrap_or_default();
            let step = packet.step(input, room)?;
            if let Some(numbers) = &mut self.numbers {
                numbers.put_right(room.get_mut(..step.written).unwrap_or_default());
            }
            self.input.consume(step.read);
            written += step.written;
            if step.ended {
                self.end_packet();
            } else if step == Step::default() {
                break;
            }
        }
        Ok(written)
    }
    fn end_packet(&mut self) {
        if let Some(Packet { length, decompression: Some(decompression), .. }) = self.packet.take() {
            decompression.end(length);
        }
    }

    /// Writes `bytes`, framed packets, in as many compressed packets as it takes. A packet whose end has not come waits:
    /// a reader may rely on what servers do, who cut a packet in no more than two (mysql-connector-python does).
    pub(super) fn write(
        &mut self,
        stream: &mut Stream,
        bytes: &[u8],
        what: Written,
    ) -> Result<(), WireError> {
        let (whole, begun) = bytes.split_at_checked(self.bounds.whole(bytes)).unwrap_or((bytes, &[]));
        if whole.is_empty() || self.begun.is_empty() {
            self.write_whole(stream, whole, what)?;
        } else {
            let mut packets = std::mem::take(&mut self.begun);
            packets.extend_from_slice(whole);
            self.write_whole(stream, &packets, what)?;
            packets.clear();
            self.begun = packets;
        }
        self.begun.extend_from_slice(begun);
        Ok(())
    }
    fn write_whole(&mut self, stream: &mut Stream, packets: &[u8], what: Written) -> Result<(), WireError> {
        // A server reads one command from a compressed packet, and takes what follows it there for an error.
        let most = if self.numbers.is_some() && what == Written::Turn { 0 } else { MOST };
        for group in groups(packets, most) {
            if let Some(numbers) = &mut self.numbers {
                let number = last_number(group);
                numbers.sends(number);
                if what == Written::Turn && number == 0 {
                    self.sequence = 0;
                }
            }
            group.chunks(MAX_PAYLOAD).for_each(|payload| self.pack(payload));
            if self.output.len() >= WRITE_AT {
                self.write_out(stream)?;
            }
        }
        if self.output.is_empty() { Ok(()) } else { self.write_out(stream) }
    }
    fn write_out(&mut self, stream: &mut Stream) -> Result<(), WireError> {
        let written = stream.write_all(&self.output);
        self.output.clear();
        Ok(written?)
    }
    fn pack(&mut self, payload: &[u8]) {
        let header = self.output.len();
        self.output.extend_from_slice(&[0; HEADER]);
        let compressed = payload.len() >= WORTH_IT && compress(self.algorithm, payload, &mut self.output);
        if !compressed {
            self.output.extend_from_slice(payload);
        }
        let [a, b, c, _] = ((self.output.len() - header - HEADER) as u32).to_le_bytes();
        let [d, e, f, _] = if compressed { payload.len() as u32 } else { 0 }.to_le_bytes();
        if let Some(place) = self.output.get_mut(header..header + HEADER) {
            place.copy_from_slice(&[a, b, c, self.sequence, d, e, f]);
        }
        self.sequence = self.sequence.wrapping_add(1);
    }
}

/// The number of the last of whole packets.
fn last_number(packets: &[u8]) -> u8 {
    let last = groups(packets, 0).last().unwrap_or_default();
    last.get(SEQUENCE).copied().unwrap_or_default()
}

impl Packet {
    /// Uses some of `input` and fills some of `output`; nothing of either if there is not enough.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, WireError> {
        let Some(decompression) = &mut self.decompression else { return Ok(self.copy(input, output)) };
        // Behind the last byte there may be a checksum, but no further byte.
        let mut beyond = [0];
        let room = match self.output_left {
            0 => &mut beyond[..],
            left if left < output.len() => output.get_mut(..left).unwrap_or_default(),
            _ => output,
        };
        if room.is_empty() {
            return Ok(Step::default());
        }
        let step = decompression.step(input, room)?;
        let too_much = step.written > self.output_left;
        self.input_left -= step.read;
        self.output_left = self.output_left.saturating_sub(step.written);
        let stuck = step == Step::default() && (self.input_left == 0 || !input.is_empty());
        if too_much || stuck || step.ended && (self.input_left > 0 || self.output_left > 0) {
            return Err(WireError::Damaged("a compressed packet has another length than it says"));
        }
        Ok(step)
    }
    fn copy(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let count = input.len().min(output.len());
        if let (Some(to), Some(from)) = (output.get_mut(..count), input.get(..count)) {
            to.copy_from_slice(from);
        }
        self.input_left -= count;
        self.output_left -= count;
        Step { read: count, written: count, ended: self.input_left == 0 }
    }
}

#[cfg(test)]
#[path = "compression_tests.rs"]
mod tests;
