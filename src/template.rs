//! Statements with gaps where their values are: one that differs from another in its values alone is recognised without being
//! cut into tokens, many times faster. Whatever is judged of a statement, but for its values, holds for both.
//!
//! What stands outside the gaps must be the same byte for byte. Since a gap's first byte is of the same kind, and the value ends in
//! it, the tokens around it are the same as well.

use crate::quoting::Quoting;
use crate::tokens::{Token, Tokens, is_word};

/// Most values of a statement that is recognised.
const MOST_GAPS: usize = 256;
/// Most bytes at the beginning of a statement that go into its key.
const KEYED: usize = 32;

/// A place for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// How many bytes stand between the gap before and this one.
    after: usize,
    /// The quote that a text begins with, or 0 for a number.
    quote: u8,
}

/// A statement without its values.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// What stands outside the gaps.
    fixed: Box<[u8]>,
    gaps: Box<[Gap]>,
}

impl Template {
    /// Whether `sql` is a statement with these bytes and values in the gaps; `quoting` as when the template was made.
    pub fn fits(&self, sql: &[u8], quoting: Quoting) -> bool {
        let (mut fixed, mut rest) = (&*self.fixed, sql);
        for gap in &self.gaps {
            let Some((piece, others)) = fixed.split_at_checked(gap.after) else { return false };
            let Some(value) = rest.strip_prefix(piece) else { return false };
            let length = match gap.quote {
                0 => number_length(value),
                quote => text_length(value, quote, quoting),
            };
            let Some(after) = length.and_then(|length| value.get(length..)) else { return false };
            (fixed, rest) = (others, after);
        }
        fixed == rest
    }
}

/// Makes the template of a statement from its tokens.
pub struct Gaps<'a> {
    sql: &'a [u8],
    quoting: Quoting,
    gaps: Vec<Gap>,
    /// Where the last gap ends.
    end: usize,
    fixed: Vec<u8>,
    /// A value is of a kind that is not recognised.
    odd: bool,
}

impl<'a> Gaps<'a> {
    /// For a statement whose tokens follow; `quoting` as for these.
    pub fn new(sql: &'a [u8], quoting: Quoting) -> Self {
        Self { sql, quoting, gaps: Vec::new(), end: 0, fixed: Vec::new(), odd: false }
    }
    /// Adds a token that `tokens` has just returned.
    pub fn token(&mut self, token: Token<'a>, tokens: &Tokens<'a>) {
        if self.odd {
            return;
        }
        let end = tokens.position();
        let (start, quote) = match token {
            Token::Word(number) if tokens.is_number() => (end - number.len(), 0),
            Token::Text(text) => match tokens.quote() {
                Some(quote) => (end - text.len() - 2, quote),
                None => return self.odd = true,
            },
            _ => return,
        };
        let value = self.sql.get(start..).unwrap_or_default();
        let length = match quote {
            0 => number_length(value),
            quote => text_length(value, quote, self.quoting),
        };
        let piece = self.sql.get(self.end..start).filter(|_| self.gaps.len() < MOST_GAPS);
        match piece {
            Some(piece) if length == Some(end - start) => {
                self.gaps.push(Gap { after: piece.len(), quote });
                self.fixed.extend_from_slice(piece);
                self.end = end;
            }
            _ => self.odd = true,
        }
    }
    /// The template; `None` if the statement has a value that would not be recognised again.
    pub fn finish(mut self) -> Option<Template> {
        self.fixed.extend_from_slice(self.sql.get(self.end..)?);
        let Self { fixed, gaps, odd, .. } = self;
        (!odd).then(|| Template { fixed: fixed.into(), gaps: gaps.into() })
    }
}

/// Length of a number of digits, with a decimal point among them or without, and nothing behind it that could be part of it.
#[inline]
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        end = if fraction > end + 1 { fraction } else { return None };
    }
    let goes_on = bytes.get(end).is_some_and(|&byte| is_word(byte) || byte == b'.');
    (!goes_on).then_some(end)
}

/// Length of a text in these quotes, which are part of it.
#[inline]
fn text_length(bytes: &[u8], quote: u8, quoting: Quoting) -> Option<usize> {
    let (&first, inside) = bytes.split_first()?;
    let length = quoting.length(inside, quote);
    (first == quote && inside.get(length) == Some(&quote)).then_some(length + 2)
}

/// A number that all statements of one template share, from what stands before the first byte that may begin a value. Its high
/// bits depend on all of that.
pub fn key(sql: &[u8]) -> u64 {
    let (chunks, rest) = sql.get(..KEYED).unwrap_or(sql).as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let mut key = 0;
    for chunk in chunks.iter().chain(std::iter::once(&last)) {
        let bytes = u64::from_le_bytes(*chunk);
        let stops = stops(bytes);
        if stops != 0 {
            // The bytes before the first that stops.
            return mix(key, bytes & ((stops & stops.wrapping_neg()) >> 7).wrapping_sub(1));
        }
        key = mix(key, bytes);
    }
    key
}

#[inline]
fn mix(sum: u64, part: u64) -> u64 {
    (sum.rotate_left(29) ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The high bit of each byte that is a digit, a quote, `#` or `&`; all bytes at once.
#[inline]
fn stops(bytes: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    const HIGH: u64 = each(0x80);
    let low = bytes & !HIGH;
    // The high bit of a sum of two bytes below 0x80 says that it is at least 0x80.
    let digits = (low + each(0x80 - b'0')) & !(low + each(0x80 - b'9' - 1));
    // The quotes differ in two bits, without which they and two others are nothing.
    let others = ((low & each(!(b'"' ^ b'\''))) ^ each(b'"' & b'\'')) + each(0x7F);
    (digits | !others) & !bytes & HIGH
}

#[cfg(test)]
mod tests;
