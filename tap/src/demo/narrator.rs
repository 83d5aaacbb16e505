//! What the audience reads: one line per event, with the seconds since the start.

use crate::simulator::{RdsBgdCluster, RdsBgdHost};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared by everything that has something to tell.
pub struct Narrator {
    started: Instant,
    colours: bool,
    cluster: RdsBgdCluster,
    heard: Mutex<Heard>,
}

/// Locked while a line is written, so that lines come in the order of what they tell.
struct Heard {
    out: Box<dyn Write + Send>,
    first_ip: Option<String>,
    last_ip: Option<String>,
    last_status: Option<String>,
    failures: u32,
}

/// ANSI colours of the kinds of event.
#[derive(Clone, Copy)]
enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

/// More failures than this are only counted.
const FAILURES_TOLD: u32 = 5;

impl Narrator {
    /// Starts the clock. `cluster` tells which address is which server.
    pub fn new(cluster: RdsBgdCluster) -> Self {
        let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self::writing_to(Box::new(io::stdout()), colours, cluster)
    }

    fn writing_to(out: Box<dyn Write + Send>, colours: bool, cluster: RdsBgdCluster) -> Self {
        let heard = Heard { out, first_ip: None, last_ip: None, last_status: None, failures: 0 };
        Self { started: Instant::now(), colours, cluster, heard: Mutex::new(heard) }
    }

    /// A step of the demonstration itself.
    pub fn step(&self, text: &str) {
        self.tell(&mut self.heard(), Colour::Cyan, text);
    }

    /// The deployment's status as the admin port shows it; told when it has changed.
    pub fn status(&self, status: &str) {
        let mut heard = self.heard();
        if heard.last_status.as_deref() != Some(status) {
            self.tell(&mut heard, Colour::Yellow, &format!("status {status}"));
            heard.last_status = Some(status.to_owned());
        }
    }

    /// A statement was answered by `ip`; told when it is another one than before.
    pub fn answered(&self, ip: &str) {
        let mut heard = self.heard();
        if heard.last_ip.as_deref() != Some(ip) {
            self.tell(&mut heard, Colour::Green, &format!("statements are answered by {}", self.name(ip)));
            heard.last_ip = Some(ip.to_owned());
            heard.first_ip.get_or_insert_with(|| ip.to_owned());
        }
    }

    /// A statement failed.
    pub fn failed(&self, error: &str) {
        let mut heard = self.heard();
        heard.failures += 1;
        if heard.failures <= FAILURES_TOLD {
            self.tell(&mut heard, Colour::Red, &format!("FAILED {error}"));
        }
    }

    /// The first and the last backend that answered.
    pub fn before_and_after(&self) -> (String, String) {
        let heard = self.heard();
        let name = |ip: &Option<String>| ip.as_deref().map_or("nobody".to_owned(), |ip| self.name(ip));
        (name(&heard.first_ip), name(&heard.last_ip))
    }

    /// An address with the server's part in the deployment.
    fn name(&self, ip: &str) -> String {
        let is = |host: &RdsBgdHost| host.ip == ip;
        let part = match &self.cluster {
            cluster if is(&cluster.blue_writer) => "blue writer",
            cluster if is(&cluster.green_writer) => "green writer",
            cluster if cluster.blue_readers.iter().any(is) => "blue reader",
            cluster if cluster.green_readers.iter().any(is) => "green reader",
            _ => "unknown server",
        };
        format!("{ip} ({part})")
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        // Every change is one assignment, so a panic elsewhere leaves it usable.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, heard: &mut Heard, colour: Colour, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        let line = match self.colours {
            true => format!("{seconds:6.2} s  \x1b[{}m{text}\x1b[0m\n", colour as u8),
            false => format!("{seconds:6.2} s  {text}\n"),
        };
        // Nobody reads any more: the closing status still tells.
        let _ = heard.out.write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;

    fn silent() -> Narrator {
        Narrator::writing_to(Box::new(io::sink()), false, hosts::cluster_1_green_a(3306))
    }

    #[test]
    fn the_first_and_the_last_answer_are_kept() {
        let narrator = silent();
        assert_eq!(narrator.before_and_after(), ("nobody".to_owned(), "nobody".to_owned()));
        for ip in ["127.10.0.11", "127.10.0.11", "127.10.0.14"] {
            narrator.answered(ip);
        }
        let expected = ("127.10.0.11 (blue writer)".to_owned(), "127.10.0.14 (green writer)".to_owned());
        assert_eq!(narrator.before_and_after(), expected);
    }

    #[test]
    fn every_server_of_the_cluster_has_a_part() {
        let narrator = silent();
        assert_eq!(narrator.name("127.10.0.13"), "127.10.0.13 (blue reader)");
        assert_eq!(narrator.name("127.10.0.15"), "127.10.0.15 (green reader)");
        assert_eq!(narrator.name("127.0.0.1"), "127.0.0.1 (unknown server)");
    }
}
