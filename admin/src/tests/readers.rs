//! Statements beside each other, and readers of statistics.

use super::*;
use crate::command::run_packet;
use crate::current::Role;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT i FROM begin_here UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n";

/// A table whose reading tells that a statement has begun.
fn begin_here(f: &Fixture) -> Receiver<()> {
    let (started, when_started) = sync_channel(8);
    let rows = Arc::new(move || {
        let _ = started.send(());
        vec![vec![Value::Int(1)]]
    });
    let ddl = "CREATE TABLE begin_here (i INT)";
    f.admin.register(LiveTable { name: "begin_here", schema: Schema::Main, ddl, rows }).unwrap();
    when_started
}

#[test]
fn a_long_read_holds_up_no_reader_and_gives_way_to_a_change() {
    let f = fixture();
    let when_started = begin_here(&f);
    thread::scope(|scope| {
        let endless = scope.spawn(|| f.admin.execute(ENDLESS));
        when_started.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(f.one("SELECT COUNT(*) FROM mysql_servers"), "0");
        assert!(f.rows("SHOW TABLES").contains(&"mysql_servers".to_owned()));
        f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a')");
        let error = endless.join().unwrap().unwrap_err();
        assert!(error.message.contains("a change waited"), "{}", error.message);
    });
    assert_eq!(f.one("SELECT hostname FROM mysql_servers"), "a");
}

#[test]
fn readers_see_what_was_changed_last() {
    let f = fixture();
    for number in 0..50 {
        f.ok(&format!("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ({number}, 'a')"));
        assert_eq!(f.one("SELECT MAX(hostgroup_id) FROM mysql_servers"), number.to_string());
    }
    f.ok("SAVE MYSQL SERVERS TO DISK");
    assert_eq!(f.one("SELECT COUNT(*) FROM disk.mysql_servers"), "50");
}

#[test]
fn a_statement_that_changes_is_told_by_more_than_its_first_word() {
    let f = fixture();
    f.ok("WITH x(h) AS (SELECT 'a') INSERT INTO mysql_servers (hostgroup_id, hostname) SELECT 1, h FROM x");
    assert_eq!(f.rows("UPDATE mysql_servers SET weight = 3 RETURNING weight"), ["3"]);
    assert_eq!(f.one("SELECT weight FROM mysql_servers"), "3");
}

#[test]
fn many_readers_and_changes_go_together() {
    let f = fixture();
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                for _ in 0..20 {
                    f.rows("SELECT * FROM mysql_servers");
                }
            });
        }
        for number in 0..20 {
            f.ok(&format!("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ({number}, 'a')"));
        }
    });
    assert_eq!(f.one("SELECT COUNT(*) FROM mysql_servers"), "20");
}

fn stats(f: &Fixture, sql: &str) -> Result<Vec<String>, SqlError> {
    let client = Client { role: Role::Stats, user: "stats".into(), socket: None };
    let outcome = run_packet(&f.admin, &client, sql, true);
    match outcome.error {
        Some(error) => Err(error),
        None => Ok(outcome
            .answers
            .into_iter()
            .flat_map(|answer| match answer {
                Answer::Ok { .. } => vec![],
                Answer::Rows { rows, .. } => rows.iter().map(|row| line(row)).collect(),
            })
            .collect()),
    }
}

fn register_statistics(f: &Fixture) {
    let users = || vec![vec![Value::Text("app".into()), Value::Int(1), Value::Int(10)]];
    let tables = [
        LiveTable {
            name: "stats_mysql_users",
            schema: Schema::Stats,
            ddl: ddl::STATS_MYSQL_USERS,
            rows: Arc::new(users),
        },
        LiveTable {
            name: "mysql_server_read_only_log",
            schema: Schema::Monitor,
            ddl: ddl::MYSQL_SERVER_READ_ONLY_LOG,
            rows: Arc::new(Vec::new),
        },
    ];
    tables.into_iter().for_each(|table| f.admin.register(table).unwrap());
}

