//! Two deployments with servers of their own, on the real effects: none touches what is the other's.

use super::*;
use crate::bgd::mapping::GreenAddress;
use crate::bgd::perform::Performer;
use crate::bgd::{Effects, fixtures};
use crate::hostgroups::Hostgroups;
use crate::testing::server;
use admin::Variables;
use admin::rows::ServersConfig;
use proptest::prelude::*;
use std::net::IpAddr;

/// What happens to one of them.
#[derive(Debug, Clone)]
enum Event {
    Status(&'static str),
    Seen(Observation),
    /// LOAD changes this deployment and not the other.
    Load(bool),
    /// The worker ends, and another one starts.
    Exit,
}

fn event() -> impl Strategy<Value = Event> {
    const STATUSES: [&str; 7] = [
        "AVAILABLE",
        "SWITCHOVER_INITIATED",
        "SWITCHOVER_IN_PROGRESS",
        "SWITCHOVER_IN_POST_PROCESSING",
        "SWITCHOVER_COMPLETED",
        "SOMETHING_ELSE",
        "",
    ];
    let seen = prop::sample::select(vec![
        Observation::TableAbsent,
        Observation::TablePresent,
        Observation::Vanished,
        Observation::Failure,
    ]);
    prop_oneof![
        12 => prop::sample::select(STATUSES.to_vec()).prop_map(Event::Status),
        3 => seen.prop_map(Event::Seen),
        1 => any::<bool>().prop_map(Event::Load),
        1 => Just(Event::Exit),
    ]
}

/// One deployment: hostgroups 10, 20, 30, 40 and names in `a`, or 11, 21, 31, 41 and names in `b`.
struct Side {
    domain: &'static str,
    row: BgdHostgroupRow,
    machine: Machine,
    performer: Performer,
}

/// What of the world is a deployment's.
#[derive(Debug, Clone, PartialEq)]
struct Own {
    servers: Vec<(u32, Endpoint, ServerStatus)>,
    suppressed: Vec<Endpoint>,
    pins: Vec<(String, IpAddr)>,
    status: Option<BgdStatus>,
}

impl Own {
    fn green(&self) -> Vec<&(u32, Endpoint, ServerStatus)> {
        self.servers.iter().filter(|(hostgroup, ..)| *hostgroup >= 30).collect()
    }
}

impl Side {
    fn new(effects: &Effects, at: u32) -> Self {
        let row = BgdHostgroupRow {
            writer_hostgroup: 10 + at,
            reader_hostgroup: 20 + at,
            green_writer_hostgroup: Some(30 + at),
            green_reader_hostgroup: Some(40 + at),
            ..fixtures::row()
        };
        let performer = Performer::new(row.writer_hostgroup, effects.clone());
        let domain = if at == 0 { "a" } else { "b" };
        Self { domain, machine: Machine::new(row.clone()), row, performer }
    }
    fn host(&self, label: &str) -> String {
        format!("{label}.{}", self.domain)
    }
    fn configure(&self, config: &mut ServersConfig) {
        let green = self.row.green_reader_hostgroup.unwrap_or_default();
        let reader = self.row.reader_hostgroup;
        config.servers.extend([
            server(self.row.writer_hostgroup, &self.host("db")),
            server(reader, &self.host("r1")),
            server(reader, &self.host("r2")),
            server(green, &self.host("r1-green-1")),
        ]);
        config.bgd.push(self.row.clone());
    }
    fn see(&mut self, observation: Observation) {
        let now = Instant::now();
        for action in self.machine.step(observation, now) {
            let answer = match action {
                // Names are looked up without asking anybody.
                Action::Resolve(hosts) => {
                    let valid_until = now + Duration::from_secs(300);
                    let address = GreenAddress { ip: [127, 10, 0, 14].into(), valid_until };
                    let found = hosts.into_iter().map(|host| Resolution { host, address });
                    Some(Observation::Resolved(found.collect()))
                }
                other => self.performer.perform(other, Duration::ZERO, ""),
            };
            if let Some(answer) = answer {
                self.see(answer);
            }
        }
    }
    fn own(&self, effects: &Effects) -> Own {
        let is_own = |name: &str| name.ends_with(self.domain);
        let mut pins: Vec<_> = effects.dns.pins().into_iter().map(|(name, ip, _)| (name, ip)).collect();
        pins.retain(|(name, _)| is_own(name));
        pins.sort();
        effects.backends.read(|groups| {
            let all = groups.all().filter(|(_, endpoint, _)| is_own(&endpoint.host));
            let servers: Vec<_> =
                all.map(|(id, endpoint, server)| (id, endpoint.clone(), server.status)).collect();
            let endpoints = servers.iter().map(|(_, endpoint, _)| endpoint);
            let suppressed =
                endpoints.filter(|each| effects.suppression.admit(each).is_none()).cloned().collect();
            let status = groups.deployments().get(&self.row.writer_hostgroup).map(|each| each.status);
            Own { servers, suppressed, pins, status }
        })
    }
}

/// Both, and what they act on.
struct World {
    effects: Effects,
    sides: [Side; 2],
}

impl World {
    fn new() -> Self {
        let effects = fixtures::effects(Variables::default(), None);
        let sides = [0, 1].map(|at| Side::new(&effects, at));
        let world = Self { effects, sides };
        world.load();
        world
    }
    fn load(&self) {
        let mut config = ServersConfig::default();
        self.sides.iter().for_each(|side| side.configure(&mut config));
        self.effects.backends.update(|groups| groups.load(&config));
    }
    fn members(&self, at: usize) -> Members {
        let members = |groups: &Hostgroups| Members::of(groups, &self.sides[at].row);
        self.effects.backends.read(members)
    }
    fn apply(&mut self, at: usize, event: &Event) {
        match event {
            Event::Status(status) => {
                let (endpoint, status) = (self.sides[at].host("db-green-1"), (*status).to_owned());
                let topology = Topology::Target { endpoint, status };
                let members = self.members(at);
                self.sides[at].see(Observation::Metadata { topology, members });
            }
            Event::Seen(observation) => self.sides[at].see(observation.clone()),
            Event::Load(also_reader) => {
                self.sides[at].row.writer_is_also_reader = *also_reader;
                self.load();
                let row = self.sides[at].row.clone();
                let members = self.members(at);
                self.sides[at].see(Observation::Refresh { row, members });
                let members = self.members(1 - at);
                self.sides[1 - at].see(Observation::Reload(members));
            }
            Event::Exit => {
                self.sides[at].see(Observation::Exit);
                self.sides[at].machine = Machine::new(self.sides[at].row.clone());
            }
        }
    }
    fn own(&self) -> [Own; 2] {
        self.sides.each_ref().map(|side| side.own(&self.effects))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn deployments_leave_each_other_alone(events in prop::collection::vec((0..2usize, event()), 1..25)) {
        let mut world = World::new();
        let configured = world.own();
        for (at, event) in &events {
            let before = world.own();
            world.apply(*at, event);
            let after = world.own();
            // LOAD places every server anew.
            if matches!(event, Event::Load(_)) {
                continue;
            }
            prop_assert_eq!(&before[1 - at], &after[1 - at], "{:?} of the other", event);
            let green = after[*at].green();
            prop_assert!(before[*at].green().iter().all(|row| green.contains(row)), "green rows after {:?}", event);
        }
        for at in [0, 1] {
            world.apply(at, &Event::Load(false));
            world.apply(at, &Event::Exit);
        }
        // The green writer that was added stays until a LOAD.
        world.load();
        prop_assert_eq!(world.own(), configured);
    }
}
