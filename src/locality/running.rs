//! A thread whose end is waited for by a deadline.

use crossbeam_channel::{Receiver, bounded};
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// The thread, and what is disconnected when it has ended.
pub struct Running {
    handle: JoinHandle<()>,
    ended: Receiver<()>,
}

impl Running {
    /// Starts it.
    pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (running, ended) = bounded::<()>(0);
        let handle = Builder::new().name(name.into()).spawn(move || {
            run();
            drop(running);
        })?;
        Ok(Self { handle, ended })
    }
    /// Waits for its end.
    pub fn ends_by(&self, deadline: Instant) -> bool {
        !self.ended.recv_deadline(deadline).is_err_and(|error| error.is_timeout())
    }
    /// False if it has not ended at `deadline`: then it is left where it is.
    pub fn join(self, deadline: Instant) -> bool {
        if !self.ends_by(deadline) {
            return false;
        }
        if self.handle.join().is_err() {
            log::error!("locality: a thread panicked");
        }
        true
    }
}
