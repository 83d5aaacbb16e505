//! Warnings and errors of the last statement, which are read before its connection is given back: the session may ask for them
//! when others have used it.

use super::asked::Text;
use super::local::Answer;
use super::state::Session;
use super::unseen::Complaints;
use std::time::Instant;
use wire::backend::TextResult;
use wire::reply::{BINARY, Column, Description};
use wire::{ColumnFlags, ColumnType, SqlError, WireError};

/// Most bytes of a list: far beyond a thousand messages, which is the most that servers list by default.
const MOST: usize = 1 << 20;
/// The column SHOW WARNINGS says in whether a row is an error, and how.
const LEVEL: (usize, &[u8]) = (0, b"Error");

/// What a server said of its warnings and errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    list: TextResult,
    /// How many there were, which may be more than max_error_count lets a server list.
    warnings: usize,
    /// SQLSTATE of the error, if there was one.
    state: Option<[u8; 5]>,
}

impl LeftBehind {
    fn answer(&self, question: &Question) -> Answer {
        let count = if question.errors { self.errors().count() } else { self.warnings };
        let count = count.to_string();
        let rows = match &question.form {
            Form::Variable(name) => return Answer::Row(counter(name), count),
            Form::Count => {
                let name = if question.errors { "@@session.error_count" } else { "@@session.warning_count" };
                return Answer::Table {
                    definitions: vec![counter(name).definition()],
                    rows: vec![vec![Some(count.into_bytes())]],
                    found: Some(1),
                };
            }
            Form::List { offset, count } if question.errors => {
                self.errors().skip(*offset).take(*count).cloned().collect()
            }
            Form::List { offset, count } => {
                self.list.rows.iter().skip(*offset).take(*count).cloned().collect()
            }
        };
        Answer::Table { definitions: self.list.definitions.clone(), rows, found: None }
    }
    fn errors(&self) -> impl Iterator<Item = &Vec<Option<Vec<u8>>>> {
        let (at, error) = LEVEL;
        let is_error = move |row: &&Vec<Option<Vec<u8>>>| {
            row.get(at).is_some_and(|level| level.as_deref() == Some(error))
        };
        self.list.rows.iter().filter(is_error)
    }
    /// What a server is to signal to have the last of them: it can have one.
    pub fn last(&self) -> Option<SqlError> {
        let [level, code, message] = self.list.rows.last()?.as_slice() else { return None };
        let code = str::from_utf8(code.as_deref()?).ok()?.parse().ok()?;
        let error = level.as_deref() == Some(LEVEL.1);
        let state = self.state.filter(|_| error).unwrap_or(if error { *b"HY000" } else { *b"01000" });
        let message = String::from_utf8_lossy(message.as_deref()?).into_owned();
        Some(SqlError { code, state, message })
    }
}

/// The column of a number of warnings or errors, as servers describe it.
fn counter(name: &str) -> Column {
    let flags = ColumnFlags::UNSIGNED_FLAG | ColumnFlags::BINARY_FLAG;
    let description = Description { collation: BINARY, length: 21, flags, decimals: 0 };
    Column::expression(name, ColumnType::MYSQL_TYPE_LONGLONG, description)
}

/// A statement that asks for warnings or errors and nothing else.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    /// For errors alone.
    errors: bool,
    form: Form,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    List {
        offset: usize,
        count: usize,
    },
    Count,
    /// A system variable, as it is written.
    Variable(String),
}

impl Question {
    /// Reads `SHOW WARNINGS [LIMIT ...]`, `SHOW COUNT(*) WARNINGS`, `SELECT @@warning_count`, and the same of errors.
    fn parse(sql: &[u8]) -> Option<Self> {
        let mut text = Text::short(sql)?;
        text.space();
        let question = match text.word("SHOW") {
            Some(()) => Self::shown(&mut text)?,
            None => Self::selected(&mut text)?,
        };
        text.end_of_statement().then_some(question)
    }
    fn shown(text: &mut Text<'_>) -> Option<Self> {
        text.needed_space()?;
        let counts = text.word("COUNT").is_some();
        if counts {
            for part in [b"(", b"*", b")"] {
                text.space();
                text.take(part).then_some(())?;
            }
            text.space();
        }
        let errors = match text.word("WARNINGS") {
            Some(()) => false,
            None => text.word("ERRORS").map(|()| true)?,
        };
        let form = if counts { Form::Count } else { limit(text)? };
        Some(Self { errors, form })
    }
    fn selected(text: &mut Text<'_>) -> Option<Self> {
        text.word("SELECT")?;
        text.needed_space()?;
        text.take(b"@@").then_some(())?;
        let first = text.identifier();
        let (scope, name) = if text.take(b".") { (Some(first), text.identifier()) } else { (None, first) };
        let is_own =
            |scope: &[u8]| ["SESSION", "LOCAL"].iter().any(|own| own.as_bytes().eq_ignore_ascii_case(scope));
        let errors = match () {
            () if name.eq_ignore_ascii_case(b"warning_count") => false,
            () if name.eq_ignore_ascii_case(b"error_count") => true,
            () => return None,
        };
        let written = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = match scope {
            Some(scope) if is_own(scope) => format!("@@{}.{}", written(scope), written(name)),
            Some(_) => return None,
            None => format!("@@{}", written(name)),
        };
        Some(Self { errors, form: Form::Variable(name) })
    }
}

