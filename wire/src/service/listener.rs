//! One address that a service listens on, and what is done there by whichever thread waits for a connection.

use super::Socket;
use crate::SqlError;
use crate::channel::Channel;
use socket2::{Domain, Protocol, SockRef, Type};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Connections the kernel queues for us; it allows 4096 by default.
const BACKLOG: i32 = 4096;
/// Time limit that accepted sockets begin with, which is right for most logins, and how long a thread waits for a
/// connection before it looks whether it is needed.
const LIMIT: Duration = Duration::from_secs(10);

/// A bound address. Threads of the service wait in `accept`, and the kernel wakes one for each connection.
pub(super) struct Listener {
    address: SocketAddr,
    socket: TcpListener,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the last run's connections to time out.
        socket.set_reuse_address(true)?;
        Socket::prepare_listener(&socket, LIMIT)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from(socket);
        Ok(Self { address: socket.local_addr()?, socket })
    }
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
    /// Waits for a connection; `None` if there is none for a while, or it was gone before it was taken.
    pub(super) fn accept(&self) -> io::Result<Option<(Socket, SocketAddr)>> {
        match self.socket.accept() {
            Ok((stream, peer)) => Ok(Some((Socket::accepted(stream, LIMIT), peer))),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
    /// Refuses connections from now on, and ends every `accept`.
    pub(super) fn close(&self) {
        // On Linux this ends the state of listening, and the address can be bound again.
        let _ = SockRef::from(&self.socket).shutdown(Shutdown::Both);
    }
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
pub(super) fn refuse(socket: Socket, error: &SqlError) {
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
