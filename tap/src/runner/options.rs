//! The runner's command line.

use super::isolation::INSIDE;
use lexopt::prelude::*;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// For `--help`.
pub const HELP: &str = "\
Runs the TAP binaries of a group, one after the other, against a daemon of their own.

Usage: tap-runner --daemon PATH --group NAME [options]

  --daemon PATH      the daemon, built with the simulator (make test_rds_bgd)
  --group NAME       a group of groups.json, such as cluster_sim_rds_bgd-g1
  --only NAME        run one binary of the group
  --repeat N         run the group N times against the same daemon (default 1)
  --shuffle SEED     each time in another order, which SEED decides (default: alphabetical)
  --timeout SECS     kill a binary that runs longer (default 60)
  --binaries DIR     where the binaries are, or the examples that it has (default: where
                     tap-runner is)
  --groups-dir DIR   groups.json and the groups' hooks (default groups)
  --hosts-file FILE  the host map, name or address first (default: what env.sh of the
                     group says in CLUSTER_SIM_HOST_FILE)
  --logs DIR         each run makes a numbered directory here (default GROUPS-DIR/logs)
  --junit FILE       the report in JUnit's format (default: junit.xml beside the logs)
  --check            only see whether everything is there
  --no-isolation     use the host's loopback and free ports of 20000-32000

The runner isolates itself in a network and mount namespace where that is allowed: a
loopback of its own, and an /etc/hosts with the group's names. It exits with 0 only if
every binary passed and the daemon stopped cleanly, with 2 if it could not run at all.

Examples:
  tap-runner --daemon target/sim/debug/pointsman --group cluster_sim_rds_bgd-g1
  tap-runner --daemon target/sim/debug/pointsman --group cluster_sim_rds_bgd-g1 \\
             --only test_rds_bgd_smoke-t --repeat 10
  tap-runner --daemon target/sim/debug/pointsman --group cluster_sim_rds_bgd-g1 \\
             --repeat 10 --shuffle 1
";

/// What to run and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The daemon's executable
    pub daemon: PathBuf,
    /// A group of groups.json
    pub group: String,
    /// Run this binary only
    pub only: Option<String>,
    /// How often
    pub repeat: u32,
    /// Decides the order of each time; None: alphabetical
    pub shuffle: Option<u64>,
    /// For one binary
    pub timeout: Duration,
    /// Where the binaries are; None: where the runner is
    pub binaries: Option<PathBuf>,
    /// With groups.json
    pub groups_dir: PathBuf,
    /// The host map; None: the group's own
    pub hosts_file: Option<PathBuf>,
    /// Receives a directory for this run
    pub logs: PathBuf,
    /// Where the JUnit report goes; None: beside the logs
    pub junit: Option<PathBuf>,
    /// Whether to see what is there instead of running it
    pub check: bool,
    /// Whether to try namespaces
    pub isolation: bool,
    /// The run's directory, where this process has been isolated already. Set by the runner, for itself
    pub inside: Option<PathBuf>,
}

/// Parses the arguments, without the program's name; None for `--help`.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut daemon, mut group, mut only, mut binaries) = (None, None, None, None);
    let (mut hosts_file, mut junit, mut logs, mut shuffle) = (None, None, None, None);
    let mut groups_dir = PathBuf::from("groups");
    let (mut repeat, mut timeout) = (1, Duration::from_secs(60));
    let (mut check, mut isolation, mut inside) = (false, true, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("daemon") => daemon = Some(parser.value()?.into()),
            Long("group") => group = Some(parser.value()?.string()?),
            Long("only") => only = Some(parser.value()?.string()?),
            Long("repeat") => repeat = parser.value()?.parse::<NonZeroU32>()?.get(),
            Long("shuffle") => shuffle = Some(parser.value()?.parse()?),
            Long("timeout") => {
                timeout = Duration::from_secs(parser.value()?.parse::<NonZeroU32>()?.get().into());
            }
            Long("binaries") => binaries = Some(parser.value()?.into()),
            Long("groups-dir") => groups_dir = parser.value()?.into(),
            Long("hosts-file") => hosts_file = Some(parser.value()?.into()),
            Long("logs") => logs = Some(parser.value()?.into()),
            Long("junit") => junit = Some(parser.value()?.into()),
            Long("check") => check = true,
            Long("no-isolation") => isolation = false,
            Long(INSIDE) => inside = Some(parser.value()?.into()),
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(Options {
        daemon: daemon.ok_or("--daemon is missing")?,
        only,
        repeat,
        shuffle,
        timeout,
        binaries,
        hosts_file,
        logs: logs.unwrap_or_else(|| groups_dir.join("logs")),
        groups_dir,
        junit,
        group: group.ok_or("--group is missing")?,
        check,
        isolation,
        inside,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parsed(line: &str) -> Result<Option<Options>, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let Ok(Some(options)) = parsed("--daemon d --group cluster_sim_rds_bgd-g1") else { panic!() };
        assert_eq!((options.hosts_file, options.junit, options.binaries), (None, None, None));
        assert_eq!(options.logs, Path::new("groups/logs"));
        assert_eq!((options.repeat, options.timeout), (1, Duration::from_secs(60)));
        assert_eq!((options.isolation, options.check), (true, false));
    }

    #[test]
    fn every_option_of_the_help_is_known() {
        let line = "--daemon d --group g --only o --repeat 3 --shuffle 5 --timeout 9 --binaries b --groups-dir x --hosts-file h --logs l --junit j --check --no-isolation";
        let Ok(Some(options)) = parsed(line) else { panic!() };
        assert_eq!((options.repeat, options.timeout, options.isolation), (3, Duration::from_secs(9), false));
        assert_eq!((options.logs, options.hosts_file), ("l".into(), Some("h".into())));
        assert_eq!((options.junit, options.check, options.shuffle), (Some("j".into()), true, Some(5)));
        for option in line.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(HELP.contains(option), "{option}");
        }
        assert_eq!(parsed("--help"), Ok(None));
    }

    #[test]
    fn bad_arguments_are_refused() {
        for line in [
            "",
            "--daemon d",
            "--group g",
            "--daemon d --group g --repeat 0",
            "--daemon d --group g x",
            "--nope",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
