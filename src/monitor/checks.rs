//! Performing checks: of each kind one at a time for each server, on the probe threads.

mod discovery;

use super::health::{Health, Noted, Pong};
use super::job::{Cause, Check, Failure, Job, Task};
use super::kind::Kind;
use super::log::{Entry, Log};
use super::probe::{Probes, Target};
use super::read_only::is_read_only;
use super::replication_lag::{self, Lag};
use super::suppression::{Admission, Suppression};
use super::{read_only, targets};
use crate::config::Config;
use crate::dns::Dns;
use crate::hostgroups::Endpoint;
use crate::pool::Backends;
use admin::Value;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::mem::Discriminant;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::backend::Backend;

/// Longest wait for a name's address. A lookup that takes longer goes on, and the next check has its answer.
const NAME_LIMIT: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    /// Checks that are queued or under way.
    busy: HashSet<(Discriminant<Task>, Endpoint)>,
    /// Checks that were begun once, and have their place in the schedule since.
    scheduled: HashSet<(Kind, Endpoint)>,
    /// How many read_only checks of a server ran out of time, one after the other.
    timeouts: HashMap<Endpoint, u32>,
    /// How many checks in a row found nobody at a server; 0: one took longer than others could wait.
    absent: HashMap<Endpoint, u32>,
}

/// The log of a kind, and how its checks ended since the start.
#[derive(Default)]
struct Record {
    log: Mutex<Log>,
    ok: AtomicU64,
    failed: AtomicU64,
}

/// The checks' state and what they work with.
pub struct Checks {
    config: Arc<Config>,
    backends: Arc<Backends>,
    dns: Arc<Dns>,
    probes: Arc<Probes>,
    suppression: Arc<Suppression>,
    health: Arc<Health>,
    state: Mutex<State>,
    records: [Record; Kind::ALL.len()],
}

impl Checks {
    /// No check is under way yet.
    pub fn new(
        config: Arc<Config>,
        backends: Arc<Backends>,
        dns: Arc<Dns>,
        probes: Arc<Probes>,
        suppression: Arc<Suppression>,
        health: Arc<Health>,
    ) -> Self {
        let (state, records) = Default::default();
        Self { config, backends, dns, probes, suppression, health, state, records }
    }
    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Rows of a kind's table.
    pub fn log_rows(&self, kind: Kind) -> Vec<Vec<Value>> {
        self.record(kind).log.lock().rows(kind)
    }
    /// How many checks of a kind went well, and how many did not.
    pub fn counts(&self, kind: Kind) -> (u64, u64) {
        let Record { ok, failed, .. } = self.record(kind);
        (ok.load(Ordering::Relaxed), failed.load(Ordering::Relaxed))
    }
    /// Connections of the checks.
    pub fn probes(&self) -> &Probes {
        &self.probes
    }
    /// The checks of one cycle, in random order: every server that the kind concerns, but those suspended and those whose last check
    /// of the kind has not ended.
    pub fn due(&self, kind: Kind) -> Vec<Job> {
        let mut jobs = self.jobs(kind);
        fastrand::shuffle(&mut jobs);
        let mut state = self.state.lock();
        state.scheduled.retain(|(of, _)| *of != kind);
        state.scheduled.extend(jobs.iter().map(|job| (kind, job.endpoint.clone())));
        jobs.retain(|job| state.busy.insert(job.key()));
        jobs
    }
    /// The checks of servers that have come since the last cycles. The others keep their place, however often servers are loaded.
    pub fn of_newcomers(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Kind::ALL.into_iter().flat_map(|kind| self.jobs(kind)).collect();
        let mut state = self.state.lock();
        jobs.retain(|job| {
            state.scheduled.insert((job.kind(), job.endpoint.clone())) && state.busy.insert(job.key())
        });
        jobs
    }
    /// Grows where there may be newcomers.
    pub fn placements(&self) -> u64 {
        self.backends.updates()
    }
    /// Whether a check had better not wait for its turn among those that go well: nobody was there the last time, or slow to
    /// answer. Says how many times in a row nobody was.
    pub fn may_take_long(&self, job: &Job) -> Option<u32> {
        self.state.lock().absent.get(&job.endpoint).copied()
    }
    /// Nobody checks servers any more: what only checks would take back is taken back.
    pub fn forget(&self) {
        self.backends.update(|hostgroups| hostgroups.forget_checks());
        self.health.retain(|_| false);
        let mut state = self.state.lock();
        state.timeouts.clear();
        state.absent.clear();
        state.scheduled.clear();
    }
    /// Performs a check and applies its result. `patience` is how long others can wait for it, if any do: one that takes longer
    /// is given up without a result, false is returned, and the check is still to be made.
    pub fn perform(&self, job: &Job, patience: Option<Duration>) -> bool {
        let mut busy = Busy { checks: self, job, ended: true };
        let given_up = GivenUp { by: patience.map(|patience| Instant::now() + patience) };
        let done = match &job.task {
            Task::Connect => self.check_connect(job, given_up),
            Task::Ping => self.check_ping(job, given_up),
            Task::ReadOnly { sql, admission } => self.check_read_only(job, sql, *admission, given_up),
            Task::ReplicationLag => self.check_lag(job, given_up),
            Task::Discovery { admission } => self.discover(job, *admission, given_up),
        };
        busy.ended = done.is_some();
        if done.is_none() {
            self.state.lock().absent.entry(job.endpoint.clone()).or_default();
        }
        done.is_some()
    }

