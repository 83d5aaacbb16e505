//! Tables of the schema `stats`, checked against loads that are known.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::Conn;
use mysql::prelude::Queryable;
use pair::{
    PATIENCE, client, configure, connect, eventually, program, start_proxy, start_server, try_connect,
};
use support::{Daemon, within};

/// The rows of a table, as text, with `|` between its columns.
fn rows(admin: &mut Conn, columns: &str, table: &str) -> String {
    let columns: Vec<_> = columns.split(' ').map(|name| format!("COALESCE({name}, 'NULL')")).collect();
    let rows: Vec<String> =
        admin.query(format!("SELECT {} FROM {table}", columns.join(" || '|' || "))).unwrap();
    rows.join("\n")
}

/// The same, when it has become so: a client may have its answer a moment before that is counted.
fn becomes(admin: &mut Conn, columns: &str, table: &str, expected: &str) {
    let mut last = String::new();
    let same = within(PATIENCE, || {
        last = rows(admin, columns, table);
        last == expected
    });
    assert!(same, "{columns} of {table}: {last}, not {expected}");
}

#[test]
fn the_connection_pool_counts_a_known_load() {
    const COUNT: u64 = 50;
    let server = start_server(&[]);
    let (proxy, mut admin) =
        start_proxy(server.port_of("sqliteserver").unwrap(), &["mysql-connection_delay_multiplex_ms=60000"]);
    let mut clients = [client(&proxy), client(&proxy), client(&proxy)];
    clients.iter_mut().for_each(|client| client.query_drop("SELECT 2").unwrap());
    let pool = "ConnUsed ConnFree ConnOK ConnERR MaxConnUsed";
    becomes(&mut admin, pool, "stats_mysql_connection_pool", "3|0|3|0|3");
    admin.query_drop("SET mysql-connection_delay_multiplex_ms=0").unwrap();
    admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
    clients.iter_mut().for_each(|client| client.query_drop("SELECT 2").unwrap());
    becomes(&mut admin, pool, "stats_mysql_connection_pool", "0|3|3|0|3");
    assert_eq!(rows(&mut admin, pool, "stats_mysql_connection_pool_reset"), "0|3|3|0|3");
    let all = "ConnUsed ConnFree ConnOK ConnERR MaxConnUsed Queries Bytes_data_sent Bytes_data_recv";
    assert_eq!(rows(&mut admin, all, "stats_mysql_connection_pool"), "0|3|0|0|0|0|0|0");
    let backends =
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Queries_backends_bytes_sent'";
    let before: u64 = admin.query_first(backends).unwrap().unwrap();
    for _ in 0..COUNT {
        clients[0].query_drop("SELECT 1").unwrap();
    }
    // Each command is a packet: 4 bytes of header, its code, and the text.
    let sent = COUNT * (4 + 1 + 8);
    let columns = "ConnUsed ConnOK MaxConnUsed Queries Bytes_data_sent";
    becomes(&mut admin, columns, "stats_mysql_connection_pool", &format!("0|0|1|{COUNT}|{sent}"));
    let received: u64 = rows(&mut admin, "Bytes_data_recv", "stats_mysql_connection_pool").parse().unwrap();
    assert!(received.is_multiple_of(COUNT) && received > COUNT * 30, "{received}");
    assert_eq!(
        admin.query_first::<u64, _>(backends).unwrap().unwrap(),
        before + sent,
        "a reset is not for totals"
    );
}

#[test]
fn hostgroups_count_what_they_gave_out_and_who_waited() {
    let server = start_server(&[]);
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &[]);
    admin.query_drop("UPDATE mysql_servers SET max_connections = 1").unwrap();
    admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
    let (mut first, mut second) = (client(&proxy), client(&proxy));
    let table = "stats_mysql_hostgroup_connection_pool";
    eventually(&mut admin, "SELECT SUM(ConnUsed) = 0 FROM stats_mysql_connection_pool");
    rows(&mut admin, "hostgroup", "stats_mysql_hostgroup_connection_pool_reset");
    first.query_drop("BEGIN").unwrap();
    becomes(&mut admin, "hostgroup acquisitions_total waits_total waiters", table, "0|1|0|0");
    let waiting = std::thread::spawn(move || second.query_drop("SELECT 1"));
    eventually(&mut admin, "SELECT waiters FROM stats_mysql_hostgroup_connection_pool");
    first.query_drop("COMMIT").unwrap();
    waiting.join().unwrap().unwrap();
    becomes(&mut admin, "acquisitions_total waits_total wait_time_us_total>0 waiters", table, "2|1|1|0");
}

