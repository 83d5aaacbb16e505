//! What the actions would do to the world, for tests of the machine.

use super::*;
pub use crate::bgd::fixtures::row;
use crate::bgd::mapping::{GreenAddress, Member};
use crate::hostgroups::ServerStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub const TARGET: &str = "db-green-1.x";

pub fn online(host: &str) -> Member {
    Member { endpoint: Endpoint::new(host, 3306), use_ssl: false, status: ServerStatus::Online }
}

/// Writer `db.x`, readers `r1.x` (mapped) and `r2.x` (unmapped), green writer and green reader configured.
pub fn members() -> Members {
    Members {
        blue_writers: vec![online("db.x")],
        blue_readers: vec![online("r1.x"), online("r2.x")],
        green_writers: vec![online(TARGET)],
        green_readers: vec![online("r1-green-1.x")],
    }
}

/// A machine, the world it acts on, and the checks that hold after each step.
pub struct World {
    pub machine: Machine,
    pub members: Members,
    pub names: BTreeMap<String, IpAddr>,
    pub now: Instant,
    pub status: BgdStatus,
    pub published: Vec<BgdStatus>,
    pub pins: BTreeMap<String, IpAddr>,
    pub suppressed: BTreeSet<Endpoint>,
    pub shunned: BTreeSet<Endpoint>,
    pub demoted: BTreeSet<Endpoint>,
    pub drained: BTreeMap<Endpoint, usize>,
    pub green_drained: usize,
    pub log: Vec<Action>,
}

impl World {
    pub fn new() -> Self {
        let names = [(TARGET, 14), ("r1-green-1.x", 15), ("db-green-2.x", 24)];
        Self {
            machine: Machine::new(row()),
            members: members(),
            names: names.map(|(name, last)| (name.to_owned(), IpAddr::from([127, 10, 0, last]))).into(),
            now: Instant::now(),
            status: BgdStatus::None,
            published: Vec::new(),
            pins: BTreeMap::new(),
            suppressed: BTreeSet::new(),
            shunned: BTreeSet::new(),
            demoted: BTreeSet::new(),
            drained: BTreeMap::new(),
            green_drained: 0,
            log: Vec::new(),
        }
    }
    /// One observation and everything that follows from it; the actions, look-ups left out.
    pub fn see(&mut self, observation: Observation) -> Vec<Action> {
        let first = self.log.len();
        let actions = self.machine.step(observation, self.now);
        self.perform(actions);
        self.log[first..].iter().filter(|action| !matches!(action, Action::Resolve(_))).cloned().collect()
    }
    pub fn target(&mut self, endpoint: &str, status: &str) -> Vec<Action> {
        let topology = Topology::Target { endpoint: endpoint.to_owned(), status: status.to_owned() };
        self.topology(topology)
    }
    pub fn status(&mut self, status: &str) -> Vec<Action> {
        self.target(TARGET, status)
    }
    pub fn topology(&mut self, topology: Topology) -> Vec<Action> {
        let members = self.placed();
        self.see(Observation::Metadata { topology, members })
    }
    /// The servers where they are now: demoted writers are among the readers.
    fn placed(&self) -> Members {
        let mut members = self.members.clone();
        let demoted = |member: &mut Member| self.demoted.contains(&member.endpoint);
        members.blue_readers.extend(members.blue_writers.extract_if(.., demoted));
        members
    }
    pub fn refresh(&mut self, change: impl FnOnce(&mut BgdHostgroupRow)) -> Vec<Action> {
        let mut row = self.machine.row().clone();
        change(&mut row);
        // LOAD has placed every server as configured.
        self.demoted.clear();
        self.see(Observation::Refresh { row, members: self.members.clone() })
    }
    pub fn reload(&mut self) -> Vec<Action> {
        // LOAD has placed every server as configured.
        self.demoted.clear();
        self.see(Observation::Reload(self.members.clone()))
    }
    pub fn owns_nothing(&self) -> bool {
        self.pins.is_empty()
            && self.suppressed.is_empty()
            && self.shunned.is_empty()
            && self.demoted.is_empty()
            && self.machine.direct().is_none()
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            self.log.push(action.clone());
            let answer = match action {
                Action::Suppress(endpoints) => {
                    self.suppressed.extend(endpoints);
                    None
                }
                Action::ClearSuppression => {
                    self.suppressed.clear();
                    None
                }
                Action::AddGreenWriter { endpoint, .. } => {
                    self.members.green_writers.push(online(&endpoint.host));
                    Some(Observation::GreenWriterAdded { use_ssl: false })
                }
                Action::Resolve(hosts) => Some(Observation::Resolved(self.resolve(&hosts))),
                Action::Demote { endpoint, .. } => {
                    self.demoted.insert(endpoint);
                    None
                }
                Action::ConfigureWriter { endpoint, .. } => {
                    self.demoted.remove(&endpoint);
                    None
                }
                Action::Pin { host, address, .. } => {
                    self.pins.insert(host.to_string(), address);
                    None
                }
                Action::RemoveDns(host) => {
                    self.pins.remove(&*host);
                    None
                }
                Action::Drain(endpoint) => {
                    *self.drained.entry(endpoint).or_default() += 1;
                    None
                }
                Action::ShunReader { endpoint, .. } => {
                    self.shunned.insert(endpoint);
                    None
                }
                Action::UnshunReader { endpoint, .. } => {
                    assert!(self.shunned.remove(&endpoint), "{endpoint} was not shunned by this deployment");
                    None
                }
                Action::DrainGreen(_) => {
                    self.green_drained += 1;
                    None
                }
                Action::Publish(transition) => {
                    assert_eq!(transition.from, self.status);
                    let forward = transition.to > transition.from;
                    assert!(forward || transition.to == BgdStatus::None, "{transition:?}");
                    self.status = transition.to;
                    self.published.push(transition.to);
                    None
                }
                Action::PurgeProbes(_) | Action::PurgeDirect(_) => None,
            };
            if let Some(observation) = answer {
                let more = self.machine.step(observation, self.now);
                self.perform(more);
            }
        }
    }
    fn resolve(&self, hosts: &[Arc<str>]) -> Vec<Resolution> {
        let valid_until = self.now + Duration::from_secs(300);
        let found = hosts.iter().filter_map(|host| {
            let ip = *self.names.get(&**host)?;
            Some(Resolution { host: host.clone(), address: GreenAddress { ip, valid_until } })
        });
        found.collect()
    }
}
