//! Where packets end in a stream of framed bytes.

use crate::packet::{HEADER, parse_header};

/// Follows framed bytes that come in pieces of any size.
#[derive(Default)]
pub(super) struct Bounds {
    header: [u8; HEADER],
    /// Bytes of the header that have come, and of the payload that have not.
    known: usize,
    left: usize,
}

impl Bounds {
    /// How many of `bytes`, which go on where the last ones ended, belong to packets that are whole with them.
    pub(super) fn whole(&mut self, bytes: &[u8]) -> usize {
        let (mut at, mut whole) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            if self.left > 0 {
                let step = self.left.min(bytes.len() - at);
                at += step;
                self.left -= step;
            } else {
                if let Some(place) = self.header.get_mut(self.known) {
                    *place = byte;
                }
                at += 1;
                self.known += 1;
                if self.known < HEADER {
                    continue;
                }
                (self.known, self.left) = (0, parse_header(self.header).0);
            }
            if self.left == 0 {
                whole = at;
            }
        }
        whole
    }
}

/// Cuts whole packets into groups of at most `most` bytes each; a longer packet is a group of its own.
pub(super) fn groups(packets: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = packets;
    std::iter::from_fn(move || {
        let mut end = 0;
        while let Some(&header) = rest.get(end..).and_then(|rest| rest.first_chunk::<HEADER>()) {
            let next = end + HEADER + parse_header(header).0;
            if end > 0 && next > most {
                break;
            }
            end = next;
        }
        let (group, left) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        rest = left;
        (!group.is_empty()).then_some(group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::framed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_found_in_any_pieces(
            lengths in prop::collection::vec(0usize..300, 0..20), piece in 1usize..400, most in 1usize..700,
        ) {
            let packets: Vec<Vec<u8>> = lengths.iter().map(|length| framed(&vec![7; *length])).collect();
            let stream = packets.concat();
            let ends: Vec<usize> = packets.iter().scan(0, |end, packet| { *end += packet.len(); Some(*end) }).collect();
            let mut bounds = Bounds::default();
            let (mut seen, mut whole) = (0, 0);
            for bytes in stream.chunks(piece) {
                let found = bounds.whole(bytes);
                whole = if found > 0 { seen + found } else { whole };
                seen += bytes.len();
                prop_assert_eq!(whole, ends.iter().rev().copied().find(|end| *end <= seen).unwrap_or(0));
            }
            let mut end = 0;
            for group in groups(&stream, most) {
                end += group.len();
                prop_assert!(ends.contains(&end));
                prop_assert!(group.len() <= most || group.len() == HEADER + parse_header(group[..HEADER].try_into().unwrap()).0);
            }
            prop_assert_eq!(end, stream.len());
        }
    }
}
