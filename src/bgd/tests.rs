//! A worker and its dispatcher against a small server that answers the two statements.

mod worker;

use super::machine::Action;
use super::perform::Performer;
use super::*;
use crate::hostgroups::{BgdStatus, Endpoint, ServerStatus};
use crate::monitor::health::Pong;
use crate::testing::{eventually, server, server_options};
use admin::Variables;
use admin::rows::{ConfiguredStatus, ServerRow, ServersConfig};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use wire::auth::{Account, Accounts, StoredPassword};
use wire::login::login;
use wire::reply::{Column, Reply};
use wire::serve::{Entrance, QueryHandler, serve};
use wire::service::{Accepted, Service, ServiceSpec};
use wire::{SqlError, WireError};

pub(super) const BLUE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 10, 77, 11));
pub(super) const GREEN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 10, 77, 14));
/// Of a second deployment.
const OTHER_BLUE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 10, 77, 21));
const OTHER_GREEN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 10, 77, 24));
const TABLE_CHECK: &str =
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'";

/// What a server's mysql.rds_topology is.
#[derive(Clone)]
pub(super) enum Table {
    Absent,
    Empty,
    Target(&'static str),
    /// Of a Multi-AZ DB cluster: three servers without roles.
    Cluster,
    Broken,
}

/// Every server's table, and the statements seen: where, the table check or not, and when.
#[derive(Default)]
struct Servers {
    tables: Mutex<HashMap<IpAddr, Table>>,
    seen: Mutex<Vec<(IpAddr, bool)>>,
    /// Where connections were opened.
    logins: Mutex<Vec<IpAddr>>,
    times: Mutex<Vec<Instant>>,
    /// How long they take to answer.
    slowness: Mutex<Duration>,
}

struct Session {
    address: IpAddr,
    servers: Arc<Servers>,
}

impl QueryHandler for Session {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        if sql != TABLE_CHECK && sql != "SELECT * FROM mysql.rds_topology" {
            return reply.ok(0, 0, "");
        }
        let check = sql == TABLE_CHECK;
        {
            let mut seen = self.servers.seen.lock();
            seen.push((self.address, check));
            self.servers.times.lock().push(Instant::now());
        }
        let slowness = *self.servers.slowness.lock();
        std::thread::sleep(slowness);
        let table = self.servers.tables.lock().get(&self.address).cloned().unwrap_or(Table::Absent);
        let (names, answer): (&[&str], Vec<Vec<&str>>) = match (check, table) {
            (_, Table::Broken) => return reply.error(&SqlError::new(1105, "HY000", "broken")),
            (true, Table::Absent) => (&["1"], vec![]),
            (true, _) => (&["1"], vec![vec!["1"]]),
            (false, Table::Absent) => return reply.error(&SqlError::new(1146, "42S02", "no such table")),
            (false, Table::Empty) => (&["endpoint", "role", "status"], vec![]),
            (false, Table::Target(status)) => {
                let other = [OTHER_BLUE, OTHER_GREEN].contains(&self.address);
                let endpoint = if other { "other-green-1.bgd.test" } else { "db-green-1.bgd.test" };
                (
                    &["endpoint", "role", "status"],
                    vec![vec![endpoint, "BLUE_GREEN_DEPLOYMENT_TARGET", status]],
                )
            }
            (false, Table::Cluster) => {
                let servers = ["db", "db-2", "db-3"].map(|name| vec![name, "3306"]);
                (&["endpoint", "port"], servers.into())
            }
        };
        let columns: Vec<_> = names.iter().map(|name| Column::text(*name)).collect();
        let mut rows = reply.rows(&columns)?;
        for row in &answer {
            rows.row(row.iter().map(|cell| Some(cell.as_bytes())))?;
        }
        rows.finish()
    }
}

struct Anybody;
impl Accounts for Anybody {
    fn find(&self, _user: &str) -> Option<Account> {
        Some(Account::new(StoredPassword::Clear("monitor".into())))
    }
}

/// A deployment of two servers, and everything a worker acts on.
pub(super) struct Site {
    pub(super) effects: Effects,
    servers: Arc<Servers>,
    loaded: ServersConfig,
    dispatcher: Dispatcher,
    service: Service,
    _hosts: tempfile::TempDir,
}

