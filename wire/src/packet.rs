//! Reading and writing the fields that packets are made of. Nothing here panics on short or wild input.

use crate::{StatusFlags, WireError};

/// The largest payload of one packet; one of exactly this length is continued by the next
/// (MySQL protocol, "Sending More Than 16Mb").
pub const MAX_PAYLOAD: usize = 0xFF_FFFF;

/// Bytes in a packet's header: three of length, one of sequence number.
pub const HEADER: usize = 4;

/// Where a packet's header has its sequence number.
pub const SEQUENCE: usize = 3;

#[cold]
fn short() -> WireError {
    WireError::Malformed("it ends too early")
}

/// A cursor over one payload.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.0.split_at_checked(count).ok_or_else(short)?;
        self.0 = tail;
        Ok(head)
    }
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or_else(short)?;
        self.0 = tail;
        Ok(*head)
    }
    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// A length-encoded integer. 0xFB (NULL) and 0xFF (ERR) are no integers.
    #[inline]
    pub(crate) fn lenenc_int(&mut self) -> Result<u64, WireError> {
        Ok(match self.u8()? {
            small @ 0..=0xFA => u64::from(small),
            0xFC => u64::from(self.u16()?),
            0xFD => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xFE => u64::from_le_bytes(self.array()?),
            _ => return Err(WireError::Malformed("not a length-encoded integer")),
        })
    }
    pub(crate) fn lenenc_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.lenenc_int()?;
        self.bytes(usize::try_from(length).map_err(|_| short())?)
    }
    /// A value of a text row: NULL is `None`.
    pub(crate) fn text_value(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        if let [0xFB, tail @ ..] = self.0 {
            self.0 = tail;
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }
    /// Up to a NUL byte, which must be there.
    pub(crate) fn nul_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let end = self.0.iter().position(|&b| b == 0).ok_or_else(short)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Ok(text)
    }
    /// Up to a NUL byte or the end: some clients leave out the last NUL of a handshake.
    pub(crate) fn nul_bytes_or_rest(&mut self) -> &'a [u8] {
        let whole = self.0;
        self.nul_bytes().unwrap_or_else(|_| {
            self.0 = &[];
            whole
        })
    }
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
    /// What has not been read yet.
    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.0
    }
}

/// Appends a length-encoded integer.
pub(crate) fn put_lenenc_int(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    let width = match value {
        0..=0xFA => 1,
        0xFB..=0xFFFF => {
            out.push(0xFC);
            2
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            3
        }
        _ => {
            out.push(0xFE);
            8
        }
    };
    out.extend(bytes.iter().take(width));
}

/// Appends a length-encoded string.
pub(crate) fn put_lenenc_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_lenenc_int(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a string and its NUL. A NUL inside would end it early, so the string is cut there.
pub(crate) fn put_nul_bytes(out: &mut Vec<u8>, value: &[u8]) {
    out.extend(value.iter().take_while(|&&b| b != 0));
    out.push(0);
}

/// Appends payload as packets, numbered from `*sequence` on, split where it exceeds `MAX_PAYLOAD`.
pub(crate) fn put_framed(out: &mut Vec<u8>, sequence: &mut u8, mut payload: &[u8]) {
    loop {
        let length = payload.len().min(MAX_PAYLOAD);
        let (part, rest) = payload.split_at(length);
        let [a, b, c, _] = (length as u32).to_le_bytes();
        out.extend_from_slice(&[a, b, c, *sequence]);
        out.extend_from_slice(part);
        *sequence = sequence.wrapping_add(1);
        payload = rest;
        if length < MAX_PAYLOAD {
            return;
        }
    }
}

/// The parts of a packet's header: payload length and sequence number.
pub(crate) fn parse_header(header: [u8; HEADER]) -> (usize, u8) {
    let [a, b, c, sequence] = header;
    (u32::from_le_bytes([a, b, c, 0]) as usize, sequence)
}

/// What an OK packet (first byte 0x00, or 0xFE in place of EOF) or an EOF packet says at the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending<'a> {
    /// `None` in an EOF packet.
    pub(crate) counts: Option<Counts>,
    pub(crate) status: StatusFlags,
    pub(crate) warnings: u16,
    /// What follows in an OK packet: text, and session-track data where the status says so.
    pub(crate) tail: &'a [u8],
}

/// What only an OK packet has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) affected_rows: u64,
    pub(crate) last_insert_id: u64,
}

