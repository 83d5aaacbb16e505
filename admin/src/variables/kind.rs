//! How a variable's text is read and shown.

use super::{ResolutionFamily, Variables};
use crate::interfaces::parse_interfaces;
use std::ops::RangeInclusive;
use std::time::Duration;

/// One variable: its name, what it is for, and how its text maps to a field of [`Variables`].
pub struct VarDef {
    /// Full name, for example `mysql-wait_timeout`.
    pub name: &'static str,
    /// One line for a person.
    pub doc: &'static str,
    pub(super) kind: Kind,
}

/// A field of [`Variables`].
pub(super) struct Field<T: 'static> {
    pub get: fn(&Variables) -> &T,
    pub set: fn(&mut Variables) -> &mut T,
}

pub(super) enum Kind {
    Bool(Field<bool>),
    /// As `Bool`, shown as 1 or 0.
    Bit(Field<bool>),
    /// Milliseconds, in this range.
    Millis(Field<Duration>, RangeInclusive<u64>),
    /// Seconds, in this range.
    Seconds(Field<Duration>, RangeInclusive<u64>),
    Number(Field<u32>, RangeInclusive<u64>),
    Size(Field<usize>, RangeInclusive<u64>),
    Text(Field<String>),
    /// A server's version, as the greeting carries it.
    Version(Field<String>),
    Secret(Field<String>),
    /// `schema.table`, or nothing.
    Table(Field<String>),
    /// List of `address:port` and paths; an empty one listens nowhere, where that is allowed.
    Interfaces {
        field: Field<String>,
        may_be_empty: bool,
    },
    /// `user:password` pairs.
    Credentials(Field<Vec<(String, String)>>),
    /// mysql_native_password or caching_sha2_password.
    Plugin(Field<bool>),
    Family(Field<ResolutionFamily>),
    /// `address:port`, or nothing.
    Address(Field<Option<std::net::SocketAddr>>),
    /// Shown, never set.
    Constant(&'static str),
    /// Kept and shown, and nothing comes of it.
    Inert {
        default: &'static str,
        accepts: Accepts,
    },
}

/// What a variable without effect may be set to.
pub(super) enum Accepts {
    Bool,
    Number(RangeInclusive<u64>),
}

/// Longest version.
const VERSION_LENGTH: usize = 255;
const SHA2: &str = "caching_sha2_password";
const NATIVE: &str = "mysql_native_password";
const FAMILIES: [(&str, ResolutionFamily); 3] = [
    ("system", ResolutionFamily::System),
    ("ipv4", ResolutionFamily::Ipv4),
    ("ipv6", ResolutionFamily::Ipv6),
];

impl VarDef {
    /// Whether the value is a credential, which errors and logs must not show.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret(_) | Kind::Credentials(_))
    }

    /// Whether the variable can only be read.
    pub fn is_read_only(&self) -> bool {
        matches!(self.kind, Kind::Constant(_))
    }

    /// What a value must look like, for errors: "an integer from 1 to 10".
    pub fn expects(&self) -> String {
        match &self.kind {
            Kind::Bool(_) | Kind::Bit(_) | Kind::Inert { accepts: Accepts::Bool, .. } => {
                "true, false, 1 or 0".into()
            }
            Kind::Millis(_, range) => format!("milliseconds from {} to {}", range.start(), range.end()),
            Kind::Seconds(_, range) => format!("seconds from {} to {}", range.start(), range.end()),
            Kind::Number(_, range)
            | Kind::Size(_, range)
            | Kind::Inert { accepts: Accepts::Number(range), .. } => {
                format!("an integer from {} to {}", range.start(), range.end())
            }
            Kind::Text(_) | Kind::Secret(_) => "text".into(),
            Kind::Version(_) => format!(
                "a version such as 8.0.11, which begins with digits, a dot and digits: {VERSION_LENGTH} printable ASCII \
                 characters at most"
            ),
            Kind::Table(_) => "a table such as percona.heartbeat, or nothing".into(),
            Kind::Interfaces { may_be_empty, .. } => {
                let least = if *may_be_empty { "" } else { "one or more " };
                format!("{least}addresses such as 0.0.0.0:6033 or paths of unix sockets, separated by ;")
            }
            Kind::Credentials(_) => "user:password pairs, separated by ;".into(),
            Kind::Plugin(_) => format!("{NATIVE} or {SHA2}"),
            Kind::Family(_) => "system, ipv4 or ipv6".into(),
            Kind::Address(_) => "an address such as 127.0.0.1:53, or nothing".into(),
            Kind::Constant(_) => "nothing: it is read-only".into(),
        }
    }

    /// Why the variable cannot be set to `text`, for errors.
    pub fn refusal(&self, text: &str) -> String {
        match &self.kind {
            Kind::Interfaces { .. } => parse_interfaces(text).err(),
            _ => None,
        }
        .unwrap_or_else(|| format!("expected {}", self.expects()))
    }

