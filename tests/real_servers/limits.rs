//! KILL, time limits and clients that vanish: what they do on the server itself.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use wire::CapabilityFlags;
use wire::auth::Secret;
use wire::backend::{Backend, ConnectOptions};
use wire::channel::Channel;

use crate::daemon::within;
use crate::setup::{Lab, MARIADB, MYSQL, MYSQL_TLS, PASSWORD, ROUTES, Route, connect};

/// A statement that lasts and says so when it is killed: MySQL's SLEEP() alone returns 1 then.
const SLOW: &str = "SELECT 'slowly' FROM (SELECT SLEEP(30)) t";
const PATIENCE: Duration = Duration::from_secs(15);

/// A client whose statement has ended, and how.
type Ended = (Conn, Result<(), Error>);

/// The error of a statement that was expected to fail.
fn code(result: Result<(), Error>) -> u16 {
    match result {
        Err(Error::MySqlError(error)) => error.code,
        other => panic!("{other:?}"),
    }
}
/// Starts the slow statement and waits until the server works on it.
fn start_slow(lab: &Lab, route: &Route) -> (u32, JoinHandle<Ended>) {
    let mut conn = lab.through(route);
    let id = conn.connection_id();
    let slow = std::thread::spawn(move || {
        let result = conn.query_drop(SLOW);
        (conn, result)
    });
    await_slow(lab, route, 1);
    (id, slow)
}
/// Waits until so many slow statements run on the server, as it says itself.
fn await_slow(lab: &Lab, route: &Route, expected: u64) {
    let mut dba = lab.servers.dba(route.kind);
    let question = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT ''slowly''%'";
    let mut seen = None;
    let reached = within(PATIENCE, || {
        seen = dba.query_first::<u64, _>(question).unwrap();
        seen == Some(expected)
    });
    assert!(reached, "{}: {seen:?} slow statements run, not {expected}", route.user);
}
fn set_variable(lab: &Lab, name: &str, value: &str) {
    let mut admin = lab.admin();
    admin.query_drop(format!("SET {name}='{value}'")).unwrap();
    admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
}

pub fn kill_query(lab: &Lab) {
    for route in &ROUTES {
        let (id, slow) = start_slow(lab, route);
        let begun = Instant::now();
        lab.through(route).query_drop(format!("KILL QUERY {id}")).unwrap();
        let (mut conn, result) = slow.join().unwrap();
        assert_eq!(code(result), 1317, "{}", route.user);
        assert!(begun.elapsed() < PATIENCE);
        // The session goes on, and the statement is gone.
        assert_eq!(conn.query_first::<u8, _>("SELECT 1").unwrap(), Some(1));
        await_slow(lab, route, 0);
    }
}

pub fn kill_connection(lab: &Lab) {
    for route in [MYSQL_TLS, MARIADB] {
        let (id, slow) = start_slow(lab, &route);
        lab.through(&route).query_drop(format!("KILL CONNECTION {id}")).unwrap();
        let (_, result) = slow.join().unwrap();
        assert!(matches!(result, Err(Error::IoError(_) | Error::CodecError(_))), "{result:?}");
        await_slow(lab, &route, 0);
    }
}

/// A process list has the ids that KILL means, of sessions that have a connection in hand.
pub fn ids_in_a_process_list(lab: &Lab) {
    for route in [MYSQL, MARIADB] {
        let (mut one, mut other) = (lab.through(&route), lab.through(&route));
        other.query_drop("BEGIN").unwrap();
        other.query_drop("SELECT 1 FROM (SELECT 1) t").unwrap();
        for sql in ["SHOW PROCESSLIST", "/* x */ show full processlist"] {
            let rows: Vec<mysql::Row> = one.query(sql).unwrap();
            let ids: Vec<u32> = rows.iter().map(|row| row.get(0).unwrap()).collect();
            for conn in [&one, &other] {
                assert!(
                    ids.contains(&conn.connection_id()),
                    "{}: {} is not in {ids:?}",
                    route.user,
                    conn.connection_id()
                );
            }
            let own = rows.iter().find(|row| row.get(0) == Some(one.connection_id())).unwrap();
            assert_eq!(own.get::<String, _>("Info").as_deref(), Some(sql), "{}", route.user);
        }
        let asked = one.exec_first::<u32, _, _>("SELECT CONNECTION_ID()", ()).unwrap();
        assert_eq!(asked, Some(one.connection_id()), "{}", route.user);
        one.query_drop(format!("KILL {}", other.connection_id())).unwrap();
        assert!(other.query_drop("SELECT 1").is_err(), "{}", route.user);
    }
}

pub fn whom_to_kill(lab: &Lab) {
    for route in [MYSQL, MARIADB] {
        let mut conn = lab.through(&route);
        let foreign = lab.through(&MYSQL_TLS);
        let id = conn.connection_id();
        assert_eq!(code(conn.query_drop(format!("KILL {}", foreign.connection_id()))), 1095);
        assert_eq!(code(conn.query_drop("KILL 4294967295")), 1094);
        assert_eq!(code(conn.exec_drop("KILL ?", (1,))), 1295);
        assert_eq!(code(conn.query_drop(format!("KILL QUERY {id}"))), 1317);
        assert_eq!(conn.query_first::<u8, _>("SELECT 1").unwrap(), Some(1));
        assert_eq!(code(conn.query_drop(format!("KILL {id}"))), 1317);
        assert!(conn.query_drop("SELECT 1").is_err());
    }
}

