//! One complete switchover under live traffic, told as it happens.

mod deployment;
mod narrator;
mod traffic;
mod watcher;

use crate::admin;
use crate::command_line::CommandLine;
use crate::connection::{Connection, Error};
use crate::daemon::{Daemon, DaemonError, Launch, free_port_settings};
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::scenario::routing_echo;
use crate::simulator::{RdsBgdCluster, RdsBgdSimulator};
use deployment::{HOSTGROUPS, Names};
use narrator::Narrator;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};
use traffic::{Totals, Traffic};
use watcher::Watcher;

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

/// Traffic before anything happens and after everything has.
const QUIET: Duration = Duration::from_millis(500);
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// What AWS publishes while both deployments exist, the status it leads to, and how long it lasts.
const PHASES: [(&str, &str, Duration); 4] = [
    ("AVAILABLE", "AVAILABLE", Duration::from_secs(1)),
    ("SWITCHOVER_INITIATED", "WRITER_SWITCHOVER_INITIATED", Duration::from_secs(1)),
    ("SWITCHOVER_IN_PROGRESS", "WRITER_SWITCHOVER_IN_PROGRESS", Duration::from_secs(2)),
    ("SWITCHOVER_IN_POST_PROCESSING", "WRITER_SWITCHOVER_POST_PROCESSING", Duration::from_secs(2)),
];
const COMPLETED_LASTS: Duration = Duration::from_secs(1);

/// Why the demonstration could not be shown to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The daemon
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A statement on the admin or simulator port, or an effect that did not come
    #[error(transparent)]
    Control(#[from] Error),
    /// Threads, signals or temporary files
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A signal
    #[error("interrupted")]
    Interrupted,
}

/// Shows one switchover with the daemon `program`. Whether no statement failed and green answers at the end.
pub fn run(program: &Path) -> Result<bool, DemoError> {
    let interrupt = Interrupt::register()?;
    let directory = tempfile::Builder::new().prefix("pointsman-demo-").tempdir()?;
    let names = Names::create(directory.path())?;
    let log_file = directory.path().join("daemon.log");
    let settings = free_port_settings()?;
    let hosts_file = Some(names.path().to_owned());
    let launch =
        Launch { program: program.to_owned(), datadir: None, hosts_file, log_file, pid_file: None, settings };
    let daemon = Daemon::start(&launch, &interrupt)?;

    let shown = Demonstration::set_up(daemon.command_line(), names, interrupt).and_then(Demonstration::show);
    if !matches!(shown, Ok(true)) {
        println!("The daemon's log ends with:\n{}", daemon.log_tail());
    }
    let stopped = daemon.stop();
    let good = shown?;
    stopped?;
    Ok(good)
}

struct Demonstration {
    command_line: CommandLine,
    names: Names,
    interrupt: Interrupt,
    cluster: RdsBgdCluster,
    narrator: Arc<Narrator>,
    admin: Connection,
    simulator: RdsBgdSimulator,
}

impl Demonstration {
    fn set_up(command_line: CommandLine, names: Names, interrupt: Interrupt) -> Result<Self, DemoError> {
        let cluster = hosts::cluster_1_green_a(command_line.simulator.port);
        let narrator = Arc::new(Narrator::new(cluster.clone()));
        narrator.step(&format!(
            "the daemon is ready: traffic {}, admin {}",
            command_line.traffic, command_line.admin
        ));
        let mut admin = command_line.connect_admin()?;
        let simulator = deployment::configure(&command_line, &mut admin, &cluster)?;
        Ok(Self { command_line, names, interrupt, cluster, narrator, admin, simulator })
    }

    fn show(mut self) -> Result<bool, DemoError> {
        let watcher = Watcher::start(self.command_line.connect_admin()?, &self.narrator)?;
        let traffic = Traffic::start(&self.command_line, &self.narrator)?;
        self.switch_over()?;
        let totals = traffic.finish();
        drop(watcher);
        let last_answer = routing_echo(&mut self.command_line.connect_traffic()?)?;
        self.narrator.answered(&last_answer);
        self.print_summary(&totals);
        Ok(totals.failed == 0 && last_answer == self.cluster.green_writer.ip)
    }

    fn switch_over(&mut self) -> Result<(), DemoError> {
        self.pause_until(Instant::now() + QUIET)?;
        let writers = self.cluster.get_writers();
        for (published, status, lasts) in PHASES {
            let end = Instant::now() + lasts;
            self.narrator.step(&format!("AWS publishes {published}"));
            self.simulator.topology_update(&writers, &self.cluster.get_topology(published))?;
            self.admin.wait_until(&admin::status_is(HOSTGROUPS.writer, status))?;
            self.pause_until(end)?;
        }
        // AWS says "completed" when the blue names lead to the green servers.
        let end = Instant::now() + COMPLETED_LASTS;
        self.names.move_to_green(&self.cluster)?;
        self.narrator.step("AWS publishes SWITCHOVER_COMPLETED, the blue names lead to green");
        self.simulator.topology_update(&writers, &self.cluster.get_completed_topology())?;
        self.admin.wait_until(&admin::status_is(HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS"))?;
        self.pause_until(end)?;

        self.narrator.step("AWS empties the topology");
        self.simulator.topology_delete(&writers)?;
        self.admin.wait_until(&admin::status_is(HOSTGROUPS.writer, "NONE"))?;
        self.pause_until(Instant::now() + QUIET)
    }

    fn pause_until(&self, end: Instant) -> Result<(), DemoError> {
        loop {
            if self.interrupt.raised() {
                return Err(DemoError::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(INTERRUPT_POLL));
        }
    }

    fn print_summary(&self, totals: &Totals) {
        let (before, after) = self.narrator.before_and_after();
        println!();
        println!("statements sent  {}", totals.sent);
        println!("failed           {}", totals.failed);
        println!("longest pause    {} ms", totals.longest_pause.as_millis());
        println!("answered before  {before}");
        println!("answered after   {after}");
    }
}
