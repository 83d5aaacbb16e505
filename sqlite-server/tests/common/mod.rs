//! A server on a free port of every loopback address, and clients of it.
#![allow(dead_code, reason = "each test binary uses what it needs")]

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};
use sqlite_server::SqliteServer;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tempfile::TempDir;
use wire::auth::{Account, Accounts, AuthPlugin, StoredPassword};
use wire::login::ServerOptions;
use wire::service::{Address, Service, ServiceSpec};
use wire::tls::ServerTls;

/// An address that no test takes for a backend.
pub const LOCAL: &str = "127.0.0.1";

/// Made once, since making keys takes longer than most tests.
static TLS: LazyLock<ServerTls> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    ServerTls::load_or_create(directory.path()).unwrap()
});

/// Of these each, whose password is the name.
const USERS: [&str; 2] = ["testuser", "other"];

struct TwoUsers;

impl Accounts for TwoUsers {
    fn find(&self, user: &str) -> Option<Account> {
        USERS.contains(&user).then(|| Account::new(StoredPassword::parse(user)))
    }
}

pub struct TestServer {
    service: Service,
    port: u16,
    pub directory: TempDir,
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    pub fn start_in(directory: TempDir) -> Self {
        let server = SqliteServer::open(directory.path()).unwrap();
        let options = ServerOptions {
            server_version: "8.0.0-test".into(),
            default_plugin: AuthPlugin::Native,
            capabilities: wire::login::CAPABILITIES,
            compress: true,
            offer_tls: true,
            tls: Some(TLS.clone()),
            timeout: Duration::from_secs(10),
        };
        let service = Service::new(
            ServiceSpec { name: "sqlite", stack: 2 << 20 },
            Arc::new(|| 100),
            Arc::new(move |accepted| server.serve(accepted, &options, &TwoUsers)),
        );
        let port = service.listen("0.0.0.0:0".parse().unwrap()).unwrap().port();
        Self { service, port, directory }
    }

    /// Listens on one more address.
    pub fn listen_at(&self, address: &Address) -> Address {
        self.service.listen_at(address).unwrap()
    }

    /// A connection through a unix socket.
    pub fn connect_unix(&self, path: &Path) -> Conn {
        Conn::new(self.options(LOCAL).socket(path.to_str())).unwrap()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn options(&self, ip: &str) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some(ip))
            .tcp_port(self.port)
            .user(Some("testuser"))
            .pass(Some("testuser"))
            .prefer_socket(false)
            .read_timeout(Some(Duration::from_secs(30)))
    }

    pub fn connect(&self, ip: &str) -> Conn {
        Conn::new(self.options(ip)).unwrap()
    }

    pub fn connect_tls(&self, ip: &str) -> Conn {
        let tls = SslOpts::default()
            .with_danger_accept_invalid_certs(true)
            .with_danger_skip_domain_validation(true);
        Conn::new(self.options(ip).ssl_opts(Some(tls))).unwrap()
    }

    /// Stops serving and hands back the data directory.
    pub fn stop(self) -> TempDir {
        self.service.stop(Duration::from_secs(2));
        self.directory
    }
}

/// Code, SQLSTATE and text of the error a statement is answered with.
pub fn error_of(client: &mut Conn, sql: &str) -> (u16, String, String) {
    // Rows are read, since an error may come behind some.
    match client.query::<mysql::Row, _>(sql) {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.state, error.message),
        other => panic!("{sql}: {other:?} instead of an error packet"),
    }
}

/// The only value of the only row.
pub fn value_of(client: &mut Conn, sql: &str) -> String {
    client.query_first::<String, _>(sql).unwrap().unwrap_or_else(|| panic!("no row for {sql}"))
}
