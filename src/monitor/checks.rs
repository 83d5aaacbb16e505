//! Performing checks: of each kind one at a time for each server, on the probe threads.

use super::health::{Health, Noted, Pong};
use super::kind::Kind;
use super::log::{Entry, Log};
use super::probe::{Probes, ends_connection};
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
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::WireError;
use wire::backend::Backend;

/// Longest wait for a name's address. A lookup that takes longer goes on, and the next check has its answer.
const NAME_LIMIT: Duration = Duration::from_secs(1);

/// A check that may begin.
pub struct Job {
    endpoint: Endpoint,
    /// Whether its row asks for TLS.
    tls: bool,
    task: Task,
}

enum Task {
    Connect,
    Ping,
    ReadOnly { sql: String, admission: Admission },
    ReplicationLag,
}

impl Job {
    /// Which kind of check.
    pub fn kind(&self) -> Kind {
        match self.task {
            Task::Connect => Kind::Connect,
            Task::Ping => Kind::Ping,
            Task::ReadOnly { .. } => Kind::ReadOnly,
            Task::ReplicationLag => Kind::ReplicationLag,
        }
    }
}

/// Why a check gave no value.
#[derive(Debug)]
struct Failure {
    text: String,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The name has no address.
    NoAddress,
    Timeout,
    /// The server says no, and so lives.
    Refused,
    Other,
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        let cause = match &error {
            WireError::Sql(error) if !ends_connection(error.code) => Cause::Refused,
            error if error.is_timeout() => Cause::Timeout,
            _ => Cause::Other,
        };
        Self { text: error.to_string(), cause }
    }
}

impl Failure {
    /// Says of a timeout where it was, and how long it took.
    fn located(self, address: SocketAddr, took: Duration) -> Self {
        match self.cause {
            Cause::Timeout => {
                Self { text: format!("timeout: no answer from {address} in {} ms", took.as_millis()), ..self }
            }
            _ => self,
        }
    }
}