    /// The value's text in these variables.
    pub fn show(&self, variables: &Variables) -> String {
        match &self.kind {
            Kind::Bool(field) => (field.get)(variables).to_string(),
            Kind::Bit(field) => u8::from(*(field.get)(variables)).to_string(),
            Kind::Millis(field, _) => (field.get)(variables).as_millis().to_string(),
            Kind::Seconds(field, _) => (field.get)(variables).as_secs().to_string(),
            Kind::Number(field, _) => (field.get)(variables).to_string(),
            Kind::Size(field, _) => (field.get)(variables).to_string(),
            Kind::Text(field)
            | Kind::Secret(field)
            | Kind::Version(field)
            | Kind::Table(field)
            | Kind::Interfaces { field, .. } => (field.get)(variables).clone(),
            Kind::Credentials(field) => {
                let pairs = (field.get)(variables).iter();
                pairs.map(|(user, password)| format!("{user}:{password}")).collect::<Vec<_>>().join(";")
            }
            Kind::Plugin(field) => if *(field.get)(variables) { SHA2 } else { NATIVE }.into(),
            Kind::Family(field) => {
                let family = (field.get)(variables);
                let name = FAMILIES.iter().find(|(_, each)| each == family).map(|(name, _)| *name);
                name.unwrap_or_default().into()
            }
            Kind::Address(field) => (field.get)(variables).map(|a| a.to_string()).unwrap_or_default(),
            Kind::Constant(text) => (*text).into(),
            Kind::Inert { default, .. } => {
                variables.inert.get(self.name).map_or(*default, String::as_str).into()
            }
        }
    }

    /// Reads `text` into the variable's field; `None`, with nothing changed, where it is not what the variable expects.
    pub fn apply(&self, variables: &mut Variables, text: &str) -> Option<()> {
        let text = if self.is_secret() { text } else { text.trim() };
        match &self.kind {
            Kind::Bool(field) | Kind::Bit(field) => *(field.set)(variables) = parse_bool(text)?,
            Kind::Millis(field, range) => {
                *(field.set)(variables) = Duration::from_millis(parse_in(text, range)?);
            }
            Kind::Seconds(field, range) => {
                *(field.set)(variables) = Duration::from_secs(parse_in(text, range)?);
            }
            Kind::Number(field, range) => {
                *(field.set)(variables) = u32::try_from(parse_in(text, range)?).ok()?;
            }
            Kind::Size(field, range) => {
                *(field.set)(variables) = usize::try_from(parse_in(text, range)?).ok()?;
            }
            Kind::Text(field) | Kind::Secret(field) => *(field.set)(variables) = text.into(),
            Kind::Version(field) => {
                if !is_version(text) {
                    return None;
                }
                *(field.set)(variables) = text.into();
            }
            Kind::Table(field) => {
                if !text.is_empty() {
                    parse_table(text)?;
                }
                *(field.set)(variables) = text.into();
            }
            Kind::Interfaces { field, may_be_empty } => {
                if parse_interfaces(text).ok()?.is_empty() && !may_be_empty {
                    return None;
                }
                *(field.set)(variables) = text.into();
            }
            Kind::Credentials(field) => *(field.set)(variables) = parse_credentials(text)?,
            Kind::Plugin(field) => {
                *(field.set)(variables) = match text.to_ascii_lowercase().as_str() {
                    SHA2 => true,
                    NATIVE => false,
                    _ => return None,
                };
            }
            Kind::Family(field) => {
                let found = FAMILIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                *(field.set)(variables) = found?.1;
            }
            Kind::Address(field) => {
                *(field.set)(variables) = if text.is_empty() { None } else { Some(text.parse().ok()?) };
            }
            Kind::Constant(_) => return None,
            Kind::Inert { default, accepts } => {
                let value = match accepts {
                    Accepts::Bool => parse_bool(text)?.to_string(),
                    Accepts::Number(range) => parse_in(text, range)?.to_string(),
                };
                match value == *default {
                    true => variables.inert.remove(self.name),
                    false => variables.inert.insert(self.name, value),
                };
            }
        }
        Some(())
    }
}

/// Clients decide by the number in front, and read up to a NUL.
fn is_version(text: &str) -> bool {
    let digits = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let numbers = text.split_once('.').is_some_and(|(major, rest)| {
        digits(major) && major.chars().all(|c| c.is_ascii_digit()) && digits(rest)
    });
    numbers && text.len() <= VERSION_LENGTH && text.chars().all(|c| matches!(c, ' '..='~'))
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn parse_in(text: &str, range: &RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|value| range.contains(value))
}

/// Schema and table of a text such as percona.heartbeat. Either may be in backticks, and holds letters, digits, `_`, `$` and `-`.
pub fn parse_table(text: &str) -> Option<(&str, &str)> {
    let (schema, table) = text.split_once('.')?;
    let name =
        |part: &str| part.chars().all(|c| c.is_alphanumeric() || "_$-".contains(c)) && !part.is_empty();
    let bare = |part| str::strip_prefix(part, '`').and_then(|part| part.strip_suffix('`')).unwrap_or(part);
    let (schema, table) = (bare(schema), bare(table));
    (name(schema) && name(table)).then_some((schema, table))
}

/// `user:password` pairs; passwords may contain `:` but not `;`.
fn parse_credentials(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(';').filter(|pair| !pair.trim().is_empty()).map(|pair| {
        let (user, password) = pair.split_once(':')?;
        let user = user.trim();
        (!user.is_empty()).then(|| (user.to_owned(), password.to_owned()))
    });
    let pairs = pairs.collect::<Option<Vec<_>>>()?;
    (!pairs.is_empty()).then_some(pairs)
}
