//! Connections to daemons as processes, and two of these as a pair: one is the proxy, the SQLite3 server of the other is the server
//! behind it.

use crate::support::{Daemon, client_options, within};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pointsman"))
}

pub fn try_connect(port: u16, user: &str, password: &str) -> Result<Conn, mysql::Error> {
    let options = client_options(port, user, password);
    Conn::new(options.tcp_connect_timeout(Some(PATIENCE)).read_timeout(Some(PATIENCE)))
}

pub fn connect(port: u16, user: &str, password: &str) -> Conn {
    try_connect(port, user, password).unwrap()
}

pub fn configure(daemon: &Daemon, statements: &[&str]) -> Conn {
    let mut admin = connect(daemon.admin_port, "admin", "admin");
    for statement in statements {
        admin.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    admin
}

/// A server that lets testuser in, and monitor.
pub fn start_server(arguments: &[&str]) -> Daemon {
    let server = Daemon::start(program(), &[&["--sqlite3-server", "--no-monitor"], arguments].concat());
    configure(
        &server,
        &[
            "INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser'), ('monitor', 'monitor')",
            "LOAD MYSQL USERS TO RUNTIME",
        ],
    );
    server
}

/// A proxy with one server in hostgroup 0 and nothing that watches it, and the proxy's admin connection.
pub fn start_proxy(server_port: u16, variables: &[&str]) -> (Daemon, Conn) {
    start_proxy_with(server_port, &["--no-monitor"], variables)
}

/// The same with a monitor.
pub fn start_watching_proxy(server_port: u16, variables: &[&str]) -> (Daemon, Conn) {
    start_proxy_with(server_port, &[], variables)
}

fn start_proxy_with(server_port: u16, arguments: &[&str], variables: &[&str]) -> (Daemon, Conn) {
    let set: Vec<&str> = variables.iter().flat_map(|variable| ["--set", variable]).collect();
    let proxy = Daemon::start(program(), &[arguments, &set].concat());
    let server = format!(
        "INSERT INTO mysql_servers(hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {server_port})"
    );
    let admin = configure(
        &proxy,
        &[
            "INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser')",
            "LOAD MYSQL USERS TO RUNTIME",
            &server,
            "LOAD MYSQL SERVERS TO RUNTIME",
        ],
    );
    (proxy, admin)
}

/// A connection of testuser through the proxy.
pub fn client(proxy: &Daemon) -> Conn {
    connect(proxy.traffic_port, "testuser", "testuser")
}

/// Waits until a question to the admin interface is answered with 1.
pub fn eventually(admin: &mut Conn, question: &str) {
    let came = within(PATIENCE, || admin.query_first::<i64, _>(question).unwrap() == Some(1));
    assert!(came, "never came true: {question}");
}
