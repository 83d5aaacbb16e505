//! The pool with one server behind it, on the loopback, and clients before it.

use mysql::{Conn, OptsBuilder};
use parking_lot::Mutex;
use pointsman::config::Config;
use pointsman::dns::Dns;
use pointsman::hostgroups::Endpoint;
use pointsman::pool::{Backends, Identity, Lease, Offer, Processor, Profile, TRUSTED_IDLE, Ticket, Want};
use pointsman::session::{CAPABILITIES, Sessions};
use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tap::connection::EFFECT_TIMEOUT;
use wire::auth::{Account, Accounts, AuthPlugin, Secret, StoredPassword};
use wire::login::{ServerOptions, login};
use wire::reply::{Column, Reply};
use wire::serve::{Entrance, QueryHandler, serve};
use wire::service::{Accepted, Service, ServiceSpec};
use wire::{CapabilityFlags, SqlError, StatusFlags, UTF8MB4_GENERAL_CI, WireError};

/// Long enough for any machine; what succeeds does not wait for it.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);
const HOSTGROUP: u32 = 0;
const USER: &str = "app";
const PASSWORD: &str = "secret";

/// How a check ends that cannot be made.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The pool, its server and its clients' port.
pub struct World {
    pub backends: Arc<Backends>,
    config: Arc<Config>,
    seen: Arc<Seen>,
    endpoint: Endpoint,
    front: Service,
    address: SocketAddr,
    _server: Service,
}

/// What the server sees.
#[derive(Default)]
struct Seen {
    /// Ids of open connections
    open: Mutex<BTreeSet<u32>>,
    /// How often one was reset
    resets: AtomicUsize,
}

impl World {
    /// `multiplexing`: whether sessions give connections back after each statement.
    pub fn new(multiplexing: bool) -> Outcome<Self> {
        let seen = Arc::new(Seen::default());
        let (server, endpoint) = start_server(&seen)?;
        let variables = admin::Variables { multiplexing, free_connections_pct: 100, ..Default::default() };
        let config = Arc::new(Config::new(variables));
        config.set_users(&[admin::rows::UserRow::new(USER, PASSWORD)]);
        let backends = Arc::new(Backends::new(Arc::clone(&config), Dns::new(Arc::clone(&config), None)));
        let row = admin::rows::ServerRow::new(HOSTGROUP, endpoint.host.to_string(), endpoint.port);
        let servers = admin::rows::ServersConfig { servers: vec![row], ..Default::default() };
        backends.update(|hostgroups| hostgroups.load(&servers));
        let sessions = Sessions::new(Arc::clone(&config), Arc::clone(&backends), Arc::default());
        let handler = move |accepted| sessions.serve(accepted, &options(CAPABILITIES), &Everybody);
        let front = Service::new(ServiceSpec { name: "front", stack: 256 << 10 }, limit(), Arc::new(handler));
        let address = front.listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self { backends, config, seen, endpoint, front, address, _server: server })
    }

    /// Retires every connection there is.
    pub fn drain(&self) {
        self.backends.drain(&self.endpoint);
    }

    /// A connection of the pool, and whether it was there already.
    pub fn lease(&self) -> Outcome<(Lease<'_>, bool)> {
        match self.offer()? {
            Offer::Ready(lease) => Ok((lease, true)),
            Offer::Open(ticket) => Ok((self.open(ticket)?, false)),
        }
    }

    /// The right to a connection that is still to be opened.
    pub fn ticket(&self) -> Outcome<Ticket<'_>> {
        match self.offer()? {
            Offer::Open(ticket) => Ok(ticket),
            Offer::Ready(_) => Err("a connection was free".into()),
        }
    }

    fn offer(&self) -> Outcome<Offer<'_>> {
        let offer =
            self.backends.lease(HOSTGROUP, &want(), &self.config.variables(), Instant::now(), TRUSTED_IDLE);
        offer.map_err(|refusal| format!("{refusal:?}").into())
    }

    /// Opens the connection.
    pub fn open<'a>(&self, ticket: Ticket<'a>) -> Outcome<Lease<'a>> {
        Ok(ticket.open(&want(), soon()).map_err(|failure| failure.error)?)
    }

    /// COM_RESET_CONNECTION, and how often the server has had it.
    pub fn reset(&self, lease: &mut Lease<'_>) -> Outcome<usize> {
        lease.reset(UTF8MB4_GENERAL_CI.into(), soon())?;
        Ok(self.seen.resets.load(Ordering::Relaxed))
    }

    /// Gives a connection back to the pool.
    pub fn release(&self, lease: Lease<'_>) {
        lease.release(Instant::now(), &self.config.variables());
    }

    /// Takes the connection again that was last used under this id.
    pub fn reclaim(&self, id: pointsman::pool::SlotId) -> Option<Lease<'_>> {
        self.backends.reclaim(HOSTGROUP, id)
    }

    /// How many connections are used, and free.
    pub fn pooled(&self) -> (usize, usize) {
        let servers = self.backends.servers(false);
        (servers.iter().map(|server| server.used).sum(), servers.iter().map(|server| server.free).sum())
    }

    /// Waits until so many connections are used and free, and the server has no others open.
    pub fn settles(&self, used: usize, free: usize) -> bool {
        let settled = || self.pooled() == (used, free) && self.seen.open.lock().len() == used + free;
        let deadline = Instant::now() + EFFECT_TIMEOUT;
        while !settled() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        settled()
    }

    /// A client of the traffic port.
    pub fn client(&self) -> Outcome<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(self.address.ip().to_string()))
            .tcp_port(self.address.port())
            .user(Some(USER))
            .pass(Some(PASSWORD))
            .prefer_socket(false)
            .read_timeout(Some(PATIENCE))
            .max_allowed_packet(Some(64 << 20));
        Ok(Conn::new(options)?)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.backends.close();
        self.front.stop(PATIENCE);
    }
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

