//! The log of one kind of checks: a bounded ring in memory, so that no check waits for a database.

use super::kind::Kind;
use crate::hostgroups::Endpoint;
use admin::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// Most rows kept, whatever mysql-monitor_history allows.
const CAPACITY: usize = 100_000;

/// One check.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which server.
    pub endpoint: Endpoint,
    /// Wall clock when the check began, microseconds since 1970.
    pub start_us: i64,
    /// The microseconds the check took, with its value if such checks have one; or what went wrong.
    pub result: Result<(i64, Option<Value>), String>,
}

/// Checks in the order they ended.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
}

impl Log {
    /// Adds a check and drops those that began more than `history` before it.
    pub fn push(&mut self, entry: Entry, history: Duration) {
        let history = i64::try_from(history.as_micros()).unwrap_or(i64::MAX);
        let oldest = entry.start_us.saturating_sub(history);
        self.entries.push_back(entry);
        while self.entries.len() > CAPACITY || self.entries.front().is_some_and(|e| e.start_us < oldest) {
            self.entries.pop_front();
        }
    }
    /// Rows of the kind's table: hostname, port, time_start_us, success_time_us, the value if there is one, error.
    pub fn rows(&self, kind: Kind) -> Vec<Vec<Value>> {
        self.entries
            .iter()
            .map(|entry| {
                let (success_us, value, error) = match &entry.result {
                    Ok((took_us, value)) => (*took_us, value.clone(), Value::Null),
                    Err(error) => (0, kind.value_of_failure(), error.as_str().into()),
                };
                let mut row = vec![
                    Value::from(&*entry.endpoint.host),
                    entry.endpoint.port.into(),
                    entry.start_us.into(),
                    success_us.into(),
                ];
                row.extend(value);
                row.push(error);
                row
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start_us: i64) -> Entry {
        Entry { endpoint: Endpoint::new("a", 3306), start_us, result: Ok((7, Some(Value::Int(0)))) }
    }

    #[test]
    fn rows_follow_the_columns() {
        let mut log = Log::default();
        log.push(entry(5), Duration::from_secs(1));
        log.push(Entry { result: Err("timeout".into()), ..entry(6) }, Duration::from_secs(1));
        let text = |text: &str| Value::Text(text.into());
        let int = Value::Int;
        assert_eq!(
            log.rows(Kind::ReadOnly),
            [
                [text("a"), int(3306), int(5), int(7), int(0), Value::Null],
                [text("a"), int(3306), int(6), int(0), int(1), text("timeout")],
            ]
        );
        assert_eq!(log.rows(Kind::ReplicationLag)[1][4], Value::Null);
        let mut pings = Log::default();
        pings.push(Entry { result: Ok((7, None)), ..entry(5) }, Duration::from_secs(1));
        pings.push(Entry { result: Err("timeout".into()), ..entry(6) }, Duration::from_secs(1));
        assert_eq!(
            pings.rows(Kind::Ping),
            [
                [text("a"), int(3306), int(5), int(7), Value::Null],
                [text("a"), int(3306), int(6), int(0), text("timeout")],
            ]
        );
    }

    #[test]
    fn old_rows_go() {
        let mut log = Log::default();
        for start_us in [0, 1_000_000, 2_000_001] {
            log.push(entry(start_us), Duration::from_secs(1));
        }
        assert_eq!(log.rows(Kind::ReadOnly).len(), 1);
        for start_us in 0..=i64::try_from(CAPACITY).unwrap() {
            log.push(entry(3_000_000 + start_us), Duration::MAX);
        }
        assert_eq!(log.rows(Kind::ReadOnly).len(), CAPACITY);
    }
}
