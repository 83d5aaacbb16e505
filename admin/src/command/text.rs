//! Statement text: what surrounds a statement is taken off, and words are compared without case or extra blanks.

/// The statements of a packet, without comments, the blanks around them, and what is empty. Comments are those of SQLite and MySQL:
/// `/* */`, of which `/*! */` is none but a comment here, `--` and `#` to the end of the line.
pub(crate) fn statements(sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '\'' | '"' | '`' => {
                let end = rest[1..].find(c).map_or(rest.len(), |end| end + 2);
                current.push_str(&rest[..end]);
                end
            }
            ';' => {
                found.push(std::mem::take(&mut current));
                1
            }
            _ => match comment(rest) {
                Some(length) => {
                    current.push(' ');
                    length
                }
                None => {
                    // What follows up to the next character that may mean something.
                    let plain = |c| !matches!(c, '\'' | '"' | '`' | ';' | '/' | '-' | '#');
                    let first = c.len_utf8();
                    let end = rest[first..].find(|c| !plain(c)).map_or(rest.len(), |end| first + end);
                    current.push_str(&rest[..end]);
                    end
                }
            },
        };
        rest = &rest[taken..];
    }
    found.push(current);
    let trimmed = found.iter().map(|statement| statement.trim()).filter(|statement| !statement.is_empty());
    trimmed.map(str::to_owned).collect()
}

/// The length of the comment that a text begins with.
fn comment(text: &str) -> Option<usize> {
    if let Some(body) = text.strip_prefix("/*") {
        return Some(body.find("*/").map_or(text.len(), |end| end + 4));
    }
    let to_the_end_of_line = text.starts_with('#') || text.starts_with("--");
    to_the_end_of_line.then(|| text.find('\n').unwrap_or(text.len()))
}

/// Follows a text from its beginning, character by character, and knows what of it is quoted.
#[derive(Default)]
pub(super) struct Quotes(Option<char>);

impl Quotes {
    /// Whether the next character is part of a quoted text, its quotes included.
    pub fn hold(&mut self, c: char) -> bool {
        match self.0 {
            Some(open) => {
                self.0 = (c != open).then_some(open);
                true
            }
            None => {
                self.0 = matches!(c, '\'' | '"' | '`').then_some(c);
                self.0.is_some()
            }
        }
    }
}

/// The text with parameters (`?` outside quotes) replaced by what `literal` makes of their numbers, and how many there are.
pub(crate) fn with_parameters(sql: &str, mut literal: impl FnMut(usize) -> String) -> (String, usize) {
    let mut out = String::with_capacity(sql.len());
    let (mut quotes, mut count) = (Quotes::default(), 0);
    for c in sql.chars() {
        if !quotes.hold(c) && c == '?' {
            out.push_str(&literal(count));
            count += 1;
        } else {
            out.push(c);
        }
    }
    (out, count)
}

/// The first word, in upper case.
pub(crate) fn first_word(statement: &str) -> String {
    let end = statement.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(statement.len());
    statement[..end].to_ascii_uppercase()
}

/// Each run of blanks outside quotes becomes one blank.
pub(super) fn collapse(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quotes = Quotes::default();
    for c in sql.chars() {
        if quotes.hold(c) || !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

/// What follows `words` (upper case, one blank between) at the start of a collapsed statement, compared without case.
/// The words must end where a word ends.
pub(super) fn after<'a>(statement: &'a str, words: &str) -> Option<&'a str> {
    let (head, rest) = statement.split_at_checked(words.len())?;
    let whole = rest.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    (whole && head.eq_ignore_ascii_case(words)).then(|| rest.trim_start())
}