pub fn statement_time_limit(lab: &Lab) {
    set_variable(lab, "mysql-default_query_timeout", "1000");
    for route in [MYSQL, MARIADB] {
        let mut conn = lab.through(&route);
        let begun = Instant::now();
        assert_eq!(code(conn.query_drop(SLOW)), 1317, "{}", route.user);
        let elapsed = begun.elapsed();
        assert!(elapsed >= Duration::from_secs(1) && elapsed < PATIENCE, "{elapsed:?}");
        await_slow(lab, &route, 0);
    }
    set_variable(lab, "mysql-default_query_timeout", "86400000");
}

pub fn idle_limit_of_a_transaction(lab: &Lab) {
    set_variable(lab, "mysql-max_transaction_idle_time", "1000");
    for route in [MYSQL, MARIADB] {
        let table = format!("app.left_open_{}", route.hostgroup);
        lab.servers.dba(route.kind).query_drop(format!("CREATE TABLE {table} (a INT)")).unwrap();
        let mut conn = lab.through(&route);
        conn.query_drop("BEGIN").unwrap();
        conn.query_drop(format!("INSERT INTO {table} VALUES (1)")).unwrap();
        // A session without a transaction may stay.
        let mut bystander = lab.through(&route);
        bystander.query_drop("SELECT 1").unwrap();
        let ended =
            within(PATIENCE, || lab.sessions_where(&format!("SessionID = {}", conn.connection_id())) == 0);
        assert!(ended && conn.query_drop("COMMIT").is_err());
        assert_eq!(bystander.query_first(format!("SELECT COUNT(*) FROM {table}")).unwrap(), Some(0));
    }
    set_variable(lab, "mysql-max_transaction_idle_time", "14400000");
}

/// A client that leaves without a word while its statement runs.
pub fn vanished_client(lab: &Lab) {
    for route in &ROUTES {
        let mut client = Backend::connect(&ConnectOptions {
            address: ([127, 0, 0, 1], lab.daemon.traffic_port).into(),
            tls: None,
            server_name: "",
            user: route.user,
            secret: &Secret::Clear(PASSWORD.to_owned()),
            database: None,
            capabilities: CapabilityFlags::empty(),
            collation: 45,
            attributes: &[],
            deadline: Instant::now() + PATIENCE,
        })
        .unwrap();
        let channel: &mut Channel = &mut client.channel;
        channel.reset_sequence();
        channel.queue(&[b"\x03", SLOW.as_bytes()].concat());
        channel.flush().unwrap();
        await_slow(lab, route, 1);
        let begun = Instant::now();
        drop(client);
        await_slow(lab, route, 0);
        assert!(begun.elapsed() < Duration::from_secs(10), "the statement lasts longer than that");
    }
}

pub fn limit_of_a_user(lab: &Lab) {
    let most = |n: u32| {
        let mut admin = lab.admin();
        let user = MYSQL.user;
        admin
            .query_drop(format!("UPDATE mysql_users SET max_connections = {n} WHERE username = '{user}'"))
            .unwrap();
        admin.query_drop("LOAD MYSQL USERS TO RUNTIME").unwrap();
    };
    let mut first = lab.through(&MYSQL);
    assert!(within(PATIENCE, || lab.sessions_where(&format!("user = '{}'", MYSQL.user)) == 1));
    most(1);
    let refused = Conn::new(lab.client_of(&MYSQL, lab.daemon.traffic_port));
    assert_eq!(code(refused.map(drop)), 1226);
    // Who is in stays in.
    first.query_drop("SELECT 1").unwrap();
    most(10_000);
    connect(lab.client_of(&MYSQL, lab.daemon.traffic_port));
}

pub fn process_list(lab: &Lab) {
    for route in [MYSQL, MARIADB] {
        let mut conn = lab.through(&route);
        let id = conn.connection_id();
        conn.query_drop("BEGIN").unwrap();
        let backend: u64 = conn.query_first("SELECT @@pseudo_thread_id").unwrap().unwrap();
        let mut admin = lab.admin();
        let question = format!(
            "SELECT user, db, hostgroup, srv_port, command, extended_info FROM stats_mysql_processlist \
             WHERE SessionID = {id} AND command = 'Sleep'"
        );
        let mut row = None;
        assert!(within(PATIENCE, || {
            row = admin.query_first::<(String, String, u16, u16, String, String), _>(&question).unwrap();
            row.is_some()
        }));
        let (user, db, hostgroup, port, _, extended) = row.unwrap();
        assert_eq!((user.as_str(), db.as_str(), hostgroup), (route.user, "app", route.hostgroup));
        assert_eq!(port, lab.servers.port(route.kind));
        assert_eq!(extended, format!("{{\"backend_connection_id\":{backend},\"held\":\"transaction\"}}"));
        let shown: Vec<(u32, String)> = admin
            .query_map("SHOW FULL PROCESSLIST", |row: mysql::Row| (row.get(0).unwrap(), row.get(1).unwrap()))
            .unwrap();
        assert!(shown.contains(&(id, route.user.to_owned())), "{shown:?}");
        admin.query_drop(format!("KILL CONNECTION {id}")).unwrap();
        assert!(conn.query_drop("SELECT 1").is_err());
        assert_eq!(code(admin.query_drop("KILL CONNECTION 4294967295")), 1094);
    }
}

impl Lab {
    /// How many sessions of the traffic port meet a condition.
    fn sessions_where(&self, condition: &str) -> u64 {
        let question = format!("SELECT COUNT(*) FROM stats_mysql_processlist WHERE {condition}");
        self.admin().query_first(question).unwrap().unwrap()
    }
}
