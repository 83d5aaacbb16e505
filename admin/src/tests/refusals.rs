//! What LOAD and SAVE refuse, and what they leave out and count.

use super::*;

#[test]
fn a_row_that_cannot_be_typed_refuses_the_whole_load() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'good')");
    let bad = [
        (
            "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ('ten', 'x')",
            "mysql_servers (hostgroup_id='ten', hostname='x', port=3306).hostgroup_id: 'ten'",
        ),
        (
            "INSERT INTO mysql_servers (hostname, port) VALUES ('x', 3306.5)",
            "mysql_servers (hostgroup_id=0, hostname='x', port=3306.5).port: 3306.5",
        ),
        (
            "INSERT INTO mysql_servers (hostname, max_connections) VALUES ('x', 9999999999)",
            "mysql_servers (hostgroup_id=0, hostname='x', port=3306).max_connections: 9999999999",
        ),
        (
            "INSERT INTO mysql_servers (hostname) VALUES (x'ff00')",
            "(hostgroup_id=0, hostname=a BLOB of 2 bytes, port=3306).hostname: a BLOB",
        ),
        (
            "INSERT INTO mysql_servers (hostname, comment) VALUES ('x', CAST(x'ff' AS TEXT))",
            "hostname='x', port=3306).comment",
        ),
    ];
    for (insert, said) in bad {
        f.ok(insert);
        let error = f.error("LOAD MYSQL SERVERS TO RUNTIME");
        assert_eq!((error.code, &error.state), (1366, b"HY000"));
        assert!(error.message.contains(said), "{}", error.message);
        f.ok("DELETE FROM mysql_servers WHERE hostname <> 'good'");
    }
    assert_eq!(f.daemon.servers(), []);
}

#[test]
fn what_cannot_be_loaded_is_not_saved_to_disk() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ('ten', 'x')");
    assert!(f.error("SAVE MYSQL SERVERS TO DISK").message.contains("port=3306).hostgroup_id: 'ten'"));
    f.ok("UPDATE global_variables SET variable_value='x' WHERE variable_name='mysql-wait_timeout'");
    assert!(f.error("SAVE MYSQL VARIABLES TO DISK").message.contains("mysql-wait_timeout"));
    f.restart().admin.load_all().unwrap();
}

#[test]
fn a_password_is_never_in_an_error() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username, password) VALUES ('u', x'68757368ff')");
    let error = f.error("LOAD MYSQL USERS TO RUNTIME");
    assert!(
        error.message.starts_with("mysql_users (username='u', backend=1).password: the value (not shown)"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("hush"));
}

#[test]
fn what_the_daemon_leaves_out_is_counted() {
    let f = fixture();
    *f.daemon.ignore.lock() = vec!["mysql_servers: one".into(), "mysql_servers: another".into()];
    let (_, info) = f.ok("LOAD MYSQL SERVERS FROM MEM");
    assert_eq!(info, "2 entries ignored, see the log");
}

#[test]
fn a_variable_out_of_range_refuses_the_load_by_name() {
    let f = fixture();
    f.ok(
        "UPDATE global_variables SET variable_value='12' WHERE variable_name='mysql-connect_timeout_client'",
    );
    f.ok("UPDATE global_variables SET variable_value='hush' WHERE variable_name='admin-admin_credentials'");
    let error = f.error("LOAD MYSQL VARIABLES TO RUNTIME");
    assert!(error.message.contains("mysql-connect_timeout_client") && error.message.contains("'12'"));
    assert!(error.message.contains("from 500 to 3600000"), "{}", error.message);
    let error = f.error("LOAD ADMIN VARIABLES TO RUNTIME");
    assert!(error.message.contains("admin-admin_credentials") && !error.message.contains("hush"));
    f.ok("LOAD SQLITESERVER VARIABLES TO RUNTIME");
}

