//! Watches the deployment's status on the admin port.

use super::deployment::HOSTGROUPS;
use super::narrator::Narrator;
use crate::admin;
use crate::connection::Connection;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(20);

/// A thread that tells every status it sees. Dropping it stops and joins the thread.
pub struct Watcher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches over a connection of its own.
    pub fn start(mut admin: Connection, narrator: &Arc<Narrator>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, narrator) = (Arc::clone(&stop), Arc::clone(narrator));
        let watch = move || {
            while !stopped.load(Ordering::Relaxed) {
                match admin.scalar(&admin::status_query(HOSTGROUPS.writer)) {
                    Ok(status) => narrator.status(status.as_deref().unwrap_or("unknown")),
                    Err(error) => {
                        return narrator.step(&format!("the status is not watched any more: {error}"));
                    }
                }
                thread::sleep(INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("status-watcher".into()).spawn(watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by then; the demonstration itself is not affected.
            let _ = thread.join();
        }
    }
}
