//! Servers in hostgroups: status, placement and selection. Pure: no IO, no clock, no lock of its own.

mod discovery;
mod group;
mod health;
mod load;
#[cfg(test)]
mod model;
mod placement;
mod policy;
pub mod rows;
mod save;
mod select;
mod status;
#[cfg(test)]
mod tests;

use crate::locality;
use admin::rows::{
    BgdHostgroupRow, HostgroupAttributesRow, ReplicationHostgroupRow, ServerRow, ServerSslParamsRow,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use group::Group;
pub use policy::Policy;
pub use select::{Recovery, Unavailable, shun_time};
pub use status::{BgdStatus, ServerStatus};

/// A hostgroup's number.
pub type HostgroupId = u32;

/// A server's address as configured. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Host name or address, trimmed.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// An endpoint from its parts.
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: Arc::from(host.trim()), port }
    }
    /// Whether one is a clone of the other, which is sooner said than whether they are equal.
    #[inline]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.host, &other.host) && self.port == other.port
    }
}

impl Ord for Endpoint {
    /// By host, then port. Most are compared with a clone of their own.
    fn cmp(&self, other: &Self) -> Ordering {
        let hosts = match Arc::ptr_eq(&self.host, &other.host) {
            true => Ordering::Equal,
            false => self.host.cmp(&other.host),
        };
        hosts.then(self.port.cmp(&other.port))
    }
}

impl PartialOrd for Endpoint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// One server in one hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Configured values (status, hostgroup and address in it are superseded by the fields here and the map keys).
    pub row: ServerRow,
    /// Status now.
    pub status: ServerStatus,
    /// When failures last had it shunned; `None` for a configured SHUNNED.
    pub shunned_since: Option<Instant>,
    /// When it was last tried although shunned, for want of another.
    pub tried: Option<Instant>,
    /// Its pings take longer than its max_latency_ms allows.
    pub slow: bool,
    /// Checks in a row that found it behind its source by more than max_replication_lag.
    pub late_checks: u32,
}

impl Server {
    /// A server of which no check has told anything.
    fn new(row: ServerRow, status: ServerStatus) -> Self {
        Self { row, status, shunned_since: None, tried: None, slow: false, late_checks: 0 }
    }
    /// Gives it another status, for a reason that is no failure.
    fn set_status(&mut self, status: ServerStatus) {
        (self.status, self.shunned_since, self.tried) = (status, None, None);
    }
}

/// A deployment at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Its configuration.
    pub row: BgdHostgroupRow,
    /// Made by discovery, never saved.
    pub auto_generated: bool,
    /// Published by the worker; survives LOAD.
    pub status: BgdStatus,
    /// The LOAD from which on it has been followed: configured, active and with a blue writer in each since. 0 if it was made by
    /// discovery.
    pub since: u64,
}

/// All hostgroups. Shared as [`crate::pool::Backends`], which holds the lock.
#[derive(Debug, Default)]
pub struct Hostgroups {
    groups: BTreeMap<HostgroupId, Group>,
    /// Attributes that mysql_servers gives an endpoint in a hostgroup, so that one that leaves and returns has its own
    /// again rather than those of the hostgroup it was in meanwhile.
    configured: BTreeMap<(HostgroupId, Endpoint), ServerRow>,
    /// Where mysql_servers has a server as OFFLINE_HARD.
    offline_hard: BTreeSet<(HostgroupId, Endpoint)>,
    replication: Vec<ReplicationHostgroupRow>,
    deployments: BTreeMap<HostgroupId, Deployment>,
    /// What pings take, for servers that answer them.
    latencies: HashMap<Endpoint, Duration>,
    /// mysql-default_max_latency_ms, as of the last ping.
    default_max_latency: Duration,
    attributes: BTreeMap<HostgroupId, HostgroupAttributesRow>,
    /// The same, as connections need it.
    policies: BTreeMap<HostgroupId, Arc<Policy>>,
    /// By server and user name; an empty name stands for any.
    ssl_params: BTreeMap<(Endpoint, String), ServerSslParamsRow>,
    generation: u64,
    loads: u64,
    /// Lent to each choice, so that none allocates.
    sums: Vec<u64>,
}

