//! Two deployments switch over, back and forth, while read_only results come in and servers are loaded, all at once. The machine, its
//! hands and the placement of read_only results are the real ones; what servers say is made up.

use super::dispatcher::Wanted;
use super::machine::{Action, Machine, Observation};
use super::mapping::Members;
use super::perform::Performer;
use super::topology::Topology;
use super::*;
use crate::hostgroups::{BgdStatus, Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use crate::monitor::Checks;
use crate::testing::{pair, server};
use admin::Variables;
use admin::rows::{BgdHostgroupRow, ServerRow, ServersConfig};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Statuses of AWS, and no rows.
const STATUSES: [&str; 6] = [
    "",
    "AVAILABLE",
    "SWITCHOVER_INITIATED",
    "SWITCHOVER_IN_PROGRESS",
    "SWITCHOVER_IN_POST_PROCESSING",
    "SWITCHOVER_COMPLETED",
];
/// Writer hostgroups of the deployments; their readers' are ten above, or twelve in one configuration, those of their green servers
/// twenty and thirty.
const IDS: [HostgroupId; 2] = [10, 11];
/// Each deployment has so many LOADs meanwhile.
const LOADS: usize = 20;

/// Blue servers of each deployment: its writer, a reader that has a green counterpart and one that has none.
const BLUE: [&str; 3] = ["db", "mapped", "alone"];

type Places = BTreeMap<(HostgroupId, Endpoint), ServerStatus>;

fn at(name: &str, id: HostgroupId) -> Endpoint {
    Endpoint::new(&format!("{name}.{id}"), 3306)
}

/// Variants of one configuration: as it is, with a change that concerns no deployment, with changes that do.
const VARIANTS: usize = 5;

fn config(variant: usize) -> ServersConfig {
    let mut config = ServersConfig::default();
    for id in IDS {
        let reader = if variant == 4 { id + 12 } else { id + 10 };
        let hosts = [("db", id), ("mapped", reader), ("alone", reader), ("mapped-green-1", id + 30)];
        config.servers.extend(hosts.map(|(name, hostgroup)| server(hostgroup, &format!("{name}.{id}"))));
        config.replication.push(pair(id, reader));
        config.bgd.push(BgdHostgroupRow {
            writer_hostgroup: id,
            reader_hostgroup: reader,
            green_writer_hostgroup: Some(id + 20),
            green_reader_hostgroup: Some(id + 30),
            check_timeout_ms: if variant == 2 { 900 } else { 800 },
            ..fixtures::row()
        });
    }
    if variant == 1 {
        config.servers.iter_mut().for_each(|row| row.weight = 7);
    }
    if variant == 3 {
        config.servers.push(server(IDS[0] + 10, "third.10"));
    }
    config
}

struct Site {
    effects: Effects,
    checks: Checks,
    /// Servers of each deployment that say the opposite of what is so. They begin when their checks have been suspended, and end
    /// before these resume: no such word may ever count.
    lying: [Mutex<Vec<Endpoint>>; IDS.len()],
    /// The generation of the configuration that each worker has taken up; the largest number when it has ended.
    taken_up: [AtomicU64; IDS.len()],
    loads: (crossbeam_channel::Sender<usize>, crossbeam_channel::Receiver<usize>),
    /// The configuration that was loaded last.
    loaded: Mutex<ServersConfig>,
    _hosts: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("hosts");
        let lines = IDS.map(|id| {
            format!("127.10.1.{id} db-green-1.{id} mapped-green-1.{id} db.{id} mapped.{id} alone.{id}\n")
        });
        std::fs::write(&file, lines.concat()).expect("written");
        let variables = Variables { monitor_writer_is_also_reader: false, ..Variables::default() };
        let effects = fixtures::effects(variables, Some(file));
        let Effects { config, backends, dns, probes, suppression, health } = effects.clone();
        let checks = Checks::new(config, backends, dns, probes, suppression, health);
        let (lying, taken_up) = Default::default();
        let loads = crossbeam_channel::unbounded();
        Self { effects, checks, lying, taken_up, loads, loaded: Mutex::default(), _hosts: directory }
    }
    fn load(&self, variant: usize) {
        let mut loaded = self.loaded.lock();
        *loaded = config(variant);
        self.effects.backends.update(|hostgroups| hostgroups.load(&loaded));
    }
    /// Whether every worker has taken up this generation.
    fn has_taken_up(&self, generation: u64) -> bool {
        self.taken_up.iter().all(|taken_up| taken_up.load(Ordering::Acquire) >= generation)
    }
    fn has_ended(&self) -> bool {
        self.has_taken_up(u64::MAX)
    }
    /// Loads what workers ask for. A LOAD waits until the one before was taken up: two that cancel each other out between two looks of
    /// the dispatcher, with a poll between them, would not be noticed.
    fn load_on_demand(&self) {
        while !self.has_ended() {
            let generation = self.effects.backends.read(Hostgroups::generation);
            if self.has_taken_up(generation)
                && let Ok(variant) = self.loads.1.try_recv()
            {
                self.load(variant);
            }
            breathe();
        }
    }
    /// Checks one server again and again.
    fn check(&self, number: usize, endpoint: &Endpoint, read_only: bool) {
        while !self.has_ended() {
            let Some(admission) = self.effects.suppression.admit(endpoint) else {
                breathe();
                continue;
            };
            breathe();
            let said = read_only != self.lying[number].lock().contains(endpoint);
            breathe();
            self.checks.place(endpoint, said, admission);
        }
    }
    /// What others see of placement at any time.
    fn watch(&self) {
        let mut before = (0, Places::new());
        while !self.has_ended() {
            let (generation, places) =
                self.effects.backends.read(|hostgroups| (hostgroups.generation(), places(hostgroups)));
            if before.0 == generation {
                for green in before.1.keys().filter(|(id, _)| *id >= IDS[0] + 20) {
                    assert!(places.contains_key(green), "green {green:?} is gone without a LOAD");
                }
            }
            before = (generation, places);
            breathe();
        }
    }
}