    fn jobs(&self, kind: Kind) -> Vec<Job> {
        let job = |(endpoint, tls), task| Job { endpoint, tls, task };
        match kind {
            Kind::Connect => {
                let all = self.backends.read(targets::all);
                all.into_iter().map(|target| job(target, Task::Connect)).collect()
            }
            Kind::Ping => {
                let all = self.backends.read(targets::all);
                self.health.retain(|endpoint| all.contains_key(endpoint));
                self.state.lock().absent.retain(|endpoint, _| all.contains_key(endpoint));
                all.into_iter().map(|target| job(target, Task::Ping)).collect()
            }
            Kind::ReadOnly => {
                let targets = self.backends.read(read_only::targets);
                let known: HashSet<&Endpoint> = targets.iter().map(|target| &target.endpoint).collect();
                self.state.lock().timeouts.retain(|endpoint, _| known.contains(endpoint));
                let admitted = targets.into_iter().filter_map(|read_only::Target { endpoint, tls, sql }| {
                    let admission = self.suppression.admit(&endpoint)?;
                    Some(Job { endpoint, tls, task: Task::ReadOnly { sql, admission } })
                });
                admitted.collect()
            }
            Kind::ReplicationLag => {
                let replicas = self.backends.read(targets::replicas);
                replicas.into_iter().map(|target| job(target, Task::ReplicationLag)).collect()
            }
        }
    }
    fn check_connect(&self, job: &Job, given_up: GivenUp) -> Option<()> {
        let limit = self.config.variables().monitor_connect_timeout;
        let check = self.run(job, limit, given_up, |target, _| Ok(self.probes.connect(target)?))?;
        self.write(job, &check, |()| None);
        Some(())
    }
    fn check_ping(&self, job: &Job, given_up: GivenUp) -> Option<()> {
        let endpoint = &job.endpoint;
        let variables = self.config.variables();
        let (limit, most) = (variables.monitor_ping_timeout, variables.monitor_ping_max_failures);
        drop(variables);
        let mut check =
            self.run(job, limit, given_up, |target, limit| Ok(self.probes.ping(target, limit)?))?;
        let pong = match &check.result {
            Ok(latency) => Some(Pong::Answered(*latency)),
            Err(failure) => match failure.cause {
                Cause::Refused => Some(Pong::Refused),
                // The server was not asked, and may be well.
                Cause::NoAddress => None,
                Cause::Timeout | Cause::Other => Some(Pong::Missed),
            },
        };
        if let Ok(latency) = &check.result {
            // Whether a connection had to be opened first says nothing of the answer.
            check.took = *latency;
        }
        self.write(job, &check, |_| None);
        let Some(pong) = pong else { return Some(()) };
        let Noted { missed, latency, back } = self.health.note(endpoint, pong);
        if let Some(latency) = latency {
            self.backends.set_latency(endpoint, latency);
        }
        if back {
            ::log::info!("{endpoint} answers pings again");
        }
        let shunned = missed >= most && self.backends.shun_unresponsive(endpoint, Instant::now());
        if shunned && self.health.tell_gone(endpoint) {
            ::log::error!(
                "{endpoint} has missed {missed} pings in a row: it is shunned, its connections are closed"
            );
        }
        Some(())
    }
    /// The result is dropped if the server was suspended meanwhile.
    fn check_read_only(&self, job: &Job, sql: &str, admission: Admission, given_up: GivenUp) -> Option<()> {
        let endpoint = &job.endpoint;
        if !self.suppression.still_admits(endpoint, admission) {
            return Some(());
        }
        let limit = self.config.variables().monitor_read_only_timeout;
        let check = self.run(job, limit, given_up, |target, limit| {
            Ok(is_read_only(&self.probes.query(target, sql, limit)?))
        })?;
        if !self.suppression.still_admits(endpoint, admission) {
            return Some(());
        }
        self.write(job, &check, |read_only| Some((*read_only).into()));
        if let Some(read_only) = self.verdict(endpoint, &check.result) {
            self.place(endpoint, read_only, admission);
        }
        Some(())
    }
    fn check_lag(&self, job: &Job, given_up: GivenUp) -> Option<()> {
        let endpoint = &job.endpoint;
        let variables = self.config.variables();
        let limit = variables.monitor_replication_lag_timeout;
        let heartbeat = variables.monitor_replication_lag_heartbeat.clone();
        let when_null = variables.monitor_slave_lag_when_null;
        let needed = variables.monitor_replication_lag_count;
        drop(variables);
        let check = self.run(job, limit, given_up, |target, limit| {
            let sql = |backend: &Backend| replication_lag::statement(&backend.server_version, &heartbeat);
            let answer = self.probes.ask(target, sql, limit)?;
            match replication_lag::read(&answer) {
                Ok(Lag::NoReplica) => Ok(None),
                Ok(Lag::Unknown) => Ok(Some(when_null)),
                Ok(Lag::Seconds(seconds)) => Ok(Some(seconds)),
                Err(text) => Err(Failure { text, cause: Cause::Refused }),
            }
        })?;
        self.write(job, &check, |lag| Some((*lag).into()));
        // An error says nothing of the lag.
        if let Ok(lag) = check.result {
            for line in self.backends.apply_lag(endpoint, lag, needed) {
                ::log::warn!("{line}");
            }
        }
        Some(())
    }

