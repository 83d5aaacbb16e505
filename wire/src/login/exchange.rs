//! The server's side of authentication, from the client's first answer to the verdict.

use super::response::ClientResponse;
use super::{LOGIN_PACKET, ServerOptions};
use crate::auth::{Account, Accounts, AuthPlugin, NONCE, Secret, StoredPassword};
use crate::channel::Channel;
use crate::packet::put_nul_bytes;
use crate::socket::Socket;
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
    pub(super) channel: &'a mut Channel,
    pub(super) options: &'a ServerOptions,
    pub(super) accounts: &'a dyn Accounts,
    pub(super) response: &'a ClientResponse,
    /// The plugin in the greeting that the client answers. None for COM_CHANGE_USER: MySQL and MariaDB take no notice of the answer
    /// that came with it and always ask anew.
    pub(super) greeted: Option<AuthPlugin>,
    /// The greeting's challenge. It is the only one of a connection, as at servers: MariaDB's client library answers a switch
    /// in a change of user with the greeting's, whatever the switch says.
    pub(super) nonce: [u8; NONCE],
}

/// How an exchange ended.
pub(super) enum Verdict {
    /// The password was proved.
    Proved(Secret),
    /// It was not; whether the client answered with one at all.
    Refused {
        /// For error 1045.
        used_password: bool,
    },
}

