//! A connection, of TCP or a unix socket, that several owners may hold: the thread that reads it, and whoever may have to close it.

mod limits;
mod stream;

use limits::{Limits, SHORTEST, serves};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
pub use stream::{Buffered, Stream};

/// A shared handle on one connection. Reading and writing is for one thread; closing is for any.
#[derive(Debug, Clone)]
pub struct Socket(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// What is asked of it here is the same for a unix socket.
    stream: TcpStream,
    limits: Mutex<Limits>,
    /// Whether reads and writes must look at the limits first: there is a deadline, or the system is to be told.
    unsettled: AtomicBool,
}

/// How long an idle peer may stay silent at TCP's level before it is asked for a sign of life. One that gives none for about as long
/// again is gone (Linux asks nine times).
pub const KEEPALIVE: Duration = Duration::from_secs(120);

impl Socket {
    /// The address of both ends of a unix socket: this machine, and a port that no client of TCP has.
    pub const UNIX_PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// Takes over a stream, connected or about to be; sets TCP_NODELAY and keepalive.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        set_options(SockRef::from(&stream))?;
        Ok(Self::with_limits(stream, Limits::default()))
    }
    /// Takes over an accepted stream, which has its options from the listener: those of [`Socket::prepare_listener`],
    /// with the same `limit`.
    pub(crate) fn accepted(stream: TcpStream, limit: Duration) -> Self {
        let told = Some(limit);
        Self::with_limits(stream, Limits { told_read: told, told_write: told, ..Limits::default() })
    }
    fn with_limits(stream: TcpStream, limits: Limits) -> Self {
        Self(Arc::new(Shared { stream, limits: Mutex::new(limits), unsettled: AtomicBool::new(true) }))
    }
    /// Sets what the connections of a listener are to have: TCP_NODELAY, keepalive and time limits (socket(7): accepted
    /// sockets inherit them on Linux).
    pub(crate) fn prepare_listener(listener: &socket2::Socket, limit: Duration) -> io::Result<()> {
        set_options(SockRef::from(listener))?;
        listener.set_read_timeout(Some(limit))?;
        listener.set_write_timeout(Some(limit))
    }
    /// After how long a silence TCP asks the peer for a sign of life; `None` for never. A new socket has [`KEEPALIVE`]. Does nothing
    /// on a unix socket.
    pub fn set_keepalive(&self, time: Option<Duration>) -> io::Result<()> {
        if self.is_unix() {
            return Ok(());
        }
        let socket = SockRef::from(&self.0.stream);
        match time {
            Some(time) => socket.set_tcp_keepalive(&keepalive(time)),
            None => socket.set_keepalive(false),
        }
    }
    /// The underlying stream, for `poll` and socket options.
    pub fn stream(&self) -> &TcpStream {
        &self.0.stream
    }
    /// Address of this end (getsockname).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        SockRef::from(&self.0.stream)
            .local_addr()
            .map(|address| address.as_socket().unwrap_or(Self::UNIX_PEER))
    }
    /// Address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        SockRef::from(&self.0.stream)
            .peer_addr()
            .map(|address| address.as_socket().unwrap_or(Self::UNIX_PEER))
    }
    /// Whether it is a unix socket.
    pub fn is_unix(&self) -> bool {
        SockRef::from(&self.0.stream).local_addr().is_ok_and(|address| address.is_unix())
    }
    /// Read and write time limits for each system call; `None` waits for ever. While a deadline is set they wait for its end.
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) {
        let (read, write) = (read.map(|t| t.max(SHORTEST)), write.map(|t| t.max(SHORTEST)));
        self.change(|limits| (limits.read, limits.write) = (read, write));
    }
    /// Exchanges the read time limit, and returns the one before.
    pub(crate) fn replace_read_timeout(&self, read: Option<Duration>) -> Option<Duration> {
        self.change(|limits| std::mem::replace(&mut limits.read, read.map(|t| t.max(SHORTEST))))
    }
    /// Bounds every read and write until `None` is set: none waits for much longer than the time left. It holds below
    /// TLS as well, so that a handshake or a record that trickles in cannot outlast it.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.change(|limits| limits.deadline = deadline);
    }
    fn change<R>(&self, change: impl FnOnce(&mut Limits) -> R) -> R {
        let mut limits = self.0.limits.lock();
        self.0.unsettled.store(true, Ordering::Release);
        change(&mut limits)
    }
    /// Whether a deadline is in force.
    pub(crate) fn has_deadline(&self) -> bool {
        self.0.limits.lock().deadline.is_some()
    }
    #[inline]
    fn is_settled(&self) -> bool {
        !self.0.unsettled.load(Ordering::Acquire)
    }
    /// Tells the system for how long the next read may wait.
    fn limit_read(&self) -> io::Result<()> {
        let mut limits = self.0.limits.lock();
        if let Some(told) = limits.change(limits.read, limits.told_read, |told, wanted| told == wanted)? {
            self.0.stream.set_read_timeout(told)?;
            limits.told_read = told;
        }
        self.settle(&limits);
        Ok(())
    }
    /// The same for the next write.
    fn limit_write(&self) -> io::Result<()> {
        let mut limits = self.0.limits.lock();
        if let Some(told) = limits.change(limits.write_tick(), limits.told_write, serves)? {
            self.0.stream.set_write_timeout(told)?;
            limits.told_write = told;
        }
        self.settle(&limits);
        Ok(())
    }
    fn settle(&self, limits: &Limits) {
        let told = limits.told_read == limits.read && serves(limits.told_write, limits.write_tick());
        let unsettled = limits.deadline.is_some() || !told || !limits.stuck.is_zero();
        self.0.unsettled.store(unsettled, Ordering::Release);
    }
    /// Whether a read may be tried again whose time is over.
    fn may_read_again(&self) -> bool {
        self.has_deadline()
    }
    /// Whether a write of so many bytes may be tried again, after what became of it.
    fn may_write_again(&self, wanted: usize, result: &io::Result<usize>) -> bool {
        let mut limits = self.0.limits.lock();
        let again = limits.wrote(wanted, result);
        self.settle(&limits);
        again
    }
    /// The processor that its packets arrive on (SO_INCOMING_CPU); `None` where none has, as on a unix socket.
    pub fn processor(&self) -> Option<u32> {
        rustix::net::sockopt::socket_incoming_cpu(&self.0.stream).ok().filter(|number| *number != u32::MAX)
    }
    /// Ends the connection, or one direction of it, under the thread that uses it.
    pub fn shutdown(&self, how: Shutdown) {
        // The peer may have gone first; then there is nothing left to end.
        let _ = self.0.stream.shutdown(how);
    }
    /// Whether the peer's system has reset the connection, or does so `within` a time. Once the stream has come to its end, that is
    /// its answer to bytes for which the peer had no reader any more.
    pub fn is_reset(&self, within: Duration) -> bool {
        let mut descriptors = [PollFd::new(&self.0.stream, PollFlags::empty())];
        let within = Timespec::try_from(within).unwrap_or_default();
        let [seen] = match poll(&mut descriptors, Some(&within)) {
            Ok(_) => descriptors,
            Err(_) => return false,
        };
        seen.revents().contains(PollFlags::ERR)
    }
    /// Whether both directions are closed, as [`Socket::shutdown`] leaves them. A peer that has only ended its own may
    /// still read an answer.
    pub fn is_cut(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.0.stream, PollFlags::empty())];
        let at_once = Timespec::default();
        poll(&mut descriptors, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

fn set_options(socket: SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&keepalive(KEEPALIVE))
}

