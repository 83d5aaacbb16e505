//! Which statements are answered here and which go to SQLite. Pure.

use crate::system::{self, Item};
use crate::text;

/// A statement, by what the server does with it.
#[derive(Debug, PartialEq)]
pub(crate) enum Statement<'a> {
    /// No statement at all.
    Empty,
    /// Accepted and without effect: settings of a MySQL session that SQLite has no use for.
    Nothing,
    /// Opens a transaction.
    Begin,
    /// Ends it.
    Commit,
    /// Ends it, undone.
    Rollback,
    /// Turns autocommit on or off.
    Autocommit(bool),
    /// A SELECT of system variables and functions alone.
    System(Vec<Item>),
    /// SHOW TABLES, by a LIKE pattern.
    ShowTables(Option<String>),
    /// SHOW DATABASES, by a LIKE pattern.
    ShowDatabases(Option<String>),
    /// SHOW CREATE TABLE.
    ShowCreateTable(String),
    /// Anything else: SQLite's.
    Sql(&'a str),
}

impl<'a> Statement<'a> {
    /// Classifies one statement.
    pub(crate) fn of(sql: &'a str) -> Self {
        let sql = text::bare(sql);
        if sql.is_empty() {
            return Self::Empty;
        }
        // mysqldump's conditional comments set session state; whatever they hold is not for SQLite.
        if sql.starts_with("/*!") {
            return Self::Nothing;
        }
        let keyword_end = sql.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(sql.len());
        let (keyword, rest) = sql.split_at(keyword_end);
        match keyword.to_ascii_uppercase().as_str() {
            "SELECT" => match system::items(rest) {
                Some(items) => Self::System(items),
                None => Self::Sql(text::without_row_locks(sql)),
            },
            "SET" => set(rest).unwrap_or(Self::Sql(sql)),
            "SHOW" => show(rest).unwrap_or(Self::Sql(sql)),
            "USE" => Self::Nothing,
            "BEGIN" => Self::Begin,
            "START" if text::after_words(rest, &["TRANSACTION"]).is_some() => Self::Begin,
            "COMMIT" if is_whole(rest) => Self::Commit,
            "ROLLBACK" if is_whole(rest) => Self::Rollback,
            _ => Self::Sql(sql),
        }
    }
}

/// Whether COMMIT or ROLLBACK is meant for the whole transaction (not, for example, ROLLBACK TO a savepoint).
fn is_whole(rest: &str) -> bool {
    let mut words = text::words(rest);
    let first = words.next();
    first.is_none_or(|word| ["WORK", "TRANSACTION"].iter().any(|w| word.eq_ignore_ascii_case(w)))
        && words.next().is_none()
}

/// SET of session state. Global state and user variables are not kept, so they are refused (`None`: SQLite's syntax error).
fn set(rest: &str) -> Option<Statement<'_>> {
    const REFUSED: [&str; 6] = ["GLOBAL", "PERSIST", "PERSIST_ONLY", "PASSWORD", "ROLE", "DEFAULT"];
    let mut answer = Statement::Nothing;
    for assignment in rest.split(',') {
        let assignment = assignment.trim_ascii();
        let lower = assignment.to_ascii_lowercase();
        let user_variable = assignment.starts_with('@') && !assignment.starts_with("@@");
        let global = lower.starts_with("@@global.") || lower.starts_with("@@persist");
        if user_variable || global || REFUSED.iter().any(|w| text::after_words(assignment, &[w]).is_some()) {
            return None;
        }
        let name = ["@@session.", "@@local.", "@@"].iter().find_map(|p| lower.strip_prefix(p));
        let name = name
            .or_else(|| text::after_words(&lower, &["session"]))
            .or_else(|| text::after_words(&lower, &["local"]))
            .unwrap_or(&lower);
        if let Some(value) = text::after_words(name, &["autocommit"]) {
            let value = value.trim_ascii_start();
            let value = value.strip_prefix(":=").or_else(|| value.strip_prefix('='))?;
            let value = value.trim_ascii();
            // MySQL takes the words as texts, too.
            answer = Statement::Autocommit(match text::unquoted(value).as_deref().unwrap_or(value) {
                "1" | "on" | "true" => true,
                "0" | "off" | "false" => false,
                _ => return None,
            });
        }
    }
    Some(answer)
}

