//! Checks of servers (connect, ping, read_only, replication lag), discovery of topologies, suppression, logs, and the connections that probes use.

mod checks;
pub mod health;
mod job;
pub mod kind;
mod log;
pub mod probe;
mod queue;
mod read_only;
mod replication_lag;
mod scheduler;
pub mod suppression;
mod targets;
#[cfg(test)]
mod tests;

pub(crate) use checks::Checks;

use crate::config::Config;
use crate::dns::Dns;
use crate::pool::Backends;
use crossbeam_channel::{Sender, bounded};
use kind::Kind;
use parking_lot::Mutex;
use scheduler::Workers;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// The scheduler of checks and its probe threads.
pub struct Monitor {
    checks: Arc<Checks>,
    workers: Arc<Workers>,
    /// Dropping the sender ends the scheduler.
    scheduler: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Monitor {
    /// Starts the scheduler thread and its bounded set of probe threads.
    pub fn start(
        config: Arc<Config>,
        backends: Arc<Backends>,
        dns: Arc<Dns>,
        probes: Arc<probe::Probes>,
        suppression: Arc<suppression::Suppression>,
        health: Arc<health::Health>,
    ) -> std::io::Result<Self> {
        let checks = Arc::new(Checks::new(config, backends, dns, probes, suppression, health));
        let workers = Arc::<Workers>::default();
        let (stop, stopped) = bounded(0);
        let scheduled = (Arc::clone(&checks), Arc::clone(&workers));
        let thread = std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || scheduler::run(&scheduled.0, &scheduled.1, &stopped))?;
        Ok(Self { checks, workers, scheduler: Mutex::new(Some((stop, thread))) })
    }
    /// Rows of the table that logs a kind of checks.
    pub fn log_rows(&self, kind: Kind) -> Vec<Vec<admin::Value>> {
        self.checks.log_rows(kind)
    }
    /// The monitor's part of stats_mysql_global: names and values.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let Workers { probing, retrying, started } = &*self.workers;
        let threads = [("Workers", probing), ("Workers_Aux", retrying), ("Workers_Started", started)]
            .map(|(name, count)| (format!("MySQL_Monitor_{name}"), count.load(Ordering::Relaxed) as u64));
        let checks = Kind::ALL.into_iter().flat_map(|kind| {
            let (ok, failed) = self.checks.counts(kind);
            let name = kind.name();
            [
                (format!("MySQL_Monitor_{name}_check_OK"), ok),
                (format!("MySQL_Monitor_{name}_check_ERR"), failed),
            ]
        });
        threads.into_iter().chain(checks).collect()
    }
    /// Stops and joins every thread. What probes have under way, other users' included, ends with an error.
    pub fn stop(&self) {
        let scheduler = self.scheduler.lock().take();
        if let Some((stop, thread)) = scheduler {
            drop(stop);
            if thread.join().is_err() {
                ::log::error!("the monitor's scheduler panicked");
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop();
    }
}