#[test]
fn readers_of_statistics_see_statistics_alone() {
    let f = fixture();
    register_statistics(&f);
    for table in ["stats_mysql_users", "main.stats_mysql_users", "stats.stats_mysql_users"] {
        assert_eq!(stats(&f, &format!("SELECT * FROM {table}")).unwrap(), ["app|1|10"], "{table}");
    }
    assert_eq!(stats(&f, "SELECT COUNT(*) FROM monitor.mysql_server_read_only_log").unwrap(), ["0"]);
    assert_eq!(stats(&f, "SHOW TABLES").unwrap(), ["stats_mysql_users"]);
    assert_eq!(stats(&f, "SHOW TABLES FROM monitor").unwrap(), ["mysql_server_read_only_log"]);
    let databases = stats(&f, "SHOW DATABASES").unwrap();
    let names: Vec<_> = databases.iter().filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(names, ["main", "stats", "monitor", "stats_history"]);
    assert_eq!(stats(&f, "SELECT DATABASE(), USER()").unwrap(), ["stats|stats"]);
    assert!(stats(&f, "SHOW CREATE TABLE stats_mysql_users").unwrap()[0].contains("frontend_connections"));
    assert_eq!(stats(&f, "SHOW FIELDS FROM stats_mysql_users").unwrap().len(), 3);
    for table in [
        "mysql_servers",
        "main.mysql_users",
        "disk.mysql_users",
        "global_variables",
        "runtime_mysql_users",
        "runtime_global_variables",
        "information_schema.tables",
    ] {
        let error = stats(&f, &format!("SELECT * FROM {table}")).unwrap_err();
        assert!(error.message.contains("no such table"), "{table}: {}", error.message);
        assert!(stats(&f, &format!("SHOW CREATE TABLE {table}")).is_err(), "{table}");
    }
}

#[test]
fn readers_of_statistics_change_and_command_nothing() {
    let f = fixture();
    register_statistics(&f);
    for sql in [
        "LOAD MYSQL USERS TO RUNTIME",
        "SAVE MYSQL USERS TO DISK",
        "PROXYSQL SHUTDOWN",
        "PROXYSQL READONLY",
        "TRUNCATE stats_mysql_query_digest",
        "KILL CONNECTION 1",
        "PULL VERSION MYSQL SERVERS",
    ] {
        let error = stats(&f, sql).unwrap_err();
        assert!(error.message.contains("syntax error"), "{sql}: {}", error.message);
    }
    for sql in [
        "SET mysql-max_connections=1",
        "SET admin-unheard_of=1",
        "SELECT @@mysql-max_connections",
        "SELECT @@admin-admin_credentials",
        "SHOW MYSQL USERS",
        "INSERT INTO stats_mysql_users VALUES ('x', 1, 1)",
        "DELETE FROM stats.stats_mysql_users",
        "CREATE TABLE t (i INT)",
        "CREATE TEMP TABLE t (i INT)",
        "DROP TABLE stats_mysql_users",
        "PRAGMA query_only = 0",
        "ATTACH 'x' AS y",
        "SELECT 1; DELETE FROM stats_mysql_users",
    ] {
        assert!(stats(&f, sql).is_err(), "{sql}");
    }
    assert!(f.daemon.commands.lock().is_empty() && f.daemon.sets.lock().is_empty());
    for sql in
        ["SET NAMES utf8mb4", "BEGIN", "USE stats", "SHOW VARIABLES", "SELECT @@version_comment, @@sql_mode"]
    {
        stats(&f, sql).unwrap();
    }
    assert_eq!(stats(&f, "SHOW VARIABLES LIKE 'admin%'").unwrap(), Vec::<String>::new());
}

#[test]
fn what_drivers_set_when_they_connect_waits_for_nobody_and_interrupts_nobody() {
    let f = fixture();
    // While it is held, whoever wants to change something waits.
    let _changing = f.admin.store.lock();
    for text in
        ["SET NAMES utf8mb4", "SET AUTOCOMMIT = 1, SESSION sql_mode = ''", "SET mysql-nothing_like_it = 1"]
    {
        f.ok(text);
    }
}
