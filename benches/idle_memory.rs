//! What an idle client connection costs the daemon in resident memory: `cargo bench --bench idle_memory`.
//!
//! Opens 2,000 connections to a daemon of its own (POINTSMAN_BIN, or the one that cargo built for this), each of which
//! logs in and runs one statement on the embedded backend, and compares the daemon's RSS before and after.
#![allow(clippy::unwrap_used)] // a step that fails leaves nothing to measure: the panic's status says so

#[allow(dead_code)] // it serves others, too
#[path = "../tests/support/daemon.rs"]
mod daemon;

use std::path::PathBuf;
use std::time::Duration;

use daemon::{Daemon, client_options, within};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CONNECTIONS: u32 = 2_000;
/// For this program's and, inherited, the daemon's: a socket and a wake-up descriptor per connection, and some more.
const OPEN_FILES: u64 = 2 * CONNECTIONS as u64 + 500;
/// RSS has settled when it has not moved by more than this between two looks.
const SETTLED_KIB: u64 = 64;

fn main() {
    raise_open_files();
    let program = std::env::var_os("POINTSMAN_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_pointsman")), PathBuf::from);
    let daemon = Daemon::start(&program, &["--sqlite3-server"]);
    configure(&daemon);
    // What the first connection of all sets up is no cost of the others.
    drop(client(&daemon));

    let before = (settled_kib(&daemon), daemon.stacks_kib());
    let connections: Vec<Conn> = (0..CONNECTIONS).map(|_| client(&daemon)).collect();
    let after = (settled_kib(&daemon), daemon.stacks_kib());
    drop(connections);

    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / f64::from(CONNECTIONS);
    println!(
        "{:>11}  {:>14}  {:>13}  {:>18}  {:>14}",
        "connections", "RSS before KiB", "RSS after KiB", "KiB per connection", "of that, stack"
    );
    let (all, stack) = (each(before.0, after.0), each(before.1, after.1));
    println!("{CONNECTIONS:>11}  {:>14}  {:>13}  {all:>18.1}  {stack:>14.1}", before.0, after.0);
}

fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= OPEN_FILES) {
        return;
    }
    let raised = Rlimit { current: Some(OPEN_FILES), ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        eprintln!(
            "cannot raise the limit of open files to {OPEN_FILES} ({error}): raise the hard limit with ulimit -Hn"
        );
        std::process::exit(1);
    }
}

/// A user whose statements go to the embedded backend.
fn configure(daemon: &Daemon) {
    let backend = daemon.port_of("sqliteserver").unwrap();
    let mut admin = Conn::new(options(daemon.admin_port, "admin", "admin")).unwrap();
    for statement in [
        format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {backend})"
        ),
        "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('idle', 'idle', 1)"
            .to_owned(),
        format!("SET mysql-max_connections={}", CONNECTIONS + 10),
        "LOAD MYSQL VARIABLES TO RUNTIME".to_owned(),
        "LOAD MYSQL SERVERS TO RUNTIME".to_owned(),
        "LOAD MYSQL USERS TO RUNTIME".to_owned(),
    ] {
        admin.query_drop(statement).unwrap();
    }
}

fn options(port: u16, user: &str, password: &str) -> OptsBuilder {
    client_options(port, user, password).read_timeout(Some(Duration::from_secs(30)))
}

/// A connection that has logged in and run one statement.
fn client(daemon: &Daemon) -> Conn {
    let mut conn = Conn::new(options(daemon.traffic_port, "idle", "idle")).unwrap();
    let answer: Option<u8> = conn.query_first("SELECT 1").unwrap();
    assert_eq!(answer, Some(1));
    conn
}

/// The daemon's resident memory once it has stopped changing, in KiB.
fn settled_kib(daemon: &Daemon) -> u64 {
    let mut seen = Vec::new();
    let settled = within(Duration::from_secs(20), || {
        seen.push(daemon.resident_kib());
        // Half a second of looks.
        seen.windows(25)
            .last()
            .is_some_and(|last| last.iter().all(|kib| kib.abs_diff(last[0]) <= SETTLED_KIB))
    });
    assert!(settled, "the daemon's memory does not settle: {:?} KiB", seen.last());
    seen.last().copied().unwrap()
}
