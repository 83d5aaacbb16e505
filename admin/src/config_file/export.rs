//! Memory's configuration as a file.

use super::sections::{Column, VARIABLES_SUFFIX, columns};
use super::tree::{Item, Place, Setting, Text, Value};
use crate::error::{failed, from_sqlite};
use crate::read;
use crate::tables::{Group, TABLES};
use crate::variables::registry::{self, VARIABLES};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use wire::SqlError;

/// How every file begins that is written here.
const HEADER: &str = "# Configuration written by pointsman. It holds passwords.\n";

/// The memory layer as the text of a configuration file. Rows that LOAD would not take are refused.
pub(crate) fn export(conn: &Connection, datadir: &Path) -> Result<String, SqlError> {
    read::all_rows(conn)?;
    let mut settings = vec![setting("datadir", Value::Text(datadir.display().to_string()))];
    for prefix in prefixes() {
        settings
            .push(setting(&format!("{prefix}{VARIABLES_SUFFIX}"), Value::Group(variables(conn, prefix)?)));
    }
    for table in TABLES.iter().filter(|table| table.group != Group::Variables) {
        settings.push(setting(table.name, Value::List(rows(conn, table.name)?)));
    }
    Ok(format!("{HEADER}{}", Text(&settings)))
}

/// `admin` for variables whose names begin with `admin-`, each once.
fn prefixes() -> Vec<&'static str> {
    let mut prefixes: Vec<_> =
        VARIABLES.iter().filter_map(|var| var.name.split_once('-').map(|(prefix, _)| prefix)).collect();
    prefixes.dedup();
    prefixes
}

fn setting(name: &str, value: Value) -> Setting {
    Setting { name: name.into(), place: Place::none(), value }
}

fn variables(conn: &Connection, prefix: &str) -> Result<Vec<Setting>, SqlError> {
    let rows = read::variables(conn, &format!("{prefix}-"))?;
    let settings = rows.into_iter().filter_map(|(name, value)| {
        let known = registry::find(&name).filter(|var| !var.is_read_only())?;
        Some(setting(known.name.split_once('-')?.1, Value::Text(value)))
    });
    Ok(settings.collect())
}

fn rows(conn: &Connection, table: &str) -> Result<Vec<Item>, SqlError> {
    let sqlite = |error: rusqlite::Error| from_sqlite(&error);
    let columns = columns(conn, table).map_err(sqlite)?;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    let keys = "SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk)";
    let keys: Option<String> = conn.query_row(keys, [table], |row| row.get(0)).map_err(sqlite)?;
    let order = keys.map(|keys| format!(" ORDER BY {keys}")).unwrap_or_default();
    let sql = format!("SELECT {} FROM main.{table}{order}", names.join(", "));
    let mut statement = conn.prepare(&sql).map_err(sqlite)?;
    let mut cursor = statement.query([]).map_err(sqlite)?;
    let mut items = Vec::new();
    while let Some(row) = cursor.next().map_err(sqlite)? {
        let mut settings = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            let cell = row.get_ref(index).map_err(sqlite)?;
            if let Some(value) =
                value(column, cell).map_err(|why| failed(format!("{table}.{}: {why}", column.name)))?
            {
                settings.push(setting(&column.name, value));
            }
        }
        items.push(Item { place: Place::none(), value: Value::Group(settings) });
    }
    Ok(items)
}

/// What stands in a file for a cell; nothing for NULL, which is what nothing means there.
fn value(column: &Column, cell: ValueRef<'_>) -> Result<Option<Value>, &'static str> {
    match cell {
        // The file has no word for NULL: nothing would become the default.
        ValueRef::Null if column.optional_default => Ok(Some(Value::Text(String::new()))),
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(Value::Int(number))),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Ok(Some(Value::Text(text.into()))),
            Err(_) => Err("the value (not shown) is not text"),
        },
        ValueRef::Real(_) => Err("a number with a fraction cannot be written"),
    }
}

/// Writes a configuration file, readable for its owner alone. What was not written here before is not replaced.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), SqlError> {
    let refuse = |why: String| failed(format!("{}: {why}; nothing was written", path.display()));
    if fs::symlink_metadata(path).is_ok() && !is_ours(path) {
        return Err(refuse("exists, and is not a file that this command wrote".into()));
    }
    // A file of its own for each writer: several may write to one path at once.
    let written = || {
        let directory = path.parent().unwrap_or(path);
        let mut file = tempfile::Builder::new().prefix(".pointsman-").tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    written().map_err(|error: std::io::Error| refuse(error.to_string()))
}

/// Whether a file begins as those that are written here.
fn is_ours(path: &Path) -> bool {
    let plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut head = vec![0; HEADER.len()];
    plain
        && fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == HEADER.as_bytes()
}
