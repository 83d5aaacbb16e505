//! Sessions over real sockets: the `mysql` crate before them, fake servers behind.

mod attributes;
mod failures;
mod fake;
mod leases;
mod limits;
mod raw;
mod resets;
mod statements;
mod straight;
mod variables;

use super::*;
use crate::dns::Dns;
use crate::hostgroups::Endpoint;
use crate::testing::{eventually, server_options};
use admin::Value;
use admin::Variables;
use admin::rows::{ServerRow, ServersConfig, UserRow};
use fake::{Fake, Users};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use wire::service::{Service, ServiceSpec};

/// A proxy before one fake, in hostgroup 0.
struct World {
    fake: Fake,
    config: Arc<Config>,
    backends: Arc<Backends>,
    sessions: Arc<Sessions>,
    registry: Arc<Registry>,
    front: Service,
    address: SocketAddr,
}

impl World {
    fn new() -> Self {
        Self::with(1000, |_| {})
    }
    fn with(max_connections: u32, change: impl FnOnce(&mut Variables)) -> Self {
        let mut variables = Variables {
            connect_timeout_server: Duration::from_secs(5),
            free_connections_pct: 100,
            ..Variables::default()
        };
        change(&mut variables);
        let config = Arc::new(Config::new(variables));
        config.set_users(&["app", "other", "nobody"].map(user));
        let backends = Arc::new(Backends::new(Arc::clone(&config), Dns::new(Arc::clone(&config), None)));
        let fake = Fake::start();
        let servers = vec![server(&fake, max_connections)];
        backends.update(|hostgroups| hostgroups.load(&ServersConfig { servers, ..Default::default() }));
        let sessions = Arc::new(Sessions::new(Arc::clone(&config), Arc::clone(&backends), Arc::default()));
        let (registry, served) = (Arc::clone(sessions.registry()), Arc::clone(&sessions));
        let options = ServerOptions { capabilities: CAPABILITIES, ..server_options(None) };
        let handler = move |accepted| served.serve(accepted, &options, &Everybody);
        let spec = ServiceSpec { name: "front", stack: 256 << 10 };
        let front = Service::new(spec, Arc::new(|| 1000), Arc::new(handler));
        let address = front.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { fake, config, backends, sessions, registry, front, address }
    }
    fn client(&self) -> Conn {
        self.client_as("app", None)
    }
    fn client_as(&self, user: &str, schema: Option<&str>) -> Conn {
        Conn::new(self.options_of(user, schema)).unwrap()
    }
    fn options_of(&self, user: &str, schema: Option<&str>) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some(self.address.ip().to_string()))
            .tcp_port(self.address.port())
            .user(Some(user))
            .pass(Some(user))
            .db_name(schema)
            .prefer_socket(false)
            .tcp_connect_timeout(Some(Duration::from_secs(10)))
            .read_timeout(Some(Duration::from_secs(20)))
            .max_allowed_packet(Some(64 << 20))
    }
    fn endpoint(&self) -> Endpoint {
        let address = self.fake.address;
        Endpoint::new(&address.ip().to_string(), address.port())
    }
    /// A number of stats_mysql_global.
    fn total(&self, name: &str) -> u64 {
        let figures = self.sessions.global_figures(self.front.refused().load(Ordering::Relaxed));
        figures.into_iter().find(|(known, _)| *known == name).unwrap().1
    }
    /// A column of the pool's row.
    fn pool(&self, column: usize) -> i64 {
        match self.backends.connection_pool_rows().first().map(|row| row[column].clone()) {
            Some(Value::Int(value)) => value,
            _ => 0,
        }
    }
    fn used(&self) -> i64 {
        self.pool(4)
    }
    fn free(&self) -> i64 {
        self.pool(5)
    }
    /// Waits until so many connections are used and free: the answer reaches the client before the connection its pool.
    fn await_pool(&self, used: i64, free: i64) {
        eventually(&format!("{used} used and {free} free"), || (self.used(), self.free()) == (used, free));
    }
    /// Takes the server out of use, or back.
    fn set_usable(&self, usable: bool) {
        self.backends.update(|hostgroups| match usable {
            true => hostgroups.unshun_aws_bgd(0, &self.endpoint()),
            false => hostgroups.shun_aws_bgd(0, &self.endpoint()),
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.backends.close();
        self.front.stop(Duration::from_secs(5));
    }
}

/// The proxy's own accounts: as the fakes', with nobody let in whom they refuse.
struct Everybody;

impl wire::auth::Accounts for Everybody {
    fn find(&self, user: &str) -> Option<wire::auth::Account> {
        let password = wire::auth::StoredPassword::Clear(user.to_owned());
        Users.find(user).or(Some(wire::auth::Account::new(password)))
    }
}

fn user(name: &str) -> UserRow {
    UserRow::new(name, name)
}

fn server(fake: &Fake, max_connections: u32) -> ServerRow {
    ServerRow { max_connections, ..ServerRow::new(0, fake.address.ip().to_string(), fake.address.port()) }
}

/// The one value that a statement answers with.
fn value(client: &mut Conn, sql: &str) -> String {
    client.query_first(sql).unwrap().unwrap()
}

/// Code and text of the ERR packet a statement is answered with.
fn refused(client: &mut Conn, sql: &str) -> (u16, String) {
    match client.query_drop(sql) {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.message),
        other => panic!("{sql}: {other:?}"),
    }
}
