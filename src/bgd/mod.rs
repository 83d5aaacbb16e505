//! Blue/green deployments: a pure machine for each, a worker thread that performs what it says, and the dispatcher that keeps
//! one worker for each active deployment with an eligible blue writer.

mod control;
mod dispatcher;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod machine;
pub mod mapping;
mod perform;
pub mod phase;
#[cfg(test)]
mod races;
#[cfg(test)]
mod tests;
pub mod topology;
mod worker;

use crate::config::Config;
use crate::dns::Dns;
use crate::monitor::health::Health;
use crate::monitor::probe::Probes;
use crate::monitor::suppression::Suppression;
use crate::pool::Backends;
use std::sync::Arc;

pub use dispatcher::Dispatcher;

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
    /// Who answers pings.
    pub health: Arc<Health>,
}
