//! Runs the binaries of a test group against a daemon of their own and reports.

mod execution;
mod group;
mod isolation;
mod options;
mod report;
mod summary;

pub use group::GroupError;
pub use options::{HELP, Options, parse};

use crate::command_line::CommandLine;
use crate::daemon::{Daemon, DaemonError, Launch, free_port_settings};
use crate::interrupt::Interrupt;
use group::Registry;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};
use summary::Tally;

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
    /// The group's pre-proxysql.bash failed
    #[error("{} failed", .0.display())]
    Hook(PathBuf),
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

/// Runs what `options` say, printing as it happens. Whether everything passed.
pub fn run(options: &Options) -> Result<bool, RunError> {
    let names = Registry::read(&options.groups_dir)?.binaries(&options.group, options.only.as_deref())?;
    let binaries = binaries_dir(options)?;
    let settings = network_settings(options.isolation)?;
    let interrupt = Interrupt::register().map_err(RunError::io("taking over signals"))?;
    let logs = &options.logs;
    fs::create_dir_all(logs).map_err(RunError::io(format!("making {}", logs.display())))?;

    let log_file = logs.join("daemon.log");
    let hosts_file = absolute(&options.hosts_file)?;
    let launch =
        Launch { program: absolute(&options.daemon)?, hosts_file: Some(hosts_file), log_file, settings };
    let mut daemon = Daemon::start(&launch, &interrupt)?;
    let command_line = daemon.command_line();
    set_up(options, &command_line).inspect_err(|_| print_log_tail(&daemon))?;

    let tallies = run_all(&names, &binaries, options, &mut daemon, &interrupt);
    let failed = tallies.iter().any(|tally| tally.failed > 0);
    if failed {
        print_log_tail(&daemon);
    }
    // A daemon that is gone already did not wait to be told to stop.
    let daemon_problem = match daemon.ended() {
        Some(status) => Some(format!("the daemon ended during the run with {status}")),
        None => daemon.stop().err().map(|error| error.to_string()),
    };
    if let Some(problem) = &daemon_problem {
        println!("FAILED {problem}");
    }
    println!("\n{}", summary::table(&tallies, daemon_problem.is_some()).trim_end());
    Ok(!failed && daemon_problem.is_none() && !interrupt.raised())
}

/// Runs every binary `options.repeat` times, until a signal arrives or the daemon ends.
fn run_all(
    names: &[String],
    binaries: &Path,
    options: &Options,
    daemon: &mut Daemon,
    interrupt: &Interrupt,
) -> Vec<Tally> {
    let command_line = daemon.command_line();
    let mut tallies: Vec<_> = names.iter().map(|name| Tally::new(name)).collect();
    for round in 1..=options.repeat {
        for tally in &mut tallies {
            if interrupt.raised() || daemon.ended().is_some() {
                return tallies;
            }
            let mut command = Command::new(binaries.join(&tally.name));
            command.envs(command_line.to_environment());
            let log_file = options.logs.join(format!("{}.{round}.log", tally.name));
            let outcome = execution::run(command, &log_file, options.timeout, interrupt);
            print!("{}", summary::describe(&tally.name, &outcome));
            if !outcome.passed() {
                println!("         output: {}", log_file.display());
            }
            tally.add(&outcome);
        }
    }
    tallies
}

/// The daemon's `--set` values: none inside a namespace, where the usual ports are free.
///
/// Entering a namespace starts this process anew, so it returns only from inside or when there is no namespace.
fn network_settings(isolation: bool) -> Result<Vec<(String, String)>, RunError> {
    if isolation::isolated() {
        return Ok(Vec::new());
    }
    if isolation {
        let reason = isolation::enter();
        println!("No network namespace, using free ports of the host's loopback: {reason}");
    }
    Ok(free_port_settings()?)
}

/// The group's hooks, as far as it has them: pre-proxysql.bash, then pre-proxysql.sql on the admin port.
fn set_up(options: &Options, command_line: &CommandLine) -> Result<(), RunError> {
    let folder = group::folder(&absolute(&options.groups_dir)?, &options.group);
    let hook = folder.join("pre-proxysql.bash");
    if hook.exists() {
        let workspace = folder.ancestors().nth(2).unwrap_or(&folder);
        let mut command = Command::new("bash");
        command.arg(&hook).envs(command_line.to_environment()).env("WORKSPACE", workspace);
        let status = command.status().map_err(RunError::io(format!("running {}", hook.display())))?;
        if !status.success() {
            return Err(RunError::Hook(hook));
        }
    }
    let statements = group::setup_statements(&folder, command_line.simulator.port)?;
    let mut admin = command_line.connect_admin()?;
    for statement in &statements {
        admin.execute(statement)?;
    }
    Ok(())
}

fn binaries_dir(options: &Options) -> Result<PathBuf, RunError> {
    match &options.binaries {
        Some(directory) => absolute(directory),
        None => {
            let runner =
                env::current_exe().map_err(RunError::io("looking for the runner's own directory"))?;
            Ok(runner.parent().unwrap_or(&runner).to_owned())
        }
    }
}

/// The path of something that must exist.
fn absolute(path: &Path) -> Result<PathBuf, RunError> {
    path.canonicalize().map_err(RunError::io(path.display().to_string()))
}

fn print_log_tail(daemon: &Daemon) {
    println!("The daemon's log ends with:\n{}", daemon.log_tail());
}
