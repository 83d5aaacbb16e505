//! The .env files of a test program: variables for runs by hand, where no runner sets them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A .env file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct EnvFileError {
    path: PathBuf,
    reason: String,
}

/// The variables of all files read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EnvFiles {
    variables: HashMap<String, String>,
    read: Vec<(PathBuf, usize)>,
}

impl EnvFiles {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// One line for each file.
    pub fn describe(&self) -> Vec<String> {
        let line = |(path, count): &(PathBuf, usize)| format!("{count} variables from {}", path.display());
        self.read.iter().map(line).collect()
    }
}

/// Reads `.env` and `NAME.env` in the directory of the program NAME, as far as they are there. What both set has the second
/// one's value.
pub fn beside(program: &Path) -> Result<EnvFiles, EnvFileError> {
    let mut own = OsString::from(program.file_name().unwrap_or_default());
    own.push(".env");
    let mut files = EnvFiles::default();
    for path in [program.with_file_name(".env"), program.with_file_name(own)] {
        if path.exists() {
            let variables = read(&path)?;
            files.read.push((path, variables.len()));
            files.variables.extend(variables);
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<HashMap<String, String>, EnvFileError> {
    let failed = |reason| EnvFileError { path: path.to_owned(), reason };
    let entries = dotenvy::from_path_iter(path).map_err(|error| failed(error.to_string()))?;
    let numbered = entries.enumerate().map(|(index, entry)| {
        // The line itself may hold a password, and is not shown.
        entry.map_err(|error| match error {
            dotenvy::Error::Io(error) => failed(error.to_string()),
            _ => failed(format!("entry {} is not NAME=VALUE", index + 1)),
        })
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_programs_own_file_goes_before_the_common_one() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("smoke-t");
        assert_eq!(beside(&program).unwrap(), EnvFiles::default());

        fs::write(directory.path().join(".env"), "# common\nTAP_HOST=127.0.0.2\nexport TAP_PORT=\"1\"\n")
            .unwrap();
        fs::write(directory.path().join("smoke-t.env"), "TAP_PORT=2\n").unwrap();
        fs::write(directory.path().join("other-t.env"), "TAP_PORT=3\n").unwrap();
        let files = beside(&program).unwrap();
        assert_eq!(files.get("TAP_HOST").as_deref(), Some("127.0.0.2"));
        assert_eq!(files.get("TAP_PORT").as_deref(), Some("2"));
        assert_eq!(files.get("TAP_USERNAME"), None);
        let described = files.describe();
        assert!(
            described[0].starts_with("2 variables from ") && described[0].ends_with("/.env"),
            "{described:?}"
        );
        assert!(
            described[1].starts_with("1 variables") && described[1].ends_with("/smoke-t.env"),
            "{described:?}"
        );
    }

    #[test]
    fn a_bad_line_is_located_and_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".env"), "A=1\nsecret word\n").unwrap();
        let error = beside(&directory.path().join("smoke-t")).unwrap_err().to_string();
        assert!(error.ends_with("/.env: entry 2 is not NAME=VALUE"), "{error}");
        fs::create_dir(directory.path().join("smoke-t.env")).unwrap();
        fs::write(directory.path().join(".env"), "").unwrap();
        let error = beside(&directory.path().join("smoke-t")).unwrap_err().to_string();
        assert!(error.contains("smoke-t.env: ") && error.contains("directory"), "{error}");
    }
}
