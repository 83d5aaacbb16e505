//! What the programs of this crate have in common: arguments, help and exit status.

use lexopt::prelude::*;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments make no sense, or the work could not be done to its end.
const UNUSABLE: u8 = 2;

/// Runs the program `name` with its arguments as they were parsed; None prints `help`. Exit status 0 if `run` says that all
/// is well, 1 if not, 2 if it could not be run to its end.
pub fn main<O, E: Display>(
    name: &str,
    help: &str,
    parsed: Result<Option<O>, lexopt::Error>,
    run: impl FnOnce(&O) -> Result<bool, E>,
) -> ExitCode {
    let options = match parsed {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{help}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{name}: {error}; try --help");
            return ExitCode::from(UNUSABLE);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// The arguments, without the program's name, of one that takes `--daemon PATH` alone; None for `--help`.
pub fn daemon_path(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<PathBuf>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut daemon = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("daemon") => daemon = Some(PathBuf::from(parser.value()?)),
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    daemon.map(Some).ok_or_else(|| "--daemon is missing".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_required() {
        let parsed = |line: &str| daemon_path(line.split_whitespace().map(OsString::from));
        assert_eq!(parsed("--daemon d").unwrap(), Some("d".into()));
        assert_eq!(parsed("-h").unwrap(), None);
        assert_eq!(parsed("--help").unwrap(), None);
        for line in ["", "--daemon", "--daemon d x"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
