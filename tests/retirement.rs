//! Connections that are in somebody's hands when their server is taken out of use, or its name leads elsewhere: they are gone when they
//! come back, by whatever way. With daemons as processes: one is the proxy, the SQLite3 server of the other is the server behind it.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn, Error};
use pair::{client, configure, eventually, program, start_server};
use std::fs;
use support::Daemon;

/// A proxy with one server, which has a name and two addresses.
struct World {
    proxy: Daemon,
    admin: Conn,
    server: Daemon,
    hosts: tempfile::TempDir,
}

impl World {
    /// `fast_forward`: of the user.
    fn start(fast_forward: bool) -> Self {
        let server = start_server(&[]);
        let port = server.port_of("sqliteserver").unwrap();
        let both = format!("SET sqliteserver-mysql_ifaces='127.0.0.1:{port};127.0.0.2:{port}'");
        configure(&server, &[&both, "LOAD SQLITESERVER VARIABLES TO RUNTIME"]);
        let hosts = tempfile::tempdir().unwrap();
        let file = hosts.path().join("hosts");
        fs::write(&file, "127.0.0.1 db.test\n").unwrap();
        let proxy = Daemon::start(program(), &["--no-monitor", "--hosts-file", file.to_str().unwrap()]);
        let user = format!(
            "INSERT INTO mysql_users(username, password, fast_forward) VALUES ('testuser', 'testuser', {})",
            i32::from(fast_forward)
        );
        let row =
            format!("INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (0, 'db.test', {port})");
        let admin =
            configure(&proxy, &[&user, "LOAD MYSQL USERS TO RUNTIME", &row, "LOAD MYSQL SERVERS TO RUNTIME"]);
        Self { proxy, admin, server, hosts }
    }
    fn client(&self) -> Conn {
        client(&self.proxy)
    }
    /// Takes the server out of use and back at once, so that nothing but the drain ends its connections.
    fn drain(&mut self) {
        for status in ["OFFLINE_HARD", "ONLINE"] {
            self.admin.query_drop(format!("UPDATE mysql_servers SET status='{status}'")).unwrap();
            self.admin.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
        }
    }
    /// Has the server's name lead to its other address.
    fn move_name(&self) {
        fs::write(self.hosts.path().join("hosts"), "127.0.0.2 db.test\n").unwrap();
    }
    /// Waits until so many connections are used and free, of so many that were opened since the start.
    #[track_caller]
    fn await_pool(&mut self, used: u32, free: u32, opened: u32) {
        let sums = "SUM(ConnUsed)=USED AND SUM(ConnFree)=FREE AND SUM(ConnOK)=OPENED";
        let sums = sums.replace("USED", &used.to_string()).replace("FREE", &free.to_string());
        let sums = sums.replace("OPENED", &opened.to_string());
        eventually(&mut self.admin, &format!("SELECT {sums} FROM stats_mysql_connection_pool"));
    }
}

fn one(client: &mut Conn) -> i64 {
    client.query_first("SELECT 1").unwrap().unwrap()
}

/// The ways in which a session ends and its client goes on.
const ENDS: [fn(&mut Conn); 2] =
    [|client| client.reset().unwrap(), |client| client.change_user(ChangeUserOpts::default()).unwrap()];

#[test]
fn a_transaction_that_is_reset_or_changes_user_returns_its_connection_but_not_a_drained_one() {
    let mut world = World::start(false);
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    world.await_pool(1, 0, 1);
    for end in ENDS {
        end(&mut client);
        world.await_pool(0, 1, 1);
        client.query_drop("BEGIN").unwrap();
    }
    for (end, opened) in ENDS.into_iter().zip(1..) {
        world.drain();
        assert_eq!(one(&mut client), 1, "the transaction goes on where it is");
        world.await_pool(1, 0, opened);
        end(&mut client);
        world.await_pool(0, 0, opened);
        client.query_drop("BEGIN").unwrap();
        world.await_pool(1, 0, opened + 1);
    }
    world.drain();
    client.query_drop("COMMIT").unwrap();
    world.await_pool(0, 0, 3);
}

#[test]
fn what_a_session_had_set_up_on_a_drained_connection_is_lost_and_it_is_told_so() {
    let mut world = World::start(false);
    let mut client = world.client();
    let set_up = "CREATE TEMPORARY TABLE kept (a INT)";
    for (end, opened) in ENDS.into_iter().zip(1..) {
        client.query_drop(set_up).unwrap();
        world.await_pool(1, 0, opened);
        world.drain();
        // A session that ends anyway loses nothing.
        end(&mut client);
        world.await_pool(0, 0, opened);
    }
    client.query_drop(set_up).unwrap();
    world.drain();
    is_told_of_the_loss(&mut client);
    world.await_pool(0, 0, 3);
}

#[test]
fn a_fast_forward_session_finishes_its_transaction_on_a_drained_connection_and_is_told_of_the_loss() {
    let mut world = World::start(true);
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    world.await_pool(1, 0, 1);
    world.drain();
    assert_eq!(one(&mut client), 1);
    client.query_drop("COMMIT").unwrap();
    is_told_of_the_loss(&mut client);
    world.await_pool(0, 0, 1);
    let mut client = world.client();
    assert_eq!(one(&mut client), 1);
    world.await_pool(1, 0, 2);
    world.drain();
    client.reset().unwrap();
    world.await_pool(0, 0, 2);
    assert_eq!(one(&mut client), 1);
}

#[test]
fn connections_leave_an_address_when_their_servers_name_does() {
    let mut world = World::start(false);
    let mut held = world.client();
    held.query_drop("BEGIN").unwrap();
    assert_eq!(one(&mut world.client()), 1);
    world.await_pool(1, 1, 2);
    world.move_name();
    world.await_pool(1, 0, 2);
    assert_eq!(one(&mut world.client()), 1);
    world.await_pool(1, 1, 3);
    let address = "SELECT statistics ->> '$.address' FROM stats_mysql_free_connections";
    let port = world.server.port_of("sqliteserver").unwrap();
    assert_eq!(world.admin.query::<String, _>(address).unwrap(), [format!("127.0.0.2:{port}")]);
    assert_eq!(one(&mut held), 1, "the transaction goes on where it is");
    held.query_drop("COMMIT").unwrap();
    world.await_pool(0, 1, 3);
    let log = world.proxy.log();
    assert!(log.contains("db.test has left 127.0.0.1: 2 connections are retired"), "{log}");
}

/// The next statement fails with error 2013, and the session ends.
#[track_caller]
fn is_told_of_the_loss(client: &mut Conn) {
    match client.query_drop("SELECT 1") {
        Err(Error::MySqlError(error)) => assert_eq!(error.code, 2013, "{}", error.message),
        other => panic!("{other:?}"),
    }
    assert!(matches!(client.query_drop("SELECT 1"), Err(error) if !matches!(error, Error::MySqlError(_))));
}
