//! The client's side: connecting and logging in to a MySQL server.

use crate::auth::Secret;
use crate::channel::Channel;
use crate::{CapabilityFlags, StatusFlags, WireError};
use std::net::SocketAddr;
use std::time::Instant;

/// How to reach a server and who to be there.
#[derive(Clone)]
pub struct ConnectOptions<'a> {
    /// Address to connect to.
    pub address: SocketAddr,
    /// Use TLS (refused by the server: an error, never plaintext instead). Certificates are not verified.
    pub tls: bool,
    /// Name for TLS SNI.
    pub server_name: &'a str,
    /// User name.
    pub user: &'a str,
    /// Password.
    pub secret: &'a Secret,
    /// Default schema.
    pub database: Option<&'a str>,
    /// Capabilities to ask for, beyond those the login needs; what the server lacks is dropped.
    pub capabilities: CapabilityFlags,
    /// Collation id.
    pub collation: u16,
    /// Connection attributes.
    pub attributes: &'a [(&'a str, &'a str)],
    /// When to give up, the TCP connect included.
    pub deadline: Instant,
}

/// A logged-in connection to a server.
pub struct Backend {
    /// The packet stream; its sequence starts anew with each command.
    pub channel: Channel,
    /// Capabilities in force.
    pub capabilities: CapabilityFlags,
    /// The server's version text.
    pub server_version: String,
    /// The server's own id of the connection.
    pub connection_id: u32,
    /// Status flags of the last OK or EOF seen.
    pub status: StatusFlags,
}

/// A small text result, read whole: for checks and tests, not for traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextResult {
    /// Column names.
    pub columns: Vec<String>,
    /// Rows; NULL is `None`.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Backend {
    /// Connects and logs in. A refusal by the server is `WireError::Sql`.
    pub fn connect(_options: &ConnectOptions<'_>) -> Result<Self, WireError> {
        unimplemented!()
    }
    /// Runs one statement and reads its (first) result, at most `limit` bytes, by `deadline`. An OK gives no columns.
    pub fn query(&mut self, _sql: &str, _limit: usize, _deadline: Instant) -> Result<TextResult, WireError> {
        unimplemented!()
    }
    /// COM_PING, COM_RESET_CONNECTION, COM_INIT_DB: sends a one-packet command and waits for OK.
    pub fn simple(
        &mut self,
        _command: crate::Command,
        _argument: &[u8],
        _deadline: Instant,
    ) -> Result<(), WireError> {
        unimplemented!()
    }
    /// Says COM_QUIT without waiting. Errors do not matter any more.
    pub fn quit(&mut self) {
        unimplemented!()
    }
}
