//! The client's statement that runs now: who runs it, and what ends it early.

use crate::store::DiskFile;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::SqlError;
use wire::socket::Socket;

/// What a client may see and do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything.
    Admin,
    /// Reading statistics.
    Stats,
}

impl Role {
    /// What DATABASE() says.
    pub fn database(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Stats => "stats",
        }
    }
}

/// Who runs statements: a session, or the daemon itself.
#[derive(Clone)]
pub(crate) struct Client {
    /// The user who logged in.
    pub user: String,
    /// What they may do.
    pub role: Role,
    /// The session's connection; statements end when it is cut.
    pub socket: Option<Socket>,
}

impl Client {
    /// The daemon itself.
    pub fn daemon() -> Self {
        Self { user: "admin".into(), role: Role::Admin, socket: None }
    }
}

/// A number that moves on to end the statements that began before.
#[derive(Clone, Default)]
pub(crate) struct Epoch(Arc<AtomicU64>);

impl Epoch {
    /// Ends statements that began before.
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The statement that runs on a connection, if it is a client's. Shared with SQLite's callbacks.
#[derive(Clone, Default)]
pub(crate) struct Current(Arc<Mutex<Option<Statement>>>);

struct Statement {
    client: Client,
    until: Instant,
    /// Of one that gives way to changes: when it began.
    epoch: Option<(Epoch, u64)>,
    /// Whether it names a table of the schema `disk`.
    names_disk: bool,
}

impl Statement {
    fn gave_way(&self) -> bool {
        self.epoch.as_ref().is_some_and(|(epoch, began)| epoch.now() != *began)
    }
}

impl Current {
    /// A statement of `client` runs until the guard is dropped.
    pub fn begin(&self, client: &Client, limit: Duration) -> Guard<'_> {
        self.start(client, limit, None)
    }

    /// The same with one that ends when the epoch does.
    pub fn begin_reading(&self, client: &Client, limit: Duration, epoch: &Epoch) -> Guard<'_> {
        self.start(client, limit, Some((epoch.clone(), epoch.now())))
    }

    fn start(&self, client: &Client, limit: Duration, epoch: Option<(Epoch, u64)>) -> Guard<'_> {
        *self.0.lock() = Some(Statement {
            client: client.clone(),
            until: Instant::now() + limit,
            epoch,
            names_disk: false,
        });
        Guard(self)
    }

    /// Whether a client's statement runs, rather than one of our own.
    pub fn is_running(&self) -> bool {
        self.0.lock().is_some()
    }

    /// The statement names a table of the schema `disk`.
    pub fn note_disk(&self) {
        self.0.lock().iter_mut().for_each(|statement| statement.names_disk = true);
    }

    /// Whether the statement must end: its time is over, a change waits, or nobody can take its answer.
    pub fn is_over(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|statement| {
            let cut = |socket: &Socket| socket.is_cut();
            Instant::now() > statement.until
                || statement.gave_way()
                || statement.client.socket.as_ref().is_some_and(cut)
        })
    }

    /// Who runs the statement.
    pub fn user(&self) -> Option<String> {
        self.0.lock().as_ref().map(|statement| statement.client.user.clone())
    }
}

/// Ends the statement when dropped.
pub(crate) struct Guard<'a>(&'a Current);

impl Guard<'_> {
    /// An error if the statement is about what is on disk, and the database's file is not there any more.
    pub fn check_disk(&self, file: &DiskFile) -> Result<(), SqlError> {
        let names_disk = self.0.0.lock().as_ref().is_some_and(|statement| statement.names_disk);
        if names_disk { file.check() } else { Ok(()) }
    }

    /// Whether the statement was to end for a change.
    pub fn gave_way(&self) -> bool {
        self.0.0.lock().as_ref().is_some_and(Statement::gave_way)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
