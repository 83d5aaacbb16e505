//! From a file's sections to rows and values, by the registries of tables and variables: names, types and defaults of columns
//! are those of the CREATE TABLE texts.

use super::known;
use super::tree::{Fault, Item, Place, Setting, Value};
use crate::catalog::is_integer;
use crate::command::set::canonical;
use crate::tables::{Group, TABLES, TableDef};
use crate::variables::registry::{self, VARIABLES};
use crate::{error, read};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};

/// Names that files may use for columns, where the table has the column and none of that name.
const ALIASES: &[(&str, &str)] =
    &[("address", "hostname"), ("host", "hostname"), ("hostgroup", "hostgroup_id")];
/// What a section is called that sets the variables whose names begin with what stands before it.
pub(super) const VARIABLES_SUFFIX: &str = "_variables";

/// Which sections are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    All,
    /// The tables of a group.
    Tables(Group),
    /// Variables whose names begin so.
    Variables(&'static str),
}

/// What the sections of a file hold, checked.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub rows: Vec<TableRow>,
    pub variables: Vec<(&'static str, String)>,
    /// What pointsman does not have.
    pub ignored: Vec<String>,
}

/// A row for a table; other columns get their defaults.
#[derive(Debug, Clone)]
pub(crate) struct TableRow {
    pub table: &'static str,
    pub columns: Vec<String>,
    pub cells: Vec<Cell>,
    place: Place,
    /// Where each column stands.
    places: Vec<Place>,
}

impl TableRow {
    /// Puts the row into the table of a schema, in place of rows with the same key.
    pub fn replace_into(&self, conn: &Connection, schema: &str) -> rusqlite::Result<()> {
        self.write(conn, "INSERT OR REPLACE", schema)
    }

    fn write(&self, conn: &Connection, verb: &str, schema: &str) -> rusqlite::Result<()> {
        let marks = vec!["?"; self.cells.len()].join(", ");
        let (table, columns) = (self.table, self.columns.join(", "));
        let sql = format!("{verb} INTO {schema}.{table} ({columns}) VALUES ({marks})");
        conn.prepare_cached(&sql)?.execute(params_from_iter(&self.cells)).map(drop)
    }
}

/// Whether a file may have a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Here,
    /// ProxySQL has it, and pointsman does not.
    InProxySql,
    Nowhere,
}

pub(super) fn existence(section: &str) -> Existence {
    match table(section).is_some() || prefix(section).is_some() {
        true => Existence::Here,
        false if known::section(section) => Existence::InProxySql,
        false => Existence::Nowhere,
    }
}

fn table(section: &str) -> Option<&'static TableDef> {
    TABLES.iter().find(|table| table.name == section && table.group != Group::Variables)
}

/// `mysql-` for the section `mysql_variables`.
fn prefix(section: &str) -> Option<&'static str> {
    let prefix = format!("{}-", section.strip_suffix(VARIABLES_SUFFIX)?);
    VARIABLES.iter().find(|var| var.name.starts_with(&prefix))?.name.get(..prefix.len())
}

/// Reads the wanted sections. Every row satisfies its table, and all of them together do.
pub(super) fn load(settings: &[Setting], wanted: Wanted) -> Result<Loaded, Fault> {
    let mut loaded = Loaded::default();
    let scratch =
        Scratch::new().map_err(|what| Fault { place: nowhere(settings), key: String::new(), what })?;
    for setting in settings {
        if let Some(table) = table(&setting.name) {
            let group = table.group;
            if wanted == Wanted::All || wanted == Wanted::Tables(group) {
                loaded.rows.extend(rows(&scratch, table, setting)?);
            }
        } else if let Some(prefix) = prefix(&setting.name)
            && (wanted == Wanted::All || wanted == Wanted::Variables(prefix))
        {
            variables(&mut loaded, prefix, setting)?;
        }
    }
    scratch.check(&loaded.rows)?;
    Ok(loaded)
}

fn nowhere(settings: &[Setting]) -> Place {
    settings.first().map_or_else(Place::none, |setting| setting.place.clone())
}

fn variables(loaded: &mut Loaded, prefix: &str, section: &Setting) -> Result<(), Fault> {
    for setting in group(&section.name, &section.place, &section.value)? {
        let key = format!("{}.{}", section.name, setting.name);
        let refuse = |what: String| Err(Fault { place: setting.place.clone(), key: key.clone(), what });
        let name = format!("{prefix}{}", setting.name);
        let text = match &setting.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            other => {
                return refuse(format!(
                    "{}; a string, a whole number, true or false is expected",
                    other.kind()
                ));
            }
        };
        match registry::find(&name) {
            Some(var) if var.is_read_only() => {}
            Some(var) if loaded.variables.iter().any(|(name, _)| *name == var.name) => {
                return refuse("stands here a second time".into());
            }
            Some(var) => match canonical(var, &text) {
                Ok(value) => loaded.variables.push((var.name, value)),
                Err(error) => return refuse(error.message),
            },
            None if known::variable(&name) => loaded.ignored.push(key),
            None => return refuse(format!("there is no variable {name}")),
        }
    }
    Ok(())
}

fn rows(scratch: &Scratch, table: &'static TableDef, section: &Setting) -> Result<Vec<TableRow>, Fault> {
    let name = table.name;
    let columns = scratch.columns(name).map_err(|error| Fault {
        place: section.place.clone(),
        key: name.into(),
        what: error::text(&error),
    })?;
    let Value::List(items) = &section.value else {
        let what =
            format!("{}; a list of groups is expected: ( {{ ... }}, {{ ... }} )", section.value.kind());
        return Err(Fault { place: section.place.clone(), key: name.into(), what });
    };
    let mut rows = Vec::with_capacity(items.len());
    for item in items {
        let row = row(name, &columns, item)?;
        scratch.add(&row)?;
        rows.push(row);
    }
    Ok(rows)
}

