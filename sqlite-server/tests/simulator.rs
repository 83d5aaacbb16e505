//! The blue/green simulator as monitors and tests see it.
#![cfg(feature = "test-rds-bgd")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{TestServer, error_of, value_of};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BLUE: &str = "127.10.0.11";
const GREEN: &str = "127.10.0.14";
const CHECK: &str =
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'";
const METADATA: &str = "SELECT * FROM mysql.rds_topology";
const MISSING: (u16, &str, &str) = (1146, "42S02", "Table 'mysql.rds_topology' doesn't exist");

type TopologyRow = (String, String, u16, String, String);

fn set_control(control: &mut Conn, server: &TestServer, ip: &str, present: bool, code: u16, message: &str) {
    let (port, present) = (server.port(), u8::from(present));
    control
        .query_drop(format!(
            "INSERT OR REPLACE INTO RDS_BGD_CONTROL(backend_ip,backend_port,topology_present,error_code,error_msg)
             VALUES ('{ip}',{port},{present},{code},'{message}')"
        ))
        .unwrap();
}

fn add_row(control: &mut Conn, server: &TestServer, ip: &str, order: u32, status: &str) {
    let port = server.port();
    control
        .query_drop(format!(
            "INSERT INTO RDS_BGD_TOPOLOGY(backend_ip,backend_port,row_order,id,endpoint,topology_port,role,status)
             VALUES ('{ip}',{port},{order},'id-{order}','db-{order}',3306,'BLUE_GREEN_DEPLOYMENT_TARGET','{status}')"
        ))
        .unwrap();
}

fn expected_row(order: u32, status: &str) -> TopologyRow {
    (format!("id-{order}"), format!("db-{order}"), 3306, "BLUE_GREEN_DEPLOYMENT_TARGET".into(), status.into())
}

fn table_check(client: &mut Conn) -> Vec<u8> {
    let result = client.query_iter(CHECK).unwrap();
    assert_eq!(result.columns().as_ref().len(), 1);
    assert_eq!(result.columns().as_ref()[0].name_str(), "1");
    result.map(|row| mysql::from_row(row.unwrap())).collect()
}

fn assert_error(client: &mut Conn, expected: (u16, &str, &str)) {
    let error = error_of(client, METADATA);
    assert_eq!((error.0, error.1.as_str(), error.2.as_str()), expected);
}

/// A server, a control connection and a monitor's connection to the blue writer.
fn fixture() -> (TestServer, Conn, Conn) {
    let server = TestServer::start();
    let (control, monitor) = (server.connect("127.0.0.1"), server.connect(BLUE));
    (server, control, monitor)
}

#[test]
fn an_unconfigured_backend_has_no_topology() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, GREEN, true, 0, "");
    assert_eq!(table_check(&mut monitor), Vec::<u8>::new());
    assert_error(&mut monitor, MISSING);
    server.stop();
}

#[test]
fn a_present_topology_is_its_own_rows_in_order() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, BLUE, true, 0, "");
    add_row(&mut control, &server, BLUE, 2, "AVAILABLE");
    add_row(&mut control, &server, BLUE, 1, "AVAILABLE");
    add_row(&mut control, &server, GREEN, 3, "OTHER");
    assert_eq!(table_check(&mut monitor), [1]);
    let result = monitor.query_iter(METADATA).unwrap();
    let names: Vec<_> = result.columns().as_ref().iter().map(|c| c.name_str().into_owned()).collect();
    assert_eq!(names, ["id", "endpoint", "port", "role", "status"]);
    drop(result);
    let rows: Vec<TopologyRow> = monitor.query("select *  from MYSQL.rds_topology ;").unwrap();
    assert_eq!(rows, [expected_row(1, "AVAILABLE"), expected_row(2, "AVAILABLE")]);
    server.stop();
}

#[test]
fn a_present_and_empty_topology_is_a_success() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, BLUE, true, 0, "");
    assert_eq!(table_check(&mut monitor), [1]);
    assert_eq!(monitor.query::<TopologyRow, _>(METADATA).unwrap(), []);
    server.stop();
}

