//! Blue/green deployments: a pure machine for each, a worker thread that performs what it says, and the dispatcher that keeps
//! one worker for each active deployment with an eligible blue writer.

pub mod machine;
pub mod mapping;
pub mod phase;
pub mod topology;

use crate::config::Config;
use crate::dns::Dns;
use crate::monitor::probe::Probes;
use crate::monitor::suppression::Suppression;
use crate::pool::Backends;
use std::sync::Arc;

/// The dispatcher thread and its workers.
pub struct Dispatcher {}

/// What a worker acts on.
#[derive(Clone)]
pub struct Effects {
    /// Snapshots.
    pub config: Arc<Config>,
    /// Placement, pools and deployments' status.
    pub backends: Arc<Backends>,
    /// Pins and resolution.
    pub dns: Arc<Dns>,
    /// Monitor connections.
    pub probes: Arc<Probes>,
    /// read_only suppression.
    pub suppression: Arc<Suppression>,
}

impl Dispatcher {
    /// Starts the dispatcher (10 ms tick).
    pub fn start(_effects: Effects) -> std::io::Result<Self> {
        unimplemented!()
    }
    /// Stops it: every worker rolls back its active state and is joined.
    pub fn stop(&self) {
        unimplemented!()
    }
}
