//! Placement beside a reference of it: a plain table of who is where. Any configuration and any order of LOADs, read_only results and
//! switchover steps, by one thread and by several at once.

use super::rows::runtime_mysql_servers_rows;
use super::*;
use crate::config::Config;
use crate::dns::Dns;
use crate::pool::Backends;
use crate::testing::{pair, server};
use admin::Variables;
use admin::rows::{ConfiguredStatus, ServersConfig};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::sync::Barrier;

/// Writer, reader, green writer and green reader hostgroup of two deployments.
const DEPLOYMENTS: [[HostgroupId; 4]; 2] = [[1, 2, 3, 4], [5, 6, 7, 8]];
const HOSTS: [&str; 5] = ["writer", "reader", "both", "writer-green-1", "unknown"];
const THREADS: usize = 4;

#[derive(Debug, Clone)]
enum Operation {
    Load(ServersConfig),
    ReadOnly { endpoint: Endpoint, read_only: bool, also_reader: bool },
    Demote { deployment: usize, endpoint: Endpoint },
    ConfigureWriter { deployment: usize, endpoint: Endpoint, also_reader: bool },
    Shun { deployment: usize, endpoint: Endpoint },
    Unshun { deployment: usize, endpoint: Endpoint },
    AddGreenWriter { deployment: usize, endpoint: Endpoint },
}

/// A server in a hostgroup: its status, and the weight that tells which row it has.
type Place = (ServerStatus, u32);
type Places = BTreeMap<(HostgroupId, Endpoint), Place>;

/// The reference. OFFLINE_HARD is nowhere.
#[derive(Debug, Default)]
struct Model {
    configured: Places,
    places: Places,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Load(config) => self.load(config),
            Operation::ReadOnly { endpoint, read_only, also_reader } => {
                for (deployment, [writer, reader, ..]) in DEPLOYMENTS.into_iter().enumerate() {
                    let serves = |place: Option<Place>| place.is_some_and(|(status, _)| !status.is_offline());
                    let writes = self.place(writer, endpoint);
                    if *read_only && serves(writes) {
                        self.demote(deployment, endpoint);
                    } else if !read_only && writes.is_none() && serves(self.place(reader, endpoint)) {
                        self.configure_writer(deployment, endpoint, *also_reader);
                    }
                }
            }
            Operation::Demote { deployment, endpoint } => self.demote(*deployment, endpoint),
            Operation::ConfigureWriter { deployment, endpoint, also_reader } => {
                self.configure_writer(*deployment, endpoint, *also_reader);
            }
            Operation::Shun { deployment, endpoint } => {
                self.change(*deployment, endpoint, ServerStatus::Online, ServerStatus::ShunnedAwsBgd);
            }
            Operation::Unshun { deployment, endpoint } => {
                self.change(*deployment, endpoint, ServerStatus::ShunnedAwsBgd, ServerStatus::Online);
            }
            Operation::AddGreenWriter { deployment, endpoint } => {
                let key = (DEPLOYMENTS[*deployment][2], endpoint.clone());
                self.places.entry(key).or_insert((ServerStatus::Online, 1));
            }
        }
    }
    fn load(&mut self, config: &ServersConfig) {
        self.configured.clear();
        for row in config.servers.iter().filter(|row| row.status != ConfiguredStatus::OfflineHard) {
            let key = (row.hostgroup_id, Endpoint::new(&row.hostname, row.port));
            self.configured.entry(key).or_insert((row.status.into(), row.weight));
        }
        self.places = self.configured.clone();
    }
    fn demote(&mut self, deployment: usize, endpoint: &Endpoint) {
        let [writer, reader, ..] = DEPLOYMENTS[deployment];
        if let Some(place) = self.place(writer, endpoint) {
            self.enter(reader, endpoint, Some(place));
            self.places.remove(&(writer, endpoint.clone()));
        }
    }
    fn configure_writer(&mut self, deployment: usize, endpoint: &Endpoint, also_reader: bool) {
        let [writer, reader, ..] = DEPLOYMENTS[deployment];
        self.enter(writer, endpoint, self.place(reader, endpoint));
        let Some(place) = self.place(writer, endpoint) else { return };
        if also_reader {
            self.enter(reader, endpoint, Some(place));
        } else {
            self.places.remove(&(reader, endpoint.clone()));
        }
    }
    /// Into a hostgroup, with its configured row there or else the one that it has where it comes from.
    fn enter(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint, from: Option<Place>) {
        let key = (hostgroup, endpoint.clone());
        let Some((_, weight)) = self.configured.get(&key).copied().or(from) else { return };
        let soft = from.is_some_and(|(status, _)| status == ServerStatus::OfflineSoft);
        let status = if soft { ServerStatus::OfflineSoft } else { ServerStatus::Online };
        self.places.entry(key).or_insert((status, weight));
    }
    fn change(&mut self, deployment: usize, endpoint: &Endpoint, from: ServerStatus, to: ServerStatus) {
        let key = (DEPLOYMENTS[deployment][1], endpoint.clone());
        if let Some((status, _)) = self.places.get_mut(&key).filter(|(status, _)| *status == from) {
            *status = to;
        }
    }
    fn place(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> Option<Place> {
        self.places.get(&(hostgroup, endpoint.clone())).copied()
    }
}

