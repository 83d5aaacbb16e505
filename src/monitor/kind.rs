//! The kinds of checks: how often each is due, and how far back its log goes.

use admin::{Value, Variables};
use std::time::{Duration, Instant};

/// A kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whether a new connection can be had.
    Connect,
    /// Whether, and how soon, a connection answers.
    Ping,
    /// Whether the server can be written to.
    ReadOnly,
    /// How far a replica is behind.
    ReplicationLag,
}

impl Kind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Connect, Self::Ping, Self::ReadOnly, Self::ReplicationLag];

    /// As variables and counters name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Ping => "ping",
            Self::ReadOnly => "read_only",
            Self::ReplicationLag => "replication_lag",
        }
    }
    /// How often.
    pub fn interval(self, variables: &Variables) -> Duration {
        match self {
            Self::Connect => variables.monitor_connect_interval,
            Self::Ping => variables.monitor_ping_interval,
            Self::ReadOnly => variables.monitor_read_only_interval,
            Self::ReplicationLag => variables.monitor_replication_lag_interval,
        }
    }
    /// mysql-monitor_history, raised where it would not show the checks that count together.
    pub fn history(self, variables: &Variables) -> Duration {
        let together = match self {
            Self::Connect => 1,
            Self::Ping => variables.monitor_ping_max_failures,
            Self::ReadOnly => variables.monitor_read_only_max_timeout_count,
            Self::ReplicationLag => variables.monitor_replication_lag_count,
        };
        let shown = self.interval(variables).saturating_mul(together.saturating_add(1));
        variables.monitor_history.max(shown)
    }
    /// What the log shows for the value of a check that failed; the outer `None` where checks of the kind have no value.
    pub fn value_of_failure(self) -> Option<Value> {
        match self {
            Self::Connect | Self::Ping => None,
            Self::ReadOnly => Some(Value::Int(1)),
            Self::ReplicationLag => Some(Value::Null),
        }
    }
}

/// When each kind is due. Pure: time comes in as an argument.
#[derive(Debug, Default)]
pub struct Timetable {
    last: [Option<Instant>; Kind::ALL.len()],
    version: u64,
}

impl Timetable {
    /// The kinds that are due now, taken note of as begun. read_only is due at once when the variables have changed (`version`);
    /// the others follow a change of their intervals.
    pub fn due(&mut self, variables: &Variables, version: u64, now: Instant) -> Vec<Kind> {
        let changed = self.version != version;
        self.version = version;
        let mut due = Vec::new();
        for (kind, last) in Kind::ALL.into_iter().zip(&mut self.last) {
            let at_once = changed && kind == Kind::ReadOnly;
            if at_once || last.is_none_or(|last| last + kind.interval(variables) <= now) {
                *last = Some(now);
                due.push(kind);
            }
        }
        due
    }
    /// When a kind is due next.
    pub fn next(&self, variables: &Variables) -> Option<Instant> {
        let next = |(kind, last): (Kind, &Option<Instant>)| last.map(|last| last + kind.interval(variables));
        Kind::ALL.into_iter().zip(&self.last).filter_map(next).min()
    }
    /// Everything is due again.
    pub fn reset(&mut self) {
        self.last = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_due_at_their_intervals() {
        let mut variables = Variables::default();
        let (mut table, start) = (Timetable::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(table.due(&variables, 1, start), Kind::ALL);
        assert_eq!(table.next(&variables), Some(at(1_000)));
        assert_eq!(table.due(&variables, 1, at(999)), []);
        assert_eq!(table.due(&variables, 1, at(1_000)), [Kind::ReadOnly]);
        assert_eq!(table.due(&variables, 1, at(10_000)), [Kind::Ping, Kind::ReadOnly, Kind::ReplicationLag]);
        assert_eq!(table.due(&variables, 2, at(10_001)), [Kind::ReadOnly], "variables changed");
        variables.monitor_ping_interval = Duration::from_millis(100);
        assert_eq!(table.due(&variables, 2, at(10_100)), [Kind::Ping]);
        table.reset();
        assert_eq!(table.due(&variables, 2, at(10_100)), Kind::ALL);
    }

    #[test]
    fn the_history_shows_the_checks_that_count_together() {
        let mut variables = Variables { monitor_history: Duration::from_secs(1), ..Variables::default() };
        let seconds = |variables: &Variables| Kind::ALL.map(|kind| kind.history(variables).as_secs());
        assert_eq!(seconds(&variables), [240, 32, 4, 20]);
        variables.monitor_history = Duration::from_secs(7_200);
        assert_eq!(seconds(&variables), [7_200; 4]);
    }
}
