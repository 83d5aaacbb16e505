//! The simulator's client of the crate `tap` with the simulator of the daemon: what its methods make backends answer.

#![cfg(feature = "test-rds-bgd")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::net::TcpStream;
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;
use tap::connection::{Connection, Credentials, Endpoint, Error};
use tap::daemon::{Daemon, Launch, free_port_settings};
use tap::hosts;
use tap::interrupt::Interrupt;
use tap::simulator::{
    RdsBgdBackendMode, RdsBgdCluster, RdsBgdDnsAnswer, RdsBgdProbeKind, RdsBgdSimulator, RdsBgdTopologyRow,
};

const TABLE_CHECK: &str =
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'";
const METADATA: &str = "SELECT * FROM mysql.rds_topology";
const ABSENT: &str = "Table 'mysql.rds_topology' doesn't exist";
/// For what has happened already, or never will.
const SHORT: Duration = Duration::from_millis(200);

/// A daemon, the client under test, and a cluster on its port.
struct Fixture {
    daemon: Daemon,
    simulator: RdsBgdSimulator,
    cluster: RdsBgdCluster,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let launch = Launch {
            program: Path::new(env!("CARGO_BIN_EXE_pointsman")).to_owned(),
            datadir: Some(directory.path().join("data")),
            hosts_file: None,
            log_file: directory.path().join("log"),
            pid_file: None,
            settings: free_port_settings().unwrap(),
        };
        let daemon = Daemon::start(&launch, &Interrupt::default()).unwrap();
        let command_line = daemon.command_line();
        let mut admin = command_line.connect_admin().unwrap();
        admin.execute("INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser')").unwrap();
        admin.execute("LOAD MYSQL USERS TO RUNTIME").unwrap();
        let endpoint = command_line.simulator;
        let cluster = hosts::cluster_1_green_a(endpoint.port);
        let simulator = RdsBgdSimulator::connect(endpoint, &command_line.client, false).unwrap();
        Self { daemon, simulator, cluster, _directory: directory }
    }

    fn connect(&self, backend: &Endpoint, use_ssl: bool) -> Connection {
        Connection::open(backend.clone(), &self.daemon.command_line().client, use_ssl).unwrap()
    }

    /// One probe of each kind, whatever the answers.
    fn probe(&self, backend: &Endpoint) {
        let _ = self.answers(backend);
    }

    /// What the table check and the metadata query find on a backend: whether the table is there, and its rows or the error.
    fn answers(&self, backend: &Endpoint) -> (bool, Result<Vec<String>, String>) {
        let mut connection = self.connect(backend, false);
        let present = connection.rows(TABLE_CHECK).unwrap();
        let rows = connection.rows(METADATA).map_err(|error| error.to_string());
        let joined = |row: Vec<Option<String>>| row.into_iter().flatten().collect::<Vec<_>>().join(" ");
        (!present.is_empty(), rows.map(|rows| rows.into_iter().map(joined).collect()))
    }

    #[track_caller]
    fn expect_error(&self, backend: &Endpoint, present: bool, code: &str, message: &str) {
        let (found, answer) = self.answers(backend);
        let error = answer.unwrap_err();
        assert_eq!(found, present, "{error}");
        assert!(error.contains(code) && error.contains(message), "{error}");
    }
}

#[test]
fn the_monitor_logs_in_with_the_account_of_the_scenario() {
    let fixture = Fixture::start();
    let mut admin = fixture.daemon.command_line().connect_admin().unwrap();
    let account = Credentials { username: "other".to_owned(), password: "it's".to_owned() };
    tap::admin::configure_monitor(&mut admin, &account).unwrap();
    for (name, value) in [("username", "other"), ("password", "it's")] {
        let variable = format!("SELECT @@mysql-monitor_{name}");
        assert_eq!(admin.scalar(&variable).unwrap().as_deref(), Some(value));
    }
}

#[test]
fn a_name_may_have_one_address_twice() {
    let mut fixture = Fixture::start();
    let twice = ["10.0.0.1", "10.0.0.1"].map(str::to_owned).to_vec();
    let answer = RdsBgdDnsAnswer::Addresses { addresses: twice, ttl: 1, delay: Duration::ZERO };
    fixture.simulator.dns_update("a.test", &answer).unwrap();
    let mut connection = fixture.connect(&fixture.cluster.blue_writer.endpoint(), false);
    assert_eq!(connection.number("SELECT count(*) FROM RDS_BGD_DNS WHERE name='a.test'").unwrap(), 1);
}

