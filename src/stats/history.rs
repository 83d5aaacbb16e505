//! The thread that samples figures for the schema `stats_history`.

use super::memory::of_system;
use crate::config::Config;
use crate::periodic::Periodic;
use crate::session::Sessions;
use admin::Value;
use admin::history::{
    History, HistoryTable, MYHGM_CONNECTIONS, MYSQL_CONNECTIONS, SYSTEM_CPU, SYSTEM_MEMORY,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often it looks what is due. Intervals are whole seconds.
const TICK: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600;

/// Starts the thread `stats-history`.
pub fn start(history: Arc<History>, config: Arc<Config>, sessions: Arc<Sessions>) -> io::Result<Periodic> {
    let mut sampler = Sampler { history, config, sessions, last: 0, failing: false };
    Periodic::start("stats-history", TICK, move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        sampler.look(i64::try_from(now).unwrap_or(0));
    })
}

struct Sampler {
    history: Arc<History>,
    config: Arc<Config>,
    sessions: Arc<Sessions>,
    /// When it looked last.
    last: i64,
    /// The database could not be written to.
    failing: bool,
}

impl Sampler {
    fn look(&mut self, now: i64) {
        let variables = self.config.variables();
        let intervals =
            [variables.stats_mysql_connections, variables.stats_system_cpu, variables.stats_system_memory];
        drop(variables);
        let [connections, cpu, memory] = intervals.map(|interval| is_due(self.last, now, interval.into()));
        let mut outcome = Ok(());
        let mut add = |table: &HistoryTable, value: &dyn Fn(&str) -> Option<i64>| {
            let added = self.history.add(table, now, value);
            if outcome.is_ok() {
                outcome = added;
            }
        };
        if connections {
            let totals = totals(self.sessions.global_rows(0));
            add(&MYSQL_CONNECTIONS, &|name| totals.get(name).copied());
            add(&MYHGM_CONNECTIONS, &|name| totals.get(name).copied());
        }
        if cpu {
            let times = processor_time();
            add(&SYSTEM_CPU, &|name| {
                times.map(|[user, system]| if name == "tms_utime" { user } else { system })
            });
        }
        if memory {
            add(&SYSTEM_MEMORY, &|name| match name {
                "resident" => of_system("VmRSS:"),
                "mapped" => of_system("VmSize:"),
                _ => None,
            });
        }
        if outcome.is_ok() && is_due(self.last, now, HOUR) {
            outcome = self.history.roll_up(now);
        }
        self.last = now;
        self.tell(outcome);
    }
    fn tell(&mut self, outcome: Result<(), String>) {
        match outcome {
            Err(error) if !self.failing => {
                log::warn!(
                    "stats_history cannot be written to: {error}; what comes until it can is missing there"
                );
                self.failing = true;
            }
            Err(_) => {}
            Ok(()) => self.failing = false,
        }
    }
}

/// Whether a new interval has begun since the last look; never with an interval of 0.
fn is_due(last: i64, now: i64, interval: i64) -> bool {
    interval > 0 && last / interval != now / interval
}

/// Names and numbers of stats_mysql_global.
fn totals(rows: Vec<Vec<Value>>) -> HashMap<String, i64> {
    let total = |row: Vec<Value>| match <[Value; 2]>::try_from(row) {
        Ok([Value::Text(name), Value::Text(value)]) => Some((name, value.parse().ok()?)),
        _ => None,
    };
    rows.into_iter().filter_map(total).collect()
}

/// Time in user mode and in the kernel, in ticks (proc_pid_stat(5)).
fn processor_time() -> Option<[i64; 2]> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before it may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_at_their_multiples() {
        assert!(is_due(59, 60, 60) && !is_due(60, 119, 60) && is_due(60, 130, 60));
        assert!(!is_due(0, 1_000, 0));
    }

    #[test]
    fn the_system_tells_what_the_process_took() {
        let [user, system] = processor_time().unwrap();
        assert!(user >= 0 && system >= 0);
        assert!(of_system("VmSize:") > of_system("VmRSS:"));
    }

    #[test]
    fn totals_are_found_by_name() {
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = vec![vec![text("Questions"), text("7")], vec![text("other"), text("x")]];
        assert_eq!(totals(rows), HashMap::from([("Questions".to_owned(), 7)]));
    }
}
