//! What a statement does to the session it runs in, judged from its text: conservatively, so that a connection is only
//! shared where nothing can be lost. A stored function called from a query is taken to leave nothing.

use super::settings::Setting;
use super::tokens::{Token, Tokens};

/// What is left on the connection once a statement has run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Effect {
    /// Nothing but what the status flags tell.
    #[default]
    Nothing,
    /// Another default schema.
    Use(String),
    /// Session variables that can be set again elsewhere.
    Set(Setting),
    /// Something that lives and dies with the connection, or may.
    State,
}

/// A judged statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// What it leaves.
    pub effect: Effect,
    /// It reads LAST_INSERT_ID().
    pub reads_insert_id: bool,
    /// It reads the warnings and errors that the statement before it left.
    pub reads_diagnostics: bool,
    /// It leaves something for the next statement (FOUND_ROWS(), LAST_INSERT_ID()).
    pub read_by_next: bool,
}

/// Verbs that leave nothing behind, as long as no word in the statement says otherwise.
const STATELESS: [&str; 32] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REPLACE",
    "WITH",
    "TABLE",
    "VALUES",
    "SHOW",
    "EXPLAIN",
    "DESCRIBE",
    "DESC",
    "ANALYZE",
    "OPTIMIZE",
    "CHECK",
    "REPAIR",
    "CHECKSUM",
    "CREATE",
    "DROP",
    "ALTER",
    "RENAME",
    "TRUNCATE",
    "GRANT",
    "REVOKE",
    "DO",
    "BEGIN",
    "START",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "LOAD",
];
/// Words that mean state wherever they stand: locks by name, MariaDB's NEXTVAL() and the LASTVAL() that reads what it left.
const STATEFUL: [&str; 5] = ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "NEXTVAL", "LASTVAL"];

/// Judges the text of a COM_QUERY. `plain_backslash`: the session's status has NO_BACKSLASH_ESCAPES.
pub fn classify(sql: &[u8], plain_backslash: bool) -> Statement {
    let mut scan = Scan::default();
    for token in Tokens::new(sql, plain_backslash) {
        scan.token(token);
    }
    let effect = match scan.first {
        _ if scan.stateful => Effect::State,
        Verb::Use if scan.parts <= 1 => match use_name(sql, plain_backslash) {
            Some(schema) => Effect::Use(schema),
            None => Effect::State,
        },
        Verb::Set if scan.parts <= 1 => match Setting::parse(sql, plain_backslash) {
            Some(setting) => Effect::Set(setting),
            None => Effect::State,
        },
        Verb::Use | Verb::Set => Effect::State,
        _ => Effect::Nothing,
    };
    let Scan { reads_insert_id, reads_diagnostics, read_by_next, .. } = scan;
    Statement { effect, reads_insert_id, reads_diagnostics, read_by_next }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Verb {
    #[default]
    None,
    Stateless,
    /// CREATE, DROP and ALTER: some of their objects are state.
    Definition,
    Use,
    Set,
}

/// One pass over the tokens of a text.
#[derive(Default)]
struct Scan<'a> {
    first: Verb,
    verb: Verb,
    parts: usize,
    previous: &'a [u8],
    stateful: bool,
    reads_insert_id: bool,
    reads_diagnostics: bool,
    read_by_next: bool,
}

impl<'a> Scan<'a> {
    fn token(&mut self, token: Token<'a>) {
        match token {
            Token::Symbol(b';') => self.verb = Verb::None,
            // A parenthesised query.
            Token::Symbol(b'(') if self.verb == Verb::None => {}
            Token::Word(word) if self.verb == Verb::None => self.begin(word),
            Token::Word(word) => self.word(word),
            Token::UserVariable | Token::ExecutedComment => self.stateful = true,
            _ if self.verb == Verb::None => self.stateful = true,
            _ => self.previous = b"",
        }
    }
    fn begin(&mut self, word: &'a [u8]) {
        let is = |keyword: &&str| word.eq_ignore_ascii_case(keyword.as_bytes());
        self.verb = match () {
            () if ["CREATE", "DROP", "ALTER"].iter().any(is) => Verb::Definition,
            () if is(&"USE") => Verb::Use,
            () if is(&"SET") => Verb::Set,
            () => Verb::Stateless,
        };
        self.stateful |= self.verb == Verb::Stateless && !STATELESS.iter().any(is);
        self.parts += 1;
        if self.parts == 1 {
            self.first = self.verb;
        } else {
            self.stateful |= matches!(self.verb, Verb::Use | Verb::Set);
        }
        self.previous = word;
    }
    fn word(&mut self, word: &'a [u8]) {
        let after = |keyword: &str| self.previous.eq_ignore_ascii_case(keyword.as_bytes());
        let is = |keyword: &&str| word.eq_ignore_ascii_case(keyword.as_bytes());
        // Nearly every word of a long statement fails here.
        if matches!(word.len(), 5..=19) {
            let dropped_schema = after("DROP") && (is(&"DATABASE") || is(&"SCHEMA"));
            let definition = self.verb == Verb::Definition && (is(&"TEMPORARY") || dropped_schema);
            // MariaDB: PREVIOUS VALUE FOR a sequence is what NEXT VALUE was in this session.
            let sequence = (after("NEXT") || after("PREVIOUS")) && is(&"VALUE");
            self.stateful |= definition || sequence || STATEFUL.iter().any(is);
            // SHOW COUNT(*) WARNINGS has a symbol before it, and FROM errors a word.
            let shown = after("SHOW") || self.previous.is_empty();
            self.reads_diagnostics |= (shown && (is(&"WARNINGS") || is(&"ERRORS")))
                || ["WARNING_COUNT", "ERROR_COUNT", "DIAGNOSTICS"].iter().any(is);
            let insert_id = is(&"LAST_INSERT_ID");
            self.reads_insert_id |= insert_id;
            self.read_by_next |= insert_id || is(&"SQL_CALC_FOUND_ROWS");
        }
        self.previous = word;
    }
}

