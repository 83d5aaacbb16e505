//! The server's side of a login: greeting, TLS upgrade, authentication, the final OK or ERR.

mod exchange;
mod greeting;
mod response;
mod verdict;

use crate::auth::{Accounts, AuthPlugin, NONCE, Secret};
use crate::channel::Channel;
use crate::packet::Fields;
use crate::socket::Socket;
use crate::{CapabilityFlags, WireError};
use exchange::Exchange;
use greeting::Greeting;
use response::ClientResponse;
use std::time::{Duration, Instant};
pub use verdict::change_user;

/// What a simple server can offer: nothing that asks the client for files (LOCAL_FILES) or changes the forms of packets
/// (OPTIONAL_RESULTSET_METADATA). CLIENT_SSL and [`COMPRESSION`] are added where they are wanted.
pub const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);

/// Both algorithms. A client that asks for both gets zlib, as from MySQL with its default list.
const COMPRESSION: CapabilityFlags =
    CapabilityFlags::CLIENT_COMPRESS.union(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);

/// The largest packet a client may send before it is logged in, in bytes: 64 KiB of connection attributes and the rest.
const LOGIN_PACKET: usize = 72 * 1024;

/// What a listener says of itself, and how long it waits.
#[derive(Clone)]
pub struct ServerOptions {
    /// Version in the greeting.
    pub server_version: String,
    /// Plugin named in the greeting; clients of another are switched.
    pub default_plugin: AuthPlugin,
    /// Capabilities to offer, apart from TLS and compression.
    pub capabilities: CapabilityFlags,
    /// Certificate, and the key for passwords that come without TLS; without it there is neither.
    pub tls: Option<crate::tls::ServerTls>,
    /// Whether clients are offered TLS, where there is a certificate.
    pub offer_tls: bool,
    /// Whether clients may compress.
    pub compress: bool,
    /// Time for the whole login.
    pub timeout: Duration,
}

impl ServerOptions {
    /// What the greeting offers.
    fn offered(&self) -> CapabilityFlags {
        let mut offered = self.capabilities;
        offered.set(CapabilityFlags::CLIENT_SSL, self.offer_tls && self.tls.is_some());
        offered.set(COMPRESSION, self.compress);
        offered
    }
}

/// A login that succeeded.
#[derive(Debug)]
pub struct Login {
    /// User name.
    pub user: String,
    /// Default schema the client asked for.
    pub database: Option<String>,
    /// Capabilities both sides have.
    pub capabilities: CapabilityFlags,
    /// Collation id the client asked for. A login has room for ids up to 255 (0: the server's default); a change of user for all.
    pub collation: u16,
    /// What was learned of the password.
    pub secret: Secret,
    /// Connection attributes as the client sent them: name, value, name, value, each with its length before it.
    pub attributes: Vec<u8>,
    /// The challenge in the greeting, for a change of user.
    pub nonce: [u8; NONCE],
}

impl Login {
    /// The library that the client is made with, as it names itself among its attributes.
    pub fn library(&self) -> Option<&[u8]> {
        let mut fields = Fields::new(&self.attributes);
        while let (Ok(name), Ok(value)) = (fields.lenenc_bytes(), fields.lenenc_bytes()) {
            if name == b"_client_name" {
                return Some(value);
            }
        }
        None
    }
}

/// Performs a login and sends its OK. On refusal the ERR packet is sent first: what `Accounts::admit` says, 1045 or 1231,
/// which is then returned as `WireError::Sql`, or 1043 for what is not the protocol, where the reason is returned.
pub fn login(
    socket: Socket,
    connection_id: u32,
    options: &ServerOptions,
    accounts: &dyn Accounts,
) -> Result<(Channel, Login), WireError> {
    let mut channel = Channel::new(socket);
    channel.set_deadline(Some(Instant::now() + options.timeout));
    let greeting = Greeting::new(connection_id, options)?;
    channel.queue(&greeting.to_payload());
    channel.flush()?;

    let (mut channel, response) = receive_response(channel, options)?;
    let (greeted, nonce) = (Some(greeting.plugin), greeting.nonce);
    let exchange = Exchange { channel: &mut channel, options, accounts, response: &response, greeted, nonce };
    let secret = verdict::decide(exchange)?;
    let compression = response.compression;
    let login = verdict::admit(&mut channel, accounts, response.into_login(secret, nonce))?;
    if let Some(algorithm) = compression {
        channel.compress(algorithm);
    }
    channel.set_deadline(None);
    Ok((channel, login))
}

/// The client's answer to the greeting, inside TLS if it asks for that. Not inlined: what it has on the stack is not to be there
/// while the password is verified, where a session's thread is at its deepest.
#[inline(never)]
fn receive_response(
    mut channel: Channel,
    options: &ServerOptions,
) -> Result<(Channel, ClientResponse), WireError> {
    match receive_first(&mut channel, options) {
        Ok(First::Response(response)) => Ok((channel, response)),
        Ok(First::Tls(tls)) => {
            let mut channel = channel.upgrade(|socket| tls.accept(socket))?;
            let payload = channel.read_packet(LOGIN_PACKET, options.timeout);
            match payload.and_then(|p| ClientResponse::parse(p, options.offered())) {
                Ok(response) => Ok((channel, response)),
                Err(error) => Err(verdict::refuse_garbage(&mut channel, error)),
            }
        }
        Err(error) => Err(verdict::refuse_garbage(&mut channel, error)),
    }
}

/// A client's first packet.
enum First<'a> {
    Response(ClientResponse),
    Tls(&'a crate::tls::ServerTls),
}

fn receive_first<'a>(channel: &mut Channel, options: &'a ServerOptions) -> Result<First<'a>, WireError> {
    let payload = channel.read_packet(LOGIN_PACKET, options.timeout)?;
    match &options.tls {
        Some(tls) if options.offer_tls && response::is_ssl_request(payload) => Ok(First::Tls(tls)),
        _ => ClientResponse::parse(payload, options.offered()).map(First::Response),
    }
}

#[cfg(test)]
mod change_user_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod raw_client;
#[cfg(test)]
mod tests;
