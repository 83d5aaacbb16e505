//! What a session has set goes with it from connection to connection, and to no other session.

use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, Error};

use crate::servers::Kind;
use crate::setup::{Lab, Route, connect};

/// Hostgroups from here on are for routes of a check's own.
static NEXT_HOSTGROUP: AtomicU16 = AtomicU16::new(300);

/// A route of its own to each server, over at most so many connections.
pub fn narrow(lab: &Lab, name: &str, max_connections: u32) -> [Route; 2] {
    [Kind::MySql, Kind::MariaDb].map(|kind| {
        // Names and numbers live as long as the test.
        let user: &'static str = format!("{name}_{kind:?}").to_lowercase().leak();
        let hostgroup = NEXT_HOSTGROUP.fetch_add(1, Ordering::Relaxed);
        let route = Route { user, hostgroup, kind, use_ssl: false, compression: false };
        lab.add(&route);
        let mut admin = lab.admin();
        let limit = format!(
            "UPDATE mysql_servers SET max_connections={max_connections} WHERE hostgroup_id={hostgroup}"
        );
        admin.query_drop(limit).unwrap();
        admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
        route
    })
}

fn row<T: FromRow>(conn: &mut Conn, sql: &str) -> T {
    conn.query_first(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).unwrap()
}

fn run(conn: &mut Conn, statements: &[&str]) {
    for sql in statements {
        conn.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn code(conn: &mut Conn, sql: &str) -> u16 {
    match conn.query_drop(sql) {
        Err(Error::MySqlError(error)) => error.code,
        other => panic!("{sql}: {other:?}"),
    }
}

const SHOW: &str = "SELECT CONCAT_WS('|', @@time_zone, @@sql_mode, @@collation_connection, \
                    IFNULL(@@character_set_results, 'NULL'), @@autocommit + 0, @@group_concat_max_len, DATABASE())";

/// Sessions that take turns on one connection, each with its own settings.
pub fn settings_follow_their_session(lab: &Lab) {
    for route in narrow(lab, "turns", 1) {
        let sets: [(&[&str], &str); 4] = [
            (&["SET time_zone='+01:00'", "SET sql_mode='ANSI_QUOTES'"], "+01:00|ANSI_QUOTES"),
            (&["SET NAMES gbk", "SET character_set_results=NULL"], "gbk_chinese_ci|NULL"),
            (
                &["SET NAMES latin1 COLLATE latin1_bin, group_concat_max_len=2000"],
                "latin1_bin|latin1|1|2000|app",
            ),
            (&["SET autocommit=0", "SET NAMES binary", "USE information_schema"], "binary|binary|0|"),
        ];
        let mut sessions: Vec<_> =
            sets.iter().map(|(set, part)| (lab.through(&route), *set, *part)).collect();
        for (conn, set, _) in &mut sessions {
            run(conn, set);
        }
        let plain: String = row(&mut lab.through(&route), SHOW);
        assert!(plain.ends_with("|app") && !plain.contains("latin1_bin"), "{plain}");
        for turn in 0..3 {
            for (conn, _, part) in &mut sessions {
                let shown: String = row(conn, SHOW);
                assert!(shown.contains(*part), "{} turn {turn}: {shown}, not {part}", route.user);
            }
        }
        // MySQL's reset gives up the character set of the login.
        let mut direct = lab.servers.dba(route.kind);
        let collation = "SELECT @@collation_connection";
        let of_login: String = row(&mut direct, collation);
        direct.reset().unwrap();
        let plain = plain.replace(&of_login, &row::<String>(&mut direct, collation));
        for (conn, _, _) in &mut sessions {
            conn.reset().unwrap();
            let shown: String = row(conn, SHOW);
            assert_eq!(shown.replace("information_schema", "app"), plain, "{} after a reset", route.user);
        }
    }
}

/// A reset means what it means on this server, whoever has the connections to it.
pub fn reset_while_all_is_taken(lab: &Lab) {
    const COLLATION: &str = "SELECT @@collation_connection";
    for route in narrow(lab, "taken", 1) {
        let mut direct = lab.servers.dba(route.kind);
        let (mut holder, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut holder, &["BEGIN", "SELECT 1"]);
        direct.reset().unwrap();
        other.reset().unwrap();
        run(&mut holder, &["ROLLBACK"]);
        let collation: String = row(&mut other, COLLATION);
        assert_eq!(collation, row::<String>(&mut direct, COLLATION), "{}", route.user);
    }
}

/// Collations with ids over 255, and the one that utf8mb4 means on this server.
pub fn collations(lab: &Lab) {
    let [mysql, mariadb] = narrow(lab, "collate", 1);
    for (route, collation) in [(mysql, "utf8mb4_ja_0900_as_cs"), (mariadb, "utf8mb4_uca1400_as_cs")] {
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut one, &[&format!("SET NAMES utf8mb4 COLLATE {collation}")]);
        run(&mut other, &["SET NAMES utf8mb4"]);
        let default: String = row(&mut other, "SELECT @@collation_connection");
        let mut direct = lab.servers.dba(route.kind);
        run(&mut direct, &["SET NAMES utf8mb4"]);
        assert_eq!(default, row::<String>(&mut direct, "SELECT @@collation_connection"));
        assert_eq!(row::<String>(&mut one, "SELECT @@collation_connection"), collation);
        assert_eq!(row::<String>(&mut other, "SELECT @@collation_connection"), default);
    }
}

/// The schema is known, whatever statement went there.
pub fn schemas(lab: &Lab) {
    for route in narrow(lab, "schemas", 1) {
        let immediate = "EXECUTE IMMEDIATE 'USE information_schema'";
        let mariadb = [immediate].into_iter().filter(|_| route.kind == Kind::MariaDb);
        for sql in ["USE information_schema", "/*!50000 USE information_schema */"].into_iter().chain(mariadb)
        {
            let mut conn = lab.through(&route);
            // After the second, the consequences of the first are in the process list.
            run(&mut conn, &[sql, "SELECT 1"]);
            let db =
                format!("SELECT db FROM stats_mysql_processlist WHERE SessionID={}", conn.connection_id());
            assert_eq!(row::<String>(&mut lab.admin(), &db), "information_schema", "{sql}");
        }
    }
}

/// With autocommit off a lock lives until COMMIT, and autocommit stays off on the next connection.
pub fn locks_without_autocommit(lab: &Lab) {
    for route in narrow(lab, "locks", 2) {
        let (mut holder, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut holder, &["CREATE TABLE app.l (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"]);
        run(&mut holder, &["INSERT INTO app.l VALUES (1, 1), (2, 2)", "SET autocommit=0"]);
        assert_eq!(row::<u8>(&mut holder, "SELECT @@autocommit"), 0);
        run(&mut holder, &["SELECT * FROM app.l WHERE id = 1 FOR UPDATE"]);
        run(&mut other, &["SET innodb_lock_wait_timeout=1"]);
        assert_eq!(code(&mut other, "UPDATE app.l SET v = 5 WHERE id = 1"), 1205);
        run(&mut holder, &["COMMIT"]);
        run(&mut other, &["UPDATE app.l SET v = 5 WHERE id = 1"]);
        assert_eq!(row::<u8>(&mut holder, "SELECT @@autocommit"), 0);
        run(&mut holder, &["UPDATE app.l SET v = 6 WHERE id = 1"]);
        drop(holder);
        assert_eq!(row::<u8>(&mut other, "SELECT v FROM app.l WHERE id = 1"), 5, "it was rolled back");
        run(&mut other, &["DROP TABLE app.l"]);
    }
}

/// What a session leaves is gone when the next one gets its connection.
pub fn nothing_is_left(lab: &Lab) {
    for route in narrow(lab, "leaves", 1) {
        lab.servers.dba(route.kind).query_drop("DROP FUNCTION IF EXISTS app.f").unwrap();
        run(
            &mut lab.servers.dba(route.kind),
            &[
                "CREATE TABLE app.kept (id INT PRIMARY KEY) ENGINE=InnoDB",
                "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC BEGIN SET @in_function = 7; SET time_zone='+05:00'; RETURN 1; END",
                "CREATE PROCEDURE app.p() BEGIN SELECT 5 INTO @in_procedure; SET SESSION group_concat_max_len = 55; END",
            ],
        );
        let plain: String = row(&mut lab.through(&route), SHOW);
        let left: [&[&str]; 9] = [
            &["SET @x = 1"],
            &["SELECT 5 INTO @x"],
            &["SELECT app.f()"],
            &["CALL app.p()"],
            &["CREATE TEMPORARY TABLE app.gone (a INT)"],
            &["SELECT GET_LOCK('lock', 1)"],
            &["BEGIN", "INSERT INTO app.kept VALUES (1)"],
            &["SET autocommit=0", "INSERT INTO app.kept VALUES (1)"],
            &["SET timestamp=5", "PREPARE s FROM 'SELECT 1'", "LOCK TABLES app.kept WRITE"],
        ];
        for statements in left {
            let mut session = lab.through(&route);
            run(&mut session, statements);
            drop(session);
            let mut next = lab.through(&route);
            let what = format!("{} after {statements:?}", route.user);
            let variables = "SELECT @x IS NULL AND @in_function IS NULL AND @in_procedure IS NULL \
                             AND IS_FREE_LOCK('lock') AND @@timestamp > 5";
            assert_eq!(row::<u8>(&mut next, variables), 1, "{what}");
            assert_eq!(row::<String>(&mut next, SHOW), plain, "{what}");
            assert_eq!(code(&mut next, "SELECT * FROM app.gone"), 1146, "{what}");
            assert_eq!(code(&mut next, "EXECUTE s"), 1243, "{what}");
            assert_eq!(row::<u8>(&mut next, "SELECT COUNT(*) FROM app.kept"), 0, "{what}");
        }
        run(
            &mut lab.servers.dba(route.kind),
            &["DROP TABLE app.kept", "DROP FUNCTION app.f", "DROP PROCEDURE app.p"],
        );
    }
}

/// User variables that a function sets in ways that no server reports are its session's alone.
pub fn what_functions_leave(lab: &Lab) {
    let mut admin = lab.admin();
    let rule = "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, multiplex, apply) \
                VALUES (900, 1, '/. ignored', 2, 1)";
    for route in narrow(lab, "functions", 1) {
        run(&mut admin, &[rule, "LOAD MYSQL QUERY RULES TO RUNTIME"]);
        let body = "RETURNS INT DETERMINISTIC BEGIN SELECT 7 INTO @into; RETURN (@assigned := 8); END";
        run(
            &mut lab.servers.dba(route.kind),
            &[
                "DROP FUNCTION IF EXISTS app.leaving",
                &format!("CREATE FUNCTION app.leaving() {body}"),
                "DROP FUNCTION IF EXISTS app.abs",
                &format!("CREATE FUNCTION app.abs() {body}"),
                "CREATE TABLE app.of_functions (a INT)",
            ],
        );
        for call in [
            "SELECT leaving()",
            "SELECT `app`.`leaving`()",
            "SELECT app.abs()",
            "INSERT INTO app.of_functions (a) VALUES (leaving())",
            "UPDATE app.of_functions SET a = app.leaving()",
        ] {
            for prepared in [false, true] {
                let mut caller = lab.through(&route);
                match prepared {
                    true => caller.exec_drop(call, ()).unwrap(),
                    false => run(&mut caller, &[call]),
                }
                assert_eq!(row::<u8>(&mut caller, "SELECT @into"), 7, "{call}");
                drop(caller);
                let mut other = lab.through(&route);
                let question = "SELECT @into IS NULL AND @assigned IS NULL";
                assert_eq!(row::<u8>(&mut other, question), 1, "{call}");
                // Of a statement of which a rule says that its variables do not matter.
                drop(other);
                let mut ignored = lab.through(&route);
                run(&mut ignored, &[&format!("{call} /* ignored */")]);
                assert_eq!(row::<u8>(&mut lab.through(&route), question), 1, "{call}");
            }
        }
        run(
            &mut admin,
            &["DELETE FROM mysql_query_rules WHERE rule_id = 900", "LOAD MYSQL QUERY RULES TO RUNTIME"],
        );
        run(
            &mut lab.servers.dba(route.kind),
            &["DROP FUNCTION app.leaving", "DROP FUNCTION app.abs", "DROP TABLE app.of_functions"],
        );
    }
}

/// Triggers, and functions that views call, set user variables of which nobody tells: no other session reads them.
pub fn what_triggers_and_views_leave(lab: &Lab) {
    for route in narrow(lab, "triggers", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(
            &mut dba,
            &[
                "CREATE TABLE app.watched (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
                "CREATE TRIGGER app.watching BEFORE INSERT ON app.watched FOR EACH ROW SELECT 7 INTO @by_trigger",
                "CREATE FUNCTION app.hidden() RETURNS INT DETERMINISTIC BEGIN SELECT 8 INTO @by_view; RETURN 1; END",
                "CREATE VIEW app.calling AS SELECT app.hidden() AS one",
                "CREATE FUNCTION app.reading() RETURNS INT READS SQL DATA RETURN @by_trigger",
                "CREATE VIEW app.hidden_read AS SELECT app.reading() AS read_there",
            ],
        );
        // What reads the variable does not show it either: a rule says so.
        let mut admin = lab.admin();
        let rule = "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, multiplex, apply) \
                    VALUES (900, 1, 'INTO app.watched .*/. rule', 0, 1)";
        run(&mut admin, &[rule, "LOAD MYSQL QUERY RULES TO RUNTIME"]);
        let mut writer = lab.through(&route);
        run(&mut writer, &["INSERT INTO app.watched (v) VALUES (0) /* rule */"]);
        assert_eq!(
            row::<Option<u8>>(&mut writer, "SELECT read_there FROM app.hidden_read"),
            Some(7),
            "{}",
            route.user
        );
        drop(writer);
        let mut other = lab.through(&route);
        assert_eq!(
            row::<Option<u8>>(&mut other, "SELECT read_there FROM app.hidden_read"),
            None,
            "{}",
            route.user
        );
        drop(other);
        run(
            &mut admin,
            &["DELETE FROM mysql_query_rules WHERE rule_id = 900", "LOAD MYSQL QUERY RULES TO RUNTIME"],
        );
        let question = "SELECT @by_trigger IS NULL AND @by_view IS NULL";
        for prepared in [false, true] {
            let mut writer = lab.through(&route);
            run(&mut writer, &["INSERT INTO app.watched (v) VALUES (1)", "SELECT * FROM app.calling"]);
            let mut other = lab.through(&route);
            let unset: Option<u8> = if prepared {
                other.exec_first(question, ()).unwrap()
            } else {
                other.query_first(question).unwrap()
            };
            assert_eq!(unset, Some(1), "{}", route.user);
            drop(other);
            // What was to be read all the same is read.
            run(&mut writer, &["INSERT INTO app.watched (v) VALUES (2)"]);
            let id: u32 = row(&mut writer, "SELECT MAX(id) FROM app.watched");
            run(&mut lab.through(&route), &["SELECT * FROM app.calling"]);
            run(&mut writer, &["SELECT LAST_INSERT_ID() INTO @id"]);
            assert_eq!(row::<u32>(&mut writer, "SELECT @id"), id, "{}", route.user);
        }
        run(
            &mut dba,
            &[
                "DROP VIEW app.calling, app.hidden_read",
                "DROP FUNCTION app.hidden",
                "DROP FUNCTION app.reading",
                "DROP TABLE app.watched",
            ],
        );
    }
}

/// A schema's new collation is seen by sessions that begin after it was changed, and in the session that has changed it.
pub fn schema_that_is_changed(lab: &Lab) {
    const COLLATION: &str = "SELECT @@collation_database";
    for route in narrow(lab, "changed", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(&mut dba, &["CREATE DATABASE app_changed"]);
        dba.query_drop(format!("GRANT ALL ON app_changed.* TO {}", route.user)).unwrap();
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut one, &["USE app_changed", "SELECT 1"]);
        for (change, collation) in [
            ("ALTER DATABASE app_changed COLLATE latin1_bin", "latin1_bin"),
            ("alter schema CHARACTER SET ascii", "ascii_general_ci"),
            ("CREATE OR REPLACE DATABASE app_changed COLLATE koi8r_bin", "koi8r_bin"),
        ] {
            if change.contains("REPLACE") && route.kind == Kind::MySql {
                continue;
            }
            run(
                &mut other,
                &[if change.contains("app_changed") { "USE app" } else { "USE app_changed" }, change],
            );
            let mut new = lab.through(&route);
            run(&mut new, &["USE app_changed"]);
            assert_eq!(row::<String>(&mut new, COLLATION), collation, "{} {change}", route.user);
            assert_eq!(row::<String>(&mut one, COLLATION), collation, "{} {change}", route.user);
        }
        drop((one, other));
        run(&mut dba, &["DROP DATABASE app_changed"]);
    }
}

