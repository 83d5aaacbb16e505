//! SET: variables in memory, and the session settings that drivers send.

use super::text::{after, split_outside_quotes, unquote};
use crate::answer::Answer;
use crate::current::{Client, Role};
use crate::error::{escaped, failed, from_sqlite};
use crate::variables::kind::VarDef;
use crate::variables::registry;
use crate::{Admin, Variables};
use wire::SqlError;

/// Answers `SET ...`; `rest` is what follows the word.
pub(super) fn run(admin: &Admin, client: &Client, rest: &str) -> Result<Answer, SqlError> {
    let mut values = Vec::new();
    let mut unknown = Vec::new();
    let mut settings = 0;
    for part in split_outside_quotes(rest, ',') {
        let Some((name, text)) = assignment(part) else {
            settings += 1;
            continue;
        };
        match registry::find(&name) {
            Some(var) => values.push((var.name, canonical(var, &unquote(text))?)),
            None if is_meant_for_us(&name) => unknown.push(name),
            // Session settings of drivers mean nothing here.
            None => {}
        }
    }
    if settings > 0 && !values.is_empty() {
        return Err(SqlError::new(1064, "42000", "SET: a value that contains a comma must be quoted"));
    }
    if client.role == Role::Stats && !(values.is_empty() && unknown.is_empty()) {
        return Err(failed("this user reads statistics and sets no variables"));
    }
    // Drivers set their session's settings when they connect: that interrupts nobody who reads, and waits for nobody.
    if !values.is_empty() {
        admin.check_writable()?;
        let mut store = admin.store.lock_for_client()?;
        store.set_variables(&values).map_err(|error| from_sqlite(&error))?;
    }
    let info = match unknown.as_slice() {
        [] => String::new(),
        names => format!("Unknown global variable: {}", escaped(&names.join(", "))),
    };
    Ok(Answer::Ok { affected: values.len() as u64, info })
}

/// `[GLOBAL] name = value`. Settings without `=`, such as NAMES, are none.
fn assignment(text: &str) -> Option<(String, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = name.strip_suffix(':').unwrap_or(name).trim().trim_start_matches("@@");
    let name = after(name, "GLOBAL").map_or(name, |rest| rest.trim_start_matches('.'));
    Some((unquote(name), value.trim()))
}

/// No setting of a MySQL session has a dash in its name; all variables of this interface have one.
fn is_meant_for_us(name: &str) -> bool {
    name.contains('-') && !name.starts_with('@')
}

/// The text to store for a value: what it reads as.
pub(crate) fn canonical(var: &VarDef, text: &str) -> Result<String, SqlError> {
    let mut scratch = Variables::default();
    var.apply(&mut scratch, text).map(|()| var.show(&scratch)).ok_or_else(|| wrong_value(var, text))
}

/// A value that its variable cannot take. Credentials are not shown.
pub(crate) fn wrong_value(var: &VarDef, text: &str) -> SqlError {
    let (name, why) = (var.name, var.refusal(text));
    let shown = match var.is_secret() {
        true => "that value".to_owned(),
        false => format!("'{}'", text.chars().take(64).collect::<String>()),
    };
    SqlError::new(1231, "42000", format!("Variable '{name}' can't be set to {shown}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_have_many_spellings() {
        for text in [
            "mysql-x=1",
            "mysql-x = 1",
            "GLOBAL mysql-x=1",
            "@@global.mysql-x=1",
            "`mysql-x` := 1",
            "@@mysql-x=1",
        ] {
            assert_eq!(assignment(text), Some(("mysql-x".to_owned(), "1")), "{text}");
        }
        assert_eq!(assignment("NAMES utf8mb4"), None);
        assert_eq!(
            assignment("SESSION wait_timeout = 3").map(|(name, _)| name),
            Some("SESSION wait_timeout".into())
        );
        assert_eq!(assignment("a='x=y'"), Some(("a".to_owned(), "'x=y'")));
    }

    #[test]
    fn refusals_hide_credentials() {
        let error = wrong_value(registry::find("admin-admin_credentials").unwrap(), "hush");
        assert!(!error.message.contains("hush"));
        let error = wrong_value(registry::find("mysql-wait_timeout").unwrap(), "-1");
        assert!(error.message.contains("'-1'") && error.message.contains("from 0 to 1728000000"));
    }
}
