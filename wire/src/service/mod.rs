//! Listeners and the threads behind them: one acceptor a listener, one reused thread a connection.

mod acceptor;
mod connections;

use crate::socket::Socket;
use acceptor::Acceptor;
use connections::Connections;
use parking_lot::Mutex;
use std::io;
use std::net::{Shutdown, SocketAddr};
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
pub struct Service {
    spec: ServiceSpec,
    limit: ConnectionLimit,
    connections: Arc<Connections>,
    acceptors: Mutex<Vec<Acceptor>>,
}

impl Service {
    /// A service without listeners yet.
    pub fn new(spec: ServiceSpec, limit: ConnectionLimit, handler: Handler) -> Self {
        let connections = Arc::new(Connections::new(spec.clone(), handler));
        Self { spec, limit, connections, acceptors: Mutex::default() }
    }
    /// Binds and accepts on one more address; returns the address really bound (port 0: any free one).
    pub fn listen(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let name = format!("{}-accept", self.spec.name);
        let acceptor = Acceptor::start(name, address, self.limit.clone(), self.connections.clone())?;
        let bound = acceptor.address();
        self.acceptors.lock().push(acceptor);
        Ok(bound)
    }
    /// Stops accepting on an address; its connections go on.
    pub fn unlisten(&self, address: SocketAddr) {
        let removed: Vec<_> =
            self.acceptors.lock().extract_if(.., |acceptor| acceptor.address() == address).collect();
        drop(removed);
    }
    /// Addresses bound now.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.acceptors.lock().iter().map(Acceptor::address).collect()
    }
    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.connections.open()
    }
    /// Ends the service: no new connections, the read side of every socket is shut so that idle connections end at once and
    /// busy ones after their statement; those left after `grace` are cut. All threads are joined.
    pub fn stop(&self, grace: Duration) {
        let acceptors = std::mem::take(&mut *self.acceptors.lock());
        drop(acceptors);
        self.connections.shutdown(Shutdown::Read);
        self.connections.wait_until_none(grace);
        self.connections.shutdown(Shutdown::Both);
        self.connections.join();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests;
