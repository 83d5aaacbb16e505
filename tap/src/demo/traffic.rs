//! The live traffic: clients that ask who answers, all the time.

use super::narrator::Narrator;
use crate::command_line::CommandLine;
use crate::connection::{Connection, Error};
use crate::scenario::routing_echo;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients that keep their connection.
const PERSISTENT_CLIENTS: usize = 3;
/// Between two statements of a client.
const THINK_TIME: Duration = Duration::from_millis(5);

/// What the clients have seen.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Statements sent, answered or not
    pub sent: u64,
    /// Statements without an answer; a login that failed counts as one
    pub failed: u64,
    /// The longest a client waited for one answer
    pub longest_pause: Duration,
}

impl Totals {
    fn count(&mut self, waited: Duration, answered: bool) {
        self.sent += 1;
        self.failed += u64::from(!answered);
        self.longest_pause = self.longest_pause.max(waited);
    }

    fn merge(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            failed: self.failed + other.failed,
            longest_pause: self.longest_pause.max(other.longest_pause),
        }
    }
}

/// Running clients; dropping stops them.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Totals>>,
}

impl Traffic {
    /// Starts three clients with persistent connections and one that logs in for every statement.
    pub fn start(command_line: &CommandLine, narrator: &Arc<Narrator>) -> io::Result<Self> {
        let mut traffic = Self { stop: Arc::default(), clients: Vec::new() };
        for number in 0..=PERSISTENT_CLIENTS {
            let client = Client {
                command_line: command_line.clone(),
                narrator: Arc::clone(narrator),
                persistent: number < PERSISTENT_CLIENTS,
            };
            let stop = Arc::clone(&traffic.stop);
            let thread = thread::Builder::new().name(format!("client-{number}"));
            traffic.clients.push(thread.spawn(move || client.run(&stop))?);
        }
        Ok(traffic)
    }

    /// Lets every client finish its statement, and adds up.
    pub fn finish(mut self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        let totals = |client: JoinHandle<Totals>| {
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        self.clients.drain(..).map(totals).fold(Totals::default(), Totals::merge)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            // The demonstration has failed already; a client's panic has been printed.
            let _ = client.join();
        }
    }
}

struct Client {
    command_line: CommandLine,
    narrator: Arc<Narrator>,
    persistent: bool,
}

impl Client {
    fn run(self, stop: &AtomicBool) -> Totals {
        let mut totals = Totals::default();
        let mut connection = None;
        while !stop.load(Ordering::Relaxed) {
            let started = Instant::now();
            let answer = self.ask(&mut connection);
            totals.count(started.elapsed(), answer.is_ok());
            match &answer {
                Ok(ip) => self.narrator.answered(ip),
                Err(error) => self.narrator.failed(&error.to_string()),
            }
            if answer.is_err() || !self.persistent {
                connection = None;
            }
            thread::sleep(THINK_TIME);
        }
        totals
    }

    fn ask(&self, connection: &mut Option<Connection>) -> Result<String, Error> {
        match connection {
            Some(connection) => routing_echo(connection),
            None => routing_echo(connection.insert(self.command_line.connect_traffic()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_and_keep_the_longest_pause() {
        let mut one = Totals::default();
        one.count(Duration::from_millis(5), true);
        one.count(Duration::from_millis(2100), false);
        let mut other = Totals::default();
        other.count(Duration::from_millis(7), true);
        let expected = Totals { sent: 3, failed: 1, longest_pause: Duration::from_millis(2100) };
        assert_eq!(one.merge(other), expected);
    }
}
