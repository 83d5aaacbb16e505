//! What is known of tables without reading them: their columns and keys, from their CREATE TABLE texts.

use crate::current::Role;
use crate::live::Registered;
use crate::tables::TABLES;
use crate::{Schema, error};
use rusqlite::Connection;
use wire::SqlError;

/// A table, as a client may name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    pub schema: &'static str,
    pub name: &'static str,
    pub ddl: &'static str,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub kind: String,
    pub nullable: bool,
    /// As an SQL literal.
    pub default: Option<String>,
    /// Its place in the primary key, from 1.
    pub key: Option<u32>,
}

/// A primary or unique key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    pub name: String,
    pub columns: Vec<String>,
}

/// Whether a column declared so holds whole numbers (SQLite's rule of affinity).
pub(crate) fn is_integer(kind: &str) -> bool {
    kind.to_ascii_uppercase().contains("INT")
}

/// The tables that a client of that role sees, by schema and name.
pub(crate) fn tables(role: Role, live: &Registered) -> Vec<Table> {
    let mut tables = Vec::new();
    if role == Role::Admin {
        for schema in ["main", "disk"] {
            tables.extend(TABLES.iter().map(|table| Table { schema, name: table.name, ddl: table.ddl }));
        }
    }
    for (schema, name, ddl) in live.tables() {
        let (shown, also): (_, Option<&'static str>) = match (role, schema) {
            (Role::Admin, schema) => (Some(schema.name()), None),
            (Role::Stats, Schema::Stats) => (Some("main"), Some("stats")),
            (Role::Stats, Schema::Monitor | Schema::History) => (Some(schema.name()), None),
            (Role::Stats, Schema::Main | Schema::Information) => (None, None),
        };
        tables.extend(shown.into_iter().chain(also).map(|schema| Table { schema, name, ddl }));
    }
    tables.sort_unstable_by_key(|table| (table.schema, table.name));
    tables
}

/// The table of that name: in that schema, or where SQLite would find it.
pub(crate) fn find(
    role: Role,
    live: &Registered,
    schema: Option<&str>,
    name: &str,
) -> Result<Table, SqlError> {
    let tables = tables(role, live);
    let mut named = tables.iter().filter(|table| {
        table.name.eq_ignore_ascii_case(name)
            && schema.is_none_or(|schema| table.schema.eq_ignore_ascii_case(schema))
    });
    let main = named.clone().find(|table| table.schema == "main");
    main.or_else(|| named.next()).copied().ok_or_else(|| {
        let schema = schema.map(|schema| format!("{schema}.")).unwrap_or_default();
        error::failed(format!("no such table: {schema}{name}"))
    })
}

impl Table {
    /// Its columns, in order.
    pub fn columns(&self) -> Result<Vec<Column>, SqlError> {
        self.ask("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?1)", |row| {
            let key: u32 = row.get(4)?;
            Ok(Column {
                name: row.get(0)?,
                kind: row.get(1)?,
                nullable: !row.get::<_, bool>(2)?,
                default: row.get(3)?,
                key: (key > 0).then_some(key),
            })
        })
    }

    /// Its primary key, then its unique ones.
    pub fn indexes(&self) -> Result<Vec<Index>, SqlError> {
        let mut keys: Vec<_> = self.columns()?.into_iter().filter(|column| column.key.is_some()).collect();
        keys.sort_unstable_by_key(|column| column.key);
        let primary = keys.into_iter().map(|column| column.name).collect();
        let mut indexes = vec![Index { name: "PRIMARY".into(), columns: primary }];
        let sql = "SELECT l.name, i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i
            WHERE l.origin = 'u' ORDER BY l.seq DESC, i.seqno";
        let unique: Vec<(String, String)> = self.ask(sql, |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (name, column) in unique {
            match indexes.last_mut() {
                Some(last) if last.name == name => last.columns.push(column),
                _ => indexes.push(Index { name, columns: vec![column] }),
            }
        }
        // As MySQL names keys without a name.
        for index in indexes.iter_mut().skip(1) {
            index.name = index.columns.first().cloned().unwrap_or_default();
        }
        indexes.retain(|index| !index.columns.is_empty());
        Ok(indexes)
    }

    fn ask<T>(
        &self,
        sql: &str,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, SqlError> {
        let asked = Connection::open_in_memory().and_then(|scratch| {
            scratch.execute_batch(self.ddl)?;
            let mut statement = scratch.prepare(sql)?;
            let rows = statement.query_map([self.name], |row| read(row))?;
            rows.collect()
        });
        asked.map_err(|error| error::from_sqlite(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl;

    #[test]
    fn columns_and_keys_are_those_of_the_text() {
        let table = Table { schema: "main", name: "mysql_users", ddl: ddl::MYSQL_USERS };
        let columns = table.columns().unwrap();
        assert_eq!(
            (columns[0].name.as_str(), columns[0].nullable, columns[0].key),
            ("username", false, Some(1))
        );
        assert_eq!(columns[2].default.as_deref(), Some("1"));
        let keys: Vec<_> =
            table.indexes().unwrap().into_iter().map(|index| index.columns.join(",")).collect();
        assert_eq!(keys, ["username,backend", "username,frontend"]);
        let rules = Table { schema: "main", name: "mysql_query_rules", ddl: ddl::MYSQL_QUERY_RULES };
        assert_eq!(
            rules.indexes().unwrap(),
            [Index { name: "PRIMARY".into(), columns: vec!["rule_id".into()] }]
        );
        let none = Table {
            schema: "stats",
            name: "stats_mysql_connection_pool",
            ddl: ddl::STATS_MYSQL_CONNECTION_POOL,
        };
        assert!(none.indexes().unwrap().is_empty());
    }
}