#[test]
fn topology_is_what_was_written_to_exactly_these_backends() {
    let mut fixture = Fixture::start();
    let [blue, green] = fixture.cluster.get_writers().try_into().unwrap();
    fixture.expect_error(&blue, false, "1146", ABSENT);

    let reader = RdsBgdTopologyRow {
        id: "it's 3".into(),
        endpoint: "reader.example".into(),
        port: 3307,
        role: "R".into(),
        status: "S".into(),
    };
    let mut rows = fixture.cluster.get_topology("AVAILABLE");
    rows.push(reader);
    fixture.simulator.topology_update(std::slice::from_ref(&blue), &rows).unwrap();
    let (present, answer) = fixture.answers(&blue);
    let port = blue.port;
    let expected = [
        format!("1 {} {port} BLUE_GREEN_DEPLOYMENT_SOURCE AVAILABLE", fixture.cluster.blue_writer.hostname),
        format!("2 {} {port} BLUE_GREEN_DEPLOYMENT_TARGET AVAILABLE", fixture.cluster.green_writer.hostname),
        "it's 3 reader.example 3307 R S".to_owned(),
    ];
    assert_eq!((present, answer.unwrap().as_slice()), (true, expected.as_slice()));
    fixture.expect_error(&green, false, "1146", ABSENT);

    let both = [blue.clone(), green.clone()];
    fixture.simulator.topology_update(&both, &fixture.cluster.get_completed_topology()).unwrap();
    for backend in &both {
        assert_eq!(fixture.answers(backend).1.unwrap().len(), 1, "{backend}");
    }
    fixture.simulator.topology_delete(std::slice::from_ref(&green)).unwrap();
    assert_eq!(fixture.answers(&green), (true, Ok(Vec::new())));
    fixture.simulator.topology_drop(std::slice::from_ref(&green)).unwrap();
    fixture.expect_error(&green, false, "1146", ABSENT);
    assert_eq!(fixture.answers(&blue).1.unwrap().len(), 1);
}

#[test]
fn an_error_hides_rows_and_goes_with_the_next_write() {
    let mut fixture = Fixture::start();
    let backends = fixture.cluster.get_writers();
    let rows = fixture.cluster.get_topology("AVAILABLE");
    let mut control = fixture.connect(&fixture.daemon.command_line().simulator, false);
    let mut stored = || control.number("SELECT COUNT(*) FROM RDS_BGD_TOPOLOGY").unwrap();
    for (code, present) in [(1105, true), (1146, false)] {
        fixture.simulator.topology_update(&backends, &rows).unwrap();
        let code = NonZeroU16::new(code).unwrap();
        fixture.simulator.topology_error(&backends, code, "it's broken").unwrap();
        fixture.expect_error(&backends[1], present, &code.to_string(), "it's broken");
        assert_eq!(stored(), 4, "rows are left as they were");
        fixture.simulator.topology_update(&backends, &rows).unwrap();
        assert_eq!(fixture.answers(&backends[1]).1.unwrap().len(), 2);
    }
    fixture.simulator.topology_error(&backends, NonZeroU16::new(1105).unwrap(), "x").unwrap();
    fixture.simulator.topology_delete(&backends).unwrap();
    assert_eq!((fixture.answers(&backends[0]), stored()), ((true, Ok(Vec::new())), 0));
}

#[test]
fn probes_are_logged_in_order_with_destination_and_tls() {
    let mut fixture = Fixture::start();
    let [blue, green] = fixture.cluster.get_writers().try_into().unwrap();
    assert_eq!(fixture.simulator.probe_log_last_sequence().unwrap(), 0);
    fixture.probe(&blue);
    let seen = fixture.simulator.probe_log_last_sequence().unwrap();
    fixture.connect(&green, true).rows(TABLE_CHECK).unwrap();

    let probes = fixture.simulator.probe_log_since(0).unwrap();
    let found: Vec<_> =
        probes.iter().map(|probe| (probe.backend.clone(), probe.probe_kind, probe.encrypted)).collect();
    let expected = [
        (blue.clone(), RdsBgdProbeKind::TableCheck, false),
        (blue.clone(), RdsBgdProbeKind::Metadata, false),
        (green.clone(), RdsBgdProbeKind::TableCheck, true),
    ];
    assert_eq!(found, expected);
    assert_eq!(fixture.simulator.probe_log_since(seen).unwrap(), probes[2..]);

    let mut wait = |after, backend, kind, encrypted| {
        fixture.simulator.wait_for_probe_log(after, backend, kind, SHORT, encrypted)
    };
    for encrypted in [None, Some(true)] {
        assert_eq!(wait(0, &green, RdsBgdProbeKind::TableCheck, encrypted).unwrap(), probes[2]);
    }
    assert_eq!(wait(0, &blue, RdsBgdProbeKind::Metadata, Some(false)).unwrap(), probes[1]);
    for (after, backend, kind, encrypted) in [
        (0, &green, RdsBgdProbeKind::TableCheck, Some(false)),
        (0, &green, RdsBgdProbeKind::Metadata, None),
        (probes[1].sequence_id, &blue, RdsBgdProbeKind::Metadata, None),
    ] {
        let error = wait(after, backend, kind, encrypted).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        let shown = error.to_string();
        assert!(shown.contains(&backend.to_string()) && shown.contains(&format!("{kind:?}")), "{shown}");
    }
}