impl Site {
    fn new(table: Table) -> Self {
        Self::with(table, |_| {})
    }
    /// Every server has this table, and the configuration is changed before anything starts.
    pub(super) fn with(table: Table, change: impl FnOnce(&mut ServersConfig)) -> Self {
        let servers = Arc::new(Servers {
            tables: Mutex::new([BLUE, GREEN].map(|address| (address, table.clone())).into()),
            ..Servers::default()
        });
        let (service, port) = listen(&servers);
        let hosts = tempfile::tempdir().expect("a directory");
        let file = hosts.path().join("hosts");
        let text = format!(
            "{BLUE} db.bgd.test\n{GREEN} db-green-1.bgd.test\n127.10.77.12 r1.bgd.test\n\
             {OTHER_BLUE} other.bgd.test\n{OTHER_GREEN} other-green-1.bgd.test\n127.10.77.22 r2.bgd.test\n"
        );
        std::fs::write(&file, text).expect("written");
        let variables = Variables {
            monitor_enabled: true,
            monitor_username: "monitor".into(),
            monitor_password: "monitor".into(),
            ..Variables::default()
        };
        let effects = super::fixtures::effects(variables, Some(file));
        let mut loaded = super::fixtures::config();
        loaded.servers = vec![server(10, "db.bgd.test"), server(20, "r1.bgd.test")];
        loaded.bgd[0].check_interval_ms = 100;
        change(&mut loaded);
        loaded.servers.iter_mut().for_each(|server| server.port = port);
        effects.backends.update(|groups| groups.load(&loaded));
        let dispatcher = Dispatcher::start(effects.clone()).expect("started");
        Self { effects, servers, loaded, dispatcher, service, _hosts: hosts }
    }
    pub(super) fn endpoint(&self, at: usize) -> Endpoint {
        Endpoint::new(&self.loaded.servers[at].hostname, self.loaded.servers[at].port)
    }
    fn load(&mut self, change: impl FnOnce(&mut ServersConfig)) {
        change(&mut self.loaded);
        self.effects.backends.update(|groups| groups.load(&self.loaded));
    }
    /// Nothing but the test acts from now on.
    pub(super) fn stop_worker(&self) {
        self.dispatcher.stop();
    }
    pub(super) fn logins(&self, address: IpAddr) -> usize {
        self.servers.logins.lock().iter().filter(|each| **each == address).count()
    }
    fn publish(&self, table: Table) {
        let mut tables = self.servers.tables.lock();
        tables.insert(BLUE, table.clone());
        tables.insert(GREEN, table);
    }
    fn status(&self) -> BgdStatus {
        self.effects.backends.read(|groups| groups.deployments()[&10].status)
    }
    fn placed(&self, hostgroup: u32, at: usize) -> Option<ServerStatus> {
        let server = |groups: &crate::hostgroups::Hostgroups| {
            groups.server(hostgroup, &self.endpoint(at)).map(|server| server.status)
        };
        self.effects.backends.read(server)
    }
    fn pinned(&self) -> Vec<(String, IpAddr)> {
        self.effects.dns.pins().into_iter().map(|(name, ip, _)| (name, ip)).collect()
    }
    fn suppressed(&self) -> bool {
        self.effects.suppression.admit(&self.endpoint(0)).is_none()
    }
    /// Publishes a target status and waits for the state it leads to.
    fn reach(&self, status: &'static str, expected: BgdStatus) {
        self.publish(Table::Target(status));
        self.wait(expected);
    }
    fn wait(&self, expected: BgdStatus) {
        eventually(&format!("{expected:?}"), || self.status() == expected);
    }
    /// Waits for the next metadata query on a server.
    fn wait_for_query(&self, address: IpAddr) {
        let count = || self.servers.seen.lock().iter().filter(|seen| **seen == (address, false)).count();
        let before = count();
        eventually(&format!("a query to {address}"), || count() > before);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.dispatcher.stop();
        self.effects.probes.close();
        self.effects.dns.stop();
        self.service.stop(Duration::ZERO);
    }
}

/// Listens on all addresses, at one free port.
fn listen(servers: &Arc<Servers>) -> (Service, u16) {
    let options = server_options(None);
    let servers = servers.clone();
    let serve_one = move |accepted: Accepted| {
        let Ok(local) = accepted.socket.local_addr() else { return };
        let Ok((mut channel, login)) = login(accepted.socket, accepted.id, &options, &Anybody) else {
            return;
        };
        servers.logins.lock().push(local.ip());
        let mut session = Session { address: local.ip(), servers: servers.clone() };
        // The worker closes its connections as it likes.
        let entrance = Entrance { options: &options, accounts: &Anybody };
        let _ = serve(&mut channel, &login, entrance, 1 << 16, &mut session);
    };
    let service = Service::new(
        ServiceSpec { name: "bgd-test", stack: 256 * 1024 },
        Arc::new(|| 100),
        Arc::new(serve_one),
    );
    loop {
        let blue = service.listen(SocketAddr::new(BLUE, 0)).expect("a free port");
        let others = [GREEN, OTHER_BLUE, OTHER_GREEN].map(|address| SocketAddr::new(address, blue.port()));
        let taken = others.iter().filter(|address| service.listen(**address).is_err()).count();
        if taken == 0 {
            return (service, blue.port());
        }
        others.into_iter().chain([blue]).for_each(|address| service.unlisten(address));
    }
}