#[test]
fn a_configured_error_comes_before_rows() {
    let (server, mut control, mut monitor) = fixture();
    add_row(&mut control, &server, BLUE, 1, "AVAILABLE");
    set_control(&mut control, &server, BLUE, true, 1105, "it broke");
    assert_eq!(table_check(&mut monitor), [1]);
    assert_error(&mut monitor, (1105, "HY000", "it broke"));
    server.stop();
}

#[test]
fn a_dropped_topology_is_a_missing_table() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, BLUE, false, 1146, "Table ''mysql.rds_topology'' doesn''t exist");
    assert_eq!(table_check(&mut monitor), Vec::<u8>::new());
    assert_error(&mut monitor, MISSING);
    set_control(&mut control, &server, BLUE, false, 0, "");
    assert_error(&mut monitor, MISSING);
    server.stop();
}

#[test]
fn probes_are_logged_with_backend_kind_and_encryption() {
    let (server, mut control, mut monitor) = fixture();
    table_check(&mut monitor);
    assert_error(&mut monitor, MISSING);
    assert_error(&mut server.connect_tls(GREEN), MISSING);
    let port = server.port();
    let log = "SELECT sequence_id,backend_ip,backend_port,probe_kind,encrypted FROM RDS_BGD_PROBE_LOG
        WHERE sequence_id>0 ORDER BY sequence_id";
    let row =
        |id: u64, ip: &str, kind: &str, encrypted| (id, ip.to_owned(), port, kind.to_owned(), encrypted);
    assert_eq!(
        control.query::<(u64, String, u16, String, u8), _>(log).unwrap(),
        [row(1, BLUE, "table_check", 0), row(2, BLUE, "metadata", 0), row(3, GREEN, "metadata", 1)]
    );
    control.query_drop("DELETE FROM RDS_BGD_PROBE_LOG").unwrap();
    let last = "SELECT COALESCE(MAX(sequence_id),0) FROM RDS_BGD_PROBE_LOG";
    assert_eq!(value_of(&mut control, last), "0");
    assert_error(&mut monitor, MISSING);
    assert_eq!(value_of(&mut control, last), "4", "ids go on after the log was cleared");
    server.stop();
}

#[test]
fn a_probe_that_cannot_be_logged_fails() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, BLUE, true, 0, "");
    control.query_drop("DROP TABLE RDS_BGD_PROBE_LOG").unwrap();
    for probe in [CHECK, METADATA] {
        let (code, state, _) = error_of(&mut monitor, probe);
        assert_eq!((code, state.as_str()), (1105, "HY000"));
    }
    server.stop();
}

#[test]
fn a_probe_inside_a_transaction_belongs_to_it() {
    let (server, mut control, _) = fixture();
    control.query_drop("BEGIN").unwrap();
    set_control(&mut control, &server, "127.0.0.1", true, 0, "");
    assert_eq!(table_check(&mut control), [1]);
    control.query_drop("ROLLBACK").unwrap();
    assert_eq!(value_of(&mut control, "SELECT count(*) FROM RDS_BGD_PROBE_LOG"), "0");
    assert_eq!(table_check(&mut control), Vec::<u8>::new());
    server.stop();
}

#[test]
fn the_version_comment_names_the_address_reached() {
    let (server, _, mut monitor) = fixture();
    let expected = "(ProxySQL Automated Test Server) - ";
    for sql in ["SELECT @@version_comment LIMIT 1", "select  @@VERSION_comment\nlimit 1;"] {
        assert_eq!(value_of(&mut monitor, sql), format!("{expected}{BLUE}"));
    }
    let echo = value_of(&mut server.connect(GREEN), "SELECT @@version_comment LIMIT 1");
    assert_eq!(echo, format!("{expected}{GREEN}"));
    server.stop();
}