#[test]
fn read_only_is_kept_by_hostname_and_everything_can_be_removed() {
    let mut fixture = Fixture::start();
    let writer = fixture.cluster.blue_writer.clone();
    let mut control = fixture.connect(&fixture.daemon.command_line().simulator, false);
    let mut read_only = |endpoint: &Endpoint| {
        control.number(&format!("SELECT @@global.read_only read_only {endpoint}")).unwrap()
    };
    assert_eq!(read_only(&writer.host_endpoint()), 1);
    fixture.simulator.read_only_update(&writer.host_endpoint(), false).unwrap();
    assert_eq!((read_only(&writer.host_endpoint()), read_only(&writer.endpoint())), (0, 1));
    fixture.simulator.read_only_update(&writer.host_endpoint(), true).unwrap();
    assert_eq!(read_only(&writer.host_endpoint()), 1);

    fixture.simulator.read_only_update(&writer.host_endpoint(), false).unwrap();
    let backends = fixture.cluster.get_writers();
    fixture.simulator.topology_update(&backends, &fixture.cluster.get_topology("AVAILABLE")).unwrap();
    fixture.probe(&backends[0]);
    let before = fixture.simulator.probe_log_since(0).unwrap().pop().unwrap().sequence_id;
    fixture.simulator.backend_update(&backends, RdsBgdBackendMode::Serve.into()).unwrap();
    fixture.connect(&backends[0], false).execute("CREATE TABLE own (i INTEGER)").unwrap();
    let responder = fixture.simulator.dns_listen().unwrap();
    fixture.simulator.dns_update("db-1.test", &RdsBgdDnsAnswer::address("127.10.0.11")).unwrap();
    assert!(TcpStream::connect(&responder).is_ok());
    fixture.simulator.cleanup().unwrap();
    let mut anew = fixture.connect(&backends[0], false);
    let left = "SELECT (SELECT COUNT(*) FROM RDS_BGD_BACKEND) + (SELECT COUNT(*) FROM RDS_BGD_DNS)";
    assert_eq!(anew.number(left).unwrap(), 0);
    assert!(anew.execute("DROP TABLE own").is_err());
    assert!(TcpStream::connect(&responder).is_err());
    assert_eq!(read_only(&writer.host_endpoint()), 1);
    assert_eq!(fixture.simulator.probe_log_last_sequence().unwrap(), 0);
    fixture.expect_error(&backends[0], false, "1146", ABSENT);
    let after = fixture.simulator.probe_log_since(0).unwrap()[0].sequence_id;
    assert!(after > before, "{after} after {before}");
}

#[test]
fn an_error_names_endpoint_and_statement_and_undoes_the_rest() {
    let mut fixture = Fixture::start();
    let backends = fixture.cluster.get_writers();
    fixture.simulator.topology_update(&backends, &fixture.cluster.get_topology("AVAILABLE")).unwrap();
    let mut control = fixture.connect(&fixture.daemon.command_line().simulator, false);
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON RDS_BGD_TOPOLOGY WHEN old.backend_ip='127.10.0.14' \
                  BEGIN SELECT RAISE(ABORT, 'not this one'); END";
    control.execute(refuse).unwrap();
    let error = fixture.simulator.topology_drop(&backends).unwrap_err().to_string();
    let endpoint = fixture.daemon.command_line().simulator;
    assert!(error.starts_with(&format!("{endpoint}: ")) && error.contains("not this one"), "{error}");
    assert!(error.contains("in: DELETE FROM RDS_BGD_TOPOLOGY WHERE backend_ip='127.10.0.14'"), "{error}");
    // What came before the failed statement is undone, and the connection can be used again.
    let present = "SELECT COUNT(*) FROM RDS_BGD_CONTROL JOIN RDS_BGD_TOPOLOGY USING (backend_ip) WHERE topology_present=1";
    assert_eq!(control.number(present).unwrap(), 4);
    control.execute("DROP TRIGGER refuse").unwrap();
    fixture.simulator.topology_drop(&backends).unwrap();
    assert_eq!(control.number(present).unwrap(), 0);
}
