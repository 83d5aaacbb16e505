//! SIGINT, SIGTERM and SIGHUP as a flag that is looked at between steps.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

/// Becomes raised with the first SIGINT or SIGTERM, or when the terminal is closed; the process does not end by itself any more.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over these signals, but not SIGHUP where whoever started us has it ignored, as nohup has.
    pub fn register() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = (!is_ignored(SIGHUP, &status)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether a signal has arrived.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a process ignores a signal, by its /proc/PID/status.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known_by_their_bits() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(SIGHUP, status) && is_ignored(13, status));
        assert!(!is_ignored(SIGINT, status) && !is_ignored(SIGHUP, ""));
    }
}