/// More sessions than connections: what a statement left is read by its own session.
pub fn what_the_last_statement_left(lab: &Lab) {
    for route in narrow(lab, "last", 2) {
        run(
            &mut lab.servers.dba(route.kind),
            &["CREATE TABLE app.ids (id INT PRIMARY KEY AUTO_INCREMENT, tag INT) ENGINE=InnoDB"],
        );
        thread::scope(|scope| {
            for tag in 0..4u32 {
                let (lab, route) = (&lab, &route);
                scope.spawn(move || {
                    let mut conn = lab.through(route);
                    for _ in 0..15 {
                        read_what_was_left(&mut conn, tag);
                    }
                });
            }
        });
        run(&mut lab.servers.dba(route.kind), &["DROP TABLE app.ids"]);
    }
}

fn read_what_was_left(conn: &mut Conn, tag: u32) {
    run(conn, &[&format!("INSERT INTO app.ids (tag) VALUES ({tag})")]);
    let id: u32 = row(conn, "SELECT LAST_INSERT_ID()");
    run(conn, &["DO 1"]);
    let found: u32 = row(conn, "SELECT tag FROM app.ids WHERE id = LAST_INSERT_ID()");
    assert_eq!(found, tag, "the id {id}");
    let rows = tag as usize + 2;
    let union = vec!["SELECT 1"; rows].join(" UNION ALL ");
    run(conn, &[&union]);
    assert_eq!(row::<usize>(conn, "SELECT FOUND_ROWS()"), rows);
    run(conn, &[&format!("SELECT SQL_CALC_FOUND_ROWS * FROM ({union}) t LIMIT 1")]);
    assert_eq!(row::<usize>(conn, "SELECT FOUND_ROWS()"), rows);
    run(conn, &[&format!("INSERT INTO app.ids (tag) VALUES {}", vec!["(99)"; rows].join(","))]);
    assert_eq!(row::<usize>(conn, "SELECT ROW_COUNT()"), rows);
    run(conn, &[&format!("SELECT CAST('{tag}x' AS SIGNED)")]);
    let (_, _, text): (String, u32, String) = row(conn, "SHOW WARNINGS");
    assert!(text.contains(&format!("'{tag}x'")), "{text}");
    assert_eq!(code(conn, &format!("SELECT * FROM app.missing{tag}")), 1146);
    let (_, _, text): (String, u32, String) = row(conn, "SHOW ERRORS");
    assert!(text.contains(&format!("missing{tag}")), "{text}");
}

