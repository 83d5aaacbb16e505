//! One deployment's thread: polls the topology, steps the machine, performs what it says.

use super::Effects;
use super::control::{Control, REST, Woken};
use super::machine::{DirectTarget, Machine, Observation, ProbeKind};
use super::mapping::{Member, Members};
use super::perform::Performer;
use super::topology::{METADATA, NO_SUCH_TABLE, Topology};
use crate::hostgroups::{BgdStatus, HostgroupId};
use crate::monitor::probe;
use admin::rows::BgdHostgroupRow;
use crossbeam_channel::Sender;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use wire::WireError;

#[cfg(test)]
mod tests;

/// Whether the table exists; seen by the server as it is written here.
const TABLE_CHECK: &str =
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'";

/// Failures that follow one another are logged when they differ, and not more often than this.
const QUIET: Duration = Duration::from_secs(1);

/// How a worker's thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was asked to.
    Stopped,
    /// It panicked, and has rolled back as far as it could.
    Panicked,
}

/// A running worker.
pub(super) struct Worker {
    control: Arc<Control>,
    thread: Option<JoinHandle<End>>,
}

impl Worker {
    /// Starts the thread; the deployment's status is NONE from here on. The bell rings when it has ended.
    pub fn start(effects: &Effects, row: BgdHostgroupRow, bell: Sender<()>) -> std::io::Result<Self> {
        let control = Arc::new(Control::default());
        let mut poller = Poller::new(effects.clone(), row, control.clone());
        Self::spawn(poller.id, control, bell, move || poller.run())
    }
    pub(super) fn spawn(
        id: HostgroupId,
        control: Arc<Control>,
        bell: Sender<()>,
        run: impl FnOnce() -> End + Send + 'static,
    ) -> std::io::Result<Self> {
        let ending = Ending { control: control.clone(), bell };
        let run = move || {
            let _ending = ending;
            run()
        };
        let thread = Builder::new().name(format!("bgd-{id}")).spawn(run)?;
        Ok(Self { control, thread: Some(thread) })
    }
    /// Asks it to roll back and end, without waiting.
    pub fn stop(&self) {
        self.control.stop();
    }
    /// Whether it has been asked to end.
    pub fn stopping(&self) -> bool {
        self.control.stopping()
    }
    /// Hands it a changed configuration.
    pub fn refresh(&self, row: BgdHostgroupRow) {
        self.control.refresh(row);
    }
    /// Tells it that LOAD has placed the servers anew and left its configuration as it was.
    pub fn reload(&self) {
        self.control.reload();
    }
    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.control.ended()
    }
    /// Waits for its end.
    pub fn join(mut self) -> End {
        self.thread.take().map_or(End::Stopped, |thread| thread.join().unwrap_or(End::Panicked))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // How it ended has been logged by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Tells of the thread's end, whatever brings it about.
struct Ending {
    control: Arc<Control>,
    bell: Sender<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.control.end();
        // Full, it rings already.
        let _ = self.bell.try_send(());
    }
}

pub(super) struct Poller {
    id: HostgroupId,
    effects: Effects,
    control: Arc<Control>,
    machine: Machine,
    performer: Performer,
    /// Blue writers as of the start or the last refresh, for a time when nothing is placed in the writer hostgroup.
    blue: Vec<Member>,
    /// Where the last poll went.
    place: String,
    /// The failure logged last, and when.
    failure: Option<(String, Instant)>,
}

impl Poller {
    pub fn new(effects: Effects, row: BgdHostgroupRow, control: Arc<Control>) -> Self {
        let id = row.writer_hostgroup;
        Self {
            id,
            performer: Performer::new(id, effects.clone()),
            effects,
            control,
            machine: Machine::new(row),
            blue: Vec::new(),
            place: String::new(),
            failure: None,
        }
    }

    fn run(&mut self) -> End {
        self.guard(Self::poll_until_stopped)
    }

    /// Has it polled, and rolls back at the end, even if that is a panic.
    pub fn guard(&mut self, poll: impl FnOnce(&mut Self)) -> End {
        let polling = catch_unwind(AssertUnwindSafe(|| poll(self)));
        if polling.is_err() {
            log::error!("blue/green deployment {}: the worker panicked; rolling back", self.id);
        }
        self.place.clear();
        let exit = catch_unwind(AssertUnwindSafe(|| self.observe(Observation::Exit)));
        if exit.is_err() {
            log::error!(
                "blue/green deployment {}: the rollback panicked; effects may be left behind",
                self.id
            );
        }
        if polling.is_ok() && exit.is_ok() { End::Stopped } else { End::Panicked }
    }

    pub fn poll_until_stopped(&mut self) {
        self.effects.backends.update(|groups| groups.set_bgd_status(self.id, BgdStatus::None));
        self.blue = self.blue_writers();
        let rested = Instant::now() + REST;
        while self.control.wait(rested, || false) == Woken::Reload {}
        while !self.control.stopping() {
            if let Some(row) = self.control.take_refresh() {
                self.refresh(row);
            }
            let started = Instant::now();
            let version = self.effects.config.variables_version();
            if self.effects.config.variables().monitor_enabled {
                let direct = self.machine.direct().map(|target| target.address);
                let observation = self.poll();
                if self.control.stopping() {
                    return;
                }
                let failed = observation == Observation::Failure;
                self.observe(observation);
                if let Some(address) = direct.filter(|_| failed && self.machine.direct().is_none()) {
                    log::warn!(
                        "blue/green deployment {}: {address} is given up; asking a blue writer",
                        self.id
                    );
                }
            }
            let config = Arc::clone(&self.effects.config);
            let changed = || config.variables_version() != version;
            while self.control.wait(started + self.machine.interval(), changed) == Woken::Reload {
                self.place.clear();
                self.publish_again();
                let members = self.members();
                self.observe(Observation::Reload(members));
            }
        }
    }

