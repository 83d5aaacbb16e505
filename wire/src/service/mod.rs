//! Listeners and the threads behind them: each connection is accepted and served by one thread, which then waits for another.

mod connections;
mod listener;

use crate::socket::Socket;
use connections::Connections;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// One accepted connection.
pub struct Accepted {
    /// The socket, TCP_NODELAY set.
    pub socket: Socket,
    /// Who connected.
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

/// Limit on connections, asked at each accept, so that it can follow configuration. One more is told error 1040.
pub type ConnectionLimit = Arc<dyn Fn() -> usize + Send + Sync>;
/// What to do with a connection. Runs on the connection's thread; a panic in it is logged and ends that connection alone.
pub type Handler = Arc<dyn Fn(Accepted) + Send + Sync>;

/// A running service. Threads that finish a connection wait for the next one; of those, most end when none comes.
pub struct Service(Arc<Connections>);

impl Service {
    /// A service without listeners yet.
    pub fn new(spec: ServiceSpec, limit: ConnectionLimit, handler: Handler) -> Self {
        Self(Arc::new(Connections::new(spec, limit, handler)))
    }
    /// Binds and accepts on one more address; returns the address really bound (port 0: any free one).
    pub fn listen(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        self.0.listen(address)
    }
    /// Stops accepting on an address; its connections go on.
    pub fn unlisten(&self, address: SocketAddr) {
        self.0.unlisten(Some(address));
    }
    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
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
