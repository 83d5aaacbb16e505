//! Opening a backend connection: resolve, connect, log in.

use super::connection::{Connection, Served, Usage};
use super::identity::EVERY;
use super::inner::Transport;
use super::lease::{Blame, Lease, Place};
use super::peer::Peer;
use super::processor::Processor;
use super::profile::{Profile, Want};
use super::statement_cache::StatementCache;
use super::variables;
use crate::hostgroups::Endpoint;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::backend::{Backend, CR_AUTH_PLUGIN_ERR, ConnectOptions};
use wire::socket::Socket;
use wire::tls::ClientTls;
use wire::{CapabilityFlags, SqlError, UTF8MB4_GENERAL_CI, WireError};

/// A server that is silent for so long is waited for further, but the session looks around meanwhile.
const TICK: Duration = Duration::from_millis(250);
/// How long a server may take nothing of a statement.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Refusals that concern the user or the schema, not the server: not counted against it, not tried again. Access denied (1044,
/// 1045, 1698), unknown schema (1049), account limits (1203, 1226), expired password (1862), host not allowed (1130).
const USER_ERRORS: [u16; 8] = [1044, 1045, 1049, 1130, 1203, 1226, 1698, 1862];

/// What servers are told of a connection's other end (`performance_schema.session_connect_attrs`).
pub const ATTRIBUTES: &[(&str, &str)] = &[("program_name", concat!("pointsman ", env!("CARGO_PKG_VERSION")))];

/// The right to open one connection. Counted as used from its making; given up when dropped.
pub struct Ticket<'a> {
    place: Place<'a>,
    transport: Transport,
    /// How often schemas had been changed before it was used.
    schemas: u64,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The server.
    pub endpoint: Endpoint,
    /// What to tell the client if no other attempt succeeds.
    pub error: SqlError,
    /// Whether another attempt may succeed.
    pub retry: bool,
}

