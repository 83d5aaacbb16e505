//! Connections of the monitor: opened as the monitor user, cached by name, address and TLS, never used for traffic.

use crate::config::Config;
use crate::hostgroups::Endpoint;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::auth::Secret;
use wire::backend::{Backend, ConnectOptions, TextResult};
use wire::socket::Socket;
use wire::{CapabilityFlags, Command, UTF8MB4_GENERAL_CI, WireError};

/// Idle connections kept for one server.
const IDLE_LIMIT: usize = 4;
/// Largest answer of a probe, in bytes.
const ANSWER_LIMIT: usize = 1 << 20;
/// What servers show as the origin of these connections.
const ATTRIBUTES: &[(&str, &str)] = &[("program_name", "pointsman_monitor")];

/// What makes connections alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The server's name as it was asked for, so that its connections are found wherever the name led when they were opened.
    name: String,
    address: SocketAddr,
    tls: bool,
}

/// What connections are opened with. One does not outlive a change of them.
#[derive(Clone, Default, PartialEq, Eq)]
struct Credentials {
    user: String,
    password: String,
    /// Which of the ways to speak TLS with servers that were in force since the start.
    tls: u64,
}

/// Where to ask.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Address and port.
    pub address: SocketAddr,
    /// Whether TLS is used.
    pub tls: bool,
    /// The server's name: for TLS, and to tell its connections from others'.
    pub server_name: &'a str,
    /// When to give up, whatever time limits allow.
    pub by: Option<Instant>,
}

impl Target<'_> {
    fn key(&self) -> Key {
        Key { name: self.server_name.to_ascii_lowercase(), address: self.address, tls: self.tls }
    }
    fn deadline(&self, limit: Duration) -> Instant {
        let deadline = Instant::now() + limit;
        self.by.map_or(deadline, |by| by.min(deadline))
    }
}

struct Idle {
    backend: Backend,
    since: Instant,
}

/// A connection in use, or one that is being opened.
struct Lent {
    key: Key,
    /// What ends its IO; `None` before it is opened.
    socket: Option<Socket>,
    /// Whether it may become idle again.
    keep: bool,
    cut: bool,
}

#[derive(Default)]
struct Inner {
    idle: HashMap<Key, Vec<Idle>>,
    lent: HashMap<u64, Lent>,
    last: u64,
    /// Whose the connections are that are idle or may become so.
    credentials: Credentials,
    closed: bool,
}

impl Inner {
    /// Notes a connection in use; returns the key of its entry.
    fn lend(&mut self, key: Key, socket: Option<Socket>) -> u64 {
        self.last += 1;
        let cut = self.closed;
        self.lent.insert(self.last, Lent { key, socket, keep: true, cut });
        self.last
    }
}

/// The cache. Its lock is never held across IO.
pub struct Probes {
    config: Arc<Config>,
    inner: Mutex<Inner>,
}

