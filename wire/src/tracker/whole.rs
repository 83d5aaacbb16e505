//! Answers that are seen at a glance. Nearly every answer is an OK or one result set, comes in one piece, and tells of nothing but
//! itself: such a one is taken as a whole. What is not so is followed packet by packet, with the same outcome.

use super::Outcome;
use super::answer::LONGEST_HELD;
use crate::packet::{Counts, Ending, HEADER, MAX_PAYLOAD, SEQUENCE, eof, is_eof, parse_header, put_framed};
use crate::{CapabilityFlags, StatusFlags};

/// With one of these there is more to be done about an answer.
const NOTABLE: StatusFlags = StatusFlags::SERVER_MORE_RESULTS_EXISTS
    .union(StatusFlags::SERVER_SESSION_STATE_CHANGED)
    .union(StatusFlags::SERVER_STATUS_CURSOR_EXISTS)
    .union(StatusFlags::SERVER_STATUS_LAST_ROW_SENT)
    .union(StatusFlags::SERVER_PS_OUT_PARAMS);

/// An answer that has come whole, an OK or one result set, and tells of nothing but itself.
pub struct Whole {
    status: StatusFlags,
    warnings: u16,
    /// `None` where an EOF is its end.
    counts: Option<Counts>,
    /// The number of its last packet.
    pub(super) sequence: u8,
    /// `None` for an OK.
    set: Option<Set>,
}

/// Where the parts of a result set lie.
struct Set {
    rows: u64,
    /// Where its definitions have ended, the EOF behind them included.
    rows_at: usize,
    /// Where its last packet begins.
    end_at: usize,
}

/// The packets of an answer, numbered from 1.
struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
    sequence: u8,
}

impl<'a> Packets<'a> {
    /// The next payload, which is not empty; `None` if it is not here whole or not the next by its number.
    #[inline(always)]
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (header, rest) = self.bytes.get(self.at..)?.split_first_chunk::<HEADER>()?;
        let (length, sequence) = parse_header(*header);
        let payload = rest.get(..length)?;
        let expected = self.sequence.wrapping_add(1);
        if sequence != expected || length == MAX_PAYLOAD {
            return None;
        }
        self.at += HEADER + length;
        self.sequence = sequence;
        Some((*payload.first()?, payload))
    }
    /// The answer that ends with what was read, if it does.
    #[inline]
    fn end(&self, last: &[u8], set: Option<Set>) -> Option<Whole> {
        let Ending { counts, status, warnings, tail } = Ending::parse(last).ok()?;
        let plain = tail.is_empty() && !status.intersects(NOTABLE);
        let sequence = self.sequence;
        (plain && self.at == self.bytes.len()).then_some(Whole { status, warnings, counts, sequence, set })
    }
}

impl Whole {
    /// Looks at an answer to a statement from a server that has, or has not, CLIENT_DEPRECATE_EOF. `None` if it is not whole, or not
    /// so plain: then it is to be followed packet by packet.
    pub fn see(bytes: &[u8], deprecates_eof: bool) -> Option<Self> {
        let mut packets = Packets { bytes, at: 0, sequence: 0 };
        let columns = match packets.next()? {
            (0x00, ok) if !is_eof(ok) => return packets.end(ok, None),
            (count @ 1..=0xFA, [_]) => count,
            _ => return None,
        };
        for _ in 0..columns {
            if packets.next()?.0 >= 0xFE {
                return None;
            }
        }
        if !deprecates_eof {
            let (first, eof) = packets.next()?;
            let notable =
                first != 0xFE || !is_eof(eof) || Ending::parse(eof).ok()?.status.intersects(NOTABLE);
            if notable {
                return None;
            }
        }
        let (rows_at, mut rows) = (packets.at, 0);
        loop {
            let end_at = packets.at;
            match packets.next()? {
                (0xFE, end) if is_eof(end) != deprecates_eof => {
                    return packets.end(end, Some(Set { rows, rows_at, end_at }));
                }
                (0xFE.., _) => return None,
                _ => rows += 1,
            }
        }
    }
    /// What it said.
    pub fn outcome(&self) -> Outcome {
        let rows = self.set.as_ref().map(|set| set.rows);
        let (affected_rows, last_insert_id) =
            self.counts.as_ref().map_or((0, 0), |counts| (counts.affected_rows, counts.last_insert_id));
        Outcome {
            status: Some(self.status),
            rows: rows.unwrap_or_default(),
            last_result: rows,
            affected_rows,
            last_insert_id,
            warnings: self.warnings,
            ..Outcome::default()
        }
    }
    /// Passes it on from a server to a client with these capabilities. True if what goes to the client was appended to `out`; `None` if
    /// its form is not one that this can make. `before`: the status in an EOF before rows. `waits_for_end`: one row by itself may be a
    /// procedure's OUT parameters, so that the EOF before it has the status of its end.
    pub fn translate(
        &self,
        (server, client): (CapabilityFlags, CapabilityFlags),
        before: StatusFlags,
        waits_for_end: bool,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        const FORM: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
        let Some(set) = &self.set else { return Some(false) };
        match (server.contains(FORM), client.contains(FORM)) {
            (true, false) => {
                let at_end = set.rows == 0 || waits_for_end && set.is_one_short_row();
                let before = if at_end { self.status } else { before };
                set.put_with_eof(bytes, out, before, (self.status, self.warnings));
                Some(true)
            }
            (server, client) => (server == client).then_some(false),
        }
    }
}

