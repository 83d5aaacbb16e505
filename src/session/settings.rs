//! SET statements whose effect can be had again on another connection by running them there.

use super::tokens::{Token, Tokens};
use std::sync::Arc;

/// Session variables whose value is all there is to them: no effect on a running transaction, none on other sessions.
const VARIABLES: [&str; 27] = [
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "max_execution_time",
    "max_statement_time",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "sql_auto_is_null",
    "sql_mode",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "tmp_table_size",
    "unique_checks",
    "wait_timeout",
    "sql_warnings",
];
/// What SET NAMES and SET CHARACTER SET change.
const NAMES: [&str; 4] =
    ["character_set_client", "character_set_results", "character_set_connection", "collation_connection"];
/// What SET SESSION TRANSACTION changes.
const TRANSACTION: [&str; 1] = ["transaction"];

/// Longest text and most statements that are remembered for one session; beyond, its connection stays with it.
const MAX_TEXT: usize = 512;
const MAX_SETTINGS: usize = 16;

/// One SET statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    text: Arc<str>,
    variables: Vec<&'static str>,
    // Its values do not depend on what was set before.
    constant: bool,
    // It sets autocommit to on, and nothing else.
    autocommit_on: bool,
}

impl Setting {
    /// Reads a SET statement; `None` for one whose effect cannot be had again by running it elsewhere.
    pub fn parse(sql: &[u8], plain_backslash: bool) -> Option<Self> {
        let text = std::str::from_utf8(sql).ok()?.trim().trim_end_matches(';').trim_end();
        if text.len() > MAX_TEXT {
            return None;
        }
        let tokens: Vec<_> = Tokens::new(text.as_bytes(), plain_backslash).collect();
        let (first, rest) = tokens.split_first()?;
        let mut setting =
            Self { text: Arc::from(text), variables: Vec::new(), constant: true, autocommit_on: false };
        if !is(first, "SET") || rest.iter().any(is_foreign) {
            return None;
        }
        for assignment in split_at_commas(rest) {
            let (variables, value) = parse_assignment(assignment)?;
            setting.variables.extend(variables);
            setting.constant &= value.len() <= 1 || variables.len() > 1 || *variables == TRANSACTION;
            setting.autocommit_on = setting.variables == ["autocommit"] && value.iter().all(is_on);
        }
        Some(setting)
    }
    /// Whether it only says that autocommit is on.
    pub fn is_autocommit_on(&self) -> bool {
        self.autocommit_on
    }
}

/// Tokens that no setting to be remembered may have: user variables, other statements, subqueries.
fn is_foreign(token: &Token<'_>) -> bool {
    matches!(token, Token::UserVariable | Token::ExecutedComment | Token::Symbol(b';')) || is(token, "SELECT")
}

fn is(token: &Token<'_>, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(keyword.as_bytes()))
}

fn is_on(token: &Token<'_>) -> bool {
    match token {
        Token::Word(value) | Token::Text(value) => {
            [&b"1"[..], b"ON", b"TRUE"].iter().any(|on| value.eq_ignore_ascii_case(on))
        }
        _ => false,
    }
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

/// Reads one assignment: the variables it changes, and its value.
fn parse_assignment<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'static [&'static str], &'t [Token<'a>])> {
    let scoped = |token: &Token<'_>| is(token, "SESSION") || is(token, "LOCAL");
    match tokens {
        [names, value @ ..] if is(names, "NAMES") || is(names, "CHARSET") => {
            (!value.is_empty()).then_some((&NAMES, value))
        }
        [character, set, value @ ..] if is(character, "CHARACTER") && is(set, "SET") => {
            (!value.is_empty()).then_some((&NAMES, value))
        }
        [scope, transaction, value @ ..] if scoped(scope) && is(transaction, "TRANSACTION") => {
            Some((&TRANSACTION, value))
        }
        [Token::SystemVariable, scope, Token::Symbol(b'.'), rest @ ..] if scoped(scope) => {
            parse_variable(rest)
        }
        [Token::SystemVariable, rest @ ..] => parse_variable(rest),
        [scope, rest @ ..] if scoped(scope) => parse_variable(rest),
        rest => parse_variable(rest),
    }
}

fn parse_variable<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'static [&'static str], &'t [Token<'a>])> {
    let (Token::Word(name) | Token::Name(name), rest) = tokens.split_first()? else { return None };
    let value = match rest {
        [Token::Symbol(b'='), value @ ..] | [Token::Symbol(b':'), Token::Symbol(b'='), value @ ..] => value,
        _ => return None,
    };
    let at = VARIABLES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
    (!value.is_empty()).then_some((VARIABLES.get(at..=at)?, value))
}

