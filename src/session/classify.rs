//! What a statement does to the session it runs in, judged from its text: conservatively, so that a connection is only
//! shared where nothing can be lost. What servers report of a session goes beyond this, where they do.

use super::commands::{Kind, is_object};
use super::hold::Reason;
use super::routines::{Calls, calls};
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
    /// Session variables.
    Set(Setting),
    /// Something that lives and dies with the connection, or may.
    Hold(Reason),
    /// Variables that the server sets back when the statement is done: among these words, in lower case, with a space after each
    /// (SET STATEMENT).
    Passing(String),
    /// A reason to keep the connection is gone.
    Release(Reason),
}

/// A function whose result is what the statement before it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// ROW_COUNT().
    Affected,
    /// FOUND_ROWS().
    Found,
}

/// A judged statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// What it leaves.
    pub effect: Effect,
    /// What it is, where its text was judged.
    pub kind: Kind,
    /// It reads LAST_INSERT_ID().
    pub reads_insert_id: bool,
    /// It reads the warnings and errors that the statement before it left.
    pub reads_diagnostics: bool,
    /// It reads ROW_COUNT() or FOUND_ROWS().
    pub reads_counts: bool,
    /// It leaves something for the next statement that no answer tells (FOUND_ROWS(), LAST_INSERT_ID(n)).
    pub read_by_next: bool,
    /// It names tables, as far as its words tell. One that does takes away the warnings and errors of the one before; of others
    /// some servers keep them.
    pub names_tables: bool,
    /// It has RETURNING: its answer is rows, which do not tell the insert id.
    pub returns_rows: bool,
    /// How many statements the text has, up to 255; 0 where it was not read.
    pub statements: u8,
    /// It calls functions that the server may not have itself: what they leave on the connection is not known.
    pub calls: Calls,
}

impl Statement {
    /// Whether what the statement before complained of can still be read after this one.
    pub fn keeps_diagnostics(&self) -> bool {
        self.reads_diagnostics || !self.names_tables
    }
    /// How many answers are certain to come if none fails. A procedure's results are not its last.
    pub fn answers(&self) -> usize {
        match self.effect {
            Effect::Hold(Reason::Procedure) if self.statements == 1 => usize::MAX,
            _ => self.statements.into(),
        }
    }
}

impl From<Effect> for Statement {
    fn from(effect: Effect) -> Self {
        Self { effect, ..Self::default() }
    }
}

/// Judges the text of a COM_QUERY. `plain_backslash`: the session's status has NO_BACKSLASH_ESCAPES.
pub fn classify(sql: &[u8], plain_backslash: bool) -> Statement {
    classify_with(sql, plain_backslash, |_, _| {})
}

/// The same, with `also` called for each token, so that one pass over the text serves two.
pub fn classify_with<'a>(
    sql: &'a [u8],
    plain_backslash: bool,
    mut also: impl FnMut(Token<'a>, &Tokens<'a>),
) -> Statement {
    let mut scan = Scan::default();
    let mut tokens = Tokens::new(sql, plain_backslash);
    while let Some(token) = tokens.next() {
        scan.token(token);
        also(token, &tokens);
    }
    let kind = scan.kind();
    Statement { effect: scan.effect(sql, plain_backslash), kind, statements: scan.parts, ..scan.found }
}

