//! KILL that does not stand alone: among other statements, or in a text that is to be prepared. The server would take the
//! clients' ids for its own, and end somebody else.

use super::kill::Kill;
use super::local::Answer;
use super::state::{Session, Step};
use crate::quoting::Quoting;
use crate::tokens::{Token, Tokens};
use wire::SqlError;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Among {
    /// The statements are all KILLs.
    Kills(Vec<Kill>),
    /// Some of them are.
    Others,
    /// A compound statement has one in it.
    Compound,
    /// PREPARE or EXECUTE IMMEDIATE of a KILL.
    Prepared,
}

/// Looks for the KILL of an id in a text that is none itself. Not seen is one in the body of a routine, or in a text that a variable
/// holds. `version`: that of the server, which executes some comments.
pub fn find(sql: &[u8], quoting: Quoting, version: &str) -> Option<Among> {
    let text = super::kill::text(sql, || version.to_owned());
    let tokens: Vec<_> = Tokens::new(&text, quoting).collect();
    let parts: Vec<_> =
        tokens.split(|token| *token == Token::Symbol(b';')).filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| is_prepare_of_kill(part, quoting, version)) {
        return Some(Among::Prepared);
    }
    if parts.len() < 2 || parts.first().is_some_and(|part| is_routine(part)) {
        return None;
    }
    if parts.first().is_some_and(|part| is_compound(part)) {
        let kills = parts.iter().any(|part| kill_within(part).is_some());
        return kills.then_some(Among::Compound);
    }
    // CONNECTION_ID() is the server's own to tell.
    let kills: Vec<_> = parts.iter().filter_map(|part| Kill::of(part.iter().copied(), None)).collect();
    match kills.len() {
        0 => None,
        count if count == parts.len() => Some(Among::Kills(kills)),
        _ => Some(Among::Others),
    }
}

/// Whether there may be several statements, or PREPARE or EXECUTE, also behind a comment.
fn may_have(sql: &[u8]) -> bool {
    let first = sql.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'p' | b'P' | b'e' | b'E' | b'/' | b'-' | b'#'))
        || memchr::memchr(b';', sql).is_some()
}

fn is(token: &Token<'_>, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(keyword.as_bytes()))
}

