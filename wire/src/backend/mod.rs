//! The client's side: connecting and logging in to a MySQL server.

mod authenticate;
mod exchange;
mod handshake;
mod prepare;
mod query;
mod tracking;

use crate::auth::Secret;
use crate::channel::Channel;
use crate::socket::Socket;
use crate::tls::ClientTls;
use crate::tracker::Notices;
use crate::version::is_mariadb;
use crate::{CapabilityFlags, Command, SqlError, SqlMode, StatusFlags, WireError};
pub use authenticate::CR_AUTH_PLUGIN_ERR;
pub use exchange::Request;
use handshake::ServerGreeting;
pub use query::TextResult;
use socket2::{Domain, Protocol, SockRef, Type};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
pub use tracking::NEW_SESSION;

/// The largest packet a server may send before the login is done, in bytes.
const LOGIN_PACKET: usize = 64 * 1024;
/// Time between the pieces of a packet; in this module every read is bounded by a deadline anyway.
const PARTIAL: Duration = Duration::from_secs(30);
/// Time for the goodbye to fit into the send buffer.
const GOODBYE: Duration = Duration::from_millis(100);
/// Why a connection is of no more use on which a server has said more than its answer.
pub const SURPLUS: WireError = WireError::Malformed("bytes after the end of an answer");

/// Most bytes that the answer to a statement of the proxy's own may have.
pub const OWN_ANSWER: usize = 64 << 10;

/// How to reach a server and who to be there.
#[derive(Clone)]
pub struct ConnectOptions<'a> {
    /// Address to connect to.
    pub address: SocketAddr,
    /// Use TLS (refused by the server: an error, never plaintext instead).
    pub tls: Option<&'a ClientTls>,
    /// Name for TLS SNI.
    pub server_name: &'a str,
    /// User name.
    pub user: &'a str,
    /// Password.
    pub secret: &'a Secret,
    /// Default schema.
    pub database: Option<&'a str>,
    /// Capabilities to ask for, beyond those the login needs; what the server lacks is dropped. CLIENT_COMPRESS asks for
    /// compression: by zstd where the server has it, or else by zlib.
    pub capabilities: CapabilityFlags,
    /// Collation id. The handshake has room for one byte: a larger id becomes utf8mb4_general_ci. 0 is the server's default.
    pub collation: u16,
    /// Connection attributes.
    pub attributes: &'a [(&'a str, &'a str)],
    /// When to give up, the TCP connect included.
    pub deadline: Instant,
}

impl ConnectOptions<'_> {
    fn compresses(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_COMPRESS)
    }
}

/// A logged-in connection to a server.
pub struct Backend {
    /// The packet stream; its sequence starts anew with each command.
    pub channel: Channel,
    /// Capabilities in force.
    pub capabilities: CapabilityFlags,
    /// The server's version text.
    pub server_version: String,
    /// What the version says: it is asked for with each statement.
    mariadb: bool,
    /// The server's own id of the connection.
    pub connection_id: u32,
    /// Status flags of the last OK or EOF seen.
    pub status: StatusFlags,
    /// Whether autocommit is on where nobody has set it, as the server said when the session was new. MySQL's status flags have it on
    /// after every login.
    pub autocommits: bool,
    /// The sql_mode where nobody has set it, likewise.
    pub sql_mode: SqlMode,
    /// Statements of our own have had warnings or errors since the session was new: a client's next one may find them.
    pub complains: bool,
    /// What the server reports by default, where [`Backend::track`] has asked it for more; `None`: it reports nothing.
    pub tracking: Option<Notices>,
}

