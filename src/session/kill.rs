//! KILL: connection ids that clients know are the proxy's, so that the proxy finds out whom they mean.

use super::executed::executed;
use super::local::Answer;
use super::registry::Ending;
use super::state::{Session, Step};
use super::wording::Wording;
use crate::pool::Target;
use crate::quoting::Quoting;
use crate::tokens::{Token, Tokens};
use std::borrow::Cow;
use wire::SqlError;
use wire::version::{is_mariadb, is_mysql_9};

/// A KILL of one connection or its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// What is to end.
    pub target: Target,
    /// The connection id, as clients know it.
    pub id: u64,
}

impl Kill {
    /// Reads `KILL [HARD|SOFT] [CONNECTION|QUERY] number`, where `CONNECTION_ID()` is the number `own`. `None`: another statement.
    /// Among them are those with another expression in the number's place, which means something to the server alone, and
    /// MariaDB's KILL QUERY ID and KILL USER. `version`: that of the server, which executes some comments.
    pub fn parse(sql: &[u8], version: impl FnOnce() -> String, own: u32) -> Option<Self> {
        if !may_begin(sql) {
            return None;
        }
        let sql = text(sql, version);
        let tokens = Tokens::new(&sql, Quoting::default());
        Self::of(tokens.filter(|token| *token != Token::Symbol(b';')), Some(own))
    }
    /// Reads its tokens. Without `own`, CONNECTION_ID() is left to the server.
    pub fn of<'t>(mut tokens: impl Iterator<Item = Token<'t>>, own: Option<u32>) -> Option<Self> {
        if !begins(&mut tokens) {
            return None;
        }
        let mut word = || match tokens.next() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        };
        let mut next = word()?;
        if is(next, "HARD") || is(next, "SOFT") {
            next = word()?;
        }
        let target = if is(next, "QUERY") { Target::Query } else { Target::Connection };
        if target == Target::Query || is(next, "CONNECTION") {
            next = word()?;
        }
        let id = if is(next, "CONNECTION_ID") {
            let call = [tokens.next(), tokens.next()];
            (call == [Some(Token::Symbol(b'(')), Some(Token::Symbol(b')'))]).then_some(own?.into())?
        } else {
            str::from_utf8(next).ok()?.parse().ok()?
        };
        tokens.next().is_none().then_some(Self { target, id })
    }
    /// Whether a statement begins with KILL. Prepared, it would mean the server's ids: it must not be.
    pub fn is_verb_of(sql: &[u8], version: impl FnOnce() -> String) -> bool {
        may_begin(sql) && begins(&mut Tokens::new(&text(sql, version), Quoting::default()))
    }
    /// COM_PROCESS_KILL, unless its argument is malformed to a server of this kind.
    pub fn from_command(argument: &[u8], wording: Wording) -> Option<Self> {
        let id = u32::from_le_bytes(wording.padded(argument)?);
        Some(Self { target: Target::Connection, id: id.into() })
    }
}

/// Whether a statement may begin with KILL. Statements come by the million; nearly every one ends here.
fn may_begin(sql: &[u8]) -> bool {
    let first = sql.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'k' | b'K' | b'/' | b'-' | b'#'))
}

/// Whether the next token is KILL. No quotes stand before it, and none in a statement that is understood.
fn begins<'t>(tokens: &mut impl Iterator<Item = Token<'t>>) -> bool {
    matches!(tokens.next(), Some(Token::Word(word)) if is(word, "KILL"))
}

/// A statement with what the server executes of comments.
pub fn text(sql: &[u8], version: impl FnOnce() -> String) -> Cow<'_, [u8]> {
    let comments = sql.contains(&b'!');
    if comments { executed(sql, &version()) } else { Cow::Borrowed(sql) }
}

fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

/// Error 1295: the client is to send the statement as text.
pub fn not_preparable() -> SqlError {
    SqlError::new(1295, "HY000", "This command is not supported in the prepared statement protocol yet")
}

/// Error 1317, as a server says it to a statement that was killed.
pub fn interrupted() -> SqlError {
    SqlError::new(1317, "70100", "Query execution was interrupted")
}

/// Error 1094.
pub fn unknown_thread(id: u64) -> SqlError {
    SqlError::new(1094, "HY000", format!("Unknown thread id: {id}"))
}