fn group<'a>(key: &str, place: &Place, value: &'a Value) -> Result<&'a [Setting], Fault> {
    match value {
        Value::Group(settings) => Ok(settings),
        other => {
            let what = format!("{}; a group {{ ... }} is expected", other.kind());
            Err(Fault { place: place.clone(), key: key.into(), what })
        }
    }
}

fn row(table: &'static str, columns: &[Column], item: &Item) -> Result<TableRow, Fault> {
    let mut row = TableRow {
        table,
        columns: Vec::new(),
        cells: Vec::new(),
        place: item.place.clone(),
        places: Vec::new(),
    };
    for setting in group(table, &item.place, &item.value)? {
        let key = format!("{table}.{}", setting.name);
        let refuse = |what: String| Err(Fault { place: setting.place.clone(), key: key.clone(), what });
        let of = |name: &str| columns.iter().find(|column| column.name == name);
        let alias = ALIASES.iter().find(|(alias, _)| *alias == setting.name).map(|(_, name)| *name);
        let Some(column) = of(&setting.name).or_else(|| of(alias?)) else {
            let near = columns.iter().find(|column| column.name.eq_ignore_ascii_case(&setting.name));
            let hint = near.map(|column| format!("; {} is written so", column.name)).unwrap_or_default();
            return refuse(format!("{table} has no such column{hint}"));
        };
        if row.columns.contains(&column.name) {
            return refuse(format!("{} is given a second time", column.name));
        }
        let cell = match &setting.value {
            Value::Int(number) if column.integer => Cell::Integer(*number),
            Value::Text(text) if !column.integer => Cell::Text(text.clone()),
            other => {
                let expected = if column.integer { "an integer" } else { "a string" };
                return refuse(format!("{}; {expected} is expected", other.kind()));
            }
        };
        row.columns.push(column.name.clone());
        row.cells.push(cell);
        row.places.push(setting.place.clone());
    }
    for column in columns.iter().filter(|column| column.required) {
        if row.columns.contains(&column.name) {
            continue;
        }
        if column.name != "comment" {
            return Err(Fault {
                place: item.place.clone(),
                key: format!("{table}.{}", column.name),
                what: "is missing in the group that begins here".into(),
            });
        }
        row.columns.push(column.name.clone());
        row.cells.push(Cell::Text(String::new()));
        row.places.push(item.place.clone());
    }
    Ok(row)
}

/// A column as its CREATE TABLE text has it.
pub(super) struct Column {
    pub name: String,
    pub integer: bool,
    /// It may not be NULL, and has no default.
    pub required: bool,
    /// It may be NULL, and is not where nothing is said.
    pub optional_default: bool,
}

/// The columns of a table of `main`.
pub(super) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let sql = "SELECT name, type, \"notnull\", dflt_value FROM pragma_table_info(?1)";
    let mut statement = conn.prepare(sql)?;
    let columns = statement.query_map([table], |row| {
        let (kind, filled): (String, bool) = (row.get(1)?, row.get(2)?);
        let default: Option<String> = row.get(3)?;
        let default = default.filter(|text| !text.eq_ignore_ascii_case("NULL"));
        Ok(Column {
            name: row.get(0)?,
            integer: is_integer(&kind),
            required: filled && default.is_none(),
            optional_default: !filled && default.is_some(),
        })
    })?;
    columns.collect()
}

/// Empty tables in memory, to try rows on.
struct Scratch(Connection);

impl Scratch {
    fn new() -> Result<Self, String> {
        let open = || {
            let conn = Connection::open_in_memory()?;
            TABLES.iter().try_for_each(|table| conn.execute_batch(table.ddl))?;
            Ok(Self(conn))
        };
        open().map_err(|error| format!("rows cannot be checked: {}", error::text(&error)))
    }

    fn columns(&self, table: &str) -> rusqlite::Result<Vec<Column>> {
        columns(&self.0, table)
    }

    /// The row must satisfy what its table says of it: CHECKs and keys.
    fn add(&self, row: &TableRow) -> Result<(), Fault> {
        row.write(&self.0, "INSERT", "main").map_err(|error| {
            let what = error::text(&error);
            // A CHECK names the columns that it looks at, so that the first of them is where to look.
            let words = || what.split(|c: char| !c.is_alphanumeric() && c != '_');
            let column = row.columns.iter().position(|column| words().any(|word| word == column));
            let at = column.and_then(|index| Some((row.columns.get(index)?, row.places.get(index)?)));
            match at {
                Some((column, place)) => {
                    Fault { place: place.clone(), key: format!("{}.{column}", row.table), what }
                }
                None => Fault { place: row.place.clone(), key: row.table.into(), what },
            }
        })
    }

    /// The rows must be what LOAD takes.
    fn check(&self, rows: &[TableRow]) -> Result<(), Fault> {
        let Err(error) = read::all_rows(&self.0) else { return Ok(()) };
        // Which of them it is, is found one by one.
        let alone = |row: &&TableRow| {
            TABLES.iter().for_each(|table| drop(self.0.execute(&format!("DELETE FROM {}", table.name), [])));
            self.add(row).is_err() || read::all_rows(&self.0).is_err()
        };
        let place = rows.iter().find(alone).or(rows.first()).map(|row| row.place.clone());
        let place = place.unwrap_or_else(Place::none);
        Err(Fault { place, key: String::new(), what: error.message })
    }
}
