//! A MySQL client at work on the SQLite server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{LOCAL, TestServer, error_of, value_of};
use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn, Row, Value};
use std::time::{Duration, Instant};

#[test]
fn only_the_right_password_logs_in() {
    let server = TestServer::start();
    match Conn::new(server.options(LOCAL).pass(Some("wrong"))) {
        Err(mysql::Error::MySqlError(error)) => {
            assert_eq!((error.code, error.state.as_str()), (1045, "28000"))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(value_of(&mut server.connect(LOCAL), "SELECT 1"), "1");
    assert_eq!(value_of(&mut server.connect_tls(LOCAL), "SELECT 1"), "1");
    server.stop();
}

#[test]
fn a_change_of_user_begins_a_new_session() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    client.query_drop("CREATE TABLE t (i)").unwrap();
    client.query_drop("SET autocommit = 0").unwrap();
    client.query_drop("INSERT INTO t VALUES (1)").unwrap();
    let other = ChangeUserOpts::new().with_user(Some("other".into())).with_pass(Some("other".into()));
    client.change_user(other).unwrap();
    assert!(value_of(&mut client, "SELECT USER()").starts_with("other"));
    assert_eq!(value_of(&mut client, "SELECT COUNT(*) FROM t"), "0", "it was not committed");
    assert_eq!(value_of(&mut client, "SELECT @@autocommit"), "1");
    let wrong = ChangeUserOpts::new().with_user(Some("other".into())).with_pass(Some("wrong".into()));
    match client.change_user(wrong) {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1045),
        other => panic!("{other:?}"),
    }
    client.query_drop("SELECT 1").unwrap_err();
    server.stop();
}

#[test]
fn what_drivers_send_first_is_answered() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    for sql in [
        "SET NAMES utf8mb4",
        "SET SESSION wait_timeout=10",
        "SET wait_timeout=10",
        "SET SQL_AUTO_IS_NULL = 0",
        "/*!40101 SET character_set_client = utf8 */",
        "COMMIT",
        "ROLLBACK;",
    ] {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(value_of(&mut client, "SELECT DATABASE()"), "main");
    assert_eq!(value_of(&mut client, "select version()"), "8.0.0-test");
    assert_eq!(value_of(&mut client, "SELECT CONNECTION_ID()"), client.connection_id().to_string());
    assert_eq!(value_of(&mut client, "SELECT @@character_set_results LIMIT 1"), "utf8");
    assert_eq!(value_of(&mut client, "SELECT @@collation_server"), "utf8_general_ci");
    let both: Option<(String, String)> = client.query_first("select DATABASE(), USER() limit 1").unwrap();
    assert_eq!(both, Some(("main".into(), "testuser@%".into())));
    assert_eq!(value_of(&mut client, "SHOW DATABASES"), "main");
    assert_eq!(value_of(&mut client, "SHOW SCHEMAS LIKE 'm%'"), "main");
    assert_eq!(value_of(&mut client, "/* driver */ SELECT @@max_allowed_packet"), "67108864");
    assert!(value_of(&mut client, "SELECT  @@VERSION_COMMENT   LIMIT 1;").starts_with("(ProxySQL "));
    client.ping().unwrap();
    server.stop();
}

#[cfg(not(feature = "test-rds-bgd"))]
#[test]
fn production_has_no_simulator() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    assert_eq!(sqlite_server::DEFAULT_INTERFACES, "127.0.0.1:6030");
    assert_eq!(value_of(&mut client, "select @@version_comment limit 1"), "(ProxySQL SQLite3 Server)");
    assert_eq!(client.query::<String, _>("SHOW TABLES").unwrap(), Vec::<String>::new());
    assert_eq!(error_of(&mut client, "SELECT * FROM mysql.rds_topology").0, 1045);
    server.stop();
}

#[test]
fn values_keep_their_types() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    client.query_drop("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9), r REAL, b BLOB, d)").unwrap();
    client
        .query_drop("INSERT INTO t VALUES (7, 'seven', 2.0, x'00ff', NULL), (8, NULL, NULL, NULL, 1.5)")
        .unwrap();
    assert_eq!((client.affected_rows(), client.last_insert_id()), (2, 8));
    client.query_drop("CREATE INDEX i ON t (name)").unwrap();
    assert_eq!((client.affected_rows(), client.last_insert_id()), (0, 0));

    let rows: Vec<Row> = client.query("SELECT * FROM t ORDER BY id FOR UPDATE").unwrap();
    let kinds: Vec<ColumnType> = rows[0].columns_ref().iter().map(|column| column.column_type()).collect();
    assert_eq!(
        kinds,
        [
            ColumnType::MYSQL_TYPE_LONGLONG,
            ColumnType::MYSQL_TYPE_VAR_STRING,
            ColumnType::MYSQL_TYPE_DOUBLE,
            ColumnType::MYSQL_TYPE_BLOB,
            ColumnType::MYSQL_TYPE_VAR_STRING,
        ]
    );
    let bytes = |value: &[u8]| Value::Bytes(value.to_vec());
    let values: Vec<Vec<Value>> = rows.into_iter().map(Row::unwrap).collect();
    assert_eq!(values[0], [bytes(b"7"), bytes(b"seven"), bytes(b"2.0"), bytes(&[0, 0xff]), Value::NULL]);
    assert_eq!(values[1], [bytes(b"8"), Value::NULL, Value::NULL, Value::NULL, bytes(b"1.5")]);

    for (pattern, tables) in [("t", vec!["t"]), ("_", vec!["t"]), ("\\_", vec![])] {
        assert_eq!(client.query::<String, _>(format!("SHOW TABLES LIKE '{pattern}'")).unwrap(), tables);
    }
    let (name, ddl): (String, String) = client.query_first("SHOW CREATE TABLE t").unwrap().unwrap();
    assert_eq!(name, "t");
    assert!(ddl.starts_with("CREATE TABLE t ("), "{ddl}");
    server.stop();
}

