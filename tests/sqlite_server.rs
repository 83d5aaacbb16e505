//! The SQLite3 server of a running daemon: where it listens, and what its variables change.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use pair::{PATIENCE, connect, start_server};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use support::Daemon;
use tempfile::TempDir;

/// The addresses that the server is bound to, as DATADIR/ports tells them.
fn addresses(daemon: &Daemon) -> Vec<String> {
    let ports = fs::read_to_string(daemon.datadir().join("ports")).unwrap();
    ports.lines().filter_map(|line| line.strip_prefix("sqliteserver ")).map(str::to_owned).collect()
}

/// Listens where the list says.
fn listen(admin: &mut Conn, list: &str) -> mysql::Result<()> {
    admin.query_drop(format!("SET sqliteserver-mysql_ifaces='{list}'"))?;
    admin.query_drop("LOAD SQLITESERVER VARIABLES TO RUNTIME")
}

/// A connection to an address of either kind.
fn reach(address: &str) -> mysql::Result<Conn> {
    let options = OptsBuilder::default().user(Some("testuser")).pass(Some("testuser")).prefer_socket(false);
    let options = match address.parse::<SocketAddr>() {
        Ok(tcp) => options.ip_or_hostname(Some(tcp.ip().to_string())).tcp_port(tcp.port()),
        Err(_) => options.socket(Some(address)),
    };
    Conn::new(options.tcp_connect_timeout(Some(PATIENCE)).read_timeout(Some(PATIENCE)))
}

fn answers(address: &str) -> bool {
    reach(address).is_ok_and(|mut client| client.query_first("SELECT 7").unwrap() == Some(7))
}

fn admin(daemon: &Daemon) -> Conn {
    connect(daemon.admin_port, "admin", "admin")
}

#[test]
fn it_listens_where_its_variable_says_from_one_load_to_the_next() {
    let daemon = start_server(&[]);
    let mut admin = admin(&daemon);
    let first = addresses(&daemon);
    let mut client = reach(&first[0]).unwrap();

    let places = TempDir::new().unwrap();
    let socket = places.path().join("sock");
    listen(&mut admin, &format!("127.0.0.1:0; [::1]:0 ;{};127.0.0.2:0", socket.display())).unwrap();
    let second = addresses(&daemon);
    assert_eq!(second.len(), 4, "{second:?}");
    assert_eq!(second[0], first[0], "an address that stays is not bound anew");
    assert!(second.iter().all(|address| answers(address)), "{second:?}");

    listen(&mut admin, "127.0.0.3:0").unwrap();
    let third = addresses(&daemon);
    assert!(third.len() == 1 && answers(&third[0]), "{third:?}");
    assert!(
        !second.iter().any(|address| answers(address)) && !socket.exists(),
        "what is not named is closed"
    );
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7), "clients go on whose address is closed");

    listen(&mut admin, "").unwrap();
    assert_eq!((addresses(&daemon), answers(&third[0])), (Vec::new(), false));
    listen(&mut admin, "127.0.0.1:0").unwrap();
    assert!(answers(&addresses(&daemon)[0]));
}

/// Everything is as it was: the addresses, who answers there, the client that is there, and the variable in force.
fn assert_unharmed(daemon: &Daemon, before: &[String], client: &mut Conn, in_force: &str) {
    assert_eq!(addresses(daemon), before);
    assert!(before.iter().all(|address| answers(address)), "{before:?}");
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7));
    let variable =
        "SELECT variable_value FROM runtime_global_variables WHERE variable_name='sqliteserver-mysql_ifaces'";
    assert_eq!(admin(daemon).query_first::<String, _>(variable).unwrap().as_deref(), Some(in_force));
}

