//! The servers, the daemon configured for them, and connections to both.

use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::daemon::{Daemon, client_options};
use crate::servers::{Kind, Servers};

pub const PASSWORD: &str = "app-secret";

/// One way through the daemon: a user whose statements all go to one server.
#[derive(Debug)]
pub struct Route {
    pub user: &'static str,
    pub hostgroup: u16,
    pub kind: Kind,
    pub use_ssl: bool,
    pub compression: bool,
}

pub const MYSQL: Route =
    Route { user: "app_plain", hostgroup: 10, kind: Kind::MySql, use_ssl: false, compression: false };
pub const MYSQL_TLS: Route = Route { user: "app_tls", hostgroup: 11, use_ssl: true, ..MYSQL };
pub const MARIADB: Route = Route { user: "app_maria", hostgroup: 20, kind: Kind::MariaDb, ..MYSQL };
/// zstd, inside TLS.
pub const MYSQL_ZSTD: Route = Route { user: "app_zstd", hostgroup: 15, compression: true, ..MYSQL_TLS };
/// zlib.
pub const MARIADB_ZLIB: Route = Route { user: "app_zlib", hostgroup: 25, compression: true, ..MARIADB };
pub const ROUTES: [Route; 5] = [MYSQL, MYSQL_TLS, MARIADB, MYSQL_ZSTD, MARIADB_ZLIB];

pub struct Lab {
    pub daemon: Daemon,
    pub servers: Servers,
}

impl Lab {
    /// `None` where the real servers are missing.
    pub fn start() -> Option<Self> {
        let servers = Servers::start()?;
        let lab = Self { daemon: Daemon::start(Path::new(env!("CARGO_BIN_EXE_pointsman")), &[]), servers };
        for route in &ROUTES {
            lab.add(route);
        }
        Some(lab)
    }

    /// Creates the route's account on its server, which nobody has used yet, and tells the daemon of both.
    pub fn add(&self, route: &Route) {
        self.add_at(route, self.servers.port(route.kind));
    }

    /// The same for a server that the daemon is to reach at `port`.
    pub fn add_at(&self, route: &Route, port: u16) {
        let Route { user, hostgroup, kind, use_ssl, compression } = route;
        let mut dba = self.servers.dba(*kind);
        dba.query_drop(format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'")).unwrap();
        dba.query_drop(format!("GRANT ALL ON app.* TO '{user}'@'%'")).unwrap();
        let (use_ssl, compression) = (u8::from(*use_ssl), u8::from(*compression));
        let mut admin = self.admin();
        for statement in [
            format!(
                "INSERT INTO mysql_servers (hostgroup_id, hostname, port, use_ssl, compression) \
                 VALUES ({hostgroup}, '127.0.0.1', {port}, {use_ssl}, {compression})"
            ),
            format!(
                "INSERT INTO mysql_users (username, password, default_hostgroup) \
                 VALUES ('{user}', '{PASSWORD}', {hostgroup})"
            ),
            "LOAD MYSQL SERVERS TO RUNTIME".to_owned(),
            "LOAD MYSQL USERS TO RUNTIME".to_owned(),
        ] {
            admin.query_drop(statement).unwrap();
        }
    }

    pub fn admin(&self) -> Conn {
        connect(client(self.daemon.admin_port, "admin", "admin"))
    }

    /// Options of a client of `route` that connects to `port`: the daemon's, the server's or a relay's.
    pub fn client_of(&self, route: &Route, port: u16) -> OptsBuilder {
        client(port, route.user, PASSWORD).db_name(Some("app"))
    }

    /// A connection through the daemon.
    pub fn through(&self, route: &Route) -> Conn {
        connect(self.client_of(route, self.daemon.traffic_port))
    }

    /// Ends the daemon, which must end cleanly, and returns its log.
    pub fn stop(self) -> String {
        let (status, log) = self.daemon.terminate();
        assert!(status.is_some_and(|status| status.success()), "the daemon ended with {status:?}:\n{log}");
        log
    }
}

/// Options of a client without TLS that never waits for ever.
pub fn client(port: u16, user: &str, password: &str) -> OptsBuilder {
    client_options(port, user, password)
        .tcp_connect_timeout(Some(Duration::from_secs(10)))
        .read_timeout(Some(Duration::from_secs(60)))
        .write_timeout(Some(Duration::from_secs(60)))
}

pub fn connect(options: OptsBuilder) -> Conn {
    Conn::new(options).unwrap()
}
