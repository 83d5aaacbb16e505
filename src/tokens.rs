//! SQL text cut into tokens, for its effect on a session and for its digest. Any bytes are accepted, in linear time.

use crate::quoting::Quoting;

/// A piece of SQL text. White space and comments are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword, name or number outside quotes.
    Word(&'a [u8]),
    /// What is inside single or double quotes, escapes as written; `_charset`, `N`, `X` or `B` may stand before the quotes.
    Text(&'a [u8]),
    /// What is inside backquotes, or double quotes where these are for names.
    Name(&'a [u8]),
    /// `@`: a user variable follows.
    UserVariable,
    /// `@@`: a system variable follows.
    SystemVariable,
    /// Any other byte.
    Symbol(u8),
    /// `/*!` or `/*M!`: a comment that the server executes.
    ExecutedComment,
    /// `...`, which stands in digests for what was left out.
    Ellipsis,
}

/// Iterator over the tokens of a text.
pub struct Tokens<'a> {
    length: usize,
    rest: &'a [u8],
    quoting: Quoting,
    // The last token was a name, or the dot right after one: what follows is no number.
    qualifies: Qualifies,
    spaced: bool,
    number: bool,
    quote: Option<u8>,
    comment: Option<&'a [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Qualifies {
    No,
    Name,
    Dot,
}

impl<'a> Tokens<'a> {
    /// Tokens of `sql`, as a session reads it.
    pub fn new(sql: &'a [u8], quoting: Quoting) -> Self {
        Self {
            length: sql.len(),
            rest: sql,
            quoting,
            qualifies: Qualifies::No,
            spaced: false,
            number: false,
            quote: None,
            comment: None,
        }
    }
    /// Bytes up to the end of the last token.
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }
    /// Whether white space or a comment stood before the last token.
    pub fn spaced(&self) -> bool {
        self.spaced
    }
    /// Whether the last token, a word, was a number.
    pub fn is_number(&self) -> bool {
        self.number
    }
    /// The quote at both ends of the last token, a text or a quoted name; `None` if it has no end.
    pub fn quote(&self) -> Option<u8> {
        self.quote
    }
    /// Whether a dot follows the last token directly.
    pub fn dot_follows(&self) -> bool {
        self.rest.first() == Some(&b'.')
    }
    /// The last comment in front of the last token, if it is of the form that needs no line of its own.
    pub fn comment(&self) -> Option<&'a [u8]> {
        self.comment
    }
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
    fn length_while(&self, from: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let mut length = from;
        while self.rest.get(length).is_some_and(|&byte| wanted(byte)) {
            length += 1;
        }
        length
    }
    /// Takes a quoted piece whose opening quote was taken already; a doubled quote stands for itself.
    fn take_quoted(&mut self, quote: u8) -> &'a [u8] {
        let inside = self.take(self.quoting.length(self.rest, quote));
        self.quote = (!self.take(1).is_empty()).then_some(quote);
        inside
    }
    fn skip_line(&mut self) {
        self.take(self.length_while(0, |byte| byte != b'\n'));
    }
    /// Skips white space and comments; true if there were any.
    #[inline]
    fn skip_blanks(&mut self) -> bool {
        self.comment = None;
        match self.rest {
            // What stands between most words.
            [b' ', rest @ ..] if rest.first().is_some_and(|&after| is_word(after)) => {
                self.rest = rest;
                true
            }
            [first, ..] if first.is_ascii_whitespace() || matches!(first, b'/' | b'#' | b'-') => {
                self.skip_all_blanks()
            }
            _ => false,
        }
    }
    fn skip_all_blanks(&mut self) -> bool {
        let before = self.rest.len();
        loop {
            self.take(self.length_while(0, |byte| byte.is_ascii_whitespace()));
            match self.rest {
                [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => break,
                [b'/', b'*', ..] => {
                    let end = self.rest.windows(2).skip(2).position(|pair| pair == b"*/");
                    self.comment = Some(self.take(end.map_or(self.rest.len(), |at| at + 4)));
                }
                [b'#', ..] | [b'-', b'-'] => self.skip_line(),
                [b'-', b'-', after, ..] if after.is_ascii_whitespace() || after.is_ascii_control() => {
                    self.skip_line();
                }
                _ => break,
            }
        }
        self.rest.len() < before
    }
    /// A word or a number that begins with `first`.
    #[inline]
    fn word(&mut self, first: u8) -> Token<'a> {
        let mut length = match self.quoting.characters.are_wide() {
            true => self.wide_word(),
            false => self.length_while(1, is_word),
        };
        if first.is_ascii_digit() && (self.qualifies != Qualifies::Dot || self.spaced) {
            let fraction = match (self.rest.get(..length), self.rest.get(length)) {
                (Some(word), Some(b'.')) if word.iter().all(u8::is_ascii_digit) => length,
                _ => length + 1,
            };
            (length, self.number) = self.number(length, fraction);
        } else if (length == 1 || first == b'_')
            && let Some(text) = self.introduced(length)
        {
            self.qualifies = Qualifies::No;
            return Token::Text(text);
        }
        self.qualifies = if self.number { Qualifies::No } else { Qualifies::Name };
        Token::Word(self.take(length))
    }
    /// Length of a word in which bytes of characters may look like symbols.
    fn wide_word(&self) -> usize {
        let mut length = 0;
        while let Some(rest) =
            self.rest.get(length..).filter(|rest| rest.first().is_some_and(|&byte| is_word(byte)))
        {
            length += self.quoting.characters.length(rest);
        }
        length
    }
    /// Takes a quoted text that the word of `length` bytes introduces.
    fn introduced(&mut self, length: usize) -> Option<&'a [u8]> {
        let (word, after) = self.rest.split_at_checked(length)?;
        let blanks = match word {
            [b'x' | b'X' | b'b' | b'B' | b'n' | b'N'] => 0,
            [b'_', ..] => after.iter().position(|byte| !byte.is_ascii_whitespace())?,
            _ => return None,
        };
        let quote = *after.get(blanks).filter(|byte| matches!(byte, b'\'' | b'"'))?;
        self.take(length + blanks + 1);
        Some(self.take_quoted(quote))
    }
    /// Length of the number that begins here with a word of `length` bytes and may have its decimal point at `point`; that
    /// of the word if it is none.
    fn number(&self, length: usize, point: usize) -> (usize, bool) {
        let word = self.rest.get(..length).unwrap_or_default();
        if point <= length {
            let digits = self.length_while(point + 1, |byte| byte.is_ascii_digit());
            return (self.exponent(digits).unwrap_or(digits), true);
        }
        let digits = self.length_while(0, |byte| byte.is_ascii_digit());
        match word {
            _ if digits == 0 => (length, false),
            _ if digits == length => (length, true),
            [b'0', b'x', hex @ ..] if !hex.is_empty() => (length, hex.iter().all(u8::is_ascii_hexdigit)),
            [b'0', b'b', bits @ ..] if !bits.is_empty() => {
                (length, bits.iter().all(|bit| matches!(bit, b'0' | b'1')))
            }
            _ => match self.exponent(digits) {
                Some(end) if end >= length => (end, true),
                _ => (length, false),
            },
        }
    }
    /// Where the exponent that begins at `at` ends.
    fn exponent(&self, at: usize) -> Option<usize> {
        let first = match self.rest.get(at..)? {
            [b'e' | b'E', b'+' | b'-', ..] => at + 2,
            [b'e' | b'E', ..] => at + 1,
            _ => return None,
        };
        let end = self.length_while(first, |byte| byte.is_ascii_digit());
        (end > first).then_some(end)
    }
    fn symbol(&mut self, first: u8) -> Token<'a> {
        if self.rest.starts_with(b"...") {
            self.qualifies = Qualifies::No;
            self.take(3);
            return Token::Ellipsis;
        }
        if let [b'.', digit, ..] = self.rest
            && digit.is_ascii_digit()
            && (self.qualifies == Qualifies::No || self.spaced)
        {
            let (length, _) = self.number(0, 0);
            (self.number, self.qualifies) = (true, Qualifies::No);
            return Token::Word(self.take(length));
        }
        let after_name = self.qualifies == Qualifies::Name && !self.spaced;
        self.qualifies = if first == b'.' && after_name { Qualifies::Dot } else { Qualifies::No };
        self.take(1);
        Token::Symbol(first)
    }
}

