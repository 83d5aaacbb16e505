//! SHOW of what a MySQL server has and tools ask for: character sets, engines, and lists of what there is nothing of here.

use super::super::text::{after, unquote};
use crate::answer::Answer;
use crate::current::{Client, Role};
use wire::SqlError;

/// A list, and what follows it in the statement.
pub(super) struct Shown<'a> {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Option<String>>>,
    /// The column that LIKE is about.
    pub liked: &'static str,
    pub filter: &'a str,
}

/// Collations that clients of every version know: name, character set, number, whether it is the character set's default, and bytes of a
/// character. Texts here are UTF-8 whatever a client asks for.
const COLLATIONS: &[(&str, &str, u16, bool, u8)] = &[
    ("latin1_swedish_ci", "latin1", 8, true, 1),
    ("ascii_general_ci", "ascii", 11, true, 1),
    ("utf8mb3_general_ci", "utf8mb3", 33, true, 3),
    ("utf8mb4_general_ci", "utf8mb4", 45, true, 4),
    ("utf8mb4_bin", "utf8mb4", 46, false, 4),
    ("binary", "binary", 63, true, 1),
    ("utf8mb3_bin", "utf8mb3", 83, false, 3),
    ("utf8mb4_unicode_ci", "utf8mb4", 224, false, 4),
    ("utf8mb4_0900_ai_ci", "utf8mb4", 255, false, 4),
];

/// What there is nothing of: the words, and the columns that a server has.
const NOTHING: &[(&str, &[&str])] = &[
    ("WARNINGS", &["Level", "Code", "Message"]),
    ("ERRORS", &["Level", "Code", "Message"]),
    (
        "TRIGGERS",
        &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    (
        "EVENTS",
        &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Starts",
            "Ends",
            "Status",
            "Originator",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
    ),
    ("FUNCTION STATUS", ROUTINES),
    ("PROCEDURE STATUS", ROUTINES),
    ("PACKAGE STATUS", ROUTINES),
    ("PACKAGE BODY STATUS", ROUTINES),
    ("PLUGINS", &["Name", "Status", "Type", "Library", "License"]),
    ("OPEN TABLES", &["Database", "Table", "In_use", "Name_locked"]),
    ("MASTER STATUS", &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]),
    ("BINARY LOG STATUS", &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]),
    ("BINARY LOGS", &["Log_name", "File_size"]),
    ("MASTER LOGS", &["Log_name", "File_size"]),
    ("SLAVE STATUS", &["Slave_IO_State", "Master_Host"]),
    ("ALL SLAVES STATUS", &["Connection_name", "Slave_SQL_State"]),
    ("REPLICA STATUS", &["Replica_IO_State", "Source_Host"]),
    ("SLAVE HOSTS", &["Server_id", "Host", "Port", "Master_id"]),
    ("REPLICAS", &["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]),
    ("PROFILES", &["Query_ID", "Duration", "Query"]),
    ("PRIVILEGES", &["Privilege", "Context", "Comment"]),
];

const ROUTINES: &[&str] = &[
    "Db",
    "Name",
    "Type",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

/// A list that is the same for everyone; `None`: another SHOW.
pub(super) fn run<'a>(client: &Client, rest: &'a str) -> Option<Shown<'a>> {
    let of = |columns: &[&'static str], rows, filter| {
        let liked = columns.first().copied().unwrap_or_default();
        Some(Shown { columns: columns.to_vec(), rows, liked, filter })
    };
    if let Some(filter) = after(rest, "COLLATION") {
        let rows = COLLATIONS.iter().map(|(name, charset, id, default, _)| {
            texts(&[name, charset, &id.to_string(), if *default { "Yes" } else { "" }, "Yes", "1"])
        });
        let columns = ["Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"];
        return of(&columns, rows.collect(), filter);
    }
    let charsets = ["CHARSET", "CHARACTER SET", "CHAR SET"];
    if let Some(filter) = charsets.iter().find_map(|words| after(rest, words)) {
        let rows = COLLATIONS.iter().filter(|(_, _, _, default, _)| *default);
        let rows =
            rows.map(|(name, charset, _, _, length)| texts(&[charset, charset, name, &length.to_string()]));
        return of(&["Charset", "Description", "Default collation", "Maxlen"], rows.collect(), filter);
    }
    if let Some(filter) = after(rest, "ENGINES").or_else(|| after(rest, "STORAGE ENGINES")) {
        let row = texts(&["SQLite", "DEFAULT", "the only engine", "YES", "NO", "YES"]);
        let columns = ["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"];
        return of(&columns, vec![row], filter);
    }
    if let Some(filter) = after(rest, "GRANTS") {
        // FOR someone: whoever it is, there are two kinds of users.
        let privileges = if client.role == Role::Admin { "ALL PRIVILEGES" } else { "SELECT" };
        let grant = format!("GRANT {privileges} ON *.* TO '{}'@'%'", client.user);
        let filter = if after(filter, "FOR").is_some() { "" } else { filter };
        return of(&["Grants"], vec![vec![Some(grant)]], filter);
    }
    for (words, column) in
        [("COUNT(*) WARNINGS", "@@session.warning_count"), ("COUNT(*) ERRORS", "@@session.error_count")]
    {
        if let Some(filter) = after(rest, words) {
            return of(&[column], vec![texts(&["0"])], filter);
        }
    }
    // Of nothing there is no part, whatever follows: FROM a schema, LIKE a name, LIMIT.
    let (_, columns) = NOTHING.iter().find(|(words, _)| after(rest, words).is_some())?;
    of(columns, Vec::new(), "")
}

fn texts(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

/// `SHOW CREATE DATABASE [IF NOT EXISTS] name`
pub(super) fn create_database(rest: &str) -> Result<Answer, SqlError> {
    let name = unquote(after(rest, "IF NOT EXISTS").unwrap_or(rest));
    let text = format!("CREATE DATABASE `{name}`");
    let columns = vec!["Database".to_owned(), "Create Database".to_owned()];
    Ok(Answer::texts(columns, vec![vec![Some(name), Some(text)]]))
}
