//! Checks of servers and what follows from them, with daemons as processes: one is the proxy, the SQLite3 server of the other is what
//! it watches.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use pair::{PATIENCE, client, configure, eventually, program, start_server, start_watching_proxy};
use rustix::process::Signal;
use std::time::Duration;
use support::{Daemon, within};

#[test]
fn checks_are_logged_and_counted() {
    let server = start_server(&[]);
    let variables = [
        "mysql-monitor_connect_interval=100",
        "mysql-monitor_ping_interval=100",
        "mysql-monitor_history=1000",
    ];
    let (_proxy, mut admin) = start_watching_proxy(server.port_of("sqliteserver").unwrap(), &variables);
    for question in [
        "SELECT COUNT(*) > 2 FROM mysql_server_connect_log WHERE connect_success_time_us > 0 AND connect_error IS NULL",
        "SELECT COUNT(*) > 2 FROM monitor.mysql_server_ping_log WHERE ping_success_time_us > 0 AND ping_error IS NULL",
        "SELECT MAX(time_start_us) - MIN(time_start_us) > 500000 FROM mysql_server_ping_log",
        "SELECT Variable_Value > 2 FROM stats_mysql_global WHERE Variable_Name = 'MySQL_Monitor_ping_check_OK'",
        "SELECT Variable_Value > 0 FROM stats_mysql_global WHERE Variable_Name = 'MySQL_Monitor_Workers'",
        "SELECT Latency_us > 0 FROM stats_mysql_connection_pool",
    ] {
        eventually(&mut admin, question);
    }
    let kept: Option<i64> = admin
        .query_first("SELECT MAX(time_start_us) - MIN(time_start_us) <= 1000000 FROM mysql_server_ping_log")
        .unwrap();
    assert_eq!(kept, Some(1), "older rows than mysql-monitor_history");
}

#[test]
fn a_lone_server_that_was_killed_is_in_use_again_long_before_its_rest_is_over() {
    let mut server = start_server(&[]);
    let port = server.port_of("sqliteserver").unwrap();
    let variables = [
        "mysql-shun_recovery_time_sec=3000",
        "mysql-connect_timeout_server_max=20000",
        "mysql-connect_retries_on_failure=1000",
    ];
    let (proxy, mut admin) = start_watching_proxy(port, &variables);
    let mut client = client(&proxy);
    server.stop(Signal::KILL);
    // The first may have been sent on a connection that was there, and is lost with it.
    let mut ask = move || client.query_first::<i64, _>("SELECT 2");
    let waiting = std::thread::spawn(move || ask().or_else(|_| ask()));
    eventually(&mut admin, "SELECT COUNT(*) FROM stats_mysql_connection_pool WHERE status = 'SHUNNED'");
    // The rest is 19 s (mysql-connect_timeout_server_max less a second).
    let again = start_server(&["--set", &format!("sqliteserver-mysql_ifaces=127.0.0.1:{port}")]);
    assert_eq!(waiting.join().unwrap().unwrap(), Some(2), "{}", proxy.log());
    eventually(&mut admin, "SELECT COUNT(*) FROM stats_mysql_connection_pool WHERE status = 'ONLINE'");
    let said = proxy.log().matches("Hostgroup 0 has no servers available!").count();
    assert!((1..=25).contains(&said), "{}", proxy.log());
    drop(again);
}

#[test]
fn a_server_that_hangs_is_shunned_and_its_statements_end() {
    let server = start_server(&[]);
    let variables = [
        "mysql-monitor_ping_interval=100",
        "mysql-monitor_ping_timeout=100",
        "mysql-monitor_ping_max_failures=2",
    ];
    let (proxy, mut admin) = start_watching_proxy(server.port_of("sqliteserver").unwrap(), &variables);
    let mut idle = client(&proxy);
    idle.query_drop("BEGIN").unwrap();
    eventually(&mut admin, "SELECT COUNT(*) > 0 FROM mysql_server_ping_log WHERE ping_error IS NULL");
    server.signal(Signal::STOP);
    eventually(&mut admin, "SELECT COUNT(*) FROM runtime_mysql_servers WHERE status = 'SHUNNED'");
    assert!(idle.query_drop("SELECT 1").is_err(), "its server is gone, and its transaction with it");
    eventually(&mut admin, "SELECT COUNT(*) > 1 FROM mysql_server_ping_log WHERE ping_error LIKE 'timeout%'");
    assert!(proxy.log().contains("pings in a row"), "{}", proxy.log());
    server.signal(Signal::CONT);
    let mut client = client(&proxy);
    assert_eq!(client.query_first::<i64, _>("SELECT 2").unwrap(), Some(2), "{}", proxy.log());
    eventually(&mut admin, "SELECT COUNT(*) FROM runtime_mysql_servers WHERE status = 'ONLINE'");
}

#[test]
fn the_dispatcher_of_blue_green_workers_sleeps_until_something_changes() {
    let daemon = Daemon::start(program(), &[]);
    let mut admin = configure(
        &daemon,
        &[
            // It has no server, and therefore no worker.
            "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup, reader_hostgroup, green_writer_hostgroup, \
             green_reader_hostgroup) VALUES (1, 2, 3, 4)",
            "LOAD MYSQL SERVERS TO RUNTIME",
        ],
    );
    let before = daemon.sleeps_of("bgd-dispatch");
    std::thread::sleep(Duration::from_secs(1));
    let idle = daemon.sleeps_of("bgd-dispatch") - before;
    assert!(idle < 5, "{idle} times in a second");
    admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
    assert!(within(PATIENCE, || daemon.sleeps_of("bgd-dispatch") > before + idle), "it looks at a LOAD");
}
