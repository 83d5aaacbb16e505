//! Text of configuration files, and of the files that they include, cut into tokens.

use super::tree::{Fault, Place};
use std::sync::Arc;

/// How deep files may include others.
const INCLUDE_DEPTH: usize = 10;
/// Files that may be included in all.
const INCLUDES: usize = 100;
/// Text of all files together, in bytes.
pub(super) const TEXT_LIMIT: usize = 16 << 20;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name, or true and false in any case.
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    /// One of `= : ; , { } ( ) [ ]`
    Mark(u8),
    End,
}

/// The name and the text of a file.
pub(super) struct Source {
    pub name: String,
    pub text: String,
}

/// Finds an included file: the including file's name and the path that it gives.
pub(super) type Include<'a> = dyn FnMut(&str, &str) -> Result<Source, String> + 'a;

pub(super) struct Lexer<'a> {
    /// The file that is read now is the last one.
    open: Vec<Reading>,
    include: &'a mut Include<'a>,
    includes: usize,
    bytes: usize,
    last: Place,
}

struct Reading {
    name: Arc<str>,
    text: String,
    at: usize,
    line: u32,
    /// Only blanks stand before `at` in its line.
    fresh: bool,
}

impl Reading {
    fn new(source: Source) -> Self {
        let Source { name, text } = source;
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { name: name.into(), text, at, line: 1, fresh: true }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'\n' => (self.line, self.fresh) = (self.line.saturating_add(1), true),
            b' ' | b'\t' | b'\r' => {}
            _ => self.fresh = false,
        }
        Some(byte)
    }

    fn skip_bytes(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    fn place(&self) -> Place {
        Place { file: Arc::clone(&self.name), line: self.line }
    }

    /// Takes bytes as long as `belongs` says so.
    fn take(&mut self, belongs: impl Fn(u8) -> bool) -> String {
        let mut taken = String::new();
        while let Some(byte) = self.peek().filter(|byte| byte.is_ascii() && belongs(*byte)) {
            taken.push(char::from(byte));
            self.bump();
        }
        taken
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            match self.rest() {
                [b' ' | b'\t' | b'\r' | b'\n' | b'\x0c', ..] => {
                    self.bump();
                }
                [b'#', ..] | [b'/', b'/', ..] => while self.bump().is_some_and(|byte| byte != b'\n') {},
                [b'/', b'*', ..] => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let place = self.place();
        self.skip_bytes(2);
        while !self.rest().starts_with(b"*/") {
            if self.bump().is_none() {
                return Err(fault(place, "the comment that begins here has no end: */ is missing"));
            }
        }
        self.skip_bytes(2);
        Ok(())
    }

    /// The string whose opening quote is next. A backslash that begins none of the known escapes stands for itself.
    fn string(&mut self) -> Result<String, Fault> {
        let place = self.place();
        self.bump();
        let mut bytes = Vec::new();
        loop {
            if let Some((byte, length)) = escape(self.rest()) {
                bytes.push(byte);
                self.skip_bytes(length);
                continue;
            }
            match self.bump() {
                Some(b'"') => break,
                Some(byte) => bytes.push(byte),
                None => return Err(fault(place, "the string that begins here has no end: a \" is missing")),
            }
        }
        String::from_utf8(bytes).map_err(|_| fault(place, "the escapes of the string do not make UTF-8"))
    }
}

/// The byte that an escape stands for, and the escape's length.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match *text {
        [b'\\', quoted @ (b'"' | b'\\'), ..] => Some((quoted, 2)),
        [b'\\', b'n', ..] => Some((b'\n', 2)),
        [b'\\', b'r', ..] => Some((b'\r', 2)),
        [b'\\', b't', ..] => Some((b'\t', 2)),
        [b'\\', b'f', ..] => Some((b'\x0c', 2)),
        [b'\\', b'x', high, low, ..] => Some((digit(high)? * 16 + digit(low)?, 4)),
        _ => None,
    }
}

fn fault(place: Place, what: impl Into<String>) -> Fault {
    Fault { place, key: String::new(), what: what.into() }
}