#[test]
fn free_connections_tell_what_they_did() {
    let server = start_server(&[]);
    let port = server.port_of("sqliteserver").unwrap();
    let (proxy, mut admin) = start_proxy(port, &[]);
    let mut client = client(&proxy);
    client.query_drop("BEGIN").unwrap();
    let count = "SELECT COUNT(*) FROM stats_mysql_free_connections";
    assert_eq!(admin.query_first::<u64, _>(count).unwrap(), Some(0), "it is in use");
    client.query_drop("COMMIT").unwrap();
    eventually(&mut admin, count);
    let columns = "hostgroup srv_host srv_port user autocommit json_extract(statistics,'$.address') \
                   json_extract(statistics,'$.myconnpoll_get')-json_extract(statistics,'$.myconnpoll_put') \
                   json_extract(statistics,'$.questions')>=2 json_extract(mysql_info,'$.thread_id')>0";
    let shown = rows(&mut admin, columns, "stats_mysql_free_connections");
    assert_eq!(shown, format!("0|127.0.0.1|{port}|testuser|1|127.0.0.1:{port}|0|1|1"));
}

#[test]
fn errors_are_counted_by_server_and_client() {
    let server = start_server(&[]);
    let port = server.port_of("sqliteserver").unwrap();
    let (proxy, mut admin) = start_proxy(port, &["mysql-connect_retries_on_failure=2"]);
    configure(
        &proxy,
        &[
            "INSERT INTO mysql_users(username, password, default_hostgroup) VALUES ('lost', 'lost', 7), ('strange', 'strange', 0)",
            "LOAD MYSQL USERS TO RUNTIME",
            "INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (7, '127.0.0.1', 1)",
            "LOAD MYSQL SERVERS TO RUNTIME",
        ],
    );
    let mut known = client(&proxy);
    for _ in 0..3 {
        known.query_drop("SELECT nonsense FROM nowhere").unwrap_err();
    }
    // A server that refuses the user, and one that is not there: what they said or did, and what pointsman then told the client.
    for user in ["strange", "lost"] {
        let connected = try_connect(proxy.traffic_port, user, user);
        connected.and_then(|mut client| client.query_drop("SELECT 1")).unwrap_err();
    }
    let of = |user: &str| {
        format!(
            "(SELECT * FROM stats_mysql_errors WHERE username = '{user}' AND last_error <> '' AND first_seen <= last_seen)"
        )
    };
    let counted = "hostgroup hostname port client_address schemaname errno count_star";
    becomes(&mut admin, counted, &of("testuser"), &format!("0|127.0.0.1|{port}|127.0.0.1||1045|3"));
    let sums = "COUNT(*) SUM(hostname='127.0.0.1') SUM(port=0) SUM(count_star) MIN(errno) MAX(hostgroup)";
    becomes(&mut admin, sums, &of("strange"), "2|1|1|2|1045|0");
    becomes(&mut admin, sums, &of("lost"), "2|1|1|4|9002|7");
    let all = "SELECT COUNT(*) FROM stats_mysql_errors";
    assert_eq!(admin.query::<String, _>("SELECT username FROM stats_mysql_errors_reset").unwrap().len(), 5);
    assert_eq!(admin.query_first::<u64, _>(all).unwrap(), Some(0));
}