/// Splits at a separator outside quotes and parentheses.
pub(super) fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut quotes, mut depth, mut start) = (Quotes::default(), 0u32, 0);
    for (index, c) in text.char_indices() {
        match c {
            _ if quotes.hold(c) => {}
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Takes one pair of quotes off, doubled quotes inside becoming single ones.
pub(super) fn unquote(text: &str) -> String {
    for quote in ['\'', '"', '`'] {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.replace(&format!("{quote}{quote}"), &quote.to_string());
        }
    }
    text.to_owned()
}

/// A text as an SQL literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_a_statement_goes() {
        for sql in [
            "SELECT 1",
            "  SELECT 1 ; ;\n",
            "-- why\nSELECT 1",
            "# why\n /* a */ /*b*/ SELECT 1;",
            "/* mysql-connector */SELECT 1",
            "SELECT 1 -- why",
            "SELECT 1 # why\n;",
            "SELECT 1 /*!40101 FOR UPDATE */",
        ] {
            assert_eq!(statements(sql), ["SELECT 1"], "{sql}");
        }
        for sql in ["", ";", "/* open", "-- only", "/*!40101 SET NAMES utf8 */;", "#"] {
            assert!(statements(sql).is_empty(), "{sql}");
        }
        assert_eq!(statements("LOAD/* x */MYSQL--y\nUSERS"), ["LOAD MYSQL \nUSERS"]);
    }

    #[test]
    fn packets_are_cut_outside_quotes_and_comments() {
        assert_eq!(statements("a; b ;;c"), ["a", "b", "c"]);
        assert_eq!(statements("a ';' b; \"x;\" ; `--;`"), ["a ';' b", "\"x;\"", "`--;`"]);
        assert_eq!(statements("a /* ; */ b; -- ;\n c # ;"), ["a   b", "c"]);
        assert_eq!(statements("'it''s; -- a' ; 'open ;"), ["'it''s; -- a'", "'open ;"]);
        assert_eq!(statements("1 - 2 / 3 é -> '$.é'"), ["1 - 2 / 3 é -> '$.é'"]);
    }

    #[test]
    fn parameters_are_found_outside_quotes() {
        let replaced = with_parameters("a ? '?' \"?\" `?` ?", |number| format!("<{number}>"));
        assert_eq!(replaced, ("a <0> '?' \"?\" `?` <1>".to_owned(), 2));
    }

    #[test]
    fn every_short_text_is_cut_without_harm_and_nothing_is_lost_in_quotes() {
        let parts = ["'", "\"", "`", ";", "-", "/", "*", "#", "\n", "é", "?", "("];
        let count = parts.len();
        for number in 0..count.pow(4) {
            let picks = [number, number / count, number / count.pow(2), number / count.pow(3)];
            let text: String = picks.iter().map(|pick| parts[pick % count]).collect();
            for statement in statements(&text) {
                assert!(!statement.is_empty() && statements(&statement).len() <= 1, "{text:?}");
                assert_eq!(with_parameters(&statement, |_| "?".into()).0, statement, "{text:?}");
                collapse(&statement);
                split_outside_quotes(&statement, ';');
            }
            let quoted = text.replace('\'', "''");
            assert_eq!(statements(&format!("'{quoted}'")), [format!("'{quoted}'")], "{text:?}");
        }
    }

    #[test]
    fn first_words_end_where_letters_end() {
        assert_eq!(first_word("select@@x"), "SELECT");
        assert_eq!(first_word("(select 1)"), "");
    }

    #[test]
    fn collapses_outside_quotes_only() {
        assert_eq!(collapse("LOAD \t MYSQL\n\nUSERS"), "LOAD MYSQL USERS");
        assert_eq!(collapse("SET a =  'x  y'  , b"), "SET a = 'x  y' , b");
        assert_eq!(collapse("é  'open  quote"), "é 'open  quote");
    }

    #[test]
    fn words_end_where_words_end() {
        assert_eq!(after("load mysql users", "LOAD MYSQL"), Some("users"));
        assert_eq!(after("set@@x=1", "SET"), Some("@@x=1"));
        assert_eq!(after("settle x", "SET"), None);
        assert_eq!(after("é", "SET"), None);
        assert_eq!(after("use", "USE"), Some(""));
    }

    #[test]
    fn splits_and_unquotes() {
        assert_eq!(split_outside_quotes("a='x,y', b=f(1,2),c", ','), ["a='x,y'", "b=f(1,2)", "c"]);
        assert_eq!(unquote("'it''s'"), "it's");
        assert_eq!(unquote("\"\""), "");
        assert_eq!(unquote("'"), "'");
        assert_eq!(literal("it's"), "'it''s'");
    }
}
