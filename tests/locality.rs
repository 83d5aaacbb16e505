//! Locality awareness through the real program: a map file tells where two servers are, and which of them answers is counted.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

use mysql::Conn;
use mysql::prelude::Queryable;
use pair::{PATIENCE, client, configure, program, start_server};
use support::{Daemon, within};

const NEAR: &str = "near.cabc.eu-north-1.rds.amazonaws.com";
const FAR: &str = "far.cabc.eu-north-1.rds.amazonaws.com";
/// Statements whose servers are counted.
const STATEMENTS: u32 = 400;

/// A proxy in one zone with a server there and one in another zone.
struct World {
    proxy: Daemon,
    admin: Conn,
    _servers: [Daemon; 2],
}

impl World {
    fn new(provider: bool) -> Self {
        let servers = [start_server(&[]), start_server(&[])];
        for (server, name) in servers.iter().zip([NEAR, FAR]) {
            let mut sqlite = pair::connect(server.port_of("sqliteserver").unwrap(), "testuser", "testuser");
            sqlite.query_drop("CREATE TABLE who (name TEXT)").unwrap();
            sqlite.query_drop(format!("INSERT INTO who VALUES ('{name}')")).unwrap();
        }
        let datadir = tempfile::tempdir().unwrap();
        let (hosts, map) = (datadir.path().join("hosts"), datadir.path().join("map"));
        std::fs::write(&hosts, format!("127.0.0.1 {NEAR} {FAR}\n")).unwrap();
        let places = format!("self eu-north-1 a\n{NEAR} eu-north-1 a\n{FAR} eu-north-1 b\n");
        std::fs::write(&map, places).unwrap();
        let (hosts, map) = (hosts.to_str().unwrap().to_owned(), format!("file:{}", map.to_str().unwrap()));
        let mut arguments = vec!["--no-monitor", "--hosts-file", &hosts];
        if provider {
            arguments.extend(["--locality-provider", &map]);
        }
        let proxy = Daemon::start_in(datadir, program(), &arguments);
        let ports = servers.each_ref().map(|server| server.port_of("sqliteserver").unwrap());
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
        Self { proxy, admin, _servers: servers }
    }
    fn switch(&mut self, on: bool) {
        self.admin.query_drop(format!("SET mysql-aws_locality_awareness={on}")).unwrap();
        self.admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
    }
    fn rows(&mut self, sql: &str) -> Vec<(String, String, String, Option<f64>)> {
        self.admin.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
    /// Which part of statements the near server answers. Each client is new, and so has no server of its own yet.
    fn share_of_near(&self) -> f64 {
        let near = (0..STATEMENTS).filter(|_| {
            let name: Option<String> = client(&self.proxy).query_first("SELECT name FROM who").unwrap();
            name.as_deref() == Some(NEAR)
        });
        f64::from(u32::try_from(near.count()).unwrap()) / f64::from(STATEMENTS)
    }
}

#[test]
fn the_server_in_the_proxys_zone_answers_more_while_it_is_on() {
    let mut world = World::new(true);
    let states = "SELECT srv_host, state, zone, multiplier FROM stats_mysql_aws_locality";
    let state = |host: &str, state: &str, zone: &str, factor| {
        (host.to_owned(), state.to_owned(), zone.to_owned(), factor)
    };
    assert_eq!(
        world.rows(states),
        [
            state("", "disabled", "", None),
            state(FAR, "disabled", "", Some(1.0)),
            state(NEAR, "disabled", "", Some(1.0)),
        ]
    );
    let off = world.share_of_near();
    assert!((0.35..0.65).contains(&off), "{off}, not about a half");
    world.switch(true);
    let expected = [
        state("", "fresh", "a", None),
        state(FAR, "fresh", "b", Some(1.0)),
        state(NEAR, "fresh", "a", Some(9.0)),
    ];
    assert!(within(PATIENCE, || world.rows(states) == expected), "{:?}", world.rows(states));
    let on = world.share_of_near();
    assert!((0.8..0.97).contains(&on), "{on}, not about 0.9");
    let weights = "SELECT DISTINCT weight FROM runtime_mysql_servers";
    assert_eq!(world.admin.query::<u32, _>(weights).unwrap(), [100], "rows stay as they are");
    world.switch(false);
    let off = world.share_of_near();
    assert!((0.35..0.65).contains(&off), "{off}, not about a half");
}

#[test]
fn without_a_provider_there_is_no_table_and_the_log_says_why() {
    let mut world = World::new(false);
    world.switch(true);
    assert!(within(PATIENCE, || world.proxy.log().contains("provider_unavailable")));
    let error = world.admin.query_drop("SELECT * FROM stats_mysql_aws_locality").unwrap_err().to_string();
    assert!(error.contains("no such table"), "{error}");
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
}