impl Hostgroups {
    /// Grows with each `load` (and each auto-generated deployment), never with run-time placement.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// Grows with each `load` alone.
    pub fn loads(&self) -> u64 {
        self.loads
    }
    /// The server of an endpoint in a hostgroup.
    pub fn server(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> Option<&Server> {
        self.groups.get(&hostgroup)?.get(endpoint)
    }
    /// Members of one hostgroup.
    pub fn members(&self, hostgroup: HostgroupId) -> impl Iterator<Item = (&Endpoint, &Server)> {
        self.groups.get(&hostgroup).into_iter().flat_map(Group::iter)
    }
    /// Servers that mysql_servers gives a hostgroup, OFFLINE_HARD ones left out, wherever they are placed now.
    pub fn configured(&self, hostgroup: HostgroupId) -> impl Iterator<Item = (&Endpoint, &ServerRow)> {
        let first = (hostgroup, Endpoint::new("", 0));
        let rows = self.configured.range(first..).take_while(move |((id, _), _)| *id == hostgroup);
        rows.map(|((_, endpoint), row)| (endpoint, row))
    }
    /// Whether a server is OFFLINE_SOFT or OFFLINE_HARD in a hostgroup, or configured so where it is not shown.
    pub fn is_offline(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        match self.server(hostgroup, endpoint) {
            Some(server) => server.status.is_offline(),
            None => self.is_configured_offline_hard(hostgroup, endpoint),
        }
    }
    /// Every (hostgroup, endpoint, server), ordered.
    pub fn all(&self) -> impl Iterator<Item = (HostgroupId, &Endpoint, &Server)> {
        self.groups
            .iter()
            .flat_map(|(id, group)| group.iter().map(move |(endpoint, server)| (*id, endpoint, server)))
    }
    /// Replication hostgroup pairs.
    pub fn replication(&self) -> &[ReplicationHostgroupRow] {
        &self.replication
    }
    /// Deployments by writer hostgroup.
    pub fn deployments(&self) -> &BTreeMap<HostgroupId, Deployment> {
        &self.deployments
    }
    /// Whether a deployment's writer hostgroup has a server that is not OFFLINE_*, as configured or as placed.
    pub fn has_writer(&self, writer_hostgroup: HostgroupId) -> bool {
        self.configured(writer_hostgroup).any(|(_, row)| !ServerStatus::from(row.status).is_offline())
            || self.members(writer_hostgroup).any(|(_, server)| !server.status.is_offline())
    }
    /// The hostgroups that mysql_hostgroup_attributes has a row for.
    pub fn attributes(&self) -> &BTreeMap<HostgroupId, HostgroupAttributesRow> {
        &self.attributes
    }
    /// Hostgroups with a locality policy, and their servers.
    pub fn locality(&self) -> Vec<(HostgroupId, locality::Policy, Vec<Endpoint>)> {
        let policies = self.policies.iter().filter_map(|(id, policy)| Some((*id, policy.locality?)));
        let members = |id| {
            let present = |(_, server): &(&Endpoint, &Server)| server.status != ServerStatus::OfflineHard;
            self.members(id).filter(present).map(|(endpoint, _)| endpoint.clone()).collect()
        };
        policies.map(|(id, policy)| (id, policy, members(id))).collect()
    }
    /// What they say of a hostgroup.
    pub fn policy(&self, hostgroup: HostgroupId) -> Option<&Arc<Policy>> {
        self.policies.get(&hostgroup)
    }
    /// The rows of mysql_servers_ssl_params by server and user name; an empty name stands for any.
    pub fn ssl_params(&self) -> &BTreeMap<(Endpoint, String), ServerSslParamsRow> {
        &self.ssl_params
    }
    /// Publishes a deployment's status. A deployment that LOAD removed meanwhile has none to publish.
    pub fn set_bgd_status(&mut self, writer_hostgroup: HostgroupId, status: BgdStatus) {
        if let Some(deployment) = self.deployments.get_mut(&writer_hostgroup) {
            deployment.status = status;
        }
    }
    /// Removes OFFLINE_HARD servers that `in_use` says hold no connection.
    pub fn purge(&mut self, in_use: impl Fn(HostgroupId, &Endpoint) -> usize) {
        self.groups.retain(|id, group| {
            group.retain(|endpoint, server| {
                server.status != ServerStatus::OfflineHard || in_use(*id, endpoint) > 0
            });
            !group.is_empty()
        });
    }

    fn is_configured_offline_hard(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        self.offline_hard.contains(&(hostgroup, endpoint.clone()))
    }
    fn server_mut(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint) -> Option<&mut Server> {
        self.groups.get_mut(&hostgroup)?.get_mut(endpoint)
    }
}