fn to_post_processing(site: &Site) {
    site.reach("AVAILABLE", BgdStatus::Available);
    site.reach("SWITCHOVER_INITIATED", BgdStatus::WriterSwitchoverInitiated);
    site.reach("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
    site.reach("SWITCHOVER_IN_POST_PROCESSING", BgdStatus::WriterSwitchoverPostProcessing);
}

#[test]
fn a_deployment_that_discovery_makes_anew_after_a_load_has_its_status_again() {
    let mut site = Site::with(Table::Target("AVAILABLE"), |config| config.bgd.clear());
    let writer = site.endpoint(0);
    site.effects.backends.update(|groups| groups.add_deployment(&writer));
    eventually("available", || site.status() == BgdStatus::Available);
    site.effects.backends.update(|groups| {
        groups.load(&site.loaded);
        groups.add_deployment(&writer);
        assert_eq!(groups.deployments()[&10].status, BgdStatus::None);
    });
    eventually("available again", || site.status() == BgdStatus::Available);
    let checks = || site.servers.seen.lock().iter().filter(|(_, check)| *check).count();
    assert_eq!(checks(), 1, "by the same worker");
    site.load(|_| {});
    assert!(site.effects.backends.read(|groups| groups.deployments().is_empty()));
}

#[test]
fn a_switchover_from_end_to_end() {
    let site = Site::new(Table::Target("AVAILABLE"));
    site.reach("AVAILABLE", BgdStatus::Available);
    let green = Endpoint::new("db-green-1.bgd.test", site.loaded.servers[0].port);
    assert!(site.effects.backends.read(|groups| groups.server(30, &green).is_some()));
    site.wait_for_query(GREEN);
    assert_eq!(site.servers.seen.lock()[..2], [(BLUE, true), (BLUE, false)]);
    assert!(!site.suppressed());
    site.reach("SWITCHOVER_INITIATED", BgdStatus::WriterSwitchoverInitiated);
    assert!(site.suppressed());
    site.reach("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
    assert_eq!((site.placed(10, 0), site.placed(20, 0)), (None, Some(ServerStatus::Online)));
    site.reach("SWITCHOVER_IN_POST_PROCESSING", BgdStatus::WriterSwitchoverPostProcessing);
    assert_eq!(site.pinned(), [("db.bgd.test".to_owned(), GREEN)]);
    assert_eq!(site.placed(10, 0), Some(ServerStatus::Online));
    assert_eq!(site.placed(20, 0), Some(ServerStatus::Online), "no reader is mapped: the writer reads");
    assert_eq!(site.placed(20, 1), Some(ServerStatus::ShunnedAwsBgd));
    site.reach("SWITCHOVER_COMPLETED", BgdStatus::ReaderSwitchoverInProgress);
    assert_eq!(site.pinned(), []);
    assert!(site.suppressed());
    site.publish(Table::Empty);
    site.wait(BgdStatus::None);
    assert_eq!((site.placed(10, 0), site.placed(20, 0)), (Some(ServerStatus::Online), None));
    assert_eq!(site.placed(20, 1), Some(ServerStatus::Online));
    assert!(!site.suppressed());
    site.wait_for_query(BLUE);
}

#[test]
fn a_lost_green_writer_is_left_for_the_blue_one_and_the_state_stays() {
    let site = Site::new(Table::Target("AVAILABLE"));
    to_post_processing(&site);
    site.servers.tables.lock().insert(GREEN, Table::Broken);
    site.wait_for_query(BLUE);
    assert_eq!((site.status(), site.pinned()), (BgdStatus::WriterSwitchoverPostProcessing, Vec::new()));
    assert_eq!(site.servers.seen.lock().iter().filter(|(_, check)| *check).count(), 1);
    site.publish(Table::Absent);
    site.wait(BgdStatus::None);
}

#[test]
fn stopping_rolls_back() {
    let site = Site::new(Table::Target("AVAILABLE"));
    to_post_processing(&site);
    site.dispatcher.stop();
    assert_eq!((site.status(), site.pinned()), (BgdStatus::None, Vec::new()));
    assert_eq!(site.placed(20, 1), Some(ServerStatus::Online));
    assert!(!site.suppressed());
}

#[test]
fn a_changed_configuration_is_taken_up_in_place_and_a_disabled_deployment_rolled_back() {
    let mut site = Site::new(Table::Target("AVAILABLE"));
    site.reach("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
    site.load(|config| config.bgd[0].check_timeout_ms = 900);
    eventually("the second demotion", || site.placed(10, 0).is_none());
    assert_eq!(site.status(), BgdStatus::WriterSwitchoverInProgress);
    assert_eq!(site.servers.seen.lock().iter().filter(|(_, check)| *check).count(), 1);
    site.load(|config| config.servers[1].weight = 7);
    eventually("the third demotion", || site.placed(10, 0).is_none());
    site.load(|config| config.bgd[0].active = false);
    site.wait(BgdStatus::None);
    eventually("the end of suppression", || !site.suppressed());
    assert_eq!(site.placed(10, 0), Some(ServerStatus::Online));
    site.load(|config| config.bgd[0].active = true);
    site.wait(BgdStatus::WriterSwitchoverInProgress);
    assert_eq!(site.servers.seen.lock().iter().filter(|(_, check)| *check).count(), 2);
}

#[test]
fn a_deployment_that_was_away_for_a_moment_starts_afresh() {
    let away: [fn(&mut ServersConfig); 3] = [
        |config| config.bgd.clear(),
        |config| config.bgd[0].active = false,
        |config| config.servers[0].status = ConfiguredStatus::OfflineSoft,
    ];
    for away in away {
        let site = Site::new(Table::Target("AVAILABLE"));
        site.reach("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
        let mut without = site.loaded.clone();
        away(&mut without);
        // The dispatcher sees nothing of what is between the two.
        site.effects.backends.update(|groups| {
            groups.load(&without);
            groups.load(&site.loaded);
        });
        let checks = || site.servers.seen.lock().iter().filter(|(_, check)| *check).count();
        eventually("another worker's table check", || checks() == 2);
        site.wait(BgdStatus::WriterSwitchoverInProgress);
    }
}

#[test]
fn a_deployment_that_a_load_ended_adds_no_green_writer() {
    let mut site = Site::new(Table::Target("AVAILABLE"));
    site.wait(BgdStatus::Available);
    site.load(|config| config.bgd.clear());
    site.dispatcher.stop();
    let endpoint = Endpoint::new("db-green-1.bgd.test", 3306);
    let action = Action::AddGreenWriter { hostgroup: 30, endpoint: endpoint.clone() };
    let answer = Performer::new(10, site.effects.clone()).perform(action, Duration::ZERO, "");
    assert_eq!(answer, None);
    assert!(site.effects.backends.read(|groups| groups.server(30, &endpoint).is_none()));
}

#[test]
fn a_deployment_gets_its_worker_when_a_writer_is_placed() {
    let site = Site::with(Table::Target("AVAILABLE"), |config| config.servers[0].hostgroup_id = 20);
    let writer = site.endpoint(0);
    site.effects.backends.update(|groups| groups.configure_writer(10, 20, &writer, false));
    site.wait(BgdStatus::Available);
}

#[test]
fn only_blue_writers_that_answer_pings_are_asked() {
    let site = Site::with(Table::Absent, |config| {
        let other = ServerRow { hostname: "db-green-1.bgd.test".into(), ..config.servers[0].clone() };
        config.servers.push(other);
        config.bgd[0].check_interval_ms = 10;
    });
    let asked = |count: usize| {
        let since = site.servers.seen.lock().len();
        eventually("polls", || site.servers.seen.lock().len() >= since + count);
        let seen = site.servers.seen.lock();
        seen[since..].iter().map(|(address, _)| *address).collect::<BTreeSet<IpAddr>>()
    };
    let [blue, other] = [0, 2].map(|at| site.endpoint(at));
    let miss = |endpoint| {
        (0..3).for_each(|_| {
            site.effects.health.note(endpoint, Pong::Missed);
        });
    };
    miss(&blue);
    asked(1);
    assert_eq!(asked(20), [GREEN].into());
    miss(&other);
    site.effects.health.note(&blue, Pong::Refused);
    asked(1);
    assert_eq!(asked(20), [BLUE].into());
}