/// `LIMIT count`, `LIMIT offset, count`, `LIMIT count OFFSET offset`, or nothing.
fn limit(text: &mut Text<'_>) -> Option<Form> {
    fn number(text: &mut Text<'_>) -> Option<usize> {
        text.space();
        let digits = text.identifier();
        text.space();
        str::from_utf8(digits).ok()?.parse().ok()
    }
    text.space();
    if text.word("LIMIT").is_none() {
        return Some(Form::List { offset: 0, count: usize::MAX });
    }
    let first = number(text)?;
    let (offset, count) = match () {
        () if text.take(b",") => (first, number(text)?),
        () if text.word("OFFSET").is_some() => (number(text)?, first),
        () => (0, first),
    };
    Some(Form::List { offset, count })
}

impl Session<'_> {
    /// Reads what the last statement has left, if it has left anything, while its connection is in hand.
    pub(super) fn read_complaints(&mut self) -> Result<(), WireError> {
        // What an answer of our own has left since is not the connection's.
        let is_there = self.hold.complaint && self.unseen.is_none();
        let Some(lease) = self.lease.as_mut().filter(|_| is_there) else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        match lease.backend().query("SHOW WARNINGS", MOST, deadline) {
            Ok(list) if !list.definitions.is_empty() => {
                let warnings = list.rows.len().max(self.hold.warnings.into());
                if self.warnings != 0 {
                    self.warnings = u16::try_from(warnings).unwrap_or(u16::MAX);
                }
                let left = LeftBehind { list, warnings, state: self.hold.error_state };
                self.unseen = Some(Complaints::LeftBehind(Box::new(left)));
                Ok(())
            }
            // A server that does not know the question leaves nothing to be asked for.
            Ok(_) | Err(WireError::Sql(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
    /// Answers a statement that asks for nothing else from what was read.
    pub(super) fn show_complaints(&self, sql: &[u8]) -> Option<Answer> {
        let Some(Complaints::LeftBehind(left)) = &self.unseen else { return None };
        Question::parse(sql).map(|question| left.answer(&question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left() -> LeftBehind {
        let row = |level: &str, code: &str, message: &str| -> Vec<Option<Vec<u8>>> {
            [level, code, message].map(|text| Some(text.as_bytes().to_vec())).to_vec()
        };
        let list = TextResult {
            columns: ["Level", "Code", "Message"].map(str::to_owned).to_vec(),
            definitions: vec![b"level".to_vec(), b"code".to_vec(), b"message".to_vec()],
            rows: vec![row("Warning", "1292", "a"), row("Note", "1051", "b"), row("Error", "1064", "c")],
            warnings: 0,
        };
        LeftBehind { list, warnings: 70, state: Some(*b"42000") }
    }

    #[test]
    fn lists_are_answered_in_part_or_whole() {
        for (sql, codes) in [
            ("SHOW WARNINGS", &["1292", "1051", "1064"][..]),
            (" show\twarnings ; ", &["1292", "1051", "1064"]),
            ("SHOW WARNINGS LIMIT 2", &["1292", "1051"]),
            ("SHOW WARNINGS LIMIT 1,2", &["1051", "1064"]),
            ("SHOW WARNINGS LIMIT 1 OFFSET 2;", &["1064"]),
            ("SHOW WARNINGS LIMIT 0", &[]),
            ("SHOW ERRORS", &["1064"]),
            ("SHOW ERRORS LIMIT 1, 1", &[]),
        ] {
            let answer = Question::parse(sql.as_bytes()).map(|question| left().answer(&question));
            let Some(Answer::Table { definitions, rows, found: None }) = answer else {
                panic!("{sql}: {answer:?}")
            };
            let found: Vec<_> =
                rows.into_iter().map(|row| String::from_utf8(row[1].clone().unwrap()).unwrap()).collect();
            assert_eq!(found, codes, "{sql}");
            assert_eq!(definitions.len(), 3);
        }
    }

    #[test]
    fn counts_are_those_of_the_server() {
        for (sql, name, count) in [
            ("SELECT @@warning_count", "@@warning_count", "70"),
            ("select @@Session.error_count;", "@@Session.error_count", "1"),
        ] {
            let question = Question::parse(sql.as_bytes()).unwrap();
            assert_eq!(left().answer(&question), Answer::Row(counter(name), count.to_owned()));
        }
        for (sql, name, count) in [
            ("SHOW COUNT(*) WARNINGS", "@@session.warning_count", "70"),
            ("show count ( * ) errors", "@@session.error_count", "1"),
        ] {
            let question = Question::parse(sql.as_bytes()).unwrap();
            let definitions = vec![counter(name).definition()];
            let rows = vec![vec![Some(count.as_bytes().to_vec())]];
            assert_eq!(left().answer(&question), Answer::Table { definitions, rows, found: Some(1) });
        }
    }

    #[test]
    fn anything_else_is_a_servers_to_answer() {
        for sql in [
            "SHOW WARNINGSX",
            "SHOW WARNINGS LIMIT",
            "SHOW WARNINGS LIMIT x",
            "SHOW WARNINGS; SELECT 1",
            "SHOW COUNT(*) TABLES",
            "SHOW COUNT(1) WARNINGS",
            "SELECT @@global.warning_count",
            "SELECT @@warning_count + 1",
            "SELECT @@warning_count, 1",
            "SELECT @warning_count",
            "GET DIAGNOSTICS @n = NUMBER",
        ] {
            assert_eq!(Question::parse(sql.as_bytes()), None, "{sql}");
        }
    }

    #[test]
    fn the_last_one_can_be_signalled() {
        assert_eq!(left().last(), Some(SqlError::new(1064, "42000", "c")));
        let mut left = left();
        left.list.rows.truncate(1);
        assert_eq!(left.last(), Some(SqlError::new(1292, "01000", "a")));
        left.list.rows.clear();
        assert_eq!(left.last(), None);
    }
}
