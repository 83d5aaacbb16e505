//! An id that an INSERT names is reported like one that the server made, but LAST_INSERT_ID() stays as it was. Which it is the answer
//! does not tell, so the statement is looked at.

use crate::quoting::Quoting;
use crate::tokens::{Token, Tokens};

/// Longest statement that is searched. The server is asked after a longer one: beside its work that is little.
const LONGEST: usize = 64 * 1024;

/// Whether a statement may have named the id: it occurs in its text or among its parameters (in the text or the binary protocol), is
/// computed by an expression, or comes from where it cannot be seen.
pub fn may_name(id: u64, text: &[u8], parameters: &[u8], quoting: Quoting) -> bool {
    let decimal = id.to_string();
    let little = id.to_le_bytes();
    let used = little.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    let binary = little.get(..used).unwrap_or(&little);
    text.len() + parameters.len() > LONGEST
        || has_number(text, decimal.as_bytes())
        || computes(id, text, quoting)
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

/// Words that make a number of others, or are one.
const OPERATORS: [&str; 12] =
    ["DIV", "MOD", "TRUE", "NOT", "AND", "OR", "XOR", "IS", "LIKE", "BETWEEN", "REGEXP", "RLIKE"];

/// Whether an expression in the text may be the id: one with an operator, a function that may return a number, or a number that is
/// written otherwise. The list of the table's columns is none.
fn computes(id: u64, sql: &[u8], quoting: Quoting) -> bool {
    let mut word: &[u8] = b"";
    let mut after_values = false;
    let mut signs = true;
    let is_of =
        |list: &[&str], word: &[u8]| list.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word));
    let mut tokens = Tokens::new(sql, quoting);
    while let Some(token) = tokens.next() {
        match token {
            Token::Symbol(b'+' | b'*' | b'/' | b'%' | b'|' | b'&' | b'^' | b'~' | b'<' | b'>' | b'!') => {
                return true;
            }
            Token::Symbol(b'-') if !signs => return true,
            Token::Symbol(b'(') if after_values && !word.is_empty() && !is_of(&HARMLESS, word) => {
                return true;
            }
            Token::UserVariable | Token::SystemVariable | Token::ExecutedComment => return true,
            Token::Word(text) | Token::Text(text) if is_number(id, text) => return true,
            Token::Word(word) if after_values && is_of(&OPERATORS, word) => return true,
            Token::Text(digits) if introduced(id, digits, sql.get(..tokens.position())) => return true,
            _ => {}
        }
        signs = matches!(token, Token::Symbol(b'(' | b',' | b'='));
        word = match token {
            Token::Word(word) => word,
            // Whatever function it calls, in quotes it is none of the harmless ones.
            Token::Name(_) => b"`",
            _ => b"",
        };
        after_values |= is_of(&["VALUES", "VALUE", "SET"], word);
    }
    false
}

/// Whether the digits in the quotes at the end of `sql` are the id in the notation that the letter before them says: `x'32'`,
/// `b'110010'`.
fn introduced(id: u64, digits: &[u8], sql: Option<&[u8]>) -> bool {
    let letter = sql.and_then(|sql| sql.get(sql.len().checked_sub(digits.len() + 3)?));
    let radix = match letter {
        Some(b'x' | b'X') => 16,
        Some(b'b' | b'B') => 2,
        _ => return false,
    };
    str::from_utf8(digits).is_ok_and(|digits| u64::from_str_radix(digits, radix) == Ok(id))
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
            ("INSERT INTO t VALUES (140001 DIV 2, 'a')", b"", true),
            ("INSERT INTO t VALUES (x'011170', 'a')", b"", true),
            ("INSERT INTO t VALUES (B'10001000101110000', 'a')", b"", true),
            ("INSERT INTO t (v) VALUES (x'11170F')", b"", false),
            ("INSERT INTO t SET id = f(1)", b"", true),
            ("INSERT INTO t VALUES (@next, 1)", b"", true),
            ("INSERT INTO t VALUES (`abs`(-70000), 1)", b"", true),
            ("INSERT INTO t VALUES (`abs` (?), 1)", b"", true),
            ("INSERT INTO t (v, w) VALUES (-1, '2026-01-01'), (NOW(), 'a+b')", b"", false),
            ("INSERT INTO `t`(v) VALUES (1.5) ON DUPLICATE KEY UPDATE v = VALUES(v)", b"", false),
            ("INSERT INTO t (v) VALUES (1) ON DUPLICATE KEY UPDATE v = v + 1", b"", true),
            ("INSERT INTO t VALUES (?, ?)", b"\x01\x71\x11\x01\0\0\0\0\0", false),
        ] {
            assert_eq!(
                may_name(70_000, text.as_bytes(), parameters, Quoting::default()),
                named,
                "{text} {parameters:?}"
            );
        }
        assert!(may_name(1, &vec![b' '; LONGEST], b"ab", Quoting::default()), "too long to be searched");
        assert!(may_name(0, b"", b"\0", Quoting::default()));
        assert!(may_name(1, b"INSERT INTO t VALUES (TRUE)", b"", Quoting::default()));
        let sql = br"INSERT INTO t VALUES ('\', 69999 + 1)";
        let named =
            |plain_backslash| may_name(70_000, sql, b"", Quoting { plain_backslash, ..Quoting::default() });
        assert_eq!([true, false].map(named), [true, false]);
    }
}