impl<'a> Ticket<'a> {
    pub(super) fn new(place: Place<'a>, transport: Transport) -> Self {
        let schemas = place.backends().schema_changes();
        Self { place, transport, schemas }
    }
    /// Opens the connection by `deadline`. A drain since the ticket was issued retires it at birth.
    pub fn open(self, want: &Want, deadline: Instant) -> Result<Lease<'a>, OpenError> {
        let tls = match self.tls(&want.identity.user) {
            Ok(tls) => tls,
            Err(error) => return Err(self.misconfigured(&error)),
        };
        match self.connect(want, tls.as_ref(), deadline) {
            Ok(backend) => self.enter(backend, want, tls, deadline),
            Err(failure) => Err(self.report(failure, &want.identity.user)),
        }
    }
    /// How TLS is spoken to the server, if it is.
    fn tls(&self, user: &str) -> Result<Option<ClientTls>, WireError> {
        let Endpoint { host, port } = &self.place.slot.shared.endpoint;
        let tls = self.transport.tls.then(|| self.place.backends().config.tls_with(host, *port, user));
        tls.transpose()
    }
    fn connect(&self, want: &Want, tls: Option<&ClientTls>, deadline: Instant) -> Result<Backend, WireError> {
        let Endpoint { host, port } = &self.place.slot.shared.endpoint;
        let address = self.place.backends().dns.resolve(host, deadline).map_err(io::Error::other)?;
        let identity = &want.identity;
        let mut capabilities = identity.class | EVERY;
        if !self.place.backends().config.variables().enable_server_deprecate_eof {
            capabilities.remove(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        }
        capabilities.set(CapabilityFlags::CLIENT_COMPRESS, self.transport.compressed);
        let options = ConnectOptions {
            address: SocketAddr::new(address, *port),
            tls,
            server_name: host,
            user: &identity.user,
            secret: &identity.secret,
            database: want.profile.schema.as_deref(),
            capabilities,
            collation: want.profile.login_collation().unwrap_or(UTF8MB4_GENERAL_CI.into()),
            attributes: ATTRIBUTES,
            deadline,
        };
        let mut backend = Backend::connect_watched(&options, |socket| self.watch(socket))?;
        backend.track(&variables::reported(), deadline)?;
        backend.channel.stream().socket().set_timeouts(Some(TICK), Some(WRITE_TIMEOUT));
        Ok(backend)
    }
    /// Lets the pool cut the attempt. A pool that closes after this sees the socket; one that closed before is seen here.
    fn watch(&self, socket: &Socket) -> Result<(), WireError> {
        self.place.backends().config.keep_alive(socket);
        self.place.slot.shared.set_socket(socket.clone());
        if self.place.backends().inner.lock().is_closed() { Err(WireError::Closed) } else { Ok(()) }
    }
    fn enter(
        self,
        mut backend: Backend,
        want: &Want,
        tls: Option<ClientTls>,
        deadline: Instant,
    ) -> Result<Lease<'a>, OpenError> {
        let collation = want.profile.login_collation().unwrap_or(UTF8MB4_GENERAL_CI.into());
        let profile = Profile::login(want.profile.schema.as_deref(), collation);
        let init_connect = self.init_connect();
        if let Some(sql) = &init_connect
            && let Err(error) = profile.begin(sql, &mut backend, deadline)
        {
            return Err(self.not_begun(error, &want.identity.user));
        }
        let Self { place, schemas, .. } = self;
        if place.connected().is_err() {
            backend.quit();
            return Err(OpenError {
                endpoint: place.slot.shared.endpoint.clone(),
                error: SqlError::shutdown(),
                retry: false,
            });
        }
        match Peer::of(&place.slot, &backend, &want.identity, tls) {
            Ok(peer) => place.slot.shared.set_peer(peer),
            // It was cut a moment ago; its first use tells.
            Err(error) => log::debug!("{}: {error}", place.slot.shared.endpoint),
        }
        let (opened, shared) = (Instant::now(), Arc::clone(&place.slot.shared));
        let connection = Connection {
            transport: backend,
            identity: Arc::clone(&want.identity),
            profile: Arc::new(profile),
            opened,
            usage: Usage { taken: 1, ..Usage::default() },
            statements: StatementCache::default(),
            touched: None,
            served: Served::default(),
            schemas,
            init_connect,
            processor: Processor::default(),
            shared,
        };
        Ok(Lease::new(Box::new(connection), place))
    }
    /// What new connections of the hostgroup begin with.
    fn init_connect(&self) -> Option<Arc<str>> {
        let said = self.place.slot.policy.as_ref().and_then(|policy| policy.init_connect.clone());
        let of_all = || Arc::from(self.place.backends().config.variables().init_connect.as_str());
        said.or_else(|| Some(of_all())).filter(|sql| !sql.is_empty())
    }
    /// A statement of the configuration that fails is not the server's fault, and fails again. Its text, which the server's words
    /// may quote, is left out.
    fn not_begun(self, failure: WireError, user: &str) -> OpenError {
        let WireError::Sql(error) = failure else { return self.report(failure, user) };
        let endpoint = self.place.slot.shared.endpoint.clone();
        let hostgroup = self.place.slot.shared.hostgroup;
        let reason = format!(
            "init_connect failed with error {} ({})",
            error.code,
            String::from_utf8_lossy(&error.state)
        );
        self.place.failed(Blame::Ourselves, &reason);
        let text = format!("Connections to {endpoint} cannot begin for hostgroup {hostgroup}: {reason}");
        OpenError { endpoint, error: SqlError::new(9002, "HY000", text), retry: false }
    }
    /// A file for TLS cannot be used: that is not the server's fault, and no other attempt will find it better.
    fn misconfigured(self, failure: &WireError) -> OpenError {
        self.place.failed(Blame::Ourselves, failure);
        let endpoint = self.place.slot.shared.endpoint.clone();
        let text = format!("{endpoint} cannot be connected to with TLS: {failure}");
        OpenError { endpoint, error: SqlError::new(9002, "HY000", text), retry: false }
    }
    fn report(self, failure: WireError, user: &str) -> OpenError {
        let hostgroup = self.place.slot.shared.hostgroup;
        let endpoint = self.place.slot.shared.endpoint.clone();
        match failure {
            WireError::Sql(error) if error.code == CR_AUTH_PLUGIN_ERR => {
                self.place.failed(Blame::User, &error);
                OpenError { error: cannot_prove(&endpoint, user, &error), endpoint, retry: false }
            }
            WireError::Sql(error) => {
                let retry = !USER_ERRORS.contains(&error.code);
                self.place.failed(if retry { Blame::Server } else { Blame::User }, &error);
                OpenError { endpoint, error, retry }
            }
            other => {
                self.place.failed(if is_our_own(&other) { Blame::Ourselves } else { Blame::Server }, &other);
                let text =
                    format!("Max connect failure while reaching hostgroup {hostgroup}: {endpoint}: {other}");
                OpenError { endpoint, error: SqlError::new(9002, "HY000", text), retry: true }
            }
        }
    }
}

/// Whether a failure says nothing of the server: for want of our own resources, or because of whom a user is to trust.
fn is_our_own(failure: &WireError) -> bool {
    use rustix::io::Errno;
    const OURS: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL];
    match failure {
        WireError::Untrusted(_) => true,
        WireError::Io(error) => Errno::from_io_error(error).is_some_and(|errno| OURS.contains(&errno)),
        _ => false,
    }
}

/// What a client is told whose password cannot be proved to the server; the log has the reason.
fn cannot_prove(endpoint: &Endpoint, user: &str, reason: &SqlError) -> SqlError {
    let user = user.escape_debug();
    log::warn!("user '{user}' cannot be logged in to {endpoint}: {}", reason.message);
    SqlError::new(1045, "28000", format!("Access denied for user '{user}' (using password: YES)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_servers_fault() {
        for (errno, ours) in [(24, true), (99, true), (111, false), (110, false)] {
            assert_eq!(is_our_own(&io::Error::from_raw_os_error(errno).into()), ours, "{errno}");
        }
        assert!(is_our_own(&WireError::Untrusted("expired")) && !is_our_own(&WireError::Closed));
    }
}
