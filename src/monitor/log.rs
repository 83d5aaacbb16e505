//! The log of read_only checks: a bounded ring in memory, so that no check waits for a database.

use crate::hostgroups::Endpoint;
use admin::Value;
use std::collections::VecDeque;
use std::time::Duration;

/// Most rows kept, whatever mysql-monitor_history allows.
const CAPACITY: usize = 100_000;

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which server.
    pub endpoint: Endpoint,
    /// Wall clock when the check began, microseconds since 1970.
    pub start_us: i64,
    /// The value, with the microseconds the check took; or what went wrong.
    pub result: Result<(bool, i64), String>,
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
    /// Rows of mysql_server_read_only_log: hostname, port, time_start_us, success_time_us, read_only, error.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        self.entries
            .iter()
            .map(|entry| {
                let (success_us, read_only, error) = match &entry.result {
                    Ok((read_only, took_us)) => (*took_us, *read_only, Value::Null),
                    Err(error) => (0, true, Value::Text(error.clone())),
                };
                vec![
                    Value::Text(entry.endpoint.host.to_string()),
                    Value::Int(entry.endpoint.port.into()),
                    Value::Int(entry.start_us),
                    Value::Int(success_us),
                    Value::Int(read_only.into()),
                    error,
                ]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start_us: i64) -> Entry {
        Entry { endpoint: Endpoint::new("a", 3306), start_us, result: Ok((false, 7)) }
    }

    #[test]
    fn rows_follow_the_columns() {
        let mut log = Log::default();
        log.push(entry(5), Duration::from_secs(1));
        log.push(Entry { result: Err("timeout".into()), ..entry(6) }, Duration::from_secs(1));
        let text = |text: &str| Value::Text(text.into());
        let int = Value::Int;
        assert_eq!(
            log.rows(),
            [
                [text("a"), int(3306), int(5), int(7), int(0), Value::Null],
                [text("a"), int(3306), int(6), int(0), int(1), text("timeout")],
            ]
        );
    }

    #[test]
    fn old_rows_go() {
        let mut log = Log::default();
        for start_us in [0, 1_000_000, 2_000_001] {
            log.push(entry(start_us), Duration::from_secs(1));
        }
        assert_eq!(log.rows().len(), 1);
        for start_us in 0..=i64::try_from(CAPACITY).unwrap() {
            log.push(entry(3_000_000 + start_us), Duration::MAX);
        }
        assert_eq!(log.rows().len(), CAPACITY);
    }
}
