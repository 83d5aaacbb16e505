//! How long reads and writes of a socket may wait: what is wanted, and what the system has been told of it.

use std::io;
use std::time::{Duration, Instant};

/// Zero would mean "no limit" to the system.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
/// A blocked write may look this often whether its time is up.
pub(super) const WRITE_TICK: Duration = Duration::from_secs(1);
/// It looks so often at least within its time, because a write that moves some bytes says nothing of when it did.
pub(super) const LOOKS: u32 = 4;

/// Time limits as wanted, and as the system was last told. It is told at the next read or write that needs it, which
/// spares most connections most of these calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) deadline: Option<Instant>,
    pub(super) read: Option<Duration>,
    pub(super) write: Option<Duration>,
    pub(super) told_read: Option<Duration>,
    pub(super) told_write: Option<Duration>,
    /// For how long at most the peer has taken nothing.
    pub(super) stuck: Duration,
}

impl Limits {
    /// For how long one write may wait before it is looked at.
    pub(super) fn write_tick(&self) -> Option<Duration> {
        self.write.map(|time| (time / LOOKS).max(SHORTEST))
    }
    /// Takes note of what became of a write of so many bytes; whether it is to be tried again. The peer is given up when it
    /// has taken nothing for the time that a write has, over however many writes that is.
    pub(super) fn wrote(&mut self, wanted: usize, result: &io::Result<usize>) -> bool {
        let waited = self.told_write.unwrap_or_default();
        match result {
            // The rest has waited, but since when is not known.
            Ok(count) if *count < wanted => self.stuck = waited,
            Ok(_) => self.stuck = Duration::ZERO,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.stuck = self.stuck.saturating_add(waited);
                return self.deadline.is_some() || self.write.is_none_or(|most| self.stuck < most);
            }
            Err(_) => {}
        }
        false
    }
    /// What the system is to be told, if that is not what it was `told`.
    pub(super) fn change(
        &self,
        wanted: Option<Duration>,
        told: Option<Duration>,
        serves: impl FnOnce(Option<Duration>, Option<Duration>) -> bool,
    ) -> io::Result<Option<Option<Duration>>> {
        let Some(at) = self.deadline else {
            return Ok((!serves(told, wanted)).then_some(wanted));
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A wait that ends early goes on, and one may end a little late.
        let near = told.is_some_and(|told| told >= left / 2 && told <= left + left / 4);
        Ok((!near).then_some(Some(left.max(SHORTEST))))
    }
}

/// Whether the limit for writes that the system was told is one by which the wanted limit can be kept.
pub(super) fn serves(told: Option<Duration>, wanted: Option<Duration>) -> bool {
    told == wanted || told.is_some_and(|t| t >= WRITE_TICK && wanted.is_none_or(|wanted| t < wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_takes_nothing_has_its_time_once() {
        let seconds = Duration::from_secs;
        let blocked = || Err(io::ErrorKind::WouldBlock.into());
        let limits = Limits { write: Some(seconds(8)), told_write: Some(seconds(2)), ..Limits::default() };
        let mut stuck = limits;
        assert!(!stuck.wrote(10, &Ok(4)), "the caller goes on with the rest");
        let given_up = (1..).find(|_| !stuck.wrote(6, &blocked()));
        assert_eq!(given_up, Some(3), "two seconds went by with the first part, and two each time");
        let mut slow = limits;
        for _ in 0..100 {
            assert!(slow.wrote(10, &blocked()) && slow.wrote(10, &blocked()));
            assert!(!slow.wrote(10, &Ok(1)), "it takes a little now and then");
        }
        let mut patient = Limits { write: None, ..limits };
        assert!((0..100).all(|_| patient.wrote(10, &blocked())));
    }
}