/// Leaves the processors to the workers for a moment, which have more to do than those around them.
fn breathe() {
    std::thread::sleep(Duration::from_micros(50));
}

/// Who is where; no server of either deployment is nowhere.
fn places(hostgroups: &Hostgroups) -> Places {
    let place = |(id, endpoint, server): (_, &Endpoint, &Server)| ((id, endpoint.clone()), server.status);
    let places: Places = hostgroups.all().map(place).collect();
    for id in IDS {
        for endpoint in BLUE.map(|name| at(name, id)) {
            let found = [id, id + 10, id + 12].map(|id| places.contains_key(&(id, endpoint.clone())));
            assert!(found.contains(&true), "{endpoint} is nowhere");
        }
    }
    places
}

/// A worker, but for its polls.
struct Worker<'a> {
    site: &'a Site,
    number: usize,
    id: HostgroupId,
    machine: Machine,
    performer: Performer,
    /// The configuration taken up last.
    seen: (u64, Wanted, BgdHostgroupRow),
    /// How often placement was compared with the status.
    compared: usize,
}

impl<'a> Worker<'a> {
    fn new(site: &'a Site, number: usize) -> Self {
        let id = IDS[number];
        let seen = Self::wanted(site, id);
        let row = config(0).bgd[number].clone();
        let performer = Performer::new(id, site.effects.clone());
        Self { site, number, id, machine: Machine::new(row), performer, seen, compared: 0 }
    }
    fn wanted(site: &Site, id: HostgroupId) -> (u64, Wanted, BgdHostgroupRow) {
        site.effects.backends.read(|hostgroups| {
            let row = hostgroups.deployments()[&id].row.clone();
            (hostgroups.generation(), Wanted::all(hostgroups)[&id].clone(), row)
        })
    }
    fn work(mut self, statuses: &[usize]) -> usize {
        for (step, status) in statuses.iter().enumerate() {
            self.take_up_configuration();
            if step % (statuses.len() / LOADS).max(1) == 0 {
                let variant = (step / 5 + status) % VARIANTS;
                self.site.loads.0.send(variant).expect("the other end is the site's, too");
            }
            let topology = match STATUSES[*status] {
                "" => Topology::Empty,
                status => {
                    Topology::Target { endpoint: format!("db-green-1.{}", self.id), status: status.into() }
                }
            };
            let members = self.members();
            self.observe(Observation::Metadata { topology, members });
            self.compare();
        }
        self.observe(Observation::Exit);
        self.compared
    }
    /// As the dispatcher and the worker do it.
    fn take_up_configuration(&mut self) {
        let seen = Self::wanted(self.site, self.id);
        let before = std::mem::replace(&mut self.seen, seen);
        if self.seen.1 != before.1 {
            let row = self.seen.2.clone();
            let members = self.site.effects.backends.read(|hostgroups| Members::of(hostgroups, &row));
            self.observe(Observation::Refresh { row, members });
        } else if self.seen.0 != before.0 {
            self.observe(Observation::Reload(self.members()));
        }
        self.site.taken_up[self.number].store(self.seen.0, Ordering::Release);
    }
    fn members(&self) -> Members {
        self.site.effects.backends.read(|hostgroups| Members::of(hostgroups, self.machine.row()))
    }
    fn observe(&mut self, observation: Observation) {
        let lying = &self.site.lying[self.number];
        let mut actions = VecDeque::from(self.machine.step(observation, Instant::now()));
        while let Some(action) = actions.pop_front() {
            let suspended = match &action {
                Action::Suppress(endpoints) => endpoints.clone(),
                _ => Vec::new(),
            };
            if action == Action::ClearSuppression {
                lying.lock().clear();
            }
            if let Some(answer) = self.performer.perform(action, Duration::from_secs(10), "") {
                let more = self.machine.step(answer, Instant::now());
                more.into_iter().rev().for_each(|action| actions.push_front(action));
            }
            lying.lock().extend(suspended);
        }
    }
    /// Servers are where the status says, unless a LOAD has come since the configuration was taken up.
    fn compare(&mut self) {
        let (id, reader) = (self.id, self.machine.row().reader_hostgroup);
        let places = [(id, "db"), (reader, "db"), (reader, "alone"), (reader, "mapped")];
        let (generation, [writes, reads, alone, mapped]) = self.site.effects.backends.read(|hostgroups| {
            let status =
                |(hostgroup, name)| hostgroups.server(hostgroup, &at(name, id)).map(|server| server.status);
            (hostgroups.generation(), places.map(status))
        });
        if generation != self.seen.0 {
            return;
        }
        self.compared += 1;
        let status = self.machine.published();
        let demoted = status == BgdStatus::WriterSwitchoverInProgress;
        assert_eq!(
            (writes.is_some(), reads.is_some()),
            (!demoted, demoted),
            "the writer of {id} in {status}"
        );
        match status {
            BgdStatus::WriterSwitchoverPostProcessing => assert_eq!(alone, Some(ServerStatus::ShunnedAwsBgd)),
            BgdStatus::ReaderSwitchoverInProgress => {}
            _ => assert_eq!(alone, Some(ServerStatus::Online), "in {status}"),
        }
        assert_eq!(mapped, Some(ServerStatus::Online));
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.site.taken_up[self.number].store(u64::MAX, Ordering::Release);
    }
}

