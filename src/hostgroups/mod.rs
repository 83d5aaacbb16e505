//! Servers in hostgroups: status, placement and selection. Pure: no IO, no clock, no lock of its own.

use admin::rows::{BgdHostgroupRow, ReplicationHostgroupRow, ServerRow, ServersConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A hostgroup's number.
pub type HostgroupId = u32;

/// A server's address as configured. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
}
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A server's status at run time. Text forms as ProxySQL prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// ONLINE
    Online,
    /// SHUNNED: by configuration or after connect failures
    Shunned,
    /// OFFLINE_SOFT
    OfflineSoft,
    /// OFFLINE_HARD
    OfflineHard,
    /// SHUNNED_AWS_BGD: an unmapped blue reader during a switchover; never recovers by itself
    ShunnedAwsBgd,
}

/// One server in one hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Configured values (status, hostgroup and address in it are superseded by the fields here and the map keys).
    pub row: ServerRow,
    /// Status now.
    pub status: ServerStatus,
    /// When a shun caused by connect failures ends; `None` for a configured SHUNNED.
    pub shunned_until: Option<Instant>,
}

/// States of a deployment, in order (contract: "ProxySQL State Machine").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum BgdStatus {
    /// NONE
    #[default]
    None,
    /// AVAILABLE
    Available,
    /// WRITER_SWITCHOVER_INITIATED
    WriterSwitchoverInitiated,
    /// WRITER_SWITCHOVER_IN_PROGRESS
    WriterSwitchoverInProgress,
    /// WRITER_SWITCHOVER_POST_PROCESSING
    WriterSwitchoverPostProcessing,
    /// WRITER_SWITCHOVER_COMPLETED
    WriterSwitchoverCompleted,
    /// READER_SWITCHOVER_IN_PROGRESS
    ReaderSwitchoverInProgress,
    /// SWITCHOVER_COMPLETED
    SwitchoverCompleted,
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
}

/// All hostgroups. Shared as [`crate::pool::Backends`], which holds the lock.
#[derive(Debug, Default)]
pub struct Hostgroups {
    groups: BTreeMap<HostgroupId, BTreeMap<Endpoint, Server>>,
    replication: Vec<ReplicationHostgroupRow>,
    deployments: BTreeMap<HostgroupId, Deployment>,
    generation: u64,
}

/// Why no server could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The hostgroup has no usable server now.
    NoServer,
    /// Servers are usable but all at max_connections.
    Full,
}

impl Hostgroups {
    /// Applies LOAD MYSQL SERVERS: placement is the configured one again, run-time additions vanish, deployments keep
    /// their status. Returns what was ignored, in words.
    pub fn load(&mut self, _config: &ServersConfig) -> Vec<String> {
        unimplemented!()
    }
    /// Grows with each `load` (and each auto-generated deployment), never with run-time placement.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// Chooses a server of a hostgroup for one more connection or statement: ONLINE (a connect-failure shun whose time is over becomes
    /// ONLINE), below max_connections by `in_use`, weighted by `weight` with `random`; weight 0 never.
    pub fn select(
        &mut self,
        _hostgroup: HostgroupId,
        _now: Instant,
        _random: u64,
        _in_use: impl Fn(&Endpoint) -> usize,
    ) -> Result<(Endpoint, ServerRow), Unavailable> {
        unimplemented!()
    }
    /// The server of an endpoint in a hostgroup.
    pub fn server(&self, _hostgroup: HostgroupId, _endpoint: &Endpoint) -> Option<&Server> {
        unimplemented!()
    }
    /// Members of one hostgroup.
    pub fn members(&self, hostgroup: HostgroupId) -> impl Iterator<Item = (&Endpoint, &Server)> {
        self.groups.get(&hostgroup).into_iter().flatten()
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
    /// Publishes a deployment's status.
    pub fn set_bgd_status(&mut self, _writer_hostgroup: HostgroupId, _status: BgdStatus) {
        unimplemented!()
    }
    /// Applies a read_only result to every replication pair that has the endpoint. Returns a line for the log for each move.
    pub fn apply_read_only(
        &mut self,
        _endpoint: &Endpoint,
        _read_only: bool,
        _writer_is_also_reader: bool,
    ) -> Vec<String> {
        unimplemented!()
    }
    /// Moves a server from the writer to the reader hostgroup (read_only=1 action): copied there if absent (SHUNNED becomes ONLINE),
    /// OFFLINE_HARD in the writer hostgroup.
    pub fn demote(&mut self, _writer: HostgroupId, _reader: HostgroupId, _endpoint: &Endpoint) {
        unimplemented!()
    }
    /// Ensures a server is in the writer hostgroup, and in the reader hostgroup exactly if `also_reader`.
    pub fn configure_writer(
        &mut self,
        _writer: HostgroupId,
        _reader: HostgroupId,
        _endpoint: &Endpoint,
        _also_reader: bool,
    ) {
        unimplemented!()
    }
    /// Adds the green writer to its hostgroup if no row but OFFLINE_HARD is there (weight 1, max_connections 1000, use_ssl 0). True if added.
    pub fn add_green_writer(&mut self, _hostgroup: HostgroupId, _endpoint: &Endpoint) -> bool {
        unimplemented!()
    }
    /// ONLINE -> SHUNNED_AWS_BGD. True if it changed.
    pub fn shun_aws_bgd(&mut self, _hostgroup: HostgroupId, _endpoint: &Endpoint) -> bool {
        unimplemented!()
    }
    /// SHUNNED_AWS_BGD -> ONLINE. True if it changed.
    pub fn unshun_aws_bgd(&mut self, _hostgroup: HostgroupId, _endpoint: &Endpoint) -> bool {
        unimplemented!()
    }
    /// Shuns an endpoint everywhere after connect failures.
    pub fn shun_failed(&mut self, _endpoint: &Endpoint, _until: Instant) {
        unimplemented!()
    }
    /// Removes OFFLINE_HARD servers that `in_use` says hold no connection.
    pub fn purge(&mut self, _in_use: impl Fn(HostgroupId, &Endpoint) -> usize) {
        unimplemented!()
    }
    /// Whether new statements may use a server: ONLINE.
    pub fn usable(&self, _hostgroup: HostgroupId, _endpoint: &Endpoint) -> bool {
        unimplemented!()
    }
}

/// For how long a server stays shunned after connect failures: min(recovery, connect_max/1000 - 1 s), at least 1 s.
pub fn shun_time(_recovery: Duration, _connect_max: Duration) -> Duration {
    unimplemented!()
}
