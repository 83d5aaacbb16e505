//! Leases that a library has, known to it by numbers: one that is made up, or has been returned, is found to be so.

use super::super::provider::{Answer, Closed, Lease, Subject};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::num::NonZeroU64;

/// A lease, as a library knows it.
pub type Handle = u64;

/// Most leases that a library may have: one that never returns any would take ever more memory.
pub const MOST: usize = 65_536;

/// Why nothing was done with a lease, or not what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is not out.
    Unknown,
    /// It is returned, and nobody wants its answer.
    Closed,
}

/// What is out.
pub struct Leases {
    most: usize,
    state: Mutex<State>,
}

struct State {
    /// The last number given. They begin where neither an index nor zeroed memory is taken for one.
    last: u64,
    out: HashMap<NonZeroU64, Lease>,
}

impl Leases {
    /// None are out. At most `most` can be.
    pub fn new(most: usize) -> Self {
        let last = fastrand::u64(1 << 32..1 << 62);
        Self { most, state: Mutex::new(State { last, out: HashMap::new() }) }
    }
    /// Gives one out. `None` if too many are: the lease is dropped, which answers it.
    pub fn lend(&self, lease: Lease) -> Option<Handle> {
        let mut state = self.state.lock();
        if state.out.len() >= self.most {
            drop(state);
            return None;
        }
        let handle = NonZeroU64::new(state.last.wrapping_add(1))?;
        state.last = handle.get();
        state.out.insert(handle, lease);
        Some(handle.get())
    }
    /// What one is about.
    pub fn subject(&self, handle: Handle) -> Option<Subject> {
        let state = self.state.lock();
        state.out.get(&NonZeroU64::new(handle)?).map(|lease| lease.subject().clone())
    }
    /// Takes one back with an answer.
    pub fn answer(&self, handle: Handle, answer: Answer) -> Result<(), Refused> {
        let lease = self.take(handle).ok_or(Refused::Unknown)?;
        lease.answer(answer).map_err(|Closed| Refused::Closed)
    }
    /// Takes one back, which can be dropped, or answered.
    pub fn take(&self, handle: Handle) -> Option<Lease> {
        self.state.lock().out.remove(&NonZeroU64::new(handle)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locality::provider::{Category, Inbox, Location};
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn each_lease_is_returned_once() {
        let (leases, inbox) = (Leases::new(MOST), Arc::new(Inbox::default()));
        let lend = |ticket| leases.lend(inbox.lease(ticket, Subject::Own).unwrap()).unwrap();
        let (one, other) = (lend(1), lend(2));
        assert_eq!(leases.subject(one), Some(Subject::Own));
        assert_eq!(leases.answer(one, Ok(Location::default())), Ok(()));
        assert_eq!(leases.answer(one, Err(Category::NotFound)), Err(Refused::Unknown));
        assert_eq!(leases.subject(one), None);
        drop(leases.take(other));
        assert!(leases.take(other).is_none());
        for made_up in [0, 1, 2, other + 1, u64::MAX] {
            assert_eq!(leases.answer(made_up, Err(Category::NotFound)), Err(Refused::Unknown), "{made_up}");
        }
        let answers = inbox.wait(Some(Instant::now()));
        assert_eq!(answers, [(1, Ok(Location::default())), (2, Err(Category::ProviderError))]);
    }

    #[test]
    fn a_closed_inbox_has_its_lease_back() {
        let (leases, inbox) = (Leases::new(MOST), Arc::new(Inbox::default()));
        let handle = leases.lend(inbox.lease(1, Subject::Own).unwrap()).unwrap();
        inbox.close();
        assert_eq!(leases.answer(handle, Ok(Location::default())), Err(Refused::Closed));
        assert!(inbox.drain(Instant::now()));
    }

    #[test]
    fn whoever_keeps_too_many_gets_no_more() {
        let (leases, inbox) = (Leases::new(2), Arc::new(Inbox::default()));
        let lend = |ticket| leases.lend(inbox.lease(ticket, Subject::Own).unwrap());
        let one = lend(1).unwrap();
        assert!(lend(2).is_some());
        assert_eq!(lend(3), None);
        assert_eq!(inbox.wait(Some(Instant::now())), [(3, Err(Category::ProviderError))]);
        drop(leases.take(one));
        assert!(lend(4).is_some());
    }
}