proptest! {
    // Threads make each of them different.
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn servers_are_where_the_status_says(
        of_workers in prop::collection::vec(prop::collection::vec(0..STATUSES.len(), 100..150), IDS.len()),
    ) {
        let site = Site::new();
        site.load(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = of_workers.iter().enumerate().map(|(number, statuses)| {
                let worker = Worker::new(&site, number);
                scope.spawn(move || worker.work(statuses))
            }).collect();
            for (number, id) in IDS.into_iter().enumerate() {
                let site = &site;
                for (name, read_only) in [("db", false), ("alone", true)] {
                    scope.spawn(move || site.check(number, &at(name, id), read_only));
                }
            }
            scope.spawn(|| site.watch());
            scope.spawn(|| site.load_on_demand());
            for worker in workers {
                // A LOAD hides at most the step that it falls into, of each worker.
                assert!(worker.join().expect("the worker's assertions hold") > 0);
            }
        });
        let Effects { backends, suppression, dns, .. } = &site.effects;
        prop_assert_eq!(dns.pins(), []);
        for endpoint in IDS.into_iter().flat_map(|id| BLUE.map(|name| at(name, id))) {
            prop_assert!(suppression.admit(&endpoint).is_some());
        }
        let place = |row: ServerRow| ((row.hostgroup_id, Endpoint::new(&row.hostname, row.port)), ServerStatus::Online);
        let loaded = site.loaded.into_inner();
        let configured: Places = loaded.servers.iter().cloned().map(place).collect();
        let mut restored = backends.read(places);
        // Green writers, which switchovers have added, stay.
        restored.retain(|(_, endpoint), _| !endpoint.host.starts_with("db-green"));
        prop_assert_eq!(&restored, &configured, "after the rollback of every deployment");
        backends.update(|hostgroups| hostgroups.load(&loaded));
        prop_assert_eq!(backends.read(places), configured, "after a LOAD");
    }
}
