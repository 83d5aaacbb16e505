//! A production daemon answers nothing as the blue/green simulator does.
//!
//! POINTSMAN_PROGRAM names another binary than the one that was built with this test: lab/check-production.sh has the release
//! binary tried so.
#![cfg(not(feature = "test-rds-bgd"))]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use std::path::PathBuf;
use std::time::Duration;
use support::{Daemon, client_options};

fn program() -> PathBuf {
    std::env::var_os("POINTSMAN_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_pointsman").into(), PathBuf::from)
}

fn connect(port: u16, user: &str, password: &str) -> Conn {
    Conn::new(client_options(port, user, password).read_timeout(Some(Duration::from_secs(20)))).unwrap()
}

/// A daemon with its SQLite3 server, and a client of that.
fn start() -> (Daemon, Conn) {
    let daemon = Daemon::start(&program(), &["--sqlite3-server", "--no-monitor"]);
    let mut admin = connect(daemon.admin_port, "admin", "admin");
    admin.query_drop("INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser')").unwrap();
    admin.query_drop("LOAD MYSQL USERS TO RUNTIME").unwrap();
    let client = connect(daemon.port_of("sqliteserver").unwrap(), "testuser", "testuser");
    (daemon, client)
}

#[test]
fn statements_of_the_simulator_are_sqlite_s_errors() {
    let (_daemon, mut client) = start();
    for (sql, why) in [
        ("SELECT * FROM mysql.rds_topology", "no such table"),
        (
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'",
            "no such table",
        ),
        ("SELECT @@global.read_only read_only db-1:3306", "unrecognized token"),
        ("SELECT * FROM RDS_BGD_CONTROL", "no such table"),
        ("INSERT OR REPLACE INTO RDS_BGD_CONTROL(backend_ip, backend_port) VALUES ('a', 1)", "no such table"),
        ("INSERT INTO RDS_BGD_TOPOLOGY VALUES ('a', 1, 1, '', '', 1, '', '')", "no such table"),
        ("SELECT COALESCE(MAX(sequence_id),0) FROM RDS_BGD_PROBE_LOG", "no such table"),
        (
            "INSERT OR REPLACE INTO READONLY_STATUS(hostname,port,read_only) VALUES ('a', 1, 0)",
            "no such table",
        ),
    ] {
        match client.query::<Row, _>(sql) {
            Err(mysql::Error::MySqlError(error)) => {
                assert!(error.code == 1045 && error.message.contains(why), "{sql}: {error}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert_eq!(client.query::<String, _>("SELECT name FROM sqlite_master").unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_tells_which_address_was_reached() {
    let (_daemon, mut client) = start();
    let comment: Option<String> = client.query_first("SELECT @@version_comment LIMIT 1").unwrap();
    assert_eq!(comment.as_deref(), Some("(ProxySQL SQLite3 Server)"));
}
