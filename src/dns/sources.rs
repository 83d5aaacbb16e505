//! Where a name that the cache does not know comes from, in order.

use super::hosts::HostsFile;
use super::resolver::{DnsLookup, allowed};
use super::{Lookup, LookupError, Resolved};
use crate::config::Config;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an answer from a hosts file may be cached: it is looked at again this often.
const HOSTS_LIFE: Duration = Duration::from_secs(1);

/// The hosts files, the first that has a name wins.
pub struct Hosts {
    config: Arc<Config>,
    files: Vec<HostsFile>,
}

impl Hosts {
    /// Files in their order.
    pub fn new(config: Arc<Config>, files: Vec<HostsFile>) -> Self {
        Self { config, files }
    }
    /// Addresses of a name that `mysql-resolution_family` allows; empty if no file has one.
    pub fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let family = self.config.variables().resolution_family;
        let mut found = self.files.iter().map(|file| allowed(file.addresses(name), family));
        found.find(|addresses| !addresses.is_empty()).unwrap_or_default()
    }
}

/// `mysql-monitor_dns_server`, the hosts files after it, the system's DNS last.
pub struct Sources {
    config: Arc<Config>,
    hosts: Arc<Hosts>,
}

impl Sources {
    /// Sources over the hosts files.
    pub fn new(config: Arc<Config>, hosts: Arc<Hosts>) -> Self {
        Self { config, hosts }
    }
}

impl Lookup for Sources {
    /// A server that fails hides nothing: the next source is asked. Of several errors a failure is told rather than an absence.
    fn lookup(&self, name: &str, deadline: Instant) -> Result<Resolved, LookupError> {
        let server = self.config.variables().dns_server;
        let mut first = None;
        if server.is_some() {
            match DnsLookup::new(self.config.clone(), server).lookup(name, deadline) {
                Ok(resolved) => return Ok(resolved),
                Err(error) => first = Some(error),
            }
        }
        let addresses = self.hosts.addresses(name);
        if !addresses.is_empty() {
            return Ok(Resolved { addresses, ttl: Some(HOSTS_LIFE) });
        }
        let system = DnsLookup::new(self.config.clone(), None).lookup(name, deadline);
        match (system, first) {
            (Err(LookupError::NotFound(_)), Some(failed @ LookupError::Failed { .. })) => Err(failed),
            (system, _) => system,
        }
    }
}