/// The SET statements in force in a session.
#[derive(Debug, Default)]
pub struct Settings {
    list: Vec<Setting>,
}

impl Settings {
    /// Adds one, in place of those it overrides. False if there are too many to remember.
    pub fn add(&mut self, setting: Setting) -> bool {
        if setting.constant {
            self.list
                .retain(|earlier| !earlier.variables.iter().all(|name| setting.variables.contains(name)));
        }
        if self.list.len() >= MAX_SETTINGS {
            return false;
        }
        self.list.push(setting);
        true
    }
    /// The texts as they would be with one more, if running that one twice is the same as once.
    pub fn texts_with(&self, setting: &Setting) -> Option<Arc<[Arc<str>]>> {
        let mut more = Self { list: self.list.clone() };
        (setting.constant && more.add(setting.clone())).then(|| more.texts())
    }
    /// Whether one of them sets a variable.
    pub fn sets(&self, variable: &str) -> bool {
        self.list.iter().any(|setting| setting.variables.contains(&variable))
    }
    /// Their texts, in order.
    pub fn texts(&self) -> Arc<[Arc<str>]> {
        self.list.iter().map(|setting| Arc::clone(&setting.text)).collect()
    }
    /// Forgets them.
    pub fn clear(&mut self) {
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sql: &str) -> Option<Setting> {
        Setting::parse(sql.as_bytes(), false)
    }

    #[test]
    fn drivers_set_up_statements_are_remembered() {
        for sql in [
            "SET NAMES utf8mb4",
            "set names 'utf8mb4' collate 'utf8mb4_bin';",
            "SET @@session.autocommit = OFF",
            "SET autocommit=0",
            "SET character_set_results = NULL",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET sql_mode='A,B', time_zone = '+00:00'",
            "SET SESSION sql_mode := CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'), LOCAL wait_timeout=5",
        ] {
            assert!(parse(sql).is_some(), "{sql}");
        }
    }

    #[test]
    fn what_cannot_be_set_again_is_not() {
        for sql in [
            "SET @x = 1",
            "SET autocommit = @x",
            "SET GLOBAL sql_mode=''",
            "SET @@global.autocommit=0",
            "SET PASSWORD = 'x'",
            "SET TRANSACTION READ ONLY",
            "SET ROLE r",
            "SET insert_id = 5",
            "SET sql_mode = (SELECT 1)",
            "SET autocommit=1; SELECT 1",
            "SET STATEMENT max_statement_time=1 FOR SELECT 2",
            "SET NAMES",
            "SET",
        ] {
            assert_eq!(parse(sql), None, "{sql}");
        }
    }

    #[test]
    fn autocommit_on_is_recognised() {
        for sql in ["SET autocommit=1", "set @@session.autocommit = ON", "SET AUTOCOMMIT = 'on'"] {
            assert!(parse(sql).unwrap().is_autocommit_on(), "{sql}");
        }
        for sql in ["SET autocommit=0", "SET autocommit=1, time_zone='x'", "SET foreign_key_checks=1"] {
            assert!(!parse(sql).unwrap().is_autocommit_on(), "{sql}");
        }
    }

    #[test]
    fn a_later_setting_takes_the_place_of_what_it_overrides() {
        let mut settings = Settings::default();
        for sql in [
            "SET time_zone='a'",
            "SET NAMES latin1",
            "SET time_zone='b'",
            "SET sql_mode='x'",
            "SET sql_mode=CONCAT(@@sql_mode, ',y')",
            "SET NAMES utf8mb4",
        ] {
            assert!(settings.add(parse(sql).unwrap()));
        }
        let texts: Vec<_> = settings.texts().iter().map(|text| text.to_string()).collect();
        let expected = [
            "SET time_zone='b'",
            "SET sql_mode='x'",
            "SET sql_mode=CONCAT(@@sql_mode, ',y')",
            "SET NAMES utf8mb4",
        ];
        assert_eq!(texts, expected);
        assert!(settings.sets("sql_mode") && !settings.sets("autocommit"));
    }

    #[test]
    fn settings_are_bounded() {
        let mut settings = Settings::default();
        let growing = parse("SET sql_mode=CONCAT(@@sql_mode, 'x')").unwrap();
        assert!((0..MAX_SETTINGS).all(|_| settings.add(growing.clone())));
        assert!(!settings.add(growing));
        assert_eq!(parse(&format!("SET sql_mode='{}'", "x".repeat(MAX_TEXT))), None);
    }
}