/// Warnings and errors are the session's after another one has had the connection that they came from.
pub fn complaints_after_a_move(lab: &Lab) {
    const SHOW: [&str; 7] = [
        "SHOW WARNINGS",
        "SHOW WARNINGS LIMIT 1, 1",
        "SHOW COUNT(*) WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) ERRORS",
        "SELECT @@error_count",
        "SELECT @@session.warning_count",
    ];
    for route in narrow(lab, "complain", 1) {
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        let mut direct = connect(lab.client_of(&route, lab.servers.port(route.kind)));
        for complained in
            ["SELECT CAST('1x' AS SIGNED), CAST('2x' AS SIGNED)", "SELECT * FROM app.missing", "SELECT 1 +"]
        {
            for conn in [&mut one, &mut direct] {
                let _ = conn.query_drop(complained);
            }
            // There is one connection: this waits until it is given up.
            run(&mut other, &["SELECT 1"]);
            for show in SHOW {
                let [through, directly] = [&mut one, &mut direct].map(|conn| shown(conn, show));
                assert_eq!(through, directly, "{} after {complained}: {show}", route.user);
                run(&mut other, &["SELECT 1 FROM (SELECT 1) t"]);
            }
            run(&mut one, &["SELECT 1 FROM (SELECT 1) t"]);
            assert_eq!(one.query_first::<mysql::Row, _>("SHOW WARNINGS").unwrap(), None, "{}", route.user);
        }
        run(
            &mut one,
            &["SELECT SQL_CALC_FOUND_ROWS * FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) t LIMIT 1"],
        );
        run(&mut other, &["SELECT 1"]);
        assert_eq!(row::<u8>(&mut one, "SELECT FOUND_ROWS()"), 3, "{}", route.user);
        assert_eq!(code(&mut one, "SELECT * FROM app.missing"), 1146);
        run(&mut other, &["SELECT 1"]);
        run(&mut one, &["GET DIAGNOSTICS CONDITION 1 @state = RETURNED_SQLSTATE, @text = MESSAGE_TEXT"]);
        let (state, text): (String, String) = row(&mut one, "SELECT @state, @text");
        assert!(state == "42S02" && text.contains("missing"), "{}: {state} {text}", route.user);
    }
}