#[test]
fn errors_leave_the_session_usable() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    for (sql, code, state, message) in [
        ("PRAGMA journal_mode", 1045, "28000", "Command not allowed"),
        ("ATTACH 'x' AS x", 1045, "28000", "Command not allowed"),
        ("SELECT * FROM missing", 1045, "28000", "no such table: missing"),
        ("SELECT 1; SELECT 2", 1045, "28000", "Multiple statements provided"),
        ("SELECT @@no_such", 1193, "HY000", "Unknown system variable 'no_such'"),
        (";", 1065, "42000", "Query was empty"),
    ] {
        let error = error_of(&mut client, sql);
        assert_eq!((error.0, error.1.as_str(), error.2.as_str()), (code, state, message), "{sql}");
    }
    assert_eq!(error_of(&mut client, "SELECT ?").0, 1045);
    assert_eq!(error_of(&mut client, "SHOW VARIABLES").0, 1045);
    let late = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
        SELECT CASE WHEN i = 9 THEN abs(-9223372036854775807 - 1) ELSE i END FROM n";
    assert_eq!(error_of(&mut client, late).2, "integer overflow");
    assert_eq!(value_of(&mut client, "SELECT 1"), "1");
    server.stop();
}

#[test]
fn transactions_are_seen_when_committed_and_undone_when_the_client_leaves() {
    let server = TestServer::start();
    let (mut one, mut two) = (server.connect(LOCAL), server.connect(LOCAL));
    let mut count = |expected: &str| assert_eq!(value_of(&mut two, "SELECT count(*) FROM t"), expected);
    one.query_drop("CREATE TABLE t (i)").unwrap();
    one.query_drop("START TRANSACTION").unwrap();
    one.query_drop("INSERT INTO t VALUES (1)").unwrap();
    count("0");
    one.query_drop("COMMIT").unwrap();
    count("1");
    one.query_drop("BEGIN").unwrap();
    one.query_drop("DELETE FROM t").unwrap();
    one.query_drop("BEGIN").unwrap();
    count("0");
    one.query_drop("ROLLBACK").unwrap();
    one.query_drop("SET autocommit=0").unwrap();
    assert_eq!(value_of(&mut one, "SELECT @@autocommit"), "0");
    one.query_drop("INSERT INTO t VALUES (2)").unwrap();
    count("0");
    one.query_drop("SET autocommit=1").unwrap();
    count("1");
    one.query_drop("BEGIN").unwrap();
    one.query_drop("INSERT INTO t VALUES (3)").unwrap();
    drop(one);
    // Waits for the lock that the one who left still holds, if it does.
    two.query_drop("DELETE FROM t WHERE i = 3").unwrap();
    assert_eq!(two.affected_rows(), 0);
    server.stop();
}

#[test]
fn a_writer_waits_for_another() {
    let server = TestServer::start();
    let (mut one, mut two) = (server.connect(LOCAL), server.connect(LOCAL));
    one.query_drop("CREATE TABLE t (who)").unwrap();
    one.query_drop("BEGIN").unwrap();
    let waiter = std::thread::spawn(move || two.query_drop("INSERT INTO t VALUES ('two')").unwrap());
    std::thread::sleep(Duration::from_millis(300));
    one.query_drop("INSERT INTO t VALUES ('one')").unwrap();
    one.query_drop("COMMIT").unwrap();
    waiter.join().unwrap();
    assert_eq!(one.query::<String, _>("SELECT who FROM t ORDER BY rowid").unwrap(), ["one", "two"]);
    server.stop();
}

#[test]
fn large_statements_and_results_pass() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    let numbers =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n";
    let sum = client.query_fold(numbers, 0_u64, |sum, i: u64| sum + i).unwrap();
    assert_eq!(sum, 100_000 * 100_001 / 2);
    client.query_drop("CREATE TABLE t (v)").unwrap();
    let values: Vec<String> = (0..20_000).map(|i| format!("({i})")).collect();
    client.query_drop(format!("INSERT INTO t VALUES {}", values.join(","))).unwrap();
    assert_eq!(client.affected_rows(), 20_000);
    let text = "x".repeat(1 << 20);
    assert_eq!(value_of(&mut client, &format!("SELECT '{text}'")), text);
    server.stop();
}

#[test]
fn stopping_interrupts_a_statement_that_outlasts_the_grace() {
    let server = TestServer::start();
    let mut client = server.connect(LOCAL);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let running = std::thread::spawn(move || client.query_drop(endless).is_err());
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(30), "it waited for the statement's own limit");
    assert!(running.join().unwrap());
}
