//! Listeners and the threads behind them: each connection is accepted and served by one thread, which then waits for another.

mod address;
mod connections;
mod listener;
mod socket_file;

use crate::socket::Socket;
pub use address::{Address, AddressError};
use connections::Connections;
pub use listener::refuse;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// One accepted connection.
pub struct Accepted {
    /// The socket; TCP_NODELAY is set where it is one of TCP.
    pub socket: Socket,
    /// Who connected; [`Socket::UNIX_PEER`] through a unix socket.
    pub peer: SocketAddr,
    /// Process-wide connection number (never 0), also the thread id in the greeting.
    pub id: u32,
}

/// How a service runs.
#[derive(Clone)]
pub struct ServiceSpec {
    /// Thread names start with this, for example `traffic`.
    pub name: &'static str,
    /// Stack of each connection's thread, in bytes.
    pub stack: usize,
}

/// For whom a service is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Everyone.
    Open,
    /// Those who manage the daemon.
    Privileged,
}

impl Kind {
    /// Who may connect to a unix socket, as a mode: writing is connecting.
    fn socket_mode(self) -> u32 {
        match self {
            Self::Open => 0o777,
            Self::Privileged => 0o600,
        }
    }
}

/// Limit on connections, asked at each accept, so that it can follow configuration. One more is told error 1040.
pub type ConnectionLimit = Arc<dyn Fn() -> usize + Send + Sync>;
/// What to do with a connection. Runs on the connection's thread; a panic in it is logged and ends that connection alone.
pub type Handler = Arc<dyn Fn(Accepted) + Send + Sync>;

/// A running service. Threads that finish a connection wait for the next one; of those, most end when none comes.
pub struct Service(Arc<Connections>);

impl Service {
    /// A service without listeners yet.
    pub fn new(spec: ServiceSpec, limit: ConnectionLimit, handler: Handler) -> Self {
        Self(Arc::new(Connections::new(spec, Kind::Open, limit, handler)))
    }
    /// A service for those who manage the daemon: only the daemon's own user reaches its unix sockets, and it takes connections
    /// when the last descriptors are all that is left.
    pub fn privileged(spec: ServiceSpec, limit: ConnectionLimit, handler: Handler) -> Self {
        Self(Arc::new(Connections::new(spec, Kind::Privileged, limit, handler)))
    }
    /// Binds and accepts on one more address; returns the address really bound (port 0: any free one).
    pub fn listen(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        self.listen_at(&address.into()).map(|bound| bound.tcp().unwrap_or(address))
    }
    /// The same with an address of either kind. A unix socket's file takes the place of one that nobody listens on.
    pub fn listen_at(&self, address: &Address) -> io::Result<Address> {
        self.0.listen(address)
    }
    /// Stops accepting on an address; its connections go on. A unix socket's file is removed.
    pub fn unlisten(&self, address: impl Into<Address>) {
        self.0.unlisten(Some(&address.into()));
    }
    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<Address> {
        self.0.addresses()
    }
    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.0.open()
    }
    /// How many connections were refused with error 1040, as the service counts it.
    pub fn refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.refused)
    }
    /// Ends every connection as `stop` does; new ones are served.
    pub fn disconnect(&self, grace: Duration) {
        self.0.cut(Shutdown::Read);
        self.0.wait_until_none(grace);
        self.0.cut(Shutdown::Both);
    }
    /// Ends the service: no new connections, the read side of every socket is shut so that idle connections end at once and
    /// busy ones after their statement; those left after `grace` are cut. All threads are joined.
    pub fn stop(&self, grace: Duration) {
        self.0.shutdown(Shutdown::Read);
        self.0.wait_until_none(grace);
        self.0.shutdown(Shutdown::Both);
        self.0.join();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests;
