//! Regular expressions and address patterns of rules. Text is matched byte by byte, in whatever character set it is.

use fancy_regex::{BytesMode, Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::meta::{self, Cache};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps an expression with look-around or back references may take on one statement.
const BACKTRACK_LIMIT: usize = 100_000;
/// Memory of one compiled expression, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// Longest text that a rule makes of a statement, in bytes: with its attributes it still is one packet.
const LONGEST: usize = 0xFF_FFFF - (64 << 10);

/// A rule would make a statement longer than any may be.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Longest text, in bytes, that is searched step by step. For a longer one a DFA is made as it goes.
const SHORT: usize = 4 << 10;

/// Memory for searching, for one expression after the other.
#[derive(Default)]
pub struct Scratch(Option<Cache>);

/// A compiled regular expression.
pub struct Pattern {
    text: Box<str>,
    caseless: bool,
    engine: Engine,
    /// What finds groups, for rules that replace; made when one does for the first time.
    finder: OnceLock<Option<Regex>>,
    // An expression that took too many steps is logged once.
    gave_up: AtomicBool,
}

/// Expressions with look-around or back references keep memory for searching, each for each thread; thousands of the others
/// need no more than what they are compiled to.
enum Engine {
    Plain { short: Box<meta::Regex>, long: OnceLock<Option<meta::Regex>> },
    Fancy(Box<Regex>),
}

/// Compiles an expression without look-around and back references, to be searched with a DFA or step by step.
fn plain(text: &str, caseless: bool, dfa: bool) -> Option<meta::Regex> {
    let config = meta::Config::new().hybrid(dfa).onepass(false).utf8_empty(false);
    let config = config.nfa_size_limit(Some(SIZE_LIMIT)).which_captures(WhichCaptures::Implicit);
    let syntax = syntax::Config::new().case_insensitive(caseless).unicode(false).utf8(false);
    meta::Regex::builder().configure(config).syntax(syntax).build(text).ok()
}

fn fancy(text: &str, caseless: bool) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder.case_insensitive(caseless).bytes_mode(BytesMode::Ascii);
    builder.backtrack_limit(BACKTRACK_LIMIT).delegate_size_limit(SIZE_LIMIT);
    builder.build().map_err(|error| error.to_string().replace('\n', " "))
}

impl Pattern {
    /// Compiles `text`; the error is the reason why it cannot be.
    pub fn new(text: &str, caseless: bool) -> Result<Self, String> {
        let engine = match plain(text, caseless, false) {
            Some(short) => Engine::Plain { short: Box::new(short), long: OnceLock::new() },
            None => Engine::Fancy(Box::new(fancy(text, caseless)?)),
        };
        let (finder, gave_up) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { text: text.into(), caseless, engine, finder, gave_up })
    }
    /// Whether it is found in `text`; not, if that takes too many steps.
    pub fn matches(&self, text: &[u8], scratch: &mut Scratch) -> bool {
        let input = Input::new(text).earliest(true);
        match &self.engine {
            Engine::Fancy(regex) => regex.is_match(text).unwrap_or_else(|error| self.give_up(&error)),
            Engine::Plain { short, .. } if text.len() <= SHORT => {
                let cache = match &mut scratch.0 {
                    Some(cache) => {
                        cache.reset(short);
                        cache
                    }
                    none => none.insert(short.create_cache()),
                };
                short.search_half_with(cache, &input).is_some()
            }
            Engine::Plain { short, long } => {
                let long = long.get_or_init(|| plain(&self.text, self.caseless, true));
                let regex = long.as_ref().unwrap_or(short);
                regex.search_half_with(&mut regex.create_cache(), &input).is_some()
            }
        }
    }
    fn give_up(&self, error: &fancy_regex::Error) -> bool {
        if !self.gave_up.swap(true, Ordering::Relaxed) {
            log::warn!("mysql_query_rules: '{}' is taken not to match: {error}", self.text);
        }
        false
    }
    /// `text` with what matches replaced; `None` where nothing does.
    pub fn replace(&self, text: &[u8], replacement: &Replacement) -> Result<Option<Vec<u8>>, TooLong> {
        let finder = match &self.engine {
            Engine::Fancy(regex) => regex,
            Engine::Plain { .. } => match self.finder.get_or_init(|| fancy(&self.text, self.caseless).ok()) {
                Some(regex) => regex,
                None => return Ok(None),
            },
        };
        let mut out = Vec::new();
        let mut copied = 0;
        let limit = if replacement.global { usize::MAX } else { 1 };
        for captures in finder.captures_iter(text).take(limit) {
            let Some(captures) = captures.map_err(|error| self.give_up(&error)).ok() else { return Ok(None) };
            let Some(whole) = captures.get(0) else { return Ok(None) };
            out.extend_from_slice(text.get(copied..whole.start()).unwrap_or_default());
            copied = whole.end();
            for part in &replacement.parts {
                out.extend_from_slice(match part {
                    Part::Text(literal) => literal,
                    Part::Group(index) => {
                        let group = captures.get(*index).map(|group| group.range());
                        group.and_then(|range| text.get(range)).unwrap_or_default()
                    }
                });
            }
            if out.len() > LONGEST {
                return Err(TooLong);
            }
        }
        if copied == 0 && out.is_empty() {
            return Ok(None);
        }
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        if out.len() > LONGEST { Err(TooLong) } else { Ok(Some(out)) }
    }
}

/// The column replace_pattern: text with `\1` for what the first group matched, `\0` for all, and `\\` for a backslash.
pub struct Replacement {
    parts: Vec<Part>,
    global: bool,
}

enum Part {
    Text(Vec<u8>),
    Group(usize),
}

impl Replacement {
    /// Reads the column. `global`: every match is replaced, not only the first.
    pub fn new(text: &str, global: bool) -> Self {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => match bytes.next() {
                    Some(digit @ b'0'..=b'9') => {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                        parts.push(Part::Group(usize::from(digit - b'0')));
                    }
                    Some(b'\\') | None => literal.push(b'\\'),
                    Some(other) => literal.extend_from_slice(&[b'\\', other]),
                },
                byte => literal.push(byte),
            }
        }
        parts.push(Part::Text(literal));
        Self { parts, global }
    }
}

/// The column client_addr: an address, in which `%` stands for any characters.
pub struct Address {
    parts: Vec<Box<str>>,
}

impl Address {
    /// Reads the column.
    pub fn new(text: &str) -> Self {
        Self { parts: text.split('%').map(Box::from).collect() }
    }
    /// Whether an address fits.
    pub fn matches(&self, address: &str) -> bool {
        let Some((first, others)) = self.parts.split_first() else { return false };
        let Some((last, middle)) = others.split_last() else { return address == &**first };
        let rest = address.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last));
        let found = middle.iter().try_fold(rest, |rest, part| {
            let (_, after) = rest?.split_once(&**part)?;
            Some(Some(after))
        });
        found.flatten().is_some()
    }
}
