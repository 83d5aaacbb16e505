//! A proxy in one zone with a server there and one in another zone, as processes; which of them answers is counted.

use crate::pair::{client, configure, connect, program, start_server};
use crate::support::Daemon;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::Path;

pub const NEAR: &str = "near.cabc.eu-north-1.rds.amazonaws.com";
pub const FAR: &str = "far.cabc.eu-north-1.rds.amazonaws.com";
/// Statements whose servers are counted.
const STATEMENTS: u32 = 400;
/// What stats_mysql_aws_locality says of a server: its name, the state, the zone, the multiplier.
pub type Place = (String, String, String, Option<f64>);

pub fn place(host: &str, state: &str, zone: &str, multiplier: Option<f64>) -> Place {
    (host.to_owned(), state.to_owned(), zone.to_owned(), multiplier)
}

/// The proxy, its admin connection, and the servers.
pub struct World {
    pub proxy: Daemon,
    pub admin: Conn,
    _servers: Vec<Daemon>,
}

impl World {
    /// `arguments` get the proxy's data directory and say who tells where servers are.
    pub fn new(arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        Self::with(arguments, &[])
    }
    /// The same with variables of the proxy's environment.
    pub fn with(arguments: impl FnOnce(&Path) -> Vec<String>, variables: &[(String, String)]) -> Self {
        let servers = [start_server(&[]), start_server(&[])];
        for (server, name) in servers.iter().zip([NEAR, FAR]) {
            let mut sqlite = connect(server.port_of("sqliteserver").unwrap(), "testuser", "testuser");
            sqlite.query_drop("CREATE TABLE who (name TEXT)").unwrap();
            sqlite.query_drop(format!("INSERT INTO who VALUES ('{name}')")).unwrap();
        }
        let ports = servers.each_ref().map(|server| server.port_of("sqliteserver").unwrap());
        let Self { proxy, admin, .. } = Self::with_ports(ports, arguments, variables);
        Self { proxy, admin, _servers: servers.into() }
    }
    /// The proxy alone: nobody listens where its servers should be.
    pub fn without_servers(arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        Self::with_ports([1, 1], arguments, &[])
    }
    fn with_ports(
        ports: [u16; 2],
        arguments: impl FnOnce(&Path) -> Vec<String>,
        variables: &[(String, String)],
    ) -> Self {
        let datadir = tempfile::tempdir().unwrap();
        let hosts = datadir.path().join("hosts");
        std::fs::write(&hosts, format!("127.0.0.1 {NEAR} {FAR}\n")).unwrap();
        let provider = arguments(datadir.path());
        let mut arguments = vec!["--no-monitor", "--hosts-file", hosts.to_str().unwrap()];
        arguments.extend(provider.iter().map(String::as_str));
        let proxy = Daemon::start_with(datadir, program(), &arguments, variables);
        let admin = configure(
            &proxy,
            &[
                "INSERT INTO mysql_users(username, password) VALUES ('testuser', 'testuser')",
                "LOAD MYSQL USERS TO RUNTIME",
                &format!(
                    "INSERT INTO mysql_servers(hostgroup_id, hostname, port, weight) VALUES \
                     (0, '{NEAR}', {}, 100), (0, '{FAR}', {}, 100)",
                    ports[0], ports[1]
                ),
                "INSERT INTO mysql_hostgroup_attributes(hostgroup_id, hostgroup_settings) VALUES (0, \
                 '{\"aws\":{\"locality_awareness\":{\"same_region_multiplier\":1.0,\"same_az_multiplier\":9.0}}}')",
                "LOAD MYSQL SERVERS TO RUNTIME",
            ],
        );
        Self { proxy, admin, _servers: Vec::new() }
    }
    pub fn switch(&mut self, on: bool) {
        self.admin.query_drop(format!("SET mysql-aws_locality_awareness={on}")).unwrap();
        self.admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
    }
    /// The proxy, then the servers.
    pub fn places(&mut self) -> Vec<Place> {
        self.admin.query("SELECT srv_host, state, zone, multiplier FROM stats_mysql_aws_locality").unwrap()
    }
    /// Which part of statements the near server answers. Each client is new, and so has no server of its own yet.
    pub fn share_of_near(&self) -> f64 {
        let near = (0..STATEMENTS).filter(|_| {
            let name: Option<String> = client(&self.proxy).query_first("SELECT name FROM who").unwrap();
            name.as_deref() == Some(NEAR)
        });
        f64::from(u32::try_from(near.count()).unwrap()) / f64::from(STATEMENTS)
    }
}
