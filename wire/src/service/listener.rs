//! One address that a service listens on, and what is done there by whichever thread waits for a connection.

use super::socket_file::SocketFile;
use super::{Address, Socket};
use crate::SqlError;
use crate::channel::Channel;
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Connections the kernel queues for us; it allows 4096 by default.
const BACKLOG: i32 = 4096;
/// Time limit that accepted sockets begin with, which is right for most logins, and how long a thread waits for a
/// connection before it looks whether it is needed.
const LIMIT: Duration = Duration::from_secs(10);

/// A bound address. Threads of the service wait in `accept`, and the kernel wakes one for each connection.
pub(super) struct Listener {
    address: Address,
    socket: socket2::Socket,
    file: Option<SocketFile>,
}

impl Listener {
    /// `mode` is that of a unix socket's file.
    pub(super) fn bind(address: &Address, mode: u32) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Self::bind_tcp(*address),
            Address::Unix(path) => Self::bind_unix(path, mode),
        }
    }
    fn bind_tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the last run's connections to time out.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            // So that 0.0.0.0 and [::] can stand beside each other with the same port.
            socket.set_only_v6(true)?;
        }
        Socket::prepare_listener(&socket, LIMIT)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let bound = socket.local_addr()?.as_socket().unwrap_or(address);
        Ok(Self { address: bound.into(), socket, file: None })
    }
    fn bind_unix(path: &Path, mode: u32) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_read_timeout(Some(LIMIT))?;
        let file = SocketFile::bind(&socket, path, mode, BACKLOG)?;
        Ok(Self { address: Address::Unix(path.to_owned()), socket, file: Some(file) })
    }
    pub(super) fn address(&self) -> &Address {
        &self.address
    }
    /// Waits for a connection; `None` if there is none for a while, or it was gone before it was taken.
    pub(super) fn accept(&self) -> io::Result<Option<(Socket, SocketAddr)>> {
        match self.socket.accept() {
            Ok((socket, peer)) => match peer.as_socket() {
                Some(peer) => Ok(Some((Socket::accepted(socket.into(), LIMIT), peer))),
                None => unix(socket.into()).map(Some),
            },
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
    /// Refuses connections from now on, and ends every `accept`.
    pub(super) fn close(&self) {
        // On Linux this ends the state of listening, and the address can be bound again.
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

/// The connections of a unix socket do not inherit its options.
fn unix(stream: TcpStream) -> io::Result<(Socket, SocketAddr)> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok((Socket::accepted(stream, LIMIT), Socket::UNIX_PEER))
}

/// Errors of one connection that was gone before it was taken, as accept(2) lists them, and of a wait that is over.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
    )
}

/// An error in place of the greeting. An empty send buffer takes it without waiting; a client that has gone needs no answer.
pub fn refuse(socket: Socket, error: &SqlError) {
    let mut channel = Channel::new(socket);
    channel.queue(&error.to_payload());
    let _ = channel.flush();
}

/// Unique in the process until 2^32 connections have come, and never 0.
pub(super) fn next_id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    loop {
        let id = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if id != 0 {
            return id;
        }
    }
}
