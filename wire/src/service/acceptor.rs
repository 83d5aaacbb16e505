//! The thread that accepts on one address.

use super::connections::Connections;
use super::{ConnectionLimit, Socket};
use crate::SqlError;
use crate::channel::Channel;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

/// Connections the kernel queues for us.
const BACKLOG: i32 = 1024;
/// Pause after an accept that failed for want of descriptors or memory.
const BACK_OFF: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Owns the thread; dropping it stops and joins the thread and closes the listener.
pub(super) struct Acceptor {
    address: SocketAddr,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    pub(super) fn start(
        name: String,
        address: SocketAddr,
        limit: ConnectionLimit,
        connections: Arc<Connections>,
    ) -> io::Result<Self> {
        let listener = bind(address)?;
        let address = listener.local_addr()?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let accepting = Accepting { listener, wake: wake.clone(), limit, connections, failing: false };
        let thread = thread::Builder::new().name(name).spawn(move || accepting.run())?;
        Ok(Self { address, wake, thread: Some(thread) })
    }
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // An eventfd refuses a write only when its counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The loop contains every panic of others; one of its own has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the last run's connections to time out.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

struct Accepting {
    listener: TcpListener,
    wake: Arc<OwnedFd>,
    limit: ConnectionLimit,
    connections: Arc<Connections>,
    /// Whether the last attempt failed, so that a series of failures is logged once.
    failing: bool,
}

impl Accepting {
    fn run(mut self) {
        while self.wait(None) {
            match self.accept() {
                Ok(()) => self.failing = false,
                Err(error) if is_transient(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        log::error!(
                            "cannot take a connection ({error}): trying again; raise the limit on open files or threads"
                        );
                    }
                    if !self.wait(Some(&BACK_OFF)) {
                        return;
                    }
                }
            }
        }
    }
    /// Waits for a connection, or for `pause` without looking at connections. False: stop.
    fn wait(&self, pause: Option<&Timespec>) -> bool {
        let watched = if pause.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN), PollFd::new(&self.listener, watched)];
        // A poll that fails (EINTR) is tried again by the loop: accept does not block.
        let _ = poll(&mut fds, pause);
        let [wake, _] = &fds;
        wake.revents().is_empty()
    }
    fn accept(&self) -> io::Result<()> {
        // The socket blocks: on Linux it does not inherit the listener's mode.
        let (stream, peer) = self.listener.accept()?;
        let socket = Socket::new(stream)?;
        if self.connections.open() >= (self.limit)() {
            refuse(socket, &SqlError::new(1040, "08004", "Too many connections"));
            return Ok(());
        }
        let accepted = super::Accepted { socket: socket.clone(), peer, id: next_id() };
        self.connections.serve(accepted).map_err(|error| {
            refuse(socket, &SqlError::new(1135, "HY000", format!("Can't create a new thread ({error})")));
            // Its kind may be WouldBlock, which means something else here.
            io::Error::other(format!("no thread for it: {error}"))
        })
    }
}

/// Errors of one connection that was gone before it was taken, as accept(2) lists them.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}

/// An error in place of the greeting. An empty send buffer takes it without waiting; a client that has gone needs no answer.
fn refuse(socket: Socket, error: &SqlError) {
    let mut channel = Channel::new(socket);
    channel.queue(&error.to_payload());
    let _ = channel.flush();
}

/// Unique in the process until 2^32 connections have come, and never 0.
fn next_id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    loop {
        let id = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if id != 0 {
            return id;
        }
    }
}