/// Whether a byte may be part of a word.
#[inline]
pub fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = (byte as u8).is_ascii_alphanumeric()
                || byte == b'_' as usize
                || byte == b'$' as usize
                || byte >= 0x80;
            byte += 1;
        }
        table
    };
    // In bounds: the table has an entry for every byte.
    WORD[byte as usize]
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        self.spaced = self.skip_blanks();
        self.number = false;
        let first = *self.rest.first()?;
        if is_word(first) {
            return Some(self.word(first));
        }
        let token = match self.rest {
            // Other comments have been skipped.
            [b'/', b'*', after, ..] => {
                self.take(if *after == b'!' { 3 } else { 4 });
                Token::ExecutedComment
            }
            [b'@', b'@', ..] => {
                self.take(2);
                Token::SystemVariable
            }
            [b'@', ..] => {
                self.take(1);
                Token::UserVariable
            }
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let quote = *quote;
                self.take(1);
                let inside = self.take_quoted(quote);
                if self.quoting.is_for_names(quote) {
                    self.qualifies = Qualifies::Name;
                    return Some(Token::Name(inside));
                }
                Token::Text(inside)
            }
            _ => return Some(self.symbol(first)),
        };
        self.qualifies = Qualifies::No;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quoting::Characters;
    use proptest::prelude::*;

    fn tokens(sql: &str) -> Vec<Token<'_>> {
        Tokens::new(sql.as_bytes(), Quoting::default()).collect()
    }

    #[test]
    fn quotes_and_comments_hide_what_is_inside() {
        assert_eq!(
            tokens("a /* @x */ 'it''s @x' \"\\\"@\" `b``@` -- @x\n@@c--1 # @x"),
            [
                Token::Word(b"a"),
                Token::Text(b"it''s @x"),
                Token::Text(b"\\\"@"),
                Token::Name(b"b``@"),
                Token::SystemVariable,
                Token::Word(b"c"),
                Token::Symbol(b'-'),
                Token::Symbol(b'-'),
                Token::Word(b"1"),
            ]
        );
        assert_eq!(tokens("@x /*!50000 y */")[..2], [Token::UserVariable, Token::Word(b"x")]);
        assert!(tokens("/*M!100 y */").contains(&Token::ExecutedComment));
    }

    #[test]
    fn numbers_are_words_of_their_own() {
        let numbers = |sql: &'static str| {
            let mut tokens = Tokens::new(sql.as_bytes(), Quoting::default());
            let mut found = Vec::new();
            while let Some(token) = tokens.next() {
                if let (Token::Word(word), true) = (token, tokens.is_number()) {
                    found.push(std::str::from_utf8(word).unwrap());
                }
            }
            found
        };
        assert_eq!(
            numbers("1 1.5 .5 1. 1e5 1.5e-3 2E+7 0xAF 0b01"),
            "1 1.5 .5 1. 1e5 1.5e-3 2E+7 0xAF 0b01".split(' ').collect::<Vec<_>>()
        );
        assert_eq!(numbers("a1 1a 1e 0x 0b2 t.5 `t`.5 t.1e5 _1 a.1.5"), Vec::<&str>::new());
        assert_eq!(numbers("a.b .5 a-5 1..2 1e+x"), [".5", "5", "1.", ".2"]);
    }

    #[test]
    fn a_plain_backslash_does_not_hide_the_quote_that_ends_a_text() {
        let sql = br"'\' , @x";
        let plain = Quoting { plain_backslash: true, ..Quoting::default() };
        assert!(Tokens::new(sql, plain).any(|token| token == Token::UserVariable));
        assert!(!Tokens::new(sql, Quoting::default()).any(|token| token == Token::UserVariable));
    }

    #[test]
    fn words_of_wide_characters_hide_their_second_bytes() {
        let gbk = Quoting { characters: Characters::of("gbk"), ..Quoting::default() };
        let found: Vec<_> = Tokens::new(b"\xa8`\xa8@a \xa8'@'", gbk).collect();
        assert_eq!(found, [Token::Word(b"\xa8`\xa8@a"), Token::Word(b"\xa8"), Token::Text(b"@")]);
    }

    #[test]
    fn double_quotes_may_be_for_names() {
        let ansi = Quoting { ansi_quotes: true, ..Quoting::default() };
        assert_eq!(
            Tokens::new(br#""a\" 'b\'' "c""d".5"#, ansi).collect::<Vec<_>>(),
            [
                Token::Name(br"a\"),
                Token::Text(br"b\'"),
                Token::Name(br#"c""d"#),
                Token::Symbol(b'.'),
                Token::Word(b"5"),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_end(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            quoting in crate::quoting::tests::any_quoting(),
        ) {
            prop_assert!(Tokens::new(&bytes, quoting).count() <= bytes.len());
        }
    }
}
