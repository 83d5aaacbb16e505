//! Checks of servers: read_only placement, suppression, logs, and the connections that probes use.

mod checks;
mod log;
pub mod probe;
mod read_only;
mod scheduler;
pub mod suppression;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::dns::Dns;
use crate::pool::Backends;
use checks::Checks;
use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The scheduler of read_only checks and its probe threads.
pub struct Monitor {
    checks: Arc<Checks>,
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
    ) -> std::io::Result<Self> {
        let checks = Arc::new(Checks::new(config, backends, dns, probes, suppression));
        let (stop, stopped) = bounded(0);
        let scheduled = checks.clone();
        let thread = std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || scheduler::run(scheduled, &stopped))?;
        Ok(Self { checks, scheduler: Mutex::new(Some((stop, thread))) })
    }
    /// Rows of mysql_server_read_only_log.
    pub fn read_only_log_rows(&self) -> Vec<Vec<admin::Value>> {
        self.checks.log_rows()
    }
    /// Stops and joins every thread. Statements of probes that are under way, other users' included, end with an error, so that this
    /// takes no longer than the opening of a connection may.
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
