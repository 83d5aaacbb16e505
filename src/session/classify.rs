//! What a statement does to the session it runs in, judged from its text: conservatively, so that a connection is only
//! shared where nothing can be lost. What servers report of a session goes beyond this, where they do.

#[cfg(test)]
mod tests;
mod words;

use super::commands::{Kind, is_object};
use super::hold::Reason;
use super::routines::{Calls, calls};
use super::settings::Setting;
use super::tokens::{Token, Tokens};
use crate::quoting::Quoting;
use words::{LONGEST_VERB, Verb, meaning, upper, verb};

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
    /// It has SQL_CALC_FOUND_ROWS: FOUND_ROWS() is not the number of rows in its answer.
    pub calculates_rows: bool,
    /// It has LAST_INSERT_ID(n), which rows in the answer do not tell.
    pub sets_insert_id: bool,
    /// It names tables, as far as its words tell. One that does takes away the warnings and errors of the one before; of others
    /// some servers keep them.
    pub names_tables: bool,
    /// It may ask for what is the proxy's to answer: the id of the connection, its status, the version; or it is a KILL.
    pub about_proxy: bool,
    /// What it leaves is told by its values as well.
    pub of_values: bool,
    /// It has RETURNING: its answer is rows, which do not tell the insert id.
    pub returns_rows: bool,
    /// How many statements the text has, up to 255; 0 where it was not read.
    pub statements: u8,
    /// It makes a schema, or changes one itself.
    pub changes_schema: bool,
    /// It calls functions that the server may not have itself: what they leave on the connection is not known.
    pub calls: Calls,
}