impl Probes {
    /// An empty cache.
    pub fn new(config: Arc<Config>) -> Self {
        Self { config, inner: Mutex::default() }
    }
    /// Runs one statement: takes a cached connection or opens one (mysql-monitor_connect_timeout), then waits at most `timeout` for the answer. The connection is
    /// kept if the statement gave a result or an SQL error (ERR 1146 included), destroyed otherwise.
    ///
    /// The statement must be one that may run twice: a cached connection that the server closed while it was idle is
    /// replaced by a new one.
    pub fn query(&self, target: &Target<'_>, sql: &str, timeout: Duration) -> Result<TextResult, WireError> {
        self.ask(target, |_| sql.to_owned(), timeout)
    }
    /// As `query`; the statement depends on the server.
    pub fn ask(
        &self,
        target: &Target<'_>,
        sql: impl Fn(&Backend) -> String,
        timeout: Duration,
    ) -> Result<TextResult, WireError> {
        self.exchange(target, |backend| backend.query(&sql(backend), ANSWER_LIMIT, target.deadline(timeout)))
    }
    /// Pings a server on a cached connection, or a new one. Returns how long the answer took.
    pub fn ping(&self, target: &Target<'_>, timeout: Duration) -> Result<Duration, WireError> {
        self.exchange(target, |backend| {
            let start = Instant::now();
            backend.simple(Command::COM_PING, b"", target.deadline(timeout)).map(|_warnings| start.elapsed())
        })
    }
    /// Opens a connection and closes it (mysql-monitor_connect_timeout).
    pub fn connect(&self, target: &Target<'_>) -> Result<(), WireError> {
        let (slot, credentials) = (self.slot(target.key()), self.credentials());
        self.log_in(&slot, target, &credentials).map(|mut backend| backend.quit())
    }
    fn exchange<T>(
        &self,
        target: &Target<'_>,
        exchange: impl Fn(&mut Backend) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        let credentials = self.credentials();
        let (slot, idle) = self.lend(target.key(), &credentials);
        if let Some(mut backend) = idle {
            match exchange(&mut backend) {
                Err(error) if died_idle(&error) => {}
                result => return slot.conclude(backend, result),
            }
        }
        let mut backend = self.open(&slot, target, &credentials)?;
        let result = exchange(&mut backend);
        slot.conclude(backend, result)
    }
    /// Closes cached connections to an address, whatever the name; ones in use now are closed when their statement ends.
    pub fn purge(&self, address: SocketAddr) {
        self.purge_where(|key| key.address == address);
    }
    /// As `purge`: those of a server by its name, wherever that led when they were opened.
    pub fn purge_server(&self, server: &Endpoint) {
        self.purge_where(|key| {
            key.name.eq_ignore_ascii_case(&server.host) && key.address.port() == server.port
        });
    }
    fn purge_where(&self, ends: impl Fn(&Key) -> bool) {
        let mut inner = self.inner.lock();
        let closing: Vec<_> = inner.idle.extract_if(|key, _| ends(key)).flat_map(|(_, list)| list).collect();
        inner.lent.values_mut().filter(|lent| ends(&lent.key)).for_each(|lent| lent.keep = false);
        drop(inner);
        quit(closing);
    }
    /// Closes connections that were idle for more than ten ping intervals.
    pub fn sweep(&self) {
        let longest = self.longest_idle();
        let now = Instant::now();
        let mut closing = Vec::new();
        self.inner.lock().idle.retain(|_, list| {
            closing.extend(list.extract_if(.., |idle| now.duration_since(idle.since) > longest));
            !list.is_empty()
        });
        quit(closing);
    }
    /// Ends the statements under way with an error, for a prompt stop.
    pub fn cut(&self) {
        for lent in self.inner.lock().lent.values_mut() {
            lent.cut = true;
            lent.keep = false;
            if let Some(socket) = &lent.socket {
                socket.shutdown(Shutdown::Both);
            }
        }
    }
    /// Closes everything, for good.
    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        let closing = std::mem::take(&mut inner.idle);
        drop(inner);
        self.cut();
        quit(closing.into_values().flatten());
    }

    /// A slot, and the connection used last if there is one. Connections of other credentials do not survive this.
    fn lend(&self, key: Key, credentials: &Credentials) -> (Slot<'_>, Option<Backend>) {
        let longest = self.longest_idle();
        let mut closing = Vec::new();
        let mut inner = self.inner.lock();
        if inner.credentials != *credentials {
            inner.credentials = credentials.clone();
            closing.extend(inner.idle.drain().flat_map(|(_, list)| list));
            inner.lent.values_mut().for_each(|lent| lent.keep = false);
        }
        let mut found = inner.idle.get_mut(&key).and_then(Vec::pop);
        if found.as_ref().is_some_and(|idle| idle.since.elapsed() > longest) {
            closing.extend(found.take());
        }
        let socket = found.as_ref().map(|idle| idle.backend.channel.stream().socket().clone());
        let id = inner.lend(key, socket);
        drop(inner);
        quit(closing);
        (Slot { probes: self, id }, found.map(|idle| idle.backend))
    }
    /// A slot for a new connection.
    fn slot(&self, key: Key) -> Slot<'_> {
        Slot { probes: self, id: self.inner.lock().lend(key, None) }
    }
    fn credentials(&self) -> Credentials {
        let variables = self.config.variables();
        let (user, password) = (variables.monitor_username.clone(), variables.monitor_password.clone());
        Credentials { user, password, tls: self.config.tls_generation() }
    }
    /// A connection to be kept.
    fn open(
        &self,
        slot: &Slot<'_>,
        target: &Target<'_>,
        credentials: &Credentials,
    ) -> Result<Backend, WireError> {
        let mut backend = self.log_in(slot, target, credentials)?;
        let variables = self.config.variables();
        if !variables.monitor_wait_timeout {
            return Ok(backend);
        }
        let deadline = target.deadline(variables.monitor_connect_timeout);
        drop(variables);
        // The server, too, is to give up a connection that nobody closes. One that cannot is no worse to probe.
        let seconds = self.longest_idle().as_secs().max(1);
        match backend.query(&format!("SET wait_timeout={seconds}"), ANSWER_LIMIT, deadline) {
            Ok(_) | Err(WireError::Sql(_)) => Ok(backend),
            Err(error) => Err(error),
        }
    }
    fn log_in(
        &self,
        slot: &Slot<'_>,
        target: &Target<'_>,
        Credentials { user, password, .. }: &Credentials,
    ) -> Result<Backend, WireError> {
        let address = slot.forget_socket()?;
        let server_name = target.server_name;
        let tls = target.tls.then(|| self.config.tls_with(server_name, address.port(), user)).transpose()?;
        let secret = if password.is_empty() { Secret::Empty } else { Secret::Clear(password.clone()) };
        let deadline = target.deadline(self.config.variables().monitor_connect_timeout);
        let options = ConnectOptions {
            address,
            tls: tls.as_ref(),
            server_name,
            user,
            secret: &secret,
            database: None,
            capabilities: CapabilityFlags::CLIENT_CONNECT_ATTRS,
            collation: UTF8MB4_GENERAL_CI.into(),
            attributes: ATTRIBUTES,
            deadline,
        };
        Backend::connect_watched(&options, |socket| slot.set_socket(socket))
    }
    fn longest_idle(&self) -> Duration {
        self.config.variables().monitor_ping_interval.saturating_mul(10)
    }
}

