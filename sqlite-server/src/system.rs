//! System variables and functions: what drivers ask when they connect (`SELECT @@max_allowed_packet, ...`).

use crate::text;
use wire::{ColumnType, SqlError};

/// One selected expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Name of the result column: the alias, or the expression as it was written.
    pub column: String,
    /// What is asked for.
    pub asked: Asked,
}

/// A system variable or function, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `@@name`, its scope dropped.
    Variable(String),
    /// `name()`.
    Function(String),
}

/// What the answers depend on beside constants.
pub(crate) struct Context<'a> {
    /// The version in the greeting.
    pub server_version: &'a str,
    /// The text of `@@version_comment`, or why there is none: it is the error of whoever asks.
    pub version_comment: Result<&'a str, &'a SqlError>,
    /// The session's number.
    pub connection_id: u32,
    /// The user who logged in.
    pub user: &'a str,
    /// Whether autocommit is on.
    pub autocommit: bool,
}

/// The largest statement accepted, in bytes (MySQL's own default).
pub(crate) const MAX_ALLOWED_PACKET: usize = 64 << 20;

const FUNCTIONS: [&str; 8] =
    ["version", "database", "schema", "connection_id", "user", "current_user", "session_user", "system_user"];

/// Variables with a fixed value. SQLite's transactions are serializable; texts are UTF-8.
const VARIABLES: [(&str, &str); 45] = [
    ("auto_increment_increment", "1"),
    ("auto_increment_offset", "1"),
    ("character_set_client", "utf8"),
    ("character_set_connection", "utf8"),
    ("character_set_database", "utf8"),
    ("character_set_results", "utf8"),
    ("character_set_server", "utf8"),
    ("character_set_system", "utf8"),
    ("collation_connection", "utf8_general_ci"),
    ("collation_database", "utf8_general_ci"),
    ("collation_server", "utf8_general_ci"),
    ("default_storage_engine", "SQLite"),
    ("foreign_key_checks", "1"),
    ("init_connect", ""),
    ("innodb_read_only", "0"),
    ("interactive_timeout", "28800"),
    ("license", env!("CARGO_PKG_LICENSE")),
    ("lower_case_table_names", "0"),
    ("max_execution_time", "60000"),
    ("net_buffer_length", "16384"),
    ("net_read_timeout", "30"),
    ("net_write_timeout", "60"),
    ("performance_schema", "0"),
    ("protocol_version", "10"),
    ("query_cache_size", "0"),
    ("query_cache_type", "OFF"),
    ("read_only", "0"),
    ("socket", ""),
    ("sql_auto_is_null", "0"),
    ("sql_mode", ""),
    ("sql_notes", "1"),
    ("sql_quote_show_create", "1"),
    ("sql_safe_updates", "0"),
    ("sql_select_limit", "18446744073709551615"),
    ("super_read_only", "0"),
    ("system_time_zone", "UTC"),
    ("time_zone", "SYSTEM"),
    ("transaction_isolation", "SERIALIZABLE"),
    ("transaction_read_only", "0"),
    ("tx_isolation", "SERIALIZABLE"),
    ("tx_read_only", "0"),
    ("unique_checks", "1"),
    ("version_compile_machine", std::env::consts::ARCH),
    ("version_compile_os", std::env::consts::OS),
    ("wait_timeout", "28800"),
];

/// Reads what follows SELECT, if it is a list of system variables and functions alone (`[AS] alias` and `LIMIT n` allowed).
pub(crate) fn items(list: &str) -> Option<Vec<Item>> {
    // Decided by the first word, so that long statements are not looked through.
    let start = list.trim_ascii_start();
    if !start.starts_with("@@") && !FUNCTIONS.iter().any(|name| text::after_words(start, &[name]).is_some()) {
        return None;
    }
    without_limit(list).split(',').map(item).collect()
}

fn without_limit(list: &str) -> &str {
    let list = list.trim_ascii_end();
    let head = list.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &list[head.len()..];
    let head = head.trim_ascii_end();
    match head.len().checked_sub("limit".len()).and_then(|at| head.split_at_checked(at)) {
        Some((before, word)) if word.eq_ignore_ascii_case("limit") && number.bytes().any(|b| b != b'0') => {
            before
        }
        _ => list,
    }
}

