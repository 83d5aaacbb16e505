//! Query rules, fast routing and digests through the real program: two hostgroups, each an SQLite3 server of its own.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use pair::{PATIENCE, connect, program};
use std::time::{Duration, Instant};
use support::Daemon;

const WRITER: &str = "writer";
const READER: &str = "reader";

/// Hostgroup 0 is the proxy's own SQLite3 server, hostgroup 1 that of another daemon. Both have table `who` that says which.
struct World {
    proxy: Daemon,
    _reader: Daemon,
}

impl World {
    fn new() -> Self {
        let (proxy, reader) = (server(WRITER), server(READER));
        let world = Self { proxy, _reader: reader };
        let servers = [&world.proxy, &world._reader].map(|daemon| daemon.port_of("sqliteserver").unwrap());
        for (hostgroup, port) in servers.into_iter().enumerate() {
            world.admin(&format!(
                "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES ({hostgroup}, '127.0.0.1', {port})"
            ));
        }
        world.admin("LOAD MYSQL SERVERS TO RUNTIME");
        world
    }
    fn client(&self) -> Conn {
        connect(self.proxy.traffic_port, "testuser", "testuser")
    }
    /// Runs a statement on the admin port; returns the OK's info.
    fn admin(&self, sql: &str) -> String {
        let mut admin = connect(self.proxy.admin_port, "admin", "admin");
        admin.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        admin.info_str().into_owned()
    }
    /// Rows of a query on the admin port, their columns joined by `|`.
    fn rows(&self, sql: &str) -> Vec<String> {
        let mut admin = connect(self.proxy.admin_port, "admin", "admin");
        let line = |row: Row| {
            let cells: Vec<Option<String>> =
                (0..row.len()).map(|column| row.get::<Option<String>, _>(column).unwrap()).collect();
            cells.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join("|")
        };
        admin.query_map(sql, line).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
    /// Adds rules, `columns` and their values, and puts them in force.
    fn rules(&self, columns: &str, rows: &[&str]) {
        for row in rows {
            self.admin(&format!("INSERT INTO mysql_query_rules (active, {columns}) VALUES (1, {row})"));
        }
        assert_eq!(self.admin("LOAD MYSQL QUERY RULES TO RUNTIME"), "");
    }
}

/// A daemon whose SQLite3 server knows its name.
fn server(name: &str) -> Daemon {
    let daemon = Daemon::start(program(), &["--sqlite3-server"]);
    let mut admin = connect(daemon.admin_port, "admin", "admin");
    admin.query_drop("INSERT INTO mysql_users (username, password) VALUES ('testuser', 'testuser')").unwrap();
    admin.query_drop("LOAD MYSQL USERS TO RUNTIME").unwrap();
    let mut sqlite = connect(daemon.port_of("sqliteserver").unwrap(), "testuser", "testuser");
    sqlite.query_drop("CREATE TABLE who (name TEXT)").unwrap();
    sqlite.query_drop(format!("INSERT INTO who VALUES ('{name}')")).unwrap();
    daemon
}

fn ask(client: &mut Conn, sql: &str) -> String {
    client.query_first(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).unwrap()
}

/// The answer reaches the client before its consequences the process list and the pool.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The read/write split of docs/query-rules.md.
fn split(world: &World) {
    world.rules(
        "rule_id, match_digest, destination_hostgroup, apply",
        &["10, '^SELECT.*FOR UPDATE$', 0, 1", "20, '^SELECT', 1, 1"],
    );
}

#[test]
fn reads_go_to_the_readers_and_transactions_stay_together() {
    let world = World::new();
    split(&world);
    let mut client = world.client();
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    assert_eq!(ask(&mut client, "SELECT name FROM who FOR UPDATE"), WRITER);
    client.query_drop("UPDATE who SET name = 'WRITER'").unwrap();
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    client.query_drop("BEGIN").unwrap();
    assert_eq!(ask(&mut client, "SELECT name FROM who"), "WRITER");
    client.query_drop("COMMIT").unwrap();
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
}

#[test]
fn hits_and_digests_are_counted() {
    let world = World::new();
    split(&world);
    let mut client = world.client();
    world.admin("LOAD MYSQL QUERY RULES TO RUNTIME");
    world.admin("TRUNCATE TABLE stats_mysql_query_digest");
    for id in 1..4 {
        client.query_drop(format!("SELECT name FROM who WHERE rowid = {id}")).unwrap();
    }
    client.query_drop("INSERT INTO who VALUES ('a'), ('b')").unwrap();
    assert_eq!(world.rows("SELECT * FROM stats_mysql_query_rules"), ["10|0", "20|3"]);
    let columns =
        "hostgroup, username, client_address, digest_text, count_star, sum_rows_affected, sum_rows_sent";
    let digests = format!("SELECT {columns} FROM stats_mysql_query_digest ORDER BY hostgroup");
    let expected = [
        "0|testuser||INSERT INTO who VALUES (?),(?)|1|2|0",
        "1|testuser||SELECT name FROM who WHERE rowid = ?|3|0|1",
    ];
    assert_eq!(world.rows(&digests), expected);
    let times = "min_time <= max_time AND max_time <= sum_time AND sum_time > 0 AND first_seen <= last_seen \
                 AND digest GLOB '0x[0-9A-F]*' AND length(digest) = 18";
    assert_eq!(world.rows(&format!("SELECT {times} FROM stats_mysql_query_digest")), ["1", "1"]);
    assert_eq!(world.rows("SELECT COUNT(*) FROM stats_mysql_query_digest_reset"), ["2"]);
    assert_eq!(world.rows("SELECT COUNT(*) FROM stats_mysql_query_digest"), ["0"]);
    world.admin("SET mysql-query_digests='false'");
    world.admin("LOAD MYSQL VARIABLES TO RUNTIME");
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    assert_eq!(world.rows("SELECT COUNT(*) FROM stats_mysql_query_digest"), ["0"]);
}

#[test]
fn rules_answer_and_rewrite() {
    let world = World::new();
    world.rules(
        "rule_id, match_pattern, replace_pattern, error_msg, OK_msg",
        &[
            "1, '^DELETE', NULL, 'no deleting here', NULL",
            "2, '^FLUSH', NULL, NULL, 'nothing to flush'",
            "3, 'FROM (\\w+)_old', 'FROM \\1', NULL, NULL",
        ],
    );
    let mut client = world.client();
    match client.query_drop("delete from who") {
        Err(mysql::Error::MySqlError(error)) => {
            assert_eq!(
                (error.code, error.state.as_str(), error.message.as_str()),
                (1148, "42000", "no deleting here")
            );
        }
        other => panic!("{other:?}"),
    }
    client.query_drop("FLUSH TABLES").unwrap();
    assert_eq!(client.info_str(), "nothing to flush");
    assert_eq!(ask(&mut client, "SELECT name FROM who_old"), WRITER);
    let own = "SELECT digest_text FROM stats_mysql_query_digest WHERE hostgroup = -1 ORDER BY 1";
    assert_eq!(world.rows(own), ["FLUSH TABLES", "delete from who"]);
}

#[test]
fn flags_chain_and_fast_routing_has_the_last_word() {
    let world = World::new();
    world.rules(
        "rule_id, flagIN, match_pattern, flagOUT, destination_hostgroup, next_query_flagIN, apply",
        &[
            "1, 0, 'chained', 7, NULL, NULL, 0",
            "2, 7, 'to reader', NULL, 1, NULL, 1",
            "3, 0, 'next', NULL, 0, 9, 0",
            "4, 9, '.', NULL, 1, NULL, 0",
        ],
    );
    let mut client = world.client();
    assert_eq!(ask(&mut client, "SELECT name FROM who /* to reader */"), WRITER);
    assert_eq!(ask(&mut client, "SELECT name FROM who /* chained to reader */"), READER);
    assert_eq!(ask(&mut client, "SELECT name FROM who /* next */"), WRITER);
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    assert_eq!(ask(&mut client, "SELECT name FROM who"), WRITER);
    world.admin(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, destination_hostgroup, comment) \
         VALUES ('testuser', 'main', 1, '')",
    );
    world.admin("LOAD MYSQL QUERY RULES TO RUNTIME");
    assert_eq!(ask(&mut client, "SELECT name FROM who"), WRITER);
    client.query_drop("USE main").unwrap();
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    assert_eq!(ask(&mut client, "SELECT name FROM who /* next */"), WRITER);
}

