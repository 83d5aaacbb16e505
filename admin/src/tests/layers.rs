use super::*;

#[test]
fn what_was_saved_to_disk_is_back_after_a_restart() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a')");
    f.ok("INSERT INTO mysql_users (username, password) VALUES ('u', 'p')");
    f.ok("INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (1, 2)");
    f.ok("INSERT INTO mysql_aws_rds_bgd_hostgroups (writer_hostgroup, reader_hostgroup, green_writer_hostgroup, green_reader_hostgroup) VALUES (1, 2, 3, 4)");
    f.ok("SET mysql-wait_timeout = 1234");
    f.ok("SAVE MYSQL SERVERS TO DISK");
    f.ok("SAVE MYSQL USERS FROM MEMORY");
    f.ok("SAVE MYSQL VARIABLES FROM MEM");
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'not saved')");
    f.ok("SET admin-mysql_ifaces='127.0.0.1:1'");
    let f = f.restart();
    assert_eq!(f.one("SELECT hostgroup_id, hostname, status FROM mysql_servers"), "1|a|ONLINE");
    assert_eq!(f.one("SELECT username, password FROM mysql_users"), "u|p");
    assert_eq!(f.one("SELECT check_type FROM mysql_replication_hostgroups"), "read_only");
    assert_eq!(f.one("SELECT check_interval_ms FROM mysql_aws_rds_bgd_hostgroups"), "1000");
    assert_eq!(f.one("SELECT @@mysql-wait_timeout, @@admin-mysql_ifaces"), "1234|0.0.0.0:6032");
}

#[test]
fn load_from_disk_discards_what_memory_holds() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username) VALUES ('gone')");
    f.ok("SET mysql-wait_timeout = 1");
    f.ok("SET admin-mysql_ifaces='127.0.0.1:1'");
    f.ok("LOAD MYSQL USERS FROM DISK");
    f.ok("LOAD MYSQL VARIABLES TO MEMORY");
    assert_eq!(f.one("SELECT COUNT(*) FROM mysql_users"), "0");
    assert_eq!(f.one("SELECT @@mysql-wait_timeout, @@admin-mysql_ifaces"), "28800000|127.0.0.1:1");
}

#[test]
fn a_save_that_fails_leaves_the_disk_as_it_was() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostname) VALUES ('kept')");
    f.ok("SAVE MYSQL SERVERS TO DISK");
    f.ok("DELETE FROM mysql_servers");
    f.ok("INSERT INTO mysql_servers (hostname) VALUES ('new')");
    f.ok("INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (1, 2)");
    let trigger = "CREATE TRIGGER disk.full BEFORE INSERT ON mysql_replication_hostgroups \
                   BEGIN SELECT RAISE(ABORT, 'no room'); END";
    f.admin.store.lock().conn.execute_batch(trigger).unwrap();
    assert!(f.error("SAVE MYSQL SERVERS TO DISK").message.contains("no room"));
    assert_eq!(f.one("SELECT hostname FROM disk.mysql_servers"), "kept");
}

#[test]
fn load_servers_publishes_typed_rows_in_one_set() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname, port, status, use_ssl, weight, comment) VALUES (7, ' a ', 3307, 'offline_soft', 1, 9, 'c')");
    f.ok("INSERT INTO mysql_replication_hostgroups VALUES (7, 8, 'SUPER_READ_ONLY', '')");
    f.ok("INSERT INTO mysql_aws_rds_bgd_hostgroups VALUES (7, 8, 9, 10, 1, 0, 100, 80, '')");
    assert_eq!(f.ok("LOAD MYSQL SERVERS TO RUNTIME"), (0, String::new()));
    let sets = f.daemon.servers();
    let [set] = sets.as_slice() else { panic!("{sets:?}") };
    let server = &set.servers[0];
    assert_eq!((server.hostgroup_id, server.hostname.as_str(), server.port), (7, "a", 3307));
    assert_eq!(server.status, rows::ConfiguredStatus::OfflineSoft);
    assert_eq!((server.use_ssl, server.weight, server.max_connections), (true, 9, 1000));
    assert_eq!(set.replication[0].check_type, "super_read_only");
    assert_eq!(set.bgd[0].green_reader_hostgroup, Some(10));
}

#[test]
fn attributes_and_tls_parameters_are_published_with_the_servers() {
    let f = fixture();
    f.ok("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, autocommit, servers_defaults) VALUES (3, 0, ' {\"weight\":5} '), (4, -1, '')");
    f.ok("INSERT INTO mysql_servers_ssl_params (hostname, ssl_ca) VALUES (' a ', '/ca.pem')");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    let sets = f.daemon.servers();
    let [set] = sets.as_slice() else { panic!("{sets:?}") };
    let third = rows::HostgroupAttributesRow {
        autocommit: Some(false),
        servers_defaults: " {\"weight\":5} ".into(),
        ..rows::HostgroupAttributesRow::new(3)
    };
    assert_eq!(set.hostgroup_attributes, [third, rows::HostgroupAttributesRow::new(4)]);
    let params =
        rows::ServerSslParamsRow { ssl_ca: "/ca.pem".into(), ..rows::ServerSslParamsRow::new("a", 3306) };
    assert_eq!(set.ssl_params, [params]);
    // Rows are shown as they would be written.
    let shown = set.hostgroup_attributes[1].values();
    let row = f.one("SELECT * FROM mysql_hostgroup_attributes WHERE hostgroup_id = 4");
    assert_eq!(shown.len(), row.split('|').count());
    assert_eq!(shown[2], Value::Int(-1));
}