impl Set {
    /// Whether it is one row that a tracker would hold back until it knows what comes next.
    fn is_one_short_row(&self) -> bool {
        self.rows == 1 && self.end_at - self.rows_at - HEADER <= LONGEST_HELD
    }
    /// Appends the set in the form for a client that expects EOF packets: `before` and `end` are the statuses in them.
    fn put_with_eof(
        &self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        before: StatusFlags,
        (end, warnings): (StatusFlags, u16),
    ) {
        let definitions = bytes.get(..self.rows_at).unwrap_or_default();
        let rows = bytes.get(self.rows_at..self.end_at).unwrap_or_default();
        let mut sequence = bytes.get(self.rows_at + SEQUENCE).copied().unwrap_or_default();
        out.reserve(bytes.len() + 2 * HEADER + eof(end, 0).len());
        out.extend_from_slice(definitions);
        put_framed(out, &mut sequence, &eof(before, 0));
        let mut at = out.len();
        out.extend_from_slice(rows);
        while let Some(header) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<HEADER>()) {
            at += HEADER + parse_header(*header).0;
            if let Some(number) = header.get_mut(SEQUENCE) {
                *number = sequence;
            }
            sequence = sequence.wrapping_add(1);
        }
        put_framed(out, &mut sequence, &eof(end, warnings));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &[u8] = b"\x03def\0\0\0\x01a\x01a\x0C\x2D\0\xFF\xFF\0\0\xFD\0\0\x1F\0\0";
    const EOF: &[u8] = b"\xFE\0\0\x02\0";
    const OK: &[u8] = b"\xFE\0\0\x02\0\0\0";

    fn framed(payloads: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, mut sequence) = (Vec::new(), 1);
        payloads.iter().for_each(|payload| put_framed(&mut bytes, &mut sequence, payload));
        bytes
    }
    fn is_seen(payloads: &[&[u8]], deprecates_eof: bool) -> bool {
        Whole::see(&framed(payloads), deprecates_eof).is_some()
    }

    #[test]
    fn the_commonest_answers_are_seen_at_a_glance() {
        assert!(is_seen(&[b"\0\x01\x02\x02\0\0\0"], true) && is_seen(&[b"\0\x01\x02\x02\0\0\0"], false));
        for rows in 0..3 {
            let rows = vec![&b"\x01x"[..]; rows];
            assert!(is_seen(&[&[b"\x01", DEFINITION], &rows[..], &[OK]].concat(), true));
            assert!(is_seen(&[&[b"\x01", DEFINITION, EOF], &rows[..], &[EOF]].concat(), false));
        }
    }

    #[test]
    fn what_tells_of_more_than_itself_is_not() {
        for status in [0x08, 0x40, 0x80] {
            assert!(!is_seen(&[&[0, 0, 0, status, 0, 0, 0]], true), "{status}");
            assert!(!is_seen(&[b"\x01", DEFINITION, &[0xFE, 0, 0, status, 0, 0, 0]], true), "{status}");
            assert!(!is_seen(&[b"\x01", DEFINITION, &[0xFE, 0, 0, status, 0], EOF], false), "{status}");
        }
        assert!(!is_seen(&[b"\0\0\0\0\x40\0\0"], true), "a change in the session");
        assert!(!is_seen(&[b"\0\0\0\x02\0\0\0\x01x"], true), "a text");
        assert!(!is_seen(&[b"\xFF\x15\x04#28000no"], true));
        assert!(!is_seen(&[b"\x01", DEFINITION, b"\x01x", b"\xFF\x15\x04#28000no"], true));
        assert!(!is_seen(&[b"\x01", DEFINITION, EOF], true), "an end in the other form");
    }

    #[test]
    fn what_is_not_whole_and_alone_is_not() {
        let answer = framed(&[b"\x01", DEFINITION, b"\x01x", OK]);
        assert!((0..answer.len()).all(|cut| Whole::see(&answer[..cut], true).is_none()));
        assert!(Whole::see(&[&answer[..], b"\0"].concat(), true).is_none());
        let mut unnumbered = answer;
        unnumbered[3] = 2;
        assert!(Whole::see(&unnumbered, true).is_none());
    }
}