/// Whether the text is nothing but `SELECT ROW_COUNT()` or `SELECT FOUND_ROWS()`, and the function as it is written.
pub fn only_count(sql: &[u8]) -> Option<(Count, String)> {
    let tokens: Vec<_> = Tokens::new(sql, false).take(6).collect();
    let [Token::Word(select), Token::Word(name), Token::Symbol(b'('), Token::Symbol(b')'), end @ ..] =
        tokens.as_slice()
    else {
        return None;
    };
    if !select.eq_ignore_ascii_case(b"SELECT") || !matches!(end, [] | [Token::Symbol(b';')]) {
        return None;
    }
    let count = match () {
        () if name.eq_ignore_ascii_case(b"ROW_COUNT") => Count::Affected,
        () if name.eq_ignore_ascii_case(b"FOUND_ROWS") => Count::Found,
        () => return None,
    };
    Some((count, format!("{}()", String::from_utf8_lossy(name))))
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Verb {
    #[default]
    None,
    Stateless,
    /// INSERT and REPLACE.
    Insert,
    /// CREATE, DROP and ALTER: some of their objects are state.
    Definition,
    Flush,
    Unlock,
    Xa,
    Use,
    Set,
    /// MariaDB's SET STATEMENT ... FOR: variables have a value for one statement.
    SetStatement,
}

/// The verb that a statement begins with, and why the connection is kept for it.
fn verb(word: &[u8]) -> (Verb, Option<Reason>) {
    match word {
        b"SELECT" | b"UPDATE" | b"DELETE" | b"WITH" | b"TABLE" | b"VALUES" | b"SHOW" | b"EXPLAIN"
        | b"DESCRIBE" | b"DESC" | b"ANALYZE" | b"OPTIMIZE" | b"CHECK" | b"REPAIR" | b"CHECKSUM"
        | b"RENAME" | b"TRUNCATE" | b"GRANT" | b"REVOKE" | b"DO" | b"BEGIN" | b"START" | b"COMMIT"
        | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE" | b"LOAD" | b"KILL" | b"HELP" | b"GET" => {
            (Verb::Stateless, None)
        }
        b"INSERT" | b"REPLACE" => (Verb::Insert, None),
        b"CREATE" | b"DROP" | b"ALTER" => (Verb::Definition, None),
        b"USE" => (Verb::Use, None),
        b"SET" => (Verb::Set, None),
        b"FLUSH" => (Verb::Flush, None),
        b"UNLOCK" => (Verb::Unlock, None),
        b"XA" => (Verb::Xa, None),
        b"LOCK" => (Verb::Stateless, Some(Reason::TableLock)),
        b"PREPARE" | b"EXECUTE" | b"DEALLOCATE" => (Verb::Stateless, Some(Reason::PreparedText)),
        b"CALL" => (Verb::Stateless, Some(Reason::Procedure)),
        _ => (Verb::Stateless, Some(Reason::State)),
    }
}

/// The longest verb: DEALLOCATE.
const LONGEST_VERB: usize = 10;

/// Words that mean something after the verb, the usual ones first.
const MEANINGFUL: [&[u8]; 36] = [
    b"FROM",
    b"SET",
    b"INTO",
    b"SELECT",
    b"TABLE",
    b"VALUE",
    b"LAST_INSERT_ID",
    b"RETURNING",
    b"UPDATE",
    b"START",
    b"STATEMENT",
    b"BEGIN",
    b"COMMIT",
    b"ROLLBACK",
    b"LOCK",
    b"EXPORT",
    b"INSTANCE",
    b"TEMPORARY",
    b"TEMP",
    b"RELEASE",
    b"DATABASE",
    b"SCHEMA",
    b"GET_LOCK",
    b"RELEASE_ALL_LOCKS",
    b"NEXTVAL",
    b"LASTVAL",
    b"WARNINGS",
    b"ERRORS",
    b"WARNING_COUNT",
    b"ERROR_COUNT",
    b"DIAGNOSTICS",
    b"ROW_COUNT",
    b"FOUND_ROWS",
    b"SQL_CALC_FOUND_ROWS",
    b"IDENTITY",
    b"TABLES",
];

/// For each letter of the alphabet the lengths, as bits, of the meaningful words that begin with it. Nearly every other word
/// is told from them by this.
const LENGTHS: [u32; 32] = {
    let mut lengths = [0; 32];
    let mut at = 0;
    while at < MEANINGFUL.len() {
        let word = MEANINGFUL[at];
        lengths[(word[0] & 31) as usize] |= 1 << word.len();
        at += 1;
    }
    lengths
};

/// The meaningful word that this one is in any case, or nothing.
fn meaning(word: &[u8]) -> &'static [u8] {
    let first = word.first().map_or(0, |letter| letter & 31);
    let lengths = LENGTHS.get(usize::from(first)).copied().unwrap_or_default();
    if word.len() >= 32 || lengths & 1 << word.len() == 0 {
        return b"";
    }
    MEANINGFUL.iter().find(|known| known.eq_ignore_ascii_case(word)).copied().unwrap_or_default()
}