fn item(text: &str) -> Option<Item> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(4).collect();
    let (expression, alias) = match words.as_slice() {
        [expression] => (*expression, *expression),
        [expression, alias] => (*expression, *alias),
        [expression, word, alias] if word.eq_ignore_ascii_case("AS") => (*expression, *alias),
        _ => return None,
    };
    let column = text::unquoted(alias).unwrap_or_else(|| alias.to_owned());
    let lower = expression.to_ascii_lowercase();
    let asked = if let Some(name) = lower.strip_prefix("@@") {
        let scoped = ["global.", "session.", "local."].iter().find_map(|scope| name.strip_prefix(scope));
        let name = scoped.unwrap_or(name);
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        Asked::Variable(plain.then(|| name.to_owned())?)
    } else {
        let name = lower.strip_suffix("()")?;
        Asked::Function(FUNCTIONS.contains(&name).then(|| name.to_owned())?)
    };
    Some(Item { column, asked })
}

impl Context<'_> {
    /// The value of one item. An unknown variable is MySQL's error 1193.
    pub(crate) fn value(&self, asked: &Asked) -> Result<String, SqlError> {
        let value = match asked {
            Asked::Function(name) => match name.as_str() {
                "version" => self.server_version.to_owned(),
                "database" | "schema" => "main".to_owned(),
                "connection_id" => self.connection_id.to_string(),
                _ => format!("{}@%", self.user),
            },
            Asked::Variable(name) => match name.as_str() {
                "version" => self.server_version.to_owned(),
                "version_comment" => self.version_comment.map_err(Clone::clone)?.to_owned(),
                "autocommit" => u8::from(self.autocommit).to_string(),
                "max_allowed_packet" => MAX_ALLOWED_PACKET.to_string(),
                _ => match VARIABLES.iter().find(|(known, _)| known == name) {
                    Some((_, value)) => (*value).to_owned(),
                    None => {
                        let message = format!("Unknown system variable '{name}'");
                        return Err(SqlError::new(1193, "HY000", message));
                    }
                },
            },
        };
        Ok(value)
    }
}

/// The type to announce for a value: numbers as numbers, which some drivers insist on.
pub(crate) fn kind(value: &str) -> ColumnType {
    if value.parse::<u64>().is_ok() {
        ColumnType::MYSQL_TYPE_LONGLONG
    } else {
        ColumnType::MYSQL_TYPE_VAR_STRING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context<'_> = Context {
        server_version: "8.0.0",
        version_comment: Ok("a comment"),
        connection_id: 7,
        user: "me",
        autocommit: true,
    };

    fn values(list: &str) -> Vec<(String, String)> {
        let items = items(list).unwrap_or_else(|| panic!("not taken: {list}"));
        items.into_iter().map(|i| (i.column, CONTEXT.value(&i.asked).unwrap())).collect()
    }

    fn pair(column: &str, value: &str) -> (String, String) {
        (column.to_owned(), value.to_owned())
    }

    #[test]
    fn what_drivers_ask_is_answered() {
        assert_eq!(
            values(" @@max_allowed_packet,@@wait_timeout, @@socket"),
            [pair("@@max_allowed_packet", "67108864"), pair("@@wait_timeout", "28800"), pair("@@socket", "")]
        );
        assert_eq!(
            values(
                "  @@session.auto_increment_increment AS auto_increment_increment, @@global.read_only read_only"
            ),
            [pair("auto_increment_increment", "1"), pair("read_only", "0")]
        );
        assert_eq!(values(" @@VERSION_COMMENT LIMIT 1"), [pair("@@VERSION_COMMENT", "a comment")]);
        assert_eq!(
            values(" DATABASE(), USER() limit 1"),
            [pair("DATABASE()", "main"), pair("USER()", "me@%")]
        );
        assert_eq!(
            values(" version() as 'v', connection_id()"),
            [pair("v", "8.0.0"), pair("connection_id()", "7")]
        );
        assert_eq!(values(" @@autocommit"), [pair("@@autocommit", "1")]);
    }

    #[test]
    fn other_selects_are_left_to_sqlite() {
        for list in [
            " 1",
            "",
            " @@x + 1",
            " @@a b c d",
            " version(), 1",
            " @@",
            " @@global.",
            " users.name FROM users",
            " @@version LIMIT 0",
            " @@version FROM t",
            " version",
        ] {
            assert_eq!(items(list), None, "{list}");
        }
    }

    #[test]
    fn an_unknown_variable_is_named() {
        let error = CONTEXT.value(&Asked::Variable("no_such".into())).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1193, "Unknown system variable 'no_such'"));
    }

    #[test]
    fn a_version_comment_that_cannot_be_told_fails_only_who_asks() {
        let unknown = SqlError::new(1105, "HY000", "unknown");
        let context = Context { version_comment: Err(&unknown), ..CONTEXT };
        let value = |name: &str| context.value(&Asked::Variable(name.into()));
        assert_eq!(value("version_comment"), Err(unknown.clone()));
        assert_eq!(value("version"), Ok("8.0.0".to_owned()));
    }

    #[test]
    fn variables_are_sorted_so_that_none_is_there_twice() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
