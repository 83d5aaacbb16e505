//! The server's side of a login: greeting, TLS upgrade, authentication, the final OK or ERR.

use crate::auth::{Accounts, AuthPlugin, Secret};
use crate::channel::Channel;
use crate::socket::Socket;
use crate::{CapabilityFlags, WireError};
use std::time::Duration;

/// What a listener says of itself, and how long it waits.
#[derive(Clone)]
pub struct ServerOptions {
    /// Version in the greeting.
    pub server_version: String,
    /// Plugin named in the greeting; clients of another are switched.
    pub default_plugin: AuthPlugin,
    /// Certificate for clients that ask for TLS; without it TLS is not offered.
    pub tls: Option<crate::tls::ServerTls>,
    /// Capabilities offered; `login::CAPABILITIES` unless the listener supports fewer.
    pub capabilities: CapabilityFlags,
    /// Time for the whole login.
    pub timeout: Duration,
}

/// A login that succeeded.
pub struct Login {
    /// User name.
    pub user: String,
    /// Default schema the client asked for.
    pub database: Option<String>,
    /// Capabilities both sides have.
    pub capabilities: CapabilityFlags,
    /// Collation id the client asked for.
    pub collation: u16,
    /// What was learned of the password.
    pub secret: Secret,
    /// Connection attributes the client sent.
    pub attributes: Vec<(String, String)>,
}

/// Performs a login and sends its OK. On refusal the ERR packet (1045 and others) is sent first, then returned as `WireError::Sql`.
pub fn login(
    _socket: Socket,
    _connection_id: u32,
    _options: &ServerOptions,
    _accounts: &dyn Accounts,
) -> Result<(Channel, Login), WireError> {
    unimplemented!()
}
