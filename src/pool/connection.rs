//! One backend connection as the pool sees it.

use super::identity::Identity;
use super::peer::Peer;
use super::profile::Profile;
use super::statement_cache::StatementCache;
use super::work::Work;
use crate::hostgroups::{Endpoint, HostgroupId};
use parking_lot::Mutex;
use rustix::net::RecvFlags;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
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
    /// Where its traffic is counted.
    pub counters: Arc<Counters>,
    /// Where is counted what goes on in all pools.
    pub work: Arc<Work>,
    opened: AtomicBool,
    retired: AtomicBool,
    socket: OnceLock<Socket>,
    peer: OnceLock<Arc<Peer>>,
}

impl Shared {
    /// Of a connection that is not open yet.
    pub fn new(hostgroup: HostgroupId, endpoint: Endpoint, counters: Arc<Counters>, work: Arc<Work>) -> Self {
        Self {
            hostgroup,
            endpoint,
            counters,
            work,
            opened: AtomicBool::new(false),
            retired: AtomicBool::new(false),
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
    /// Bytes of commands.
    pub sent: u64,
    /// Bytes of answers.
    pub received: u64,
}

/// What a connection has done since it was opened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Commands and their answers.
    pub traffic: Traffic,
    /// How often it was taken from its pool.
    pub taken: u64,
    /// How often it came back.
    pub returned: u64,
}

/// Traffic of one server in one hostgroup.
#[derive(Debug, Default)]
pub struct Counters {
    queries: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    last_warning: Mutex<Option<Instant>>,
}

/// What fails is worth a warning this often, however many sessions it fails.
pub(super) const WARNING_INTERVAL: Duration = Duration::from_secs(1);

impl Counters {
    /// The level to log a failure of the server at: a warning, unless one was given just now.
    pub fn failure_level(&self, now: Instant) -> log::Level {
        let mut last = self.last_warning.lock();
        if last.is_some_and(|last| now.saturating_duration_since(last) < WARNING_INTERVAL) {
            return log::Level::Debug;
        }
        *last = Some(now);
        log::Level::Warn
    }
    /// What there was so far.
    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic { queries: read(&self.queries), sent: read(&self.sent), received: read(&self.received) }
    }
    /// The same, and counting begins anew.
    pub fn take_traffic(&self) -> Traffic {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        Traffic { queries: take(&self.queries), sent: take(&self.sent), received: take(&self.received) }
    }
    /// Adds one command and its answer.
    pub fn count(&self, sent: u64, received: u64) {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.received.fetch_add(received, Ordering::Relaxed);
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
    /// What it has done since.
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
