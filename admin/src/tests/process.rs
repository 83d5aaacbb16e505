//! Commands that concern the process, and read-only mode.

use super::*;

#[test]
fn process_commands_reach_the_daemon() {
    use ProcessCommand::*;
    let f = fixture();
    for (sql, command) in [
        ("PROXYSQL PAUSE", Pause),
        ("proxysql resume;", Resume),
        ("PROXYSQL  STOP", Stop),
        ("PROXYSQL START", Start),
        ("PROXYSQL RESTART", Restart),
        ("PROXYSQL KILL", Kill),
        ("PROXYSQL RELOAD TLS", ReloadTls),
        ("PROXYSQL FLUSH MYSQL CLIENT HOSTS", FlushClientHosts),
        ("PROXYSQL SHUTDOWN SLOW", ShutdownSlow),
        ("KILL CONNECTION 7", KillConnection(7)),
        ("KILL QUERY 7", KillQuery(7)),
    ] {
        f.ok(sql);
        assert_eq!(f.daemon.commands.lock().pop(), Some(command), "{sql}");
    }
    for sql in ["PROXYSQL", "PROXYSQL DANCE", "PROXYSQL PAUSE NOW", "KILL x"] {
        f.error(sql);
    }
    assert!(f.daemon.commands.lock().is_empty());
}

#[test]
fn digests_are_saved_by_the_daemon() {
    let f = fixture();
    assert_eq!(f.ok("save mysql  digest TO DISK;"), (7, String::new()));
    *f.daemon.refuse.lock() = Some(failed("no room"));
    assert_eq!(f.error("SAVE MYSQL DIGEST TO DISK").message, "ProxySQL Admin Error: no room");
    f.error("SAVE MYSQL DIGEST TO MEMORY");
}

#[test]
fn metrics_are_one_text() {
    let f = fixture();
    match f.admin.execute("SHOW prometheus METRICS") {
        Ok(Answer::Rows { columns, rows, .. }) => {
            assert_eq!(columns, ["Data"]);
            assert_eq!(rows, [[Some("# TYPE a_total counter\na_total 1\n".to_owned())]]);
        }
        other => panic!("{other:?}"),
    }
    f.error("SHOW PROMETHEUS METRICS LIKE 'a'");
}

#[test]
fn a_restart_that_would_fail_is_refused_before_anything_ends() {
    let f = fixture();
    for (insert, said) in [
        (
            "INSERT INTO disk.mysql_servers (hostname, max_connections) VALUES ('a', 'many')",
            "pointsman.db: mysql_servers (hostgroup_id=0, hostname='a', port=3306).max_connections: 'many'",
        ),
        (
            "INSERT INTO disk.mysql_users (username, password) VALUES ('u', x'68757368ff')",
            "(username='u', backend=1)",
        ),
    ] {
        f.ok(insert);
        let text = f.error("PROXYSQL RESTART").message;
        assert!(text.contains("not restarted") && text.contains(said) && !text.contains("hush"), "{text}");
        for table in ["mysql_servers", "mysql_users"] {
            f.ok(&format!("DELETE FROM disk.{table}"));
        }
    }
    let path = f.dir.path().join("pointsman.db");
    std::fs::rename(&path, f.dir.path().join("away.db")).unwrap();
    std::fs::write(&path, "this is no database, however long one looks at it. ".repeat(40)).unwrap();
    assert!(f.error("PROXYSQL RESTART").message.contains("not a pointsman database"));
    assert!(f.daemon.commands.lock().is_empty());
    // A file that is put in the place of the one before counts, and none is a start without.
    std::fs::remove_file(&path).unwrap();
    f.ok("PROXYSQL RESTART");
    std::fs::rename(f.dir.path().join("away.db"), &path).unwrap();
    f.ok("PROXYSQL RESTART");
    assert_eq!(*f.daemon.commands.lock(), [ProcessCommand::Restart; 2]);
}

#[test]
fn a_restart_has_the_overrides_of_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = [("mysql-wait_timeout".to_owned(), "1000".to_owned())];
    let admin = Admin::open(dir.path(), Variables::default(), &overrides, &Start::default()).unwrap();
    let f = Fixture { admin, daemon: Arc::default(), dir };
    f.admin.attach(f.daemon.clone());
    f.ok("INSERT INTO disk.global_variables VALUES ('mysql-wait_timeout', 'soon')");
    f.ok("PROXYSQL RESTART");
}

#[test]
fn what_is_not_kept_is_flushed_at_once() {
    let f = fixture();
    for what in ["LOGS", "QUERY CACHE", "MYSQL QUERY CACHE"] {
        assert_eq!(f.ok(&format!("PROXYSQL FLUSH {what}")), (0, String::new()));
    }
    f.error("PROXYSQL FLUSH EVERYTHING");
}