impl Exchange<'_> {
    /// Asks until the password is proved or not. A stranger gets the same packets as a user whose password was wrong, and so
    /// does a user whose stored form cannot be verified in this way; then the log says why.
    pub(super) fn run(&mut self) -> Result<Verdict, WireError> {
        let account = self.accounts.find(&self.response.user).filter(|account| self.is_safe_enough(account));
        let stored = account.as_ref().map(Account::best_known);
        let plugin = self.choose_plugin(account.as_ref());
        let answer = match self.first_answer(plugin) {
            Some(answer) => answer,
            None => self.switch(plugin)?,
        };
        let nonce = self.nonce;
        if is_empty(&answer) {
            return Ok(match stored {
                Some(StoredPassword::Empty) => Verdict::Proved(Secret::Empty),
                _ => Verdict::Refused { used_password: false },
            });
        }
        let secret = match (plugin, &stored) {
            (AuthPlugin::Native, Some(stored)) => stored.verify_native(&nonce, &answer),
            (AuthPlugin::Native, None) => None,
            (AuthPlugin::CachingSha2, stored) => {
                let fast = stored.as_ref().and_then(|stored| stored.verify_sha2(&nonce, &answer));
                match fast {
                    Some(secret) => {
                        self.channel.queue(&[AUTH_MORE_DATA, FAST_AUTH_OK]);
                        Some(secret)
                    }
                    None => self.full_authentication(account.as_ref(), &nonce)?,
                }
            }
            (AuthPlugin::Clear, _) => verify_clear(account.as_ref(), answer),
        };
        if secret.is_none() {
            self.explain(stored.as_ref(), plugin);
        }
        Ok(secret.map_or(Verdict::Refused { used_password: true }, Verdict::Proved))
    }

    fn is_safe_enough(&self, account: &Account) -> bool {
        let safe = !account.require_tls || self.channel.stream().is_encrypted();
        if !safe {
            let user = self.response.user.escape_debug();
            log::warn!(
                "user '{user}' cannot log in without TLS: its use_ssl is 1; connect with TLS or set use_ssl=0"
            );
        }
        safe
    }
    /// The client's own plugin; the listener's for clients of another. A `$A$` hash can only be verified by full
    /// authentication of caching_sha2_password, or by the password in clear.
    fn choose_plugin(&self, account: Option<&Account>) -> AuthPlugin {
        let Some(name) = &self.response.plugin else { return AuthPlugin::Native };
        let private = self.is_private();
        let plugin = AuthPlugin::from_name(name).filter(|&plugin| plugin != AuthPlugin::Clear || private);
        let plugin = plugin.unwrap_or(self.options.default_plugin);
        let needs_password = match account {
            Some(account) => account.needs_password_itself(),
            None => self.accounts.has_decoy_hash(&self.response.user),
        };
        let switches = plugin == AuthPlugin::Native && needs_password && self.can_receive_password();
        if switches { AuthPlugin::CachingSha2 } else { plugin }
    }
    /// Whether nobody else sees what is sent: TLS, or a unix socket, which clients take for as safe.
    fn is_private(&self) -> bool {
        let stream = self.channel.stream();
        stream.is_encrypted() || stream.socket().is_unix()
    }
    /// Whether the password itself can come here unseen by others.
    fn can_receive_password(&self) -> bool {
        self.is_private() || self.options.tls.is_some()
    }
    /// The answer in the client's response, if it was made for this plugin. A client that was greeted with another plugin than its
    /// own may have answered with nothing, to be asked again.
    fn first_answer(&self, plugin: AuthPlugin) -> Option<Vec<u8>> {
        let greeted = self.greeted?;
        let answer = &self.response.auth_response;
        let answered = match &self.response.plugin {
            None => true,
            Some(name) => {
                AuthPlugin::from_name(name) == Some(plugin) && (greeted == plugin || !is_empty(answer))
            }
        };
        answered.then(|| answer.clone())
    }
    fn switch(&mut self, plugin: AuthPlugin) -> Result<Vec<u8>, WireError> {
        let mut request = vec![AUTH_SWITCH];
        put_nul_bytes(&mut request, plugin.name().as_bytes());
        put_nul_bytes(&mut request, &self.nonce);
        let answer = self.ask(&request);
        if matches!(answer, Err(WireError::Closed)) {
            let user = self.response.user.escape_debug();
            let plugin = plugin.name();
            log::info!(
                "the client of user '{user}' left when it was asked for {plugin}, which it may not know: \
                 where that is so, store the password in clear or as *SHA1 and let it use mysql_native_password"
            );
        }
        answer
    }

    /// Full authentication of caching_sha2_password: the password in clear where nobody else sees it, or under our public key (RSA-OAEP, XOR
    /// with the nonce).
    fn full_authentication(
        &mut self,
        account: Option<&Account>,
        nonce: &[u8],
    ) -> Result<Option<Secret>, WireError> {
        if !self.can_receive_password() {
            return Ok(None);
        }
        let mut answer = self.ask(&[AUTH_MORE_DATA, FULL_AUTH])?;
        // Some clients ask for the key on a unix socket, too; others send the password there as it is.
        let asks = answer == REQUEST_PUBLIC_KEY;
        if let Some(tls) = &self.options.tls
            && !self.channel.stream().is_encrypted()
            && (asks || !self.is_private())
        {
            if asks {
                let mut key = vec![AUTH_MORE_DATA];
                key.extend_from_slice(tls.public_key());
                answer = self.ask(&key)?;
            }
            answer = tls.decrypt(&answer).unwrap_or_default();
            answer.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
        }
        Ok(verify_clear(account, answer))
    }
    fn ask(&mut self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        self.channel.queue(payload);
        self.channel.flush()?;
        Ok(self.channel.read_packet(LOGIN_PACKET, self.options.timeout)?.to_vec())
    }

    /// Tells the log of a password that no client could have proved in this way. A wrong password is nothing to tell.
    fn explain(&self, stored: Option<&StoredPassword>, plugin: AuthPlugin) {
        let remedy = match stored {
            Some(StoredPassword::Damaged) => {
                "it was cut or changed on its way here; store HEX(authentication_string) of mysql.user"
            }
            Some(StoredPassword::ShaCrypt(_)) if plugin == AuthPlugin::Native => {
                "only the password itself proves it; log in once with caching_sha2_password, or store the password in \
                 clear or as *SHA1"
            }
            Some(StoredPassword::ShaCrypt(_) | StoredPassword::NativeHash(_))
                if plugin == AuthPlugin::CachingSha2 && !self.can_receive_password() =>
            {
                "only the password itself proves it, and there is no key to encrypt it with; store it in clear"
            }
            _ => return,
        };
        let user = self.response.user.escape_debug();
        let (form, plugin) = (stored.map_or("", StoredPassword::form), plugin.name());
        log::warn!(
            "user '{user}' cannot log in with {plugin} while the password is stored as {form}: {remedy}"
        );
    }

    /// Error 1045, in the server's words.
    pub(super) fn access_denied(&self, used_password: bool) -> SqlError {
        let user: String = self.response.user.chars().take(80).collect();
        let peer = self.channel.stream().socket().peer_addr();
        let host = match peer {
            Ok(Socket::UNIX_PEER) => "localhost".to_owned(),
            Ok(peer) => peer.ip().to_string(),
            Err(_) => "unknown".to_owned(),
        };
        let using = if used_password { "YES" } else { "NO" };
        let text = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
        SqlError::new(1045, "28000", text)
    }
}

/// No password: nothing at all, or the lone NUL of caching_sha2_password and mysql_clear_password clients.
fn is_empty(answer: &[u8]) -> bool {
    matches!(answer, [] | [0])
}

/// A password that came in clear ends with NUL.
fn verify_clear(account: Option<&Account>, mut password: Vec<u8>) -> Option<Secret> {
    if password.pop() != Some(0) {
        return None;
    }
    account.and_then(|account| account.verify_clear(&password))
}
