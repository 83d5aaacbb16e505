//! How many connections are opened in a second, in each hostgroup.

use crate::hostgroups::HostgroupId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The running second of each hostgroup that opens connections: its start, and how many were opened.
#[derive(Debug, Default)]
pub struct Throttle {
    seconds: BTreeMap<HostgroupId, (Instant, u32)>,
    /// Why the attempt that ended last has failed, where it has. Who waits for a second in vain is told.
    failures: BTreeMap<HostgroupId, String>,
}

impl Throttle {
    /// Whether one more may be opened, of `limit` in a second.
    pub fn permits(&self, hostgroup: HostgroupId, now: Instant, limit: u32) -> bool {
        self.running(hostgroup, now).is_none_or(|(_, count)| count < limit)
    }
    /// One is opened.
    pub fn note(&mut self, hostgroup: HostgroupId, now: Instant) {
        let (start, count) = self.running(hostgroup, now).unwrap_or((now, 0));
        self.seconds.insert(hostgroup, (start, count.saturating_add(1)));
    }
    /// An attempt has ended, in a connection or by this failure.
    pub fn ended(&mut self, hostgroup: HostgroupId, failure: Option<String>) {
        match failure {
            Some(reason) => self.failures.insert(hostgroup, reason),
            None => self.failures.remove(&hostgroup),
        };
    }
    /// Why the attempt that ended last has failed.
    pub fn failure(&self, hostgroup: HostgroupId) -> Option<&str> {
        self.failures.get(&hostgroup).map(String::as_str)
    }
    /// Forgets hostgroups that are gone.
    pub fn retain(&mut self, stays: impl Fn(HostgroupId) -> bool) {
        self.seconds.retain(|id, _| stays(*id));
        self.failures.retain(|id, _| stays(*id));
    }
    fn running(&self, hostgroup: HostgroupId, now: Instant) -> Option<(Instant, u32)> {
        let second = self.seconds.get(&hostgroup).copied();
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

    #[test]
    fn the_last_attempt_of_each_hostgroup_is_told() {
        let mut throttle = Throttle::default();
        throttle.ended(1, Some("first".into()));
        throttle.ended(1, Some("second".into()));
        assert_eq!([throttle.failure(1), throttle.failure(2)], [Some("second"), None]);
        throttle.ended(1, None);
        assert_eq!(throttle.failure(1), None);
        throttle.ended(1, Some("third".into()));
        throttle.retain(|id| id != 1);
        assert_eq!(throttle.failure(1), None);
    }
}
