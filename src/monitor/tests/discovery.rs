//! Discovery beside the read_only checks.

use super::*;
use crate::hostgroups::HostgroupId;
use admin::rows::BgdHostgroupRow;

const HOST: &str = "db.x.rds.amazonaws.com";
const DEPLOYMENT: &[&[&str]] = &[
    &["id", "endpoint", "port", "role", "status"],
    &["1", HOST, "3306", "BLUE_GREEN_DEPLOYMENT_SOURCE", "AVAILABLE"],
];
const CLUSTER: &[&[&str]] = &[&["id", "endpoint", "port"], &["1", "b.x.rds.amazonaws.com", "3306"]];

/// One server that RDS seems to run, in the writer hostgroup 1.
struct Rds {
    server: Server,
    fixture: Fixture,
    endpoint: Endpoint,
    _hosts: tempfile::TempDir,
}

impl Rds {
    fn new(topology: &[&'static [&'static str]]) -> Self {
        let server = Server::new("0");
        *server.script.topology.lock() = topology.to_vec();
        let hosts = tempfile::tempdir().unwrap();
        let file = hosts.path().join("hosts");
        std::fs::write(&file, format!("127.0.0.1 {HOST}\n")).unwrap();
        let config = config(|_| ());
        let dns = Dns::new(config.clone(), Some(file));
        let port = server.address.port();
        let rows = vec![ServerRow { port, ..row(1, HOST) }, row(1, "127.0.0.1")];
        let fixture = Fixture::of(dns, config, rows);
        Self { server, fixture, endpoint: Endpoint::new(HOST, port), _hosts: hosts }
    }
    fn discover(&self) -> Checks {
        let checks = self.fixture.checks();
        checks.discoveries().iter().for_each(|job| assert!(checks.perform(job, None)));
        checks
    }
    fn deployments(&self) -> Vec<BgdHostgroupRow> {
        self.fixture
            .backends
            .read(|groups| groups.deployments().values().map(|each| each.row.clone()).collect())
    }
    fn readers(&self) -> Vec<String> {
        const READER: HostgroupId = 2;
        self.fixture
            .backends
            .read(|groups| groups.members(READER).map(|(endpoint, _)| endpoint.to_string()).collect())
    }
}

#[test]
fn a_topology_makes_a_deployment_once_and_leaves_no_row_in_the_log() {
    let rds = Rds::new(DEPLOYMENT);
    let checks = rds.discover();
    let rows = rds.deployments();
    assert_eq!(
        rows.iter().map(|row| (row.writer_hostgroup, row.reader_hostgroup)).collect::<Vec<_>>(),
        [(1, 2)]
    );
    assert_eq!((checks.log_rows(Kind::ReadOnly).len(), checks.counts(Kind::ReadOnly)), (0, (1, 0)));
    let before = rds.fixture.backends.updates();
    rds.discover();
    assert_eq!((rds.deployments().len(), rds.fixture.backends.updates()), (1, before));
    assert_eq!(*rds.server.script.statements.lock().last().unwrap(), METADATA);
}

#[test]
fn without_auto_discovery_servers_are_asked_and_no_deployment_is_made() {
    let rds = Rds::new(DEPLOYMENT);
    change(&rds.fixture.config, |variables| variables.bgd_auto_discovery = false);
    rds.discover();
    assert_eq!((rds.deployments(), rds.server.selects()), (vec![], 1));
}

#[test]
fn a_server_without_topology_is_well_and_one_that_fails_is_not() {
    let rds = Rds::new(&[]);
    let checks = rds.discover();
    assert_eq!(checks.counts(Kind::ReadOnly), (1, 0));
    *rds.server.script.topology.lock() = vec![DEPLOYMENT[0]];
    rds.discover();
    *rds.server.script.error.lock() = Some(SqlError::new(1142, "42000", "denied"));
    assert_eq!(rds.discover().counts(Kind::ReadOnly), (0, 1));
    assert_eq!((rds.deployments(), rds.readers()), (vec![], vec![]));
}

#[test]
fn members_of_a_cluster_become_readers() {
    let rds = Rds::new(CLUSTER);
    change(&rds.fixture.config, |variables| variables.bgd_auto_discovery = false);
    rds.discover();
    assert_eq!((rds.readers(), rds.deployments()), (vec!["b.x.rds.amazonaws.com:3306".into()], vec![]));
}

#[test]
fn a_cluster_beside_a_configured_deployment_adds_readers_and_no_deployment() {
    let rds = Rds::new(CLUSTER);
    let (writer_hostgroup, reader_hostgroup) = (1, 2);
    let deployment = BgdHostgroupRow { writer_hostgroup, reader_hostgroup, ..crate::bgd::fixtures::row() };
    let servers = vec![ServerRow { port: rds.endpoint.port, ..row(1, HOST) }];
    let (replication, bgd) = (vec![pair(1, 2)], vec![deployment.clone()]);
    let config = ServersConfig { servers, replication, bgd, ..ServersConfig::default() };
    rds.fixture.backends.update(|groups| groups.load(&config));
    rds.discover();
    assert_eq!(
        (rds.readers(), rds.deployments()),
        (vec!["b.x.rds.amazonaws.com:3306".into()], vec![deployment])
    );
}

#[test]
fn only_servers_of_rds_that_answer_pings_and_are_not_suspended_are_asked_one_question_at_a_time() {
    let rds = Rds::new(DEPLOYMENT);
    let checks = rds.fixture.checks();
    let jobs = checks.discoveries();
    assert_eq!(jobs.iter().map(|job| &job.endpoint).collect::<Vec<_>>(), [&rds.endpoint]);
    assert_eq!((checks.discoveries().len(), checks.due(Kind::ReadOnly).len()), (0, 2));
    let checks = rds.fixture.checks();
    for _ in 0..3 {
        rds.fixture.health.note(&rds.endpoint, Pong::Missed);
    }
    assert_eq!(checks.discoveries().len(), 0);
    rds.fixture.health.note(&rds.endpoint, Pong::Refused);
    rds.fixture.suppression.add(7, [rds.endpoint.clone()]);
    assert_eq!(checks.discoveries().len(), 0);
}

#[test]
fn a_suspension_stops_answers_under_way() {
    for topology in [DEPLOYMENT, CLUSTER] {
        let rds = Rds::new(topology);
        let checks = rds.fixture.checks();
        let jobs = checks.discoveries();
        rds.server.hang();
        std::thread::scope(|scope| {
            let performing = scope.spawn(|| checks.perform(&jobs[0], None));
            eventually("the question", || rds.server.selects() == 1);
            rds.fixture.suppression.add(7, [rds.endpoint.clone()]);
            rds.fixture.suppression.clear(7);
            rds.server.release();
            performing.join().unwrap();
        });
        assert_eq!((rds.deployments(), rds.readers()), (vec![], vec![]));
    }
}

#[test]
fn the_scheduler_asks_at_every_nth_cycle() {
    let rds = Rds::new(DEPLOYMENT);
    change(&rds.fixture.config, |variables| {
        variables.monitor_read_only_interval = Duration::from_millis(20);
    });
    let asked = || rds.server.script.statements.lock().iter().filter(|sql| *sql == METADATA).count();
    let monitor = rds.fixture.monitor();
    let checked = || monitor.log_rows(Kind::ReadOnly).len();
    eventually("cycles", || checked() > 8);
    assert_eq!(asked(), 0, "0 cycles: never");
    change(&rds.fixture.config, |variables| variables.monitor_topology_discovery_interval = 2);
    eventually("a deployment", || !rds.deployments().is_empty());
    monitor.stop();
}