#[test]
fn flush_configdb_uses_the_file_that_is_there_now() {
    let f = fixture();
    f.ok("INSERT INTO mysql_users (username, password) VALUES ('here', 'x')");
    f.ok("SAVE MYSQL USERS TO DISK");
    assert_eq!(f.one("SELECT COUNT(*) FROM disk.mysql_users"), "1");
    let path = f.dir.path().join("pointsman.db");
    std::fs::rename(&path, f.dir.path().join("away.db")).unwrap();
    assert!(f.error("SAVE MYSQL USERS TO DISK").message.contains("pointsman.db"));
    f.ok("PROXYSQL FLUSH CONFIGDB");
    assert_eq!(f.one("SELECT COUNT(*) FROM disk.mysql_users"), "0");
    f.ok("SAVE MYSQL USERS TO DISK");
    assert_eq!(f.one("SELECT COUNT(*) FROM disk.mysql_users"), "1");

    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "this is no database, however long one looks at it. ".repeat(40)).unwrap();
    assert!(f.error("PROXYSQL FLUSH CONFIGDB").message.contains("not a pointsman database"));
    assert!(f.error("SELECT COUNT(*) FROM disk.mysql_users").message.contains("replaced"));

    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(f.error("PROXYSQL FLUSH CONFIGDB").message.contains("pointsman.db: not a file"));

    for (made, why) in [
        ("CREATE TABLE orders (id INT)", "it has a table orders"),
        ("CREATE TABLE mysql_users (username, password, shoe_size)", "shoe_size"),
    ] {
        std::fs::remove_file(&path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(made).unwrap();
        let before = std::fs::read(&path).unwrap();
        let text = f.error("PROXYSQL FLUSH CONFIGDB").message;
        assert!(text.contains(why), "{text}");
        let text = f.error("SAVE MYSQL USERS TO DISK").message;
        assert!(text.contains("PROXYSQL FLUSH CONFIGDB uses"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "another's file stays as it is");
    }
}

#[test]
fn read_only_mode_refuses_changes_until_readwrite() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a')");
    assert_eq!(f.one("SELECT @@global.read_only"), "0");
    f.ok("PROXYSQL READONLY");
    assert!(f.daemon.variables().unwrap().admin_read_only);
    for sql in [
        "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'b')",
        "DELETE FROM mysql_servers",
        "WITH x AS (SELECT 1) UPDATE mysql_servers SET weight = 2",
        "SET mysql-max_connections=5",
        "SET admin-read_only='false'",
        "SAVE MYSQL SERVERS TO DISK",
        "LOAD MYSQL SERVERS FROM DISK",
        "SELECT 1; DELETE FROM mysql_servers",
    ] {
        let error = f.error(sql);
        assert!(error.message.contains("PROXYSQL READWRITE"), "{sql}: {}", error.message);
    }
    assert_eq!(f.one("SELECT hostname, weight FROM mysql_servers"), "a|1");
    assert_eq!(f.rows("SHOW GLOBAL VARIABLES LIKE 'read_only'"), ["read_only|ON"]);
    assert_eq!(f.one("SELECT @@read_only, @@admin-read_only"), "1|false");
    assert_eq!(
        f.one("SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'admin-read_only'"),
        "true"
    );
    f.ok("SET NAMES utf8mb4");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    f.ok("LOAD ADMIN VARIABLES TO RUNTIME");
    assert!(f.error("DELETE FROM mysql_servers").message.contains("PROXYSQL READWRITE"));
    f.ok("PROXYSQL READWRITE");
    f.ok("DELETE FROM mysql_servers");
    assert_eq!(f.rows("SHOW VARIABLES WHERE Variable_name = 'read_only'"), ["read_only|OFF"]);
}

#[test]
fn read_only_is_a_variable_too() {
    let f = fixture();
    f.ok("SET admin-read_only='true'");
    f.ok("DELETE FROM mysql_servers");
    f.ok("LOAD ADMIN VARIABLES TO RUNTIME");
    f.error("DELETE FROM mysql_servers");
}

#[test]
fn servers_have_a_version() {
    let f = fixture();
    assert_eq!(f.one("PULL VERSION MYSQL SERVERS"), "0");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    assert_eq!(f.one("PULL VERSION MYSQL SERVERS;"), "1");
}

#[test]
fn statistics_that_can_be_reset_are_truncated() {
    let f = fixture();
    let resets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&resets);
    let count = move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Vec::new()
    };
    type Rows = Arc<dyn Fn() -> Vec<Vec<Value>> + Send + Sync>;
    let tables: [(_, _, Rows); 3] = [
        ("stats_mysql_query_digest", ddl::STATS_MYSQL_QUERY_DIGEST, Arc::new(Vec::new)),
        ("stats_mysql_query_digest_reset", ddl::STATS_MYSQL_QUERY_DIGEST_RESET, Arc::new(count)),
        ("stats_mysql_users", ddl::STATS_MYSQL_USERS, Arc::new(Vec::new)),
    ];
    for (name, ddl, rows) in tables {
        let table = LiveTable { name, schema: Schema::Stats, ddl, rows };
        f.admin.register(table).unwrap();
    }
    for sql in [
        "TRUNCATE stats_mysql_query_digest",
        "truncate table stats.stats_mysql_query_digest;",
        "TRUNCATE `stats`.`stats_mysql_query_digest_reset`",
    ] {
        f.ok(sql);
    }
    assert_eq!(resets.load(std::sync::atomic::Ordering::Relaxed), 3);
    for sql in
        ["TRUNCATE mysql_query_rules", "TRUNCATE stats_mysql_users", "TRUNCATE main.stats_mysql_query_digest"]
    {
        f.error(sql);
    }
}
