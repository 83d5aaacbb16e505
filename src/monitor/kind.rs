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
    /// When each kind was due last, and the interval then.
    last: [Option<(Instant, Duration)>; Kind::ALL.len()],
    /// As whom servers are asked.
    account: (String, String),
}

impl Timetable {
    /// The kinds that are due now, taken note of as begun: those whose interval is over or has changed, and all when the monitor's
    /// account has. A LOAD that changes neither has no check begin early: checks that fail one after the other would count
    /// together however fast they follow.
    pub fn due(&mut self, variables: &Variables, now: Instant) -> Vec<Kind> {
        let account = (&variables.monitor_username, &variables.monitor_password);
        let same_account = (&self.account.0, &self.account.1) == account;
        if !same_account {
            self.account = (account.0.clone(), account.1.clone());
        }
        let mut due = Vec::new();
        for (kind, last) in Kind::ALL.into_iter().zip(&mut self.last) {
            let interval = kind.interval(variables);
            let waits = |(at, of)| same_account && of == interval && at + interval > now;
            if !last.is_some_and(waits) {
                *last = Some((now, interval));
                due.push(kind);
            }
        }
        due
    }
    /// When a kind is due next.
    pub fn next(&self) -> Option<Instant> {
        self.last.iter().flatten().map(|(at, interval)| *at + *interval).min()
    }
    /// Everything is due again.
    pub fn reset(&mut self) {
        self.last = Default::default();
    }
}

/// Which read_only cycles are also discovery's. Pure.
#[derive(Debug, Default)]
pub struct Cycles {
    /// Cycles since the last one that was, or since the start.
    since: u32,
}

impl Cycles {
    /// Counts one cycle. True for every `interval`-th, the first of all left out; with 0 for none.
    pub fn discovers(&mut self, interval: u32) -> bool {
        let now = interval > 0 && self.since >= interval;
        if now {
            self.since = 0;
        }
        self.since = self.since.saturating_add(1);
        now
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
        assert_eq!(table.due(&variables, start), Kind::ALL);
        assert_eq!(table.next(), Some(at(1_000)));
        assert_eq!(table.due(&variables, at(999)), []);
        assert_eq!(table.due(&variables, at(1_000)), [Kind::ReadOnly]);
        assert_eq!(table.due(&variables, at(10_000)), [Kind::Ping, Kind::ReadOnly, Kind::ReplicationLag]);
        variables.monitor_ping_interval = Duration::from_millis(100);
        assert_eq!(table.due(&variables, at(10_001)), [Kind::Ping], "its interval has changed");
        assert_eq!(table.due(&variables, at(10_101)), [Kind::Ping]);
        variables.monitor_ping_timeout += Duration::from_millis(1);
        variables.max_connections += 1;
        assert_eq!(table.due(&variables, at(10_102)), [], "a LOAD of something else");
        variables.monitor_password.push('x');
        assert_eq!(table.due(&variables, at(10_102)), Kind::ALL);
        assert_eq!(table.due(&variables, at(10_103)), []);
        table.reset();
        assert_eq!(table.due(&variables, at(10_103)), Kind::ALL);
    }

    #[test]
    fn every_nth_cycle_discovers_but_the_first() {
        let seen = |interval, cycles| {
            let mut counted = Cycles::default();
            (1..=cycles).filter(|_| counted.discovers(interval)).collect::<Vec<u32>>()
        };
        assert_eq!(seen(1, 4), [2, 3, 4]);
        assert_eq!(seen(3, 10), [4, 7, 10]);
        assert!(seen(0, 10).is_empty());
        let mut counted = Cycles::default();
        assert!(!(1..=10).any(|_| counted.discovers(0)));
        assert!(counted.discovers(5), "cycles without discovery count");
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
