//! Statement text: what surrounds a statement is taken off, and words are compared without case or extra blanks.

/// The statement without leading comments and blanks, and without trailing blanks and semicolons.
pub(super) fn strip(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let after = if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else if rest.starts_with('#') || rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else {
            break;
        };
        rest = after.trim_start();
    }
    rest.trim_end_matches(|c: char| c == ';' || c.is_whitespace())
}

/// Each run of blanks outside quotes becomes one blank.
pub(super) fn collapse(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut quote = None;
    for c in sql.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            None if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
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
    let (mut quote, mut depth, mut start) = (None, 0u32, 0);
    for (index, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            None if c == '(' => depth = depth.saturating_add(1),
            None if c == ')' => depth = depth.saturating_sub(1),
            None if c == separator && depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + c.len_utf8();
            }
            None => {}
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
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_what_surrounds_a_statement() {
        for sql in [
            "SELECT 1",
            "  SELECT 1 ; ;\n",
            "-- why\nSELECT 1",
            "# why\n /* a */ /*b*/ SELECT 1;",
            "/* mysql-connector */SELECT 1",
        ] {
            assert_eq!(strip(sql), "SELECT 1");
        }
        for sql in ["", ";", "/* open", "-- only", "/*!40101 SET NAMES utf8 */;", "#"] {
            assert_eq!(strip(sql), "");
        }
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
