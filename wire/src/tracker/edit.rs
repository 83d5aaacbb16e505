//! Changing a chunk of bytes on its way: what stays as it came is not touched, and copied only if something else changes.

use crate::packet::{HEADER, MAX_PAYLOAD, SEQUENCE, parse_header};

/// One chunk on its way. Bytes before `at` are dealt with; those before `copied` are in `out`, or left out.
pub(super) struct Chunk<'c> {
    bytes: &'c mut [u8],
    at: usize,
    copied: usize,
    out: &'c mut Vec<u8>,
    rewritten: bool,
}

/// A packet's header, or that of one of its parts, with the byte after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) sequence: u8,
    /// First byte of the payload, if it is not empty.
    pub(super) first: Option<u8>,
}

impl Head {
    /// `None` if `bytes` have not all of it.
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (header, payload) = bytes.split_first_chunk()?;
        let (length, sequence) = parse_header(*header);
        let first = payload.first().copied();
        (length == 0 || first.is_some()).then_some(Self {
            length,
            sequence,
            first: first.filter(|_| length > 0),
        })
    }
    /// Whether the packet goes on in another part.
    pub(super) fn continues(&self) -> bool {
        self.length == MAX_PAYLOAD
    }
}

impl<'c> Chunk<'c> {
    pub(super) fn new(bytes: &'c mut [u8], out: &'c mut Vec<u8>) -> Self {
        Self { bytes, at: 0, copied: 0, out, rewritten: false }
    }
    /// What is not dealt with yet.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
    /// How much is dealt with.
    pub(super) fn used(&self) -> usize {
        self.at
    }
    /// Lets `length` bytes pass, or all there are; returns how many are missing.
    #[inline]
    pub(super) fn pass(&mut self, length: usize) -> usize {
        let left = self.bytes.len() - self.at;
        self.at += length.min(left);
        length.saturating_sub(left)
    }
    /// Numbers the packet at hand.
    #[inline]
    pub(super) fn renumber(&mut self, sequence: u8) {
        if let Some(byte) = self.bytes.get_mut(self.at + SEQUENCE) {
            *byte = sequence;
        }
    }
    /// The payload of the packet at hand, which must be here whole.
    pub(super) fn payload(&self, length: usize) -> &[u8] {
        let start = self.at + HEADER;
        self.bytes.get(start..start + length).unwrap_or_default()
    }
    /// Takes the packet at hand out of the chunk: its payload, and where to put what replaces it.
    pub(super) fn take_packet(&mut self, length: usize) -> (&[u8], &mut Vec<u8>) {
        let packet = self.at;
        self.catch_up();
        self.pass(HEADER + length);
        self.copied = self.at;
        (self.bytes.get(packet + HEADER..self.at).unwrap_or_default(), self.out)
    }
    /// Takes `length` bytes, or all there are, out of the chunk.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        self.catch_up();
        let start = self.at;
        self.pass(length);
        self.copied = self.at;
        self.bytes.get(start..self.at).unwrap_or_default()
    }
    /// Bytes that go out next, after those that are dealt with.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        self.catch_up();
        self.out
    }
    fn catch_up(&mut self) {
        self.rewritten = true;
        self.out.extend_from_slice(self.bytes.get(self.copied..self.at).unwrap_or_default());
        self.copied = self.at;
    }
    /// Ends the chunk. True if what goes out is in the output, false if it is the bytes dealt with.
    pub(super) fn finish(mut self) -> bool {
        if self.rewritten {
            self.catch_up();
        }
        self.rewritten
    }
}
