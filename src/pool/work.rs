//! What is counted on connections of all pools together, but for what every statement adds to: that connections count.

use std::sync::atomic::{AtomicU64, Ordering};
use wire::Command;
use wire::backend::Request;

/// What has happened on connections since the start, beside what each server's own counters have.
#[derive(Debug, Default)]
pub struct Work {
    closed: AtomicU64,
    resets: AtomicU64,
    schemas: AtomicU64,
    prepared: AtomicU64,
    statements_closed: AtomicU64,
}

/// The same at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Connections that were open and are not any more.
    pub closed: u64,
    /// Connections that were reset (COM_RESET_CONNECTION).
    pub resets: u64,
    /// COM_INIT_DB sent.
    pub schemas: u64,
    /// COM_STMT_PREPARE sent.
    pub prepared: u64,
    /// COM_STMT_EXECUTE sent.
    pub executed: u64,
    /// COM_STMT_CLOSE sent.
    pub statements_closed: u64,
}

impl Work {
    /// A connection is gone.
    pub fn closed(&self) {
        add(&self.closed);
    }
    /// A command was sent.
    pub fn sent(&self, command: Command) {
        match command {
            Command::COM_RESET_CONNECTION => add(&self.resets),
            Command::COM_INIT_DB => add(&self.schemas),
            Command::COM_STMT_PREPARE => add(&self.prepared),
            _ => {}
        }
    }
    /// Commands of our own were sent.
    pub fn sent_all(&self, requests: &[Request<'_>]) {
        requests.iter().for_each(|(command, _)| self.sent(*command));
    }
    /// A statement was closed on its server.
    pub fn statement_closed(&self) {
        add(&self.statements_closed);
    }
    /// What has been done so far; what was `executed` is counted by connections.
    pub fn done(&self, executed: u64) -> Done {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Done {
            closed: read(&self.closed),
            resets: read(&self.resets),
            schemas: read(&self.schemas),
            prepared: read(&self.prepared),
            executed,
            statements_closed: read(&self.statements_closed),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