/// Stands for a dot, where no word can.
const DOT: &[u8] = b".";
/// Stands for a name that is none of the server's words: a quoted one, or one after a dot.
const NAME: &[u8] = b"`";

/// What a name before a parenthesis can be.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Named {
    #[default]
    Function,
    /// The first one after INSERT is the table, with its columns.
    Table,
    /// In CREATE, ALTER and DROP there are functions behind SELECT alone.
    Defined,
}

/// One pass over the tokens of a text.
#[derive(Default)]
struct Scan<'a> {
    first: Verb,
    verb: Verb,
    parts: u8,
    /// The first word, and the one after it that says more.
    names: [&'a [u8]; 2],
    locks_rows: bool,
    /// The last token: a word, or one of [`DOT`] and [`NAME`], or nothing for others.
    previous: &'a [u8],
    /// What a name before a parenthesis is, so far.
    named: Named,
    hold: Option<Reason>,
    release: Option<Reason>,
    /// What was found; its effect is known at the end.
    found: Statement,
    /// Words of SET STATEMENT.
    passing: String,
    /// Parentheses open in it.
    depth: usize,
    /// Tokens since LAST_INSERT_ID, from 1 on; 0 elsewhere.
    since_insert_id: u8,
}

impl<'a> Scan<'a> {
    fn token(&mut self, token: Token<'a>) {
        if self.since_insert_id > 0 {
            // LAST_INSERT_ID(n) sets what it reads.
            self.found.read_by_next |= self.since_insert_id == 2 && token != Token::Symbol(b')');
            self.since_insert_id = if self.since_insert_id == 1 { 2 } else { 0 };
        }
        match token {
            Token::Symbol(b';') => self.verb = Verb::None,
            Token::Word(word)
                if self.verb == Verb::SetStatement
                    && self.depth == 0
                    && word.eq_ignore_ascii_case(b"FOR") =>
            {
                // The statement that follows is the one there is.
                (self.verb, self.parts) = (Verb::None, self.parts - 1);
            }
            Token::Symbol(b'(') if self.verb == Verb::SetStatement => {
                self.depth += 1;
                self.parenthesis();
            }
            Token::Symbol(b')') if self.verb == Verb::SetStatement => {
                self.depth = self.depth.saturating_sub(1);
            }
            // A parenthesised query.
            Token::Symbol(b'(') if self.verb == Verb::None => {}
            Token::Word(word) if self.verb == Verb::None => self.begin(word),
            Token::Word(word) => self.word(word),
            Token::UserVariable => self.hold(Reason::UserVariable),
            Token::ExecutedComment => self.hold(Reason::State),
            _ if self.verb == Verb::None => self.hold(Reason::State),
            Token::Symbol(b'(') => self.parenthesis(),
            Token::Symbol(b'.') => self.previous = DOT,
            Token::Name(_) | Token::Text(_) => self.previous = NAME,
            _ => self.previous = b"",
        }
    }
    /// What stands before a parenthesis is a function, unless it is something else.
    fn parenthesis(&mut self) {
        let name = std::mem::take(&mut self.previous);
        let function = self.named == Named::Function;
        if self.named == Named::Table {
            self.named = Named::Function;
        }
        if function && !name.is_empty() {
            self.found.calls |= calls(name);
        }
    }
    fn hold(&mut self, reason: Reason) {
        self.hold.get_or_insert(reason);
    }
    fn begin(&mut self, word: &'a [u8]) {
        let mut buffer = [0; LONGEST_VERB];
        let (verb, hold) = verb(upper(word, &mut buffer));
        self.verb = verb;
        self.previous = word;
        self.parts = self.parts.saturating_add(1);
        self.named = match verb {
            Verb::Definition => Named::Defined,
            Verb::Insert => Named::Table,
            _ => Named::Function,
        };
        self.found.names_tables |= word.eq_ignore_ascii_case(b"UPDATE");
        if let Some(reason) = hold {
            self.hold(reason);
        }
        if self.parts == 1 {
            self.first = verb;
            self.names[0] = word;
        } else if !matches!(verb, Verb::Stateless | Verb::Insert | Verb::Definition) {
            self.hold(Reason::State);
        }
        if verb == Verb::Unlock {
            self.release = Some(Reason::TableLock);
        }
    }
    fn word(&mut self, word: &'a [u8]) {
        let after = |keyword: &str| self.previous.eq_ignore_ascii_case(keyword.as_bytes());
        let [_, second] = &mut self.names;
        if second.is_empty() && (self.verb != Verb::Definition || is_object(word)) {
            *second = word;
        }
        match meaning(word) {
            b"START" | b"BEGIN" if self.verb == Verb::Xa && after("XA") => self.hold = Some(Reason::Xa),
            b"COMMIT" | b"ROLLBACK" if self.verb == Verb::Xa && after("XA") => {
                self.release = Some(Reason::Xa)
            }
            _ if self.verb == Verb::SetStatement => {
                self.passing.push_str(&String::from_utf8_lossy(word).to_ascii_lowercase());
                self.passing.push(' ');
            }
            b"STATEMENT" if self.verb == Verb::Set && after("SET") => self.verb = Verb::SetStatement,
            b"LOCK" | b"EXPORT" if self.verb == Verb::Flush => self.hold(Reason::TableLock),
            // UNLOCK TABLES does not end LOCK INSTANCE FOR BACKUP, nor the other way round.
            b"INSTANCE" if after("LOCK") => self.hold = Some(Reason::State),
            b"INSTANCE" if after("UNLOCK") => self.release = None,
            b"TEMPORARY" if self.verb == Verb::Definition => self.hold(Reason::TemporaryTable),
            // SQLite's short form.
            b"TEMP" if self.verb == Verb::Definition && after("CREATE") => self.hold(Reason::TemporaryTable),
            // COMMIT RELEASE and ROLLBACK RELEASE: the server closes the connection.
            b"RELEASE" if ["COMMIT", "ROLLBACK", "WORK", "CHAIN"].into_iter().any(after) => {
                self.hold(Reason::State)
            }
            b"DATABASE" | b"SCHEMA" if self.verb == Verb::Definition && after("DROP") => {
                self.hold(Reason::State)
            }
            b"GET_LOCK" => self.hold(Reason::NamedLock),
            b"RELEASE_ALL_LOCKS" => self.release = Some(Reason::NamedLock),
            // MariaDB: LASTVAL() and PREVIOUS VALUE are what NEXTVAL() and NEXT VALUE were in this session.
            b"NEXTVAL" | b"LASTVAL" => self.hold(Reason::State),
            b"VALUE" if after("NEXT") || after("PREVIOUS") => self.hold(Reason::State),
            // SHOW COUNT(*) WARNINGS has a symbol before it, and FROM errors a word.
            b"WARNINGS" | b"ERRORS" if after("SHOW") || self.previous.is_empty() => {
                self.found.reads_diagnostics = true
            }
            b"WARNING_COUNT" | b"ERROR_COUNT" | b"DIAGNOSTICS" => self.found.reads_diagnostics = true,
            b"ROW_COUNT" | b"FOUND_ROWS" => self.found.reads_counts = true,
            b"SQL_CALC_FOUND_ROWS" => self.found.read_by_next = true,
            // The variable @@identity.
            b"IDENTITY" if self.previous.is_empty() || self.previous == DOT => {
                self.found.reads_insert_id = true
            }
            b"LAST_INSERT_ID" => (self.found.reads_insert_id, self.since_insert_id) = (true, 1),
            b"TABLE" if self.verb == Verb::Insert => {
                (self.named, self.found.names_tables) = (Named::Function, true);
            }
            b"FROM" | b"INTO" | b"TABLE" | b"TABLES" => self.found.names_tables = true,
            b"SET" | b"SELECT" => self.named = Named::Function,
            b"UPDATE" if after("FOR") => self.locks_rows = true,
            b"RETURNING" => self.found.returns_rows = true,
            _ => {}
        }
        self.previous = if self.previous == DOT { NAME } else { word };
    }
    fn kind(&self) -> Kind {
        let [first, second] = self.names;
        let mut buffer = [0; LONGEST_VERB];
        match Kind::of(upper(first, &mut buffer), second) {
            Kind::Select if self.locks_rows => Kind::SelectForUpdate,
            kind => kind,
        }
    }
    fn effect(&self, sql: &[u8], plain_backslash: bool) -> Effect {
        match (self.hold, self.first) {
            (Some(reason), _) => Effect::Hold(reason),
            (None, Verb::Use) if self.parts == 1 => {
                use_name(sql, plain_backslash).map_or(Effect::Hold(Reason::State), Effect::Use)
            }
            (None, Verb::Set) if self.parts == 1 => {
                Setting::parse(sql, plain_backslash).map_or(Effect::Hold(Reason::State), Effect::Set)
            }
            (None, Verb::Use | Verb::Set) => Effect::Hold(Reason::State),
            _ => match self.release {
                Some(reason) if self.parts == 1 => Effect::Release(reason),
                _ if self.passing.is_empty() => Effect::Nothing,
                _ => Effect::Passing(self.passing.clone()),
            },
        }
    }
}

