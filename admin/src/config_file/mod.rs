//! The configuration file: ProxySQL's sections in libconfig's syntax.
//!
//! Text becomes settings (`lexer`, `parser`), settings become rows and values that the registries know (`sections`), and
//! `export` goes the other way. Only `source` touches the file system.

mod export;
mod known;
mod lexer;
mod parser;
mod sections;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use crate::StoreError;
pub(crate) use export::{export, write};
use sections::Existence;
pub(crate) use sections::{Loaded, Wanted};
use std::path::{Path, PathBuf};
use tree::{Fault, Setting, Value};

/// A configuration file that was read: its syntax is right, and it has only sections that ProxySQL or pointsman has.
pub struct ConfigFile {
    path: PathBuf,
    settings: Vec<Setting>,
    ignored: Vec<String>,
}

impl ConfigFile {
    /// Reads a file and those that it includes. The error names the file, the line and the setting.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let source = source::read(path).map_err(StoreError)?;
        let settings = parser::parse(source, &mut source::include).map_err(refuse)?;
        let mut ignored = Vec::new();
        for setting in &settings {
            check(setting, &mut ignored).map_err(refuse)?;
        }
        Ok(Self { path: path.to_path_buf(), settings, ignored })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of the data directory.
    pub fn datadir(&self) -> Option<PathBuf> {
        self.settings.iter().find(|setting| setting.name == "datadir").and_then(|setting| {
            match &setting.value {
                Value::Text(text) => Some(PathBuf::from(text)),
                _ => None,
            }
        })
    }

    /// What it says and pointsman does not have, one line each.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// The rows and values of some sections, checked.
    pub(crate) fn load(&self, wanted: Wanted) -> Result<Loaded, StoreError> {
        sections::load(&self.settings, wanted).map_err(refuse)
    }
}

fn refuse(fault: Fault) -> StoreError {
    StoreError(fault.to_string())
}

fn check(setting: &Setting, ignored: &mut Vec<String>) -> Result<(), Fault> {
    let Setting { name, place, value } = setting;
    let fault = |what: String| Fault { place: place.clone(), key: name.clone(), what };
    if name == "datadir" {
        return match value {
            Value::Text(text) if !text.is_empty() => Ok(()),
            other => Err(fault(format!("{}; a directory in quotes is expected", other.kind()))),
        };
    }
    let at = format!("{}:{}", place.file, place.line);
    if let Some((_, why)) = known::GENERAL.iter().find(|(general, _)| general == name) {
        ignored.push(format!("{at}: {name} has no effect: {why}"));
        return Ok(());
    }
    match sections::existence(name) {
        Existence::Here => {}
        Existence::InProxySql => {
            ignored.push(format!("{at}: {name} is left out: pointsman does not have it"))
        }
        Existence::Nowhere => return Err(fault("there is no section or setting of this name".into())),
    }
    Ok(())
}
