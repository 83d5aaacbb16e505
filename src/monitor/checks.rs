//! Performing read_only checks: one at a time for each server, on the probe threads.

use super::log::{Entry, Log};
use super::probe::Probes;
use super::read_only::{Target, is_read_only, targets};
use super::suppression::{Admission, Suppression};
use crate::config::Config;
use crate::dns::Dns;
use crate::hostgroups::Endpoint;
use crate::pool::Backends;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest wait for a name's address. A lookup that takes longer goes on, and the next check has its answer.
const NAME_LIMIT: Duration = Duration::from_secs(1);

/// A check that may begin.
pub struct Job {
    target: Target,
    admission: Admission,
}

/// Why a check gave no value.
struct Failure {
    text: String,
    timeout: bool,
}

#[derive(Default)]
struct State {
    /// Servers whose check is queued or under way.
    busy: HashSet<Endpoint>,
    /// How many checks of a server ran out of time, one after the other.
    timeouts: HashMap<Endpoint, u32>,
}

/// The checks' state and what they work with.
pub struct Checks {
    config: Arc<Config>,
    backends: Arc<Backends>,
    dns: Arc<Dns>,
    probes: Arc<Probes>,
    suppression: Arc<Suppression>,
    state: Mutex<State>,
    log: Mutex<Log>,
}

impl Checks {
    /// No check is under way yet.
    pub fn new(
        config: Arc<Config>,
        backends: Arc<Backends>,
        dns: Arc<Dns>,
        probes: Arc<Probes>,
        suppression: Arc<Suppression>,
    ) -> Self {
        let (state, log) = (Mutex::default(), Mutex::default());
        Self { config, backends, dns, probes, suppression, state, log }
    }
    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Rows of mysql_server_read_only_log.
    pub fn log_rows(&self) -> Vec<Vec<admin::Value>> {
        self.log.lock().rows()
    }
    /// Connections of the checks.
    pub fn probes(&self) -> &Probes {
        &self.probes
    }
    /// The checks of one cycle, in random order: every server in service, but those suspended and those whose last
    /// check has not ended.
    pub fn due(&self) -> Vec<Job> {
        let mut targets = self.backends.read(targets);
        fastrand::shuffle(&mut targets);
        let mut state = self.state.lock();
        let known: HashSet<&Endpoint> = targets.iter().map(|target| &target.endpoint).collect();
        state.timeouts.retain(|endpoint, _| known.contains(endpoint));
        targets
            .into_iter()
            .filter_map(|target| {
                let admission = self.suppression.admit(&target.endpoint)?;
                state.busy.insert(target.endpoint.clone()).then_some(Job { target, admission })
            })
            .collect()
    }
    /// How many checks are queued or under way.
    pub fn busy(&self) -> usize {
        self.state.lock().busy.len()
    }
    /// Performs a check and applies its result, unless the server was suspended meanwhile.
    pub fn perform(&self, job: &Job) {
        let endpoint = &job.target.endpoint;
        let _busy = Busy { checks: self, endpoint };
        if !self.suppression.still_admits(endpoint, job.admission) {
            return;
        }
        let start_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
        let start = Instant::now();
        let result = self.ask(&job.target, start);
        if !self.suppression.still_admits(endpoint, job.admission) {
            return;
        }
        let entry = Entry {
            endpoint: endpoint.clone(),
            start_us,
            result: match &result {
                Ok(read_only) => Ok((*read_only, micros(start.elapsed()))),
                Err(failure) => Err(failure.text.clone()),
            },
        };
        self.log.lock().push(entry, self.history());
        if let Some(read_only) = self.verdict(endpoint, &result) {
            self.place(job, read_only);
        }
    }

    fn ask(&self, target: &Target, start: Instant) -> Result<bool, Failure> {
        let Target { endpoint, tls, sql } = target;
        let limit = self.config.variables().monitor_read_only_timeout;
        let name_deadline = start + limit.min(NAME_LIMIT);
        let address = self
            .dns
            .resolve(&endpoint.host, name_deadline)
            .map_err(|error| Failure { text: error.to_string(), timeout: false })?;
        let left = limit.saturating_sub(start.elapsed());
        let address = SocketAddr::new(address, endpoint.port);
        match self.probes.query(address, *tls, &endpoint.host, sql, left) {
            Ok(answer) => Ok(is_read_only(&answer)),
            Err(error) if error.is_timeout() => {
                let took = start.elapsed().as_millis();
                Err(Failure {
                    text: format!("timeout: no answer from {address} in {took} ms"),
                    timeout: true,
                })
            }
            Err(error) => Err(Failure { text: error.to_string(), timeout: false }),
        }
    }
    /// What to take a server for: its value, or read_only=1 once its checks have timed out
    /// `mysql-monitor_read_only_max_timeout_count` times in a row. Other errors say nothing.
    fn verdict(&self, endpoint: &Endpoint, result: &Result<bool, Failure>) -> Option<bool> {
        let limit = self.config.variables().monitor_read_only_max_timeout_count;
        let mut state = self.state.lock();
        if !matches!(result, Err(failure) if failure.timeout) {
            state.timeouts.remove(endpoint);
            return result.as_ref().ok().copied();
        }
        let count = state.timeouts.entry(endpoint.clone()).or_default();
        *count = count.saturating_add(1);
        (*count >= limit).then_some(true)
    }
    /// Placement is touched only where it changes, since that wakes waiting sessions. That no suspension began is asked
    /// once more under its lock: a switchover suspends first and moves servers under the same lock afterwards.
    fn place(&self, job: &Job, read_only: bool) {
        let endpoint = &job.target.endpoint;
        if !self.backends.read(|hostgroups| hostgroups.read_only_moves(endpoint, read_only)) {
            return;
        }
        let also_reader = self.config.variables().monitor_writer_is_also_reader;
        let lines = self.backends.update(|hostgroups| {
            if self.suppression.still_admits(endpoint, job.admission) {
                hostgroups.apply_read_only(endpoint, read_only, also_reader)
            } else {
                Vec::new()
            }
        });
        for line in lines {
            log::warn!("{line}");
        }
    }
    /// mysql-monitor_history, raised where it would not show the timeouts that count.
    fn history(&self) -> Duration {
        let variables = self.config.variables();
        let count = variables.monitor_read_only_max_timeout_count.saturating_add(1);
        variables.monitor_history.max(variables.monitor_read_only_interval.saturating_mul(count))
    }
}

/// Marks a check as ended, whatever its end.
struct Busy<'a> {
    checks: &'a Checks,
    endpoint: &'a Endpoint,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.checks.state.lock().busy.remove(self.endpoint);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
