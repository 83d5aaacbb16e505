//! Every binary of the group, as often as wanted.

use super::execution::{self, Outcome};
use super::junit::Suite;
use super::run_directory::RunDirectory;
use super::summary::{self, Tally};
use super::{Options, Places, say};
use crate::command_line::CommandLine;
use crate::daemon::Daemon;
use crate::interrupt::Interrupt;
use fastrand::Rng;
use std::fs;
use std::process::Command;

/// How the daemon's log tells of a panic in one of its threads, which need not end the daemon.
const PANIC: &str = " panicked at ";

/// What to run, and where.
pub struct Rounds<'a> {
    /// How often and how long
    pub options: &'a Options,
    /// The binaries
    pub places: &'a Places,
    /// Receives the outputs
    pub directory: &'a RunDirectory,
    /// For the binaries
    pub command_line: &'a CommandLine,
}

impl Rounds<'_> {
    /// Runs the binaries, `options.repeat` times, until a signal arrives or the daemon ends; those of the round that are left then
    /// have failed.
    pub fn run(
        &self,
        names: &[String],
        daemon: &mut Daemon,
        interrupt: &Interrupt,
    ) -> (Vec<Tally>, Vec<Suite>) {
        let mut tallies: Vec<_> = names.iter().map(|name| Tally::new(name)).collect();
        let mut suites = Vec::new();
        let mut order: Vec<usize> = (0..tallies.len()).collect();
        let mut random = self.options.shuffle.map(Rng::with_seed);
        for round in 1..=self.options.repeat {
            if let Some(random) = &mut random {
                random.shuffle(&mut order);
            }
            for place in &order {
                let tally = &mut tallies[*place];
                let suite = match reason_to_end(daemon, interrupt) {
                    Some(reason) => self.suite(&tally.name, round, Outcome::not_run(&reason)),
                    None => self.run_one(&tally.name, round, daemon, interrupt),
                };
                self.print(&tally.name, round, &suite);
                tally.add(&suite.outcome);
                suites.push(suite);
            }
            if reason_to_end(daemon, interrupt).is_some() {
                break;
            }
        }
        (tallies, suites)
    }

    fn run_one(&self, name: &str, round: u32, daemon: &mut Daemon, interrupt: &Interrupt) -> Suite {
        let mut command = Command::new(self.places.binary(name));
        command.envs(self.command_line.to_environment());
        let log_file = self.directory.output(name, round);
        let log_length = daemon.log_length();
        let mut give_up = || reason_to_end(daemon, interrupt);
        let mut outcome = execution::run(command, &log_file, self.options.timeout, &mut give_up);
        let daemon_log = daemon.log_after(log_length);
        if let Some(line) = daemon_log.lines().find(|line| line.contains(PANIC)) {
            outcome.problems.push(format!("in the daemon's log: {line}"));
        }
        // Its absence has been reported as the reason why the binary could not be run.
        let output = fs::read(&log_file).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        Suite { output, daemon_log, ..self.suite(name, round, outcome) }
    }

    fn suite(&self, name: &str, round: u32, outcome: Outcome) -> Suite {
        let name = if self.options.repeat > 1 { format!("{name} round {round}") } else { name.to_owned() };
        Suite { name, outcome, output: String::new(), daemon_log: String::new() }
    }

    fn print(&self, name: &str, round: u32, suite: &Suite) {
        say(summary::describe(&suite.name, &suite.outcome).trim_end());
        if suite.outcome.passed() {
            return;
        }
        say(&format!("         output: {}", self.directory.output(name, round).display()));
        if !suite.daemon_log.is_empty() {
            say("         the daemon's log meanwhile:");
            say(summary::excerpt(&suite.daemon_log).trim_end());
        }
    }
}

fn reason_to_end(daemon: &mut Daemon, interrupt: &Interrupt) -> Option<String> {
    if interrupt.raised() {
        return Some("interrupted".to_owned());
    }
    daemon.ended().map(|status| format!("the daemon has ended: {status}"))
}
