//! Token by token to a digest text.
//!
//! Values become `?`, their signs included; lists of them end in `...` after a few, and so do lists of such lists in
//! parentheses. Blanks become one space, none beside commas and inside parentheses. The text of a digest is its own digest.

use super::Options;
use crate::tokens::{Token, Tokens};

/// What stood before, as far as it says what a sign or a comma means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Previous<'a> {
    Word(&'a [u8]),
    Literal,
    /// A list of literals in parentheses.
    Group,
    /// The end of another operand.
    Operand,
    Comma,
    CommaAfterLiteral,
    CommaAfterGroup,
    Dot,
    /// An operator, an opening parenthesis, or nothing at all.
    Other,
}

/// Writes one digest.
pub struct Writer<'a, 'o> {
    options: &'o Options,
    out: &'o mut Vec<u8>,
    previous: Previous<'a>,
    /// Literals in the list at hand, and groups in the list of groups.
    literals: usize,
    groups: usize,
    /// Where the group begins that nothing but literals has been in.
    group: Option<usize>,
    /// Where signs begin that belong to a literal, if one follows.
    signs: Option<usize>,
    /// A semicolon that stays only if something follows.
    semicolon: bool,
    full: bool,
}

impl<'a, 'o> Writer<'a, 'o> {
    /// Begins a digest in place of what `out` holds.
    pub fn new(options: &'o Options, out: &'o mut Vec<u8>) -> Self {
        out.clear();
        Self {
            options,
            out,
            previous: Previous::Other,
            literals: 0,
            groups: 0,
            group: None,
            signs: None,
            semicolon: false,
            full: false,
        }
    }
    /// Adds a token that `tokens` has just returned. False once the digest is as long as it may be.
    #[inline]
    pub fn token(&mut self, token: Token<'a>, tokens: &Tokens<'a>) -> bool {
        if self.full || tokens.position() > self.options.max_query_length {
            return false;
        }
        let before = self.out.len();
        self.add(token, tokens);
        if self.out.len() > self.options.max_digest_length {
            self.out.truncate(before);
            self.full = true;
        }
        !self.full
    }
    fn add(&mut self, token: Token<'a>, tokens: &Tokens<'a>) {
        let spaced = tokens.spaced();
        // A semicolon may be left out, and the comment would then stand at the end.
        if self.options.keep_comment
            && token != Token::Symbol(b';')
            && let Some(comment) = tokens.comment()
        {
            self.comment(comment);
        }
        match token {
            Token::Word(word) if !tokens.is_number() && (!self.is_null(word) || tokens.dot_follows()) => {
                self.signs = None;
                (self.group, self.groups) = (None, 0);
                self.word(spaced, word);
                self.previous = Previous::Word(word);
            }
            Token::Word(_) | Token::Text(_) | Token::Symbol(b'?') => self.literal(spaced),
            // A name under ANSI_QUOTES, but a digest is the same under each sql_mode.
            Token::Name(_) if tokens.quote() == Some(b'"') => self.literal(spaced),
            Token::Symbol(sign @ (b'-' | b'+')) if self.may_be_signed() => self.sign(spaced, sign),
            Token::Symbol(b',') => self.comma(),
            Token::Symbol(b'(') => self.open(spaced),
            Token::Symbol(b')') => self.close(),
            Token::Ellipsis => self.ellipsis(spaced),
            token => {
                self.signs = None;
                (self.group, self.groups) = (None, 0);
                self.previous = self.other(spaced, token);
            }
        }
    }
    /// A comment ends the lists that it stands in: what comes after it is always written.
    fn comment(&mut self, comment: &[u8]) {
        self.end_signs();
        self.piece(true, comment);
        (self.group, self.groups) = (None, 0);
        self.previous = match self.previous {
            Previous::Literal | Previous::Group => Previous::Operand,
            Previous::CommaAfterLiteral | Previous::CommaAfterGroup => Previous::Comma,
            previous => previous,
        };
    }
    /// A token that is written much as it is; returns what it is to those that follow.
    fn other(&mut self, spaced: bool, token: Token<'a>) -> Previous<'a> {
        match token {
            Token::Name(name) => {
                self.piece(spaced, b"`");
                self.out.extend_from_slice(name);
                self.out.push(b'`');
                return Previous::Operand;
            }
            Token::Symbol(b'.') => {
                self.piece(spaced, b".");
                return Previous::Dot;
            }
            Token::Symbol(b';') => self.semicolon = true,
            Token::Symbol(symbol) => {
                self.separate(spaced, symbol);
                self.out.push(symbol);
            }
            Token::UserVariable => self.piece(spaced, b"@"),
            Token::SystemVariable => self.piece(spaced, b"@@"),
            Token::ExecutedComment => self.piece(spaced, b"/*!"),
            Token::Word(_) | Token::Text(_) | Token::Ellipsis => {}
        }
        Previous::Other
    }
    fn word(&mut self, spaced: bool, word: &[u8]) {
        self.separate(spaced, 0);
        let start = self.out.len();
        if self.options.no_digits {
            for (index, &byte) in word.iter().enumerate() {
                let again = index > 0 && word.get(index - 1).is_some_and(u8::is_ascii_digit);
                match byte.is_ascii_digit() {
                    true if again => {}
                    true => self.out.push(b'?'),
                    false => self.out.push(byte),
                }
            }
        } else {
            self.out.extend_from_slice(word);
        }
        if self.options.lowercase {
            self.out.get_mut(start..).into_iter().for_each(<[u8]>::make_ascii_lowercase);
        }
    }
    /// Writes a piece, and before it what has to stand between it and what is there.
    fn piece(&mut self, spaced: bool, piece: &[u8]) {
        self.separate(spaced, piece.first().copied().unwrap_or_default());
        self.out.extend_from_slice(piece);
    }
    /// Writes what has to stand between what is there and a piece that begins with `first`.
    #[inline]
    fn separate(&mut self, spaced: bool, first: u8) {
        let Some(&last) = self.out.last() else {
            self.semicolon = false;
            return;
        };
        if std::mem::take(&mut self.semicolon) {
            self.out.extend_from_slice(b"; ");
        } else if spaced && !matches!(last, b',' | b'(') || last == b'-' && first == b'-' {
            // Two signs without a space could begin a comment.
            self.out.push(b' ');
        }
    }
    fn literal(&mut self, spaced: bool) {
        match self.signs.take() {
            Some(start) => self.out.truncate(start),
            None => self.separate(spaced, 0),
        }
        self.literals = if self.previous == Previous::CommaAfterLiteral { self.literals + 1 } else { 1 };
        if self.literals <= self.options.grouping_limit {
            self.out.push(b'?');
        } else if self.literals == self.options.grouping_limit + 1 {
            self.out.extend_from_slice(b"...");
        } else {
            self.out.pop();
        }
        if self.group.is_none() {
            self.groups = 0;
        }
        self.previous = Previous::Literal;
    }
    fn sign(&mut self, spaced: bool, sign: u8) {
        self.separate(spaced, 0);
        let start = *self.signs.get_or_insert(self.out.len());
        if start < self.out.len() || sign == b'+' || self.out.last() != Some(&b'-') {
            self.piece(false, &[sign]);
        } else {
            // A minus that is an operator stands before: the space between is not the literal's.
            self.out.push(b' ');
            self.signs = Some(self.out.len());
            self.out.push(sign);
        }
    }
    fn comma(&mut self) {
        self.end_signs();
        self.piece(false, b",");
        self.previous = match self.previous {
            Previous::Literal => Previous::CommaAfterLiteral,
            Previous::Group => Previous::CommaAfterGroup,
            _ => Previous::Comma,
        };
    }
    fn open(&mut self, spaced: bool) {
        self.end_signs();
        self.separate(spaced, 0);
        if self.previous != Previous::CommaAfterGroup {
            self.groups = 0;
        }
        self.group = Some(self.out.len());
        self.out.push(b'(');
        self.previous = Previous::Other;
    }
    fn close(&mut self) {
        self.end_signs();
        self.piece(false, b")");
        let group = self.group.take().filter(|_| self.previous == Previous::Literal);
        let Some(start) = group else {
            (self.groups, self.previous) = (0, Previous::Operand);
            return;
        };
        self.groups += 1;
        self.previous = Previous::Group;
        let limit = self.options.groups_grouping_limit;
        if self.groups > limit {
            self.out.truncate(start);
            if self.groups == limit + 1 {
                self.out.extend_from_slice(b"...");
            } else {
                self.out.pop();
            }
        }
    }
    /// What a digest has left out; in place of what would be left out here too.
    fn ellipsis(&mut self, spaced: bool) {
        self.end_signs();
        let (count, limit, previous) = match self.previous {
            Previous::CommaAfterLiteral => {
                (&mut self.literals, self.options.grouping_limit, Previous::Literal)
            }
            Previous::CommaAfterGroup => {
                (&mut self.groups, self.options.groups_grouping_limit, Previous::Group)
            }
            _ => {
                (self.group, self.groups, self.previous) = (None, 0, Previous::Other);
                return self.piece(spaced, b"...");
            }
        };
        let known = *count > limit;
        *count = limit + 1;
        self.previous = previous;
        if known {
            self.out.pop();
        } else {
            self.out.extend_from_slice(b"...");
        }
    }
    /// Signs that no literal follows are operators.
    fn end_signs(&mut self) {
        if self.signs.take().is_some() {
            (self.group, self.groups, self.previous) = (None, 0, Previous::Other);
        }
    }
    fn is_null(&self, word: &[u8]) -> bool {
        if !word.eq_ignore_ascii_case(b"NULL") {
            return false;
        }
        let kept = match self.previous {
            Previous::Word(before) => {
                before.eq_ignore_ascii_case(b"IS") || before.eq_ignore_ascii_case(b"NOT")
            }
            previous => previous == Previous::Dot,
        };
        self.options.replace_null && !kept
    }
    /// Whether a sign here belongs to what follows, rather than standing between two operands.
    fn may_be_signed(&self) -> bool {
        match self.previous {
            Previous::Word(word) => OPERAND_FOLLOWS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)),
            Previous::Literal | Previous::Group | Previous::Operand => false,
            _ => true,
        }
    }
}

/// Words that are no operand themselves but have one after them.
const OPERAND_FOLLOWS: [&[u8]; 29] = [
    b"SELECT",
    b"WHERE",
    b"AND",
    b"OR",
    b"XOR",
    b"NOT",
    b"IN",
    b"LIKE",
    b"REGEXP",
    b"RLIKE",
    b"BETWEEN",
    b"IS",
    b"CASE",
    b"WHEN",
    b"THEN",
    b"ELSE",
    b"BY",
    b"HAVING",
    b"ON",
    b"LIMIT",
    b"OFFSET",
    b"VALUES",
    b"VALUE",
    b"SET",
    b"DIV",
    b"MOD",
    b"INTERVAL",
    b"DISTINCT",
    b"RETURN",
];
