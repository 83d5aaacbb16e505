//! `information_schema`, as far as tools ask it: schemas, tables, columns and keys; what there is nothing of is empty.

use crate::catalog::{self, Table};
use crate::current::Role;
use crate::live::{Registered, WeakRegistered};
use crate::{LiveTable, Schema, Value};
use std::sync::Arc;

type Rows = Vec<Vec<Value>>;

/// The live tables.
pub(crate) fn tables(live: &Registered) -> Vec<LiveTable> {
    let over = |name, ddl, rows: fn(&Table) -> Rows| {
        // A table that held the registry it is in would keep it for ever.
        let live: WeakRegistered = live.downgrade();
        let rows = move || {
            let Some(live) = live.upgrade() else { return Vec::new() };
            let tables = catalog::tables(Role::Admin, &live);
            tables.iter().flat_map(under_each_name).flat_map(|table| rows(&table)).collect()
        };
        LiveTable { name, schema: Schema::Information, ddl, rows: Arc::new(rows) }
    };
    let mut tables = vec![
        over("TABLES", TABLES, table),
        over("COLUMNS", COLUMNS, columns),
        over("STATISTICS", STATISTICS, statistics),
        LiveTable {
            name: "SCHEMATA",
            schema: Schema::Information,
            ddl: SCHEMATA,
            rows: Arc::new(|| ["main", "disk", "stats", "monitor", "stats_history"].map(schema).into()),
        },
        LiveTable {
            name: "ENGINES",
            schema: Schema::Information,
            ddl: ENGINES,
            rows: Arc::new(|| vec![texts(&["SQLite", "DEFAULT", "the only engine", "YES", "NO", "YES"])]),
        },
    ];
    let nothing = |(name, ddl): &(&'static str, &'static str)| LiveTable {
        name,
        schema: Schema::Information,
        ddl,
        rows: Arc::new(Vec::new),
    };
    tables.extend(EMPTY.iter().map(nothing));
    tables
}

/// What is in `main` is in DATABASE(), too: tools ask for `table_schema = DATABASE()`.
fn under_each_name(table: &Table) -> impl Iterator<Item = Table> + use<> {
    let alias = (table.schema == "main").then(|| Table { schema: Role::Admin.database(), ..*table });
    std::iter::once(*table).chain(alias)
}

fn texts(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| Value::from(*value)).collect()
}

fn schema(name: &str) -> Vec<Value> {
    let mut row = texts(&["def", name, "utf8mb4", "utf8mb4_general_ci"]);
    row.push(Value::Null);
    row
}

fn table(table: &Table) -> Rows {
    let mut row = texts(&["def", table.schema, table.name, "BASE TABLE", "SQLite"]);
    // What a server measures of a table is unknown here.
    row.extend([const { Value::Null }; 12]);
    row.extend(texts(&["utf8mb4_general_ci"]));
    row.extend([Value::Null, Value::Text(String::new()), Value::Text(String::new())]);
    vec![row]
}

fn columns(table: &Table) -> Rows {
    // Every text was read by SQLite when its table was made.
    let columns = table.columns().unwrap_or_default();
    let row = |(column, position): (catalog::Column, i64)| {
        let integer = catalog::is_integer(&column.kind);
        let kind = if integer { "bigint" } else { "varchar" };
        let number = |number: i64| if integer { Value::Int(number) } else { Value::Null };
        let text = |value: &str| if integer { Value::Null } else { Value::Text(value.into()) };
        let mut row = texts(&["def", table.schema, table.name, &column.name]);
        row.push(Value::Int(position));
        row.push(column.default.as_deref().map(unquoted).into());
        row.extend(texts(&[if column.nullable { "YES" } else { "NO" }, kind]));
        row.extend([if integer { Value::Null } else { Value::Int(65_535) }, Value::Null]);
        row.extend([number(19), number(0), Value::Null]);
        row.extend([text("utf8mb4"), text("utf8mb4_general_ci")]);
        row.extend(texts(&[
            &column.kind.to_ascii_lowercase(),
            if column.key.is_some() { "PRI" } else { "" },
            "",
            "select,insert,update,references",
            "",
            "",
        ]));
        row
    };
    columns.into_iter().zip(1..).map(row).collect()
}

/// The value of a literal.
pub(crate) fn unquoted(literal: &str) -> String {
    let inner = literal.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.map_or_else(|| literal.to_owned(), |inner| inner.replace("''", "'"))
}

fn statistics(table: &Table) -> Rows {
    let mut rows = Vec::new();
    for index in table.indexes().unwrap_or_default() {
        for (column, sequence) in index.columns.iter().zip(1..) {
            let mut row = texts(&["def", table.schema, table.name]);
            row.push(Value::Int(0));
            row.extend(texts(&[table.schema, &index.name]));
            row.push(Value::Int(sequence));
            row.extend(texts(&[column, "A"]));
            row.extend([Value::Null, Value::Null, Value::Null]);
            row.extend(texts(&["", "BTREE", "", ""]));
            rows.push(row);
        }
    }
    rows
}

