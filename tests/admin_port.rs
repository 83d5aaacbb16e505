//! The admin port of the daemon as a process: its commands, and who gets in where.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};
use pair::{PATIENCE, program};
use rustix::process::Signal;
use std::fs;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use support::{Daemon, client_options, within};
use tempfile::TempDir;

/// A daemon whose traffic goes to its own SQLite3 server, as testuser/testuser.
fn start() -> Daemon {
    let daemon = Daemon::start(program(), &["--sqlite3-server"]);
    let mut admin = admin(&daemon);
    let sqlite = daemon.port_of("sqliteserver").unwrap();
    admin
        .query_drop(format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {sqlite});
             INSERT INTO mysql_users (username, password) VALUES ('testuser', 'testuser');
             LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL USERS TO RUNTIME"
        ))
        .unwrap();
    daemon
}

fn connect(options: OptsBuilder) -> mysql::Result<Conn> {
    Conn::new(options.tcp_connect_timeout(Some(PATIENCE)).read_timeout(Some(PATIENCE)))
}

fn admin(daemon: &Daemon) -> Conn {
    connect(client_options(daemon.port_of("admin").unwrap(), "admin", "admin")).unwrap()
}

fn client(daemon: &Daemon) -> mysql::Result<Conn> {
    connect(client_options(daemon.traffic_port, "testuser", "testuser"))
}

fn through_socket(path: &Path, user: &str, password: &str) -> mysql::Result<Conn> {
    let options = OptsBuilder::default()
        .prefer_socket(false)
        .socket(path.to_str())
        .user(Some(user))
        .pass(Some(password));
    connect(options)
}

fn one(conn: &mut Conn) -> Option<u32> {
    conn.query_first("SELECT 1").unwrap()
}

#[test]
fn a_pause_refuses_new_clients_and_a_stop_ends_old_ones() {
    let daemon = start();
    let mut admin = admin(&daemon);
    let mut old = client(&daemon).unwrap();
    assert_eq!(one(&mut old), Some(1));

    admin.query_drop("PROXYSQL PAUSE").unwrap();
    assert!(admin.query_drop("PROXYSQL PAUSE").is_err());
    assert!(TcpStream::connect(("127.0.0.1", daemon.traffic_port)).is_err());
    assert_eq!(one(&mut old), Some(1), "clients that are there go on");
    admin.query_drop("PROXYSQL RESUME").unwrap();
    assert!(admin.query_drop("PROXYSQL RESUME").is_err());
    assert_eq!(one(&mut client(&daemon).unwrap()), Some(1));

    assert!(admin.query_drop("PROXYSQL START").is_err());
    admin.query_drop("PROXYSQL STOP").unwrap();
    assert!(admin.query_drop("PROXYSQL STOP").is_err());
    assert!(old.query_drop("SELECT 1").is_err());
    assert!(TcpStream::connect(("127.0.0.1", daemon.traffic_port)).is_err());
    admin.query_drop("PROXYSQL START").unwrap();
    assert_eq!(one(&mut client(&daemon).unwrap()), Some(1));
}

#[test]
fn a_restart_begins_anew_from_disk() {
    let daemon = start();
    let mut old = admin(&daemon);
    old.query_drop("SAVE MYSQL USERS TO DISK; SET mysql-max_connections=7; LOAD MYSQL VARIABLES TO RUNTIME")
        .unwrap();
    old.query_drop("PROXYSQL RESTART").unwrap();
    assert!(within(PATIENCE, || old.query_drop("SELECT 1").is_err()));
    assert!(within(PATIENCE, || daemon.port_of("admin").is_some() && daemon.port_of("mysql").is_some()));
    let mut new = admin(&daemon);
    let users: Vec<String> =
        new.query("SELECT username FROM runtime_mysql_users WHERE frontend = 1").unwrap();
    assert_eq!(users, ["testuser"]);
    assert_eq!(new.query_first("SELECT COUNT(*) FROM mysql_servers").unwrap(), Some(0));
    assert_ne!(new.query_first("SELECT @@mysql-max_connections").unwrap(), Some(7));
}

#[test]
fn kill_ends_the_process_as_the_signal_does() {
    let mut daemon = start();
    let _ = admin(&daemon).query_drop("PROXYSQL KILL");
    let status = daemon.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
}

