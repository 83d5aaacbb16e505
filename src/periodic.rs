//! A thread that does one thing again and again.

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Owns the thread; dropping it stops and joins the thread.
pub struct Periodic {
    // Disconnected, it stops the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Starts a thread that waits for `interval`, does its work, and begins anew.
    pub fn start(
        name: &str,
        interval: Duration,
        mut work: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = bounded::<()>(0);
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                work();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}
