//! What the machine is told and what it answers.

use crate::bgd::mapping::{GreenAddress, Members};
use crate::bgd::topology::Topology;
use crate::hostgroups::{BgdStatus, Endpoint, HostgroupId};
use admin::rows::BgdHostgroupRow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What the worker saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The existence query gave no row.
    TableAbsent,
    /// The existence query gave a row.
    TablePresent,
    /// The metadata query failed with error 1146.
    Vanished,
    /// The metadata query gave a result; with it, the servers as they are placed now.
    Metadata {
        /// The result.
        topology: Topology,
        /// The servers.
        members: Members,
    },
    /// No answer, or any other error.
    Failure,
    /// Answer to [`Action::Resolve`]: what could be looked up.
    Resolved(Vec<Resolution>),
    /// Answer to [`Action::AddGreenWriter`]: the row that is there now.
    GreenWriterAdded {
        /// Its use_ssl.
        use_ssl: bool,
    },
    /// The deployment's configuration changed.
    Refresh {
        /// Its row now.
        row: BgdHostgroupRow,
        /// Its servers now.
        members: Members,
    },
    /// LOAD has placed every server as configured, and nothing of this deployment's configuration has changed.
    Reload(Members),
    /// The worker is about to end.
    Exit,
}

/// One name looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The name.
    pub host: Arc<str>,
    /// Its address and how long that holds.
    pub address: GreenAddress,
}

/// What the worker has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Suspend ordinary read_only checks of these servers, in the deployment's name.
    Suppress(Vec<Endpoint>),
    /// Resume every check this deployment suspended.
    ClearSuppression,
    /// Add the green writer to its hostgroup, at run time only, and answer [`Observation::GreenWriterAdded`].
    AddGreenWriter {
        /// The green writer hostgroup.
        hostgroup: HostgroupId,
        /// The green writer.
        endpoint: Endpoint,
    },
    /// Look up these names and answer [`Observation::Resolved`], whatever came of it. Always the last action of a list.
    Resolve(Vec<Arc<str>>),
    /// Move the blue writer to the reader hostgroup.
    Demote {
        /// The blue writer.
        endpoint: Endpoint,
        /// The reader hostgroup.
        reader: HostgroupId,
    },
    /// Put the blue writer into the writer hostgroup, and into the reader hostgroup or out of it.
    ConfigureWriter {
        /// The blue writer.
        endpoint: Endpoint,
        /// The reader hostgroup.
        reader: HostgroupId,
        /// Whether it belongs there.
        also_reader: bool,
    },
    /// New connections to this name go to the green server.
    Pin {
        /// A blue name.
        host: Arc<str>,
        /// Its green counterpart's address.
        address: IpAddr,
        /// Its green counterpart's name.
        target: Arc<str>,
    },
    /// Forget what the DNS cache knows of this name, this deployment's pin included.
    RemoveDns(Arc<str>),
    /// Retire the connections to this server in every hostgroup.
    Drain(Endpoint),
    /// Shun a reader without green counterpart.
    ShunReader {
        /// The reader hostgroup.
        hostgroup: HostgroupId,
        /// The reader.
        endpoint: Endpoint,
    },
    /// Undo [`Action::ShunReader`].
    UnshunReader {
        /// The reader hostgroup.
        hostgroup: HostgroupId,
        /// The reader.
        endpoint: Endpoint,
    },
    /// Close the monitor's connections by a server's name, wherever that led when they were opened.
    PurgeProbes(Endpoint),
    /// Close the monitor's connections to a green address.
    PurgeDirect(SocketAddr),
    /// Drain every eligible server of these hostgroups, forget their names and close the monitor's connections to them.
    DrainGreen(Vec<HostgroupId>),
    /// Show a status.
    Publish(Transition),
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: BgdStatus,
    /// The state now.
    pub to: BgdStatus,
    /// What was observed, for the log.
    pub cause: Arc<str>,
}

/// Which statement the next poll sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// Does mysql.rds_topology exist?
    TableCheck,
    /// What is in it?
    Metadata,
}

/// The green writer as the direct probe reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectTarget {
    /// Its address and the matched blue writer's port.
    pub address: SocketAddr,
    /// Whether to use TLS.
    pub use_ssl: bool,
    /// Its name, for TLS.
    pub host: Arc<str>,
}
