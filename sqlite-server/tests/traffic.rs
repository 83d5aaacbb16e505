//! Application traffic at simulated backends: data of their own, and what they do to connections and statements.
#![cfg(feature = "test-rds-bgd")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{TestServer, error_of, value_of};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

const BLUE: &str = "127.10.0.11";
const GREEN: &str = "127.10.0.14";
const METADATA: &str = "SELECT * FROM mysql.rds_topology";

/// A server whose blue and green backend have data of their own: a table with one row, the backend's address.
fn fixture() -> (TestServer, Conn) {
    let server = TestServer::start();
    let mut control = server.connect("127.0.0.1");
    for ip in [BLUE, GREEN] {
        set(&mut control, &server, ip, "'serve', 0, 0");
        let mut client = server.connect(ip);
        client.query_drop("CREATE TABLE t (v TEXT)").unwrap();
        client.query_drop(format!("INSERT INTO t VALUES ('{ip}')")).unwrap();
    }
    (server, control)
}

/// Sets mode, latency and number of statements of a backend.
fn set(control: &mut Conn, server: &TestServer, ip: &str, values: &str) {
    let port = server.port();
    control
        .query_drop(format!("INSERT OR REPLACE INTO RDS_BGD_BACKEND VALUES ('{ip}', {port}, {values})"))
        .unwrap();
}

fn rows(client: &mut Conn) -> Vec<String> {
    client.query("SELECT v FROM t").unwrap()
}

#[test]
fn each_backend_has_its_own_tables() {
    let (server, mut control) = fixture();
    let (mut blue, mut green) = (server.connect(BLUE), server.connect(GREEN));
    green.query_drop("BEGIN").unwrap();
    green.query_drop("INSERT INTO t VALUES ('second')").unwrap();
    blue.query_drop("INSERT INTO t VALUES ('beside an open transaction')").unwrap();
    assert_eq!(rows(&mut blue).len(), 2);
    // A transaction stays where it began, which is not where the simulator's tables are.
    let elsewhere = error_of(&mut green, "SELECT count(*) FROM RDS_BGD_BACKEND");
    assert_eq!(elsewhere.2, "no such table: RDS_BGD_BACKEND");
    assert_eq!(rows(&mut green), [GREEN, "second"]);
    green.query_drop("ROLLBACK").unwrap();
    assert_eq!(rows(&mut green), [GREEN]);
    // Whoever asks: the simulator's tables are the same everywhere, and a backend without a row has no data of its own.
    assert_eq!(value_of(&mut green, "SELECT count(*) FROM RDS_BGD_BACKEND"), "2");
    assert_eq!(error_of(&mut control, "SELECT v FROM t").2, "no such table: t");
    assert_eq!(error_of(&mut server.connect("127.10.0.12"), "SELECT v FROM t").2, "no such table: t");
    server.stop();
}

#[test]
fn a_backend_that_loses_its_row_loses_its_data() {
    let (server, mut control) = fixture();
    let mut blue = server.connect(BLUE);
    assert_eq!(rows(&mut blue), [BLUE]);
    control.query_drop(format!("DELETE FROM RDS_BGD_BACKEND WHERE backend_ip = '{BLUE}'")).unwrap();
    assert_eq!(error_of(&mut blue, "SELECT v FROM t").2, "no such table: t");
    set(&mut control, &server, BLUE, "'serve', 0, 0");
    assert_eq!(value_of(&mut blue, "SELECT count(*) FROM sqlite_master"), "0");
    assert_eq!(rows(&mut server.connect(GREEN)), [GREEN]);
    // And so do all with the next start.
    let server = TestServer::start_in(server.stop());
    let mut control = server.connect("127.0.0.1");
    assert_eq!(value_of(&mut control, "SELECT count(*) FROM RDS_BGD_BACKEND"), "0");
    set(&mut control, &server, GREEN, "'serve', 0, 0");
    assert_eq!(error_of(&mut server.connect(GREEN), "SELECT v FROM t").2, "no such table: t");
    server.stop();
}