impl<'a> Ending<'a> {
    /// An EOF packet is told by its five bytes: no OK packet has fewer than seven.
    pub(crate) fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        fields.u8()?;
        if is_eof(payload) {
            let warnings = fields.u16()?;
            let status = StatusFlags::from_bits_retain(fields.u16()?);
            return Ok(Self { counts: None, status, warnings, tail: &[] });
        }
        let counts = Counts { affected_rows: fields.lenenc_int()?, last_insert_id: fields.lenenc_int()? };
        let status = StatusFlags::from_bits_retain(fields.u16()?);
        let warnings = fields.u16()?;
        Ok(Self { counts: Some(counts), status, warnings, tail: fields.rest() })
    }
    /// The text and the session-track data of an OK packet whose status has SERVER_SESSION_STATE_CHANGED, under
    /// CLIENT_SESSION_TRACK. Either is empty where the packet ends before it.
    pub(crate) fn tracked(&self) -> Result<(&'a [u8], &'a [u8]), WireError> {
        let mut fields = Fields::new(self.tail);
        let mut next = || if fields.is_empty() { Ok(&[][..]) } else { fields.lenenc_bytes() };
        Ok((next()?, next()?))
    }
}

const EOF_LENGTH: usize = 5;

/// Whether the payload of an OK or EOF is that of an EOF.
#[inline]
pub(crate) fn is_eof(payload: &[u8]) -> bool {
    payload.len() == EOF_LENGTH
}

/// Appends the payload of an OK packet up to its text; `first` is 0x00, or 0xFE in place of EOF.
pub(crate) fn put_ok(out: &mut Vec<u8>, first: u8, counts: Counts, status: StatusFlags, warnings: u16) {
    out.push(first);
    put_lenenc_int(out, counts.affected_rows);
    put_lenenc_int(out, counts.last_insert_id);
    out.extend_from_slice(&status.bits().to_le_bytes());
    out.extend_from_slice(&warnings.to_le_bytes());
}

/// The payload of an EOF packet.
pub(crate) fn eof(status: StatusFlags, warnings: u16) -> [u8; EOF_LENGTH] {
    let [warnings_low, warnings_high] = warnings.to_le_bytes();
    let [low, high] = status.bits().to_le_bytes();
    [0xFE, warnings_low, warnings_high, low, high]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lenenc_integers_have_the_documented_forms() {
        for (value, bytes) in [
            (0xFAu64, &[0xFAu8][..]),
            (0xFB, &[0xFC, 0xFB, 0]),
            (0xFFFF, &[0xFC, 0xFF, 0xFF]),
            (0x1_0000, &[0xFD, 0, 0, 1]),
            (0x100_0000, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            put_lenenc_int(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Fields::new(bytes).lenenc_int().unwrap(), value);
        }
    }

    #[test]
    fn a_length_beyond_the_packet_is_refused() {
        let huge = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, b'x'];
        assert!(Fields::new(&huge).lenenc_bytes().is_err());
        assert!(Fields::new(&[5, 1, 2]).lenenc_bytes().is_err());
        assert!(Fields::new(&[0xFF]).lenenc_int().is_err());
    }

    #[test]
    fn strings_end_at_nul() {
        let mut fields = Fields::new(b"ab\0cd");
        assert_eq!(fields.nul_bytes().unwrap(), b"ab");
        assert!(fields.nul_bytes().is_err());
        assert_eq!(fields.nul_bytes_or_rest(), b"cd");
        assert!(fields.is_empty());
        let mut out = Vec::new();
        put_nul_bytes(&mut out, b"a\0b");
        assert_eq!(out, b"a\0");
    }

    #[test]
    fn a_payload_of_exactly_the_maximum_gets_an_empty_packet() {
        let (mut out, mut sequence) = (Vec::new(), 255);
        put_framed(&mut out, &mut sequence, &vec![7; MAX_PAYLOAD]);
        assert_eq!(out.len(), MAX_PAYLOAD + 2 * HEADER);
        assert_eq!(&out[..4], &[0xFF, 0xFF, 0xFF, 255]);
        assert_eq!(&out[MAX_PAYLOAD + HEADER..], &[0, 0, 0, 0]);
        assert_eq!(sequence, 1);
    }

    #[test]
    fn ok_and_eof_are_told_apart() {
        let status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        let eof = Ending { counts: None, status, warnings: 3, tail: b"" };
        assert_eq!(Ending::parse(&[0xFE, 3, 0, 2, 0]).unwrap(), eof);
        let counts = Some(Counts { affected_rows: 1, last_insert_id: 9 });
        let ok = Ending { counts, status, warnings: 3, tail: b"" };
        assert_eq!(Ending::parse(&[0x00, 1, 9, 2, 0, 3, 0, b'x']).unwrap(), Ending { tail: b"x", ..ok });
        assert_eq!(Ending::parse(&[0xFE, 1, 9, 2, 0, 3, 0]).unwrap(), ok);
        assert!(Ending::parse(&[0, 0, 0, 2]).is_err());
    }

    proptest! {
        #[test]
        fn lenenc_round_trip(value: u64, text: Vec<u8>) {
            let mut out = Vec::new();
            put_lenenc_int(&mut out, value);
            put_lenenc_bytes(&mut out, &text);
            let mut fields = Fields::new(&out);
            prop_assert_eq!(fields.lenenc_int().unwrap(), value);
            prop_assert_eq!(fields.lenenc_bytes().unwrap(), &text[..]);
            prop_assert!(fields.is_empty());
        }
    }
}
