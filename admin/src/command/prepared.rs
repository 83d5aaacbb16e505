//! Prepared statements: the values take the places of the parameters in the text, which then is as any other.

use super::packet::Outcome;
use super::text::{first_word, literal, statements, with_parameters};
use super::{is_sql, run_packet};
use crate::Admin;
use crate::catalog::is_integer;
use crate::current::Client;
use crate::error::{failed, from_sqlite};
use wire::reply::Column;
use wire::serve::{Parameter, Prepared};
use wire::{ColumnType, SqlError};

/// Reads a statement that is to be run later. SQL that SQLite does not understand is refused now.
pub(crate) fn prepare(admin: &Admin, client: &Client, sql: &str) -> Result<Prepared, SqlError> {
    let statements = statements(sql);
    let [one] = statements.as_slice() else {
        return match statements.len() {
            0 => Err(SqlError::new(1065, "42000", "Query was empty")),
            _ => Err(failed("one statement at a time can be prepared")),
        };
    };
    let (_, parameters) = with_parameters(one, |_| String::new());
    let parameters = u16::try_from(parameters)
        .map_err(|_| SqlError::new(1390, "HY000", "Prepared statement contains too many placeholders"))?;
    Ok(Prepared { parameters, columns: columns(admin, client, one)? })
}

/// The columns of a SELECT, as SQLite knows them before it runs. Of other statements clients learn them with the result.
fn columns(admin: &Admin, client: &Client, sql: &str) -> Result<Vec<Column>, SqlError> {
    let selects = first_word(sql) == "SELECT" && is_sql(admin, client, sql);
    if !selects || sql.contains("@@") || sql.to_ascii_uppercase().contains("FROM DUAL") {
        return Ok(Vec::new());
    }
    let described = admin.store.with_reader(client, |reader| {
        let statement = reader.conn.prepare(sql).map_err(|error| from_sqlite(&error))?;
        let column = |column: &rusqlite::Column<'_>| match column.decl_type().is_some_and(is_integer) {
            true => Column::new(column.name(), ColumnType::MYSQL_TYPE_LONGLONG),
            false => Column::text(column.name()),
        };
        Ok(statement.columns().map(|each| column(&each)).collect())
    })?;
    described.unwrap_or_else(|| Ok(Vec::new()))
}

/// Runs a prepared statement.
pub(crate) fn execute(admin: &Admin, client: &Client, sql: &str, values: &[Parameter]) -> Outcome {
    let cut = statements(sql);
    let Some(one) = cut.first() else { return run_packet(admin, client, sql, false) };
    let (text, _) = with_parameters(one, |number| values.get(number).map_or_else(|| "NULL".into(), spelled));
    run_packet(admin, client, &text, false)
}

/// A value as SQL spells it.
fn spelled(value: &Parameter) -> String {
    match value {
        Parameter::Null => "NULL".into(),
        Parameter::Integer(number) => number.to_string(),
        Parameter::Unsigned(number) => number.to_string(),
        Parameter::Real(number) if number.is_finite() => format!("{number:?}"),
        Parameter::Real(_) => "NULL".into(),
        Parameter::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => literal(text),
            _ => format!("X'{}'", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_sql() {
        for (value, text) in [
            (Parameter::Null, "NULL"),
            (Parameter::Integer(-5), "-5"),
            (Parameter::Unsigned(u64::MAX), "18446744073709551615"),
            (Parameter::Real(1.0), "1.0"),
            (Parameter::Real(1e300), "1e300"),
            (Parameter::Real(f64::NAN), "NULL"),
            (Parameter::Bytes(b"it's ?; --".into()), "'it''s ?; --'"),
            (Parameter::Bytes(b"a\0\xFF".into()), "X'6100FF'"),
        ] {
            assert_eq!(spelled(&value), text);
        }
    }
}
