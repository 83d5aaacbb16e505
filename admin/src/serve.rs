//! Sessions of the admin listener.

use crate::answer::Answer;
use crate::current::Client;
use crate::{Admin, command};
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::auth::Accounts;
use wire::login::{ServerOptions, login};
use wire::reply::{Column, Reply};
use wire::serve::{QueryHandler, serve};
use wire::service::Accepted;
use wire::{ColumnType, WireError};

/// Largest statement a client may send, in bytes.
const MAX_PACKET: usize = 64 << 20;

impl Admin {
    /// Serves one accepted admin connection to its end: login against `accounts`, then statements.
    pub fn serve(&self, accepted: Accepted, options: &ServerOptions, accounts: &dyn Accounts) {
        let (peer, id) = (accepted.peer, accepted.id);
        let served = login(accepted.socket, id, options, accounts).and_then(|(mut channel, login)| {
            let socket = Some(channel.stream().socket().clone());
            let client = Client { user: login.user.clone(), socket };
            serve(&mut channel, &login, MAX_PACKET, &mut Session { admin: self, client })
        });
        match served {
            Ok(()) | Err(WireError::Closed) => {}
            Err(error) => log::info!("admin connection {id} from {peer} ended: {error}"),
        }
    }
}

struct Session<'a> {
    admin: &'a Admin,
    client: Client,
}

impl QueryHandler for Session<'_> {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        match command::run(self.admin, &self.client, sql) {
            Ok(answer) => {
                let _held = Held::new(&self.admin.held, answer.size());
                write(&answer, reply)
            }
            Err(error) => reply.error(&error),
        }
    }
}

/// Counts a result among those that clients are still reading, until it is dropped.
struct Held<'a> {
    total: &'a AtomicUsize,
    size: usize,
}

impl<'a> Held<'a> {
    fn new(total: &'a AtomicUsize, size: usize) -> Self {
        total.fetch_add(size, Ordering::Relaxed);
        Self { total, size }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size, Ordering::Relaxed);
    }
}

fn write(answer: &Answer, reply: Reply<'_>) -> Result<(), WireError> {
    match answer {
        Answer::Ok { affected, info } => reply.ok(*affected, 0, info),
        Answer::Rows { columns, integers, rows } => {
            let columns = columns.iter().zip(integers).map(|(name, integer)| {
                let kind = if *integer {
                    ColumnType::MYSQL_TYPE_LONGLONG
                } else {
                    ColumnType::MYSQL_TYPE_VAR_STRING
                };
                Column::new(name.as_str(), kind)
            });
            let mut out = reply.rows(&columns.collect::<Vec<_>>())?;
            for row in rows {
                out.row(row.iter().map(|cell| cell.as_deref().map(str::as_bytes)))?;
            }
            out.finish()
        }
    }
}
