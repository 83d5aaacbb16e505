//! What a SET statement assigns, judged from its text. Servers that report variables say what their values became; of
//! others only constants are understood.

use super::tokens::{Token, Tokens};
use crate::pool::{MISTAKEN_DEFAULT, Profile, is_restorable, literal};
use crate::quoting::Quoting;

/// Longest text that is understood, in bytes.
const MAX_TEXT: usize = 8192;

/// One part of a SET statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
    /// What followed SET NAMES.
    Names(String),
    /// SET CHARACTER SET: the collation comes from the schema.
    CharacterSet,
    /// A session variable, in lower case, and its value as SET takes it, if that is a constant.
    Variable(String, Option<String>),
    /// SET TRANSACTION, for the next transaction alone.
    NextTransaction,
    /// SET SESSION TRANSACTION, and the isolation level (`READ-COMMITTED`) where it sets nothing else: servers report it under the
    /// names of variables.
    Transaction(Option<&'static str>),
}

/// One SET statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// What it assigns to the session, in order.
    pub assignments: Vec<Assignment>,
}

impl Setting {
    /// Reads a SET statement; `None` for one that may do more than assign variables.
    pub fn parse(sql: &[u8], quoting: Quoting) -> Option<Self> {
        if sql.len() > MAX_TEXT {
            return None;
        }
        let mut tokens: Vec<_> = Tokens::new(sql, quoting).collect();
        while tokens.last() == Some(&Token::Symbol(b';')) {
            tokens.pop();
        }
        let (first, rest) = tokens.split_first()?;
        if !is(first, "SET") || rest.iter().any(is_foreign) || calls_functions(rest) {
            return None;
        }
        if let Some(assignments) = parse_transaction(rest) {
            return Some(Self { assignments });
        }
        let (mut assignments, mut global) = (Vec::new(), false);
        for assignment in split_at_commas(rest) {
            // GLOBAL or SESSION goes for the names that follow, `@@` for its own alone.
            match assignment.first() {
                Some(scope) if is_elsewhere(scope) => global = true,
                Some(scope) if is_session(scope) => global = false,
                _ => {}
            }
            let of_session = parse_assignment(assignment)?;
            let inherits = global && matches!(assignment.get(1), Some(Token::Symbol(b'=' | b':')));
            assignments.extend(of_session.filter(|_| !inherits));
        }
        Some(Self { assignments })
    }
    /// Whether it only says that autocommit is on.
    pub fn is_autocommit_on(&self) -> bool {
        let on = Assignment::Variable("autocommit".to_owned(), Some("'ON'".to_owned()));
        self.assignments == [on]
    }
    /// What the profile of a connection is after constants were assigned to it.
    pub fn apply(&self, profile: &mut Profile) {
        for assignment in &self.assignments {
            match assignment {
                Assignment::Names(text) => profile.set_names(text),
                Assignment::Variable(name, Some(value)) if value == "DEFAULT" => profile.unset(name),
                Assignment::Variable(name, Some(value)) => profile.set(name, value),
                Assignment::Transaction(Some(level)) => {
                    profile.set("transaction_isolation", &format!("'{level}'"))
                }
                _ => {}
            }
        }
    }
    /// Whether it assigns constants to variables that can be set again elsewhere, and nothing else.
    pub fn is_constant(&self) -> bool {
        self.assignments.iter().all(|assignment| match assignment {
            Assignment::Names(_) => true,
            Assignment::Variable(name, value) => is_restorable(name) && value.is_some(),
            _ => false,
        })
    }
}

/// Tokens that mean more than assigning variables: user variables, other statements, subqueries.
fn is_foreign(token: &Token<'_>) -> bool {
    matches!(token, Token::UserVariable | Token::ExecutedComment | Token::Symbol(b';')) || is(token, "SELECT")
}

