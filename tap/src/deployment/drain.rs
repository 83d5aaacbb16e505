//! How a switchover ends, or a deployment that was deleted.

use crate::connection::Error;
use crate::scenario::Scenario;
use crate::simulator::{RdsBgdCluster, RdsBgdProbeKind};

/// How the topology drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// No rows
    Empty,
    /// No table
    Absent,
}

impl Drain {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Empty, Self::Absent];

    /// What a blue writer is asked from then on.
    pub fn asked(self) -> RdsBgdProbeKind {
        match self {
            Self::Empty => RdsBgdProbeKind::Metadata,
            Self::Absent => RdsBgdProbeKind::TableCheck,
        }
    }

    /// Drains the topology of both writers.
    pub fn happen(self, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
        let writers = cluster.get_writers();
        match self {
            Self::Empty => scenario.simulator.topology_delete(&writers),
            Self::Absent => scenario.simulator.topology_drop(&writers),
        }
    }
}
