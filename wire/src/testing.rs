//! What tests of several modules share: a little server over this crate's own parts.

use crate::auth::{Account, Accounts, AuthPlugin, StoredPassword};
use crate::login::{ServerOptions, login};
use crate::reply::{Column, Reply};
use crate::serve::{Entrance, QueryHandler, serve};
use crate::service::{Accepted, Service, ServiceSpec};
use crate::{SqlError, WireError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Users of the tests, by name: how each password is stored. Their password is "sesame" where it is not empty.
pub(crate) struct Users;

impl Accounts for Users {
    fn find(&self, user: &str) -> Option<Account> {
        let stored = match user {
            "clear" => "sesame",
            // SHA1(SHA1("sesame"))
            "hash" => "*EE33294C97C42FFF14EA73AB81E428A6FC7B9A8B",
            "empty" => "",
            "sha2" => crate::auth::OF_SESAME[0],
            "damaged" => "$A$005$whatever",
            _ => return None,
        };
        Some(Account::new(StoredPassword::parse(stored)))
    }
}

pub(crate) fn options(plugin: AuthPlugin, tls: bool) -> ServerOptions {
    ServerOptions {
        server_version: "8.4.0-test".to_owned(),
        default_plugin: plugin,
        compress: true,
        capabilities: crate::login::CAPABILITIES,
        tls: tls.then(crate::tls::tests::server_tls),
        offer_tls: tls,
        timeout: Duration::from_secs(100),
    }
}

/// Answers `echo TEXT` with the text, `long N` with N bytes, `rows N` with N rows, anything else with error 1064.
pub(crate) struct Echo;

impl QueryHandler for Echo {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        let (verb, argument) = sql.split_once(' ').unwrap_or((sql, ""));
        let columns = [Column::text("answer")];
        let number = argument.parse().unwrap_or(0);
        match verb {
            "echo" => {
                let mut rows = reply.rows(&columns)?;
                rows.row([Some(argument.as_bytes())])?;
                rows.finish()
            }
            "long" => {
                let mut rows = reply.rows(&columns)?;
                rows.row([Some(vec![b'x'; number].as_slice())])?;
                rows.finish()
            }
            "rows" => {
                let mut rows = reply.rows(&columns)?;
                for number in 0..number {
                    rows.row([Some(number.to_string().as_bytes())])?;
                }
                rows.finish()
            }
            "null" => {
                let mut rows = reply.rows(&columns)?;
                rows.row([None])?;
                rows.fail(&SqlError::new(1317, "70100", "interrupted"))
            }
            "ok" => reply.ok(3, 7, argument),
            // `SELECT @@x, @@y` and `SET`, which drivers send at first.
            "SELECT" => {
                let names: Vec<_> = argument.split(',').map(Column::text).collect();
                let mut rows = reply.rows(&names)?;
                rows.row(names.iter().map(|_| Some(&b"1000000"[..])))?;
                rows.finish()
            }
            "SET" => reply.ok(0, 0, ""),
            _ => reply.error(&SqlError::new(1064, "42000", "what?")),
        }
    }
}

/// A running echo server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _service: Service,
}

/// The largest packet the server takes, in bytes.
pub(crate) const MAX_PACKET: usize = 24 << 20;

impl Server {
    pub(crate) fn start(options: ServerOptions) -> Self {
        Self::start_with(options, |_| {})
    }
    /// `ended` is told how each connection that logged in came to its end.
    pub(crate) fn start_with(
        options: ServerOptions,
        ended: impl Fn(Result<(), WireError>) + Send + Sync + 'static,
    ) -> Self {
        let handler = move |accepted: Accepted| {
            if let Ok((mut channel, login)) = login(accepted.socket, accepted.id, &options, &Users) {
                let entrance = Entrance { options: &options, accounts: &Users };
                ended(serve(&mut channel, &login, entrance, MAX_PACKET, &mut Echo));
            }
        };
        let spec = ServiceSpec { name: "echo", stack: 256 << 10 };
        let service = Service::new(spec, Arc::new(|| 1000), Arc::new(handler));
        let address = service.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { address, _service: service }
    }
}
