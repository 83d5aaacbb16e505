//! Names to addresses: pins first, then the cache over hosts files and DNS.

use crate::config::Config;
use crate::hostgroups::HostgroupId;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who set a pin: a deployment, by its writer hostgroup. Only the owner removes it.
pub type Owner = HostgroupId;

/// Addresses of a name, and how long they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// At least one address.
    pub addresses: Vec<IpAddr>,
    /// Time to live as the source gave it; hosts files give none.
    pub ttl: Option<Duration>,
}

/// Why a name gave no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist or has no address.
    #[error("no address for {0}")]
    NotFound(String),
    /// The resolver did not answer in time or failed.
    #[error("cannot resolve {name}: {reason}")]
    Failed {
        /// The name.
        name: String,
        /// What the resolver said.
        reason: String,
    },
}

/// One source of addresses.
pub trait Lookup: Send + Sync {
    /// Looks a name up, by `deadline`.
    fn lookup(&self, name: &str, deadline: Instant) -> Result<Resolved, LookupError>;
}

/// The cache, its pins and its refresh thread.
pub struct Dns {}

impl Dns {
    /// A cache in the order: pin, `mysql-monitor_dns_server`, `hosts_file`, /etc/hosts, the system's DNS.
    pub fn new(_config: Arc<Config>, _hosts_file: Option<PathBuf>) -> Arc<Self> {
        unimplemented!()
    }
    /// Starts the refresh thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        unimplemented!()
    }
    /// Stops and joins it.
    pub fn stop(&self) {
        unimplemented!()
    }
    /// One address for a name (an address literal is itself): the pin if there is one, else the cache, else a lookup by `deadline`.
    pub fn resolve(&self, _host: &str, _deadline: Instant) -> Result<IpAddr, LookupError> {
        unimplemented!()
    }
    /// As `resolve`, past the pin and past the cache's entry (a fresh lookup, which the cache then holds).
    pub fn resolve_fresh(&self, _host: &str, _deadline: Instant) -> Result<IpAddr, LookupError> {
        unimplemented!()
    }
    /// Pins a name to an address until the owner removes it.
    pub fn pin(&self, _host: &str, _address: IpAddr, _owner: Owner) {
        unimplemented!()
    }
    /// Removes a name's cache entry, and its pin if `owner` set it.
    pub fn remove(&self, _host: &str, _owner: Owner) {
        unimplemented!()
    }
    /// Pins now: (name, address, owner).
    pub fn pins(&self) -> Vec<(String, IpAddr, Owner)> {
        unimplemented!()
    }
}