impl Session<'_> {
    /// What a server says to a connection that kills itself: MariaDB has an error for it.
    fn killed(&self) -> SqlError {
        match is_mariadb(&self.shared.config.variables().server_version) {
            true => SqlError::new(1927, "70100", "Connection was killed"),
            false => interrupted(),
        }
    }
    /// COM_PROCESS_KILL, which MySQL has no more.
    pub(super) fn kill_by_command(&mut self, argument: &[u8]) -> Step {
        let unknown = || Step::Answer(Answer::Error(SqlError::unknown_command()));
        if is_mysql_9(&self.shared.config.variables().server_version) {
            return unknown();
        }
        Kill::from_command(argument, self.wording()).map_or_else(unknown, |kill| self.kill(kill))
    }
    /// Ends a session or its statement. A user ends their own; what privileges would allow beyond that, the server alone knows.
    pub fn kill(&self, kill: Kill) -> Step {
        let Kill { target, id } = kill;
        if id == u64::from(self.id) {
            return match target {
                Target::Query => Step::Answer(Answer::Error(interrupted())),
                Target::Connection => Step::End(Some(self.killed())),
            };
        }
        let entry = u32::try_from(id).ok().and_then(|id| self.shared.registry.find(id));
        let error = match entry {
            None => unknown_thread(id),
            Some(entry) if entry.activity().user != self.want.identity.user => {
                SqlError::new(1095, "HY000", format!("You are not owner of thread {id}"))
            }
            Some(entry) => {
                match target {
                    Target::Query => entry.kill_query(),
                    Target::Connection => entry.end(Ending::Killed),
                }
                return Step::Answer(Answer::Ok);
            }
        };
        Step::Answer(Answer::Error(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> String {
        "9.7.0".to_owned()
    }

    #[test]
    fn statements_that_name_a_connection_are_understood() {
        for (sql, target, id) in [
            ("KILL 12", Target::Connection, 12),
            ("kill connection 5;", Target::Connection, 5),
            ("  Kill Query 7 ", Target::Query, 7),
            ("/* app */ KILL /* x */ QUERY 7 -- end", Target::Query, 7),
            ("KILL HARD QUERY 8", Target::Query, 8),
            ("/*! KILL 9 */", Target::Connection, 9),
            ("/*!50000KILL*/ /*!50000 QUERY */ 9;", Target::Query, 9),
            ("/*!99999 x */ KILL 9", Target::Connection, 9),
            ("KILL SOFT 8", Target::Connection, 8),
            ("KILL 18446744073709551615", Target::Connection, u64::MAX),
            ("KILL CONNECTION_ID()", Target::Connection, 3),
            ("kill query connection_id ( );", Target::Query, 3),
        ] {
            assert_eq!(Kill::parse(sql.as_bytes(), version, 3), Some(Kill { target, id }), "{sql}");
        }
    }

    #[test]
    fn other_statements_are_not() {
        for sql in [
            "",
            "KILL",
            "KILL QUERY",
            "KILL CONNECTION_ID",
            "KILL CONNECTION_ID() + 1",
            "KILL 1 + 1",
            "KILL @x",
            "KILL QUERY ID 9",
            "KILL USER app",
            "KILL -1",
            "KILL 18446744073709551616",
            "killing 5",
            "SELECT 'KILL 5'",
            "-- KILL 5",
            "/*!99999 KILL 5 */",
            "/*M! KILL 5 */",
            "KILL /*! 5 + */ 1",
        ] {
            assert_eq!(Kill::parse(sql.as_bytes(), version, 3), None, "{sql}");
        }
    }

    #[test]
    fn what_must_not_be_prepared_is_known_by_its_verb() {
        for sql in ["KILL ?", "kill query ?", "/* x */ KILL CONNECTION_ID()", "/*!50000 KILL*/ ?"] {
            assert!(Kill::is_verb_of(sql.as_bytes(), version), "{sql}");
        }
        for sql in ["", "SELECT 'KILL'", "killer", "/* KILL */ SELECT 1"] {
            assert!(!Kill::is_verb_of(sql.as_bytes(), version), "{sql}");
        }
    }

    #[test]
    fn the_command_has_four_bytes() {
        let kill = Kill { target: Target::Connection, id: 258 };
        for (argument, of_mysql, of_mariadb) in [
            (&[2, 1, 0, 0][..], Some(kill), Some(kill)),
            (&[2, 1, 0, 0, 9], Some(kill), Some(kill)),
            (&[2, 1], None, Some(kill)),
        ] {
            assert_eq!(Kill::from_command(argument, Wording::MySql), of_mysql);
            assert_eq!(Kill::from_command(argument, Wording::MariaDb), of_mariadb);
        }
    }
}
