//! A client for tests that chooses what drivers do not let one choose, and notes what it was asked for.

use super::{CAPABILITIES, Login, ServerOptions, login};
use crate::auth::{Account, Accounts, AuthPlugin, Secret};
use crate::channel::Channel;
use crate::packet::{Fields, put_lenenc_bytes, put_nul_bytes};
use crate::socket::{Buffered, Stream, tests::pair};
use crate::{CapabilityFlags, SqlError, WireError};
use openssl::rsa::{Padding, Rsa};
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVersion};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// How the client behaves.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    /// `None` for a client without CLIENT_PLUGIN_AUTH.
    pub(super) plugin: Option<&'a str>,
    /// Oldest and newest version of TLS.
    pub(super) tls: Option<SslVersion>,
    pub(super) database: Option<&'a str>,
    pub(super) collation: u8,
    /// Left out of what is offered.
    pub(super) lacks: CapabilityFlags,
}

impl Default for Client<'_> {
    fn default() -> Self {
        Self {
            user: "user",
            password: "sesame",
            plugin: Some("caching_sha2_password"),
            tls: None,
            database: None,
            collation: 45,
            lacks: CapabilityFlags::empty(),
        }
    }
}

/// A server with one account, or none.
pub(super) struct One(pub(super) Option<Account>);

impl Accounts for One {
    fn find(&self, user: &str) -> Option<Account> {
        self.0.clone().filter(|_| user == "user")
    }
    fn has_decoy_hash(&self, user: &str) -> bool {
        user == "decoy"
    }
    fn admit(&self, user: &str) -> Result<(), SqlError> {
        if user == "surplus" { Err(SqlError::new(1226, "42000", "too many")) } else { Ok(()) }
    }
    fn check_schema(&self, login: &Login) -> Result<(), SqlError> {
        match login.database.as_deref() {
            Some("nowhere") => Err(SqlError::new(1049, "42000", "Unknown database 'nowhere'")),
            _ => Ok(()),
        }
    }
}

/// What came of a login, on both sides.
pub(super) struct Ended {
    /// What the client was told, step by step.
    pub(super) trace: Vec<String>,
    /// The last packet's payload and its sequence number.
    pub(super) last: (Vec<u8>, u8),
    pub(super) client: Channel,
    pub(super) server: Result<(Channel, Login), WireError>,
}

