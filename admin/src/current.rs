//! The client's statement that runs now: who runs it, and what ends it early.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::socket::Socket;

/// Who runs statements: a session, or the daemon itself.
pub(crate) struct Client {
    /// The user who logged in.
    pub user: String,
    /// The session's connection; statements end when it is cut.
    pub socket: Option<Socket>,
}

impl Client {
    /// The daemon itself.
    pub fn daemon() -> Self {
        Self { user: "admin".into(), socket: None }
    }
}

/// The statement that holds the store, if it is a client's. Shared with SQLite's callbacks.
#[derive(Clone, Default)]
pub(crate) struct Current(Arc<Mutex<Option<Statement>>>);

struct Statement {
    user: String,
    socket: Option<Socket>,
    until: Instant,
}

impl Current {
    /// A statement of `client` runs until the guard is dropped.
    pub fn begin(&self, client: &Client, limit: Duration) -> Guard<'_> {
        let (user, socket) = (client.user.clone(), client.socket.clone());
        *self.0.lock() = Some(Statement { user, socket, until: Instant::now() + limit });
        Guard(self)
    }

    /// Whether a client's statement runs, rather than one of our own.
    pub fn is_running(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Whether the statement must end: its time is over, or nobody can take its answer.
    pub fn is_over(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|statement| {
            Instant::now() > statement.until || statement.socket.as_ref().is_some_and(Socket::is_cut)
        })
    }

    /// Who runs the statement.
    pub fn user(&self) -> Option<String> {
        self.0.lock().as_ref().map(|statement| statement.user.clone())
    }
}

/// Ends the statement when dropped.
pub(crate) struct Guard<'a>(&'a Current);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