/// An answer with the descriptions of its columns.
fn shown(conn: &mut Conn, sql: &str) -> String {
    let mut result = conn.query_iter(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns = format!("{:?}", result.columns().as_ref());
    let rows: Vec<_> = result.by_ref().map(|row| row.unwrap().unwrap()).collect();
    format!("{columns} {rows:?}")
}

/// A statement that fails with autocommit off has begun a transaction: its locks and its view of the data are its session's.
pub fn errors_without_autocommit(lab: &Lab) {
    for route in narrow(lab, "snapshot", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(&mut dba, &["CREATE TABLE app.s (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"]);
        run(&mut dba, &["INSERT INTO app.s VALUES (1, 1), (2, 1)"]);
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut other, &["SET autocommit=0"]);
        run(&mut one, &["SET autocommit=0"]);
        let failed = one.query_first::<u8, _>("SELECT (SELECT id FROM app.s) FROM app.s");
        assert!(matches!(failed, Err(Error::MySqlError(error)) if error.code == 1242));
        run(&mut dba, &["UPDATE app.s SET v = 2"]);
        drop(one);
        assert_eq!(row::<u8>(&mut other, "SELECT v FROM app.s WHERE id = 1"), 2, "{}", route.user);
        drop(other);
        run(&mut dba, &["DROP TABLE app.s"]);
    }
}

