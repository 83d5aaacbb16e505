//! Runs the binaries of a test group against a daemon of their own and reports.

mod execution;
mod group;
mod hooks;
mod host_map;
mod isolation;
mod junit;
mod options;
mod report;
mod rounds;
mod run_directory;
mod summary;

pub use group::GroupError;
pub use options::{HELP, Options, parse};

use crate::command_line::CommandLine;
use crate::daemon::{Daemon, DaemonError, Launch, free_port_settings};
use crate::interrupt::Interrupt;
use group::Registry;
use junit::Suite;
use rounds::Rounds;
use run_directory::RunDirectory;
use rustix::fs::{Access, access};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// How the user is told where the run takes place.
const IN_NAMESPACE: &str = "In a network and mount namespace of its own";
const ON_HOST: &str = "On the host's loopback, with free ports and --hosts-file";

/// Why nothing could be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// groups.json or the group's hooks
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The daemon did not start
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A file, directory or program that is needed
    #[error("{what}: {source}")]
    Io {
        /// What was tried
        what: String,
        /// The reason
        source: io::Error,
    },
    /// A line of the host map that is not an entry
    #[error("{}: '{line}' is not a host name and its address", path.display())]
    HostMap {
        /// The map
        path: PathBuf,
        /// Its line
        line: String,
    },
    /// The group's env.sh or pre-proxysql.bash failed
    #[error("{} failed: {problem}", hook.display())]
    Hook {
        /// The script
        hook: PathBuf,
        /// How
        problem: String,
    },
    /// A binary of the group cannot be started
    #[error("{} is missing, or cannot be executed", .0.display())]
    Binary(PathBuf),
    /// A statement of the group's pre-proxysql.sql failed
    #[error("pre-proxysql.sql: {0}")]
    Setup(#[from] crate::connection::Error),
}

impl RunError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}

/// What is where, as the options say it.
struct Places {
    binaries: PathBuf,
    /// The group's hooks
    folder: PathBuf,
    /// The project's root directory
    workspace: PathBuf,
}

impl Places {
    /// The file of a binary: beside the others, or where cargo has put it as an example, as which it may use the daemon's crates.
    fn binary(&self, name: &str) -> PathBuf {
        let [beside, example] = [&self.binaries, &self.binaries.join("examples")].map(|dir| dir.join(name));
        if !beside.exists() && example.exists() { example } else { beside }
    }
}

/// Runs what `options` say, printing as it happens. Whether everything passed.
pub fn run(options: &Options) -> Result<bool, RunError> {
    let names = Registry::read(&options.groups_dir)?.binaries(&options.group, options.only.as_deref())?;
    let places = places(options)?;
    let program = absolute(&options.daemon)?;
    let interrupt = Interrupt::register().map_err(RunError::io("taking over signals"))?;
    let host_file = match &options.hosts_file {
        Some(file) => Some(file.clone()),
        None => hooks::host_file(&places, &interrupt)?,
    };
    let host_map = host_file.as_deref().map(host_map::read).transpose()?;
    if options.check {
        return check(&names, &places, options.isolation);
    }
    let (directory, settings, hosts_file) = isolate(options, host_map.as_deref())?;
    write(&directory.runner_pid(), &process::id().to_string())?;

    let launch = Launch {
        program,
        datadir: Some(directory.data()),
        hosts_file,
        log_file: directory.daemon_log(),
        pid_file: Some(directory.daemon_pid()),
        settings,
    };
    let mut daemon = Daemon::start(&launch, &interrupt)?;
    let command_line = CommandLine { workdir: directory.path().to_owned(), ..daemon.command_line() };
    hooks::before_tests(&places, &command_line, &interrupt)
        .inspect_err(|_| say(&format!("The daemon's log ends with:\n{}", daemon.log_tail())))?;

    let rounds = Rounds { options, places: &places, directory: &directory, command_line: &command_line };
    let (tallies, mut suites) = rounds.run(&names, &mut daemon, &interrupt);
    let daemon_problem = match daemon.ended() {
        // It did not wait to be told to.
        Some(status) => Some(format!("the daemon ended during the run: {status}")),
        None => daemon.stop().err().map(|error| error.to_string()),
    };
    if let Some(problem) = &daemon_problem {
        let log = fs::read(directory.daemon_log()).unwrap_or_default();
        let daemon_log = String::from_utf8_lossy(&log).into_owned();
        say(&format!("FAILED {problem}\n{}", summary::excerpt(&daemon_log).trim_end()));
        suites.push(Suite { daemon_log, ..Suite::error("daemon", problem) });
    }
    let passed = daemon_problem.is_none() && tallies.iter().all(|tally| tally.failed == 0);
    say(&format!("\n{}", summary::table(&tallies, daemon_problem.is_some()).trim_end()));
    close(options, &directory, &suites, passed)?;
    Ok(passed && !interrupt.raised())
}

