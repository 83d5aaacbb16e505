//! The daemon as a process: starting, refusing to start, stopping, and what saved configuration survives.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::Conn;
use mysql::prelude::Queryable;
use pair::{PATIENCE, client, configure, connect, program, try_connect};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Daemon, command, ended, within};
use tempfile::TempDir;

fn start() -> Daemon {
    Daemon::start(program(), &["--sqlite3-server"])
}

/// A daemon whose traffic goes to its own SQLite3 server, as testuser/testuser.
fn start_with_backend() -> Daemon {
    let daemon = start();
    let server = format!(
        "INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {})",
        daemon.port_of("sqliteserver").unwrap()
    );
    configure(
        &daemon,
        &[
            "INSERT INTO mysql_users(username, password, default_hostgroup) VALUES ('testuser', 'testuser', 0)",
            "LOAD MYSQL USERS TO RUNTIME",
            &server,
            "LOAD MYSQL SERVERS TO RUNTIME",
        ],
    );
    daemon
}

fn admin(daemon: &Daemon) -> Conn {
    connect(daemon.admin_port, "admin", "admin")
}

/// Runs a daemon that is expected not to start: its exit code and what it printed.
fn run_to_end(datadir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut child =
        command(program(), datadir, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let Some(status) = ended(&mut child) else {
        child.kill().unwrap();
        panic!("the daemon runs although it should not");
    };
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status.code(), text)
}

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
    let daemon = start();
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
    let daemon = start_with_backend();
    let mut client = client(&daemon);
    client.query_drop("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    client.query_drop("INSERT INTO t VALUES (1, 'one'), (2, NULL)").unwrap();
    assert_eq!(client.affected_rows(), 2);
    let rows: Vec<(i64, Option<String>)> = client.query("SELECT a, b FROM t ORDER BY a").unwrap();
    assert_eq!(rows, [(1, Some("one".into())), (2, None)]);
    let error = try_connect(daemon.traffic_port, "testuser", "wrong").unwrap_err().to_string();
    assert!(error.contains("1045"), "{error}");
    let error = try_connect(daemon.traffic_port, "nobody", "testuser").unwrap_err().to_string();
    assert!(error.contains("1045"), "{error}");
}

#[test]
fn the_pool_serves_the_next_client() {
    let daemon = start_with_backend();
    let mut admin = admin(&daemon);
    for _ in 0..5 {
        let one: Option<i64> = client(&daemon).query_first("SELECT 1").unwrap();
        assert_eq!(one, Some(1));
        // The client has its answer a moment before the connection is back.
        let free = "SELECT ConnFree FROM stats_mysql_connection_pool";
        assert!(within(PATIENCE, || admin.query_first::<i64, _>(free).unwrap() == Some(1)));
    }
    let opened: Option<i64> = admin.query_first("SELECT ConnOK FROM stats_mysql_connection_pool").unwrap();
    assert_eq!(opened, Some(1));
}

#[test]
fn what_was_saved_is_back_after_a_restart_and_what_was_not_is_gone() {
    let daemon = start();
    configure(
        &daemon,
        &[
            "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (7, 'saved.example')",
            "SET mysql-max_connections=123",
            "SAVE MYSQL SERVERS TO DISK",
            "SAVE MYSQL VARIABLES TO DISK",
            "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (8, 'unsaved.example')",
            "LOAD MYSQL SERVERS TO RUNTIME",
        ],
    );
    let daemon = daemon.restart(program(), &[]);
    let mut admin = admin(&daemon);
    let servers: Vec<String> = admin.query("SELECT hostname FROM runtime_mysql_servers").unwrap();
    assert_eq!(servers, ["saved.example"]);
    let limit: Option<String> = admin
        .query_first(
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name='mysql-max_connections'",
        )
        .unwrap();
    assert_eq!(limit.as_deref(), Some("123"));
}