fn is_prepare_of_kill(part: &[Token<'_>], quoting: Quoting, version: &str) -> bool {
    let text = match part {
        [prepare, _, from, Token::Text(text)] if is(prepare, "PREPARE") && is(from, "FROM") => text,
        [execute, immediate, Token::Text(text), ..]
            if is(execute, "EXECUTE") && is(immediate, "IMMEDIATE") =>
        {
            text
        }
        _ => return false,
    };
    Kill::is_verb_of(text, || version.to_owned()) || is_compound_kill(text, quoting, version)
}

/// Whether a text is a compound statement with the KILL of an id in it. Prepared, it would mean the server's ids.
pub fn is_compound_kill(sql: &[u8], quoting: Quoting, version: &str) -> bool {
    memchr::memchr(b';', sql).is_some() && find(sql, quoting, version) == Some(Among::Compound)
}

/// Whether a compound statement begins, which MariaDB executes outside of routines, too: `BEGIN NOT ATOMIC`, `label: LOOP`.
fn is_compound(part: &[Token<'_>]) -> bool {
    const BLOCKS: [&str; 6] = ["IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR"];
    match part {
        [begin, not, ..] if is(begin, "BEGIN") && is(not, "NOT") => true,
        [_, Token::Symbol(b':'), ..] => true,
        [first, ..] => BLOCKS.iter().any(|word| is(first, word)),
        [] => false,
    }
}

/// The KILL of an id at the end of a part of a compound statement. The word is reserved, so that it is nothing else.
fn kill_within(part: &[Token<'_>]) -> Option<Kill> {
    let at = part.iter().rposition(|token| is(token, "KILL"))?;
    Kill::of(part.get(at..)?.iter().copied(), None)
}

/// Whether semicolons are those of a body.
fn is_routine(part: &[Token<'_>]) -> bool {
    const ROUTINES: [&str; 5] = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
    let defines = part.first().is_some_and(|first| is(first, "CREATE") || is(first, "ALTER"));
    defines && part.iter().any(|token| ROUTINES.iter().any(|word| is(token, word)))
}

/// Error 1235: nothing of it was executed.
fn not_alone() -> SqlError {
    let text = "KILL of a connection's id among other statements is not supported through a proxy, which alone knows whose the id \
                is: send it as a statement of its own";
    SqlError::new(1235, "42000", text)
}

impl Session<'_> {
    /// Whether a text that is to be prepared has the KILL of an id in it, so that it must not be.
    pub(super) fn prepares_kill(&mut self, sql: &[u8]) -> bool {
        if Kill::is_verb_of(sql, || self.version_at_hand()) {
            return true;
        }
        if memchr::memchr(b';', sql).is_none() {
            return false;
        }
        let (quoting, version) = (self.quoting(), self.version_at_hand());
        is_compound_kill(sql, quoting, &version)
    }
    /// What comes of statements with a KILL among them. Several KILLs are performed in order, up to the first that fails.
    pub(super) fn kill_among(&mut self, sql: &[u8]) -> Option<Step> {
        if !may_have(sql) {
            return None;
        }
        let quoting = self.quoting();
        let version = self.version_at_hand();
        let kills = match find(sql, quoting, &version)? {
            Among::Prepared => return Some(Step::Answer(Answer::Error(super::kill::not_preparable()))),
            Among::Compound => return Some(Step::Answer(Answer::Error(not_alone()))),
            // The server refuses several statements.
            _ if !self.allows_multi_statements() => return None,
            Among::Others => return Some(Step::Answer(Answer::Error(not_alone()))),
            Among::Kills(kills) => kills,
        };
        let last = kills.len().saturating_sub(1);
        let (before, end) = kills.into_iter().enumerate().find_map(|(at, kill)| match self.kill(kill) {
            Step::Answer(Answer::Ok) if at < last => None,
            step => Some((at, step)),
        })?;
        Some(match end {
            Step::Answer(answer) => Step::Answer(Answer::Several(before, Box::new(answer))),
            step => step,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Target;

    fn found(sql: &str) -> Option<Among> {
        find(sql.as_bytes(), Quoting::default(), "9.7.0")
    }

    #[test]
    fn ids_among_other_statements_are_found() {
        let kill = |target, id| Kill { target, id };
        for sql in
            ["KILL 5; KILL QUERY 6", "kill 5;;/* x */ kill query 6;", "KILL 5; /*!50000 KILL QUERY 6 */"]
        {
            let kills = vec![kill(Target::Connection, 5), kill(Target::Query, 6)];
            assert_eq!(found(sql), Some(Among::Kills(kills)), "{sql}");
        }
        for sql in [
            "SELECT 1; KILL 5",
            "KILL 5; SELECT 1",
            "SELECT ';'; KILL CONNECTION 5; SELECT 2",
            "BEGIN; SELECT 1; KILL 5",
            "CREATE TABLE t (a INT); KILL 5",
            "KILL 5; KILL 1+1",
        ] {
            assert_eq!(found(sql), Some(Among::Others), "{sql}");
        }
        for sql in [
            "BEGIN NOT ATOMIC SELECT 1; KILL 5; END",
            "BEGIN NOT ATOMIC KILL QUERY 5; END",
            "begin not atomic declare continue handler for 1094 begin end; if 1 then kill 5; end if; end",
            "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION KILL 5; SELECT 1; END",
            "IF 1 THEN SELECT 1; ELSE KILL 5; END IF",
            "a: LOOP KILL 5; LEAVE a; END LOOP",
            "WHILE 1 DO KILL 5; END WHILE",
            "FOR i IN (SELECT 1) DO BEGIN KILL 5; END; END FOR",
        ] {
            assert_eq!(found(sql), Some(Among::Compound), "{sql}");
        }
        for sql in [
            "PREPARE s FROM 'KILL 5'",
            "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC KILL 5; END'",
            "prepare s from \"kill query ?\"",
            "EXECUTE IMMEDIATE 'KILL ?' USING 5",
            "SELECT 1; PREPARE s FROM '/* x */ KILL 5'",
        ] {
            assert_eq!(found(sql), Some(Among::Prepared), "{sql}");
        }
    }

    #[test]
    fn what_means_the_servers_ids_or_is_none_is_not() {
        for sql in [
            "",
            "KILL 5",
            "KILL 5;",
            "SELECT 1; SELECT 2",
            "SELECT 1; KILL 17+0",
            "SELECT 1; KILL QUERY CONNECTION_ID()",
            "SELECT 'a; KILL 5'",
            "SELECT 1; -- KILL 5",
            "CREATE PROCEDURE p() BEGIN SELECT 1; KILL 5; END",
            "BEGIN NOT ATOMIC KILL 17+0; END",
            "BEGIN NOT ATOMIC KILL id; SELECT 'THEN KILL 5'; END",
            "IF 1 THEN SELECT 1; END IF",
            "PREPARE s FROM @kill",
            "PREPARE s FROM 'SELECT 1'",
            "EXECUTE s USING 'KILL 5'",
        ] {
            assert_eq!(found(sql), None, "{sql}");
        }
    }
}
