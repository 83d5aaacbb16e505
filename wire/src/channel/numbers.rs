//! Numbers of packets inside a compressed connection to a server.
//!
//! MySQL and MariaDB number the compressed packets of an answer one after the other, and with each result of several the packets
//! inside go on from the number of the compressed one. Readers of an uncompressed answer expect them one after the other, so
//! they are put right as they come.

use crate::packet::{HEADER, SEQUENCE, parse_header};

/// Follows what we send, and puts right what the server answers.
#[derive(Default)]
pub(super) struct Numbers {
    /// The number of the last packet sent.
    sent: u8,
    /// Nothing has come since we have sent something.
    awaited: bool,
    /// The number that the next packet of the answer has.
    next: u8,
    /// The last compressed packet's.
    compressed: u8,
    /// The next packet is the first of an answer.
    first: bool,
    header: [u8; HEADER],
    /// Bytes of the header that have come, and of the payload that have not.
    known: usize,
    left: usize,
}

impl Numbers {
    /// A packet with this number is sent.
    pub(super) fn sends(&mut self, number: u8) {
        (self.sent, self.awaited) = (number, true);
    }
    /// A compressed packet begins. One numbered 1 begins the answer to the next of several commands that were sent together.
    pub(super) fn begins(&mut self, compressed: u8) {
        if self.awaited || compressed == 1 && self.compressed != 0 {
            self.next = if self.awaited { self.sent.wrapping_add(1) } else { 1 };
            (self.awaited, self.first) = (false, true);
        }
        self.compressed = compressed;
    }
    /// Numbers the packets in `bytes`, which go on where the last ones ended. What a server says unasked is numbered 0, and
    /// stays so.
    pub(super) fn put_right(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some(byte) = bytes.get_mut(at) {
            if self.left > 0 {
                let step = self.left.min(bytes.len() - at);
                at += step;
                self.left -= step;
                continue;
            }
            if self.known == SEQUENCE {
                if !(self.first && *byte == 0) {
                    *byte = self.next;
                }
                (self.next, self.first) = (byte.wrapping_add(1), false);
            }
            if let Some(place) = self.header.get_mut(self.known) {
                *place = *byte;
            }
            at += 1;
            self.known += 1;
            if self.known == HEADER {
                (self.known, self.left) = (0, parse_header(self.header).0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(numbers: &[u8]) -> Vec<u8> {
        numbers.iter().flat_map(|number| [2, 0, 0, *number, 7, 7]).collect()
    }

    /// The numbers that packets have which came in these compressed packets, cut anywhere.
    fn read(numbers: &mut Numbers, answers: &[(u8, &[u8])], piece: usize) -> Vec<u8> {
        let mut found = Vec::new();
        for (compressed, packets) in answers {
            numbers.begins(*compressed);
            let mut bytes = numbered(packets);
            bytes.chunks_mut(piece).for_each(|piece| numbers.put_right(piece));
            found.extend(bytes.chunks(6).map(|packet| packet[SEQUENCE]));
        }
        found
    }

    #[test]
    fn results_after_the_first_go_on_where_it_ended() {
        for piece in 1..8 {
            let mut numbers = Numbers::default();
            numbers.sends(0);
            // SELECT 1; SELECT 2; DO 1 as MySQL 9.7 and MariaDB 10.11 answer them.
            let answers: [(u8, &[u8]); 3] = [(1, &[1, 2, 3, 4]), (2, &[2, 3, 4, 5]), (3, &[3])];
            assert_eq!(read(&mut numbers, &answers, piece), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
            // The next command; two more that were sent together; one that has two parts.
            numbers.sends(0);
            assert_eq!(read(&mut numbers, &[(1, &[1, 2])], piece), [1, 2]);
            numbers.sends(0);
            numbers.sends(0);
            assert_eq!(read(&mut numbers, &[(1, &[1, 2]), (1, &[1])], piece), [1, 2, 1]);
            numbers.sends(0);
            numbers.sends(1);
            assert_eq!(read(&mut numbers, &[(3, &[3, 4])], piece), [2, 3]);
        }
    }

    #[test]
    fn a_long_answer_begins_once() {
        let mut numbers = Numbers::default();
        numbers.sends(0);
        let mut expected = 0u8;
        for compressed in (1..=255u8).chain(0..=5) {
            expected = expected.wrapping_add(1);
            assert_eq!(read(&mut numbers, &[(compressed, &[compressed])], 9), [expected]);
        }
    }

    #[test]
    fn what_is_said_unasked_keeps_its_number() {
        let mut numbers = Numbers::default();
        numbers.sends(0);
        assert_eq!(read(&mut numbers, &[(0, &[0])], 9), [0]);
        numbers.sends(0);
        assert_eq!(read(&mut numbers, &[(1, &[1]), (2, &[0])], 9), [1, 2]);
    }
}
