//! The demonstration's command line.

use lexopt::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// For `--help`.
pub const HELP: &str = "\
Drives one complete blue/green switchover under live traffic and prints what happens.

Usage: demo --daemon PATH

  --daemon PATH   the daemon, built with the simulator (make test_rds_bgd)

It uses free ports of 20000-32000 on loopback and takes about ten seconds. It exits with 0
only if no statement failed and the green server answers at the end.

Example:
  demo --daemon target/sim/debug/pointsman
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// `--help`
    Help,
    /// A demonstration with this daemon
    Run(PathBuf),
}

/// Parses the arguments, without the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut daemon = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("daemon") => daemon = Some(parser.value()?.into()),
            Short('h') | Long("help") => return Ok(Request::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Request::Run(daemon.ok_or("--daemon is missing")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_required() {
        let parsed = |line: &str| parse(line.split_whitespace().map(OsString::from));
        assert_eq!(parsed("--daemon d").unwrap(), Request::Run("d".into()));
        assert_eq!(parsed("--help").unwrap(), Request::Help);
        for line in ["", "--daemon", "--daemon d x"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