/// A word in upper case, or nothing for one that is longer than any verb.
fn upper<'b>(word: &[u8], buffer: &'b mut [u8; LONGEST_VERB]) -> &'b [u8] {
    let Some(buffer) = buffer.get_mut(..word.len()) else { return b"" };
    buffer.copy_from_slice(word);
    buffer.make_ascii_uppercase();
    buffer
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
    fn how_many_answers_are_certain() {
        for (sql, answers) in [
            ("SELECT 1", 1),
            ("SELECT 1;", 1),
            ("SELECT ';'; (SELECT 2) ; DO 1 -- ; 4", 3),
            ("CALL p()", usize::MAX),
            ("CALL p(); SELECT 1", 2),
        ] {
            assert_eq!(classify(sql.as_bytes(), false).answers(), answers, "{sql}");
        }
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
    fn functions_that_a_server_does_not_have_itself_are_seen() {
        let calls = |sql: &str| classify(sql.as_bytes(), false).calls.routines(false);
        for sql in [
            "SELECT f()",
            "select 1 + app . f (2)",
            "SELECT app.abs(1)",
            "SELECT `f`(1), 2",
            "SELECT \"f\"(1)",
            "SELECT * FROM t WHERE a IN (1, f(2))",
            "SELECT COALESCE(f(1), 2)",
            "(SELECT f(1))",
            "SELECT 1; SELECT f(1)",
            "INSERT INTO t VALUES (f(1))",
            "INSERT INTO t SET a = f(1)",
            "INSERT INTO t SELECT f(1)",
            "INSERT INTO t (a, b) SELECT f(1), 2",
            "INSERT INTO t TABLE s ORDER BY f(1)",
            "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = f(1)",
            "REPLACE app.t VALUES (1, f(2))",
            "UPDATE t SET a = f(a)",
            "DELETE FROM t WHERE f(a)",
            "DO f(1)",
            "CREATE TABLE t (a INT) AS SELECT f(1) AS a",
            "SET time_zone = f()",
            "SET STATEMENT sql_mode = f() FOR SELECT 1",
        ] {
            assert!(calls(sql), "{sql}");
        }
        for sql in [
            "SELECT c FROM sbtest1 WHERE id = 1",
            "SELECT COUNT(*), max(a), f, t.g FROM t WHERE a IN (1, 2) AND (b OR c)",
            "SELECT f FROM t AS t2 JOIN (SELECT 1) x USING (a)",
            "SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS DATETIME(6)), DATE_ADD(a, INTERVAL (1) DAY)",
            "SELECT a FROM t WHERE MATCH (a) AGAINST ('x') AND b = ANY (SELECT 1)",
            "SELECT ROW_NUMBER() OVER (PARTITION BY a) FROM t PARTITION (p0) USE INDEX (i)",
            "INSERT INTO t (a, b) VALUES (1, 2), (3, 4)",
            "INSERT IGNORE INTO `app`.`t` (`a`) VALUES (LAST_INSERT_ID())",
            "INSERT t(a) VALUE (1)",
            "REPLACE INTO \"t\" (a) SELECT REPLACE(a, 'x', 'y') FROM t",
            "CREATE TABLE t (id INT(11), KEY i (id), CONSTRAINT c FOREIGN KEY (id) REFERENCES u (id))",
            "ALTER TABLE t ADD INDEX i (a)",
            "WITH a AS (SELECT 1) SELECT * FROM a",
        ] {
            assert!(!calls(sql), "{sql}");
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
            "SELECT 1; SET NAMES utf8mb4",
            "USE a; SELECT 1",
            "DROP DATABASE a",
            "DROP SCHEMA a",
            "/*!40101 SET NAMES utf8 */",
            "HANDLER t OPEN",
            "XA START 'a'",
            "SELECT PREVIOUS VALUE FOR s",
            "INSERT INTO t VALUES (NEXT VALUE FOR s)",
            "SELECT NEXTVAL(s)",
            "SELECT LASTVAL(s)",
            "'nonsense'",
            "frobnicate",
        ] {
            assert!(matches!(effect(sql), Effect::Hold(_)), "{sql}");
        }
    }

    #[test]
    fn use_and_set_are_understood() {
        assert_eq!(effect("use `a``b`;"), Effect::Use("a`b".into()));
        assert_eq!(effect("/* x */ USE shop"), Effect::Use("shop".into()));
        assert_eq!(effect("USE"), Effect::Hold(Reason::State));
        assert!(matches!(effect("SET NAMES utf8mb4"), Effect::Set(_)));
        assert!(matches!(effect("/* x */ SET autocommit=0;"), Effect::Set(_)));
    }

    #[test]
    fn what_the_next_statement_may_read_is_noticed() {
        let calc = classify(b"SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 1", false);
        assert!(calc.read_by_next && !calc.reads_insert_id);
        let plain = classify(b"INSERT INTO t VALUES (last_insert_id())", false);
        assert!(plain.reads_insert_id && !plain.read_by_next);
        assert!(classify(b"UPDATE t SET a = LAST_INSERT_ID(a + 1)", false).read_by_next);
        assert!(classify(b"SELECT row_count() - 1", false).reads_counts);
        assert!(classify(b"SELECT Found_Rows() + 1", false).reads_counts);
        assert!(classify(b"INSERT INTO t VALUES (1) RETURNING id", false).returns_rows);
        for sql in [
            "show warnings",
            "SHOW COUNT(*) ERRORS",
            "SELECT @@warning_count",
            "SELECT @@error_count",
            "GET DIAGNOSTICS @n = NUMBER",
        ] {
            assert!(classify(sql.as_bytes(), false).reads_diagnostics, "{sql}");
        }
        assert!(!classify(b"SELECT * FROM errors", false).reads_diagnostics);
        assert!(!classify(b"SELECT 'LAST_INSERT_ID()'", false).reads_insert_id);
        assert!(classify(b"SELECT @@session.identity", false).reads_insert_id);
        assert!(!classify(b"SELECT identity FROM t", false).reads_insert_id);
    }

    #[test]
    fn what_was_complained_of_stays_until_a_statement_with_tables() {
        for sql in ["SHOW ERRORS", "GET DIAGNOSTICS @n = NUMBER", "SELECT 1", "COMMIT", "SET @a = 1"] {
            assert!(classify(sql.as_bytes(), false).keeps_diagnostics(), "{sql}");
        }
        for sql in [
            "SELECT 1 FROM t",
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "TRUNCATE TABLE t",
            "LOCK TABLES t READ",
        ] {
            assert!(!classify(sql.as_bytes(), false).keeps_diagnostics(), "{sql}");
        }
        assert_eq!(effect("GET DIAGNOSTICS @n = NUMBER"), Effect::Hold(Reason::UserVariable));
    }

    #[test]
    fn reasons_are_told_apart_and_end() {
        let passing = |words: &str| Effect::Passing(words.to_owned());
        for (sql, expected) in [
            ("LOCK TABLES t READ", Effect::Hold(Reason::TableLock)),
            ("FLUSH TABLES WITH READ LOCK", Effect::Hold(Reason::TableLock)),
            ("FLUSH PRIVILEGES", Effect::Nothing),
            ("UNLOCK TABLES", Effect::Release(Reason::TableLock)),
            ("UNLOCK TABLES; LOCK TABLES t READ", Effect::Hold(Reason::TableLock)),
            ("FLUSH TABLES t FOR EXPORT", Effect::Hold(Reason::TableLock)),
            ("XA START 'commit'", Effect::Hold(Reason::Xa)),
            ("XA BEGIN 'a'", Effect::Hold(Reason::Xa)),
            ("XA COMMIT 'a'", Effect::Release(Reason::Xa)),
            ("XA END 'start'", Effect::Nothing),
            ("xa rollback 'a'", Effect::Release(Reason::Xa)),
            ("SELECT RELEASE_ALL_LOCKS()", Effect::Release(Reason::NamedLock)),
            ("SELECT RELEASE_ALL_LOCKS(), GET_LOCK('a', 1)", Effect::Hold(Reason::NamedLock)),
            ("SELECT @x", Effect::Hold(Reason::UserVariable)),
            ("CREATE TEMPORARY TABLE t (a INT)", Effect::Hold(Reason::TemporaryTable)),
            ("CREATE TEMP VIEW t AS SELECT 1", Effect::Hold(Reason::TemporaryTable)),
            ("COMMIT RELEASE", Effect::Hold(Reason::State)),
            ("SELECT 1; XA START 'a'", Effect::Hold(Reason::Xa)),
            ("LOCK INSTANCE FOR BACKUP", Effect::Hold(Reason::State)),
            ("UNLOCK INSTANCE", Effect::Nothing),
            ("ROLLBACK WORK AND NO CHAIN RELEASE", Effect::Hold(Reason::State)),
            ("ROLLBACK TO SAVEPOINT a", Effect::Nothing),
            ("RELEASE SAVEPOINT a", Effect::Nothing),
            ("COMMIT AND CHAIN NO RELEASE", Effect::Nothing),
            ("PREPARE s FROM 'SELECT 1'", Effect::Hold(Reason::PreparedText)),
            ("CALL p()", Effect::Hold(Reason::Procedure)),
            (
                "SET STATEMENT max_statement_time=1, SQL_MODE='' FOR SELECT 2",
                passing("max_statement_time 1 sql_mode "),
            ),
            (
                "SET STATEMENT sql_mode=IF(1, SUBSTR('a' FROM 1 FOR 1), '') FOR SELECT 2 FOR UPDATE",
                passing("sql_mode if 1 substr from 1 for 1 "),
            ),
            ("SET STATEMENT max_statement_time=1 FOR CALL p()", Effect::Hold(Reason::Procedure)),
            ("SET STATEMENT max_statement_time=@x FOR SELECT 1", Effect::Hold(Reason::UserVariable)),
            ("SET STATEMENT max_statement_time=1 FOR SET NAMES utf8", Effect::Hold(Reason::State)),
            ("SET STATEMENT max_statement_time=1 FOR USE a", Effect::Hold(Reason::State)),
            ("SET STATEMENT max_statement_time=1", Effect::Hold(Reason::State)),
            ("SELECT 1; SET STATEMENT max_statement_time=1 FOR SELECT 2", Effect::Hold(Reason::State)),
        ] {
            assert_eq!(effect(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_count_alone_is_recognised() {
        assert_eq!(only_count(b"select row_count();"), Some((Count::Affected, "row_count()".into())));
        assert_eq!(only_count(b" SELECT FOUND_ROWS ( )"), Some((Count::Found, "FOUND_ROWS()".into())));
        for sql in ["SELECT ROW_COUNT() AS n", "SELECT ROW_COUNT(), 1", "SELECT f()", "DO ROW_COUNT()"] {
            assert_eq!(only_count(sql.as_bytes()), None, "{sql}");
        }
    }
}
