//! Checks of servers: read_only placement, suppression, logs, and the connections that probes use.

pub mod probe;
pub mod suppression;

use crate::config::Config;
use crate::pool::Backends;
use std::sync::Arc;

/// The scheduler of read_only checks and its probe threads.
pub struct Monitor {}

impl Monitor {
    /// Starts the scheduler thread and its bounded set of probe threads.
    pub fn start(
        _config: Arc<Config>,
        _backends: Arc<Backends>,
        _probes: Arc<probe::Probes>,
        _suppression: Arc<suppression::Suppression>,
    ) -> std::io::Result<Self> {
        unimplemented!()
    }
    /// Rows of mysql_server_read_only_log.
    pub fn read_only_log_rows(&self) -> Vec<Vec<admin::Value>> {
        unimplemented!()
    }
    /// Stops and joins every thread.
    pub fn stop(&self) {
        unimplemented!()
    }
}