/// One entry of `lent`, taken out when this goes.
struct Slot<'a> {
    probes: &'a Probes,
    id: u64,
}

impl Slot<'_> {
    /// Keeps or destroys the connection after its statement.
    fn conclude<T>(self, mut backend: Backend, result: Result<T, WireError>) -> Result<T, WireError> {
        let sound = match &result {
            Ok(_) => true,
            Err(WireError::Sql(error)) => !ends_connection(error.code),
            Err(_) => return result,
        };
        let mut inner = self.probes.inner.lock();
        let kept = inner.lent.get(&self.id).filter(|lent| sound && lent.keep).map(|lent| lent.key.clone());
        let list = kept.filter(|_| !inner.closed).map(|key| inner.idle.entry(key).or_default());
        match list {
            Some(list) if list.len() < IDLE_LIMIT => list.push(Idle { backend, since: Instant::now() }),
            _ => {
                drop(inner);
                backend.quit();
            }
        }
        result
    }
    /// Whether the slot was cut, and its address. The socket of the connection before, which is dead, is forgotten.
    fn forget_socket(&self) -> Result<SocketAddr, WireError> {
        let mut inner = self.probes.inner.lock();
        match inner.lent.get_mut(&self.id).filter(|lent| !lent.cut) {
            Some(lent) => {
                lent.socket = None;
                Ok(lent.key.address)
            }
            None => Err(WireError::Io(ErrorKind::ConnectionAborted.into())),
        }
    }
    fn set_socket(&self, socket: &Socket) -> Result<(), WireError> {
        let mut inner = self.probes.inner.lock();
        match inner.lent.get_mut(&self.id).filter(|lent| !lent.cut) {
            Some(lent) => {
                lent.socket = Some(socket.clone());
                Ok(())
            }
            None => Err(WireError::Io(ErrorKind::ConnectionAborted.into())),
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.probes.inner.lock().lent.remove(&self.id);
    }
}

/// Whether a cached connection had ended before the statement reached the server: closed, perhaps after a farewell that no
/// statement asked for.
fn died_idle(error: &WireError) -> bool {
    match error {
        WireError::Closed | WireError::Malformed(_) | WireError::Damaged(_) => true,
        WireError::Io(_) => !error.is_timeout(),
        WireError::Sql(error) => ends_connection(error.code),
        WireError::TooLarge { .. } | WireError::Tls(_) | WireError::Untrusted(_) => false,
    }
}

/// ER_CLIENT_INTERACTION_TIMEOUT, ER_SERVER_SHUTDOWN and MariaDB's ER_CONNECTION_KILLED: the server closes after these.
pub(super) fn ends_connection(code: u16) -> bool {
    matches!(code, 4031 | 1053 | 1927)
}

fn quit(connections: impl IntoIterator<Item = Idle>) {
    for mut idle in connections {
        idle.backend.quit();
    }
}