#[test]
fn readers_of_statistics_log_in_with_their_own_credentials() {
    let daemon = start();
    let mut stats = connect(client_options(daemon.admin_port, "stats", "stats")).unwrap();
    assert_eq!(stats.query_first("SELECT DATABASE()").unwrap(), Some("stats".to_owned()));
    let users: Option<String> = stats.query_first("SELECT username FROM stats_mysql_users").unwrap();
    assert_eq!(users.as_deref(), Some("testuser"));
    for sql in ["SELECT * FROM mysql_users", "PROXYSQL SHUTDOWN", "LOAD MYSQL USERS TO RUNTIME"] {
        assert!(stats.query_drop(sql).is_err(), "{sql}");
    }
    admin(&daemon)
        .query_drop("SET admin-stats_credentials='viewer:secret'; LOAD ADMIN VARIABLES TO RUNTIME")
        .unwrap();
    assert!(connect(client_options(daemon.admin_port, "stats", "stats")).is_err());
    assert!(connect(client_options(daemon.admin_port, "viewer", "secret")).is_ok());
}

/// This machine's address on a network, by which it reaches itself as from elsewhere.
fn address_on_a_network() -> Option<String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    // Nothing is sent; the address is one that documentation has.
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    let address = socket.local_addr().unwrap().ip();
    (!address.is_loopback()).then(|| address.to_string())
}

#[test]
fn default_passwords_are_for_this_machine_alone() {
    let Some(address) = address_on_a_network() else {
        eprintln!("SKIPPED: this machine has no address but those of loopback");
        return;
    };
    let daemon = Daemon::start(program(), &["--no-monitor", "--set", "admin-mysql_ifaces=0.0.0.0:0"]);
    let from_elsewhere = |user: &str, password: &str| {
        let options = client_options(daemon.port_of("admin").unwrap(), user, password);
        connect(options.ip_or_hostname(Some(&address)))
    };
    for user in ["admin", "stats"] {
        let refusal = from_elsewhere(user, user).err().unwrap().to_string();
        assert!(refusal.contains("1040") && refusal.contains("locally"), "{user}: {refusal}");
    }
    let mut here = admin(&daemon);
    here.query_drop("SET admin-admin_credentials='admin:changed'; LOAD ADMIN VARIABLES TO RUNTIME").unwrap();
    let mut elsewhere = from_elsewhere("admin", "changed").unwrap();
    assert_eq!(one(&mut elsewhere), Some(1));
    assert!(from_elsewhere("stats", "stats").is_err());
    let (_, log) = daemon.terminate();
    assert!(log.contains("user 'admin' is refused from elsewhere"), "{log}");
}

#[test]
fn unix_sockets_serve_and_go_with_the_daemon() {
    let places = TempDir::new().unwrap();
    let [admin_socket, traffic, sqlite] = ["admin", "traffic", "sqlite"].map(|name| places.path().join(name));
    let mut daemon = start();
    let listen = format!(
        "SET admin-mysql_ifaces='127.0.0.1:0;{}', mysql-interfaces='127.0.0.1:0;{}',
         sqliteserver-mysql_ifaces='127.0.0.1:0;{}'",
        admin_socket.display(),
        traffic.display(),
        sqlite.display()
    );
    let mut conn = admin(&daemon);
    for sql in [
        &listen,
        "LOAD ADMIN VARIABLES TO RUNTIME",
        "LOAD MYSQL VARIABLES TO RUNTIME",
        "LOAD SQLITESERVER VARIABLES TO RUNTIME",
    ] {
        conn.query_drop(sql).unwrap();
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&admin_socket), mode(&traffic)), (0o600, 0o777));
    let mut through = through_socket(&admin_socket, "admin", "admin").unwrap();
    assert_eq!(one(&mut through), Some(1));
    for path in [&traffic, &sqlite] {
        let mut through = through_socket(path, "testuser", "testuser").unwrap();
        assert_eq!(one(&mut through), Some(1));
    }
    let error = through_socket(&traffic, "testuser", "wrong").unwrap_err().to_string();
    assert!(error.contains("'testuser'@'localhost'"), "{error}");
    // Only the password itself proves this one (it is of "sesame"): clients send it through a socket as it is.
    let hash = "24412430304124185E5B253853614B272D7C743A177B4D322B121D44\
                63774E6C696C52674C733276544148667A664B58647A373754326B4E696D766B464E59316E2F56516432";
    let user = format!("INSERT INTO mysql_users (username, password) VALUES ('hashed', '{hash}')");
    for sql in [
        "SET mysql-default_authentication_plugin='caching_sha2_password'",
        "LOAD MYSQL VARIABLES TO RUNTIME",
        &user,
        "LOAD MYSQL USERS TO RUNTIME",
    ] {
        conn.query_drop(sql).unwrap();
    }
    assert!(through_socket(&sqlite, "hashed", "wrong").is_err());
    assert_eq!(one(&mut through_socket(&sqlite, "hashed", "sesame").unwrap()), Some(1));
    let status = daemon.stop(Signal::TERM);
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{}", daemon.log());
    assert_eq!(fs::read_dir(places.path()).unwrap().count(), 0);
}

