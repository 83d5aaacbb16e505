//! Digests: statements without their values, so that those that differ in values alone are one, and what is counted of each.

pub mod statistics;
mod writer;

pub use admin::variables::QueryDigests as Options;
pub use writer::Writer;

use crate::quoting::Quoting;
use crate::tokens::Tokens;
use twox_hash::XxHash3_64;

/// A statement's digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// What stands for it.
    pub number: u64,
    /// The statement without its values.
    pub text: Box<[u8]>,
}

impl Digest {
    /// The digest that has this text.
    pub fn new(text: Vec<u8>) -> Self {
        Self { number: hash(&text), text: text.into() }
    }
}

/// Writes the digest text of a statement, as its session reads it, in place of what `out` holds.
pub fn write(sql: &[u8], quoting: Quoting, options: &Options, out: &mut Vec<u8>) {
    let mut tokens = Tokens::new(sql, quoting);
    let mut writer = Writer::new(options, out);
    while let Some(token) = tokens.next() {
        if !writer.token(token, &tokens) {
            break;
        }
    }
}

/// The number that stands for a digest text.
pub fn hash(text: &[u8]) -> u64 {
    XxHash3_64::oneshot(text)
}

/// A digest's number as tables show it.
pub fn show(hash: u64) -> String {
    format!("0x{hash:016X}")
}

/// Reads what [`show`] writes, in either case.
pub fn parse(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests;
