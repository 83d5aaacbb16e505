//! One backend connection as the pool sees it.

use super::identity::Identity;
use super::peer::Peer;
use super::processor::Processor;
use super::profile::Profile;
use super::statement_cache::StatementCache;
use super::work::Work;
use crate::hostgroups::{Endpoint, HostgroupId};
use parking_lot::Mutex;
use rustix::net::RecvFlags;
use std::net::Shutdown;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wire::Command;
use wire::backend::Backend;
use wire::socket::Socket;

/// The part of a connection that others than its holder reach: whoever retires it or has to cut it.
/// It exists from the moment a session is allowed to open the connection. Where the connection leads is in it too, so that
/// whoever takes the connection touches no reference count that sessions share.
pub struct Shared {
    /// Hostgroup.
    pub hostgroup: HostgroupId,
    /// Server.
    pub endpoint: Endpoint,
    /// What is logged of its server.
    pub warnings: Arc<Warnings>,
    /// Where is counted what goes on in all pools.
    pub work: Arc<Work>,
    opened: AtomicBool,
    retired: AtomicBool,
    meter: Meter,
    socket: OnceLock<Socket>,
    peer: OnceLock<Arc<Peer>>,
}

impl Shared {
    /// Of a connection that is not open yet.
    pub fn new(hostgroup: HostgroupId, endpoint: Endpoint, warnings: Arc<Warnings>, work: Arc<Work>) -> Self {
        Self {
            hostgroup,
            endpoint,
            warnings,
            work,
            opened: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            meter: Meter::default(),
            socket: OnceLock::new(),
            peer: OnceLock::new(),
        }
    }
    /// The connection is open.
    pub fn set_opened(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }
    /// Marks the connection: it may finish what it does, and is then destroyed.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }
    /// Whether it was retired.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
    /// Counts one command and its answer, in bytes. For the connection's holder alone.
    pub fn count(&self, command: Command, sent: u64, received: u64) {
        let executions = u64::from(command == Command::COM_STMT_EXECUTE);
        self.meter.add(Traffic { queries: 1, executions, sent, received });
        self.work.sent(command);
    }
    /// What went over it so far.
    pub fn traffic(&self) -> Traffic {
        self.meter.read()
    }
    /// Makes the socket known, once connected.
    pub fn set_socket(&self, socket: Socket) {
        // A second call would be for the same socket.
        let _ = self.socket.set(socket);
    }
    /// Makes the server's end known, once logged in.
    pub fn set_peer(&self, peer: Peer) {
        let _ = self.peer.set(Arc::new(peer));
    }
    /// The server's end.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        self.peer.get()
    }
    /// Ends the connection under whoever uses it.
    pub fn cut(&self) {
        self.retire();
        if let Some(socket) = self.socket.get() {
            socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if *self.opened.get_mut() {
            self.work.closed();
        }
    }
}

/// What went to servers and came back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Commands sent.
    pub queries: u64,
    /// Of these, COM_STMT_EXECUTE.
    pub executions: u64,
    /// Bytes of commands.
    pub sent: u64,
    /// Bytes of answers.
    pub received: u64,
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            queries: self.queries.wrapping_add(other.queries),
            executions: self.executions.wrapping_add(other.executions),
            sent: self.sent.wrapping_add(other.sent),
            received: self.received.wrapping_add(other.received),
        }
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            queries: self.queries.wrapping_sub(other.queries),
            executions: self.executions.wrapping_sub(other.executions),
            sent: self.sent.wrapping_sub(other.sent),
            received: self.received.wrapping_sub(other.received),
        }
    }
}

/// The traffic of one connection. Whoever holds the connection adds to it, and nobody else, so that it costs what plain numbers
/// cost; others only read.
#[derive(Debug, Default)]
struct Meter {
    queries: AtomicU64,
    executions: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Meter {
    fn read(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            queries: read(&self.queries),
            executions: read(&self.executions),
            sent: read(&self.sent),
            received: read(&self.received),
        }
    }
    fn add(&self, traffic: Traffic) {
        let sum = self.read() + traffic;
        self.queries.store(sum.queries, Ordering::Relaxed);
        self.executions.store(sum.executions, Ordering::Relaxed);
        self.sent.store(sum.sent, Ordering::Relaxed);
        self.received.store(sum.received, Ordering::Relaxed);
    }
}

/// How often a connection went to and from its pool.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// How often it was taken.
    pub taken: u64,
    /// How often it came back.
    pub returned: u64,
}

/// When the log was last warned of a server.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Option<Instant>>);

/// What fails is worth a warning this often, however many sessions it fails.
pub(super) const WARNING_INTERVAL: Duration = Duration::from_secs(1);

impl Warnings {
    /// The level to log a failure of the server at: a warning, unless one was given just now.
    pub fn level(&self, now: Instant) -> log::Level {
        let mut last = self.0.lock();
        if last.is_some_and(|last| now.saturating_duration_since(last) < WARNING_INTERVAL) {
            return log::Level::Debug;
        }
        *last = Some(now);
        log::Level::Warn
    }
}

/// Whose sessions a connection has served since it was opened or reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Served {
    /// None.
    #[default]
    Nobody,
    /// This one.
    One(u64),
    /// More than one.
    Several,
}

impl Served {
    /// The same and `session`.
    pub fn and(self, session: u64) -> Self {
        match self {
            Self::Nobody => Self::One(session),
            served if !served.has_others_than(session) => served,
            _ => Self::Several,
        }
    }
    /// Whether another session than this is among them.
    pub fn has_others_than(self, session: u64) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(other) => other != session,
            Self::Several => true,
        }
    }
}

/// A connection with what is known of its state. `T` is the transport; tests of the pool's logic have none.
pub struct Connection<T> {
    /// How to talk to the server.
    pub transport: T,
    /// Who is logged in.
    pub identity: Arc<Identity>,
    /// What was set since.
    pub profile: Arc<Profile>,
    /// When it was opened.
    pub opened: Instant,
    /// How often it was used since.
    pub usage: Usage,
    /// Statements prepared on it.
    pub statements: StatementCache,
    /// The session that may have left on it what nothing tells of.
    pub touched: Option<u64>,
    /// The sessions that may have left what not even their statements tell of.
    pub served: Served,
    /// How often schemas had been changed when it entered its own.
    pub schemas: u64,
    /// What it began with, and begins with again after a reset.
    pub init_connect: Option<Arc<str>>,
    /// Where its packets arrive.
    pub processor: Processor,
    /// The part others reach.
    pub shared: Arc<Shared>,
}

/// Connections to be closed.
#[allow(clippy::vec_box, reason = "they are large and come in their boxes, so they stay there")]
pub type Trash<T> = Vec<Box<Connection<T>>>;

impl Connection<Backend> {
    /// Whether an idle connection is still good: open, and silent. A server that spoke unasked said goodbye.
    pub fn is_quiet(&self) -> bool {
        let channel = &self.transport.channel;
        if channel.buffered() > 0 {
            return false;
        }
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = rustix::net::recv(channel.stream().socket().stream(), &mut byte, flags);
        matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_whether_others_were_served() {
        let mut served = Served::default();
        assert!(!served.has_others_than(1));
        served = served.and(1).and(1);
        assert_eq!((served.has_others_than(1), served.has_others_than(2)), (false, true));
        served = served.and(2).and(1);
        assert_eq!((served, served.has_others_than(1)), (Served::Several, true));
    }
}
