//! Finds the packets in a stream of bytes, in any chunking.

use crate::packet::{HEADER, MAX_PAYLOAD, parse_header};

/// Bytes kept of a packet that comes in pieces: enough for OK, EOF and the text of an ERR packet.
const PREFIX: usize = 512;

/// A packet whose last byte has come.
pub(super) struct Packet<'a> {
    /// Its beginning: all of it if it came in one piece, `PREFIX` bytes otherwise.
    pub(super) prefix: &'a [u8],
    /// Length of the first part's payload; `MAX_PAYLOAD` says that there were more parts.
    pub(super) length: usize,
}

/// Where the stream stands between two chunks.
#[derive(Default)]
pub(super) struct Framing {
    header: [u8; HEADER],
    header_length: usize,
    /// Payload bytes to come of the present part; `None` in a header or before it.
    remaining: Option<usize>,
    more_parts: bool,
    /// Whether the next header continues a packet.
    continued: bool,
    length: usize,
    prefix: Vec<u8>,
}

impl Framing {
    /// Takes bytes off `rest` up to the end of a packet, or all of them: then `None`.
    #[inline]
    pub(super) fn next<'a, 'b: 'a>(&'a mut self, rest: &mut &'b [u8]) -> Option<Packet<'a>> {
        let between = self.header_length == 0 && self.remaining.is_none() && !self.continued;
        if between && let Some((header, body)) = rest.split_first_chunk() {
            let (length, _) = parse_header(*header);
            if length < MAX_PAYLOAD
                && let Some((prefix, tail)) = body.split_at_checked(length)
            {
                *rest = tail;
                return Some(Packet { prefix, length });
            }
        }
        self.next_in_pieces(rest)
    }

    fn next_in_pieces<'a>(&'a mut self, rest: &mut &[u8]) -> Option<Packet<'a>> {
        loop {
            match self.remaining {
                None => self.begin_part(rest)?,
                Some(left) => {
                    let (taken, tail) = rest.split_at(left.min(rest.len()));
                    *rest = tail;
                    let room = PREFIX.saturating_sub(self.prefix.len());
                    self.prefix.extend(taken.iter().take(room));
                    if taken.len() < left {
                        self.remaining = Some(left - taken.len());
                        return None;
                    }
                    self.remaining = None;
                    self.continued = self.more_parts;
                    if !self.continued {
                        return Some(Packet { prefix: &self.prefix, length: self.length });
                    }
                }
            }
        }
    }
    /// Collects a header; `None` until it is complete.
    fn begin_part(&mut self, rest: &mut &[u8]) -> Option<()> {
        let free = self.header.get_mut(self.header_length..).unwrap_or_default();
        let (taken, tail) = rest.split_at(free.len().min(rest.len()));
        free.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        *rest = tail;
        self.header_length += taken.len();
        if self.header_length < HEADER {
            return None;
        }
        self.header_length = 0;
        let (part, _) = parse_header(self.header);
        if !self.continued {
            self.length = part;
            self.prefix.clear();
        }
        self.more_parts = part == MAX_PAYLOAD;
        self.remaining = Some(part);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::put_framed;
    use proptest::prelude::*;

    fn packets_in(stream: &[u8], cuts: &[usize]) -> Vec<(Vec<u8>, usize)> {
        let mut framing = Framing::default();
        let mut found = Vec::new();
        let mut rest = stream;
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (mut chunk, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            rest = tail;
            while let Some(packet) = framing.next(&mut chunk) {
                found.push((packet.prefix.iter().take(PREFIX).copied().collect(), packet.length));
            }
            assert!(chunk.is_empty());
        }
        found
    }

    proptest! {
        #[test]
        fn packets_are_found_in_any_chunking(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 1..12),
            cuts in prop::collection::vec(1usize..900, 1..8),
        ) {
            let (mut stream, mut sequence) = (Vec::new(), 0);
            for payload in &payloads {
                put_framed(&mut stream, &mut sequence, payload);
            }
            let expected: Vec<_> =
                payloads.iter().map(|p| (p.iter().take(PREFIX).copied().collect::<Vec<_>>(), p.len())).collect();
            prop_assert_eq!(packets_in(&stream, &cuts), expected);
        }
    }

    #[test]
    fn parts_of_a_large_packet_are_one_packet() {
        for (length, cut) in
            [(MAX_PAYLOAD, 1 << 20), (MAX_PAYLOAD + 10, usize::MAX), (2 * MAX_PAYLOAD, 99_991)]
        {
            let (mut stream, mut sequence) = (Vec::new(), 0);
            put_framed(&mut stream, &mut sequence, &vec![7; length]);
            put_framed(&mut stream, &mut sequence, b"next");
            let found = packets_in(&stream, &[cut]);
            assert_eq!(found, [(vec![7; PREFIX], MAX_PAYLOAD), (b"next".to_vec(), 4)]);
        }
    }
}
