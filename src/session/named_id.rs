//! An id that an INSERT names is reported like one that the server made, but LAST_INSERT_ID() stays as it was. Which it is the answer
//! does not tell, so the statement is looked at.

/// Longest statement that is searched. The server is asked after a longer one: beside its work that is little.
const LONGEST: usize = 64 * 1024;

/// Whether a statement may have named the id: it occurs in its text or among its parameters (in the text or the binary protocol), or
/// comes from where it cannot be seen. A number that an expression computes is not found.
pub fn may_name(id: u64, text: &[u8], parameters: &[u8]) -> bool {
    let decimal = id.to_string();
    let little = id.to_le_bytes();
    let used = little.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    let binary = little.get(..used).unwrap_or(&little);
    text.len() + parameters.len() > LONGEST
        || has_number(text, decimal.as_bytes())
        || has_word(text, b"SELECT")
        || has_word(text, b"LAST_INSERT_ID")
        || parameters.windows(used).any(|bytes| bytes == binary)
        // As JavaScript sends its numbers.
        || parameters.windows(8).any(|bytes| bytes == (id as f64).to_le_bytes())
        || has_number(parameters, decimal.as_bytes())
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
            ("INSERT INTO t VALUES (?, ?)", b"\x01\x71\x11\x01\0\0\0\0\0", false),
        ] {
            assert_eq!(may_name(70_000, text.as_bytes(), parameters), named, "{text} {parameters:?}");
        }
        assert!(may_name(1, &vec![b' '; LONGEST], b"ab"), "too long to be searched");
        assert!(may_name(0, b"", b"\0"));
    }
}