#[test]
fn an_address_whose_logins_fail_is_refused_until_it_is_forgotten() {
    let server = start_server(&[]);
    let variables = ["mysql-client_host_cache_size=10", "mysql-client_host_error_counts=2"];
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &variables);
    let code = |user: &str, password: &str| match try_connect(proxy.traffic_port, user, password) {
        Ok(_) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(code("testuser", "wrong"), 1045);
    becomes(&mut admin, "client_address error_count", "stats_mysql_client_host_cache", "127.0.0.1|1");
    assert_eq!(code("testuser", "testuser"), 0);
    let none = "SELECT COUNT(*) = 0 FROM stats_mysql_client_host_cache";
    eventually(&mut admin, none);
    for count in ["1", "2"] {
        assert_eq!(code("testuser", "wrong"), 1045);
        becomes(&mut admin, "error_count", "stats_mysql_client_host_cache", count);
    }
    assert_eq!(code("testuser", "testuser"), 1129);
    let killed = "SELECT Variable_Value = 1 FROM stats_mysql_global WHERE Variable_Name = 'client_host_error_killed_connections'";
    eventually(&mut admin, killed);
    admin.query_drop("PROXYSQL FLUSH MYSQL CLIENT HOSTS").unwrap();
    assert_eq!(code("testuser", "testuser"), 0);
    assert_eq!(code("testuser", "wrong"), 1045);
    becomes(&mut admin, "error_count", "stats_mysql_client_host_cache", "1");
    assert_eq!(rows(&mut admin, "error_count", "stats_mysql_client_host_cache_reset"), "1");
    eventually(&mut admin, none);
}

#[test]
fn memory_is_told_by_what_takes_it() {
    let server = start_server(&[]);
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &[]);
    let _client = client(&proxy);
    let all = "SELECT COUNT(*) = 5 AND MIN(CAST(Variable_Value AS INT)) > 0 FROM stats_memory_metrics";
    eventually(&mut admin, all);
}

#[test]
fn the_history_has_samples_that_outlast_a_restart() {
    let server = start_server(&[]);
    let variables =
        ["admin-stats_mysql_connections=1", "admin-stats_system_cpu=1", "admin-stats_system_memory=0"];
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &variables);
    client(&proxy).query_drop("SELECT 1").unwrap();
    let samples = "SELECT COUNT(*) >= 1 FROM stats_history.mysql_connections WHERE Questions >= 1 AND Client_Connections_created >= 1";
    eventually(&mut admin, samples);
    eventually(&mut admin, "SELECT COUNT(*) >= 1 FROM myhgm_connections WHERE MyHGM_myconnpoll_get >= 1");
    eventually(&mut admin, "SELECT COUNT(*) >= 2 AND MIN(tms_utime + tms_stime) >= 0 FROM system_cpu");
    assert_eq!(
        admin.query_first::<u64, _>("SELECT COUNT(*) FROM system_memory").unwrap(),
        Some(0),
        "it is off"
    );
    drop(admin);
    let proxy = proxy.restart(program(), &["--no-monitor", "--set", "admin-stats_mysql_connections=0"]);
    let mut reader = connect(proxy.admin_port, "stats", "stats");
    assert_eq!(reader.query_first::<u64, _>(samples).unwrap(), Some(1), "who reads statistics sees it, too");
}

#[test]
fn digests_move_to_the_history() {
    let server = start_server(&[]);
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &[]);
    let mut client = client(&proxy);
    (0..3).for_each(|number| client.query_drop(format!("SELECT {number}")).unwrap());
    let counted = "(SELECT * FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?')";
    becomes(&mut admin, "count_star", counted, "3");
    let digests: u64 = admin.query_first("SELECT COUNT(*) FROM stats_mysql_query_digest").unwrap().unwrap();
    admin.query_drop("SAVE MYSQL DIGEST TO DISK").unwrap();
    assert_eq!(admin.affected_rows(), digests);
    assert_eq!(rows(&mut admin, "count_star", "stats_mysql_query_digest"), "", "they are not counted twice");
    let saved = "SELECT COUNT(*) = 1 AND SUM(count_star) = 3 AND MIN(dump_time) >= MAX(last_seen) \
                 FROM stats_history.history_mysql_query_digest WHERE digest_text = 'SELECT ?'";
    eventually(&mut admin, saved);
    client.query_drop("SELECT 7").unwrap();
    becomes(&mut admin, "count_star", counted, "1");
    admin.query_drop("SET admin-stats_mysql_query_digest_to_disk = 1").unwrap();
    admin.query_drop("LOAD ADMIN VARIABLES TO RUNTIME").unwrap();
    let all = "SELECT SUM(count_star) = 4 FROM history_mysql_query_digest WHERE digest_text = 'SELECT ?'";
    eventually(&mut admin, all);
    drop(admin);
    let proxy = proxy.restart(program(), &["--no-monitor"]);
    eventually(&mut connect(proxy.admin_port, "stats", "stats"), all);
}

