//! Performs the machine's actions.

#[cfg(test)]
mod tests;

use super::Effects;
use super::machine::{Action, Observation, Resolution, Transition};
use super::mapping::GreenAddress;
use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time an address is believed.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// One deployment's hands.
pub(super) struct Performer {
    id: HostgroupId,
    effects: Effects,
    /// Names that could not be looked up, each logged once.
    unresolved: BTreeSet<Arc<str>>,
}

impl Performer {
    /// For the deployment of a writer hostgroup.
    pub fn new(id: HostgroupId, effects: Effects) -> Self {
        Self { id, effects, unresolved: BTreeSet::new() }
    }

    /// Performs one action and returns its answer, if it has one. Look-ups take at most `lookup` together; `place` says where
    /// the observation came from, for the log.
    pub fn perform(&mut self, action: Action, lookup: Duration, place: &str) -> Option<Observation> {
        let Effects { backends, suppression, probes, dns, .. } = &self.effects;
        let id = self.id;
        log::debug!("blue/green deployment {id}: {action:?}");
        match action {
            Action::Suppress(endpoints) => suppression.add(id, endpoints),
            Action::ClearSuppression => suppression.clear(id),
            Action::AddGreenWriter { hostgroup, endpoint } => {
                return self.add_green_writer(hostgroup, &endpoint);
            }
            Action::Resolve(hosts) => return Some(Observation::Resolved(self.resolve(hosts, lookup))),
            Action::Demote { endpoint, reader } => {
                self.move_writer(reader, |groups| groups.demote(id, reader, &endpoint));
            }
            Action::ConfigureWriter { endpoint, reader, also_reader } => {
                self.move_writer(reader, |groups| {
                    groups.configure_writer(id, reader, &endpoint, also_reader)
                });
            }
            Action::Pin { host, address, target } => {
                dns.pin(&host, address, target, id);
                // While a pin was given up, connections may have gone to the blue server again.
                let strays = backends.drain_elsewhere(&host, address);
                if strays > 0 {
                    log::info!(
                        "blue/green deployment {id}: {host} is pinned: {strays} connections elsewhere are retired"
                    );
                }
                backends.wake();
            }
            Action::RemoveDns(host) => {
                dns.remove(&host, id);
                backends.wake();
            }
            Action::Drain(endpoint) => self.drain(&endpoint),
            Action::ShunReader { hostgroup, endpoint } => {
                backends.update(|groups| groups.shun_aws_bgd(hostgroup, &endpoint));
            }
            Action::UnshunReader { hostgroup, endpoint } => {
                backends.update(|groups| groups.unshun_aws_bgd(hostgroup, &endpoint));
            }
            Action::PurgeProbes(endpoint) => probes.purge_server(&endpoint),
            Action::PurgeDirect(address) => probes.purge(address),
            Action::DrainGreen(hostgroups) => self.drain_green(&hostgroups),
            Action::Publish(transition) => self.publish(&transition, place),
        }
        None
    }

    /// A LOAD may have ended the deployment since the observation, or given it another reader hostgroup. It has placed every server as
    /// configured, and nobody would look for one that was moved to where the readers were.
    fn move_writer(&self, reader: HostgroupId, change: impl FnOnce(&mut Hostgroups)) {
        self.effects.backends.update(|groups| {
            let deployment = groups.deployments().get(&self.id);
            if deployment.is_some_and(|deployment| deployment.row.reader_hostgroup == reader) {
                change(groups);
            }
        });
    }

    fn add_green_writer(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> Option<Observation> {
        let (added, use_ssl) = self.effects.backends.update(|groups| {
            // A LOAD may have ended the deployment since the observation; nobody would remove the row.
            let deployment = groups.deployments().get(&self.id).map(|deployment| &deployment.row);
            if !deployment.is_some_and(|row| row.active && row.green_writer_hostgroup == Some(hostgroup)) {
                return (false, None);
            }
            let added = groups.add_discovered(hostgroup, endpoint);
            (added, groups.server(hostgroup, endpoint).map(|server| server.row.use_ssl))
        });
        if added {
            log::info!(
                "blue/green deployment {}: added green writer {endpoint} to hostgroup {hostgroup}",
                self.id
            );
        }
        use_ssl.map(|use_ssl| Observation::GreenWriterAdded { use_ssl })
    }

    /// Looks names up one after the other; each may take its share of the time that is left.
    fn resolve(&mut self, hosts: Vec<Arc<str>>, lookup: Duration) -> Vec<Resolution> {
        let deadline = Instant::now() + lookup;
        let ttl = self.effects.config.variables().dns_cache_ttl.max(SHORTEST_TTL);
        let mut found = Vec::new();
        let mut left = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        for host in hosts {
            let now = Instant::now();
            let share = deadline.saturating_duration_since(now) / left.max(1);
            left = left.saturating_sub(1);
            match self.effects.dns.resolve_fresh(&host, now + share) {
                Ok(ip) => {
                    self.unresolved.remove(&host);
                    found.push(Resolution { host, address: GreenAddress { ip, valid_until: now + ttl } });
                }
                Err(error) => {
                    if self.unresolved.insert(host) {
                        log::warn!(
                            "blue/green deployment {}: {error}; it is tried again at each poll",
                            self.id
                        );
                    }
                }
            }
        }
        found
    }

    fn drain(&self, endpoint: &Endpoint) {
        log::info!("blue/green deployment {}: draining connections to {endpoint}", self.id);
        self.effects.backends.drain(endpoint);
    }

    /// A drain reaches an endpoint's connections in every hostgroup, so one that is OFFLINE_SOFT or OFFLINE_HARD in either green
    /// hostgroup is left alone although it may be ONLINE in the other.
    fn drain_green(&self, hostgroups: &[HostgroupId]) {
        let endpoints: BTreeSet<Endpoint> = self.effects.backends.read(|groups| {
            let members = hostgroups.iter().flat_map(|hostgroup| groups.members(*hostgroup));
            let endpoints = members.map(|(endpoint, _)| endpoint);
            endpoints
                .filter(|each| !hostgroups.iter().any(|id| groups.is_offline(*id, each)))
                .cloned()
                .collect()
        });
        for endpoint in &endpoints {
            self.drain(endpoint);
            self.effects.dns.remove(&endpoint.host, self.id);
            self.effects.probes.purge_server(endpoint);
        }
    }

    fn publish(&self, transition: &Transition, place: &str) {
        let Transition { from, to, cause } = transition;
        self.effects.backends.update(|groups| groups.set_bgd_status(self.id, *to));
        log::info!("blue/green deployment {}: {from} -> {to} ({cause}{place})", self.id);
    }
}