#[test]
fn a_hash_made_with_unhex_is_text() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username, password, backend) VALUES ('u', UNHEX('68757368'), 0)");
    f.ok("LOAD MYSQL USERS TO RUNTIME");
    assert_eq!(f.one("SELECT username, password FROM runtime_mysql_users"), "u|hush");
}

#[test]
fn what_the_daemon_refuses_is_not_shown_as_runtime() {
    let f = fixture();
    f.ok("SET mysql-wait_timeout=77");
    *f.daemon.refuse.lock() = Some(SqlError::new(1105, "HY000", "not now"));
    assert_eq!(f.error("LOAD MYSQL VARIABLES TO RUNTIME").message, "not now");
    let shown =
        "SELECT variable_value FROM runtime_global_variables WHERE variable_name='mysql-wait_timeout'";
    assert_eq!(f.one(shown), "28800000");
    *f.daemon.refuse.lock() = None;
    f.ok("LOAD MYSQL VARIABLES TO RUN");
    assert_eq!(f.one(shown), "77");
    assert_eq!(f.daemon.variables().unwrap().wait_timeout, Duration::from_millis(77));
}

#[test]
fn load_variables_touches_its_own_only() {
    let f = fixture();
    f.ok("SET mysql-wait_timeout=1, sqliteserver-read_only=true");
    f.ok("LOAD SQLITESERVER VARIABLES TO RUNTIME");
    let loaded = f.daemon.variables().unwrap();
    assert_eq!(loaded.inert["sqliteserver-read_only"], "true");
    assert_eq!(loaded.wait_timeout, Variables::default().wait_timeout);
    f.ok("INSERT INTO global_variables VALUES ('mysql-unheard_of', '1')");
    assert_eq!(f.ok("LOAD MYSQL VARIABLES TO RUNTIME").1, "1 entry ignored, see the log");
    f.ok("INSERT INTO global_variables VALUES ('MYSQL-wait_timeout', '9')");
    assert_eq!(f.ok("LOAD MYSQL VARIABLES TO RUNTIME").1, "2 entries ignored, see the log");
    assert_eq!(f.daemon.variables().unwrap().wait_timeout, Duration::from_millis(1));
}

#[test]
fn variables_come_back_from_runtime() {
    let f = fixture();
    f.ok("SET mysql-wait_timeout=1");
    f.ok("DELETE FROM global_variables WHERE variable_name='mysql-interfaces'");
    f.ok("SAVE MYSQL VARIABLES FROM RUNTIME");
    assert_eq!(f.one("SELECT @@mysql-wait_timeout, @@mysql-interfaces"), "28800000|0.0.0.0:6033");
}

#[test]
fn servers_come_back_from_runtime_as_configuration() {
    let f = fixture();
    f.register_runtime(vec![], vec![deployment_row(10, false), deployment_row(20, true)]);
    let special = rows::ServerRow {
        status: rows::ConfiguredStatus::OfflineSoft,
        weight: 3,
        use_ssl: true,
        comment: "it's".into(),
        ..rows::ServerRow::new(10, "b", 3307)
    };
    let servers = vec![rows::ServerRow::new(10, "a", 3306), special];
    *f.daemon.saved.lock() = SavedServers { rows: servers.clone(), notes: vec!["one".into(), "two".into()] };
    f.ok("INSERT INTO mysql_servers (hostname) VALUES ('replaced')");
    assert_eq!(f.ok("SAVE MYSQL SERVERS FROM RUNTIME"), (0, "one; two".into()));
    let saved = f.rows("SELECT * FROM mysql_servers ORDER BY hostname");
    assert_eq!(saved, ["10|a|3306|0|ONLINE|1|0|1000|0|0|0|", "10|b|3307|0|OFFLINE_SOFT|3|0|1000|0|1|0|it's"]);
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    assert_eq!(f.daemon.servers()[0].servers, servers);
    assert_eq!(f.rows("SELECT writer_hostgroup FROM mysql_aws_rds_bgd_hostgroups"), ["10"]);
    // What cannot be configuration leaves memory as it was.
    f.daemon.saved.lock().rows = vec![servers[0].clone(), servers[0].clone()];
    assert!(f.error("SAVE MYSQL SERVERS TO MEM").message.contains("mysql_servers.hostname"));
    assert_eq!(f.one("SELECT COUNT(*) FROM mysql_servers"), "2");
}