/// Prints a line, or several. Whether anyone reads them decides nothing: the run goes on, and its logs tell the rest.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Whether everything is there that a run needs; says how it will be isolated.
fn check(names: &[String], places: &Places, isolation: bool) -> Result<bool, RunError> {
    let mut binaries = names.iter().map(|name| places.binary(name));
    if let Some(missing) = binaries.find(|path| access(path, Access::EXEC_OK).is_err()) {
        return Err(RunError::Binary(missing));
    }
    let isolated = isolation && isolation::available();
    say(&format!("{} binaries are there", names.len()));
    say(if isolated { IN_NAMESPACE } else { ON_HOST });
    Ok(true)
}

/// Removes what is of no use any more, and writes the report.
fn close(
    options: &Options,
    directory: &RunDirectory,
    suites: &[Suite],
    passed: bool,
) -> Result<(), RunError> {
    let remove = |what: &Path, outcome: io::Result<()>| {
        outcome.map_err(RunError::io(format!("removing {}", what.display())))
    };
    for file in [directory.daemon_pid(), directory.runner_pid()] {
        remove(&file, fs::remove_file(&file))?;
    }
    if passed {
        // After a failure the daemon's databases may tell why, the log of the simulator's probes among them.
        remove(&directory.data(), fs::remove_dir_all(directory.data()))?;
    }
    let junit = options.junit.clone().unwrap_or_else(|| directory.junit());
    write(&junit, &junit::document(&options.group, suites))?;
    say(&format!("Logs: {}  JUnit: {}", directory.path().display(), junit.display()));
    Ok(())
}

fn places(options: &Options) -> Result<Places, RunError> {
    let groups_dir = absolute(&options.groups_dir)?;
    let binaries = match &options.binaries {
        Some(directory) => absolute(directory)?,
        None => {
            let runner =
                env::current_exe().map_err(RunError::io("looking for the runner's own directory"))?;
            runner.parent().unwrap_or(&runner).to_owned()
        }
    };
    let workspace = groups_dir.parent().unwrap_or(&groups_dir).to_owned();
    Ok(Places { binaries, folder: group::folder(&groups_dir, &options.group), workspace })
}

/// The run's directory, the daemon's `--set` values and its `--hosts-file`.
type Surroundings = (RunDirectory, Vec<(String, String)>, Option<PathBuf>);

/// Settings and hosts file are needed only where there are no namespaces: inside, the usual ports are free and /etc/hosts knows the
/// group's names. Entering them starts this process anew, so this returns only from inside or when there are none.
fn isolate(options: &Options, host_map: Option<&str>) -> Result<Surroundings, RunError> {
    if let Some(path) = options.inside.clone() {
        say(IN_NAMESPACE);
        return Ok((RunDirectory::existing(path), Vec::new(), None));
    }
    let making = RunError::io(format!("making a directory in {}", options.logs.display()));
    let directory = RunDirectory::create(&options.logs).map_err(making)?;
    let reason = if options.isolation {
        let hosts = host_map.map(|map| host_map::write_with_system(map, &directory)).transpose()?;
        isolation::enter(directory.path(), hosts.as_deref())
    } else {
        "--no-isolation".to_owned()
    };
    say(&format!("{ON_HOST}: {reason}"));
    let hosts = host_map.map(|map| host_map::write(map, &directory)).transpose()?;
    Ok((directory, free_port_settings()?, hosts))
}

/// The path of something that must exist.
fn absolute(path: &Path) -> Result<PathBuf, RunError> {
    path.canonicalize().map_err(RunError::io(path.display().to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), RunError> {
    fs::write(path, text).map_err(RunError::io(format!("writing {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_beside_the_others_or_an_example() {
        let directory = tempfile::tempdir().unwrap();
        let binaries = directory.path().to_owned();
        fs::create_dir(binaries.join("examples")).unwrap();
        for file in ["a-t", "examples/a-t", "examples/b-t"] {
            fs::write(binaries.join(file), "").unwrap();
        }
        let places = Places { binaries: binaries.clone(), folder: PathBuf::new(), workspace: PathBuf::new() };
        for (name, file) in [("a-t", "a-t"), ("b-t", "examples/b-t"), ("c-t", "c-t")] {
            assert_eq!(places.binary(name), binaries.join(file));
        }
    }
}