#[test]
fn the_history_has_the_connection_pool() {
    let server = start_server(&[]);
    let port = server.port_of("sqliteserver").unwrap();
    let (_proxy, mut admin) = start_proxy(port, &["admin-stats_mysql_connection_pool=1"]);
    let sampled = format!(
        "SELECT COUNT(*) >= 2 FROM history_stats_mysql_connection_pool WHERE hostgroup = 0 AND srv_host = '127.0.0.1' \
         AND srv_port = {port} AND status = 'ONLINE' AND timestamp > 1500000000"
    );
    eventually(&mut admin, &sampled);
}

#[test]
fn metrics_are_the_figures_of_the_tables() {
    let server = start_server(&[]);
    let port = server.port_of("sqliteserver").unwrap();
    let (proxy, mut admin) = start_proxy(port, &[]);
    let mut client = client(&proxy);
    for _ in 0..2 {
        client.query_drop("SELECT nonsense FROM nowhere").unwrap_err();
    }
    becomes(&mut admin, "count_star", "(SELECT * FROM stats_mysql_errors WHERE errno = 1045)", "2");
    eventually(&mut admin, "SELECT ConnFree FROM stats_mysql_connection_pool");
    let queries = rows(&mut admin, "Queries", "stats_mysql_connection_pool");
    let address = format!("endpoint=\"127.0.0.1:{port}\",hostgroup=\"0\"");
    let error = format!("hostgroup=\"0\",address=\"127.0.0.1\",port=\"{port}\",code=\"1045\"");
    let mut expected = vec![
        "proxysql_client_connections_total{status=\"created\"} 1".to_owned(),
        "proxysql_server_connections_connected 1".to_owned(),
        format!("proxysql_connpool_conns{{{address},status=\"free\"}} 1"),
        format!("proxysql_connpool_conns_queries_total{{{address}}} {queries}"),
        format!("proxysql_mysql_error_total{{{error}}} 2"),
    ];
    for (variable, metric) in [
        ("Questions", "proxysql_questions_total"),
        ("Servers_table_version", "proxysql_servers_table_version_total"),
    ] {
        let of = format!("(SELECT * FROM stats_mysql_global WHERE Variable_Name = '{variable}')");
        let value = rows(&mut admin, "Variable_Value", &of);
        assert_ne!(value, "0", "{variable}");
        expected.push(format!("{metric} {value}"));
    }
    let mut reader = connect(proxy.admin_port, "stats", "stats");
    let text: String = reader.query_first("SHOW PROMETHEUS METRICS").unwrap().unwrap();
    for line in expected {
        assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
    }
    // Both loads are counted: that of the start, and ours.
    let version =
        "SELECT Variable_Value = 2 FROM stats_mysql_global WHERE Variable_Name = 'Servers_table_version'";
    eventually(&mut admin, version);
}

#[test]
fn a_history_that_cannot_be_opened_does_not_keep_the_daemon_from_starting() {
    let datadir = tempfile::tempdir().unwrap();
    std::fs::write(datadir.path().join("pointsman_stats.db"), "no database at all. ".repeat(300)).unwrap();
    let daemon = Daemon::start_in(datadir, program(), &["--no-monitor"]);
    let mut admin = connect(daemon.admin_port, "admin", "admin");
    admin.query_drop("SELECT * FROM system_cpu").unwrap_err();
    let error = admin.query_drop("SAVE MYSQL DIGEST TO DISK").unwrap_err().to_string();
    assert!(error.contains("no stats_history"), "{error}");
    assert_eq!(daemon.log().matches("pointsman_stats.db").count(), 1, "{}", daemon.log());
}
