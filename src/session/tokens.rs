//! SQL text cut into tokens, as far as its effect on a session needs it. Any bytes are accepted.

/// A piece of SQL text. White space and comments are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword, name or number outside quotes.
    Word(&'a [u8]),
    /// What is inside single or double quotes, escapes as written.
    Text(&'a [u8]),
    /// What is inside backquotes.
    Name(&'a [u8]),
    /// `@`: a user variable follows.
    UserVariable,
    /// `@@`: a system variable follows.
    SystemVariable,
    /// Any other byte.
    Symbol(u8),
    /// `/*!` or `/*M!`: a comment that the server executes.
    ExecutedComment,
}

/// Iterator over the tokens of a text.
pub struct Tokens<'a> {
    rest: &'a [u8],
    // The sql_mode NO_BACKSLASH_ESCAPES is in force.
    plain_backslash: bool,
}

impl<'a> Tokens<'a> {
    /// Tokens of `sql`; `plain_backslash` if a backslash in quotes is a byte like any other.
    pub fn new(sql: &'a [u8], plain_backslash: bool) -> Self {
        Self { rest: sql, plain_backslash }
    }
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| !wanted(byte)).unwrap_or(self.rest.len());
        self.take(length)
    }
    /// Takes a quoted piece whose opening quote was taken already; a doubled quote stands for itself.
    fn take_quoted(&mut self, quote: u8) -> &'a [u8] {
        let bytes = self.rest;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if byte == b'\\' && quote != b'`' && !self.plain_backslash {
                at += 1;
            } else if byte == quote {
                if bytes.get(at + 1) != Some(&quote) {
                    break;
                }
                at += 1;
            }
            at += 1;
        }
        let inside = self.take(at);
        self.take(1);
        inside
    }
    fn skip_line(&mut self) {
        self.take_while(|byte| byte != b'\n');
    }
    fn skip_comment(&mut self) {
        let end = self.rest.windows(2).position(|pair| pair == b"*/").map_or(self.rest.len(), |at| at + 2);
        self.take(end);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let first = *self.rest.first()?;
            if is_word(first) {
                return Some(Token::Word(self.take_while(is_word)));
            }
            match self.rest {
                [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {
                    self.take(2);
                    return Some(Token::ExecutedComment);
                }
                [b'/', b'*', ..] => {
                    self.take(2);
                    self.skip_comment();
                }
                [b'#', ..] | [b'-', b'-'] => self.skip_line(),
                [b'-', b'-', after, ..] if after.is_ascii_whitespace() || after.is_ascii_control() => {
                    self.skip_line();
                }
                [b'@', b'@', ..] => {
                    self.take(2);
                    return Some(Token::SystemVariable);
                }
                [b'@', ..] => {
                    self.take(1);
                    return Some(Token::UserVariable);
                }
                [quote @ (b'\'' | b'"'), ..] => {
                    let quote = *quote;
                    self.take(1);
                    return Some(Token::Text(self.take_quoted(quote)));
                }
                [b'`', ..] => {
                    self.take(1);
                    return Some(Token::Name(self.take_quoted(b'`')));
                }
                _ => {
                    self.take(1);
                    if !first.is_ascii_whitespace() {
                        return Some(Token::Symbol(first));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(sql: &str) -> Vec<Token<'_>> {
        Tokens::new(sql.as_bytes(), false).collect()
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
    fn a_plain_backslash_does_not_hide_the_quote_that_ends_a_text() {
        let sql = br"'\' , @x";
        assert!(Tokens::new(sql, true).any(|token| token == Token::UserVariable));
        assert!(!Tokens::new(sql, false).any(|token| token == Token::UserVariable));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..64), plain: bool) {
            prop_assert!(Tokens::new(&bytes, plain).count() <= bytes.len());
        }
    }
}
