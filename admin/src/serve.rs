//! Sessions of the admin listener.

use crate::Admin;
use crate::answer::Answer;
use crate::command::packet::Outcome;
use crate::command::{self, prepared};
use crate::current::{Client, Role};
use crate::error::printable;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::auth::Accounts;
use wire::login::{ServerOptions, login};
use wire::reply::{Column, Reply};
use wire::serve::{Entrance, Parameter, Prepared, QueryHandler, serve};
use wire::service::Accepted;
use wire::{CapabilityFlags, ColumnType, SqlError, StatusFlags, WireError};

/// Largest statement a client may send, in bytes.
const MAX_PACKET: usize = 64 << 20;
/// Quotes in texts are doubled; a backslash is a backslash. Drivers that look here write values so.
const STATUS: StatusFlags =
    StatusFlags::SERVER_STATUS_AUTOCOMMIT.union(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES);

impl Admin {
    /// Serves one accepted admin connection to its end: login against `accounts`, then statements. Who is not among
    /// `admin-admin_credentials` reads statistics.
    pub fn serve(&self, accepted: Accepted, options: &ServerOptions, accounts: &dyn Accounts) {
        let (peer, id) = (accepted.peer, accepted.id);
        let served = login(accepted.socket, id, options, accounts).and_then(|(mut channel, login)| {
            let socket = Some(channel.stream().socket().clone());
            let client = Client { user: login.user.clone(), role: self.role(&login.user), socket };
            let entrance = Entrance { options, accounts };
            serve(
                &mut channel,
                &login,
                entrance,
                MAX_PACKET,
                &mut Session { admin: self, client, begun: false },
            )
        });
        match served {
            Ok(()) | Err(WireError::Closed) => {}
            Err(error) => log::info!("admin connection {id} from {peer} ended: {error}"),
        }
    }

    /// Before anything was loaded no listener is open but a test's.
    fn role(&self, user: &str) -> Role {
        let published = self.published.lock();
        let is_admin = published
            .variables
            .as_ref()
            .is_none_or(|variables| variables.admin_credentials.iter().any(|(name, _)| name == user));
        if is_admin { Role::Admin } else { Role::Stats }
    }
}

struct Session<'a> {
    admin: &'a Admin,
    client: Client,
    /// Whether the client believes that a transaction is open. Drivers refuse to end one (PHP's PDO) that the status does not show.
    begun: bool,
}

impl QueryHandler for Session<'_> {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        let many = reply.capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
        let outcome = command::run_packet(self.admin, &self.client, sql, many);
        self.answer(outcome, reply, Form::Text)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        prepared::prepare(self.admin, &self.client, sql).map_err(printable)
    }

    fn execute(&mut self, sql: &str, values: &[Parameter], reply: Reply<'_>) -> Result<(), WireError> {
        let outcome = prepared::execute(self.admin, &self.client, sql, values);
        self.answer(outcome, reply, Form::Binary)
    }

    fn change_user(&mut self, user: &str) {
        (self.client.user, self.client.role) = (user.to_owned(), self.admin.role(user));
    }

    fn reset(&mut self) -> Result<(), SqlError> {
        self.begun = false;
        Ok(())
    }

    fn status(&self) -> StatusFlags {
        let mut status = STATUS;
        status.set(StatusFlags::SERVER_STATUS_IN_TRANS, self.begun);
        status
    }
}

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
}

impl Session<'_> {
    /// Each answer but the last says that more follow.
    fn answer(&mut self, outcome: Outcome, reply: Reply<'_>, form: Form) -> Result<(), WireError> {
        let Reply { channel, capabilities, .. } = reply;
        self.begun = outcome.begun.unwrap_or(self.begun);
        let status = self.status();
        let size = outcome.answers.iter().map(Answer::size).sum();
        let _held = Held::new(&self.admin.held, size);
        let mut left = outcome.answers.len() + usize::from(outcome.error.is_some());
        for answer in &outcome.answers {
            left -= 1;
            let mut status = status;
            status.set(StatusFlags::SERVER_MORE_RESULTS_EXISTS, left > 0);
            write(answer, Reply { channel: &mut *channel, capabilities, status }, form)?;
        }
        match outcome.error {
            Some(error) => Reply { channel, capabilities, status }.error(&error),
            None => Ok(()),
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

fn write(answer: &Answer, reply: Reply<'_>, form: Form) -> Result<(), WireError> {
    match answer {
        Answer::Ok { affected, info } => reply.ok(*affected, 0, info),
        Answer::Rows { columns, integers, rows } => {
            let columns = columns.iter().zip(integers).map(|(name, integer)| {
                // As ProxySQL, whose tools compare with texts.
                let kind = if form == Form::Binary && *integer {
                    ColumnType::MYSQL_TYPE_LONGLONG
                } else {
                    ColumnType::MYSQL_TYPE_VAR_STRING
                };
                Column::new(name.as_str(), kind)
            });
            let columns = columns.collect::<Vec<_>>();
            let mut out = match form {
                Form::Text => reply.rows(&columns)?,
                Form::Binary => reply.binary_rows(&columns)?,
            };
            for row in rows {
                out.row(row.iter().map(|cell| cell.as_deref().map(str::as_bytes)))?;
            }
            out.finish()
        }
    }
}
