//! LOCAL INFILE: the client's file on its way to the server, as it comes, nothing of it kept.

use crate::WireError;
use crate::channel::Channel;
use crate::packet::{HEADER, MAX_PAYLOAD};

/// Who failed while a file passed.
pub enum Failed {
    /// The client, so that the server waits for the rest.
    Client,
    /// The client sent something else: a driver that cannot read the file may go on with its next command.
    OutOfOrder,
    /// The server. The client has sent all it had to, and awaits an answer.
    Server(WireError),
}

/// Passes on the packets of a client up to the empty one. The first has the number `next`; `shift` is by how much the client's
/// numbers are ahead of the server's.
pub fn pass_file(client: &mut Channel, server: &mut Channel, next: u8, shift: u8) -> Result<(), Failed> {
    let mut upload = Upload::new(next, shift, !client.is_compressed());
    let mut passed = Ok(());
    loop {
        let bytes = client.fill().map_err(|_| Failed::Client)?;
        let used = upload.feed(bytes);
        if upload.out_of_order {
            client.consume(used);
            client.set_sequence(upload.next);
            return Err(Failed::OutOfOrder);
        }
        // A client goes on sending whatever becomes of its server.
        if passed.is_ok() {
            passed = server.write_file(bytes.get(..used).unwrap_or_default());
        }
        client.consume(used);
        if upload.is_complete() {
            client.set_sequence(upload.next);
            return passed.map_err(Failed::Server);
        }
    }
}

/// Finds the end of a file in a stream of packets, in any chunking.
struct Upload {
    /// The client's number of the next packet, and whether it must have it.
    next: u8,
    strict: bool,
    shift: u8,
    header: [u8; HEADER],
    header_length: usize,
    /// Payload bytes to come.
    remaining: usize,
    /// The next packet continues the last.
    continued: bool,
    complete: bool,
    /// A packet had another number. Nothing is read from it on.
    out_of_order: bool,
}

impl Upload {
    fn new(next: u8, shift: u8, strict: bool) -> Self {
        Self {
            next,
            strict,
            shift,
            header: [0; HEADER],
            header_length: 0,
            remaining: 0,
            continued: false,
            complete: false,
            out_of_order: false,
        }
    }
    fn is_complete(&self) -> bool {
        self.complete
    }
    /// Takes the client's next bytes and gives their packets the server's numbers. Returns how many belong to the file.
    fn feed(&mut self, bytes: &mut [u8]) -> usize {
        let length = bytes.len();
        let mut rest = bytes.iter_mut();
        while !self.complete && !self.out_of_order {
            if self.remaining > 0 {
                let skipped = self.remaining.min(rest.len());
                if skipped == 0 {
                    break;
                }
                self.remaining -= skipped;
                rest.nth(skipped - 1);
            } else {
                let Some(byte) = rest.next() else { break };
                self.header_byte(byte);
            }
        }
        length - rest.len()
    }
    fn header_byte(&mut self, byte: &mut u8) {
        if let Some(kept) = self.header.get_mut(self.header_length) {
            *kept = *byte;
        }
        self.header_length += 1;
        if self.header_length < HEADER {
            return;
        }
        self.header_length = 0;
        let [a, b, c, sequence] = self.header;
        self.out_of_order = self.strict && sequence != self.next;
        if self.out_of_order {
            return;
        }
        *byte = self.next.wrapping_sub(self.shift);
        self.next = self.next.wrapping_add(1);
        self.remaining = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.complete = self.remaining == 0 && !self.continued;
        self.continued = self.remaining == MAX_PAYLOAD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(payload: &[u8], sequence: u8) -> Vec<u8> {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        [&[a, b, c, sequence], payload].concat()
    }
    /// Feeds a stream in pieces; what belongs to the file, renumbered, and the number of the packet after it.
    fn fed(stream: &[u8], cut: usize, next: u8, shift: u8) -> (Vec<u8>, u8) {
        let mut upload = Upload::new(next, shift, true);
        let mut passed = Vec::new();
        for chunk in stream.chunks(cut) {
            let mut chunk = chunk.to_vec();
            let used = upload.feed(&mut chunk);
            passed.extend_from_slice(&chunk[..used]);
        }
        assert!(upload.is_complete());
        (passed, upload.next)
    }

    #[test]
    fn a_file_ends_with_an_empty_packet_that_continues_none() {
        let full = vec![7; MAX_PAYLOAD];
        let file = [packet(&full, 2), packet(b"", 3), packet(b"tail", 4), packet(b"", 5)].concat();
        let stream = [&file[..], b"\x01\0\0\0\x0E"].concat();
        assert!(fed(&stream, 1 << 16, 2, 0) == (file, 6));
    }

    #[test]
    fn a_client_may_refuse() {
        assert_eq!(fed(b"\0\0\0\x03", 1, 3, 1), (b"\0\0\0\x02".to_vec(), 4));
    }

    #[test]
    fn what_has_another_number_is_no_file() {
        let command = packet(b"\x03SELECT 1", 0);
        for (stream, number) in [(command.clone(), 2), ([packet(b"x", 2), command].concat(), 3)] {
            let mut upload = Upload::new(2, 0, true);
            upload.feed(&mut stream.clone());
            assert!(upload.out_of_order && !upload.complete);
            assert_eq!(upload.next, number);
        }
    }

    #[test]
    fn numbers_inside_compressed_packets_are_put_right() {
        let mut stream = [packet(b"x", 0), packet(b"", 9)].concat();
        let mut upload = Upload::new(3, 1, false);
        assert_eq!(upload.feed(&mut stream), stream.len());
        assert!(upload.complete);
        assert_eq!((stream, upload.next), ([packet(b"x", 2), packet(b"", 3)].concat(), 5));
    }

    proptest! {
        #[test]
        fn packets_are_renumbered_in_any_chunking(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cut in 1usize..50,
            shift: u8,
        ) {
            let file = |first: u8| {
                let all = payloads.iter().map(Vec::as_slice).chain([&[][..]]);
                let numbered = all.enumerate().map(|(at, payload)| packet(payload, first.wrapping_add(at as u8)));
                numbered.collect::<Vec<_>>().concat()
            };
            let first = 2u8.wrapping_add(shift);
            let (passed, _) = fed(&file(first), cut, first, shift);
            prop_assert_eq!(passed, file(2));
        }
    }
}
