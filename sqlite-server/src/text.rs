//! Looking at statement text without parsing SQL: trimming, words and simple literals. Pure.

/// A statement without leading comments and without trailing blanks and semicolons.
/// `/*!` comments are kept, since MySQL runs what is inside them.
pub(crate) fn bare(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let (comment, end) = match rest.strip_prefix("/*") {
            Some(comment) if !comment.starts_with('!') => (comment, "*/"),
            None if rest.starts_with("--") || rest.starts_with('#') => (rest, "\n"),
            _ => return rest.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace()),
        };
        rest = comment.split_once(end).map_or("", |(_, after)| after.trim_start());
    }
}

/// Whether two statements are the same words, whatever the letter case, the blanks between and the semicolons behind.
#[cfg(any(test, feature = "test-rds-bgd"))]
pub(crate) fn same_words(sql: &str, other: &str) -> bool {
    let (mut left, mut right) = (words(sql), words(other));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
            _ => return false,
        }
    }
}

/// The words of a statement, without trailing semicolons.
pub(crate) fn words(sql: &str) -> std::str::SplitAsciiWhitespace<'_> {
    sql.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace()).split_ascii_whitespace()
}

/// What follows when `sql` begins with these words, in any letter case.
pub(crate) fn after_words<'a>(sql: &'a str, expected: &[&str]) -> Option<&'a str> {
    expected.iter().try_fold(sql, |rest, word| {
        let rest = rest.trim_ascii_start();
        let (head, tail) = rest.split_at_checked(word.len())?;
        let ends = tail.bytes().next().is_none_or(|b| !b.is_ascii_alphanumeric() && b != b'_');
        (head.eq_ignore_ascii_case(word) && ends).then_some(tail)
    })
}

/// The value of a literal in single or double quotes (doubled quotes inside) and nothing else.
pub(crate) fn unquoted(literal: &str) -> Option<String> {
    let quote = literal.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let inner = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    let doubled: String = [quote, quote].iter().collect();
    let single = inner.replace(&doubled, "");
    (!single.contains(quote)).then(|| inner.replace(&doubled, &quote.to_string()))
}

/// A SELECT without the row locks of MySQL behind it (FOR UPDATE and its like), which SQLite neither has nor needs.
pub(crate) fn without_row_locks(sql: &str) -> &str {
    const LOCKS: [&[&str]; 7] = [
        &["FOR", "UPDATE"],
        &["FOR", "UPDATE", "NOWAIT"],
        &["FOR", "UPDATE", "SKIP", "LOCKED"],
        &["FOR", "SHARE"],
        &["FOR", "SHARE", "NOWAIT"],
        &["FOR", "SHARE", "SKIP", "LOCKED"],
        &["LOCK", "IN", "SHARE", "MODE"],
    ];
    LOCKS.iter().find_map(|lock| before_words(sql, lock)).unwrap_or(sql)
}

/// What comes before when `sql` ends with these words, in any letter case.
fn before_words<'a>(sql: &'a str, expected: &[&str]) -> Option<&'a str> {
    expected.iter().rev().try_fold(sql, |rest, word| {
        let rest = rest.trim_ascii_end();
        let (head, tail) = rest.split_at_checked(rest.len().checked_sub(word.len())?)?;
        (tail.eq_ignore_ascii_case(word) && head.ends_with(|c: char| c.is_ascii_whitespace() || c == ')'))
            .then_some(head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_comments_and_trailing_semicolons_go() {
        assert_eq!(bare(" /* driver 1.0 */ -- x\n# y\n SELECT 1 ; ;\n"), "SELECT 1");
        assert_eq!(bare("/*!40101 SET x=1 */;"), "/*!40101 SET x=1 */");
        assert_eq!(bare("/* never closed"), "");
        assert_eq!(bare("--"), "");
        assert_eq!(bare("/*/ SELECT 2 */ SELECT 1"), "SELECT 1");
        assert_eq!(bare(" ; "), "");
    }

    #[test]
    fn words_compare_without_case_and_blanks() {
        assert!(same_words("select  *\n from t ;", "SELECT * FROM t"));
        assert!(!same_words("SELECT * FROM t x", "SELECT * FROM t"));
        assert!(!same_words("SELECT * FROM", "SELECT * FROM t"));
    }

    #[test]
    fn prefixes_end_at_word_boundaries() {
        assert_eq!(after_words("set  names utf8", &["SET", "NAMES"]), Some(" utf8"));
        assert_eq!(after_words("settle", &["SET"]), None);
        assert_eq!(after_words("é", &["S"]), None);
    }

    #[test]
    fn literals_lose_their_quotes() {
        assert_eq!(unquoted("'it''s'").as_deref(), Some("it's"));
        assert_eq!(unquoted("`a`").as_deref(), Some("a"));
        assert_eq!(unquoted("'a' or 'b'"), None);
        assert_eq!(unquoted("'"), None);
        assert_eq!(unquoted("plain"), None);
    }

    #[test]
    fn row_locks_are_dropped_only_at_the_end() {
        assert_eq!(without_row_locks("SELECT 1 for  update"), "SELECT 1 ");
        assert_eq!(without_row_locks("SELECT (1) FOR UPDATE SKIP LOCKED"), "SELECT (1) ");
        assert_eq!(without_row_locks("SELECT 1 LOCK IN SHARE MODE"), "SELECT 1 ");
        assert_eq!(without_row_locks("SELECT 'x for update'"), "SELECT 'x for update'");
        assert_eq!(without_row_locks("UPDATE"), "UPDATE");
    }
}