impl Client<'_> {
    pub(super) fn log_in(&self, options: &ServerOptions, accounts: &dyn Accounts) -> Ended {
        let (ours, theirs) = pair();
        thread::scope(|scope| {
            let server = scope.spawn(|| login(theirs, 7, options, accounts));
            let mut channel = Channel::new(ours);
            channel.set_deadline(Some(Instant::now() + PATIENCE));
            let (trace, last, client) = self.converse(channel);
            Ended { trace, last, client, server: server.join().unwrap() }
        })
    }

    fn capabilities(&self) -> CapabilityFlags {
        let mut capabilities = CAPABILITIES - self.lacks;
        capabilities.set(CapabilityFlags::CLIENT_PLUGIN_AUTH, self.plugin.is_some());
        capabilities.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, self.database.is_some());
        capabilities.set(CapabilityFlags::CLIENT_SSL, self.tls.is_some());
        capabilities.remove(CapabilityFlags::CLIENT_CONNECT_ATTRS);
        capabilities
    }
    fn converse(&self, mut channel: Channel) -> (Vec<String>, (Vec<u8>, u8), Channel) {
        let greeting = channel.read_packet(1 << 16, PATIENCE).unwrap().to_vec();
        let (greeted, nonce) = read_greeting(&greeting);
        let mut fixed = self.capabilities().bits().to_le_bytes().to_vec();
        fixed.extend_from_slice(&[0, 0, 0, 1, self.collation]);
        fixed.extend_from_slice(&[0; 23]);
        if let Some(version) = self.tls {
            channel.queue(&fixed);
            channel.flush().unwrap();
            channel = channel.upgrade(|socket| Ok(tls_client(version, socket))).unwrap();
            channel.set_deadline(Some(Instant::now() + PATIENCE));
        }
        // As libmysqlclient: nothing yet where the greeting is for another plugin.
        let own = self.plugin.unwrap_or("mysql_native_password");
        let first = if own == greeted || own == "mysql_clear_password" || self.plugin.is_none() {
            self.answer(own, &nonce)
        } else {
            Vec::new()
        };
        put_nul_bytes(&mut fixed, self.user.as_bytes());
        put_lenenc_bytes(&mut fixed, &first);
        self.database.into_iter().for_each(|name| put_nul_bytes(&mut fixed, name.as_bytes()));
        self.plugin.into_iter().for_each(|name| put_nul_bytes(&mut fixed, name.as_bytes()));
        channel.queue(&fixed);
        channel.flush().unwrap();
        let (trace, last) = self.follow(&mut channel, nonce);
        (trace, last, channel)
    }
    /// Answers until OK, ERR or the end of the connection, whose only challenge is `nonce`.
    pub(super) fn follow(&self, channel: &mut Channel, nonce: Vec<u8>) -> (Vec<String>, (Vec<u8>, u8)) {
        let mut trace = Vec::new();
        loop {
            let Ok(packet) = channel.read_packet(1 << 16, PATIENCE).map(<[u8]>::to_vec) else {
                trace.push("closed".to_owned());
                return (trace, (Vec::new(), 0));
            };
            let sequence = channel.sequence().wrapping_sub(1);
            let answer = match packet.as_slice() {
                [0, ..] => {
                    trace.push("OK".to_owned());
                    return (trace, (packet, sequence));
                }
                [0xFF, low, high, ..] => {
                    trace.push(format!("ERR {}", u16::from_le_bytes([*low, *high])));
                    return (trace, (packet, sequence));
                }
                [0xFE, request @ ..] => {
                    let mut fields = Fields::new(request);
                    let plugin = String::from_utf8(fields.nul_bytes().unwrap().to_vec()).unwrap();
                    assert_eq!(fields.nul_bytes().unwrap(), nonce);
                    trace.push(format!("switch to {plugin}"));
                    self.answer(&plugin, &nonce)
                }
                [1, 3] => {
                    trace.push("fast".to_owned());
                    continue;
                }
                [1, 4] => {
                    trace.push("full".to_owned());
                    match channel.stream().is_encrypted() {
                        true => [self.password.as_bytes(), &[0]].concat(),
                        false => vec![2],
                    }
                }
                [1, key @ ..] => self.sealed(key, &nonce),
                other => panic!("{other:?}"),
            };
            channel.queue(&answer);
            channel.flush().unwrap();
        }
    }
    fn answer(&self, plugin: &str, nonce: &[u8]) -> Vec<u8> {
        let secret = match self.password {
            "" => Secret::Empty,
            password => Secret::Clear(password.to_owned()),
        };
        match AuthPlugin::from_name(plugin.as_bytes()) {
            Some(AuthPlugin::Native) => secret.native_response(nonce),
            Some(AuthPlugin::CachingSha2) => secret.sha2_response(nonce).unwrap(),
            Some(AuthPlugin::Clear) => [self.password.as_bytes(), &[0]].concat(),
            None => b"riddle".to_vec(),
        }
    }
    fn sealed(&self, key: &[u8], nonce: &[u8]) -> Vec<u8> {
        let key = Rsa::public_key_from_pem(key).unwrap();
        let clear = [self.password.as_bytes(), &[0]].concat();
        let masked: Vec<u8> =
            clear.iter().zip(nonce.iter().cycle()).map(|(byte, salt)| byte ^ salt).collect();
        let mut sealed = vec![0; key.size() as usize];
        key.public_encrypt(&masked, &mut sealed, Padding::PKCS1_OAEP).unwrap();
        sealed
    }
}

fn tls_client(version: SslVersion, socket: Buffered) -> Stream {
    let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
    context.set_min_proto_version(Some(version)).unwrap();
    context.set_max_proto_version(Some(version)).unwrap();
    let session = Ssl::new(&context.build()).unwrap();
    Stream::Tls(Box::new(session.connect(socket).unwrap()))
}

fn read_greeting(payload: &[u8]) -> (String, Vec<u8>) {
    let mut fields = Fields::new(payload);
    fields.u8().unwrap();
    fields.nul_bytes().unwrap();
    fields.u32().unwrap();
    let mut nonce = fields.nul_bytes().unwrap().to_vec();
    fields.bytes(18).unwrap();
    nonce.extend_from_slice(fields.nul_bytes().unwrap());
    (String::from_utf8(fields.nul_bytes().unwrap().to_vec()).unwrap(), nonce)
}