/// The SHOW statements that SQLite's own catalogue can answer.
fn show(rest: &str) -> Option<Statement<'_>> {
    if let Some(name) = text::after_words(rest, &["CREATE", "TABLE"]) {
        let name = name.trim_ascii();
        let name = name.strip_prefix("main.").or_else(|| name.strip_prefix("`main`.")).unwrap_or(name);
        let name = text::unquoted(name).or_else(|| is_name(name).then(|| name.to_owned()))?;
        return Some(Statement::ShowCreateTable(name));
    }
    if let Some(rest) = text::after_words(rest, &["TABLES"]) {
        // There is one schema, so a named one changes nothing.
        let rest =
            ["FROM", "IN"].iter().find_map(|word| text::after_words(rest, &[word])).map_or(rest, |named| {
                let named = named.trim_ascii_start();
                named.find(|c: char| c.is_ascii_whitespace()).map_or("", |end| &named[end..])
            });
        return like(rest).map(Statement::ShowTables);
    }
    let rest = text::after_words(rest, &["DATABASES"]).or_else(|| text::after_words(rest, &["SCHEMAS"]))?;
    like(rest).map(Statement::ShowDatabases)
}

/// An optional LIKE pattern; `None` where something else follows.
fn like(rest: &str) -> Option<Option<String>> {
    match text::after_words(rest, &["LIKE"]) {
        Some(pattern) => text::unquoted(pattern.trim_ascii()).map(Some),
        None => rest.trim_ascii().is_empty().then_some(None),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

#[cfg(test)]
mod tests {
    use super::Statement::*;
    use super::*;

    fn check(sql: &str, expected: Statement<'_>) {
        assert_eq!(Statement::of(sql), expected, "{sql}");
    }

    #[test]
    fn session_settings_are_accepted() {
        for sql in [
            "SET NAMES utf8mb4",
            "set session wait_timeout = 5",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET wait_timeout=10",
            "SET character_set_results = NULL",
            "SET SQL_AUTO_IS_NULL = 0;",
            "SET @@session.sql_mode='ANSI,TRADITIONAL'",
            "/*!40101 SET NAMES utf8 */;",
            "USE main",
        ] {
            check(sql, Nothing);
        }
    }

    #[test]
    fn global_settings_and_user_variables_are_not() {
        for sql in ["SET GLOBAL read_only=1", "SET @@global.x=1", "SET @a = 1", "SET PASSWORD = 'x'"] {
            check(sql, Sql(sql));
        }
    }

    #[test]
    fn autocommit_is_found_among_assignments() {
        check("SET autocommit=0", Autocommit(false));
        check("SET AUTOCOMMIT = ON", Autocommit(true));
        check("set @@session.autocommit = 1", Autocommit(true));
        check("SET SESSION autocommit=false", Autocommit(false));
        check("SET NAMES utf8, autocommit := 0, sql_mode=''", Autocommit(false));
        check("SET NAMES utf8mb4, autocommit='OFF'", Autocommit(false));
        check("SET autocommit=\"on\"", Autocommit(true));
        check("SET autocommit='x'", Sql("SET autocommit='x'"));
        check("SET autocommit=2", Sql("SET autocommit=2"));
        check("SET autocommit_x=1", Nothing);
    }

    #[test]
    fn transactions() {
        check("begin", Begin);
        check("BEGIN WORK;", Begin);
        check("START TRANSACTION READ ONLY", Begin);
        check("START SLAVE", Sql("START SLAVE"));
        check("commit work", Commit);
        check("ROLLBACK ;", Rollback);
        check("ROLLBACK TO a", Sql("ROLLBACK TO a"));
    }

    #[test]
    fn show() {
        check("show tables", ShowTables(None));
        check("SHOW TABLES FROM main LIKE 'a%'", ShowTables(Some("a%".into())));
        check("SHOW TABLES LIKE \"x\"", ShowTables(Some("x".into())));
        check("SHOW SCHEMAS", ShowDatabases(None));
        check("SHOW CREATE TABLE `main`.`a b`", ShowCreateTable("a b".into()));
        check("SHOW CREATE TABLE t1", ShowCreateTable("t1".into()));
        for sql in ["SHOW VARIABLES", "SHOW TABLES garbage", "SHOW CREATE TABLE a b", "SHOW"] {
            check(sql, Sql(sql));
        }
    }

    #[test]
    fn the_rest_is_sqlite_s() {
        check(" ;; ", Empty);
        check("/* x */ SELECT a FROM t FOR UPDATE;", Sql("SELECT a FROM t "));
        check("INSERT INTO t VALUES ('x; ')", Sql("INSERT INTO t VALUES ('x; ')"));
        check("é", Sql("é"));
    }
}