/// Whether functions are called other than those that drivers use to put values together.
fn calls_functions(tokens: &[Token<'_>]) -> bool {
    const HARMLESS: [&str; 5] = ["CONCAT", "CONCAT_WS", "REPLACE", "IF", "IFNULL"];
    tokens.windows(2).any(|pair| match pair {
        [name @ (Token::Word(_) | Token::Name(_)), Token::Symbol(b'(')] => {
            !HARMLESS.iter().any(|known| is(name, known))
        }
        _ => false,
    })
}

fn is(token: &Token<'_>, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(keyword.as_bytes()))
}

fn is_session(token: &Token<'_>) -> bool {
    is(token, "SESSION") || is(token, "LOCAL")
}

/// Scopes that do not concern the session.
fn is_elsewhere(token: &Token<'_>) -> bool {
    ["GLOBAL", "PERSIST", "PERSIST_ONLY"].iter().any(|word| is(token, word))
}

/// Splits at commas outside parentheses.
fn split_at_commas<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'t [Token<'a>]> {
    let mut depth = 0usize;
    tokens.split(move |token| {
        match token {
            Token::Symbol(b'(') => depth += 1,
            Token::Symbol(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Symbol(b',')
    })
}

/// Reads what a SET TRANSACTION assigns, which stands alone in its statement and has commas of its own.
fn parse_transaction(tokens: &[Token<'_>]) -> Option<Vec<Assignment>> {
    match tokens {
        [transaction, ..] if is(transaction, "TRANSACTION") => Some(vec![Assignment::NextTransaction]),
        [scope, transaction, _, ..] if is_elsewhere(scope) && is(transaction, "TRANSACTION") => {
            Some(Vec::new())
        }
        [scope, transaction, characteristics @ ..] if is_session(scope) && is(transaction, "TRANSACTION") => {
            Some(vec![Assignment::Transaction(isolation_level(characteristics))])
        }
        _ => None,
    }
}

/// The isolation level as variables have it, where nothing else is said.
fn isolation_level(tokens: &[Token<'_>]) -> Option<&'static str> {
    const LEVELS: [&str; 4] = ["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];
    let [isolation, level, words @ ..] = tokens else { return None };
    let says = |name: &&str| {
        let mut wanted = name.split('-');
        words.iter().all(|word| wanted.next().is_some_and(|wanted| is(word, wanted)))
            && wanted.next().is_none()
    };
    LEVELS.into_iter().find(says).filter(|_| is(isolation, "ISOLATION") && is(level, "LEVEL"))
}

/// Reads one assignment; `Some(None)` for one that does not concern the session.
fn parse_assignment(tokens: &[Token<'_>]) -> Option<Option<Assignment>> {
    let assignment = match tokens {
        [names, value @ ..] if is(names, "NAMES") => Assignment::Names(parse_names(value)?),
        [charset, _] if is(charset, "CHARSET") => Assignment::CharacterSet,
        [character, set, _] if is(character, "CHARACTER") && is(set, "SET") => Assignment::CharacterSet,
        [password, ..] if is(password, "PASSWORD") => return Some(None),
        [Token::SystemVariable, scope, Token::Symbol(b'.'), ..] | [scope, ..] if is_elsewhere(scope) => {
            return Some(None);
        }
        [Token::SystemVariable, scope, Token::Symbol(b'.'), rest @ ..] if is_session(scope) => {
            parse_variable(rest)?
        }
        [Token::SystemVariable, rest @ ..] => parse_variable(rest)?,
        [scope, rest @ ..] if is_session(scope) => parse_variable(rest)?,
        rest => parse_variable(rest)?,
    };
    Some(Some(assignment))
}

/// A character set and perhaps a collation, as SET NAMES takes them.
fn parse_names(tokens: &[Token<'_>]) -> Option<String> {
    let name = |token: &Token<'_>| match token {
        Token::Word(text) | Token::Text(text) | Token::Name(text) => {
            let plain = text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            plain.then(|| String::from_utf8_lossy(text).to_ascii_lowercase())
        }
        _ => None,
    };
    match tokens {
        [set] => name(set),
        [set, collate, collation] if is(collate, "COLLATE") => {
            Some(format!("{} COLLATE {}", name(set)?, name(collation)?))
        }
        _ => None,
    }
}

fn parse_variable(tokens: &[Token<'_>]) -> Option<Assignment> {
    let (Token::Word(name) | Token::Name(name), rest) = tokens.split_first()? else { return None };
    let value = match rest {
        [Token::Symbol(b'='), value @ ..] | [Token::Symbol(b':'), Token::Symbol(b'='), value @ ..] => value,
        _ => return None,
    };
    let name = str::from_utf8(name).ok()?.to_ascii_lowercase();
    let text = |bytes: &[u8]| str::from_utf8(bytes).map(str::to_owned).ok();
    let constant = match value {
        [] => return None,
        [Token::Word(word)] if word.eq_ignore_ascii_case(b"DEFAULT") => {
            (!MISTAKEN_DEFAULT.contains(&&*name)).then(|| "DEFAULT".to_owned())
        }
        [Token::Word(word)] if word.eq_ignore_ascii_case(b"NULL") => Some("NULL".to_owned()),
        [Token::Word(bytes) | Token::Text(bytes) | Token::Name(bytes)] => {
            text(bytes).and_then(|value| literal(&name, &value))
        }
        _ => None,
    };
    Some(Assignment::Variable(name, constant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Assignment::*;

    fn parse(sql: &str) -> Option<Vec<Assignment>> {
        Setting::parse(sql.as_bytes(), Quoting::default()).map(|setting| setting.assignments)
    }
    fn variable(name: &str, value: Option<&str>) -> Assignment {
        Variable(name.to_owned(), value.map(str::to_owned))
    }

    #[test]
    fn drivers_set_up_statements_are_understood() {
        for (sql, expected) in [
            ("SET NAMES utf8mb4", vec![Names("utf8mb4".into())]),
            ("set names 'utf8mb4' collate 'utf8mb4_bin';", vec![Names("utf8mb4 COLLATE utf8mb4_bin".into())]),
            ("SET @@session.autocommit = OFF", vec![variable("autocommit", Some("'OFF'"))]),
            ("SET autocommit=0", vec![variable("autocommit", Some("'OFF'"))]),
            ("SET character_set_results = NULL", vec![variable("character_set_results", Some("NULL"))]),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                vec![Transaction(Some("READ-COMMITTED"))],
            ),
            ("set local transaction isolation level serializable;", vec![Transaction(Some("SERIALIZABLE"))]),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", vec![Transaction(None)]),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ", vec![Transaction(None)]),
            ("SET SESSION TRANSACTION READ WRITE", vec![Transaction(None)]),
            ("SET GLOBAL TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE", vec![]),
            ("SET TRANSACTION READ ONLY", vec![NextTransaction]),
            ("SET CHARACTER SET utf8", vec![CharacterSet]),
            (
                "SET sql_mode='A,B', time_zone = DEFAULT",
                vec![variable("sql_mode", Some("'A,B'")), variable("time_zone", Some("DEFAULT"))],
            ),
            (
                "SET SESSION sql_mode := CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'), LOCAL wait_timeout=5",
                vec![variable("sql_mode", None), variable("wait_timeout", Some("5"))],
            ),
            ("SET foreign_key_checks = DEFAULT", vec![variable("foreign_key_checks", None)]),
            ("SET insert_id = 5", vec![variable("insert_id", Some("5"))]),
            ("SET GLOBAL sql_mode='', @@persist.autocommit=0", vec![]),
            ("SET GLOBAL max_connections = 5, sort_buffer_size := 6", vec![]),
            ("SET @@global.max_connections=5, wait_timeout=6", vec![variable("wait_timeout", Some("6"))]),
            (
                "SET GLOBAL max_connections=5, @@wait_timeout=6, SESSION sql_mode='', time_zone='x', NAMES latin1",
                vec![
                    variable("wait_timeout", Some("6")),
                    variable("sql_mode", Some("''")),
                    variable("time_zone", Some("'x'")),
                    Names("latin1".into()),
                ],
            ),
            ("SET GLOBAL max_connections=5, NAMES latin1", vec![Names("latin1".into())]),
            ("SET PASSWORD = 'x'", vec![]),
        ] {
            assert_eq!(parse(sql), Some(expected), "{sql}");
        }
    }

    #[test]
    fn what_may_do_more_is_not() {
        for sql in [
            "SET @x = 1",
            "SET autocommit = @x",
            "SET ROLE r",
            "SET sql_mode = (SELECT 1)",
            "SET sql_mode = f()",
            "SET autocommit=1; SELECT 1",
            "SET STATEMENT max_statement_time=1 FOR SELECT 2",
            "SET NAMES",
            "SET NAMES 'a b'",
            "SET",
        ] {
            assert_eq!(parse(sql), None, "{sql}");
        }
        assert_eq!(parse(&format!("SET sql_mode='{}'", "x".repeat(MAX_TEXT))), None);
    }

    #[test]
    fn autocommit_on_and_constants_are_recognised() {
        let setting = |sql: &str| Setting::parse(sql.as_bytes(), Quoting::default()).unwrap();
        for sql in ["SET autocommit=1", "set @@session.autocommit = ON", "SET AUTOCOMMIT = 'on'"] {
            assert!(setting(sql).is_autocommit_on(), "{sql}");
        }
        for sql in ["SET autocommit=0", "SET autocommit=1, time_zone='x'", "SET foreign_key_checks=1"] {
            assert!(!setting(sql).is_autocommit_on() && setting(sql).is_constant(), "{sql}");
        }
        for sql in ["SET timestamp=1", "SET sql_mode=CONCAT(@@sql_mode,'x')", "SET CHARSET utf8"] {
            assert!(!setting(sql).is_constant(), "{sql}");
        }
    }
}
