//! The blue/green simulator as monitors and tests see it.
#![cfg(feature = "test-rds-bgd")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{LOCAL, TestServer, error_of, value_of};
use mysql::Conn;
use mysql::prelude::Queryable;
use wire::service::Address;

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
    let (control, monitor) = (server.connect(LOCAL), server.connect(BLUE));
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
    set_control(&mut control, &server, LOCAL, true, 0, "");
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
    let (server, mut control, mut monitor) = fixture();
    control.query_drop("INSERT INTO READONLY_STATUS VALUES ('db-1', 3306, 0)").unwrap();
    set_control(&mut control, &server, BLUE, true, 1105, "it broke");
    add_row(&mut control, &server, BLUE, 1, "AVAILABLE");
    table_check(&mut monitor);
    control.query_drop("DELETE FROM RDS_BGD_PROBE_LOG").unwrap();
    let port = server.port();
    let server = TestServer::start_in(server.stop());
    let (mut control, mut monitor) = (server.connect(LOCAL), server.connect(BLUE));
    assert_eq!(value_of(&mut monitor, "SELECT @@global.read_only read_only db-1:3306"), "0");
    // The port is another one, so the rows are moved to it.
    for table in ["RDS_BGD_CONTROL", "RDS_BGD_TOPOLOGY"] {
        control
            .query_drop(format!(
                "UPDATE {table} SET backend_port={} WHERE backend_port={port}",
                server.port()
            ))
            .unwrap();
    }
    assert_error(&mut monitor, (1105, "HY000", "it broke"));
    set_control(&mut control, &server, BLUE, true, 0, "");
    assert_eq!(monitor.query::<TopologyRow, _>(METADATA).unwrap(), [expected_row(1, "AVAILABLE")]);
    assert_eq!(value_of(&mut control, "SELECT min(sequence_id) FROM RDS_BGD_PROBE_LOG"), "2", "ids go on");
    server.stop();
}

#[test]
fn the_tables_are_those_of_the_contract() {
    let server = TestServer::start();
    let mut control = server.connect(LOCAL);
    for (table, columns) in TABLES {
        let (name, ddl): (String, String) =
            control.query_first(format!("SHOW CREATE TABLE {table}")).unwrap().unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            (name.as_str(), words(&ddl)),
            (table, words(&format!("CREATE TABLE {table} ({columns})")))
        );
    }
    let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    let there = control.query::<String, _>("SHOW TABLES").unwrap();
    assert!(names.iter().all(|name| there.iter().any(|table| table == name)), "{there:?}");
    server.stop();
}

/// "SQLite3-Server Storage", word for word.
const TABLES: [(&str, &str); 3] = [
    (
        "RDS_BGD_CONTROL",
        " backend_ip TEXT NOT NULL, backend_port INTEGER NOT NULL,
        topology_present INTEGER NOT NULL DEFAULT 0 CHECK (topology_present IN (0,1)),
        error_code INTEGER NOT NULL DEFAULT 0, error_msg TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (backend_ip, backend_port) ",
    ),
    (
        "RDS_BGD_TOPOLOGY",
        " backend_ip TEXT NOT NULL, backend_port INTEGER NOT NULL, row_order INTEGER NOT NULL, id TEXT NOT NULL,
        endpoint TEXT NOT NULL, topology_port INTEGER NOT NULL, role TEXT NOT NULL, status TEXT NOT NULL,
        PRIMARY KEY (backend_ip, backend_port, row_order) ",
    ),
    (
        "RDS_BGD_PROBE_LOG",
        " sequence_id INTEGER PRIMARY KEY AUTOINCREMENT, backend_ip TEXT NOT NULL, backend_port INTEGER NOT NULL,
        probe_kind TEXT NOT NULL CHECK (probe_kind IN ('table_check','metadata')),
        encrypted INTEGER NOT NULL CHECK (encrypted IN (0,1)) ",
    ),
];