fn limit() -> Arc<dyn Fn() -> usize + Send + Sync> {
    Arc::new(|| 100)
}

fn want() -> Want {
    let identity =
        Arc::new(Identity::new(USER, Secret::Clear(PASSWORD.to_owned()), CapabilityFlags::empty()));
    let profile = Arc::new(Profile::login(None, UTF8MB4_GENERAL_CI.into()));
    Want { identity, profile, ahead: None, last: None, processor: Processor::default(), session: 0 }
}

fn options(capabilities: CapabilityFlags) -> ServerOptions {
    ServerOptions {
        server_version: "8.4.0".into(),
        default_plugin: AuthPlugin::Native,
        capabilities,
        tls: None,
        offer_tls: false,
        compress: false,
        timeout: PATIENCE,
    }
}

/// All have the same password.
struct Everybody;

impl Accounts for Everybody {
    fn find(&self, _: &str) -> Option<Account> {
        Some(Account::new(StoredPassword::Clear(PASSWORD.to_owned())))
    }
}

fn start_server(seen: &Arc<Seen>) -> Outcome<(Service, Endpoint)> {
    let seen = Arc::clone(seen);
    let handler = move |accepted: Accepted| {
        let (id, options) = (accepted.id, options(wire::login::CAPABILITIES));
        let Ok((mut channel, login)) = login(accepted.socket, id, &options, &Everybody) else { return };
        seen.open.lock().insert(id);
        let entrance = Entrance { options: &options, accounts: &Everybody };
        let mut answers = Answers { id, in_transaction: false, seen: &seen };
        // How the connection ends is the pool's business.
        let _ = serve(&mut channel, &login, entrance, 1 << 20, &mut answers);
        seen.open.lock().remove(&id);
    };
    let service = Service::new(ServiceSpec { name: "server", stack: 256 << 10 }, limit(), Arc::new(handler));
    let address = service.listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    Ok((service, Endpoint::new(&address.ip().to_string(), address.port())))
}

/// A server that knows transactions, and the ids of its connections.
struct Answers<'a> {
    id: u32,
    in_transaction: bool,
    seen: &'a Seen,
}

impl QueryHandler for Answers<'_> {
    fn query(&mut self, sql: &str, mut reply: Reply<'_>) -> Result<(), WireError> {
        match sql {
            "BEGIN" | "COMMIT" => self.in_transaction = sql == "BEGIN",
            "SELECT ID" => {
                let mut rows = reply.rows(&[Column::text("ID")])?;
                rows.row([Some(self.id.to_string().as_bytes())])?;
                return rows.finish();
            }
            // It reports nothing of its sessions, as old servers.
            _ if sql.contains("session_track_") => {
                return reply.error(&SqlError::new(1193, "HY000", "Unknown system variable"));
            }
            _ => {}
        }
        reply.status = self.status();
        reply.ok(0, 0, "")
    }

    fn reset(&mut self) -> Result<(), SqlError> {
        self.in_transaction = false;
        self.seen.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn status(&self) -> StatusFlags {
        let mut status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        status.set(StatusFlags::SERVER_STATUS_IN_TRANS, self.in_transaction);
        status
    }
}