#[test]
fn a_refused_row_is_told_by_table_key_and_column_without_secrets() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostname) VALUES ('  ')");
    assert_eq!(
        f.error("LOAD MYSQL SERVERS TO RUNTIME").message,
        "mysql_servers (hostgroup_id=0, hostname='  ', port=3306).hostname: '  ' is not a host name"
    );
    f.ok("DELETE FROM mysql_servers");
    for code in [0, 10, 27] {
        f.ok(&format!("INSERT INTO mysql_servers (hostname) VALUES ('db' || CHAR({code}) || 'x')"));
        let text = f.error("LOAD MYSQL SERVERS TO RUNTIME").message;
        assert!(text.ends_with("is not a host name"), "{text}");
        f.ok("DELETE FROM mysql_servers");
    }
    f.ok("UPDATE global_variables SET variable_value = 'x' WHERE variable_name = 'mysql-wait_timeout'");
    let text = f.error("LOAD MYSQL VARIABLES TO RUNTIME").message;
    assert!(text.starts_with("global_variables.variable_value: Variable 'mysql-wait_timeout'"), "{text}");
    f.ok("SET mysql-wait_timeout = 5000");
    f.ok("UPDATE global_variables SET variable_value = x'68757368' WHERE variable_name = 'mysql-monitor_password'");
    let text = f.error("SAVE MYSQL VARIABLES TO DISK").message;
    assert!(text.contains("mysql-monitor_password") && !text.contains("hush"), "{text}");
    assert!(f.daemon.sets.lock().is_empty());
}

#[test]
fn memory_takes_nothing_from_disk_that_would_not_load() {
    let f = fixture();
    for (sql, command, place) in [
        (
            "INSERT INTO disk.mysql_servers (hostname, max_connections) VALUES ('a', 'abc')",
            "LOAD MYSQL SERVERS FROM DISK",
            "mysql_servers (hostgroup_id=0, hostname='a', port=3306).max_connections: 'abc'",
        ),
        (
            "INSERT INTO disk.mysql_users (username, default_hostgroup) VALUES ('u', 'abc')",
            "LOAD MYSQL USERS TO MEMORY",
            "mysql_users (username='u', backend=1).default_hostgroup: 'abc'",
        ),
        (
            "INSERT INTO disk.mysql_query_rules (rule_id, timeout) VALUES (7, 'abc')",
            "LOAD MYSQL QUERY RULES FROM DISK",
            "mysql_query_rules (rule_id=7).timeout: 'abc'",
        ),
        (
            "INSERT INTO disk.proxysql_servers (hostname, port) VALUES ('a', 'abc')",
            "LOAD PROXYSQL SERVERS FROM DISK",
            "proxysql_servers (hostname='a', port='abc').port: 'abc'",
        ),
        (
            "INSERT INTO disk.global_variables VALUES ('mysql-wait_timeout', 'abc')",
            "LOAD MYSQL VARIABLES FROM DISK",
            "'mysql-wait_timeout' can't be set to 'abc'",
        ),
    ] {
        f.ok(sql);
        let message = f.error(command).message;
        assert!(message.contains(place), "{command}: {message}");
    }
    for table in ["mysql_servers", "mysql_users", "mysql_query_rules", "proxysql_servers"] {
        assert_eq!(f.one(&format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
    assert_eq!(f.one("SELECT @@mysql-wait_timeout"), "28800000");
}

#[test]
fn a_read_only_variable_that_was_changed_is_counted_and_stays_what_it_is() {
    let f = fixture();
    f.ok("UPDATE global_variables SET variable_value = '9.9' WHERE variable_name = 'admin-version'");
    assert_eq!(f.ok("LOAD ADMIN VARIABLES TO RUNTIME").1, "1 entry ignored, see the log");
    assert_eq!(f.ok("LOAD MYSQL VARIABLES TO RUNTIME").1, "");
    let version = "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'admin-version'";
    assert_eq!(f.one(version), VERSION);
    f.ok("SAVE ADMIN VARIABLES FROM RUNTIME");
    assert_eq!(f.ok("LOAD ADMIN VARIABLES TO RUNTIME").1, "");
}

#[test]
fn a_reader_of_statistics_who_is_an_administrator_too_is_counted() {
    let f = fixture();
    f.ok("SET admin-admin_credentials='admin:a;both:b', admin-stats_credentials='stats:s;both:c'");
    assert_eq!(f.ok("LOAD ADMIN VARIABLES TO RUNTIME").1, "1 entry ignored, see the log");
    assert_eq!(f.ok("LOAD MYSQL VARIABLES TO RUNTIME").1, "");
    f.ok("SET admin-stats_credentials='stats:s'");
    assert_eq!(f.ok("LOAD ADMIN VARIABLES TO RUNTIME").1, "");
}