#[test]
fn without_multiplexing_rules_are_followed_with_a_connection_to_each_hostgroup() {
    let world = World::new();
    split(&world);
    world.admin("SET mysql-multiplexing = 'false'");
    world.admin("LOAD MYSQL VARIABLES TO RUNTIME");
    let mut client = world.client();
    for sql in
        ["SELECT name FROM who", "SELECT name FROM who", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"]
    {
        client.query_drop(sql).unwrap();
    }
    assert_eq!(ask(&mut client, "SELECT name FROM who"), READER);
    assert_eq!(ask(&mut client, "SELECT name FROM who FOR UPDATE"), WRITER);
    let pools = "SELECT hostgroup, ConnUsed, ConnFree, ConnOK FROM stats_mysql_connection_pool ORDER BY 1";
    assert_eq!(world.rows(pools), ["0|1|0|1", "1|1|0|1"]);
    drop(client);
    eventually("both are given back", || world.rows(pools) == ["0|0|1|1", "1|0|1|1"]);
}

#[test]
fn a_rule_has_the_session_keep_its_connection_or_no_longer() {
    let world = World::new();
    world.rules(
        "match_pattern, multiplex, sticky_conn",
        &["'keep', 0, NULL", "'share', 1, NULL", "'stick', NULL, 1"],
    );
    let mut client = world.client();
    let held = "SELECT extended_info LIKE '%\"multiplexing off\"%' FROM stats_mysql_processlist";
    for (comment, keeps) in [("", "NULL"), ("keep", "1"), ("", "1"), ("share", "NULL"), ("stick", "1")] {
        ask(&mut client, &format!("SELECT name FROM who /* {comment} */"));
        eventually(comment, || world.rows(held) == [keeps]);
    }
    client.reset().unwrap();
    ask(&mut client, "SELECT name FROM who");
    eventually("a reset ends it", || world.rows(held) == ["NULL"]);
}

#[test]
fn a_statement_that_is_held_back_can_be_killed() {
    let world = World::new();
    world.rules("match_pattern, delay", &["'slowly', 60000"]);
    let (mut client, mut other) = (world.client(), world.client());
    let kill = format!("KILL QUERY {}", client.connection_id());
    let running = std::thread::spawn(move || client.query_drop("SELECT 'slowly'").unwrap_err().to_string());
    let runs = "SELECT count(*) FROM stats_mysql_processlist WHERE info LIKE '%slowly%'";
    eventually("it is held back", || world.rows(runs) == ["1"]);
    other.query_drop(kill).unwrap();
    let error = running.join().unwrap();
    assert!(error.contains("1317"), "{error}");
}

#[test]
fn rules_are_loaded_saved_and_kept() {
    let mut world = World::new();
    split(&world);
    world.admin("INSERT INTO mysql_query_rules (rule_id, active, match_pattern) VALUES (30, 1, '(')");
    world.admin("INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 0, 4, 'x')");
    assert_eq!(world.admin("load mysql query  rules from memory"), "1 entry ignored, see the log");
    world.admin(
        "UPDATE mysql_query_rules SET re_modifiers = 'XX, GLOBAL', attributes = '[1]' WHERE rule_id = 10",
    );
    assert_eq!(world.admin("LOAD MYSQL QUERY RULES TO RUNTIME"), "3 entries ignored, see the log");
    let log = world.proxy.log();
    assert!(log.contains("rule_id 10: re_modifiers: 'XX' is neither CASELESS nor GLOBAL"), "{log}");
    assert!(log.contains("rule_id 10: attributes: it is no JSON object"), "{log}");
    world.admin(
        "UPDATE mysql_query_rules SET re_modifiers = 'CASELESS', attributes = '{}' WHERE rule_id = 10",
    );
    assert_eq!(world.admin("LOAD MYSQL QUERY RULES TO RUNTIME"), "1 entry ignored, see the log");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("rule_id 30")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("match_pattern: ")), "{lines:?}");
    let ids = "SELECT rule_id, active FROM ";
    assert_eq!(world.rows(&format!("{ids} runtime_mysql_query_rules")), ["10|1", "20|1"]);
    assert_eq!(world.rows("SELECT * FROM runtime_mysql_query_rules_fast_routing"), ["u|s|0|4|x"]);

    world.admin("SAVE MYSQL QUERY RULES FROM RUNTIME");
    assert_eq!(world.rows(&format!("{ids} mysql_query_rules")), ["10|1", "20|1", "30|0"]);
    world.admin("SAVE MYSQL QUERY RULES TO DISK");
    world.admin("DELETE FROM mysql_query_rules");
    world.admin("LOAD MYSQL QUERY RULES FROM DISK");
    assert_eq!(world.rows(&format!("{ids} mysql_query_rules")), ["10|1", "20|1", "30|0"]);

    world.proxy = world.proxy.restart(program(), &["--sqlite3-server"]);
    assert_eq!(world.rows(&format!("{ids} runtime_mysql_query_rules")), ["10|1", "20|1"]);
    assert_eq!(world.rows("SELECT * FROM runtime_mysql_query_rules_fast_routing"), ["u|s|0|4|x"]);
}
