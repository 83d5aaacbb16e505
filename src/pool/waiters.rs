//! Sessions that wait for a server: each has an eventfd that is signalled when its hostgroup may serve it.

use crate::hostgroups::HostgroupId;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Entry {
    hostgroup: HostgroupId,
    event: OwnedFd,
    signalled: AtomicBool,
}

impl Entry {
    fn signal(&self) {
        // Cannot fail: the counter is read to zero each time, far from its limit.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

/// Everybody who waits, first come first.
#[derive(Default)]
pub struct Waiters {
    entries: Mutex<Vec<Arc<Entry>>>,
    // Read without the lock on every release: almost always zero.
    length: AtomicUsize,
}

impl Waiters {
    /// Registers a waiter. To miss no wake it must look again for a server after this, before it waits.
    pub fn register(self: &Arc<Self>, hostgroup: HostgroupId) -> io::Result<Waiter> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let entry = Arc::new(Entry { hostgroup, event, signalled: AtomicBool::new(false) });
        let mut entries = self.entries.lock();
        entries.push(Arc::clone(&entry));
        self.length.store(entries.len(), Ordering::SeqCst);
        drop(entries);
        Ok(Waiter { waiters: Arc::clone(self), entry })
    }
    /// Wakes one waiter of a hostgroup: a connection or a place for one has become free.
    pub fn wake_one(&self, hostgroup: HostgroupId) {
        if self.length.load(Ordering::SeqCst) == 0 {
            return;
        }
        let entries = self.entries.lock();
        let waiting = entries.iter().filter(|entry| entry.hostgroup == hostgroup);
        if let Some(entry) = waiting.into_iter().find(|entry| !entry.signalled.swap(true, Ordering::SeqCst)) {
            entry.signal();
        }
    }
    /// Wakes everybody: placement, a pin or the daemon's state has changed.
    pub fn wake_all(&self) {
        for entry in self.entries.lock().iter() {
            entry.signalled.store(true, Ordering::SeqCst);
            entry.signal();
        }
    }
    /// How many wait.
    pub fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }
}

/// A place in the queue, given up when dropped. A wake it did not use passes to the next in line.
pub struct Waiter {
    waiters: Arc<Waiters>,
    entry: Arc<Entry>,
}

impl Waiter {
    /// Descriptor that becomes readable when woken.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.entry.event.as_fd()
    }
    /// Takes note of a wake. Look for a server after this, not before.
    pub fn clear(&self) {
        let mut counter = [0u8; 8];
        // Nothing to read where the wait ended for another reason.
        let _ = rustix::io::read(&self.entry.event, &mut counter);
        self.entry.signalled.store(false, Ordering::SeqCst);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut entries = self.waiters.entries.lock();
        entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        self.waiters.length.store(entries.len(), Ordering::SeqCst);
        drop(entries);
        if self.entry.signalled.load(Ordering::SeqCst) {
            self.waiters.wake_one(self.entry.hostgroup);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn woken(waiter: &Waiter) -> bool {
        let event = waiter.event();
        let mut fds = [PollFd::new(&event, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn one_wake_goes_to_one_waiter_of_that_hostgroup_in_order() {
        let waiters = Arc::new(Waiters::default());
        let (other, first, second) =
            (waiters.register(1).unwrap(), waiters.register(0).unwrap(), waiters.register(0).unwrap());
        waiters.wake_one(0);
        assert_eq!([woken(&other), woken(&first), woken(&second)], [false, true, false]);
        waiters.wake_one(0);
        assert!(woken(&second));
        first.clear();
        assert!(!woken(&first));
        waiters.wake_all();
        assert!(woken(&other) && woken(&first));
    }

    #[test]
    fn an_unused_wake_passes_on() {
        let waiters = Arc::new(Waiters::default());
        let (first, second) = (waiters.register(0).unwrap(), waiters.register(0).unwrap());
        waiters.wake_one(0);
        drop(first);
        assert!(woken(&second));
        drop(second);
        assert_eq!(waiters.len(), 0);
    }
}