const SCHEMATA: &str = "CREATE TABLE SCHEMATA (CATALOG_NAME VARCHAR, SCHEMA_NAME VARCHAR,
    DEFAULT_CHARACTER_SET_NAME VARCHAR, DEFAULT_COLLATION_NAME VARCHAR, SQL_PATH VARCHAR)";

const TABLES: &str = "CREATE TABLE TABLES (TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR,
    TABLE_TYPE VARCHAR, ENGINE VARCHAR, VERSION INT, ROW_FORMAT VARCHAR, TABLE_ROWS INT, AVG_ROW_LENGTH INT,
    DATA_LENGTH INT, MAX_DATA_LENGTH INT, INDEX_LENGTH INT, DATA_FREE INT, AUTO_INCREMENT INT, CREATE_TIME VARCHAR,
    UPDATE_TIME VARCHAR, CHECK_TIME VARCHAR, TABLE_COLLATION VARCHAR, CHECKSUM INT, CREATE_OPTIONS VARCHAR,
    TABLE_COMMENT VARCHAR)";

const COLUMNS: &str = "CREATE TABLE COLUMNS (TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR,
    COLUMN_NAME VARCHAR, ORDINAL_POSITION INT, COLUMN_DEFAULT VARCHAR, IS_NULLABLE VARCHAR, DATA_TYPE VARCHAR,
    CHARACTER_MAXIMUM_LENGTH INT, CHARACTER_OCTET_LENGTH INT, NUMERIC_PRECISION INT, NUMERIC_SCALE INT,
    DATETIME_PRECISION INT, CHARACTER_SET_NAME VARCHAR, COLLATION_NAME VARCHAR, COLUMN_TYPE VARCHAR, COLUMN_KEY VARCHAR,
    EXTRA VARCHAR, PRIVILEGES VARCHAR, COLUMN_COMMENT VARCHAR, GENERATION_EXPRESSION VARCHAR)";

const STATISTICS: &str = "CREATE TABLE STATISTICS (TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR,
    NON_UNIQUE INT, INDEX_SCHEMA VARCHAR, INDEX_NAME VARCHAR, SEQ_IN_INDEX INT, COLUMN_NAME VARCHAR, COLLATION VARCHAR,
    CARDINALITY INT, SUB_PART INT, PACKED VARCHAR, NULLABLE VARCHAR, INDEX_TYPE VARCHAR, COMMENT VARCHAR,
    INDEX_COMMENT VARCHAR)";

const ENGINES: &str =
    "CREATE TABLE ENGINES (ENGINE VARCHAR, SUPPORT VARCHAR, COMMENT VARCHAR, TRANSACTIONS VARCHAR,
    XA VARCHAR, SAVEPOINTS VARCHAR)";

