//! The connections of a service and their threads.

use super::{Accepted, Handler, ServiceSpec, Socket};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a thread waits for its next connection.
const IDLE_THREAD: Duration = Duration::from_secs(30);

pub(super) struct Connections {
    spec: ServiceSpec,
    handler: Handler,
    state: Mutex<State>,
    /// Signalled when the last connection ends.
    none_left: Condvar,
}

struct State {
    open: HashMap<u32, Socket>,
    threads: Vec<JoinHandle<()>>,
    /// Number of the last thread started, for names.
    started: u64,
    /// A rendezvous: a send succeeds only when an idle thread waits. `None` once the service stops.
    idle: Option<(Sender<Accepted>, Receiver<Accepted>)>,
}

impl Connections {
    pub(super) fn new(spec: ServiceSpec, handler: Handler) -> Self {
        let idle = Some(bounded(0));
        let state = State { open: HashMap::new(), threads: Vec::new(), started: 0, idle };
        Self { spec, handler, state: Mutex::new(state), none_left: Condvar::new() }
    }
    pub(super) fn open(&self) -> usize {
        self.state.lock().open.len()
    }

    /// Hands a connection to an idle thread, or to a new one.
    pub(super) fn serve(self: &Arc<Self>, accepted: Accepted) -> io::Result<()> {
        let mut state = self.state.lock();
        let Some((sender, receiver)) = state.idle.clone() else { return Ok(()) };
        let id = accepted.id;
        state.open.insert(id, accepted.socket.clone());
        let accepted = match sender.try_send(accepted) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(accepted) | TrySendError::Disconnected(accepted)) => accepted,
        };
        state.started += 1;
        let name = format!("{}-{}", self.spec.name, state.started);
        let connections = self.clone();
        let work = move || connections.work(accepted, &receiver);
        match thread::Builder::new().name(name).stack_size(self.spec.stack).spawn(work) {
            Ok(thread) => {
                state.threads.retain(|thread| !thread.is_finished());
                state.threads.push(thread);
                Ok(())
            }
            Err(error) => {
                state.open.remove(&id);
                Err(error)
            }
        }
    }
    /// A thread's life: one connection after another.
    fn work(&self, first: Accepted, next: &Receiver<Accepted>) {
        let mut accepted = Some(first);
        while let Some(connection) = accepted {
            self.run(connection);
            accepted = next.recv_timeout(IDLE_THREAD).ok();
        }
    }
    fn run(&self, connection: Accepted) {
        let (id, peer) = (connection.id, connection.peer);
        if catch_unwind(AssertUnwindSafe(|| (self.handler)(connection))).is_err() {
            log::error!("{}: a panic ended connection {id} from {peer}; others go on", self.spec.name);
        }
        let mut state = self.state.lock();
        let ended = state.open.remove(&id);
        if state.open.is_empty() {
            self.none_left.notify_all();
        }
        drop(state);
        drop(ended);
    }

    /// Shuts a direction of every open socket. From the first call on nothing new is served and idle threads end.
    pub(super) fn shutdown(&self, how: Shutdown) {
        let mut state = self.state.lock();
        state.idle = None;
        state.open.values().for_each(|socket| socket.shutdown(how));
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
            // Panics of handlers are contained in `run`.
            let _ = thread.join();
        }
    }
}
