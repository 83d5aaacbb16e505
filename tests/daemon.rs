//! The daemon as a process: starting, refusing to start, stopping, and what saved configuration survives.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod common;

use common::{Daemon, run_to_end};
use mysql::prelude::Queryable;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tempfile::TempDir;

/// A refusal is exit status 1 and one line that names the thing.
fn assert_refused(datadir: &TempDir, extra: &[&str], names: &str) {
    let (code, text) = run_to_end(datadir.path(), extra);
    assert_eq!(code, Some(1), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("pointsman: ")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].contains(names), "{text}");
}

#[test]
fn a_taken_port_is_named() {
    for variable in ["mysql-interfaces", "admin-mysql_ifaces", "sqliteserver-mysql_ifaces"] {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let set = format!("{variable}={address}");
        let datadir = TempDir::new().unwrap();
        assert_refused(&datadir, &["--sqlite3-server", "--set", &set], &address);
    }
}

#[test]
fn a_data_directory_that_is_a_file_is_named() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let (code, text) = run_to_end(&file, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(file.to_str().unwrap()) && text.lines().count() == 1, "{text}");
}

#[test]
fn a_corrupt_database_is_named_and_left_alone() {
    let datadir = TempDir::new().unwrap();
    let database = datadir.path().join("pointsman.db");
    let noise: Vec<u8> = (0..8192u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(&database, &noise).unwrap();
    assert_refused(&datadir, &[], "pointsman.db");
    assert_eq!(fs::read(&database).unwrap(), noise);
}

#[test]
fn a_second_daemon_in_the_same_directory_is_refused() {
    let daemon = Daemon::start();
    let (code, text) = run_to_end(daemon.datadir(), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(daemon.datadir().to_str().unwrap()), "{text}");
    assert!(daemon.datadir().join("ports").exists(), "the first daemon's ports file is untouched");
}

#[test]
fn unknown_overrides_and_bad_values_are_refused() {
    assert_refused(&TempDir::new().unwrap(), &["--set", "mysql-nonsense=1"], "mysql-nonsense");
    assert_refused(
        &TempDir::new().unwrap(),
        &["--set", "mysql-max_connections=many"],
        "mysql-max_connections",
    );
}

#[test]
fn a_client_gets_its_answers_from_the_embedded_backend() {
    let daemon = Daemon::start_with_backend();
    let mut client = daemon.client();
    client.query_drop("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    client.query_drop("INSERT INTO t VALUES (1, 'one'), (2, NULL)").unwrap();
    assert_eq!(client.affected_rows(), 2);
    let rows: Vec<(i64, Option<String>)> = client.query("SELECT a, b FROM t ORDER BY a").unwrap();
    assert_eq!(rows, [(1, Some("one".into())), (2, None)]);
    let error = daemon.connect("mysql", "testuser", "wrong").unwrap_err().to_string();
    assert!(error.contains("1045"), "{error}");
    let error = daemon.connect("mysql", "nobody", "testuser").unwrap_err().to_string();
    assert!(error.contains("1045"), "{error}");
}

#[test]
fn the_pool_serves_the_next_client() {
    let daemon = Daemon::start_with_backend();
    for _ in 0..5 {
        let one: Option<i64> = daemon.client().query_first("SELECT 1").unwrap();
        assert_eq!(one, Some(1));
    }
    let opened: Option<(i64, i64)> = daemon
        .admin()
        .query_first("SELECT ConnOK, ConnUsed + ConnFree FROM stats_mysql_connection_pool")
        .unwrap();
    assert_eq!(opened, Some((1, 1)));
}

#[test]
fn what_was_saved_is_back_after_a_restart_and_what_was_not_is_gone() {
    let daemon = Daemon::start();
    daemon.admin_all(&[
        "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (7, 'saved.example')",
        "SET mysql-max_connections=123",
        "SAVE MYSQL SERVERS TO DISK",
        "SAVE MYSQL VARIABLES TO DISK",
        "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (8, 'unsaved.example')",
        "LOAD MYSQL SERVERS TO RUNTIME",
    ]);
    let daemon = daemon.restart(&[]);
    let mut admin = daemon.admin();
    let servers: Vec<String> = admin.query("SELECT hostname FROM runtime_mysql_servers").unwrap();
    assert_eq!(servers, ["saved.example"]);
    let limit: Option<String> = admin
        .query_first(
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name='mysql-max_connections'",
        )
        .unwrap();
    assert_eq!(limit.as_deref(), Some("123"));
}

#[test]
fn a_row_that_cannot_be_typed_refuses_the_load_and_runtime_stays() {
    let daemon = Daemon::start();
    daemon.admin_all(&[
        "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (1, 'good.example')",
        "LOAD MYSQL SERVERS TO RUNTIME",
        "INSERT INTO mysql_servers(hostgroup_id, hostname, max_connections) VALUES (1, 'bad.example', 'many')",
    ]);
    let mut admin = daemon.admin();
    let error = admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap_err().to_string();
    for part in ["mysql_servers", "max_connections", "many"] {
        assert!(error.contains(part), "{error}");
    }
    let servers: Vec<String> = admin.query("SELECT hostname FROM runtime_mysql_servers").unwrap();
    assert_eq!(servers, ["good.example"]);
}

#[test]
fn garbage_on_any_port_harms_nobody() {
    let daemon = Daemon::start_with_backend();
    let mut bystander = daemon.client();
    for port in ["mysql", "admin", "sqliteserver"] {
        let address = daemon.port(port);
        for garbage in [
            &b"GET / HTTP/1.0\r\n\r\n"[..],
            &[0xff; 70],
            &[0, 0, 0, 1],
            &[5, 0, 0, 1, 0x0d],
            &[0xff, 0xff, 0xff, 1],
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(garbage).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            // A reset is as good an end as a close.
            let _ = stream.read_to_end(&mut answer);
            assert_eq!(answer.get(4), Some(&10), "the greeting came first");
        }
    }
    let one: Option<i64> = bystander.query_first("SELECT 1").unwrap();
    assert_eq!(one, Some(1));
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

#[test]
fn a_signal_ends_idle_clients_at_once() {
    for signal in ["TERM", "INT"] {
        let mut daemon = Daemon::start_with_backend();
        let _idle: Vec<_> = (0..5).map(|_| daemon.client()).collect();
        let _admin = daemon.admin();
        let (status, took) = daemon.stop(signal);
        assert_eq!(status.code(), Some(0), "{}", daemon.log());
        // Far below the five seconds that running statements get.
        assert!(took < Duration::from_secs(4), "{took:?}");
        assert!(!daemon.datadir().join("ports").exists());
    }
}

/// Counts to `rows` inside SQLite, which takes a while.
fn slow_statement(rows: u64) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT count(*) FROM n"
    )
}

#[test]
fn a_running_statement_is_finished_before_the_daemon_ends() {
    let mut daemon = Daemon::start_with_backend();
    let mut client = daemon.client();
    let rows = 1_000_000;
    let statement = std::thread::spawn(move || client.query_first::<u64, _>(slow_statement(rows)));
    wait_until_used(&daemon);
    let (status, _) = daemon.stop("TERM");
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
    assert_eq!(statement.join().unwrap().unwrap(), Some(rows));
}

#[test]
fn a_statement_without_end_is_cut_after_its_time() {
    let mut daemon = Daemon::start_with_backend();
    let mut client = daemon.client();
    let statement = std::thread::spawn(move || client.query_first::<u64, _>(slow_statement(u64::MAX >> 1)));
    wait_until_used(&daemon);
    let (status, _) = daemon.stop("TERM");
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
    assert!(statement.join().unwrap().is_err());
}

fn wait_until_used(daemon: &Daemon) {
    let mut admin = daemon.admin();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while admin.query_first::<i64, _>("SELECT sum(ConnUsed) FROM stats_mysql_connection_pool").unwrap()
        != Some(1)
    {
        assert!(std::time::Instant::now() < deadline, "the statement never started");
        std::thread::sleep(Duration::from_millis(5));
    }
}
