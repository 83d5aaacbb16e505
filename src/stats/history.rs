//! The thread that samples figures for the schema `stats_history`, and the moving of digests there.

use super::Sources;
use super::memory::of_system;
use crate::digest::statistics::Statistics;
use crate::periodic::Periodic;
use admin::history::{
    CONNECTION_POOL, History, HistoryTable, MYHGM_CONNECTIONS, MYSQL_CONNECTIONS, QUERY_DIGEST, SYSTEM_CPU,
    SYSTEM_MEMORY,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often it looks what is due. Intervals are whole seconds.
const TICK: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600;

/// Starts the thread `stats-history`.
pub fn start(history: Arc<History>, sources: Sources) -> io::Result<Periodic> {
    let mut sampler = Sampler { history, sources, last: 0, failing: false };
    Periodic::start("stats-history", TICK, move || sampler.look(now()))
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    i64::try_from(now).unwrap_or(0)
}

/// Moves what was counted of digests to the history. Returns how many rows; where they cannot be written they go on being counted.
pub fn save_digests(history: &History, statistics: &Statistics) -> Result<u64, String> {
    let taken = statistics.take();
    let saved = history.record(&QUERY_DIGEST, now(), taken.rows());
    if saved.is_err() {
        statistics.put_back(taken);
    }
    saved
}

struct Sampler {
    history: Arc<History>,
    sources: Sources,
    /// When it looked last.
    last: i64,
    /// The database could not be written to.
    failing: bool,
}

impl Sampler {
    fn look(&mut self, now: i64) {
        let Sources { config, backends, sessions, statistics, .. } = &self.sources;
        let variables = config.variables();
        let intervals = [
            variables.stats_mysql_connections,
            variables.stats_system_cpu,
            variables.stats_system_memory,
            variables.stats_mysql_connection_pool,
            variables.stats_mysql_query_digest_to_disk,
        ];
        drop(variables);
        let [connections, cpu, memory, pool, digests] =
            intervals.map(|interval| is_due(self.last, now, interval.into()));
        let mut outcome = Ok(());
        let mut add = |table: &HistoryTable, value: &dyn Fn(&str) -> Option<i64>| {
            let added = self.history.add(table, now, value);
            if outcome.is_ok() {
                outcome = added;
            }
        };
        if connections {
            let totals: HashMap<_, _> = sessions.global_figures(0).into_iter().collect();
            let total = |name: &str| totals.get(name).and_then(|total| i64::try_from(*total).ok());
            add(&MYSQL_CONNECTIONS, &total);
            add(&MYHGM_CONNECTIONS, &total);
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
        if pool && outcome.is_ok() {
            outcome = self.history.record(&CONNECTION_POOL, now, backends.connection_pool_rows()).map(drop);
        }
        // Not before the first interval is over: what a start has counted of digests is next to nothing.
        if digests && self.last > 0 && outcome.is_ok() {
            outcome = save_digests(&self.history, statistics).map(drop);
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
    use crate::digest::statistics::{Key, Sample};
    use std::time::Instant;

    #[test]
    fn intervals_begin_at_their_multiples() {
        assert!(is_due(59, 60, 60) && !is_due(60, 119, 60) && is_due(60, 130, 60));
        assert!(!is_due(0, 1_000, 0));
    }

    #[test]
    fn digests_that_cannot_be_saved_are_counted_on() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::open(dir.path()).unwrap();
        let statistics = Statistics::default();
        let key = Key { hostgroup: 1, schema: "shop", user: "app", client: "", digest: 0xAB };
        let ended = Instant::now();
        let sample = Sample { ended, time: Duration::from_micros(3), rows_affected: 0, rows_sent: 1 };
        statistics.count(&key, b"SELECT ?", &sample);
        let other = rusqlite::Connection::open(dir.path().join("pointsman_stats.db")).unwrap();
        other.execute_batch("ALTER TABLE history_mysql_query_digest RENAME TO elsewhere").unwrap();
        assert!(save_digests(&history, &statistics).unwrap_err().contains("history_mysql_query_digest"));
        assert_eq!(statistics.rows().len(), 1);
        other.execute_batch("ALTER TABLE elsewhere RENAME TO history_mysql_query_digest").unwrap();
        let path = dir.path().join("pointsman_stats.db");
        std::fs::rename(&path, dir.path().join("away.db")).unwrap();
        assert!(
            save_digests(&history, &statistics).unwrap_err().contains("pointsman_stats.db: No such file")
        );
        assert_eq!(statistics.rows().len(), 1);
        std::fs::rename(dir.path().join("away.db"), &path).unwrap();
        assert_eq!((save_digests(&history, &statistics), statistics.rows().len()), (Ok(1), 0));
    }

    #[test]
    fn the_system_tells_what_the_process_took() {
        let [user, system] = processor_time().unwrap();
        assert!(user >= 0 && system >= 0);
        assert!(of_system("VmSize:") > of_system("VmRSS:"));
    }
}
