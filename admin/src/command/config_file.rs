//! Commands about the configuration file: LOAD ... FROM CONFIG, and memory written as such a file.

use super::load_save;
use super::text::{after, unquote};
use crate::answer::Answer;
use crate::config_file::{self, ConfigFile, Wanted};
use crate::error::{failed, from_sqlite};
use crate::{Admin, StoreError};
use std::path::Path;
use wire::SqlError;

/// Answers `LOAD ... FROM CONFIG` and `SAVE CONFIG TO FILE path`.
pub(super) fn run(admin: &Admin, statement: &str) -> Option<Result<Answer, SqlError>> {
    if let Some(wanted) = load_save::from_config(statement) {
        return Some(load(admin, wanted));
    }
    let path = after(statement, "SAVE").and_then(|rest| after(rest, "CONFIG TO FILE"))?;
    Some(write(admin, path))
}

/// Puts what the file has of some sections into memory. The file is read anew.
fn load(admin: &Admin, wanted: Wanted) -> Result<Answer, SqlError> {
    admin.check_writable()?;
    let path = admin.config_file.as_deref().ok_or_else(|| failed("Config file unknown"))?;
    let unusable = |StoreError(why): StoreError| {
        failed(format!("Unable to open or parse config file {}: {why}", path.display()))
    };
    let loaded = ConfigFile::read(path).and_then(|file| file.load(wanted)).map_err(unusable)?;
    loaded.ignored.iter().for_each(|entry| log::warn!("{}: {entry} is left out", path.display()));
    let _one_at_a_time = admin.moving.lock();
    let rows = admin.store.lock().merge("main", &loaded).map_err(|error| from_sqlite(&error))?;
    Ok(load_save::answer(rows, &loaded.ignored))
}

/// `CONFIG FILE` or `CONFIG INTO OUTFILE path` behind SELECT. `None`: another SELECT.
pub(super) fn select(admin: &Admin, rest: &str) -> Option<Result<Answer, SqlError>> {
    let rest = after(rest, "CONFIG")?;
    if let Some(path) = after(rest, "INTO OUTFILE") {
        return Some(write(admin, path));
    }
    after(rest, "FILE")?.is_empty().then(|| {
        let text = text(admin)?;
        Ok(Answer::texts(vec!["Data".into()], vec![vec![Some(text)]]))
    })
}

/// Memory as a file; only what would load.
fn text(admin: &Admin) -> Result<String, SqlError> {
    admin.variables()?;
    config_file::export(&admin.store.lock().conn, &admin.datadir)
}

fn write(admin: &Admin, path: &str) -> Result<Answer, SqlError> {
    let path = unquote(path);
    if !Path::new(&path).is_absolute() {
        return Err(failed("the file needs its whole path, such as '/etc/pointsman.cnf'"));
    }
    let text = text(admin)?;
    config_file::write(Path::new(&path), &text)?;
    log::info!("the configuration in memory was written to {path}");
    Ok(Answer::done())
}