    /// Looks the server's name up and asks, within `limit`. `None` if that was given up for the sake of others.
    fn run<T>(
        &self,
        job: &Job,
        limit: Duration,
        given_up: GivenUp,
        ask: impl FnOnce(&Target<'_>, Duration) -> Result<T, Failure>,
    ) -> Option<Check<T>> {
        let start_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
        let start = Instant::now();
        let Endpoint { host, port } = &job.endpoint;
        let result = match self.dns.resolve(host, given_up.earlier(start + limit.min(NAME_LIMIT))) {
            Ok(address) => {
                let address = SocketAddr::new(address, *port);
                let target = Target { address, tls: job.tls, server_name: host, by: given_up.by };
                let result = ask(&target, limit.saturating_sub(start.elapsed()));
                result.map_err(|failure| match failure.cause {
                    Cause::Timeout | Cause::Other if !self.dns.leads_to(host, address.ip()) => {
                        Failure::misled(address)
                    }
                    _ => failure.located(address, start.elapsed()),
                })
            }
            Err(error) => Err(Failure { text: error.to_string(), cause: Cause::NoAddress }),
        };
        let for_want_of_time = matches!(&result, Err(failure)
            if matches!(failure.cause, Cause::Timeout | Cause::NoAddress) && given_up.is_over());
        (!for_want_of_time).then(|| Check { start_us, took: start.elapsed(), result })
    }
    /// Writes a check to the log of its kind and counts it.
    fn write<T>(&self, job: &Job, check: &Check<T>, value: impl FnOnce(&T) -> Option<Value>) {
        self.count(job, check);
        let kind = job.kind();
        let result = match &check.result {
            Ok(found) => Ok((micros(check.took), value(found))),
            Err(failure) => Err(failure.text.clone()),
        };
        let entry = Entry { endpoint: job.endpoint.clone(), start_us: check.start_us, result };
        let history = kind.history(&self.config.variables());
        self.record(kind).log.lock().push(entry, history);
    }
    /// Counts a check, and takes note of whether anybody was there.
    fn count<T>(&self, job: &Job, check: &Check<T>) {
        let endpoint = &job.endpoint;
        let absent = matches!(&check.result, Err(failure) if failure.cause != Cause::Refused);
        let mut state = self.state.lock();
        if absent {
            let failures = state.absent.entry(endpoint.clone()).or_default();
            *failures = failures.saturating_add(1);
        } else {
            state.absent.remove(endpoint);
        }
        drop(state);
        let record = self.record(job.kind());
        let counter = if check.result.is_ok() { &record.ok } else { &record.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    /// What to take a server for: its value, or read_only=1 once its checks have timed out
    /// `mysql-monitor_read_only_max_timeout_count` times in a row. Other errors say nothing.
    fn verdict(&self, endpoint: &Endpoint, result: &Result<bool, Failure>) -> Option<bool> {
        let limit = self.config.variables().monitor_read_only_max_timeout_count;
        let mut state = self.state.lock();
        if !matches!(result, Err(failure) if failure.cause == Cause::Timeout) {
            state.timeouts.remove(endpoint);
            return result.as_ref().ok().copied();
        }
        let count = state.timeouts.entry(endpoint.clone()).or_default();
        *count = count.saturating_add(1);
        (*count >= limit).then_some(true)
    }
    /// Placement is touched only where it changes, since that wakes waiting sessions. That no suspension began is asked
    /// once more under its lock: a switchover suspends first and moves servers under the same lock afterwards.
    pub(crate) fn place(&self, endpoint: &Endpoint, read_only: bool, admission: Admission) {
        if !self.backends.read(|hostgroups| hostgroups.read_only_moves(endpoint, read_only)) {
            return;
        }
        let also_reader = self.config.variables().monitor_writer_is_also_reader;
        let lines = self.backends.update(|hostgroups| {
            if self.suppression.still_admits(endpoint, admission) {
                hostgroups.apply_read_only(endpoint, read_only, also_reader)
            } else {
                Vec::new()
            }
        });
        for line in lines {
            ::log::warn!("{line}");
        }
    }
    fn record(&self, kind: Kind) -> &Record {
        let [connect, ping, read_only, replication_lag] = &self.records;
        match kind {
            Kind::Connect => connect,
            Kind::Ping => ping,
            Kind::ReadOnly => read_only,
            Kind::ReplicationLag => replication_lag,
        }
    }
}

/// When a check is given up that others wait for.
#[derive(Clone, Copy)]
struct GivenUp {
    by: Option<Instant>,
}

impl GivenUp {
    fn earlier(self, deadline: Instant) -> Instant {
        self.by.map_or(deadline, |by| by.min(deadline))
    }
    fn is_over(self) -> bool {
        self.by.is_some_and(|by| Instant::now() >= by)
    }
}

/// Marks a check as ended, whatever its end; not one that is still to be made.
struct Busy<'a> {
    checks: &'a Checks,
    job: &'a Job,
    ended: bool,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if self.ended {
            self.checks.state.lock().busy.remove(&self.job.key());
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
