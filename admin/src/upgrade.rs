//! A database of another version: tables of an earlier one get what they lack, and a copy is kept; what only a later one can
//! have made is refused.

use crate::store::{beside, explain, file_uri, not_ours};
use crate::tables::{TABLES, TableDef};
use crate::{StoreError, error};
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The number in the file's header that says whose it is: "pntm".
const APPLICATION: i32 = 0x706e_746d;
const HEADER_FIELD: &str = "application_id";

/// A table as an earlier version made it.
struct Earlier {
    table: &'static TableDef,
    columns: Vec<String>,
}

/// Refuses a file `path`, attached as `disk`, that another program or a later version made. Changes nothing.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    examine(conn, path).map(drop)
}

/// What an earlier version made; an error where it is not pointsman's, or a later version's.
fn examine(conn: &Connection, path: &Path) -> Result<Vec<Earlier>, StoreError> {
    let explained = |error: rusqlite::Error| explain(path, &error);
    if let Some(detail) = foreign(conn).map_err(explained)? {
        return Err(not_ours(path, &detail));
    }
    let mut earlier = Vec::new();
    for table in TABLES {
        let sql = "SELECT sql FROM disk.sqlite_master WHERE type = 'table' AND name = ?1";
        let made: Option<String> =
            conn.query_row(sql, [table.name], |row| row.get(0)).optional().map_err(explained)?;
        if made.is_none_or(|made| made == table.ddl) {
            continue;
        }
        let columns = columns(conn, "disk", table.name).map_err(explained)?;
        let known = known_columns(table).map_err(explained)?;
        if let Some(column) = columns.iter().find(|column| !known.contains(column)) {
            return Err(StoreError(format!(
                "{}: table {} has a column {column}, which this version of pointsman does not know; use the version that \
                 made it, put back the copy that it kept ({}), or move the file away to start empty",
                path.display(),
                table.name,
                beside(path, ".before-VERSION").display()
            )));
        }
        earlier.push(Earlier { table, columns });
    }
    Ok(earlier)
}

/// Looks at the schema `disk`, whose file is `path`, and brings its tables up to this version. Nothing has changed where that fails.
pub(crate) fn run(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let earlier = examine(conn, path)?;
    if earlier.is_empty() {
        return Ok(());
    }
    let copy = keep_copy(conn, path)?;
    replace(conn, &earlier, path)?;
    let names: Vec<&str> = earlier.iter().map(|earlier| earlier.table.name).collect();
    log::info!(
        "{}: of an earlier version; {} are as in this one now, and the database before is kept as {}",
        path.display(),
        names.join(", "),
        copy.display()
    );
    Ok(())
}

/// Marks the database as pointsman's.
pub(crate) fn sign(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    match application(transaction)? {
        APPLICATION => Ok(()),
        _ => transaction.pragma_update(Some("disk"), HEADER_FIELD, APPLICATION),
    }
}

fn application(conn: &Connection) -> rusqlite::Result<i32> {
    conn.pragma_query_value(Some("disk"), HEADER_FIELD, |row| row.get(0))
}

/// What tells that another program made the file. The first versions did not sign theirs, and had no tables but ours.
fn foreign(conn: &Connection) -> rusqlite::Result<Option<String>> {
    match application(conn)? {
        APPLICATION => Ok(None),
        0 => {
            let sql = "SELECT name FROM disk.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
            let mut statement = conn.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            for name in names {
                let name = name?;
                if !TABLES.iter().any(|table| table.name == name) {
                    return Ok(Some(format!(" (it has a table {name})")));
                }
            }
            Ok(None)
        }
        _ => Ok(Some(" (its header names another program)".into())),
    }
}

fn columns(conn: &Connection, schema: &str, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1, ?2)")?;
    statement.query_map([table, schema], |row| row.get(0))?.collect()
}

/// Copies a table's rows from `disk` to `main`. What columns an earlier version's has not are as they would be made.
pub(crate) fn copy(conn: &Connection, table: &TableDef) -> rusqlite::Result<()> {
    let columns = columns(conn, "disk", table.name)?.join(", ");
    if columns.is_empty() {
        return Ok(());
    }
    let name = table.name;
    conn.execute_batch(&format!("INSERT INTO main.{name} ({columns}) SELECT {columns} FROM disk.{name}"))
}

fn known_columns(table: &TableDef) -> rusqlite::Result<Vec<String>> {
    let scratch = Connection::open_in_memory()?;
    scratch.execute_batch(table.ddl)?;
    columns(&scratch, "main", table.name)
}

/// Copies the database, readable for its owner alone, and returns where to.
fn keep_copy(conn: &Connection, path: &Path) -> Result<PathBuf, StoreError> {
    let copy = beside(path, concat!(".before-", env!("CARGO_PKG_VERSION")));
    let part = beside(&copy, ".part");
    let failed = |what: &dyn std::fmt::Display| {
        StoreError(format!(
            "{}: of an earlier version, and the copy that is kept before it is changed cannot be written to {}: {what}; \
             make room and let this user write there",
            path.display(),
            copy.display()
        ))
    };
    let io = |error: io::Error| failed(&error);
    let sqlite = |error: rusqlite::Error| failed(&error::text(&error));
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(io)?;
    let place = file_uri(&part).map_err(sqlite)? + "?vfs=unix";
    conn.execute("VACUUM disk INTO ?1", [place]).map_err(sqlite)?;
    let finish = || {
        File::open(&part)?.sync_all()?;
        fs::rename(&part, &copy)?;
        path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    };
    finish().map_err(io)?;
    Ok(copy)
}

/// Makes the tables anew with the rows that they had, all or none.
fn replace(conn: &mut Connection, earlier: &[Earlier], path: &Path) -> Result<(), StoreError> {
    let explained = |error: rusqlite::Error| explain(path, &error);
    let transaction = conn.transaction().map_err(explained)?;
    for Earlier { table, columns } in earlier {
        let (name, columns) = (table.name, columns.join(", "));
        let create = table.ddl_in("disk");
        let sql = format!(
            "ALTER TABLE disk.{name} RENAME TO {name}_before; {create};
             INSERT INTO disk.{name} ({columns}) SELECT {columns} FROM disk.{name}_before;
             DROP TABLE disk.{name}_before;"
        );
        transaction.execute_batch(&sql).map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation) => StoreError(format!(
                "{}: table {name} is of an earlier version and has a row that this one does not allow ({}); correct it \
                 with the version that made it, or move the file away to start empty",
                path.display(),
                error::text(&error)
            )),
            _ => explained(error),
        })?;
    }
    transaction.commit().map_err(explained)
}
