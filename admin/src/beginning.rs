//! What a start begins with: the database, the configuration file, or both.

use crate::config_file::{Loaded, Wanted};
use crate::store::{beside, is_empty};
use crate::{Start, StoreError};
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The number in the database's header that says whether its first start came to its end.
pub(crate) const MARK: &str = "user_version";
/// It did not: the file that the database was made from still counts.
pub(crate) const UNFINISHED: i32 = 1;

/// What the store does with its database before anything is read from it.
pub(crate) struct Beginning {
    /// The database is new, or was left by a first start that failed.
    pub fresh: bool,
    /// What is taken over from the file.
    pub loaded: Option<Loaded>,
}

impl Beginning {
    /// Decides, says so in the log, and puts the database aside where that is asked. The file is checked first,
    /// so that nothing has changed where it is refused.
    pub fn of(start: &Start<'_>, database: &Path) -> Result<Self, StoreError> {
        let there = is_there(database);
        let file = start.file.filter(|_| start.initial || start.reload || !there);
        let loaded = file.map(|file| file.load(Wanted::All)).transpose()?;
        let aside = if start.initial && there { Some(put_aside(database)?) } else { None };
        log::info!("{}", story(start, database, there, aside.as_deref()));
        if let Some((file, loaded)) = file.zip(loaded.as_ref()) {
            let path = file.path().display();
            loaded
                .ignored
                .iter()
                .for_each(|entry| log::warn!("{path}: {entry} is left out: pointsman does not have it"));
        }
        Ok(Self { fresh: start.initial || !there, loaded })
    }
}

/// Which source counts, in one line.
fn story(start: &Start<'_>, database: &Path, there: bool, aside: Option<&Path>) -> String {
    let database = database.display();
    let kept = aside.map(|aside| format!("; the database before is kept as {}", aside.display()));
    let kept = kept.unwrap_or_default();
    match start.file.map(|file| file.path().display()) {
        Some(file) if there && start.reload => {
            format!("the configuration is that of {database}, with {file} merged into it (--reload)")
        }
        Some(file) if there && !start.initial => format!(
            "the configuration is that of {database}; tables and variables of {file} are not looked at \
             (--reload merges them)"
        ),
        Some(file) => format!("the configuration is that of {file}{kept}"),
        None if there && !start.initial => format!("the configuration is that of {database}"),
        None => format!("the configuration is empty: there is neither a database nor a file{kept}"),
    }
}

/// Whether the file holds a database that counts. What cannot be read does: it is not ours to throw away.
fn is_there(database: &Path) -> bool {
    if is_empty(database) {
        return false;
    }
    let begun = || {
        let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mark: i32 = conn.pragma_query_value(None, MARK, |row| row.get(0))?;
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        Ok::<_, rusqlite::Error>(tables == 0 || mark == UNFINISHED)
    };
    !begun().unwrap_or(false)
}

/// Renames the database, with the files that SQLite keeps beside it.
fn put_aside(database: &Path) -> Result<PathBuf, StoreError> {
    let aside = beside(database, ".bak");
    // The database goes last: whatever is interrupted, a database is never without what belongs to it for long.
    for end in ["-shm", "-wal", ""] {
        let (from, to) = (beside(database, end), beside(&aside, end));
        let moved = match fs::rename(&from, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound => match fs::remove_file(&to) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            other => other,
        };
        moved.map_err(|error| {
            StoreError(format!("--initial: {} cannot be kept as {}: {error}", from.display(), to.display()))
        })?;
    }
    Ok(aside)
}