#[test]
fn an_address_that_cannot_be_had_is_named_and_costs_nothing() {
    let daemon = start_server(&[]);
    let mut admin = admin(&daemon);
    let in_force = "127.0.0.1:0;127.0.0.2:0";
    listen(&mut admin, in_force).unwrap();
    let before = addresses(&daemon);
    let mut client = reach(&before[0]).unwrap();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = (taken.local_addr().unwrap().to_string(), taken);
    for refused in [&*taken.0, "192.0.2.1:0", "/proc/no/such/directory/sock"] {
        let error = listen(&mut admin, &format!("127.0.0.3:0;{refused}")).unwrap_err().to_string();
        assert!(error.contains(refused) && error.contains("sqliteserver-mysql_ifaces"), "{error}");
        assert_unharmed(&daemon, &before, &mut client, in_force);
    }
    assert!(TcpStream::connect(&taken.0).is_ok(), "the other program goes on");
    drop(taken.1);
    listen(&mut admin, &taken.0).unwrap();
    assert!(answers(&taken.0));
}

#[test]
fn a_list_that_cannot_be_read_is_refused_where_it_is_set() {
    let daemon = start_server(&[]);
    let mut admin = admin(&daemon);
    let before = addresses(&daemon);
    let mut client = reach(&before[0]).unwrap();
    for bad in [
        "nonsense",
        "127.0.0.1:0;[::1",
        "127.0.0.1:0,127.0.0.2:0",
        "127.0.0.1:65536",
        "::1:6030",
        "localhost:6030",
        "sock",
    ] {
        let error = listen(&mut admin, bad).unwrap_err().to_string();
        assert!(error.contains("sqliteserver-mysql_ifaces"), "{bad}: {error}");
        assert_unharmed(&daemon, &before, &mut client, "127.0.0.1:0");
    }
    // Past the check of SET, as a row.
    let update = "UPDATE global_variables SET variable_value='nonsense' WHERE variable_name='sqliteserver-mysql_ifaces'";
    admin.query_drop(update).unwrap();
    let error = admin.query_drop("LOAD SQLITESERVER VARIABLES TO RUNTIME").unwrap_err().to_string();
    assert!(error.contains("sqliteserver-mysql_ifaces") && error.contains("nonsense"), "{error}");
    assert_unharmed(&daemon, &before, &mut client, "127.0.0.1:0");
}

#[test]
fn read_only_is_stored_and_refuses_nothing() {
    let daemon = start_server(&[]);
    let mut admin = admin(&daemon);
    for sql in [
        "SET sqliteserver-read_only=true",
        "LOAD SQLITESERVER VARIABLES TO RUNTIME",
        "SAVE SQLITESERVER VARIABLES TO DISK",
    ] {
        admin.query_drop(sql).unwrap();
    }
    assert_eq!(admin.query_first("SELECT @@sqliteserver-read_only").unwrap(), Some("true".to_owned()));
    let mut client = reach(&addresses(&daemon)[0]).unwrap();
    client.query_drop("CREATE TABLE t (i)").unwrap();
    client.query_drop("INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(client.affected_rows(), 1);
}

#[test]
fn a_login_is_one_of_mysql_users_with_and_without_tls() {
    let daemon = start_server(&[]);
    let address: SocketAddr = addresses(&daemon)[0].parse().unwrap();
    let options = |password: &str| {
        support::client_options(address.port(), "testuser", password).read_timeout(Some(PATIENCE))
    };
    let authority = daemon.datadir().join("pointsman-ca.pem");
    let tls = mysql::SslOpts::default()
        .with_root_cert_path(Some(authority))
        .with_danger_skip_domain_validation(true);
    let mut client = Conn::new(options("testuser").ssl_opts(Some(tls.clone()))).unwrap();
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7));
    assert!(Conn::new(options("wrong").ssl_opts(Some(tls))).is_err());
    assert!(Conn::new(options("wrong")).is_err());
    let mut admin = admin(&daemon);
    admin.query_drop("UPDATE mysql_users SET active=0").unwrap();
    admin.query_drop("LOAD MYSQL USERS TO RUNTIME").unwrap();
    assert!(Conn::new(options("testuser")).is_err());
}