    fn refresh(&mut self, row: BgdHostgroupRow) {
        log::info!("blue/green deployment {}: the configuration changed", self.id);
        self.place.clear();
        self.publish_again();
        self.blue = self.blue_writers();
        let members = self.effects.backends.read(|groups| Members::of(groups, &row));
        self.observe(Observation::Refresh { row, members });
    }

    /// LOAD removes a deployment that nobody configured. If discovery has made it anew before that was noticed, it has no status.
    fn publish_again(&self) {
        let status = self.machine.published();
        self.effects.backends.update(|groups| groups.set_bgd_status(self.id, status));
    }

    /// Steps the machine and performs its actions in order, each answer's actions before the rest.
    fn observe(&mut self, observation: Observation) {
        let mut actions = VecDeque::from(self.machine.step(observation, Instant::now()));
        while let Some(action) = actions.pop_front() {
            let timeout = self.timeout();
            if let Some(answer) = self.performer.perform(action, timeout, &self.place) {
                let more = self.machine.step(answer, Instant::now());
                more.into_iter().rev().for_each(|action| actions.push_front(action));
            }
        }
    }

    fn poll(&mut self) -> Observation {
        let direct = self.machine.direct().cloned();
        let to_green = direct.is_some();
        let target = match direct.map_or_else(|| self.blue_target(), Ok) {
            Ok(target) => target,
            Err((level, reason)) => return self.failed(level, reason),
        };
        self.place = format!(" on {}", target.address);
        let kind = self.machine.kind();
        let sql = match kind {
            ProbeKind::TableCheck => TABLE_CHECK,
            ProbeKind::Metadata => METADATA,
        };
        let at = probe::Target {
            address: target.address,
            tls: target.use_ssl,
            server_name: &target.host,
            by: None,
        };
        let answer = self.effects.probes.query(&at, sql, self.timeout());
        let observation = match (kind, answer) {
            (ProbeKind::TableCheck, Ok(result)) if result.rows.is_empty() => Observation::TableAbsent,
            (ProbeKind::TableCheck, Ok(_)) => Observation::TablePresent,
            (ProbeKind::Metadata, Ok(result)) => {
                Observation::Metadata { topology: Topology::parse(&result), members: self.members() }
            }
            (ProbeKind::Metadata, Err(WireError::Sql(error))) if error.code == NO_SUCH_TABLE => {
                Observation::Vanished
            }
            (_, Err(error)) => {
                let server = if to_green { "green" } else { "blue" };
                let reason =
                    format!("topology fetch from the {server} writer {} failed: {error}", target.address);
                return self.failed(log::Level::Warn, reason);
            }
        };
        self.failure = None;
        observation
    }

    fn failed(&mut self, level: log::Level, reason: String) -> Observation {
        let logged = self.failure.as_ref().is_some_and(|(last, at)| *last == reason || at.elapsed() < QUIET);
        if !logged {
            log::log!(level, "blue/green deployment {}: {reason}; state kept", self.id);
            self.failure = Some((reason, Instant::now()));
        }
        Observation::Failure
    }

    /// A blue writer picked at random among those that answer pings, by name through the DNS cache.
    fn blue_target(&self) -> Result<DirectTarget, (log::Level, String)> {
        use log::Level::{Error, Warn};
        let eligible =
            |members: &[Member]| members.iter().filter(|m| m.eligible()).cloned().collect::<Vec<_>>();
        let mut writers = eligible(&self.blue_writers());
        if writers.is_empty() {
            writers = eligible(&self.blue);
        }
        if writers.is_empty() {
            return Err((Warn, format!("no eligible server in writer hostgroup {}", self.id)));
        }
        let most = self.effects.config.variables().monitor_ping_max_failures;
        writers.retain(|writer| self.effects.health.responds(&writer.endpoint, most));
        if writers.is_empty() {
            return Err((Error, format!("no server of writer hostgroup {} answers pings", self.id)));
        }
        let writer = writers.swap_remove(fastrand::usize(..writers.len()));
        let endpoint = writer.endpoint;
        let ip = self.effects.dns.resolve(&endpoint.host, Instant::now() + self.timeout());
        let address = SocketAddr::new(ip.map_err(|error| (Warn, error.to_string()))?, endpoint.port);
        Ok(DirectTarget { address, use_ssl: writer.use_ssl, host: endpoint.host })
    }

    fn members(&self) -> Members {
        self.effects.backends.read(|groups| Members::of(groups, self.machine.row()))
    }

    /// Blue writers as they are placed. One that is demoted counts: a poll may have demoted it again since LOAD has put it back.
    fn blue_writers(&self) -> Vec<Member> {
        let mut members = self.members();
        if let Some(writer) = self.machine.moved_writer() {
            members.restore_writer(writer);
        }
        members.blue_writers
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.machine.row().check_timeout_ms.into())
    }
}