/// The schema that a USE statement names.
fn use_name(sql: &[u8], plain_backslash: bool) -> Option<String> {
    let mut tokens = Tokens::new(sql, plain_backslash).skip(1);
    let name = match tokens.next()? {
        Token::Word(name) => String::from_utf8(name.to_vec()).ok()?,
        Token::Name(name) => String::from_utf8(name.to_vec()).ok()?.replace("``", "`"),
        _ => return None,
    };
    tokens.all(|token| token == Token::Symbol(b';')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(sql: &str) -> Effect {
        classify(sql.as_bytes(), false).effect
    }

    #[test]
    fn ordinary_statements_leave_nothing() {
        for sql in [
            "SELECT 1",
            "  /* app */ select @@version, '@x', `@y` from t -- @z",
            "(SELECT 1) UNION (SELECT 2);",
            "SELECT 1; SELECT 2",
            "INSERT INTO t VALUES ('a;b')",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "START TRANSACTION",
            "CREATE TABLE t (temp INT)",
            "SHOW DATABASES",
            "DROP TABLE schema_log",
            "SELECT temporary, value FROM t",
            "",
        ] {
            assert_eq!(effect(sql), Effect::Nothing, "{sql}");
        }
    }

    #[test]
    fn what_may_live_on_the_connection_is_state() {
        for sql in [
            "SELECT @x := 1",
            "SELECT id INTO @a FROM t",
            "SELECT GET_LOCK('a', 1)",
            "CREATE TEMPORARY TABLE t (a INT)",
            "create or replace temporary table t (a int)",
            "LOCK TABLES t READ",
            "FLUSH TABLES WITH READ LOCK",
            "PREPARE s FROM 'SELECT 1'",
            "CALL p()",
            "SET @x = 1",
            "SET TRANSACTION READ ONLY",
            "SELECT 1; SET NAMES utf8mb4",
            "USE a; SELECT 1",
            "DROP DATABASE a",
            "/*!40101 SET NAMES utf8 */",
            "HANDLER t OPEN",
            "XA START 'a'",
            "SELECT PREVIOUS VALUE FOR s",
            "INSERT INTO t VALUES (NEXT VALUE FOR s)",
            "SELECT NEXTVAL(s)",
            "'nonsense'",
            "frobnicate",
        ] {
            assert_eq!(effect(sql), Effect::State, "{sql}");
        }
    }

    #[test]
    fn use_and_set_are_understood() {
        assert_eq!(effect("use `a``b`;"), Effect::Use("a`b".into()));
        assert_eq!(effect("/* x */ USE shop"), Effect::Use("shop".into()));
        assert_eq!(effect("USE"), Effect::State);
        assert!(matches!(effect("SET NAMES utf8mb4"), Effect::Set(_)));
        assert!(matches!(effect("/* x */ SET autocommit=0;"), Effect::Set(_)));
    }

    #[test]
    fn what_the_next_statement_may_read_is_noticed() {
        let calc = classify(b"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", false);
        assert!(calc.read_by_next && !calc.reads_insert_id);
        assert!(classify(b"INSERT INTO t VALUES (last_insert_id())", false).reads_insert_id);
        for sql in
            ["show warnings", "SHOW COUNT(*) ERRORS", "SELECT @@warning_count", "GET DIAGNOSTICS @n = NUMBER"]
        {
            assert!(classify(sql.as_bytes(), false).reads_diagnostics, "{sql}");
        }
        assert!(!classify(b"SELECT * FROM errors", false).reads_diagnostics);
        assert!(!classify(b"SELECT 'LAST_INSERT_ID()'", false).reads_insert_id);
    }
}
