//! The syntax of libconfig, as ProxySQL's configuration files have it: text in, settings out.

use super::lexer::{Include, Lexer, Source, Token};
use super::tree::{Fault, Item, Place, Setting, Value};
use std::collections::HashMap;

/// How deep groups, lists and arrays may stand in each other.
const DEPTH: usize = 32;

/// Reads a file and what it includes.
pub(super) fn parse<'a>(source: Source, include: &'a mut Include<'a>) -> Result<Vec<Setting>, Fault> {
    let mut parser = Parser { lexer: Lexer::new(source, include)?, ahead: None, path: Vec::new() };
    let settings = parser.settings(0);
    settings.map_err(|fault| match fault.key.is_empty() {
        true => Fault { key: parser.path.join("."), ..fault },
        false => fault,
    })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Option<(Token, Place)>,
    /// Names of the settings that are being read.
    path: Vec<String>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Result<&(Token, Place), Fault> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.lexer.next()?,
        };
        Ok(self.ahead.insert(next))
    }

    fn take(&mut self) -> Result<(Token, Place), Fault> {
        self.peek()?;
        match self.ahead.take() {
            Some(next) => Ok(next),
            None => self.lexer.next(),
        }
    }

    /// Takes the next token if it is one of these marks.
    fn take_mark(&mut self, marks: &[u8]) -> Result<bool, Fault> {
        let found = matches!(self.peek()?.0, Token::Mark(mark) if marks.contains(&mark));
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn fault<T>(&self, place: Place, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { place, key: self.path.join("."), what: what.into() })
    }

    /// Settings up to the end of the file, or of a group. What ends a setting may be left out.
    fn settings(&mut self, depth: usize) -> Result<Vec<Setting>, Fault> {
        let mut settings: Vec<Setting> = Vec::new();
        let mut lines = HashMap::new();
        let mut ended = true;
        loop {
            let end = if depth == 0 { Token::End } else { Token::Mark(b'}') };
            let (token, place) = self.take()?;
            if token == end {
                return Ok(settings);
            }
            let Token::Name(name) = token else {
                let closing = if depth == 0 { "the end of the file" } else { "}" };
                return self.fault(place, format!("`name = value` or {closing} is expected"));
            };
            if !self.take_mark(b"=:")? {
                // What stands behind a value may belong to it, a password with a quote in it for example: it is not repeated.
                return match settings.pop().filter(|_| !ended) {
                    Some(before) => {
                        self.path.push(before.name);
                        self.fault(place, "; or another setting is expected behind the value")
                    }
                    None => {
                        self.path.push(name);
                        self.fault(place, "= is expected")
                    }
                };
            }
            self.path.push(name.clone());
            if let Some(line) = lines.insert(name.clone(), place.line) {
                return self.fault(place, format!("stands here a second time; the first is in line {line}"));
            }
            let value = self.value(depth)?;
            ended = self.take_mark(b";,")?;
            self.path.pop();
            settings.push(Setting { name, place, value });
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        let (token, place) = self.take()?;
        match token {
            Token::Int(number) => Ok(Value::Int(number)),
            Token::Float(number) => Ok(Value::Float(number)),
            Token::Text(text) => self.text(text),
            Token::Name(name) if name.eq_ignore_ascii_case("true") => Ok(Value::Bool(true)),
            Token::Name(name) if name.eq_ignore_ascii_case("false") => Ok(Value::Bool(false)),
            Token::Mark(b'{' | b'(' | b'[') if depth >= DEPTH => {
                self.fault(place, format!("more than {DEPTH} groups and lists stand in each other"))
            }
            Token::Mark(b'{') => self.settings(depth + 1).map(Value::Group),
            Token::Mark(b'(') => self.items(depth + 1, b')').map(Value::List),
            Token::Mark(b'[') => self.items(depth + 1, b']').map(Value::Array),
            _ => self.fault(place, "a value is expected; text stands in double quotes"),
        }
    }

    /// Strings that follow each other are one.
    fn text(&mut self, mut text: String) -> Result<Value, Fault> {
        while let (Token::Text(more), _) = self.peek()? {
            text.push_str(more);
            self.ahead = None;
        }
        Ok(Value::Text(text))
    }

    fn items(&mut self, depth: usize, end: u8) -> Result<Vec<Item>, Fault> {
        let mut items = Vec::new();
        while !self.take_mark(&[end])? {
            let place = self.peek()?.1.clone();
            let value = self.value(depth)?;
            if end == b']' && matches!(value, Value::Array(_) | Value::List(_) | Value::Group(_)) {
                return self
                    .fault(place, format!("an array [ ] cannot hold {}; a list ( ) can", value.kind()));
            }
            items.push(Item { place, value });
            if !self.take_mark(b",")? && self.peek()?.0 != Token::Mark(end) {
                let place = self.peek()?.1.clone();
                return self.fault(place, format!("a comma or {} is expected", char::from(end)));
            }
        }
        Ok(items)
    }
}