/// A session whose schema another session has dropped goes on without one, and in it when it is there again.
pub fn schema_that_is_gone(lab: &Lab) {
    for route in narrow(lab, "homeless", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(
            &mut dba,
            &["CREATE DATABASE app_gone", "CREATE TABLE app.here (a INT)", "INSERT INTO app.here VALUES (7)"],
        );
        dba.query_drop(format!("GRANT ALL ON *.* TO {}", route.user)).unwrap();
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut one, &["USE app_gone", "SET time_zone='+01:00'"]);
        run(&mut other, &["SELECT a FROM here"]);
        run(&mut dba, &["DROP DATABASE app_gone"]);
        for _ in 0..2 {
            assert_eq!(row::<String>(&mut one, "SELECT @@time_zone"), "+01:00", "{}", route.user);
            assert_eq!(row::<u8>(&mut one, "SELECT a FROM app.here"), 7);
            assert_eq!(code(&mut one, "SELECT a FROM here"), 1046);
            assert_eq!(code(&mut one, "CREATE TABLE t (a INT)"), 1046);
            run(&mut one, &["SET time_zone='+02:00'", "SET time_zone='+01:00'"]);
            assert_eq!(row::<u8>(&mut other, "SELECT a FROM here"), 7);
            assert_eq!(row::<String>(&mut other, "SELECT DATABASE()"), "app");
        }
        assert_eq!(code(&mut one, "USE app_gone"), 1049);
        run(&mut dba, &["CREATE DATABASE app_gone"]);
        assert_eq!(row::<u8>(&mut other, "SELECT a FROM here"), 7);
        assert_eq!(row::<String>(&mut one, "SELECT DATABASE()"), "app_gone", "{}", route.user);
        run(&mut dba, &["DROP DATABASE app_gone"]);
        run(&mut other, &["SELECT a FROM here"]);
        run(&mut one, &["USE app"]);
        assert_eq!(row::<u8>(&mut one, "SELECT a FROM here"), 7);
        run(&mut dba, &["DROP TABLE app.here"]);
    }
}

