//! An id that an INSERT names is reported like one that the server made, but LAST_INSERT_ID() stays as it was. Which it is the answer
//! does not tell, so the statement is looked at.

use crate::tokens::{Token, Tokens};

/// Longest statement that is searched. The server is asked after a longer one: beside its work that is little.
const LONGEST: usize = 64 * 1024;

/// Whether a statement may have named the id: it occurs in its text or among its parameters (in the text or the binary protocol), is
/// computed by an expression, or comes from where it cannot be seen.
pub fn may_name(id: u64, text: &[u8], parameters: &[u8]) -> bool {
    let decimal = id.to_string();
    let little = id.to_le_bytes();
    let used = little.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    let binary = little.get(..used).unwrap_or(&little);
    text.len() + parameters.len() > LONGEST
        || has_number(text, decimal.as_bytes())
        || computes(id, text)
        || has_word(text, b"SELECT")
        || has_word(text, b"LAST_INSERT_ID")
        || parameters.windows(used).any(|bytes| bytes == binary)
        // As JavaScript sends its numbers.
        || parameters.windows(8).any(|bytes| bytes == (id as f64).to_le_bytes())
        || has_number(parameters, decimal.as_bytes())
}

/// Functions that make no id, and what else can stand before a parenthesis.
const HARMLESS: [&str; 22] = [
    "VALUES",
    "VALUE",
    "ROW",
    "INTO",
    "KEY",
    "AS",
    "NOW",
    "SYSDATE",
    "CURRENT_TIMESTAMP",
    "LOCALTIMESTAMP",
    "UTC_TIMESTAMP",
    "CURRENT_DATE",
    "CURDATE",
    "UTC_DATE",
    "CURRENT_TIME",
    "CURTIME",
    "UUID",
    "UUID_TO_BIN",
    "MD5",
    "SHA1",
    "SHA2",
    "PASSWORD",
];

/// Whether an expression in the text may be the id: one with an operator, a function that may return a number, or a number that is
/// written otherwise. The list of the table's columns is none.
fn computes(id: u64, text: &[u8]) -> bool {
    let mut word: &[u8] = b"";
    let mut after_values = false;
    let mut signs = true;
    for token in Tokens::new(text, false) {
        let harmless = |word: &[u8]| HARMLESS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word));
        match token {
            Token::Symbol(b'+' | b'*' | b'/' | b'%' | b'|' | b'&' | b'^' | b'~' | b'<' | b'!') => {
                return true;
            }
            Token::Symbol(b'-') if !signs => return true,
            Token::Symbol(b'(') if after_values && !word.is_empty() && !harmless(word) => return true,
            Token::UserVariable | Token::SystemVariable | Token::ExecutedComment => return true,
            Token::Word(text) | Token::Text(text) if is_number(id, text) => return true,
            _ => {}
        }
        signs = matches!(token, Token::Symbol(b'(' | b',' | b'='));
        word = if let Token::Word(word) = token { word } else { b"" };
        after_values |=
            ["VALUES", "VALUE", "SET"].iter().any(|start| start.as_bytes().eq_ignore_ascii_case(word));
    }
    false
}

/// Whether a text is a number that becomes the id: `5e1`, `49.6`, `0x32`, `'050'`.
fn is_number(id: u64, text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else { return false };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16) == Ok(id),
        None if text.starts_with("0b") || text.starts_with("0B") => {
            u64::from_str_radix(text.get(2..).unwrap_or_default(), 2) == Ok(id)
        }
        // Letters alone are words such as INF.
        None => {
            text.contains(|letter: char| letter.is_ascii_digit())
                && text.trim().parse::<f64>().is_ok_and(|number| number.round() == id as f64)
        }
    }
}

/// Whether digits occur that are not part of a longer number.
fn has_number(bytes: &[u8], digits: &[u8]) -> bool {
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    bytes.windows(digits.len()).enumerate().any(|(at, part)| {
        part == digits && !is_digit(at.checked_sub(1)) && !is_digit(at.checked_add(digits.len()))
    })
}

fn has_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_where_it_can_be() {
        for (text, parameters, named) in [
            ("INSERT INTO t VALUES (70000, 'a')", &b""[..], true),
            ("INSERT INTO t VALUES ('70000', 'a')", b"", true),
            ("INSERT INTO t (v) VALUES (170000), (700001)", b"", false),
            ("INSERT INTO t select * FROM s", b"", true),
            ("INSERT INTO t VALUES (last_insert_id() + 10)", b"", true),
            ("INSERT INTO t VALUES (?, ?)", b"\x01\x70\x11\x01\0\0\0\0\0", true),
            ("INSERT INTO t VALUES (?, ?)", b"\x0570000", true),
            ("INSERT INTO t VALUES (?, ?)", &[&b"\x01"[..], &70_000f64.to_le_bytes()].concat(), true),
            ("INSERT INTO t VALUES (69999 + 1, 'a')", b"", true),
            ("INSERT INTO t VALUES (7e4, 'a')", b"", true),
            ("INSERT INTO t VALUES (0x11170, 'a')", b"", true),
            ("INSERT INTO t VALUES (69999.7, 'a')", b"", true),
            ("INSERT INTO t VALUES ('070000', 'a')", b"", true),
            ("INSERT INTO t SET id = f(1)", b"", true),
            ("INSERT INTO t VALUES (@next, 1)", b"", true),
            ("INSERT INTO t (v, w) VALUES (-1, '2026-01-01'), (NOW(), 'a+b')", b"", false),
            ("INSERT INTO `t`(v) VALUES (1.5) ON DUPLICATE KEY UPDATE v = VALUES(v)", b"", false),
            ("INSERT INTO t (v) VALUES (1) ON DUPLICATE KEY UPDATE v = v + 1", b"", true),
            ("INSERT INTO t VALUES (?, ?)", b"\x01\x71\x11\x01\0\0\0\0\0", false),
        ] {
            assert_eq!(may_name(70_000, text.as_bytes(), parameters), named, "{text} {parameters:?}");
        }
        assert!(may_name(1, &vec![b' '; LONGEST], b"ab"), "too long to be searched");
        assert!(may_name(0, b"", b"\0"));
    }
}
