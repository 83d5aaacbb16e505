//! A TCP socket that several owners may hold: the thread that reads it, and whoever may have to close it.

use crate::read_ahead::ReadAhead;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A shared handle on one TCP connection. Reading and writing is for one thread; closing is for any.
#[derive(Debug, Clone)]
pub struct Socket(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stream: TcpStream,
    deadline: Mutex<Option<Deadline>>,
}

/// A deadline in force, and the time limits to go back to after it.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    read: Option<Duration>,
    write: Option<Duration>,
}

/// Zero would mean "no limit" to the system.
const SHORTEST: Duration = Duration::from_millis(1);
/// How long an idle peer may stay silent at TCP's level before it is asked for a sign of life.
const KEEPALIVE: Duration = Duration::from_secs(60);

impl Socket {
    /// Takes over a stream, connected or about to be; sets TCP_NODELAY and keepalive.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 4);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Self(Arc::new(Shared { stream, deadline: Mutex::new(None) })))
    }
    /// The underlying stream, for `poll` and socket options.
    pub fn stream(&self) -> &TcpStream {
        &self.0.stream
    }
    /// Address of this end (getsockname).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.stream.local_addr()
    }
    /// Address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.stream.peer_addr()
    }
    /// Read and write time limits for each system call; `None` waits for ever. While a deadline is set they wait for its end.
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        if let Some(deadline) = self.0.deadline.lock().as_mut() {
            (deadline.read, deadline.write) = (read, write);
            return Ok(());
        }
        self.0.stream.set_read_timeout(read.map(|t| t.max(SHORTEST)))?;
        self.0.stream.set_write_timeout(write.map(|t| t.max(SHORTEST)))
    }
    /// Bounds every read and write until `None` is set: each is given the time left. It holds below TLS as well, so
    /// that a handshake or a record that trickles in cannot outlast it.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let mut current = self.0.deadline.lock();
        match (deadline, *current) {
            (Some(at), Some(held)) => *current = Some(Deadline { at, ..held }),
            (Some(at), None) => {
                // A socket that cannot say its limits is broken, and the next read tells.
                let read = self.0.stream.read_timeout().unwrap_or_default();
                let write = self.0.stream.write_timeout().unwrap_or_default();
                *current = Some(Deadline { at, read, write });
            }
            (None, Some(held)) => {
                *current = None;
                drop(current);
                let _ = self.set_timeouts(held.read, held.write);
            }
            (None, None) => {}
        }
    }
    /// Whether a deadline is in force.
    pub(crate) fn has_deadline(&self) -> bool {
        self.0.deadline.lock().is_some()
    }
    /// The time left, if there is a deadline.
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = *self.0.deadline.lock() else { return Ok(None) };
        let left = deadline.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left.max(SHORTEST))) }
    }
    /// Ends the connection, or one direction of it, under the thread that uses it.
    pub fn shutdown(&self, how: Shutdown) {
        // The peer may have gone first; then there is nothing left to end.
        let _ = self.0.stream.shutdown(how);
    }
    /// Whether both directions are closed, as [`Socket::shutdown`] leaves them. A peer that has only ended its own may
    /// still read an answer.
    pub fn is_cut(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.0.stream, PollFlags::empty())];
        let at_once = Timespec::default();
        poll(&mut descriptors, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.time_left()? {
            self.0.stream.set_read_timeout(Some(left))?;
        }
        (&self.0.stream).read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.time_left()? {
            self.0.stream.set_write_timeout(Some(left))?;
        }
        (&self.0.stream).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The byte stream under a connection: plain, or inside TLS.
pub enum Stream {
    /// No encryption.
    Plain(Socket),
    /// TLS over the same kind of socket.
    Tls(Box<native_tls::TlsStream<Buffered>>),
}

/// A socket below TLS, which reads a record's header and its body one after the other.
#[derive(Debug)]
pub struct Buffered {
    socket: Socket,
    ahead: ReadAhead,
}

impl Buffered {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, ahead: ReadAhead::default() }
    }
}

impl Read for Buffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            if buffer.len() >= self.ahead.capacity() {
                return self.socket.read(buffer);
            }
            self.ahead.fill(|free| self.socket.read(free))?;
        }
        let count = buffer.len().min(self.ahead.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), self.ahead.data().get(..count)) {
            to.copy_from_slice(from);
        }
        self.ahead.consume(count);
        Ok(count)
    }
}

impl Write for Buffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// The socket below.
    pub fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.get_ref().socket,
        }
    }
    /// Whether bytes are encrypted on the wire.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }
    /// Bytes that wait inside TLS, decrypted or not, which `poll` on the socket does not see. An error of TLS shows at
    /// the next read.
    pub fn buffered(&self) -> usize {
        match self {
            Stream::Plain(_) => 0,
            Stream::Tls(tls) => tls.buffered_read_size().unwrap_or(0) + tls.get_ref().ahead.len(),
        }
    }
    /// Frees memory beyond what an idle connection needs.
    pub(crate) fn shrink(&mut self) {
        if let Stream::Tls(tls) = self {
            tls.get_mut().ahead.shrink();
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(tls) => match tls.read(buffer) {
                Err(error) if is_unclean_close(&error) => Ok(0),
                result => result,
            },
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

/// Many MySQL clients close TCP without TLS's own goodbye, which OpenSSL 3 calls an error. The protocol above has
/// its own framing, so that a cut inside a packet is still noticed.
fn is_unclean_close(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<openssl::ssl::Error>());
    let stack = cause.and_then(openssl::ssl::Error::ssl_error);
    stack.is_some_and(|stack| {
        stack.errors().iter().any(|e| e.reason().is_some_and(|r| r.contains("unexpected eof")))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Two ends of one loopback connection.
    pub(crate) fn pair() -> (Socket, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        (Socket::new(client).unwrap(), Socket::new(server).unwrap())
    }

    #[test]
    fn a_deadline_ends_a_read_and_gives_the_old_limits_back() {
        let (mut client, _server) = pair();
        client.set_timeouts(Some(Duration::from_secs(100)), None).unwrap();
        client.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
        let kind = client.read(&mut [0; 4]).unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        assert_eq!(client.read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        client.set_deadline(None);
        assert_eq!(client.stream().read_timeout().unwrap(), Some(Duration::from_secs(100)));
        assert_eq!(client.stream().write_timeout().unwrap(), None);
    }

    #[test]
    fn another_owner_can_end_a_read() {
        let (mut client, _server) = pair();
        let other = client.clone();
        other.shutdown(Shutdown::Both);
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
        assert!(client.is_cut());
    }

    #[test]
    fn a_peer_that_has_ended_its_own_direction_is_not_cut() {
        let (mut client, server) = pair();
        server.shutdown(Shutdown::Write);
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
        assert!(!client.is_cut());
    }
}