#[test]
fn rows_that_break_a_constraint_are_refused() {
    let server = TestServer::start();
    let mut control = server.connect(LOCAL);
    control.query_drop("INSERT INTO RDS_BGD_CONTROL (backend_ip, backend_port) VALUES ('a', 1)").unwrap();
    let defaults: (u8, u16, String) = control
        .query_first("SELECT topology_present, error_code, error_msg FROM RDS_BGD_CONTROL")
        .unwrap()
        .unwrap();
    assert_eq!(defaults, (0, 0, String::new()));
    control.query_drop("INSERT INTO RDS_BGD_TOPOLOGY VALUES ('a', 1, 0, '', '', 1, '', '')").unwrap();
    control.query_drop("INSERT INTO READONLY_STATUS VALUES ('a', 1, 0)").unwrap();
    for (table, values, why) in [
        ("RDS_BGD_CONTROL", "'a', 1, 0, 0, ''", "UNIQUE"),
        ("RDS_BGD_CONTROL", "'a', 2, 2, 0, ''", "CHECK"),
        ("RDS_BGD_CONTROL", "NULL, 2, 1, 0, ''", "NOT NULL"),
        ("RDS_BGD_CONTROL", "'a', 2, 1, 0, NULL", "NOT NULL"),
        ("RDS_BGD_TOPOLOGY", "'a', 1, 0, '', '', 1, '', ''", "UNIQUE"),
        ("RDS_BGD_TOPOLOGY", "'a', 1, 1, NULL, '', 1, '', ''", "NOT NULL"),
        ("RDS_BGD_TOPOLOGY", "'a', 1, 1, '', '', 1, '', NULL", "NOT NULL"),
        ("RDS_BGD_PROBE_LOG", "NULL, 'a', 1, 'other', 0", "CHECK"),
        ("RDS_BGD_PROBE_LOG", "NULL, 'a', 1, 'metadata', 2", "CHECK"),
        ("RDS_BGD_PROBE_LOG", "NULL, NULL, 1, 'metadata', 0", "NOT NULL"),
        ("READONLY_STATUS", "'a', 1, 1", "UNIQUE"),
        ("READONLY_STATUS", "'a', 2, 2", "CHECK"),
        ("READONLY_STATUS", "'a', NULL, 1", "NOT NULL"),
    ] {
        let error = error_of(&mut control, &format!("INSERT INTO {table} VALUES ({values})"));
        assert!(error.0 == 1045 && error.2.starts_with(why), "{table} ({values}): {error:?}");
    }
    server.stop();
}