#[test]
fn read_only_follows_the_committed_table() {
    let (server, mut control, mut monitor) = fixture();
    let mut read_only = || value_of(&mut monitor, "SELECT @@global.read_only read_only db-1.example:3306");
    let write = |value: u8| {
        format!(
            "INSERT OR REPLACE INTO READONLY_STATUS(hostname,port,read_only) VALUES ('db-1.example',3306,{value})"
        )
    };
    assert_eq!(read_only(), "1");
    control.query_drop(write(0)).unwrap();
    assert_eq!(read_only(), "0");
    control.query_drop("BEGIN").unwrap();
    control.query_drop(write(1)).unwrap();
    assert_eq!(read_only(), "0");
    control.query_drop("ROLLBACK").unwrap();
    assert_eq!(read_only(), "0");
    control.query_drop("BEGIN").unwrap();
    control.query_drop(write(1)).unwrap();
    control.query_drop("COMMIT").unwrap();
    assert_eq!(read_only(), "1");
    control.query_drop("SAVEPOINT a").unwrap();
    control.query_drop(write(0)).unwrap();
    control.query_drop("RELEASE a").unwrap();
    assert_eq!(read_only(), "0");
    control.query_drop("DELETE FROM READONLY_STATUS").unwrap();
    assert_eq!(read_only(), "1");
    let (code, state, _) = error_of(&mut monitor, "SELECT @@global.read_only read_only db-1.example");
    assert_eq!((code, state.as_str()), (1105, "HY000"));
    server.stop();
}

#[test]
fn state_survives_a_restart() {
    let (server, mut control, _) = fixture();
    control.query_drop("INSERT INTO READONLY_STATUS VALUES ('db-1', 3306, 0)").unwrap();
    let server = TestServer::start_in(server.stop());
    let mut monitor = server.connect(BLUE);
    assert_eq!(value_of(&mut monitor, "SELECT @@global.read_only read_only db-1:3306"), "0");
    server.stop();
}

#[test]
fn probes_beside_a_writer_wait_and_see_whole_transactions() {
    let (server, mut control, _) = fixture();
    publish(&mut control, &server, "old");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let probers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut monitor = server.connect(BLUE);
                    let mut probes = 0_u32;
                    while !done.load(Ordering::Relaxed) {
                        let rows: Vec<TopologyRow> = monitor.query(METADATA).unwrap();
                        let status = &rows[0].4;
                        let expected = if status == "old" { 3 } else { 5 };
                        assert_eq!(rows.len(), expected, "{rows:?}");
                        assert!(rows.iter().all(|row| row.4 == *status), "{rows:?}");
                        probes += 1;
                    }
                    probes
                })
            })
            .collect();
        // The flag is set even where a write fails, so that the probers end and the failure is shown.
        let written = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(2);
            let mut transactions = 0_u32;
            while Instant::now() < until {
                publish(&mut control, &server, if transactions.is_multiple_of(2) { "new" } else { "old" });
                transactions += 1;
            }
            transactions
        });
        let written = written.join();
        done.store(true, Ordering::Relaxed);
        assert!(written.unwrap() > 0);
        let probes: u32 = probers.into_iter().map(|prober| prober.join().unwrap()).sum();
        let logged = value_of(&mut server.connect(BLUE), "SELECT count(*) FROM RDS_BGD_PROBE_LOG");
        assert_eq!(logged, probes.to_string());
    });
    server.stop();
}

/// Replaces the blue writer's topology in one transaction: three rows for "old", five for "new".
fn publish(control: &mut Conn, server: &TestServer, status: &str) {
    control.query_drop("START TRANSACTION").unwrap();
    set_control(control, server, BLUE, true, 0, "");
    control.query_drop(format!("DELETE FROM RDS_BGD_TOPOLOGY WHERE backend_ip='{BLUE}'")).unwrap();
    for order in 0..if status == "old" { 3 } else { 5 } {
        add_row(control, server, BLUE, order, status);
    }
    control.query_drop("COMMIT").unwrap();
}
