//! SIGINT and SIGTERM as a flag that is looked at between steps.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Becomes raised with the first SIGINT or SIGTERM; the process does not end by itself any more.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over both signals.
    pub fn register() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether a signal has arrived.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