/// Connects through TLS, to a server with a certificate of that authority.
fn through_tls(port: u16, authority: &Path) -> mysql::Result<Conn> {
    let tls = SslOpts::default().with_root_cert_path(Some(authority.to_owned()));
    connect(
        client_options(port, "admin", "admin").ssl_opts(Some(tls.with_danger_skip_domain_validation(true))),
    )
}

#[test]
fn reload_tls_puts_new_files_in_force_and_keeps_the_old_ones_where_they_are_broken() {
    let (daemon, other) = (start(), start());
    let file = |daemon: &Daemon, name: &str| daemon.datadir().join(format!("pointsman-{name}.pem"));
    let (first, second) = (file(&daemon, "ca"), file(&other, "ca"));
    let mut old = through_tls(daemon.admin_port, &first).unwrap();
    assert!(through_tls(daemon.admin_port, &second).is_err());

    fs::copy(file(&other, "cert"), file(&daemon, "cert")).unwrap();
    let error = old.query_drop("PROXYSQL RELOAD TLS").unwrap_err().to_string();
    assert!(error.contains("pointsman-cert.pem"), "{error}");
    assert!(through_tls(daemon.admin_port, &first).is_ok());

    fs::copy(file(&other, "key"), file(&daemon, "key")).unwrap();
    old.query_drop("PROXYSQL RELOAD TLS").unwrap();
    assert!(through_tls(daemon.admin_port, &second).is_ok());
    assert!(through_tls(daemon.admin_port, &first).is_err());
    assert_eq!(one(&mut old), Some(1), "connections that are open keep theirs");
}

#[test]
fn either_plugin_logs_in_on_the_admin_port() {
    let daemon = start();
    for plugin in ["caching_sha2_password", "mysql_native_password"] {
        let set =
            format!("SET mysql-default_authentication_plugin='{plugin}'; LOAD MYSQL VARIABLES TO RUNTIME");
        admin(&daemon).query_drop(set).unwrap();
        assert_eq!(one(&mut admin(&daemon)), Some(1), "{plugin}");
        assert!(connect(client_options(daemon.admin_port, "admin", "wrong")).is_err(), "{plugin}");
    }
}

#[test]
fn the_admin_port_answers_when_clients_hold_every_other_descriptor() {
    let places = TempDir::new().unwrap();
    let limited = places.path().join("limited");
    let script = format!("#!/bin/sh\nulimit -n 240\nexec '{}' \"$@\"\n", program().display());
    fs::write(&limited, script).unwrap();
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = Daemon::start(&limited, &[]);
    let address = ("127.0.0.1", daemon.traffic_port);
    let _clients: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    let refused =
        "SELECT variable_value FROM stats_mysql_global WHERE variable_name = 'Client_Connections_aborted'";
    let mut first = admin(&daemon);
    assert!(first.query_first::<String, _>(refused).unwrap().is_some());
    let more: Vec<_> = (0..5).map(|_| admin(&daemon)).collect();
    for mut conn in more {
        conn.query_drop("INSERT OR REPLACE INTO mysql_users (username, password) VALUES ('u', 'p')").unwrap();
        conn.query_drop("SAVE MYSQL USERS TO DISK").unwrap();
    }
}
