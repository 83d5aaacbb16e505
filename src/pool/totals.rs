//! What has happened to connections in all pools together.

use super::connection::Traffic;
use super::work::Done;

/// Numbers since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Connections that statements asked for.
    pub asked: u64,
    /// Of these, those that were in a pool.
    pub found: u64,
    /// Of these, those for which there was no server, or no room at any.
    pub refused: u64,
    /// Of these, those for which too many connections had been opened within the second.
    pub delayed: u64,
    /// Connections that sessions took back which they had used last.
    pub reclaimed: u64,
    /// Connections that came back into a pool.
    pub returned: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// Connections that there are.
    pub held: u64,
    /// Bytes of commands sent to servers.
    pub sent: u64,
    /// Bytes of answers.
    pub received: u64,
    /// What was done on connections.
    pub done: Done,
}

impl Totals {
    /// Adds what went to and fro.
    pub(super) fn add(&mut self, traffic: Traffic) {
        self.sent += traffic.sent;
        self.received += traffic.received;
        self.done.executed += traffic.executions;
    }
}