/// The same program under a limit of the size of its files, in units of 512 bytes, which stands for a full disk.
fn program_limited_to(units: u64, directory: &Path) -> PathBuf {
    let path = directory.join("limited");
    let script = format!("#!/bin/sh\nulimit -f {units}\nexec '{}' \"$@\"\n", program().display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn a_disk_without_room_costs_what_is_saved_and_nothing_else() {
    let daemon = start_with_backend();
    configure(&daemon, &["SAVE MYSQL SERVERS TO DISK", "SAVE MYSQL USERS TO DISK"]);
    let size = |name: &str| fs::metadata(daemon.datadir().join(name)).map_or(0, |found| found.len());
    let largest =
        ["pointsman.db", "pointsman.db-wal", "sqlite3server.db"].map(size).into_iter().max().unwrap();
    let scripts = TempDir::new().unwrap();
    let limited = program_limited_to(largest / 512 + 200, scripts.path());
    let daemon = daemon.restart(&limited, &["--sqlite3-server"]);
    let server = daemon.port_of("sqliteserver").unwrap();
    configure(
        &daemon,
        &[
            &format!("UPDATE mysql_servers SET port = {server}"),
            "LOAD MYSQL SERVERS TO RUNTIME",
            "SAVE MYSQL SERVERS TO DISK",
        ],
    );
    let mut client = client(&daemon);
    let long = "x".repeat(200_000);
    configure(
        &daemon,
        &[
            &format!("INSERT INTO mysql_users(username, comment) VALUES ('long', '{long}')"),
            "LOAD MYSQL USERS TO RUNTIME",
        ],
    );
    let refusal = admin(&daemon).query_drop("SAVE MYSQL USERS TO DISK").unwrap_err().to_string();
    let path = daemon.datadir().canonicalize().unwrap().join("pointsman.db");
    assert!(refusal.contains(path.to_str().unwrap()) && refusal.contains("nothing was saved"), "{refusal}");
    assert_eq!(client.query_first::<u8, _>("SELECT 1").unwrap(), Some(1));
    assert_eq!(self::client(&daemon).query_first::<u8, _>("SELECT 1").unwrap(), Some(1));
    let sql = "SELECT group_concat(username) FROM disk.mysql_users";
    assert_eq!(admin(&daemon).query_first::<String, _>(sql).unwrap().as_deref(), Some("testuser"));
    configure(&daemon, &["DELETE FROM mysql_users WHERE username = 'long'", "SAVE MYSQL USERS TO DISK"]);
    let daemon = daemon.restart(program(), &["--sqlite3-server"]);
    assert_eq!(admin(&daemon).query_first::<u16, _>("SELECT port FROM mysql_servers").unwrap(), Some(server));
}

#[test]
fn a_start_on_a_full_disk_serves_with_what_was_saved() {
    let daemon = start();
    configure(
        &daemon,
        &[
            "INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser')",
            "SAVE MYSQL USERS TO DISK",
        ],
    );
    // Its end is waited for: what it leaves is what another start finds.
    let daemon = daemon.restart(program(), &["--no-monitor"]);
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(daemon.datadir()).unwrap().map(|entry| entry.unwrap()) {
        if !["ports", "log", "pointsman.db-shm"].map(Into::into).contains(&entry.file_name()) {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    drop(daemon);
    let scripts = TempDir::new().unwrap();
    let socket = scripts.path().join("admin.sock");
    let no_byte = program_limited_to(0, scripts.path());
    let listen = format!("admin-mysql_ifaces={}", socket.display());
    let mut child = command(&no_byte, copy.path(), &["--set", &listen, "--no-monitor"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let options = || {
        let options = mysql::OptsBuilder::default()
            .socket(socket.to_str())
            .prefer_socket(false)
            .user(Some("admin"))
            .pass(Some("admin"));
        options.read_timeout(Some(PATIENCE))
    };
    let mut admin = None;
    let came = within(PATIENCE, || {
        admin = Conn::new(options()).ok();
        admin.is_some() || child.try_wait().unwrap().is_some()
    });
    let answered = admin.as_mut().filter(|_| came).map(|admin| {
        let users: Option<String> = admin.query_first("SELECT username FROM runtime_mysql_users").unwrap();
        (users, admin.query_drop("SAVE MYSQL USERS TO DISK").unwrap_err().to_string())
    });
    child.kill().unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    let (users, refusal) = answered.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(users.as_deref(), Some("testuser"));
    assert!(refusal.contains("File too large"), "{refusal}");
    assert!(text.contains("pointsman.db: File too large") && text.contains("what can be read"), "{text}");
}

#[test]
fn a_row_that_cannot_be_typed_refuses_the_load_and_runtime_stays() {
    let daemon = start();
    configure(
        &daemon,
        &[
            "INSERT INTO mysql_servers(hostgroup_id, hostname) VALUES (1, 'good.example')",
            "LOAD MYSQL SERVERS TO RUNTIME",
            "INSERT INTO mysql_servers(hostgroup_id, hostname, max_connections) VALUES (1, 'bad.example', 'many')",
        ],
    );
    let mut admin = admin(&daemon);
    let error = admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap_err().to_string();
    for part in ["mysql_servers", "max_connections", "many"] {
        assert!(error.contains(part), "{error}");
    }
    let servers: Vec<String> = admin.query("SELECT hostname FROM runtime_mysql_servers").unwrap();
    assert_eq!(servers, ["good.example"]);
}

#[test]
fn garbage_on_any_port_harms_nobody() {
    let daemon = start_with_backend();
    let mut bystander = client(&daemon);
    for port in ["mysql", "admin", "sqliteserver"] {
        let address = ("127.0.0.1", daemon.port_of(port).unwrap());
        for garbage in [
            &b"GET / HTTP/1.0\r\n\r\n"[..],
            &[0xff; 70],
            &[0, 0, 0, 1],
            &[5, 0, 0, 1, 0x0d],
            &[0xff, 0xff, 0xff, 1],
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(garbage).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
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
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = start_with_backend();
        let _idle: Vec<_> = (0..5).map(|_| client(&daemon)).collect();
        let _admin = admin(&daemon);
        let start = Instant::now();
        assert_stops_cleanly(&mut daemon, signal);
        // Far below the five seconds that running statements get.
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        assert!(!daemon.datadir().join("ports").exists());
        for closed in ["pointsman.db", "sqlite3server.db"] {
            let log = daemon.datadir().join(format!("{closed}-wal"));
            assert!(!log.exists(), "{closed} alone holds all that was saved");
        }
    }
}

fn assert_stops_cleanly(daemon: &mut Daemon, signal: Signal) {
    let status = daemon.stop(signal);
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", daemon.log());
}

/// Counts to `rows` inside SQLite, which takes a while.
fn slow_statement(rows: u64) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT count(*) FROM n"
    )
}

#[test]
fn a_running_statement_is_finished_before_the_daemon_ends() {
    let mut daemon = start_with_backend();
    let mut client = client(&daemon);
    let rows = 1_000_000;
    let statement = std::thread::spawn(move || client.query_first::<u64, _>(slow_statement(rows)));
    wait_until_it_runs(&daemon);
    assert_stops_cleanly(&mut daemon, Signal::TERM);
    assert_eq!(statement.join().unwrap().unwrap(), Some(rows));
}

#[test]
fn a_statement_without_end_is_cut_after_its_time() {
    let mut daemon = start_with_backend();
    let mut client = client(&daemon);
    let statement = std::thread::spawn(move || client.query_first::<u64, _>(slow_statement(u64::MAX >> 1)));
    wait_until_it_runs(&daemon);
    assert_stops_cleanly(&mut daemon, Signal::TERM);
    assert!(statement.join().unwrap().is_err());
}

/// Waits until a server has the statement. A connection that is still being opened is used, too.
fn wait_until_it_runs(daemon: &Daemon) {
    let mut admin = admin(daemon);
    let running = "SELECT count(*) FROM stats_mysql_processlist WHERE command = 'Query'";
    let started = within(PATIENCE, || admin.query_first::<i64, _>(running).unwrap() == Some(1));
    assert!(started, "the statement never started");
}
