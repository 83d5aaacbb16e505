//! Sessions that wait for a server: each has an eventfd that is signalled when its hostgroup may serve it.

use crate::hostgroups::HostgroupId;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
struct Queue {
    entries: Vec<Arc<Entry>>,
    /// Wakes by hostgroup that found everybody who waits for it awake already: for those who come next.
    surplus: HashMap<HostgroupId, usize>,
    waits: BTreeMap<HostgroupId, Waits>,
}

/// How sessions have waited for a hostgroup.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Waits that have ended.
    pub count: u64,
    /// The time they took.
    pub time: Duration,
    /// Sessions that wait now.
    pub waiting: u64,
}

impl Queue {
    fn of(&self, hostgroup: HostgroupId) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(move |entry| entry.hostgroup == hostgroup)
    }
    fn wake_one(&mut self, hostgroup: HostgroupId) {
        let mut asleep = self.of(hostgroup).filter(|entry| !entry.signalled.swap(true, Ordering::SeqCst));
        if let Some(entry) = asleep.next() {
            return entry.signal();
        }
        drop(asleep);
        if self.of(hostgroup).next().is_some() {
            *self.surplus.entry(hostgroup).or_default() += 1;
        }
    }
}

/// The queue, shared.
#[derive(Default)]
pub struct Waiters {
    queue: Mutex<Queue>,
    // Read without the lock on every release: almost always zero.
    length: AtomicUsize,
}

impl Waiters {
    /// Registers a waiter. To miss no wake it must look again for a server after this, before it waits.
    pub fn register(self: &Arc<Self>, hostgroup: HostgroupId) -> io::Result<Waiter> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut queue = self.queue.lock();
        let first = queue.of(hostgroup).next().is_none();
        let left_over = queue.surplus.get_mut(&hostgroup).is_some_and(|surplus| {
            let any = *surplus > 0;
            *surplus = surplus.saturating_sub(1);
            any
        });
        let entry = Arc::new(Entry { hostgroup, event, signalled: AtomicBool::new(first || left_over) });
        queue.entries.push(Arc::clone(&entry));
        queue.waits.entry(hostgroup).or_default().waiting += 1;
        self.length.store(queue.entries.len(), Ordering::SeqCst);
        drop(queue);
        Ok(Waiter { waiters: Arc::clone(self), entry, since: Instant::now() })
    }
    /// Wakes one waiter of a hostgroup: a connection or a place for one has become free.
    pub fn wake_one(&self, hostgroup: HostgroupId) {
        if self.length.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.queue.lock().wake_one(hostgroup);
    }
    /// Whether somebody waits for a hostgroup, so that who comes now has to queue.
    pub fn has(&self, hostgroup: HostgroupId) -> bool {
        self.length.load(Ordering::SeqCst) > 0 && self.queue.lock().of(hostgroup).next().is_some()
    }
    /// Wakes everybody: placement, a pin or the daemon's state has changed.
    pub fn wake_all(&self) {
        for entry in &self.queue.lock().entries {
            entry.signalled.store(true, Ordering::SeqCst);
            entry.signal();
        }
    }
    /// How sessions have waited for each hostgroup; with `reset` counting begins anew.
    pub fn waits(&self, reset: bool) -> BTreeMap<HostgroupId, Waits> {
        let mut queue = self.queue.lock();
        let waits = queue.waits.clone();
        if reset {
            queue.waits.retain(|_, waits| waits.waiting > 0);
            for waits in queue.waits.values_mut() {
                *waits = Waits { waiting: waits.waiting, ..Waits::default() };
            }
        }
        waits
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
    since: Instant,
}

impl Waiter {
    /// Descriptor that becomes readable when woken.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.entry.event.as_fd()
    }
    /// Whether it is this waiter's turn to look for a server: it was woken, or came first.
    pub fn may_look(&self) -> bool {
        self.entry.signalled.load(Ordering::SeqCst)
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
        let hostgroup = self.entry.hostgroup;
        let mut queue = self.waiters.queue.lock();
        queue.entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        let waits = queue.waits.entry(hostgroup).or_default();
        waits.waiting = waits.waiting.saturating_sub(1);
        waits.count += 1;
        waits.time += self.since.elapsed();
        self.waiters.length.store(queue.entries.len(), Ordering::SeqCst);
        if self.entry.signalled.load(Ordering::SeqCst) {
            queue.wake_one(hostgroup);
        }
        if queue.of(hostgroup).next().is_none() {
            queue.surplus.remove(&hostgroup);
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
        assert_eq!([&other, &first, &second].map(Waiter::may_look), [true, true, false]);
        first.clear();
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
        first.clear();
        waiters.wake_one(0);
        drop(first);
        assert!(woken(&second));
        drop(second);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn who_comes_later_queues_and_finds_the_wakes_that_nobody_needed() {
        let waiters = Arc::new(Waiters::default());
        assert!(!waiters.has(0));
        let first = waiters.register(0).unwrap();
        assert!(waiters.has(0) && !waiters.has(1));
        // It is awake already, so this is for the next.
        waiters.wake_one(0);
        let (second, third) = (waiters.register(0).unwrap(), waiters.register(0).unwrap());
        assert_eq!([&first, &second, &third].map(Waiter::may_look), [true, true, false]);
        drop((first, second, third));
        assert!(!waiters.has(0));
    }

    #[test]
    fn waits_are_counted_when_they_end() {
        let waiters = Arc::new(Waiters::default());
        let (first, second) = (waiters.register(1).unwrap(), waiters.register(1).unwrap());
        drop(first);
        let waits = waiters.waits(true)[&1];
        assert_eq!((waits.count, waits.waiting), (1, 1));
        assert!(waits.time > Duration::ZERO);
        assert_eq!(waiters.waits(false)[&1], Waits { waiting: 1, ..Waits::default() });
        drop(second);
        let waits = waiters.waits(true)[&1];
        assert_eq!((waits.count, waits.waiting), (1, 0));
        assert!(waiters.waits(false).is_empty());
    }
}
