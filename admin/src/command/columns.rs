//! SHOW and DESCRIBE of tables: their columns, keys and texts.

use super::run_sql;
use super::text::{after, literal, unquote};
use crate::Admin;
use crate::answer::Answer;
use crate::catalog::{self, Table};
use crate::current::{Client, Role};
use crate::error::failed;
use crate::information_schema::unquoted;
use wire::SqlError;

/// DATABASE() has names that are no schemas: what clients mean is `main`.
pub(super) fn schema_of(client: &Client, name: &str) -> String {
    match (client.role, name) {
        (Role::Admin, name) if name.eq_ignore_ascii_case(Role::Admin.database()) => "main".into(),
        _ => name.to_owned(),
    }
}

fn find(admin: &Admin, client: &Client, schema: Option<&str>, name: &str) -> Result<Table, SqlError> {
    let schema = schema.map(|schema| schema_of(client, schema));
    catalog::find(client.role, &admin.store.live, schema.as_deref(), name)
}

/// `[db.]table [FROM|IN db]`, and what follows.
fn table<'a>(admin: &Admin, client: &Client, rest: &'a str) -> Result<(Table, &'a str), SqlError> {
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (mut schema, name) = match name.split_once('.') {
        Some((schema, name)) => (Some(unquote(schema)), unquote(name)),
        None => (None, unquote(name)),
    };
    let mut tail = rest;
    if let Some(rest) = after(rest, "FROM").or_else(|| after(rest, "IN")) {
        let (named, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        schema = Some(unquote(named));
        tail = rest;
    }
    find(admin, client, schema.as_deref(), &name).map(|table| (table, tail))
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// `SHOW CREATE TABLE [db.]t`
pub(super) fn create_table(admin: &Admin, client: &Client, rest: &str) -> Result<Answer, SqlError> {
    let (table, _) = table(admin, client, rest)?;
    let columns = vec!["table".to_owned(), "Create Table".to_owned()];
    Ok(Answer::texts(columns, vec![vec![text(table.name), text(table.ddl)]]))
}

/// `SHOW [FULL] FIELDS|COLUMNS FROM t [FROM db] [LIKE pattern | WHERE condition]`; `rest` is what follows FROM.
pub(super) fn fields(admin: &Admin, client: &Client, rest: &str, full: bool) -> Result<Answer, SqlError> {
    let (table, filter) = table(admin, client, rest)?;
    let mut names = vec!["Field", "Type"];
    if full {
        names.push("Collation");
    }
    names.extend(["Null", "Key", "Default", "Extra"]);
    if full {
        names.extend(["Privileges", "Comment"]);
    }
    let unique = table.indexes()?;
    let rows = table.columns()?.into_iter().map(|column| {
        let is_text = !catalog::is_integer(&column.kind);
        let is_first = |index: &catalog::Index| index.columns.first() == Some(&column.name);
        let key = match column.key {
            Some(_) => "PRI",
            None if unique.iter().any(is_first) => "UNI",
            None => "",
        };
        let mut row = vec![Some(column.name.clone()), Some(column.kind.to_ascii_lowercase())];
        if full {
            row.push(is_text.then(|| "utf8mb4_general_ci".to_owned()));
        }
        row.push(text(if column.nullable { "YES" } else { "NO" }));
        row.push(text(key));
        row.push(column.default.as_deref().filter(|literal| *literal != "NULL").map(unquoted));
        row.push(text(""));
        if full {
            row.extend([text("select,insert,update,references"), text("")]);
        }
        row
    });
    filtered(admin, client, &names, rows.collect(), "Field", filter)
}

/// `DESCRIBE t [column]`
pub(super) fn describe(admin: &Admin, client: &Client, rest: &str) -> Result<Answer, SqlError> {
    let (name, column) = rest.split_once(' ').unwrap_or((rest, ""));
    let filter =
        if column.is_empty() { String::new() } else { format!(" LIKE {}", literal(&unquote(column))) };
    fields(admin, client, &format!("{name}{filter}"), false)
}

/// `SHOW INDEX|INDEXES|KEYS FROM t [FROM db] [WHERE condition]`; `rest` is what follows FROM.
pub(super) fn indexes(admin: &Admin, client: &Client, rest: &str) -> Result<Answer, SqlError> {
    const NAMES: &[&str] = &[
        "Table",
        "Non_unique",
        "Key_name",
        "Seq_in_index",
        "Column_name",
        "Collation",
        "Cardinality",
        "Sub_part",
        "Packed",
        "Null",
        "Index_type",
        "Comment",
        "Index_comment",
    ];
    let (table, filter) = table(admin, client, rest)?;
    let mut rows = Vec::new();
    for index in table.indexes()? {
        for (column, sequence) in index.columns.iter().zip(1..) {
            let mut row = vec![text(table.name), text("0"), text(&index.name), Some(sequence.to_string())];
            row.extend([text(column), text("A"), None, None, None]);
            row.extend([text(""), text("BTREE"), text(""), text("")]);
            rows.push(row);
        }
    }
    filtered(admin, client, NAMES, rows, "Key_name", filter)
}

/// `SHOW TABLE STATUS [FROM|IN db] [LIKE pattern | WHERE condition]`. Rows are not counted: of some tables that would change what is
/// counted.
pub(super) fn table_status(admin: &Admin, client: &Client, rest: &str) -> Result<Answer, SqlError> {
    const NAMES: &[&str] = &[
        "Name",
        "Engine",
        "Version",
        "Row_format",
        "Rows",
        "Avg_row_length",
        "Data_length",
        "Max_data_length",
        "Index_length",
        "Data_free",
        "Auto_increment",
        "Create_time",
        "Update_time",
        "Check_time",
        "Collation",
        "Checksum",
        "Create_options",
        "Comment",
    ];
    let (schema, filter) = match after(rest, "FROM").or_else(|| after(rest, "IN")) {
        Some(rest) => {
            let (schema, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (schema_of(client, &unquote(schema)), rest)
        }
        None => ("main".to_owned(), rest),
    };
    let tables = catalog::tables(client.role, &admin.store.live);
    let tables = tables.iter().filter(|table| table.schema.eq_ignore_ascii_case(&schema));
    let rows = tables.map(|table| {
        let mut row = vec![text(table.name), text("SQLite")];
        row.extend(vec![None; 12]);
        row.extend([text("utf8mb4_general_ci"), None, text(""), text("")]);
        row
    });
    filtered(admin, client, NAMES, rows.collect(), "Name", filter)
}

/// Rows of texts, those that `LIKE pattern` (of one column) or `WHERE condition` leaves.
pub(super) fn filtered(
    admin: &Admin,
    client: &Client,
    names: &[&str],
    rows: Vec<Vec<Option<String>>>,
    liked: &str,
    filter: &str,
) -> Result<Answer, SqlError> {
    let condition = if filter.is_empty() {
        return Ok(Answer::texts(names.iter().map(|name| (*name).to_owned()).collect(), rows));
    } else if let Some(pattern) = after(filter, "LIKE") {
        format!("\"{liked}\" LIKE {pattern} ESCAPE '\\'")
    } else if let Some(condition) = after(filter, "WHERE") {
        condition.to_owned()
    } else {
        return Err(failed(format!(
            "near \"{}\": syntax error",
            filter.split(' ').next().unwrap_or_default()
        )));
    };
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    // A column of numbers compares as numbers.
    let is_number = |text: &String| text.parse().is_ok_and(|number: i64| number.to_string() == *text);
    let of_numbers: Vec<bool> = (0..names.len())
        .map(|at| rows.iter().all(|row| row.get(at).is_some_and(|cell| cell.as_ref().is_none_or(is_number))))
        .collect();
    let spelled = |cell: &Option<String>, number: bool| match cell {
        None => "NULL".to_owned(),
        Some(text) if number => text.clone(),
        Some(text) => literal(text),
    };
    let cells = |row: &Vec<Option<String>>| {
        let cells = row.iter().zip(&of_numbers).map(|(cell, number)| spelled(cell, *number));
        format!("({})", cells.collect::<Vec<_>>().join(","))
    };
    let columns = quoted.join(", ");
    let values = match rows.is_empty() {
        true => format!("SELECT {} WHERE 0", vec!["NULL"; names.len()].join(",")),
        false => format!("VALUES {}", rows.iter().map(cells).collect::<Vec<_>>().join(",")),
    };
    let sql = format!("WITH shown({columns}) AS ({values}) SELECT * FROM shown WHERE {condition}");
    run_sql(admin, client, &sql)
}
