//! LOAD and SAVE between memory and a runtime that serves.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use pair::{client, configure, eventually, program, start_proxy, start_server};
use support::Daemon;

/// A table's rows as text, in an order of their own.
fn rows(admin: &mut Conn, table: &str) -> Vec<String> {
    let rows: Vec<Row> = admin.query(format!("SELECT * FROM {table}")).unwrap();
    let mut rows: Vec<_> = rows.into_iter().map(|row| format!("{:?}", row.unwrap())).collect();
    rows.sort();
    rows
}

fn info(admin: &mut Conn, statement: &str) -> String {
    admin.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    admin.info_str().into_owned()
}

#[test]
fn what_is_saved_from_runtime_loads_as_the_same() {
    const TABLES: &[&str] = &[
        "mysql_servers",
        "mysql_replication_hostgroups",
        "mysql_hostgroup_attributes",
        "mysql_servers_ssl_params",
        "mysql_users",
        "proxysql_servers",
    ];
    const MODULES: &[&str] = &["MYSQL SERVERS", "MYSQL USERS", "PROXYSQL SERVERS"];
    let daemon = Daemon::start(program(), &["--no-monitor"]);
    let mut admin = configure(
        &daemon,
        &[
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port, status, weight, compression, max_connections, use_ssl, comment)
             VALUES (1, 'a', 3307, 'ONLINE', 7, 1, 20, 1, 'it''s'), (2, 'b', 3306, 'OFFLINE_SOFT', 0, 0, 0, 0, '')",
            "INSERT INTO mysql_replication_hostgroups VALUES (1, 2, 'super_read_only', 'c')",
            "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, multiplex, servers_defaults) VALUES (1, 0, ' {\"weight\": 5} ')",
            "INSERT INTO mysql_servers_ssl_params (hostname, port, username, ssl_cipher) VALUES ('a', 3307, 'u', 'x')",
            "INSERT INTO mysql_users (username, password, default_schema) VALUES ('u', 'p', 's')",
            "INSERT INTO proxysql_servers (hostname) VALUES ('p')",
        ],
    );
    for module in MODULES {
        assert_eq!(info(&mut admin, &format!("LOAD {module} TO RUNTIME")), "");
    }
    let runtime = |admin: &mut Conn| {
        let tables = TABLES.iter().map(|table| rows(admin, &format!("runtime_{table}")));
        tables.collect::<Vec<_>>()
    };
    let before = runtime(&mut admin);
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:?}");
    for module in MODULES {
        assert_eq!(info(&mut admin, &format!("SAVE {module} FROM RUNTIME")), "");
    }
    for (table, rows_before) in TABLES.iter().zip(&before) {
        assert_eq!(rows(&mut admin, table), *rows_before, "{table}");
    }
    let sums: Vec<Row> = admin.query("SELECT * FROM runtime_checksums_values").unwrap();
    for module in MODULES {
        assert_eq!(info(&mut admin, &format!("LOAD {module} TO RUNTIME")), "");
    }
    assert_eq!(runtime(&mut admin), before);
    let again: Vec<Row> = admin.query("SELECT * FROM runtime_checksums_values").unwrap();
    assert_eq!(format!("{again:?}"), format!("{sums:?}"));
}

#[test]
fn what_is_skipped_is_counted_and_logged() {
    let daemon = Daemon::start(program(), &["--no-monitor"]);
    let mut admin = configure(
        &daemon,
        &[
            "INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (1, 2), (2, 3)",
            "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, servers_defaults) VALUES (9, '[1]')",
        ],
    );
    assert_eq!(info(&mut admin, "LOAD MYSQL SERVERS TO RUNTIME"), "2 entries ignored, see the log");
    eventually(&mut admin, "SELECT COUNT(*) = 1 FROM runtime_mysql_replication_hostgroups");
    for attributes in ["[1]", "7", "{}", ""] {
        let sql = format!("REPLACE INTO mysql_users (username, attributes) VALUES ('u', '{attributes}')");
        admin.query_drop(sql).unwrap();
        let ignored = if attributes.starts_with(['[', '7']) { "1 entry ignored, see the log" } else { "" };
        assert_eq!(info(&mut admin, "LOAD MYSQL USERS TO RUNTIME"), ignored, "{attributes}");
    }
    let (_, log) = daemon.terminate();
    assert!(log.contains("incompatible entry (writer_hostgroup 2, reader_hostgroup 3)"), "{log}");
    assert!(log.contains("servers_defaults of hostgroup 9: it is no JSON object"), "{log}");
    assert!(log.contains("mysql_users: attributes of 'u' (backend=1): it is no JSON object"), "{log}");
}

#[test]
fn a_load_of_the_same_is_nothing_to_traffic() {
    let server = start_server(&[]);
    let (proxy, mut admin) = start_proxy(server.port_of("sqliteserver").unwrap(), &[]);
    let mut client = client(&proxy);
    for _ in 0..3 {
        let answer: Option<i64> = client.query_first("SELECT 40 + 2").unwrap();
        assert_eq!(answer, Some(42));
        admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
    }
    let opened: Option<i64> = admin.query_first("SELECT ConnOK FROM stats_mysql_connection_pool").unwrap();
    assert_eq!(opened, Some(1));
}