/// SET STATEMENT and SET GLOBAL keep no connection: two sessions take turns on one.
pub fn set_for_others(lab: &Lab) {
    for route in narrow(lab, "passing", 1) {
        lab.servers.dba(route.kind).query_drop(format!("GRANT ALL ON *.* TO {}", route.user)).unwrap();
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        for _ in 0..2 {
            run(&mut one, &["SET GLOBAL max_connections=151, join_buffer_size=262144"]);
            run(&mut other, &["SELECT 1"]);
            if route.kind == Kind::MariaDb {
                run(&mut one, &["SET STATEMENT sort_buffer_size=300000, sql_mode='' FOR SELECT 1"]);
                assert_eq!(row::<u32>(&mut other, "SELECT @@sort_buffer_size"), 2_097_152);
                run(&mut one, &["SET STATEMENT max_statement_time=5 FOR DO 1"]);
                run(&mut other, &["SELECT 1"]);
            }
        }
    }
}

/// A server on which new sessions have no autocommit: only transactions keep the one connection, and those of failed statements.
pub fn no_autocommit_for_anybody(lab: &Lab) {
    for route in narrow(lab, "noauto", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(&mut dba, &["CREATE TABLE app.na (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"]);
        run(&mut dba, &["INSERT INTO app.na VALUES (1, 1)", "SET innodb_lock_wait_timeout=1"]);
        run(&mut dba, &["SET GLOBAL autocommit=0"]);
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        for _ in 0..3 {
            assert_eq!(row::<u8>(&mut one, "SELECT @@autocommit"), 0, "{}", route.user);
            assert_eq!(row::<u8>(&mut other, "SELECT @@autocommit"), 0, "{}", route.user);
        }
        run(&mut one, &["SELECT v FROM app.na WHERE id = 1 FOR UPDATE"]);
        assert_eq!(code(&mut dba, "UPDATE app.na SET v = 2"), 1205);
        run(&mut one, &["COMMIT"]);
        run(&mut dba, &["UPDATE app.na SET v = 2"]);
        assert_eq!(code(&mut other, "INSERT INTO app.na VALUES (2, 1), (1, 1)"), 1062);
        assert_eq!(code(&mut dba, "UPDATE app.na SET v = 3"), 1205, "{}: the lock is kept", route.user);
        run(&mut other, &["ROLLBACK"]);
        run(&mut one, &["SET autocommit=1", "UPDATE app.na SET v = 4"]);
        assert_eq!(row::<u8>(&mut dba, "SELECT v FROM app.na"), 4);
        run(&mut other, &["UPDATE app.na SET v = 5"]);
        drop(other);
        assert_eq!(row::<u8>(&mut one, "SELECT v FROM app.na"), 4, "{}", route.user);
        run(&mut dba, &["SET GLOBAL autocommit=1", "DROP TABLE app.na"]);
    }
}