#[derive(Default)]
struct State {
    /// Checks that are queued or under way.
    busy: HashSet<(Kind, Endpoint)>,
    /// Checks that were begun once, and have their place in the schedule since.
    scheduled: HashSet<(Kind, Endpoint)>,
    /// How many read_only checks of a server ran out of time, one after the other.
    timeouts: HashMap<Endpoint, u32>,
    /// Servers whose last check found nobody.
    absent: HashSet<Endpoint>,
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
        jobs.retain(|job| state.busy.insert((kind, job.endpoint.clone())));
        jobs
    }
    /// The checks of servers that have come since the last cycles. The others keep their place, however often servers are loaded.
    pub fn of_newcomers(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Kind::ALL.into_iter().flat_map(|kind| self.jobs(kind)).collect();
        let mut state = self.state.lock();
        jobs.retain(|job| {
            let key = (job.kind(), job.endpoint.clone());
            state.scheduled.insert(key.clone()) && state.busy.insert(key)
        });
        jobs
    }
    /// Grows where there may be newcomers.
    pub fn placements(&self) -> u64 {
        self.backends.updates()
    }
    /// Whether a check had better not wait for its turn among those that go well: nobody was there the last time.
    pub fn may_take_long(&self, job: &Job) -> bool {
        self.state.lock().absent.contains(&job.endpoint)
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
    /// Performs a check and applies its result.
    pub fn perform(&self, job: &Job) {
        let _busy = Busy { checks: self, job };
        match &job.task {
            Task::Connect => self.check_connect(job),
            Task::Ping => self.check_ping(job),
            Task::ReadOnly { sql, admission } => self.check_read_only(job, sql, *admission),
            Task::ReplicationLag => self.check_lag(job),
        }
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
                self.state.lock().absent.retain(|endpoint| all.contains_key(endpoint));
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
    fn check_connect(&self, job: &Job) {
        let limit = self.config.variables().monitor_connect_timeout;
        let host = &job.endpoint.host;
        let check = self.run(job, limit, |address, _| Ok(self.probes.connect(address, job.tls, host)?));
        self.write(job, &check, |()| None);
    }
    fn check_ping(&self, job: &Job) {
        let endpoint = &job.endpoint;
        let variables = self.config.variables();
        let (limit, most) = (variables.monitor_ping_timeout, variables.monitor_ping_max_failures);
        drop(variables);
        let mut check = self.run(job, limit, |address, limit| {
            Ok(self.probes.ping(address, job.tls, &endpoint.host, limit)?)
        });
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
        let Some(pong) = pong else { return };
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
    }
    /// The result is dropped if the server was suspended meanwhile.
    fn check_read_only(&self, job: &Job, sql: &str, admission: Admission) {
        let endpoint = &job.endpoint;
        if !self.suppression.still_admits(endpoint, admission) {
            return;
        }
        let limit = self.config.variables().monitor_read_only_timeout;
        let check = self.run(job, limit, |address, limit| {
            Ok(is_read_only(&self.probes.query(address, job.tls, &endpoint.host, sql, limit)?))
        });
        if !self.suppression.still_admits(endpoint, admission) {
            return;
        }
        self.write(job, &check, |read_only| Some(Value::Int((*read_only).into())));
        if let Some(read_only) = self.verdict(endpoint, &check.result) {
            self.place(endpoint, read_only, admission);
        }
    }
    fn check_lag(&self, job: &Job) {
        let endpoint = &job.endpoint;
        let variables = self.config.variables();
        let limit = variables.monitor_replication_lag_timeout;
        let heartbeat = variables.monitor_replication_lag_heartbeat.clone();
        let when_null = variables.monitor_slave_lag_when_null;
        let needed = variables.monitor_replication_lag_count;
        drop(variables);
        let check = self.run(job, limit, |address, limit| {
            let sql = |backend: &Backend| replication_lag::statement(&backend.server_version, &heartbeat);
            let answer = self.probes.ask(address, job.tls, &endpoint.host, sql, limit)?;
            match replication_lag::read(&answer) {
                Ok(Lag::NoReplica) => Ok(None),
                Ok(Lag::Unknown) => Ok(Some(when_null)),
                Ok(Lag::Seconds(seconds)) => Ok(Some(seconds)),
                Err(text) => Err(Failure { text, cause: Cause::Refused }),
            }
        });
        self.write(job, &check, |lag| Some(lag.map_or(Value::Null, |lag| Value::Int(lag.into()))));
        // An error says nothing of the lag.
        if let Ok(lag) = check.result {
            for line in self.backends.apply_lag(endpoint, lag, needed) {
                ::log::warn!("{line}");
            }
        }
    }

    /// Looks the server's name up and asks, within `limit`.
    fn run<T>(
        &self,
        job: &Job,
        limit: Duration,
        ask: impl FnOnce(SocketAddr, Duration) -> Result<T, Failure>,
    ) -> Check<T> {
        let start_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
        let start = Instant::now();
        let Endpoint { host, port } = &job.endpoint;
        let result = match self.dns.resolve(host, start + limit.min(NAME_LIMIT)) {
            Ok(address) => {
                let address = SocketAddr::new(address, *port);
                let result = ask(address, limit.saturating_sub(start.elapsed()));
                result.map_err(|failure| failure.located(address, start.elapsed()))
            }
            Err(error) => Err(Failure { text: error.to_string(), cause: Cause::NoAddress }),
        };
        Check { start_us, took: start.elapsed(), result }
    }
    /// Writes a check to the log of its kind, and counts it.
    fn write<T>(&self, job: &Job, check: &Check<T>, value: impl FnOnce(&T) -> Option<Value>) {
        let (kind, endpoint) = (job.kind(), &job.endpoint);
        let absent = matches!(&check.result, Err(failure) if failure.cause != Cause::Refused);
        let mut state = self.state.lock();
        if absent {
            state.absent.insert(endpoint.clone());
        } else {
            state.absent.remove(endpoint);
        }
        drop(state);
        let record = self.record(kind);
        let counter = if check.result.is_ok() { &record.ok } else { &record.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        let result = match &check.result {
            Ok(found) => Ok((micros(check.took), value(found))),
            Err(failure) => Err(failure.text.clone()),
        };
        let entry = Entry { endpoint: endpoint.clone(), start_us: check.start_us, result };
        let history = kind.history(&self.config.variables());
        record.log.lock().push(entry, history);
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
    fn place(&self, endpoint: &Endpoint, read_only: bool, admission: Admission) {
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

/// A check that has ended.
struct Check<T> {
    /// Wall clock when it began, microseconds since 1970.
    start_us: i64,
    took: Duration,
    result: Result<T, Failure>,
}

/// Marks a check as ended, whatever its end.
struct Busy<'a> {
    checks: &'a Checks,
    job: &'a Job,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.checks.state.lock().busy.remove(&(self.job.kind(), self.job.endpoint.clone()));
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
