//! `CONVERT(value, TYPE)`, which drivers send and SQLite does not know, as CAST.

use super::text::{Quotes, split_outside_quotes};
use std::borrow::Cow;

const WORD: &str = "CONVERT";
/// Longest text that is looked through, in bytes: those of drivers are shorter.
const LONGEST: usize = 16 << 10;
/// How deep they may stand inside each other.
const DEEPEST: u32 = 20;

/// The text with CAST in the place of CONVERT.
pub(super) fn with_casts(sql: &str) -> Cow<'_, str> {
    if sql.len() > LONGEST { Cow::Borrowed(sql) } else { inside(sql, DEEPEST) }
}

fn inside(sql: &str, depth: u32) -> Cow<'_, str> {
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    let (mut quotes, mut before) = (Quotes::default(), ' ');
    while let Some(c) = sql[at..].chars().next() {
        let begins =
            !quotes.hold(c) && depth > 0 && !before.is_alphanumeric() && !matches!(before, '_' | '.');
        if let Some((cast, length)) = Some(&sql[at..]).filter(|_| begins).and_then(|text| cast(text, depth)) {
            out.push_str(&sql[copied..at]);
            out.push_str(&cast);
            at += length;
            (copied, before) = (at, ')');
            continue;
        }
        before = c;
        at += c.len_utf8();
    }
    if copied == 0 {
        return Cow::Borrowed(sql);
    }
    out.push_str(&sql[copied..]);
    Cow::Owned(out)
}

/// The CAST for a CONVERT that `text` begins with, and the length of that.
fn cast(text: &str, depth: u32) -> Option<(String, usize)> {
    let (word, rest) = text.split_at_checked(WORD.len())?;
    let arguments = rest.trim_start().strip_prefix('(').filter(|_| word.eq_ignore_ascii_case(WORD))?;
    let both = &arguments[..closing(arguments)?];
    let [value, kind] = split_outside_quotes(both, ',')[..] else { return None };
    let is_type = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    let length = text.len() - arguments.len() + both.len() + 1;
    is_type.then(|| (format!("CAST({} AS {kind})", inside(value, depth - 1)), length))
}

/// Where the parenthesis is that closes what was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut quotes, mut depth) = (Quotes::default(), 0);
    for (at, c) in text.char_indices() {
        match c {
            _ if quotes.hold(c) => {}
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_casts() {
        for (sql, expected) in [
            ("CONVERT (a, UNSIGNED INTEGER) b", "CAST(a AS UNSIGNED INTEGER) b"),
            (
                "x, convert(CASE a WHEN ')' THEN 0 END,signed)",
                "x, CAST(CASE a WHEN ')' THEN 0 END AS signed)",
            ),
            ("CONVERT(CONVERT('é', char), signed)+1", "CAST(CAST('é' AS char) AS signed)+1"),
        ] {
            assert_eq!(with_casts(sql), expected);
        }
        for same in [
            "CONVERT(a USING utf8)",
            "'CONVERT(a, char)'",
            "t.convert(a, char)",
            "CONVERT(a, b, c)",
            "CONVERT(a",
            "é",
        ] {
            assert_eq!(with_casts(same), same);
        }
        let deep = format!("{}1{}", "CONVERT(".repeat(1_000), ", char)".repeat(1_000));
        assert!(with_casts(&deep).contains("CONVERT(1, char)"));
    }
}
