//! Recorded switchovers: what each server, read_only value and name was at which time, in a small text format
//! (docs/simulator.md, "Recordings"), played to the simulator on a clock.

mod parser;

pub use parser::RecordingError;

use super::{
    RdsBgdBackend, RdsBgdDnsAnswer, RdsBgdHost, RdsBgdSimulator, RdsBgdTopologyRow, backend, dns, sql,
};
use crate::connection::{Endpoint, Error};
use std::num::{NonZeroU16, NonZeroU32};
use std::thread;
use std::time::{Duration, Instant};

/// The lifecycle of the topology trace in the monitor specification.
pub const MONITOR_TRACE: &str = include_str!("../../../recordings/monitor_trace.txt");
/// The lifecycle in the article on the AWS JDBC driver's blue/green plugin.
pub const DRIVER_ARTICLE: &str = include_str!("../../../recordings/driver_article.txt");

/// A recorded switchover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdsBgdRecording {
    hosts: Vec<(String, RdsBgdHost)>,
    moments: Vec<Moment>,
}

/// What changed at one time; it is played as one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moment {
    /// Since the recording's start
    offset: Duration,
    changes: Vec<Change>,
}

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// The table is there with these rows
    Topology(Vec<Endpoint>, Vec<RdsBgdTopologyRow>),
    /// The table is gone
    Drop(Vec<Endpoint>),
    /// The metadata query fails
    Error(Vec<Endpoint>, NonZeroU16, String),
    /// By hostname
    ReadOnly(Vec<Endpoint>, bool),
    /// How clients are treated
    Backend(Vec<Endpoint>, RdsBgdBackend),
    /// By hostname
    Dns(Vec<String>, RdsBgdDnsAnswer),
}

impl Change {
    fn statements(&self) -> Vec<String> {
        match self {
            Self::Topology(of, rows) => sql::topology_update(of, rows),
            Self::Drop(of) => sql::topology_drop(of),
            Self::Error(of, code, message) => sql::topology_error(of, *code, message),
            Self::ReadOnly(of, value) => of.iter().map(|host| sql::read_only_update(host, *value)).collect(),
            Self::Backend(of, treatment) => backend::update(of, *treatment),
            Self::Dns(of, answer) => of.iter().flat_map(|name| dns::update(name, answer)).collect(),
        }
    }
}

impl RdsBgdRecording {
    /// Reads a recording whose servers all have this port.
    pub fn parse(text: &str, port: u16) -> Result<Self, RecordingError> {
        parser::parse(text, port)
    }

    /// The server that the recording calls `label`.
    pub fn host(&self, label: &str) -> Option<&RdsBgdHost> {
        self.hosts.iter().find(|(known, _)| known == label).map(|(_, host)| host)
    }

    /// How long it plays at its own speed.
    pub fn length(&self) -> Duration {
        self.moments.last().map_or(Duration::ZERO, |moment| moment.offset)
    }

    /// Plays it to its end, `speed` times as fast as it was recorded: each change at its time from now, and those of one time
    /// in one transaction.
    pub fn play(&self, simulator: &mut RdsBgdSimulator, speed: NonZeroU32) -> Result<(), Error> {
        let begin = Instant::now();
        let wait =
            |offset: Duration| thread::sleep((begin + offset).saturating_duration_since(Instant::now()));
        self.play_with(speed, wait, |statements| simulator.write(statements))
    }

    /// [`Self::play`] on any clock: `wait_until` gets the time since the start.
    fn play_with<E>(
        &self,
        speed: NonZeroU32,
        wait_until: impl Fn(Duration),
        mut write: impl FnMut(&[String]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.moments.iter().try_for_each(|moment| {
            wait_until(moment.offset / speed.get());
            write(&moment.changes.iter().flat_map(Change::statements).collect::<Vec<_>>())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn changes_of_one_time_are_played_together_at_their_time() {
        let text = "host blue db-1.test 127.10.0.11\n0 read_only blue no\n0 dns blue nxdomain\n3000 topology blue empty\n";
        let recording = RdsBgdRecording::parse(text, 3306).unwrap();
        let played = RefCell::new(Vec::new());
        let wait = |offset: Duration| played.borrow_mut().push(format!("at {} ms", offset.as_millis()));
        let write = |statements: &[String]| {
            played.borrow_mut().push(format!("{} statements", statements.len()));
            Ok::<_, ()>(())
        };
        recording.play_with(NonZeroU32::new(10).unwrap(), wait, write).unwrap();
        assert_eq!(played.into_inner(), ["at 0 ms", "3 statements", "at 300 ms", "2 statements"]);
        assert_eq!(recording.length(), Duration::from_secs(3));
    }

    #[test]
    fn a_change_that_cannot_be_written_ends_the_play() {
        let text = "host blue db-1.test 127.10.0.11\n0 read_only blue no\n1 read_only blue yes\n";
        let recording = RdsBgdRecording::parse(text, 3306).unwrap();
        let mut written = 0;
        let outcome = recording.play_with(
            NonZeroU32::MIN,
            |_| (),
            |_| {
                written += 1;
                Err("gone")
            },
        );
        assert_eq!((outcome, written), (Err("gone"), 1));
    }

    #[test]
    fn the_shipped_recordings_are_whole_switchovers() {
        for text in [MONITOR_TRACE, DRIVER_ARTICLE] {
            let recording = RdsBgdRecording::parse(text, 3306).unwrap();
            let blue = recording.host("blue").unwrap().endpoint();
            let mut phases = Vec::new();
            for change in recording.moments.iter().flat_map(|moment| &moment.changes) {
                if let Change::Topology(of, rows) = change
                    && of.contains(&blue)
                {
                    phases.push((rows.len(), rows.last().map_or("", |row| row.status.as_str())));
                }
            }
            let expected = [
                (2, "AVAILABLE"),
                (2, "SWITCHOVER_INITIATED"),
                (2, "SWITCHOVER_IN_PROGRESS"),
                (2, "SWITCHOVER_IN_POST_PROCESSING"),
                (1, "SWITCHOVER_COMPLETED"),
                (0, ""),
            ];
            assert_eq!(phases, expected);
        }
    }
}