impl Statement {
    /// One that works on tables, of which nothing else is known.
    pub fn of_tables() -> Self {
        Self { names_tables: true, ..Self::default() }
    }
    /// Whether what the statement before complained of can still be read after this one.
    pub fn keeps_diagnostics(&self) -> bool {
        self.reads_diagnostics || !self.names_tables
    }
    /// Whether it reads nothing that the statement before left, leaves nothing that its answer does not tell, and its answer is for the
    /// client what it is for the proxy, as a process list is not.
    pub fn is_plain(&self) -> bool {
        let reads = self.reads_counts || self.reads_diagnostics || self.reads_insert_id;
        let leaves = self.calculates_rows || self.sets_insert_id || self.returns_rows;
        let changes = self.effect != Effect::Nothing || self.changes_schema || self.calls.any();
        !(reads || leaves || changes || self.kind == Kind::Show)
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

/// Judges the text of a COM_QUERY, as its session reads it.
pub fn classify(sql: &[u8], quoting: Quoting) -> Statement {
    classify_with(sql, quoting, |_, _| {})
}

/// The same, with `also` called for each token, so that one pass over the text serves two.
pub fn classify_with<'a>(
    sql: &'a [u8],
    quoting: Quoting,
    mut also: impl FnMut(Token<'a>, &Tokens<'a>),
) -> Statement {
    let mut scan = Scan::default();
    let mut tokens = Tokens::new(sql, quoting);
    while let Some(token) = tokens.next() {
        scan.token(token);
        also(token, &tokens);
    }
    let kind = scan.kind();
    Statement {
        effect: scan.effect(sql, quoting),
        kind,
        statements: scan.parts,
        about_proxy: scan.found.about_proxy || matches!(kind, Kind::Kill | Kind::Show),
        of_values: matches!(scan.first, Verb::Use | Verb::Set),
        ..scan.found
    }
}

/// Whether the text is nothing but `SELECT ROW_COUNT()` or `SELECT FOUND_ROWS()`, perhaps with `AS` and a name; and what its column is
/// called.
pub fn only_count(sql: &[u8]) -> Option<(Count, String)> {
    let mut tokens: Vec<_> = Tokens::new(sql, Quoting::default()).take(8).collect();
    tokens.pop_if(|last| *last == Token::Symbol(b';'));
    let [Token::Word(select), Token::Word(name), Token::Symbol(b'('), Token::Symbol(b')'), alias @ ..] =
        tokens.as_slice()
    else {
        return None;
    };
    let alias = match alias {
        [] => None,
        [Token::Word(word), Token::Word(alias) | Token::Name(alias)] if word.eq_ignore_ascii_case(b"AS") => {
            Some(str::from_utf8(alias).ok().filter(|alias| alias.is_ascii() && !alias.contains('`'))?)
        }
        _ => return None,
    };
    if !select.eq_ignore_ascii_case(b"SELECT") {
        return None;
    }
    let count = match () {
        () if name.eq_ignore_ascii_case(b"ROW_COUNT") => Count::Affected,
        () if name.eq_ignore_ascii_case(b"FOUND_ROWS") => Count::Found,
        () => return None,
    };
    let column = alias.map_or_else(|| format!("{}()", String::from_utf8_lossy(name)), str::to_owned);
    Some((count, column))
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
    /// The first one after INSERT is the table, and after WITH or WITH RECURSIVE the query's name, with its columns.
    Table,
    /// In CREATE, ALTER and DROP there are functions behind SELECT alone, in LOAD behind SET.
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
    /// If it is a quoted name with none before it, what is in the quotes.
    quoted: &'a [u8],
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
            let sets = self.since_insert_id == 2 && token != Token::Symbol(b')');
            self.found.sets_insert_id |= sets;
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
            Token::ExecutedComment => {
                self.hold(Reason::State);
                // A KILL may be in it.
                self.found.about_proxy = true;
            }
            _ if self.verb == Verb::None => self.hold(Reason::State),
            Token::Symbol(b'(') => self.parenthesis(),
            Token::Symbol(b'.') => self.previous = DOT,
            Token::Name(name) => {
                self.quoted = if self.previous == DOT { b"" } else { name };
                self.previous = NAME;
            }
            Token::Text(_) => (self.previous, self.quoted) = (NAME, b""),
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
            if name == NAME {
                self.quoted_function();
            }
        }
    }
    /// A server's own functions can be called by a quoted name, too.
    fn quoted_function(&mut self) {
        match meaning(self.quoted) {
            b"GET_LOCK" => self.hold(Reason::NamedLock),
            b"RELEASE_ALL_LOCKS" => self.release = Some(Reason::NamedLock),
            b"NEXTVAL" | b"LASTVAL" => self.hold(Reason::State),
            b"ROW_COUNT" | b"FOUND_ROWS" => self.found.reads_counts = true,
            b"LAST_INSERT_ID" => (self.found.reads_insert_id, self.since_insert_id) = (true, 2),
            _ => {}
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
            _ if word.eq_ignore_ascii_case(b"LOAD") => Named::Defined,
            _ if word.eq_ignore_ascii_case(b"WITH") => Named::Table,
            _ => Named::Function,
        };
        self.found.names_tables |= word.eq_ignore_ascii_case(b"UPDATE");
        if let Some(reason) = hold {
            self.hold(reason);
        }
        if hold == Some(Reason::PreparedText) || self.parts > 1 && word.eq_ignore_ascii_case(b"KILL") {
            // The id of a KILL is a client's.
            self.found.about_proxy = true;
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
            b"DATABASE" | b"SCHEMA" if self.verb == Verb::Definition => {
                self.found.changes_schema |= after("CREATE") || after("REPLACE") || after("ALTER");
                if after("DROP") {
                    self.hold(Reason::State);
                }
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
            b"SQL_CALC_FOUND_ROWS" => self.found.calculates_rows = true,
            // The variable @@identity.
            b"IDENTITY" if self.previous.is_empty() || self.previous == DOT => {
                self.found.reads_insert_id = true
            }
            b"LAST_INSERT_ID" => (self.found.reads_insert_id, self.since_insert_id) = (true, 1),
            b"TABLE" if self.verb == Verb::Insert => {
                (self.named, self.found.names_tables) = (Named::Function, true);
            }
            b"FROM" | b"INTO" | b"TABLE" | b"TABLES" => self.found.names_tables = true,
            // A character set, a column's type or ON DELETE SET NULL.
            b"SET" if after("CHARACTER") || self.verb == Verb::Definition => {}
            b"SET" | b"SELECT" => self.named = Named::Function,
            b"RECURSIVE" if after("WITH") => self.named = Named::Table,
            b"UPDATE" if after("FOR") => self.locks_rows = true,
            b"RETURNING" => self.found.returns_rows = true,
            b"VERSION" | b"VERSION_COMMENT" | b"CONNECTION_ID" | b"USER" | b"KILL" => {
                self.found.about_proxy = true
            }
            _ => {}
        }
        (self.previous, self.quoted) = (if self.previous == DOT { NAME } else { word }, b"");
    }
    fn kind(&self) -> Kind {
        let [first, second] = self.names;
        let mut buffer = [0; LONGEST_VERB];
        match Kind::of(upper(first, &mut buffer), second) {
            Kind::Select if self.locks_rows => Kind::SelectForUpdate,
            kind => kind,
        }
    }
    fn effect(&self, sql: &[u8], quoting: Quoting) -> Effect {
        match (self.hold, self.first) {
            (Some(reason), _) => Effect::Hold(reason),
            (None, Verb::Use) if self.parts == 1 => {
                use_name(sql, quoting).map_or(Effect::Hold(Reason::State), Effect::Use)
            }
            (None, Verb::Set) if self.parts == 1 => {
                Setting::parse(sql, quoting).map_or(Effect::Hold(Reason::State), Effect::Set)
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

/// The schema that a USE statement names.
fn use_name(sql: &[u8], quoting: Quoting) -> Option<String> {
    let mut tokens = Tokens::new(sql, quoting);
    tokens.next()?;
    let name = match tokens.next()? {
        Token::Word(name) => String::from_utf8(name.to_vec()).ok()?,
        Token::Name(name) => {
            let quote = char::from(tokens.quote()?);
            String::from_utf8(name.to_vec()).ok()?.replace(&format!("{quote}{quote}"), &quote.to_string())
        }
        _ => return None,
    };
    tokens.all(|token| token == Token::Symbol(b';')).then_some(name)
}
