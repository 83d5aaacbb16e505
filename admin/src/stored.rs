//! Stored variables whose values do not fit: a start goes on with the defaults in their place.

use crate::Variables;
use crate::command::set::wrong_value;
use crate::variables::registry::VARIABLES;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

/// Puts the default in the place of each variable in `main` whose value does not fit, and takes out what has no name. Returns
/// why, each with the variable's name. What disk holds stays as it is.
pub(crate) fn replace_unfit(conn: &Connection, defaults: &Variables) -> rusqlite::Result<Vec<String>> {
    let nameless =
        conn.execute("DELETE FROM main.global_variables WHERE typeof(variable_name) <> 'text'", [])?;
    let mut replaced = Vec::new();
    if nameless > 0 {
        replaced.push(format!("global_variables: {nameless} names are not text, and are left out"));
    }
    for var in VARIABLES.iter().filter(|var| !var.is_read_only()) {
        let sql = "SELECT variable_value FROM main.global_variables WHERE variable_name = ?1";
        let found = conn.prepare_cached(sql)?.query_row([var.name], |row| {
            let text = match row.get_ref(0)? {
                ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok(),
                _ => None,
            };
            Ok(match text {
                Some(text) if var.apply(&mut defaults.clone(), text).is_some() => None,
                Some(text) => Some(wrong_value(var, text).message),
                None => Some(format!("the value of {} (not shown) is not text", var.name)),
            })
        });
        if let Some(wrong) = found.optional()?.flatten() {
            let sql = "UPDATE main.global_variables SET variable_value = ?2 WHERE variable_name = ?1";
            conn.execute(sql, params![var.name, var.show(defaults)])?;
            replaced.push(format!("global_variables.variable_value: {wrong}; its default is used"));
        }
    }
    Ok(replaced)
}