impl Backend {
    /// Connects and logs in. A refusal by the server is `WireError::Sql`.
    pub fn connect(options: &ConnectOptions<'_>) -> Result<Self, WireError> {
        Self::connect_watched(options, |_| Ok(()))
    }
    /// As `connect`. `watch` sees the socket before it connects: who shuts it down from then on ends the attempt.
    pub fn connect_watched(
        options: &ConnectOptions<'_>,
        watch: impl FnOnce(&Socket) -> Result<(), WireError>,
    ) -> Result<Self, WireError> {
        let socket = unconnected(&options.address)?;
        watch(&socket)?;
        let left = options.deadline.saturating_duration_since(Instant::now());
        SockRef::from(socket.stream())
            .connect_timeout(&options.address.into(), left.max(Duration::from_millis(1)))?;
        let mut channel = Channel::new(socket);
        channel.set_deadline(Some(options.deadline));

        let payload = channel.read_packet(LOGIN_PACKET, PARTIAL)?;
        if payload.first() == Some(&0xFF) {
            return Err(SqlError::from_payload(payload)?.into());
        }
        let greeting = ServerGreeting::parse(payload)?;
        let capabilities = handshake::capabilities(options, greeting.capabilities)?;
        if let Some(tls) = options.tls {
            channel.queue(&handshake::fixed_fields(options, capabilities));
            channel.flush()?;
            channel = channel.upgrade(|socket| tls.connect(socket, options.server_name))?;
        }
        let status = authenticate::run(&mut channel, options, &greeting, capabilities)?;
        if let Some(algorithm) = handshake::algorithm(capabilities) {
            channel.compress_with_server(algorithm);
        }
        channel.set_deadline(None);
        let ServerGreeting { version, connection_id, .. } = greeting;
        let autocommits = status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        Ok(Self {
            channel,
            capabilities,
            mariadb: is_mariadb(&version),
            server_version: version,
            connection_id,
            status,
            autocommits,
            sql_mode: SqlMode::default(),
            complains: false,
            tracking: None,
        })
    }

    /// Runs one statement and reads its (first) result, at most `limit` bytes, by `deadline`. An OK gives no columns.
    /// After any error but `WireError::Sql` the connection is of no more use.
    pub fn query(&mut self, sql: &str, limit: usize, deadline: Instant) -> Result<TextResult, WireError> {
        self.within(deadline, |backend| {
            backend.send(Command::COM_QUERY, sql.as_bytes())?;
            backend.results(limit)
        })
    }
    /// COM_PING, COM_RESET_CONNECTION, COM_INIT_DB: sends a one-packet command and waits for OK; returns how many warnings it tells of.
    pub fn simple(&mut self, command: Command, argument: &[u8], deadline: Instant) -> Result<u16, WireError> {
        self.within(deadline, |backend| {
            backend.send(command, argument)?;
            backend.verdict()
        })
    }
    /// Says COM_QUIT without waiting. Errors do not matter any more.
    pub fn quit(&mut self) {
        let _ = self.within(Instant::now() + GOODBYE, |backend| backend.send(Command::COM_QUIT, b""));
    }

    fn within<T>(
        &mut self,
        deadline: Instant,
        exchange: impl FnOnce(&mut Self) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        if self.channel.has_surplus() {
            return Err(SURPLUS);
        }
        self.channel.set_deadline(Some(deadline));
        let result = exchange(self);
        self.channel.set_deadline(None);
        result
    }
    fn send(&mut self, command: Command, argument: &[u8]) -> Result<(), WireError> {
        self.queue(command, argument);
        self.channel.flush()
    }
    /// Queues a command of our own. Statements have query attributes where these were negotiated: none.
    fn queue(&mut self, command: Command, argument: &[u8]) {
        let attributes = match command {
            Command::COM_QUERY if self.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) => {
                crate::attributes::NONE
            }
            _ => &[],
        };
        self.channel.reset_sequence();
        self.channel.queue(&[&[command as u8], attributes, argument].concat());
    }
}

fn unconnected(address: &SocketAddr) -> io::Result<Socket> {
    let socket = socket2::Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
    if crate::descriptors::is_among_the_last(&socket) {
        return Err(rustix::io::Errno::MFILE.into());
    }
    Socket::new(socket.into())
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