impl<'a> Lexer<'a> {
    pub fn new(source: Source, include: &'a mut Include<'a>) -> Result<Self, Fault> {
        let file = Reading::new(source);
        let mut lexer = Self { last: file.place(), open: Vec::new(), include, includes: 0, bytes: 0 };
        lexer.open(file)?;
        Ok(lexer)
    }

    fn open(&mut self, file: Reading) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(file.text.len());
        if self.bytes > TEXT_LIMIT {
            let limit = TEXT_LIMIT >> 20;
            return Err(fault(self.last.clone(), format!("more than {limit} MiB of text in all")));
        }
        self.open.push(file);
        Ok(())
    }

    /// The next token and where it begins. After the end there are only ends.
    pub fn next(&mut self) -> Result<(Token, Place), Fault> {
        loop {
            let nested = self.open.len() > 1;
            let Some(file) = self.open.last_mut() else {
                return Ok((Token::End, self.last.clone()));
            };
            file.skip()?;
            self.last = file.place();
            match file.peek() {
                // The first file stays, so that the end is told where it is.
                None if nested => drop(self.open.pop()),
                None => return Ok((Token::End, self.last.clone())),
                Some(b'@') => self.directive()?,
                Some(byte) => return Ok((token(file, byte)?, self.last.clone())),
            }
        }
    }

    /// `@include "path"`, alone in its line.
    fn directive(&mut self) -> Result<(), Fault> {
        let place = self.last.clone();
        let fault = |what: String| Fault { place: place.clone(), key: "@include".into(), what };
        let wrong = || fault("\"path\" is expected behind it, and nothing before it in its line".into());
        let file = self.open.last_mut().ok_or_else(wrong)?;
        if !file.fresh || !file.rest().starts_with(b"@include") {
            return Err(wrong());
        }
        file.skip_bytes("@include".len());
        file.take(|byte| matches!(byte, b' ' | b'\t'));
        if file.peek() != Some(b'"') {
            return Err(wrong());
        }
        let path = file.string()?;
        let name = Arc::clone(&file.name);
        self.includes += 1;
        if self.open.len() > INCLUDE_DEPTH || self.includes > INCLUDES {
            let limits = format!("more than {INCLUDE_DEPTH} deep, or {INCLUDES} in all");
            return Err(fault(format!("files include each other {limits}")));
        }
        let source = (self.include)(&name, &path).map_err(fault)?;
        self.open(Reading::new(source))
    }
}

fn token(file: &mut Reading, byte: u8) -> Result<Token, Fault> {
    let place = file.place();
    match byte {
        b'=' | b':' | b';' | b',' | b'{' | b'}' | b'(' | b')' | b'[' | b']' => {
            file.bump();
            Ok(Token::Mark(byte))
        }
        b'"' => file.string().map(Token::Text),
        b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
            let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'*');
            Ok(Token::Name(file.take(name)))
        }
        b'0'..=b'9' | b'+' | b'-' | b'.' => {
            let text = file.take(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
            let expected = "an integer of at most 64 bits, or a number such as 1.5, is expected";
            number(&text).ok_or_else(|| fault(place, expected))
        }
        _ => Err(fault(place, "a character that belongs to nothing; text stands in double quotes")),
    }
}

/// A whole number, decimal or hexadecimal, with L or LL behind it or not; or one with a fraction or an exponent.
fn number(text: &str) -> Option<Token> {
    let whole = text.strip_suffix("LL").or_else(|| text.strip_suffix('L')).unwrap_or(text);
    if let Some(digits) = whole.strip_prefix("0x").or_else(|| whole.strip_prefix("0X")) {
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if plain { i64::from_str_radix(digits, 16).ok().map(Token::Int) } else { None };
    }
    if let Ok(number) = whole.parse() {
        return Some(Token::Int(number));
    }
    let fraction = text.contains(['.', 'e', 'E']);
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|number: &f64| fraction && plain && number.is_finite()).map(Token::Float)
}
