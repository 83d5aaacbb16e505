//! The threads of a service and their connections.
//!
//! A thread waits in `accept`, serves the connection it gets itself, and waits again: nothing is handed over. Whoever takes
//! a connection and leaves nobody waiting starts another thread first.

use super::listener::{Listener, next_id, refuse};
use super::{Accepted, Address, ConnectionLimit, Handler, Kind, ServiceSpec, Socket};
use crate::SqlError;
use crate::descriptors::is_among_the_last;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Most threads that wait on one address. One more that has served its connection ends.
const MOST_WAITING: usize = 64;
/// Pause after an accept that failed for want of descriptors or memory.
const BACK_OFF: Duration = Duration::from_millis(100);

pub(super) struct Connections {
    kind: Kind,
    limit: ConnectionLimit,
    handler: Handler,
    /// How many connections were refused with error 1040.
    pub(super) refused: Arc<AtomicU64>,
    pub(super) state: Mutex<State>,
    /// Signalled when the last connection ends.
    none_left: Condvar,
    /// Signalled when an address is closed.
    closed: Condvar,
}

pub(super) struct State {
    pub(super) spec: ServiceSpec,
    open: HashMap<u32, Socket>,
    places: Vec<Place>,
    threads: Vec<JoinHandle<()>>,
    /// Number of the last thread started, for names.
    started: u64,
}

/// An address and the threads that wait there.
struct Place {
    listener: Arc<Listener>,
    waiting: usize,
    /// Whether the last attempt failed, so that a series of failures is logged once.
    failing: bool,
}

/// Why a connection is not served.
enum Refusal {
    TooMany,
    NoThread(io::Error),
    /// The address is closed in this moment.
    Closed,
}

impl State {
    /// The place of a listener, unless it has been closed.
    fn place(&mut self, listener: &Arc<Listener>) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| Arc::ptr_eq(&place.listener, listener))
    }
    /// Waits at a place with one thread more, if it is still there and needs one.
    fn wait_at(&mut self, listener: &Arc<Listener>) -> bool {
        match self.place(listener) {
            Some(place) if place.waiting < MOST_WAITING => {
                place.waiting += 1;
                true
            }
            _ => false,
        }
    }
}

impl Connections {
    pub(super) fn new(spec: ServiceSpec, kind: Kind, limit: ConnectionLimit, handler: Handler) -> Self {
        let state = State { spec, open: HashMap::new(), places: Vec::new(), threads: Vec::new(), started: 0 };
        let (none_left, closed) = (Condvar::new(), Condvar::new());
        let (refused, state) = (Arc::default(), Mutex::new(state));
        Self { kind, limit, handler, refused, state, none_left, closed }
    }
    pub(super) fn open(&self) -> usize {
        self.state.lock().open.len()
    }
    pub(super) fn addresses(&self) -> Vec<Address> {
        self.state.lock().places.iter().map(|place| place.listener.address().clone()).collect()
    }

    /// Accepts on one more address.
    pub(super) fn listen(self: &Arc<Self>, address: &Address) -> io::Result<Address> {
        let listener = Arc::new(Listener::bind(address, self.kind.socket_mode())?);
        let address = listener.address().clone();
        let mut state = self.state.lock();
        if let Err(error) = self.start(&mut state, listener.clone()) {
            listener.close();
            return Err(error);
        }
        state.places.push(Place { listener, waiting: 1, failing: false });
        Ok(address)
    }
    /// Closes an address, or all of them.
    pub(super) fn unlisten(&self, address: Option<&Address>) {
        let mut state = self.state.lock();
        state.places.retain(|place| {
            let kept = address.is_some_and(|address| address != place.listener.address());
            if !kept {
                place.listener.close();
            }
            kept
        });
        self.closed.notify_all();
    }

