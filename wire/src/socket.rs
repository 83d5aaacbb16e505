//! A TCP socket that several owners may hold: the thread that reads it, and whoever may have to close it.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A shared handle on one TCP connection. Reading and writing is for one thread; closing is for any.
#[derive(Debug, Clone)]
pub struct Socket(Arc<TcpStream>);

impl Socket {
    /// Takes over a connected stream and sets TCP_NODELAY.
    pub fn new(_stream: TcpStream) -> io::Result<Self> {
        unimplemented!()
    }
    /// The underlying stream, for `poll` and socket options.
    pub fn stream(&self) -> &TcpStream {
        &self.0
    }
    /// Address of this end (getsockname).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    /// Address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
    /// Read and write time limits for each system call; `None` waits for ever.
    pub fn set_timeouts(&self, _read: Option<Duration>, _write: Option<Duration>) -> io::Result<()> {
        unimplemented!()
    }
    /// Ends the connection, or one direction of it, under the thread that uses it.
    pub fn shutdown(&self, how: Shutdown) {
        // The peer may have gone first; then there is nothing left to end.
        let _ = self.0.shutdown(how);
    }
}
// also: impl Read for Socket, impl Write for Socket (through &TcpStream)

/// The byte stream under a connection: plain, or inside TLS.
pub enum Stream {
    /// No encryption.
    Plain(Socket),
    /// TLS over the same kind of socket.
    Tls(Box<native_tls::TlsStream<Socket>>),
}
impl Stream {
    /// The socket below.
    pub fn socket(&self) -> &Socket {
        unimplemented!()
    }
    /// Whether bytes are encrypted on the wire.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }
    /// Decrypted bytes that wait inside TLS, which `poll` on the socket does not see.
    pub fn buffered(&self) -> usize {
        unimplemented!()
    }
}
impl std::io::Read for Socket {
    fn read(&mut self, _b: &mut [u8]) -> io::Result<usize> {
        unimplemented!()
    }
}
impl std::io::Write for Socket {
    fn write(&mut self, _b: &[u8]) -> io::Result<usize> {
        unimplemented!()
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