#[test]
fn users_show_and_come_back_split_by_role() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username, password, default_hostgroup, default_schema) VALUES ('both', 'p', 3, '')");
    f.ok("INSERT INTO mysql_users (username, active) VALUES ('idle', 0)");
    f.ok("INSERT INTO mysql_users (username, backend) VALUES ('front', 0)");
    f.ok("LOAD MYSQL USERS TO RUNTIME");
    let users = f.daemon.users();
    assert_eq!(users.len(), 3);
    assert_eq!((users[0].username.as_str(), users[0].default_schema.as_deref()), ("both", None));
    let split = ["both|0|1", "both|1|0", "front|0|1"];
    let roles = "SELECT username, backend, frontend FROM runtime_mysql_users ORDER BY 1, 2";
    assert_eq!(f.rows(roles), split);
    f.ok("SAVE MYSQL USERS TO MEMORY");
    assert_eq!(
        f.rows("SELECT username, backend, frontend FROM mysql_users WHERE active=1 ORDER BY 1, 2"),
        split
    );
    assert_eq!(f.one("SELECT username FROM mysql_users WHERE active=0"), "idle");
}

#[test]
fn start_publishes_variables_last() {
    let f = fixture().restart();
    f.admin.load_all().unwrap();
    let sets = f.daemon.sets.lock();
    assert_eq!(sets.len(), 5);
    assert!(matches!(sets.last(), Some(ConfigSet::Variables(_))));
}

#[test]
fn load_needs_a_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let admin = open(dir.path());
    assert!(admin.execute("LOAD MYSQL USERS TO RUNTIME").unwrap_err().message.contains("starting"));
    assert!(admin.execute("PROXYSQL SHUTDOWN").is_err());
}

#[test]
fn peers_are_kept_in_every_layer() {
    let f = fixture();
    f.ok("INSERT INTO proxysql_servers (hostname, weight, comment) VALUES (' p1 ', 2, 'c')");
    f.ok("LOAD PROXYSQL SERVERS TO RUNTIME");
    assert_eq!(f.rows("SELECT * FROM runtime_proxysql_servers"), ["p1|6032|2|c"]);
    f.ok("SAVE PROXYSQL SERVERS TO DISK");
    let f = f.restart();
    assert_eq!(f.rows("SELECT * FROM proxysql_servers"), [" p1 |6032|2|c"]);
    f.admin.load_all().unwrap();
    f.ok("DELETE FROM proxysql_servers");
    f.ok("SAVE PROXYSQL SERVERS FROM RUNTIME");
    assert_eq!(f.rows("SELECT * FROM proxysql_servers"), ["p1|6032|2|c"]);
    f.ok("UPDATE proxysql_servers SET port = 'x'");
    let error = f.error("LOAD PROXYSQL SERVERS FROM MEM");
    assert_eq!(error.message, "proxysql_servers (hostname='p1', port='x').port: 'x' is not an integer");
}

#[test]
fn one_user_is_loaded_alone() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username, password) VALUES ('a', '1'), ('b b', '1'), ('it''s', '1')");
    f.ok("LOAD MYSQL USERS TO RUNTIME");
    f.ok("UPDATE mysql_users SET password = '2'");
    let loaded = || -> Vec<String> {
        f.daemon.users().iter().map(|user| format!("{} {}", user.username, user.password)).collect()
    };
    f.ok("LOAD MYSQL USER 'b b' TO RUNTIME");
    assert_eq!(loaded(), ["a 1", "b b 2", "it's 1"]);
    f.ok("load mysql user  'it''s'  from mem");
    assert_eq!(loaded(), ["a 1", "b b 2", "it's 2"]);
    // One that is gone from memory goes from runtime; the others may be wrong meanwhile.
    f.ok("DELETE FROM mysql_users WHERE username <> 'b b'");
    f.ok("UPDATE mysql_users SET max_connections = 'many'");
    f.ok("LOAD MYSQL USER a TO RUN");
    assert_eq!(loaded(), ["b b 2", "it's 2"]);
    assert_eq!(f.rows("SELECT DISTINCT username FROM runtime_mysql_users"), ["b b", "it's"]);
    assert!(f.error("LOAD MYSQL USER a FROM MEMORY").message.contains("no user 'a'"));
    assert!(f.error("LOAD MYSQL USER 'b b' TO RUNTIME").message.contains("max_connections"));
    for wrong in
        ["LOAD MYSQL USER", "LOAD MYSQL USER a", "LOAD MYSQL USER a TO DISK", "LOAD MYSQL USER 'a TO RUN"]
    {
        assert!(f.error(wrong).message.starts_with("ProxySQL Admin Error: "), "{wrong}");
    }
}

#[test]
fn collations_are_a_table() {
    let f = fixture();
    let sql = "SELECT Id, Collation, Charset, \"Default\" FROM mysql_collations WHERE Id IN (45, 46, 255) ORDER BY Id";
    assert_eq!(
        f.rows(sql),
        ["45|utf8mb4_general_ci|utf8mb4|", "46|utf8mb4_bin|utf8mb4|", "255|utf8mb4_0900_ai_ci|utf8mb4|Yes"]
    );
    assert_eq!(
        f.one("SELECT COUNT(*) FROM main.mysql_collations"),
        f.rows("SHOW COLLATION").len().to_string()
    );
}
