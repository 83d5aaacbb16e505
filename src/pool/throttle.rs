//! How many connections are opened in a second, in each hostgroup.

use crate::hostgroups::HostgroupId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The running second of each hostgroup that opens connections: its start, and how many were opened.
#[derive(Debug, Default)]
pub struct Throttle(BTreeMap<HostgroupId, (Instant, u32)>);

impl Throttle {
    /// Whether one more may be opened, of `limit` in a second.
    pub fn permits(&self, hostgroup: HostgroupId, now: Instant, limit: u32) -> bool {
        self.running(hostgroup, now).is_none_or(|(_, count)| count < limit)
    }
    /// One is opened.
    pub fn note(&mut self, hostgroup: HostgroupId, now: Instant) {
        let (start, count) = self.running(hostgroup, now).unwrap_or((now, 0));
        self.0.insert(hostgroup, (start, count.saturating_add(1)));
    }
    /// Forgets hostgroups that are gone.
    pub fn retain(&mut self, stays: impl Fn(HostgroupId) -> bool) {
        self.0.retain(|id, _| stays(*id));
    }
    fn running(&self, hostgroup: HostgroupId, now: Instant) -> Option<(Instant, u32)> {
        let second = self.0.get(&hostgroup).copied();
        second.filter(|(start, _)| now.saturating_duration_since(*start) < SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hostgroup_has_its_seconds() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        throttle.note(1, now);
        throttle.note(1, now + SECOND / 2);
        assert!(throttle.permits(1, now + SECOND / 2, 3) && !throttle.permits(1, now + SECOND / 2, 2));
        assert!(throttle.permits(2, now, 1));
        assert!(throttle.permits(1, now + SECOND, 1), "a new second");
        throttle.note(1, now + SECOND);
        assert!(!throttle.permits(1, now + SECOND, 1));
        throttle.retain(|id| id != 1);
        assert!(throttle.permits(1, now + SECOND, 1));
    }
}