/// Ids that statements name themselves, and the other ways to read LAST_INSERT_ID().
pub fn ids_of_other_sessions(lab: &Lab) {
    for route in narrow(lab, "named", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(&mut dba, &["CREATE TABLE app.n (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE=InnoDB"]);
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        run(&mut one, &["INSERT INTO app.n (v) VALUES (1)"]);
        assert_eq!(row::<u32>(&mut other, "SELECT @@identity"), 0);
        run(&mut one, &["INSERT INTO app.n (v) VALUES (1)"]);
        run(&mut other, &["INSERT INTO app.n VALUES (50, 1)"]);
        assert_eq!(row::<u32>(&mut other, "SELECT LAST_INSERT_ID()"), 0, "{}", route.user);
        for id in ["30 + 30", "7e1", "'080'", "FLOOR(90.5)", "0x64"] {
            run(&mut other, &[&format!("INSERT INTO app.n VALUES ({id}, 1)")]);
            run(&mut one, &["INSERT INTO app.n (v) VALUES (1)"]);
            assert_eq!(row::<u32>(&mut other, "SELECT LAST_INSERT_ID()"), 0, "{} after {id}", route.user);
        }
        run(&mut one, &["INSERT INTO app.n (v) VALUES (1)"]);
        run(&mut other, &["SET sql_auto_is_null=1"]);
        let found: Option<u32> = other.query_first("SELECT id FROM app.n WHERE id IS NULL").unwrap();
        assert_eq!(found, None, "{}", route.user);
        run(&mut dba, &["DROP TABLE app.n"]);
    }
}

