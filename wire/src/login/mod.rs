//! The server's side of a login: greeting, TLS upgrade, authentication, the final OK or ERR.

mod exchange;
mod greeting;

use crate::auth::{Accounts, AuthPlugin, Secret};
use crate::channel::Channel;
use crate::reply::Reply;
use crate::socket::{Buffered, Socket, Stream};
use crate::{CapabilityFlags, SqlError, StatusFlags, WireError};
use exchange::Exchange;
use greeting::{Greeting, HandshakeResponse};
use std::time::{Duration, Instant};

/// What listeners offer: everything whose answers can be passed on as they are, and nothing that asks the client for
/// files (LOCAL_FILES) or changes the forms of packets (QUERY_ATTRIBUTES,
/// OPTIONAL_RESULTSET_METADATA). CLIENT_SSL is added where there is a certificate, [`COMPRESSION`] where it is wanted.
pub(crate) const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
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
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// Both algorithms. A client that asks for both gets zlib, as from MySQL with its default list.
const COMPRESSION: CapabilityFlags =
    CapabilityFlags::CLIENT_COMPRESS.union(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);

/// The largest packet a client may send before it is logged in, in bytes. Connection attributes make the most of it.
const LOGIN_PACKET: usize = 64 * 1024;

/// What a listener says of itself, and how long it waits.
#[derive(Clone)]
pub struct ServerOptions {
    /// Version in the greeting.
    pub server_version: String,
    /// Plugin named in the greeting; clients of another are switched.
    pub default_plugin: AuthPlugin,
    /// Certificate for clients that ask for TLS; without it TLS is not offered.
    pub tls: Option<crate::tls::ServerTls>,
    /// Whether clients may compress.
    pub compress: bool,
    /// Time for the whole login.
    pub timeout: Duration,
}

impl ServerOptions {
    /// What the greeting offers: CLIENT_SSL exactly where there is a certificate, for example.
    fn offered(&self) -> CapabilityFlags {
        let mut offered = CAPABILITIES;
        offered.set(CapabilityFlags::CLIENT_SSL, self.tls.is_some());
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
    /// Collation id the client asked for.
    pub collation: u16,
    /// What was learned of the password.
    pub secret: Secret,
    /// Connection attributes the client sent.
    pub attributes: Vec<(String, String)>,
}

/// Performs a login and sends its OK. On refusal the ERR packet is sent first: 1045, which is then returned as
/// `WireError::Sql`, or 1043 for what is not the protocol, where the reason is returned.
pub fn login(
    socket: Socket,
    connection_id: u32,
    options: &ServerOptions,
    accounts: &dyn Accounts,
) -> Result<(Channel, Login), WireError> {
    let mut channel = Channel::new(socket);
    channel.set_deadline(Some(Instant::now() + options.timeout));
    channel.set_read_ahead(false);
    let greeting = Greeting::new(connection_id, options)?;
    channel.queue(&greeting.to_payload());
    channel.flush()?;

    let (mut channel, response) = match receive_response(&mut channel, options) {
        Ok(First::Response(response)) => (channel, response),
        Ok(First::Tls(tls)) => {
            let mut channel = channel.upgrade(|socket| accept_tls(socket, tls.acceptor()))?;
            let payload = channel.read_packet(LOGIN_PACKET, options.timeout);
            match payload.and_then(|p| HandshakeResponse::parse(p, options.offered())) {
                Ok(response) => (channel, response),
                Err(error) => return Err(refuse_garbage(&mut channel, error)),
            }
        }
        Err(error) => return Err(refuse_garbage(&mut channel, error)),
    };

    let account = accounts.find(&response.user);
    let mut exchange = Exchange::new(&mut channel, options, &greeting, &response);
    let secret = match exchange.run(account) {
        Ok(Some(secret)) => secret,
        Ok(None) => {
            let error = exchange.access_denied();
            return Err(refuse(&mut channel, error));
        }
        Err(error) => return Err(refuse_garbage(&mut channel, error)),
    };
    if let Err(error) = accounts.admit(&response.user) {
        return Err(refuse(&mut channel, error));
    }
    let reply = Reply {
        channel: &mut channel,
        capabilities: response.capabilities,
        status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
    };
    reply.ok(0, 0, "")?;
    if let Some(algorithm) = response.compression {
        channel.compress(algorithm);
    }
    channel.set_read_ahead(true);
    channel.set_deadline(None);
    Ok((channel, response.into_login(secret)))
}

/// A client's first packet.
enum First<'a> {
    Response(HandshakeResponse),
    Tls(&'a crate::tls::ServerTls),
}

fn receive_response<'a>(channel: &mut Channel, options: &'a ServerOptions) -> Result<First<'a>, WireError> {
    let payload = channel.read_packet(LOGIN_PACKET, options.timeout)?;
    match &options.tls {
        Some(tls) if greeting::is_ssl_request(payload) => Ok(First::Tls(tls)),
        _ => HandshakeResponse::parse(payload, options.offered()).map(First::Response),
    }
}

fn accept_tls(socket: Socket, acceptor: &native_tls::TlsAcceptor) -> Result<Stream, WireError> {
    match acceptor.accept(Buffered::new(socket)) {
        Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
        Err(error) => Err(crate::tls::handshake_error(error)),
    }
}

/// How long a client that sends garbage may take to read why it is refused.
const GOODBYE: Duration = Duration::from_millis(500);

/// Ends a login that is not the protocol: error 1043, or nothing to a client that has gone or says nothing.
fn refuse_garbage(channel: &mut Channel, error: WireError) -> WireError {
    if matches!(error, WireError::Malformed(_) | WireError::TooLarge { .. }) {
        // The reason is more use to the caller than what the client was told.
        let _ = refuse(channel, SqlError::new(1043, "08S01", "Bad handshake"));
        channel.close_gently(GOODBYE);
    }
    error
}

fn refuse(channel: &mut Channel, error: SqlError) -> WireError {
    channel.queue(&error.to_payload());
    match channel.flush() {
        Ok(()) => WireError::Sql(error),
        Err(failed) => failed,
    }
}

#[cfg(test)]
mod tests;
