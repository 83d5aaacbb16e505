//! What a statement brought, as JSON.

use std::hash::{DefaultHasher, Hash, Hasher};

use mysql::prelude::Protocol;
use mysql::{Column, Error, QueryResult, Row, Value};
use serde_json::{Value as Json, json};

/// Bytes; of what is longer, length and hash are compared.
const LONGEST_VALUE: usize = 200;
/// Of a longer result, number and hash are compared.
const MOST_ROWS: usize = 60;

/// Every result set of `result`; the last entry may be an error.
pub fn of_result<T: Protocol>(mut result: QueryResult<'_, '_, '_, T>) -> Json {
    let mut sets = Vec::new();
    while let Some(set) = result.iter() {
        let columns: Vec<Json> = set.columns().as_ref().iter().map(of_column).collect();
        let (affected, insert_id) = (set.affected_rows(), set.last_insert_id());
        let (warnings, info) = (set.warnings(), set.info_str().into_owned());
        let mut rows = Vec::new();
        let mut error = None;
        for row in set {
            match row {
                Ok(row) => rows.push(of_row(row)),
                Err(found) => error = Some(of_error(&found)),
            }
        }
        sets.push(json!({
            "columns": columns, "rows": shortened(rows), "affected": affected, "insert_id": insert_id,
            "warnings": warnings, "info": info,
        }));
        sets.extend(error);
    }
    Json::Array(sets)
}

/// Code, SQLSTATE and text of an error of the server's, or the text of one of the crate's.
pub fn of_error(error: &Error) -> Json {
    match error {
        Error::MySqlError(error) => json!({ "error": [error.code, error.state, error.message] }),
        other => json!({ "error": other.to_string() }),
    }
}

pub fn of_column(column: &Column) -> Json {
    json!([
        column.schema_str(),
        column.table_str(),
        column.org_table_str(),
        column.name_str(),
        column.org_name_str(),
        column.character_set(),
        column.column_length(),
        format!("{:?}", column.column_type()),
        column.flags().bits(),
        column.decimals(),
    ])
}

fn of_row(row: Row) -> Json {
    row.unwrap().iter().map(of_value).collect()
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::Bytes(bytes) if bytes.len() > LONGEST_VALUE => {
            json!({ "bytes": bytes.len(), "hash": hash(bytes) })
        }
        Value::Bytes(bytes) => json!(format!("b:{}", bytes.escape_ascii())),
        other => json!(format!("{other:?}")),
    }
}

fn shortened(rows: Vec<Json>) -> Json {
    if rows.len() <= MOST_ROWS {
        return Json::Array(rows);
    }
    let text: Vec<String> = rows.iter().map(Json::to_string).collect();
    json!({ "rows": rows.len(), "hash": hash(&text) })
}

/// Both runs are of the same program, so that the standard library's hash will do.
fn hash<T: Hash + ?Sized>(value: &T) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