/// COMMIT RELEASE ends the connection of the session that says it, and no other's.
pub fn commit_and_release(lab: &Lab) {
    for route in narrow(lab, "released", 1) {
        for end in [&["BEGIN", "COMMIT RELEASE"][..], &["SET completion_type=2", "BEGIN", "ROLLBACK"]] {
            for _ in 0..5 {
                let (mut one, mut other) = (lab.through(&route), lab.through(&route));
                run(&mut one, end);
                assert!(one.query_drop("SELECT 1").is_err(), "{} after {end:?}", route.user);
                assert_eq!(row::<u8>(&mut other, "SELECT 1"), 1, "{} after {end:?}", route.user);
            }
        }
    }
}

/// The server closes a connection after the answer to its own KILL: no other session gets it.
pub fn kill_oneself(lab: &Lab) {
    for route in narrow(lab, "oneself", 1) {
        for _ in 0..5 {
            let (mut one, mut other) = (lab.through(&route), lab.through(&route));
            let killed = code(&mut one, "KILL CONNECTION_ID() + 0");
            assert!([1317, 1927].contains(&killed), "{}: {killed}", route.user);
            drop(one);
            assert_eq!(row::<u8>(&mut other, "SELECT 1"), 1, "{}", route.user);
            code(&mut other, "KILL CONNECTION_ID()");
            assert!(other.query_drop("SELECT 1").is_err(), "{}", route.user);
        }
    }
}

/// A prepared XA transaction outlives its session and does no harm to the next one.
pub fn prepared_xa(lab: &Lab) {
    for route in narrow(lab, "xa", 1) {
        let mut dba = lab.servers.dba(route.kind);
        run(&mut dba, &["CREATE TABLE app.x (id INT PRIMARY KEY) ENGINE=InnoDB"]);
        let prepare = ["XA START 'x'", "INSERT INTO app.x VALUES (1)", "XA END 'x'", "XA PREPARE 'x'"];
        run(&mut lab.through(&route), &prepare);
        run(&mut lab.through(&route), &["INSERT INTO app.x VALUES (2)"]);
        run(&mut dba, &["XA COMMIT 'x'"]);
        assert_eq!(row::<u8>(&mut lab.through(&route), "SELECT COUNT(*) FROM app.x"), 2, "{}", route.user);
        run(&mut dba, &["DROP TABLE app.x"]);
    }
}
