//! The server's side of authentication, from the client's first answer to the verdict.

use super::greeting::{Greeting, HandshakeResponse, new_nonce};
use super::{LOGIN_PACKET, ServerOptions};
use crate::auth::{Account, AuthPlugin, NONCE, Secret, StoredPassword};
use crate::channel::Channel;
use crate::packet::put_nul_bytes;
use crate::{SqlError, WireError};

/// First byte of an AuthSwitchRequest.
const AUTH_SWITCH: u8 = 0xFE;
/// First byte of an AuthMoreData packet.
const AUTH_MORE_DATA: u8 = 0x01;
/// caching_sha2_password: "the fast answer was right", "send the password itself", "send the public key".
const FAST_AUTH_OK: u8 = 0x03;
const FULL_AUTH: u8 = 0x04;
const REQUEST_PUBLIC_KEY: &[u8] = &[0x02];

/// One login's authentication.
pub(super) struct Exchange<'a> {
    channel: &'a mut Channel,
    options: &'a ServerOptions,
    response: &'a HandshakeResponse,
    greeted: AuthPlugin,
    nonce: [u8; NONCE],
    /// Whether the client's (last) answer is made from a password.
    used_password: bool,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        channel: &'a mut Channel,
        options: &'a ServerOptions,
        greeting: &Greeting,
        response: &'a HandshakeResponse,
    ) -> Self {
        let (greeted, nonce) = (greeting.plugin, greeting.nonce);
        Self { channel, options, response, greeted, nonce, used_password: false }
    }

    /// Asks until the password is proved (what was learned) or not (`None`). A user who does not exist, or whose
    /// password is stored in a form that cannot be verified, goes the way of one with an unknown password.
    pub(super) fn run(&mut self, account: Option<Account>) -> Result<Option<Secret>, WireError> {
        let stored = match account.map(|account| account.password) {
            Some(StoredPassword::Unsupported(form)) => {
                log::warn!(
                    "user '{}' cannot log in: {form} cannot be verified here; store the password in clear or as *HEX",
                    self.response.user.escape_debug()
                );
                None
            }
            stored => stored,
        };
        let plugin = self.choose_plugin(stored.as_ref());
        let mut answer = self.response.auth_response.clone();
        if self.must_switch(plugin, &answer) {
            answer = self.switch(plugin)?;
        }
        self.used_password = !is_empty(&answer);
        if !self.used_password {
            return Ok((stored == Some(StoredPassword::Empty)).then_some(Secret::Empty));
        }
        match plugin {
            AuthPlugin::Native => Ok(stored.and_then(|s| s.verify_native(&self.nonce, &answer))),
            AuthPlugin::CachingSha2 => self.caching_sha2(stored, &answer),
        }
    }

    /// Error 1045, in the server's words.
    pub(super) fn access_denied(&self) -> SqlError {
        let user: String = self.response.user.chars().take(80).collect();
        let peer = self.channel.stream().socket().peer_addr();
        let host = peer.map_or_else(|_| "unknown".to_owned(), |peer| peer.ip().to_string());
        let using = if self.used_password { "YES" } else { "NO" };
        let text = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
        SqlError::new(1045, "28000", text)
    }

    /// The client's own plugin where the stored form can be verified through it; the listener's for clients of another.
    fn choose_plugin(&self, stored: Option<&StoredPassword>) -> AuthPlugin {
        let plugin = match &self.response.plugin {
            None => AuthPlugin::Native,
            Some(name) => AuthPlugin::from_name(name).unwrap_or(self.options.default_plugin),
        };
        let needs_full = matches!(stored, Some(StoredPassword::NativeHash(_)));
        if needs_full && !self.can_receive_password() { AuthPlugin::Native } else { plugin }
    }
    /// Whether the password itself can come here unseen by others.
    fn can_receive_password(&self) -> bool {
        let has_key = self.options.tls.as_ref().is_some_and(|tls| tls.public_key().is_some());
        self.channel.stream().is_encrypted() || has_key
    }
    /// A client that was greeted with another plugin than its own may have answered with nothing, to be asked again.
    fn must_switch(&self, plugin: AuthPlugin, answer: &[u8]) -> bool {
        match &self.response.plugin {
            None => false,
            Some(name) if AuthPlugin::from_name(name) == Some(plugin) => {
                self.greeted != plugin && is_empty(answer)
            }
            Some(_) => true,
        }
    }
    fn switch(&mut self, plugin: AuthPlugin) -> Result<Vec<u8>, WireError> {
        self.nonce = new_nonce()?;
        let mut request = vec![AUTH_SWITCH];
        put_nul_bytes(&mut request, plugin.name().as_bytes());
        put_nul_bytes(&mut request, &self.nonce);
        self.ask(&request)
    }

    fn caching_sha2(
        &mut self,
        stored: Option<StoredPassword>,
        answer: &[u8],
    ) -> Result<Option<Secret>, WireError> {
        match stored {
            Some(stored @ StoredPassword::NativeHash(_)) => {
                Ok(self.receive_password()?.and_then(|password| stored.verify_clear(&password)))
            }
            stored => {
                let secret = stored.and_then(|s| s.verify_sha2(&self.nonce, answer));
                if secret.is_some() {
                    self.channel.queue(&[AUTH_MORE_DATA, FAST_AUTH_OK]);
                }
                Ok(secret)
            }
        }
    }
    /// Full authentication: the password in clear inside TLS, or under our public key (RSA-OAEP, XOR with the nonce).
    fn receive_password(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let mut answer = self.ask(&[AUTH_MORE_DATA, FULL_AUTH])?;
        if self.channel.stream().is_encrypted() {
            return Ok(without_nul(answer));
        }
        let Some(tls) = &self.options.tls else { return Ok(None) };
        if answer == REQUEST_PUBLIC_KEY {
            let mut key = vec![AUTH_MORE_DATA];
            key.extend_from_slice(tls.public_key().unwrap_or_default());
            answer = self.ask(&key)?;
        }
        let Some(mut password) = tls.decrypt(&answer) else { return Ok(None) };
        password.iter_mut().zip(self.nonce.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
        Ok(without_nul(password))
    }
    fn ask(&mut self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        self.channel.queue(payload);
        self.channel.flush()?;
        Ok(self.channel.read_packet(LOGIN_PACKET, self.options.timeout)?.to_vec())
    }
}

/// No password: nothing at all, or the lone NUL of caching_sha2_password clients.
fn is_empty(answer: &[u8]) -> bool {
    matches!(answer, [] | [0])
}

fn without_nul(mut password: Vec<u8>) -> Option<Vec<u8>> {
    (password.pop() == Some(0)).then_some(password)
}
