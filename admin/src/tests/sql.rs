use super::*;

#[test]
fn writes_report_affected_rows() {
    let f = fixture();
    assert_eq!(f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1,'a'),(1,'b')").0, 2);
    assert_eq!(f.ok("UPDATE mysql_servers SET weight=weight+7").0, 2);
    assert_eq!(f.ok("LOAD MYSQL SERVERS TO RUNTIME").0, 0);
    assert_eq!(f.ok("REPLACE INTO mysql_servers (hostgroup_id, hostname) VALUES (1,'a')").0, 1);
    assert_eq!(f.ok("INSERT OR REPLACE INTO mysql_users (username) VALUES (\"quoted\")").0, 1);
    assert_eq!(f.ok("DELETE FROM `mysql_servers` WHERE hostname='b'").0, 1);
    assert_eq!(f.ok("DELETE FROM mysql_servers WHERE hostname='b'").0, 0);
}

#[test]
fn the_tables_checks_hold() {
    let f = fixture();
    for sql in [
        "INSERT INTO mysql_servers (hostname, status) VALUES ('x', 'SHUNNED_AWS_BGD')",
        "INSERT INTO mysql_servers (hostname, weight) VALUES ('x', 10000001)",
        "INSERT INTO mysql_servers (hostname, port) VALUES ('x', 65536)",
        "INSERT INTO mysql_users (username, attributes) VALUES ('x', '{')",
        "INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (1, 1)",
        "INSERT INTO mysql_replication_hostgroups VALUES (1, 2, 'maybe', '')",
        "INSERT INTO mysql_aws_rds_bgd_hostgroups (writer_hostgroup, reader_hostgroup, green_writer_hostgroup, green_reader_hostgroup) VALUES (1, 2, NULL, 4)",
        "INSERT INTO mysql_aws_rds_bgd_hostgroups (writer_hostgroup, reader_hostgroup, green_writer_hostgroup, green_reader_hostgroup, check_timeout_ms) VALUES (1, 2, 3, 4, 79)",
    ] {
        let error = f.error(sql);
        assert_eq!((error.code, &error.state), (1045, b"28000"), "{sql}");
        assert!(error.message.starts_with("ProxySQL Admin Error: "), "{}", error.message);
        assert!(error.message.contains("constraint failed"), "{}", error.message);
    }
}

#[test]
fn parameters_without_a_value_are_refused() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostname) VALUES ('a')");
    for sql in ["select $$", "SELECT ?, :name", "DELETE FROM mysql_servers WHERE ? IS NULL"] {
        assert_eq!(f.error(sql).code, 1045, "{sql}");
    }
    assert_eq!(f.ok("DELETE FROM mysql_servers WHERE hostname <> '?'").0, 1);
}

#[test]
fn statements_that_reach_further_are_refused() {
    let f = fixture();
    let elsewhere = f.dir.path().join("elsewhere.db");
    let file = elsewhere.display();
    for sql in [
        "PRAGMA writable_schema=1".to_owned(),
        format!("ATTACH DATABASE '{file}' AS x"),
        format!("EXPLAIN ATTACH DATABASE '{file}' AS x"),
        "DETACH disk".to_owned(),
        format!("VACUUM INTO '{file}'"),
        "END".to_owned(),
        "SELECT * FROM pragma_journal_mode".to_owned(),
        "DROP TABLE mysql_servers".to_owned(),
        "CREATE TEMP TABLE mysql_servers (n INT)".to_owned(),
        "CREATE TEMP VIEW v AS SELECT 1".to_owned(),
        "DROP TABLE disk.MYSQL_USERS".to_owned(),
        "CREATE TABLE stats_mysql_connection_pool (n INT)".to_owned(),
        "CREATE VIEW mysql_server_read_only_log AS SELECT 1".to_owned(),
        "CREATE TRIGGER disk.t AFTER INSERT ON mysql_servers BEGIN DELETE FROM mysql_users; END".to_owned(),
        "CREATE UNIQUE INDEX i ON mysql_servers (hostname)".to_owned(),
        "ANALYZE".to_owned(),
        "ALTER TABLE global_variables ADD COLUMN x".to_owned(),
        "SELECT load_extension('x')".to_owned(),
    ] {
        f.error(&sql);
    }
    assert!(!elsewhere.exists());
    assert_eq!(f.error("pragma main.page_count").message, "ProxySQL Admin Error: Command not allowed");
    assert_eq!(f.error("DROP TABLE mysql_users").message, "ProxySQL Admin Error: Command not allowed");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
}

#[test]
fn odd_statements_are_errors_and_the_next_one_works() {
    let f = fixture();
    assert_eq!(f.error("").code, 1065);
    assert_eq!(f.error(" \n ").code, 1065);
    assert_eq!(f.ok("-- only a comment"), (0, String::new()));
    assert!(f.error("SELECT 1\0; DROP").message.contains("NUL"));
    assert_eq!(f.error("SELEC 1").message, "ProxySQL Admin Error: near \"SELEC\": syntax error");
    let deep = format!("SELECT {}1{}", "(1+".repeat(5_000), ")".repeat(5_000));
    assert!(f.error(&deep).message.contains("ProxySQL Admin Error"));
    f.error("SELECT zeroblob(100000000)");
    f.error(&format!("SELECT {}", "'".repeat(99_999)));
    for sql in
        ["SET", "SHOW", "SELECT", "LOAD", "SAVE", "PROXYSQL", "SELECT @@", "SELECT @@é", "SHOW TABLES LIKE"]
    {
        drop(f.admin.execute(sql));
    }
    assert_eq!(f.one("SELECT 1.5, 'ü', NULL, x'41'"), "1.5|ü|NULL|A");
}

#[test]
fn a_statement_is_interrupted_at_its_limit() {
    let f = fixture();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT MAX(i) FROM n";
    let stopped =
        f.admin.store.lock().client_statement(&Client::daemon(), endless, Duration::from_millis(20), true);
    assert!(stopped.unwrap_err().message.contains("interrupted"));
    assert_eq!(f.one("SELECT 2"), "2");
}

#[test]
fn a_result_is_bounded() {
    let f = fixture();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) \
                   SELECT replace(hex(zeroblob(500000)), '00', 'xxxxxxxx') FROM n";
    assert!(f.error(endless).message.contains("larger than 256 MiB"));
}

#[test]
fn results_that_are_still_read_count() {
    let f = fixture();
    let sql = "SELECT hex(zeroblob(1000000))";
    f.one(sql);
    f.admin.held.fetch_add(256 << 20, std::sync::atomic::Ordering::Relaxed);
    assert!(f.error(sql).message.contains("other clients are still reading"));
    f.one("SELECT 1");
}

#[test]
fn the_memory_layer_and_a_row_s_values_are_bounded() {
    let f = fixture();
    let endless = "INSERT INTO mysql_servers (hostgroup_id, hostname, comment) \
                   WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i, i, zeroblob(9000000) FROM n";
    assert!(f.error(endless).message.contains("full"));
    assert_eq!(f.one("SELECT COUNT(*) FROM mysql_servers"), "0");
    let wide = format!("SELECT {} 1", "zeroblob(60000000) || 'x', ".repeat(60));
    assert!(f.error(&wide).message.contains("memory"));
    assert_eq!(f.one("SELECT 2"), "2");
}
