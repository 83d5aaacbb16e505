//! What checks find on real servers.

use crate::servers::Kind;
use crate::setup::Lab;
use mysql::prelude::Queryable;
use std::time::Duration;

const HOSTGROUP: u16 = 60;
const SERVERS: [Kind; 2] = [Kind::MySql, Kind::MariaDb];

/// Waits until the admin interface answers a question about each of the servers, by its port, with 1.
fn eventually(lab: &Lab, what: &str, question: impl Fn(u16) -> String) {
    let mut admin = lab.admin();
    for kind in SERVERS {
        let question = question(lab.servers.port(kind));
        let came = crate::daemon::within(Duration::from_secs(20), || {
            admin.query_first::<i64, _>(&question).unwrap() == Some(1)
        });
        assert!(came, "{what} of {kind:?}: never came true: {question}");
    }
}

fn has_status(lab: &Lab, status: &str) {
    eventually(lab, status, |port| {
        format!(
            "SELECT COUNT(*) FROM stats_mysql_connection_pool \
             WHERE hostgroup = {HOSTGROUP} AND srv_port = {port} AND status = '{status}'"
        )
    });
}

fn configure(lab: &Lab, statements: &[&str]) {
    let mut admin = lab.admin();
    for statement in statements {
        admin.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Runs a statement on both servers: the first on MySQL, the second on MariaDB.
fn on_both(lab: &Lab, mysql: &str, mariadb: &str) {
    for (kind, sql) in SERVERS.into_iter().zip([mysql, mariadb]) {
        lab.servers.dba(kind).query_drop(sql).unwrap_or_else(|error| panic!("{kind:?}: {sql}: {error}"));
    }
}

/// Servers that are no replicas, replicas that do not replicate, and heartbeats.
pub fn replication_lag(lab: &Lab) {
    on_both(
        lab,
        "GRANT REPLICATION CLIENT ON *.* TO 'monitor'@'%'",
        "GRANT REPLICATION CLIENT, REPLICA MONITOR ON *.* TO 'monitor'@'%'",
    );
    for kind in SERVERS {
        let port = lab.servers.port(kind);
        let row = format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_replication_lag) \
             VALUES ({HOSTGROUP}, '127.0.0.1', {port}, 10)"
        );
        configure(lab, &[&row]);
    }
    configure(
        lab,
        &[
            "LOAD MYSQL SERVERS TO RUNTIME",
            "SET mysql-monitor_replication_lag_interval=100",
            "SET mysql-monitor_ping_interval=100",
            "SET mysql-monitor_connect_interval=100",
            "LOAD MYSQL VARIABLES TO RUNTIME",
        ],
    );
    eventually(lab, "a check of a server that is no replica", |port| {
        format!(
            "SELECT COUNT(*) > 0 FROM mysql_server_replication_lag_log \
             WHERE port = {port} AND success_time_us > 0 AND repl_lag IS NULL AND error IS NULL"
        )
    });
    eventually(lab, "connect and ping", |port| {
        format!(
            "SELECT (SELECT COUNT(*) FROM mysql_server_connect_log WHERE port = {port} AND connect_error IS NULL) > 0 \
             AND (SELECT COUNT(*) FROM mysql_server_ping_log WHERE port = {port} AND ping_error IS NULL) > 0"
        )
    });
    has_status(lab, "ONLINE");
    on_both(
        lab,
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1",
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1",
    );
    has_status(lab, "SHUNNED_REPLICATION_LAG");
    eventually(lab, "the lag", |port| {
        format!("SELECT MAX(repl_lag) = 60 FROM mysql_server_replication_lag_log WHERE port = {port}")
    });
    eventually(lab, "the status", |port| {
        format!("SELECT COUNT(*) FROM runtime_mysql_servers WHERE status = 'SHUNNED' AND port = {port}")
    });
    on_both(lab, "RESET REPLICA ALL", "RESET SLAVE ALL");
    has_status(lab, "ONLINE");
    heartbeats(lab);
    configure(
        lab,
        &[
            "DELETE FROM mysql_servers WHERE hostgroup_id = 60",
            "LOAD MYSQL SERVERS TO RUNTIME",
            "SET mysql-monitor_replication_lag_interval=10000",
            "SET mysql-monitor_ping_interval=8000",
            "SET mysql-monitor_connect_interval=120000",
            "LOAD MYSQL VARIABLES TO RUNTIME",
        ],
    );
}

fn heartbeats(lab: &Lab) {
    for kind in SERVERS {
        let mut dba = lab.servers.dba(kind);
        for sql in [
            "CREATE TABLE app.heartbeat (ts VARCHAR(26) NOT NULL, server_id INT UNSIGNED PRIMARY KEY)",
            "INSERT INTO app.heartbeat VALUES (DATE_FORMAT(SYSDATE(6) - INTERVAL 1 HOUR, '%Y-%m-%dT%H:%i:%s.%f'), 1)",
            "GRANT SELECT ON app.heartbeat TO 'monitor'@'%'",
        ] {
            dba.query_drop(sql).unwrap_or_else(|error| panic!("{kind:?}: {sql}: {error}"));
        }
    }
    configure(
        lab,
        &[
            "SET mysql-monitor_replication_lag_use_percona_heartbeat='app.heartbeat'",
            "LOAD MYSQL VARIABLES TO RUNTIME",
        ],
    );
    has_status(lab, "SHUNNED_REPLICATION_LAG");
    eventually(lab, "the heartbeat's lag", |port| {
        format!(
            "SELECT MAX(repl_lag) BETWEEN 3600 AND 3700 FROM mysql_server_replication_lag_log WHERE port = {port}"
        )
    });
    let beat =
        "UPDATE app.heartbeat SET ts = DATE_FORMAT(SYSDATE(6) + INTERVAL 5 MINUTE, '%Y-%m-%dT%H:%i:%s.%f')";
    on_both(lab, beat, beat);
    has_status(lab, "ONLINE");
    configure(
        lab,
        &["SET mysql-monitor_replication_lag_use_percona_heartbeat=''", "LOAD MYSQL VARIABLES TO RUNTIME"],
    );
    on_both(lab, "DROP TABLE app.heartbeat", "DROP TABLE app.heartbeat");
}
