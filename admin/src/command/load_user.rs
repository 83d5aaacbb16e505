//! LOAD MYSQL USER name TO RUNTIME: one user of many.

use super::load_save::{TO_RUNTIME, answer};
use super::text::{after, unquote};
use crate::answer::Answer;
use crate::error::failed;
use crate::tables::Group;
use crate::{Admin, ConfigSet, read};
use wire::SqlError;

/// Answers the command; `None` where it is another.
pub(super) fn run(admin: &Admin, statement: &str) -> Option<Result<Answer, SqlError>> {
    parse(statement).map(|name| load(admin, &name))
}

/// The user of `LOAD MYSQL USER name TO RUNTIME`, in all spellings of that.
fn parse(statement: &str) -> Option<String> {
    let rest = after(statement, "LOAD MYSQL USER")?;
    let (name, way) = split_name(rest)?;
    TO_RUNTIME.iter().any(|each| each.eq_ignore_ascii_case(way)).then(|| unquote(name))
}

/// A name, quoted or not, and what follows it after a blank.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
    let end = match quote {
        // A doubled quote does not end the name.
        Some(quote) => {
            let mut quotes = text.match_indices(quote).map(|(at, _)| at).skip(1).peekable();
            loop {
                let at = quotes.next()?;
                if quotes.peek() != Some(&(at + 1)) {
                    break at + 1;
                }
                quotes.next();
            }
        }
        None => text.find(' ')?,
    };
    let (name, rest) = text.split_at_checked(end)?;
    Some((name, rest.strip_prefix(' ')?))
}

/// Puts the rows of one user in force as memory has them; other users stay as they are in runtime.
fn load(admin: &Admin, name: &str) -> Result<Answer, SqlError> {
    let _one_at_a_time = admin.moving.lock();
    let daemon = admin.daemon()?;
    let rows = read::users_named(&admin.store.lock().conn, name)?;
    let mut users = admin.published.lock().users.clone();
    let before = users.len();
    users.retain(|user| user.username != name);
    if rows.is_empty() && users.len() == before {
        let name = name.escape_debug();
        return Err(failed(format!("there is no user '{name}', neither in mysql_users nor in runtime")));
    }
    users.extend(rows);
    users.sort_by(|a, b| (&a.username, a.backend).cmp(&(&b.username, b.backend)));
    let ignored = daemon.publish(ConfigSet::Users(users.clone()))?.ignored;
    admin.published.lock().users = users;
    admin.checksums.loaded(Group::Users);
    Ok(answer(0, &ignored))
}