#[test]
fn statements_that_are_no_probe_are_sqlite_s_and_not_logged() {
    let (server, mut control, mut monitor) = fixture();
    set_control(&mut control, &server, BLUE, true, 0, "");
    for near in [
        "SELECT * FROM mysql.rds_topology LIMIT 1",
        "/* db-1:3306 */ SELECT * FROM mysql.rds_topology",
        "SELECT * FROM `mysql`.`rds_topology`",
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME='rds_topology' AND TABLE_SCHEMA='mysql'",
    ] {
        let error = error_of(&mut monitor, near);
        assert!(error.0 == 1045 && error.2.starts_with("no such table"), "{near}: {error:?}");
    }
    for sql in [
        "SELECT * FROM RDS_BGD_TOPOLOGY",
        "SELECT * FROM RDS_BGD_CONTROL",
        "SELECT name FROM sqlite_master",
        "SELECT @@global.read_only read_only db-1:3306",
        "SELECT @@version_comment LIMIT 1",
        "UPDATE RDS_BGD_CONTROL SET error_code=0",
    ] {
        monitor.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(value_of(&mut control, "SELECT count(*) FROM RDS_BGD_PROBE_LOG"), "0");
    server.stop();
}

#[test]
fn ipv6_addresses_are_backends_as_well() {
    let (server, mut control, _) = fixture();
    let address: Address = format!("[::1]:{}", server.port()).parse().unwrap();
    server.listen_at(&address);
    set_control(&mut control, &server, "::1", true, 0, "");
    add_row(&mut control, &server, "::1", 1, "AVAILABLE");
    let mut monitor = server.connect("::1");
    assert_eq!(table_check(&mut monitor), [1]);
    assert_eq!(monitor.query::<TopologyRow, _>(METADATA).unwrap(), [expected_row(1, "AVAILABLE")]);
    let echo = value_of(&mut monitor, "SELECT @@version_comment LIMIT 1");
    assert_eq!(echo, "(ProxySQL Automated Test Server) - ::1");
    assert_eq!(value_of(&mut control, "SELECT DISTINCT backend_ip FROM RDS_BGD_PROBE_LOG"), "::1");
    server.stop();
}

#[test]
fn a_unix_socket_reaches_no_backend() {
    let (server, mut control, _) = fixture();
    let path = server.directory.path().join("sock");
    server.listen_at(&Address::Unix(path.clone()));
    // What an address made up for the socket would be.
    control.query_drop("INSERT INTO RDS_BGD_CONTROL VALUES ('127.0.0.1', 0, 1, 0, '')").unwrap();
    let mut client = server.connect_unix(&path);
    for sql in [CHECK, METADATA, "SELECT @@version_comment LIMIT 1"] {
        let (code, state, text) = error_of(&mut client, sql);
        assert_eq!((code, state.as_str()), (1105, "HY000"), "{sql}");
        assert!(text.contains("local address"), "{text}");
    }
    assert_eq!(value_of(&mut client, "SELECT count(*) FROM RDS_BGD_PROBE_LOG"), "0");
    assert_eq!(value_of(&mut client, "SELECT @@global.read_only read_only db-1:3306"), "1");
    server.stop();
}

#[test]
fn a_backend_is_its_address_and_its_port() {
    let (server, mut control, mut monitor) = fixture();
    let other = server.listen_at(&format!("{BLUE}:0").parse().unwrap()).tcp().unwrap().port();
    let (present, row) = ("topology_present", "'id', 'other port', 3306, 'role', 'status'");
    for sql in [
        format!(
            "INSERT INTO RDS_BGD_CONTROL (backend_ip, backend_port, {present}) VALUES ('{BLUE}', {other}, 1)"
        ),
        format!("INSERT INTO RDS_BGD_TOPOLOGY VALUES ('{BLUE}', {other}, 1, {row})"),
    ] {
        control.query_drop(sql).unwrap();
    }
    assert_error(&mut monitor, MISSING);
    set_control(&mut control, &server, BLUE, true, 0, "");
    assert_eq!(monitor.query::<TopologyRow, _>(METADATA).unwrap(), []);
    let mut monitor = Conn::new(server.options(BLUE).tcp_port(other)).unwrap();
    assert_eq!(monitor.query::<TopologyRow, _>(METADATA).unwrap()[0].1, "other port");
    server.stop();
}

#[test]
fn every_way_to_write_a_read_only_value_is_seen_at_once() {
    let (server, mut control, mut monitor) = fixture();
    let mut read_only = || value_of(&mut monitor, "SELECT @@global.read_only read_only db-1:3306");
    control.query_drop("CREATE TABLE switch (on_off)").unwrap();
    control
        .query_drop(
            "CREATE TRIGGER turn AFTER INSERT ON switch BEGIN
             REPLACE INTO READONLY_STATUS VALUES ('db-1', 3306, NEW.on_off); END",
        )
        .unwrap();
    for (sql, expected) in [
        ("insert or replace into \"readonly_status\" values ('db-1', 3306, 0)", "0"),
        ("INSERT INTO switch VALUES (1)", "1"),
        ("REPLACE INTO READONLY_STATUS VALUES ('db-1', 3306, 0) RETURNING read_only", "0"),
        ("SET autocommit=0", "0"),
        ("UPDATE READONLY_STATUS SET read_only=1", "0"),
        ("SET autocommit=1", "1"),
    ] {
        control.query_drop(sql).unwrap();
        assert_eq!(read_only(), expected, "{sql}");
    }
    control.query_drop("DROP TABLE READONLY_STATUS").unwrap();
    let error = error_of(&mut monitor, "SELECT @@global.read_only read_only db-1:3306");
    assert!(error.0 == 1105 && error.2.contains("no such table"), "{error:?}");
    server.stop();
}
