//! Listeners and the threads behind them: one acceptor a listener, one reused thread a connection.

use crate::socket::Socket;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
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

/// A running service. Threads that finish a connection wait for the next one (and end after 30 s without).
pub struct Service {}

impl Service {
    /// A service without listeners yet.
    pub fn new(_spec: ServiceSpec, _limit: ConnectionLimit, _handler: Handler) -> Self {
        unimplemented!()
    }
    /// Binds and accepts on one more address; returns the address really bound (port 0: any free one).
    pub fn listen(&self, _address: SocketAddr) -> io::Result<SocketAddr> {
        unimplemented!()
    }
    /// Stops accepting on an address; its connections go on.
    pub fn unlisten(&self, _address: SocketAddr) {
        unimplemented!()
    }
    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        unimplemented!()
    }
    /// Connections open now.
    pub fn connections(&self) -> usize {
        unimplemented!()
    }
    /// Ends the service: no new connections, the read side of every socket is shut so that idle connections end at once and
    /// busy ones after their statement; those left after `grace` are cut. All threads are joined.
    pub fn stop(&self, _grace: Duration) {
        unimplemented!()
    }
}
