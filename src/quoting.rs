//! How a session's server reads the quotes in its statements: by the sql_mode and the character set of the client.

use memchr::memchr2;

/// What decides where a quoted piece of a statement ends. By default that of a session that has set nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quoting {
    /// The sql_mode NO_BACKSLASH_ESCAPES: a backslash in quotes is a byte like any other.
    pub plain_backslash: bool,
    /// The sql_mode ANSI_QUOTES: what stands in double quotes is a name.
    pub ansi_quotes: bool,
    /// The characters of `character_set_client`.
    pub characters: Characters,
}

impl Quoting {
    /// Whether what stands in these quotes is a name.
    #[inline]
    pub fn is_for_names(self, quote: u8) -> bool {
        quote == b'`' || quote == b'"' && self.ansi_quotes
    }
    /// Where the quote is that ends what `bytes` begin with, the opening quote before them; their length if there is none. A
    /// doubled quote stands for itself.
    pub fn length(self, bytes: &[u8], quote: u8) -> usize {
        // Where a backslash is a byte like any other, the quote alone is looked for.
        let escape = if self.plain_backslash || self.is_for_names(quote) { quote } else { b'\\' };
        if self.characters.are_wide() {
            return self.characters.quoted_length(bytes, quote, escape);
        }
        let mut at = 0;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(quote, escape, rest)) {
            at += found;
            if bytes.get(at) == Some(&quote) && bytes.get(at + 1) != Some(&quote) {
                return at;
            }
            at += 2;
        }
        bytes.len()
    }
}

/// Character sets by what a byte below 0x80 can be part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Characters {
    /// Such a byte is always a character of its own.
    #[default]
    Plain,
    /// big5.
    Big5,
    /// gb18030.
    Gb18030,
    /// gbk.
    Gbk,
    /// sjis and cp932.
    Sjis,
}

impl Characters {
    /// Those of a character set, or of one whose name with a collation or more behind it this is.
    pub fn of(name: &str) -> Self {
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
        let is = |known: &str| name.get(..end).is_some_and(|name| name.eq_ignore_ascii_case(known));
        match () {
            () if is("gbk") => Self::Gbk,
            () if is("sjis") || is("cp932") => Self::Sjis,
            () if is("big5") => Self::Big5,
            () if is("gb18030") => Self::Gb18030,
            () => Self::Plain,
        }
    }
    /// Whether a byte below 0x80 can be the end of a character.
    #[inline]
    pub fn are_wide(self) -> bool {
        self != Self::Plain
    }
    /// Bytes of the character that `bytes` begin with. A byte that is none is taken for one, as servers do.
    pub fn length(self, bytes: &[u8]) -> usize {
        match (self, bytes) {
            (Self::Gbk, [0x81..=0xFE, 0x40..=0x7E | 0x80..=0xFE, ..])
            | (Self::Sjis, [0x81..=0x9F | 0xE0..=0xFC, 0x40..=0x7E | 0x80..=0xFC, ..])
            | (Self::Big5, [0xA1..=0xF9, 0x40..=0x7E | 0xA1..=0xFE, ..])
            | (Self::Gb18030, [0x81..=0xFE, 0x40..=0x7E | 0x80..=0xFE, ..]) => 2,
            (Self::Gb18030, [0x81..=0xFE, b'0'..=b'9', 0x81..=0xFE, b'0'..=b'9', ..]) => 4,
            _ => 1,
        }
    }
    /// The same as [`Quoting::length`], character by character.
    fn quoted_length(self, bytes: &[u8], quote: u8, escape: u8) -> usize {
        let mut at = 0;
        while let Some([first, rest @ ..]) = bytes.get(at..) {
            at += match first {
                0x80.. => self.length(bytes.get(at..).unwrap_or_default()),
                byte if *byte == quote && rest.first() != Some(&quote) => return at,
                byte if *byte == quote || *byte == escape => 2,
                _ => 1,
            };
        }
        bytes.len()
    }
}

#[cfg(test)]
pub(crate) mod tests;