fn keepalive(time: Duration) -> TcpKeepalive {
    TcpKeepalive::new().with_time(time).with_interval((time / 8).max(Duration::from_secs(1)))
}

impl Socket {
    /// Reads, as limits say that the system has still to be told, or that it cannot keep by itself.
    #[cold]
    fn read_within_limits(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.limit_read()?;
            match receive(&self.0.stream, buffer) {
                Err(Errno::AGAIN) if self.may_read_again() => {}
                result => return Ok(result?),
            }
        }
    }
    /// The same for a write, of which `sent` came when it was tried.
    #[cold]
    fn write_within_limits(&self, bytes: &[u8], mut sent: Option<io::Result<usize>>) -> io::Result<usize> {
        loop {
            if let Some(sent) = sent.take()
                && !self.may_write_again(bytes.len(), &sent)
            {
                return sent;
            }
            self.limit_write()?;
            sent = Some(transmit(&self.0.stream, bytes).map_err(io::Error::from));
        }
    }
}

#[inline]
fn receive(stream: &TcpStream, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(stream, buffer, RecvFlags::empty()).map(|(_, count)| count)
}

#[inline]
fn transmit(stream: &TcpStream, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.is_settled() {
            true => Ok(receive(&self.0.stream, buffer)?),
            false => self.read_within_limits(buffer),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_settled() {
            return self.write_within_limits(bytes, None);
        }
        match transmit(&self.0.stream, bytes) {
            Ok(count) if count == bytes.len() => Ok(count),
            sent => self.write_within_limits(bytes, Some(sent.map_err(io::Error::from))),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::limits::{LOOKS, WRITE_TICK};
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
        let (mut client, mut server) = pair();
        client.set_timeouts(Some(Duration::from_secs(100)), None);
        client.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(client.read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(client.read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        client.set_deadline(None);
        server.write_all(b"x").unwrap();
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 1);
        assert_eq!(client.stream().read_timeout().unwrap(), Some(Duration::from_secs(100)));
    }

    #[test]
    fn the_system_is_told_only_what_it_must_know() {
        let (mut client, mut server) = pair();
        let told = |socket: &Socket| {
            [socket.stream().read_timeout().unwrap(), socket.stream().write_timeout().unwrap()]
        };
        let hour = Duration::from_secs(3600);
        client.set_timeouts(Some(hour), Some(hour * LOOKS));
        assert_eq!(told(&client), [None, None]);
        client.write_all(b"x").unwrap();
        assert_eq!(told(&client), [None, Some(hour)]);
        client.set_deadline(Some(Instant::now() + hour));
        server.write_all(b"xy").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        let first = told(&client);
        client.read_exact(&mut [0; 1]).unwrap();
        client.write_all(b"x").unwrap();
        assert_eq!(told(&client), first, "a limit that is near enough stays");
    }

    /// A peer that takes nothing: the write ends after its limit, whatever limit the system has.
    #[test]
    fn a_blocked_write_ends() {
        for (told, limit) in [(None, 20), (Some(10), 30), (Some(1000), 20)] {
            let (mut client, _server) = pair();
            let told = told.map(Duration::from_millis);
            client.stream().set_write_timeout(told).unwrap();
            client.0.limits.lock().told_write = told;
            client.set_timeouts(None, Some(Duration::from_millis(limit)));
            let error = loop {
                if let Err(error) = client.write_all(&[0; 1 << 16]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_write_may_wait_longer_than_the_system_was_told() {
        let (mut client, mut server) = pair();
        client.0.limits.lock().told_write = Some(WRITE_TICK);
        client.stream().set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        client.set_timeouts(None, None);
        let reader = std::thread::spawn(move || {
            // Begins when the writer has been stuck a few times.
            std::thread::sleep(Duration::from_millis(50));
            let mut total = 0;
            while let Ok(count @ 1..) = server.read(&mut [0; 1 << 16]) {
                total += count;
            }
            total
        });
        client.write_all(&[7; 20 << 20]).unwrap();
        client.shutdown(Shutdown::Both);
        assert_eq!(reader.join().unwrap(), 20 << 20);
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
    fn bytes_for_which_there_is_no_reader_are_answered_by_a_reset() {
        let (mut client, mut server) = pair();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
        assert!(!client.is_reset(Duration::ZERO), "what was sent was read");
        client.write_all(b"x").unwrap();
        assert!(client.is_reset(Duration::from_secs(10)));
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0, "it is an end still");
    }

    #[test]
    fn a_peer_that_has_ended_its_own_direction_is_not_cut() {
        let (mut client, server) = pair();
        server.shutdown(Shutdown::Write);
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
        assert!(!client.is_cut());
    }
}