fn perform(hostgroups: &mut Hostgroups, operation: &Operation) {
    match operation {
        Operation::Load(config) => drop(hostgroups.load(config)),
        Operation::ReadOnly { endpoint, read_only, also_reader } => {
            let moves = hostgroups.read_only_moves(endpoint, *read_only);
            let lines = hostgroups.apply_read_only(endpoint, *read_only, *also_reader);
            assert_eq!(moves, !lines.is_empty(), "{operation:?}");
            assert!(!hostgroups.read_only_moves(endpoint, *read_only), "{operation:?} is not done");
        }
        Operation::Demote { deployment, endpoint } => {
            let [writer, reader, ..] = DEPLOYMENTS[*deployment];
            hostgroups.demote(writer, reader, endpoint);
        }
        Operation::ConfigureWriter { deployment, endpoint, also_reader } => {
            let [writer, reader, ..] = DEPLOYMENTS[*deployment];
            hostgroups.configure_writer(writer, reader, endpoint, *also_reader);
        }
        Operation::Shun { deployment, endpoint } => {
            hostgroups.shun_aws_bgd(DEPLOYMENTS[*deployment][1], endpoint);
        }
        Operation::Unshun { deployment, endpoint } => {
            hostgroups.unshun_aws_bgd(DEPLOYMENTS[*deployment][1], endpoint);
        }
        Operation::AddGreenWriter { deployment, endpoint } => {
            hostgroups.add_discovered(DEPLOYMENTS[*deployment][2], endpoint);
        }
    }
}

fn places(hostgroups: &Hostgroups) -> Places {
    let present = hostgroups.all().filter(|(_, _, server)| server.status != ServerStatus::OfflineHard);
    present
        .map(|(id, endpoint, server)| ((id, endpoint.clone()), (server.status, server.row.weight)))
        .collect()
}

/// What holds after any step, whatever the reference says.
fn invariants(
    before: &Places,
    operation: &Operation,
    after: &Places,
    configured: &Places,
) -> Result<(), TestCaseError> {
    let has =
        |places: &Places, id: HostgroupId, endpoint: &Endpoint| places.contains_key(&(id, endpoint.clone()));
    let concerned: Vec<HostgroupId> = match operation {
        Operation::Load(_) => {
            prop_assert_eq!(after, configured, "LOAD restores the configured placement");
            return Ok(());
        }
        Operation::ReadOnly { .. } => {
            DEPLOYMENTS.iter().flat_map(|[writer, reader, ..]| [*writer, *reader]).collect()
        }
        Operation::Demote { deployment, .. } | Operation::ConfigureWriter { deployment, .. } => {
            DEPLOYMENTS[*deployment][..2].to_vec()
        }
        Operation::Shun { deployment, .. } | Operation::Unshun { deployment, .. } => {
            vec![DEPLOYMENTS[*deployment][1]]
        }
        Operation::AddGreenWriter { deployment, .. } => vec![DEPLOYMENTS[*deployment][2]],
    };
    for key in before.keys().chain(after.keys()).filter(|key| before.get(key) != after.get(key)) {
        prop_assert!(concerned.contains(&key.0), "{:?} changed {:?}", operation, key);
    }
    for [writer, reader, green_writer, green_reader] in DEPLOYMENTS {
        for (id, endpoint) in configured.keys().filter(|(id, _)| [writer, reader].contains(id)) {
            let somewhere = has(after, writer, endpoint) || has(after, reader, endpoint);
            prop_assert!(somewhere, "{} of hostgroup {} is lost after {:?}", endpoint, id, operation);
        }
        for (id, endpoint) in before.keys().filter(|(id, _)| [green_writer, green_reader].contains(id)) {
            prop_assert!(has(after, *id, endpoint), "{:?} removed green {}", operation, endpoint);
        }
    }
    match operation {
        Operation::Demote { deployment, endpoint } => {
            let [writer, reader, ..] = DEPLOYMENTS[*deployment];
            prop_assert!(!has(after, writer, endpoint));
            prop_assert!(has(after, reader, endpoint) || !has(before, writer, endpoint));
        }
        Operation::ConfigureWriter { deployment, endpoint, also_reader } => {
            let [writer, reader, ..] = DEPLOYMENTS[*deployment];
            let known = has(before, writer, endpoint)
                || has(before, reader, endpoint)
                || has(configured, writer, endpoint);
            prop_assert_eq!(has(after, writer, endpoint), known);
            prop_assert_eq!(has(after, reader, endpoint), known && *also_reader);
        }
        _ => {}
    }
    Ok(())
}