#[test]
fn a_read_only_backend_reads() {
    let (server, mut control) = fixture();
    let mut blue = server.connect(BLUE);
    set(&mut control, &server, BLUE, "'read_only', 0, 0");
    for sql in ["INSERT INTO t VALUES ('x')", "UPDATE t SET v = 'x'", "DELETE FROM t", "CREATE TABLE u (i)"] {
        let (code, state, message) = error_of(&mut blue, sql);
        assert_eq!((code, state.as_str()), (1290, "HY000"), "{sql}");
        assert!(message.contains("--read-only option"), "{message}");
    }
    blue.query_drop("BEGIN").unwrap();
    assert_eq!(rows(&mut blue), [BLUE]);
    blue.query_drop("COMMIT").unwrap();
    blue.query_drop("INSERT INTO READONLY_STATUS VALUES ('db-1', 3306, 0)").unwrap();
    assert_eq!(value_of(&mut blue, "SELECT @@global.read_only read_only db-1:3306"), "0");
    set(&mut control, &server, BLUE, "'serve', 0, 0");
    blue.query_drop("INSERT INTO t VALUES ('x')").unwrap();
    assert_eq!(rows(&mut server.connect(GREEN)), [GREEN]);
    server.stop();
}

#[test]
fn a_refusing_backend_ends_connections() {
    let (server, mut control) = fixture();
    let mut blue = server.connect(BLUE);
    set(&mut control, &server, BLUE, "'refuse', 0, 0");
    assert!(Conn::new(server.options(BLUE)).is_err());
    assert!(matches!(
        blue.query_drop("SELECT 1"),
        Err(mysql::Error::IoError(_) | mysql::Error::CodecError(_))
    ));
    assert_eq!(rows(&mut server.connect(GREEN)), [GREEN]);
    set(&mut control, &server, BLUE, "'serve', 0, 0");
    assert_eq!(rows(&mut server.connect(BLUE)), [BLUE]);
    server.stop();
}

#[test]
fn a_stalling_backend_answers_when_it_does_not_stall_any_more() {
    let (server, mut control) = fixture();
    let (mut blue, mut monitor) = (server.connect(BLUE), server.connect(BLUE));
    set(&mut control, &server, BLUE, "'stall', 0, 0");
    let short = server.options(BLUE).read_timeout(Some(Duration::from_millis(100)));
    assert!(Conn::new(short).is_err(), "no greeting");
    std::thread::scope(|scope| {
        let client = scope.spawn(|| rows(&mut blue));
        let probe = scope.spawn(|| error_of(&mut monitor, METADATA).0);
        let greeted = scope.spawn(|| rows(&mut server.connect(BLUE)));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!client.is_finished() && !probe.is_finished() && !greeted.is_finished());
        set(&mut control, &server, BLUE, "'serve', 0, 0");
        assert_eq!(client.join().unwrap(), [BLUE]);
        assert_eq!(probe.join().unwrap(), 1146);
        assert_eq!(greeted.join().unwrap(), [BLUE]);
    });
    server.stop();
}

#[test]
fn a_stall_does_not_hold_up_the_end() {
    let (server, mut control) = fixture();
    let mut blue = server.connect(BLUE);
    set(&mut control, &server, BLUE, "'stall', 0, 0");
    std::thread::scope(|scope| {
        let client = scope.spawn(move || blue.query_drop("SELECT 1").is_err());
        let begin = Instant::now();
        server.stop();
        assert!(client.join().unwrap());
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    });
}

#[test]
fn latency_and_the_number_of_statements_are_for_clients_alone() {
    let (server, mut control) = fixture();
    set(&mut control, &server, BLUE, "'serve', 150, 2");
    // With this given the library sends no statement of its own.
    let options = server.options(BLUE).max_allowed_packet(Some(1 << 20));
    let mut blue = Conn::new(options).unwrap();
    for _ in 0..3 {
        assert_eq!(error_of(&mut blue, METADATA).0, 1146);
        assert_eq!(value_of(&mut blue, "SELECT count(*) FROM RDS_BGD_BACKEND"), "2");
    }
    let begin = Instant::now();
    assert_eq!(rows(&mut blue), [BLUE]);
    assert!(begin.elapsed() >= Duration::from_millis(150));
    assert_eq!(rows(&mut blue), [BLUE], "the last statement is answered");
    assert!(blue.query_drop("SELECT 1").is_err());
    server.stop();
}