    /// Starts a thread that waits for a connection; the caller counts it.
    fn start(self: &Arc<Self>, state: &mut State, listener: Arc<Listener>) -> io::Result<()> {
        state.started += 1;
        let name = format!("{}-{}", state.spec.name, state.started);
        let connections = self.clone();
        let work = move || connections.work(listener);
        let thread = thread::Builder::new().name(name).stack_size(state.spec.stack).spawn(work)?;
        state.threads.retain(|thread| !thread.is_finished());
        state.threads.push(thread);
        Ok(())
    }
    /// A thread's life: one connection after another.
    fn work(self: &Arc<Self>, mut listener: Arc<Listener>) {
        loop {
            match listener.accept() {
                Ok(Some((socket, peer))) => {
                    let Some(accepted) = self.admit(&listener, socket, peer) else { continue };
                    // While it serves, the thread does not keep the address open.
                    let address = Arc::downgrade(&listener);
                    drop(listener);
                    self.serve(accepted);
                    match self.return_to(&address) {
                        Some(again) => listener = again,
                        None => return,
                    }
                }
                Ok(None) if self.is_needed(&listener) => {}
                Ok(None) => return,
                Err(error) => {
                    self.report(&listener, &error);
                    if !self.back_off(&listener) {
                        return;
                    }
                }
            }
        }
    }
    /// Counts a connection in, or refuses it; then the thread goes on waiting. Not inlined: `work` is on the stack of every
    /// connection for as long as that lasts.
    #[inline(never)]
    fn admit(
        self: &Arc<Self>,
        listener: &Arc<Listener>,
        socket: Socket,
        peer: SocketAddr,
    ) -> Option<Accepted> {
        let refusal = match self.try_admit(listener, &socket) {
            Ok(id) => return Some(Accepted { socket, peer, id }),
            Err(Refusal::Closed) => return None,
            Err(Refusal::TooMany) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                SqlError::new(1040, "08004", "Too many connections")
            }
            Err(Refusal::NoThread(error)) => {
                self.report(listener, &error);
                SqlError::new(1135, "HY000", format!("Can't create a new thread ({error})"))
            }
        };
        refuse(socket, &refusal);
        None
    }
    /// The new connection's number.
    fn try_admit(self: &Arc<Self>, listener: &Arc<Listener>, socket: &Socket) -> Result<u32, Refusal> {
        let id = next_id();
        let limit = (self.limit)();
        if self.kind == Kind::Open && is_among_the_last(socket.stream()) {
            return Err(Refusal::TooMany);
        }
        let mut state = self.state.lock();
        let waiting = state.place(listener).ok_or(Refusal::Closed)?.waiting;
        if state.open.len() >= limit {
            return Err(Refusal::TooMany);
        }
        if waiting == 1 {
            // The thread that is started waits in place of this one.
            self.start(&mut state, listener.clone()).map_err(Refusal::NoThread)?;
        }
        if let Some(place) = state.place(listener) {
            place.waiting = waiting.saturating_sub(1).max(1);
            place.failing = false;
        }
        state.open.insert(id, socket.clone());
        Ok(id)
    }
    /// Logs the first failure of a series.
    fn report(&self, listener: &Arc<Listener>, error: &io::Error) {
        let mut state = self.state.lock();
        let again = state.place(listener).is_none_or(|place| std::mem::replace(&mut place.failing, true));
        drop(state);
        if !again {
            log::error!(
                "cannot take a connection ({error}): trying again; raise the limit on open files or threads"
            );
        }
    }
    fn serve(&self, connection: Accepted) {
        let (id, peer) = (connection.id, connection.peer);
        if catch_unwind(AssertUnwindSafe(|| (self.handler)(connection))).is_err() {
            log::error!("a panic ended connection {id} from {peer}; others go on");
        }
        let mut state = self.state.lock();
        let ended = state.open.remove(&id);
        if state.open.is_empty() {
            self.none_left.notify_all();
        }
        drop(state);
        drop(ended);
    }
    /// The address to wait at again, if it is still open and wants another thread.
    fn return_to(&self, address: &Weak<Listener>) -> Option<Arc<Listener>> {
        let listener = address.upgrade()?;
        self.state.lock().wait_at(&listener).then_some(listener)
    }
    /// Whether a thread that has waited for nothing is to go on: the last one is.
    fn is_needed(&self, listener: &Arc<Listener>) -> bool {
        let mut state = self.state.lock();
        let Some(place) = state.place(listener) else { return false };
        if place.waiting > 1 {
            place.waiting -= 1;
            return false;
        }
        true
    }
    /// Pauses after a failure. False if the address was closed.
    fn back_off(&self, listener: &Arc<Listener>) -> bool {
        let until = Instant::now() + BACK_OFF;
        let mut state = self.state.lock();
        while state.place(listener).is_some() && !self.closed.wait_until(&mut state, until).timed_out() {}
        state.place(listener).is_some()
    }

    /// Shuts a direction of every open socket. From the first call on nothing new is served and waiting threads end.
    pub(super) fn shutdown(&self, how: Shutdown) {
        self.unlisten(None);
        self.cut(how);
    }
    /// Shuts a direction of every open socket.
    pub(super) fn cut(&self, how: Shutdown) {
        self.state.lock().open.values().for_each(|socket| socket.shutdown(how));
    }
    /// Waits until no connection is open, at most `grace`.
    pub(super) fn wait_until_none(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let mut state = self.state.lock();
        while !state.open.is_empty() {
            if self.none_left.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
    pub(super) fn join(&self) {
        let threads = std::mem::take(&mut self.state.lock().threads);
        for thread in threads {
            // Panics of handlers are contained in `serve`.
            let _ = thread.join();
        }
    }
}
