//! SHOW of what a MySQL server has and tools ask for: character sets, engines, and lists of what there is nothing of here.

use super::super::text::{after, unquote};
use crate::answer::Answer;
use crate::collations;
use crate::current::{Client, Role};
use mysql_common::collations::Collation;
use wire::SqlError;

/// A list, and what follows it in the statement.
pub(super) struct Shown<'a> {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Option<String>>>,
    /// The column that LIKE is about.
    pub liked: &'static str,
    pub filter: &'a str,
}

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
        let rows = collations::all().map(|each| {
            let (id, sort) = (collations::number(&each).to_string(), each.sort_len().to_string());
            texts(&[each.collation(), each.charset(), &id, collations::default(&each), "Yes", &sort])
        });
        let columns = ["Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"];
        return of(&columns, rows.collect(), filter);
    }
    let charsets = ["CHARSET", "CHARACTER SET", "CHAR SET"];
    if let Some(filter) = charsets.iter().find_map(|words| after(rest, words)) {
        let rows = collations::all().filter(Collation::is_default).map(|each| {
            let length = each.max_len().to_string();
            texts(&[each.charset(), each.charset(), each.collation(), &length])
        });
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
