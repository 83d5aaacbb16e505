//! The client's side of authentication: answers until the server says OK or ERR.

use super::handshake::{self, ServerGreeting};
use super::{ConnectOptions, LOGIN_PACKET, PARTIAL};
use crate::auth::AuthPlugin;
use crate::channel::Channel;
use crate::packet::{Ending, Fields};
use crate::{CapabilityFlags, SqlError, StatusFlags, WireError};
use openssl::rsa::{Padding, Rsa};

/// Packets a server may send before its verdict: a switch or two, key and fast or full path. More is no login.
const ROUNDS: usize = 16;

/// The client-side error of MySQL for "authentication plugin cannot be used": what a login that cannot succeed ends with
/// before the server says no.
pub const CR_AUTH_PLUGIN_ERR: u16 = 2061;

/// Sends the handshake response and goes on to the server's OK, whose status flags it returns.
pub(super) fn run(
    channel: &mut Channel,
    options: &ConnectOptions<'_>,
    greeting: &ServerGreeting,
    capabilities: CapabilityFlags,
) -> Result<StatusFlags, WireError> {
    let encrypted = channel.stream().is_encrypted();
    // A plugin that cannot be answered yet is not refused: the account may have another, which the server then asks for.
    let plugin = match AuthPlugin::from_name(&greeting.plugin) {
        Some(plugin @ (AuthPlugin::CachingSha2 | AuthPlugin::Clear))
            if options.secret.clear().is_some() && (encrypted || plugin != AuthPlugin::Clear) =>
        {
            plugin
        }
        _ => AuthPlugin::Native,
    };
    let mut login = Login { channel, options, nonce: greeting.nonce.clone() };
    let answer = login.answer(plugin)?;
    login.channel.queue(&handshake::response(options, capabilities, plugin.name(), &answer));
    login.channel.flush()?;
    for _ in 0..ROUNDS {
        let payload = login.channel.read_packet(LOGIN_PACKET, PARTIAL)?.to_vec();
        match payload.split_first() {
            Some((0x00, _)) => return Ok(Ending::parse(&payload)?.status),
            Some((0xFF, _)) => return Err(SqlError::from_payload(&payload)?.into()),
            Some((0xFE, request)) => login.switch(request)?,
            // Only caching_sha2_password has more to say: 3, the fast answer was right; 4, it wants the password itself.
            Some((0x01, [3])) => {}
            Some((0x01, [4])) => login.send_password()?,
            _ => return Err(WireError::Malformed("not a packet of a login")),
        }
    }
    Err(WireError::Malformed("a login without end"))
}

struct Login<'a> {
    channel: &'a mut Channel,
    options: &'a ConnectOptions<'a>,
    nonce: Vec<u8>,
}

impl Login<'_> {
    fn answer(&self, plugin: AuthPlugin) -> Result<Vec<u8>, WireError> {
        match plugin {
            AuthPlugin::Native => Ok(self.options.secret.native_response(&self.nonce)),
            AuthPlugin::CachingSha2 => {
                let answer = self.options.secret.sha2_response(&self.nonce);
                answer.ok_or_else(|| only_hash_known(plugin.name()))
            }
            AuthPlugin::Clear => self.password(plugin.name()),
        }
    }
    /// Protocol::AuthSwitchRequest; without a name it is the request for a password hash of before 4.1.
    fn switch(&mut self, request: &[u8]) -> Result<(), WireError> {
        let mut fields = Fields::new(request);
        let name = fields.nul_bytes_or_rest();
        let nonce = fields.rest();
        self.nonce = nonce.strip_suffix(&[0]).unwrap_or(nonce).to_vec();
        match AuthPlugin::from_name(name) {
            Some(AuthPlugin::Clear) if !self.channel.stream().is_encrypted() => Err(plugin_error(
                "the server asks for the password in clear, which is sent through TLS only: set use_ssl=1 for this server"
                    .to_owned(),
            )),
            Some(plugin) => {
                let answer = self.answer(plugin)?;
                self.send(&answer)
            }
            None => {
                let name: String = String::from_utf8_lossy(name).chars().take(64).collect();
                Err(plugin_error(format!(
                    "the server asks for authentication plugin '{name}', which is not supported here"
                )))
            }
        }
    }
    /// Full authentication of caching_sha2_password: in clear inside TLS, otherwise under the server's public key.
    fn send_password(&mut self) -> Result<(), WireError> {
        let mut password = self.password(AuthPlugin::CachingSha2.name())?;
        if self.channel.stream().is_encrypted() {
            return self.send(&password);
        }
        if self.nonce.is_empty() {
            return Err(WireError::Malformed("no challenge to salt the password with"));
        }
        self.send(&[0x02])?; // "send your public key"
        let packet = self.channel.read_packet(LOGIN_PACKET, PARTIAL)?;
        let pem = match packet.split_first() {
            Some((0x01, pem)) => pem.to_vec(),
            Some((0xFF, _)) => return Err(SqlError::from_payload(packet)?.into()),
            _ => return Err(WireError::Malformed("no public key")),
        };
        password.iter_mut().zip(self.nonce.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
        let key = Rsa::public_key_from_pem(&pem).map_err(|_| WireError::Malformed("a bad public key"))?;
        let mut sealed = vec![0; key.size() as usize];
        key.public_encrypt(&password, &mut sealed, Padding::PKCS1_OAEP)
            .map_err(|_| WireError::Malformed("a public key too small for the password"))?;
        self.send(&sealed)
    }
    fn password(&self, plugin: &str) -> Result<Vec<u8>, WireError> {
        let clear = self.options.secret.clear().ok_or_else(|| only_hash_known(plugin))?;
        Ok([clear.as_bytes(), &[0]].concat())
    }
    fn send(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.channel.queue(payload);
        self.channel.flush()
    }
}

fn only_hash_known(plugin: &str) -> WireError {
    plugin_error(format!(
        "the server asks for '{plugin}', but the client proved only a *SHA1 hash of its password: store the password in \
         clear, or have the client log in once with caching_sha2_password"
    ))
}

fn plugin_error(message: String) -> WireError {
    SqlError::new(CR_AUTH_PLUGIN_ERR, "HY000", message).into()
}