/// Tables of things that there are none of.
const EMPTY: &[(&str, &str)] = &[
    (
        "VIEWS",
        "CREATE TABLE VIEWS (TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR, VIEW_DEFINITION VARCHAR,
    CHECK_OPTION VARCHAR, IS_UPDATABLE VARCHAR, DEFINER VARCHAR, SECURITY_TYPE VARCHAR)",
    ),
    (
        "ROUTINES",
        "CREATE TABLE ROUTINES (SPECIFIC_NAME VARCHAR, ROUTINE_CATALOG VARCHAR, ROUTINE_SCHEMA VARCHAR,
    ROUTINE_NAME VARCHAR, ROUTINE_TYPE VARCHAR, DATA_TYPE VARCHAR, DTD_IDENTIFIER VARCHAR, ROUTINE_BODY VARCHAR,
    ROUTINE_DEFINITION VARCHAR, IS_DETERMINISTIC VARCHAR, SQL_DATA_ACCESS VARCHAR, SECURITY_TYPE VARCHAR,
    CREATED VARCHAR, LAST_ALTERED VARCHAR, SQL_MODE VARCHAR, ROUTINE_COMMENT VARCHAR, DEFINER VARCHAR)",
    ),
    (
        "PARAMETERS",
        "CREATE TABLE PARAMETERS (SPECIFIC_CATALOG VARCHAR, SPECIFIC_SCHEMA VARCHAR, SPECIFIC_NAME VARCHAR,
    ORDINAL_POSITION INT, PARAMETER_MODE VARCHAR, PARAMETER_NAME VARCHAR, DATA_TYPE VARCHAR, DTD_IDENTIFIER VARCHAR,
    ROUTINE_TYPE VARCHAR)",
    ),
    (
        "TRIGGERS",
        "CREATE TABLE TRIGGERS (TRIGGER_CATALOG VARCHAR, TRIGGER_SCHEMA VARCHAR, TRIGGER_NAME VARCHAR,
    EVENT_MANIPULATION VARCHAR, EVENT_OBJECT_SCHEMA VARCHAR, EVENT_OBJECT_TABLE VARCHAR, ACTION_ORDER INT,
    ACTION_STATEMENT VARCHAR, ACTION_TIMING VARCHAR, CREATED VARCHAR, SQL_MODE VARCHAR, DEFINER VARCHAR)",
    ),
    (
        "EVENTS",
        "CREATE TABLE EVENTS (EVENT_CATALOG VARCHAR, EVENT_SCHEMA VARCHAR, EVENT_NAME VARCHAR, DEFINER VARCHAR,
    EVENT_DEFINITION VARCHAR, EVENT_TYPE VARCHAR, STATUS VARCHAR, EVENT_COMMENT VARCHAR)",
    ),
    (
        "KEY_COLUMN_USAGE",
        "CREATE TABLE KEY_COLUMN_USAGE (CONSTRAINT_CATALOG VARCHAR, CONSTRAINT_SCHEMA VARCHAR, CONSTRAINT_NAME VARCHAR,
    TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR, COLUMN_NAME VARCHAR, ORDINAL_POSITION INT,
    POSITION_IN_UNIQUE_CONSTRAINT INT, REFERENCED_TABLE_SCHEMA VARCHAR, REFERENCED_TABLE_NAME VARCHAR,
    REFERENCED_COLUMN_NAME VARCHAR)",
    ),
    (
        "TABLE_CONSTRAINTS",
        "CREATE TABLE TABLE_CONSTRAINTS (CONSTRAINT_CATALOG VARCHAR, CONSTRAINT_SCHEMA VARCHAR, CONSTRAINT_NAME VARCHAR,
    TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR, CONSTRAINT_TYPE VARCHAR, ENFORCED VARCHAR)",
    ),
    (
        "REFERENTIAL_CONSTRAINTS",
        "CREATE TABLE REFERENTIAL_CONSTRAINTS (CONSTRAINT_CATALOG VARCHAR, CONSTRAINT_SCHEMA VARCHAR,
    CONSTRAINT_NAME VARCHAR, UNIQUE_CONSTRAINT_SCHEMA VARCHAR, UNIQUE_CONSTRAINT_NAME VARCHAR, MATCH_OPTION VARCHAR,
    UPDATE_RULE VARCHAR, DELETE_RULE VARCHAR, TABLE_NAME VARCHAR, REFERENCED_TABLE_NAME VARCHAR)",
    ),
    (
        "CHECK_CONSTRAINTS",
        "CREATE TABLE CHECK_CONSTRAINTS (CONSTRAINT_CATALOG VARCHAR, CONSTRAINT_SCHEMA VARCHAR,
    CONSTRAINT_NAME VARCHAR, CHECK_CLAUSE VARCHAR)",
    ),
    (
        "PARTITIONS",
        "CREATE TABLE PARTITIONS (TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR, PARTITION_NAME VARCHAR,
    SUBPARTITION_NAME VARCHAR, PARTITION_ORDINAL_POSITION INT, PARTITION_METHOD VARCHAR, PARTITION_EXPRESSION VARCHAR)",
    ),
    (
        "FILES",
        "CREATE TABLE FILES (FILE_ID INT, FILE_NAME VARCHAR, FILE_TYPE VARCHAR, TABLESPACE_NAME VARCHAR,
    TABLE_CATALOG VARCHAR, TABLE_SCHEMA VARCHAR, TABLE_NAME VARCHAR, LOGFILE_GROUP_NAME VARCHAR,
    LOGFILE_GROUP_NUMBER INT, ENGINE VARCHAR, TOTAL_EXTENTS INT, EXTENT_SIZE INT, INITIAL_SIZE INT, EXTRA VARCHAR)",
    ),
    (
        "LIBRARIES",
        "CREATE TABLE LIBRARIES (LIBRARY_CATALOG VARCHAR, LIBRARY_SCHEMA VARCHAR, LIBRARY_NAME VARCHAR,
    LIBRARY_DEFINITION VARCHAR, LANGUAGE VARCHAR)",
    ),
    (
        "COLUMN_STATISTICS",
        "CREATE TABLE COLUMN_STATISTICS (SCHEMA_NAME VARCHAR, TABLE_NAME VARCHAR, COLUMN_NAME VARCHAR, HISTOGRAM VARCHAR)",
    ),
    (
        "PLUGINS",
        "CREATE TABLE PLUGINS (PLUGIN_NAME VARCHAR, PLUGIN_VERSION VARCHAR, PLUGIN_STATUS VARCHAR, PLUGIN_TYPE VARCHAR)",
    ),
];