/// The steps in the order in which they were made, each with the placement after it, against the reference.
fn follow(steps: &[(Operation, Places)]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    for (operation, after) in steps {
        let before = model.places.clone();
        model.apply(operation);
        prop_assert_eq!(after, &model.places, "after {:?}", operation);
        invariants(&before, operation, after, &model.configured)?;
    }
    Ok(())
}

fn config() -> impl Strategy<Value = ServersConfig> {
    use ConfiguredStatus::{OfflineHard, OfflineSoft, Online, Shunned};
    let status =
        prop_oneof![6 => Just(Online), 1 => Just(Shunned), 1 => Just(OfflineSoft), 1 => Just(OfflineHard)];
    let row = (1..=8u32, prop::sample::select(&HOSTS[..4]), status);
    // The same server in several hostgroups, or twice in one, is as likely as not.
    prop::collection::vec(row, 1..12).prop_map(|rows| {
        let numbered = rows.into_iter().zip(10..);
        let servers =
            numbered.map(|((id, host, status), weight)| ServerRow { status, weight, ..server(id, host) });
        let replication = DEPLOYMENTS.map(|[writer, reader, ..]| pair(writer, reader)).into();
        ServersConfig { servers: servers.collect(), replication, ..ServersConfig::default() }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let endpoint = || prop::sample::select(&HOSTS[..]).prop_map(|host| Endpoint::new(host, 3306));
    let of_one = || (0..DEPLOYMENTS.len(), endpoint());
    prop_oneof![
        1 => config().prop_map(Operation::Load),
        6 => (endpoint(), any::<bool>(), any::<bool>())
            .prop_map(|(endpoint, read_only, also_reader)| Operation::ReadOnly { endpoint, read_only, also_reader }),
        3 => of_one().prop_map(|(deployment, endpoint)| Operation::Demote { deployment, endpoint }),
        3 => (of_one(), any::<bool>()).prop_map(|((deployment, endpoint), also_reader)| {
            Operation::ConfigureWriter { deployment, endpoint, also_reader }
        }),
        2 => of_one().prop_map(|(deployment, endpoint)| Operation::Shun { deployment, endpoint }),
        2 => of_one().prop_map(|(deployment, endpoint)| Operation::Unshun { deployment, endpoint }),
        1 => of_one().prop_map(|(deployment, endpoint)| Operation::AddGreenWriter { deployment, endpoint }),
    ]
}

fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn placement_is_that_of_the_reference(first in config(), rest in operations(40)) {
        let mut hostgroups = Hostgroups::default();
        let mut steps = Vec::new();
        for operation in std::iter::once(Operation::Load(first)).chain(rest) {
            perform(&mut hostgroups, &operation);
            steps.push((operation, places(&hostgroups)));
        }
        follow(&steps)?;
        // Those that were taken out stay for their connections alone.
        hostgroups.purge(|_, _| 0);
        prop_assert_eq!(runtime_mysql_servers_rows(&hostgroups).len(), places(&hostgroups).len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// What several threads do at once is what they would have done one after the other, in the order in which they had the lock.
    #[test]
    fn threads_place_as_one_would(
        first in config(),
        of_threads in prop::collection::vec(operations(60), THREADS),
    ) {
        let config = Arc::new(Config::new(Variables::default()));
        let backends = Backends::new(config.clone(), Dns::new(config, None));
        let steps = Mutex::new(Vec::new());
        let take = |operation: Operation| backends.update(|hostgroups| {
            perform(hostgroups, &operation);
            steps.lock().push((operation, places(hostgroups)));
        });
        take(Operation::Load(first));
        let together = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for operations in of_threads {
                let (take, together) = (&take, &together);
                scope.spawn(move || {
                    together.wait();
                    operations.into_iter().for_each(take);
                });
            }
        });
        let steps = steps.into_inner();
        follow(&steps)?;
        let rows = backends.read(runtime_mysql_servers_rows);
        prop_assert_eq!(rows.len(), steps.last().map_or(0, |(_, places)| places.len()), "nobody is OFFLINE_HARD");
    }
}
