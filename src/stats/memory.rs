//! stats_memory_metrics.

use crate::config::{Config, User};
use crate::daemon::CLIENT_STACK;
use crate::digest::statistics::Statistics;
use crate::session::Sessions;

/// Its names and numbers of bytes.
pub fn figures(sessions: &Sessions, config: &Config, statistics: &Statistics) -> Vec<(&'static str, u64)> {
    let users = config.users();
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let of_user =
        |(name, user): (&String, &User)| name.len() + size_of_val(user) + text(&user.default_schema);
    let users: usize = users.iter().map(of_user).sum();
    let stacks = sessions.registry().sessions() * CLIENT_STACK;
    let known = [
        ("SQLite3_memory_bytes", admin::sqlite_memory()),
        ("Auth_memory", users as u64),
        ("mysql_query_digest_memory", statistics.memory() as u64),
        ("stack_memory_mysql_threads", stacks as u64),
    ];
    let resident = of_system("VmRSS:").and_then(|bytes| bytes.try_into().ok());
    let of_system = resident.map(|bytes| ("process_resident_memory_bytes", bytes));
    known.into_iter().chain(of_system).collect()
}

/// What the system says of the process's memory, in bytes (proc_pid_status(5)).
pub(super) fn of_system(field: &str) -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_is_resident() {
        let bytes = of_system("VmRSS:").unwrap();
        assert!((1 << 20..1 << 40).contains(&bytes), "{bytes}");
    }
}
