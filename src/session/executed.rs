//! Comments that servers execute (`/*! ... */`, MariaDB's `/*M! ... */`), with the version from which on they do so.

use std::borrow::Cow;
use wire::version::is_mariadb;

/// What a server of this version executes of a statement without quotes: the comments' ends become blanks, and the whole of comments
/// that it leaves out.
pub fn executed<'a>(sql: &'a [u8], version: &str) -> Cow<'a, [u8]> {
    let mut text = Cow::Borrowed(sql);
    let mut from = 0;
    while let Some(comment) = sql.get(from..).and_then(|rest| next(rest, version)) {
        let [start, inside, end] = [comment.start, comment.inside, comment.end].map(|at| from + at);
        let blank = |part: &mut [u8]| part.fill(b' ');
        let owned = text.to_mut();
        if comment.is_executed {
            owned.get_mut(start..inside).into_iter().for_each(blank);
            owned.get_mut(end..end + 2).into_iter().for_each(blank);
        } else {
            owned.get_mut(start..end + 2).into_iter().for_each(blank);
        }
        from = end + 2;
    }
    text
}

/// A comment of this kind, by places in the text.
struct Comment {
    start: usize,
    /// What is behind the version.
    inside: usize,
    /// Where `*/` stands.
    end: usize,
    is_executed: bool,
}

/// The first one, if it has an end.
fn next(text: &[u8], version: &str) -> Option<Comment> {
    let mut from = 0;
    loop {
        let start = from + find(text.get(from..)?, b"/*")?;
        let after = text.get(start + 2..)?;
        let end = start + 2 + find(after, b"*/")?;
        let (mark, of_mariadb) = match after {
            [b'!', ..] => (3, false),
            [b'M', b'!', ..] => (4, true),
            _ => {
                from = end + 2;
                continue;
            }
        };
        let digits =
            text.get(start + mark..end)?.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        let digits = if digits < 5 { 0 } else { digits };
        let inside = start + mark + digits;
        let wanted =
            text.get(start + mark..inside).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        let is_executed = executes(version, of_mariadb, wanted);
        return Some(Comment { start, inside, end, is_executed });
    }
}

fn find(bytes: &[u8], wanted: &[u8; 2]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == wanted)
}

/// Whether a server of this version executes a comment that is for servers from `wanted` on.
fn executes(version: &str, of_mariadb: bool, wanted: Option<u32>) -> bool {
    /// Versions of MySQL that MariaDB, whose own are above, does not follow.
    const NOT_FOLLOWED: std::ops::RangeInclusive<u32> = 50_700..=99_999;
    let mariadb = is_mariadb(version);
    if of_mariadb && !mariadb {
        return false;
    }
    let Some(wanted) = wanted else { return true };
    if mariadb && !of_mariadb && NOT_FOLLOWED.contains(&wanted) {
        return false;
    }
    wanted <= number(version)
}

/// A version as one number: 10.11.14 is 101114.
fn number(version: &str) -> u32 {
    let version = version.strip_prefix("5.5.5-").filter(|_| is_mariadb(version)).unwrap_or(version);
    let parts = version.split(|letter: char| !letter.is_ascii_digit()).take(3);
    parts
        .chain(std::iter::repeat("0"))
        .take(3)
        .fold(0, |sum, part| sum * 100 + part.parse::<u32>().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: &str = "9.7.0";
    const MARIADB: &str = "5.5.5-10.11.14-MariaDB-0+deb12u2";

    #[test]
    fn what_is_executed_is_left_and_no_more() {
        for (sql, mysql, mariadb) in [
            ("/*! a */ b", "a b", "a b"),
            ("/*!50000 a*/b", "a b", "a b"),
            ("/*!50000a*/", "a", "a"),
            ("/*!1234 a*/", "1234 a", "1234 a"),
            ("/*!80000 a */ b", "a b", "b"),
            ("/*!090700 a */", "a", ""),
            ("/*!090800 a */ b", "b", "b"),
            ("/*!99999 a */ b", "b", "b"),
            ("/*!100100 a */ b", "b", "a b"),
            ("/*!101200 a */ b", "b", "b"),
            ("/*M! a */ b", "b", "a b"),
            ("/*M!80000 a */ b", "b", "a b"),
            ("/* x */ /*!a*/ /*!99999 b*/ /*! c */ d", "/* x */ a c d", "/* x */ a c d"),
            ("/*! a", "/*! a", "/*! a"),
            ("a", "a", "a"),
            ("", "", ""),
        ] {
            for (version, expected) in [(MYSQL, mysql), (MARIADB, mariadb)] {
                let text = executed(sql.as_bytes(), version);
                let words: Vec<_> = str::from_utf8(&text).unwrap().split_ascii_whitespace().collect();
                assert_eq!(words.join(" "), expected, "{sql} {version}");
            }
        }
    }
}
