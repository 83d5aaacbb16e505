//! What a configuration file says, and its text.

use std::fmt::{self, Write};
use std::sync::Arc;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file's name as it was given.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: u32,
}

impl Place {
    /// That of what stands in no file.
    pub fn none() -> Self {
        Self { file: "".into(), line: 0 }
    }
}

/// Why a file is refused. It never repeats a value, which may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub place: Place,
    /// Names on the way to the setting, joined by dots; empty outside any.
    pub key: String,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, what } = self;
        write!(f, "{}:{}: ", place.file, place.line)?;
        if key.is_empty() { f.write_str(what) } else { write!(f, "{key}: {what}") }
    }
}

/// `name = value`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub name: String,
    pub place: Place,
    pub value: Value,
}

/// An element of a list or an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub place: Place,
    pub value: Value,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// `[ ... ]`, scalars alone
    Array(Vec<Item>),
    /// `( ... )`
    List(Vec<Item>),
    /// `{ ... }`
    Group(Vec<Setting>),
}

impl Value {
    /// What kind of value it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array [ ]",
            Self::List(_) => "a list ( )",
            Self::Group(_) => "a group { }",
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            // Older readers of this syntax cut what is longer than 32 bits and does not say so.
            Self::Int(value) if i32::try_from(*value).is_err() => write!(f, "{value}L"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => quoted(f, text),
            Self::Array(items) => {
                f.write_str("[")?;
                write_items(f, items, depth)?;
                f.write_str("]")
            }
            Self::List(items) => {
                f.write_str("(")?;
                write_items(f, items, depth)?;
                f.write_str(")")
            }
            Self::Group(settings) => {
                f.write_str("{\n")?;
                write_settings(f, settings, depth + 1)?;
                write!(f, "{:1$}}}", "", depth * INDENT)
            }
        }
    }
}

const INDENT: usize = 4;

fn write_items(f: &mut fmt::Formatter<'_>, items: &[Item], depth: usize) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}\n{:1$}", "", (depth + 1) * INDENT)?;
        item.value.write(f, depth + 1)?;
    }
    if items.is_empty() { Ok(()) } else { write!(f, "\n{:1$}", "", depth * INDENT) }
}

fn write_settings(f: &mut fmt::Formatter<'_>, settings: &[Setting], depth: usize) -> fmt::Result {
    for setting in settings {
        write!(f, "{:1$}{2} = ", "", depth * INDENT, setting.name)?;
        setting.value.write(f, depth)?;
        f.write_str(";\n")?;
    }
    Ok(())
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\x0c' => f.write_str("\\f")?,
            c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// The text of a file with these settings.
pub(crate) struct Text<'a>(pub &'a [Setting]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_settings(f, self.0, 0)
    }
}
