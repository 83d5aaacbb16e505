//! What a session's thread looks after while a server works for it: its client, its limits, and word left in its entry.
//!
//! **A client that has gone.** A reset, or both directions closed, is certain. A client that has only ended its own direction
//! (FIN) may be a program that died as well as one that still reads the answer (`echo ... | nc`), and TCP tells them apart only when
//! something is sent: so one byte of urgent data is, which is no part of the stream and which programs never see. A socket that is
//! closed answers it with a reset, and the next look knows. A client that is cut off without a word is found by TCP's keepalive.
//! On a unix socket a program that has died has closed both directions.

use super::Sessions;
use super::forward::{Pause, Tick};
use super::registry::{Call, Entry, count};
use crate::pool::Target;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use std::time::{Duration, Instant};
use wire::socket::Socket;

/// How long a server may pause where it has no reason to.
const LONGEST_STALL: Duration = Duration::from_secs(30);
/// Pause between attempts to kill a statement.
const AGAIN: Duration = Duration::from_secs(5);

/// Looks after one statement.
pub struct Watch<'a> {
    shared: &'a Sessions,
    entry: &'a Entry,
    client: &'a Socket,
    /// When the statement is to be killed.
    deadline: Option<Instant>,
    probed: bool,
    stall: Stall,
}

/// Since when the server pauses where it has no reason to.
#[derive(Default)]
struct Stall(Option<Instant>);

impl Stall {
    /// Takes note of a pause; true if it has been too long.
    fn note(&mut self, pause: Pause, now: Instant) -> bool {
        if pause != Pause::Stall {
            *self = Self::default();
            return false;
        }
        now.saturating_duration_since(*self.0.get_or_insert(now)) >= LONGEST_STALL
    }
}

/// What can be known of a client that is not read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    /// It sends no more; whether it reads is unknown.
    HalfClosed,
    Gone,
}

impl<'a> Watch<'a> {
    /// A watch over the statement that the client of `entry` was given, to be killed at `deadline`.
    pub fn new(
        shared: &'a Sessions,
        entry: &'a Entry,
        client: &'a Socket,
        deadline: Option<Instant>,
    ) -> Self {
        Self { shared, entry, client, deadline, probed: false, stall: Stall::default() }
    }
    /// What the relay does next.
    pub fn tick(&mut self, pause: Pause) -> Tick {
        match pause {
            // The client is there: it takes the answer.
            Pause::MoreToCome => {
                self.stall = Stall::default();
                self.going_on()
            }
            pause if self.stall.note(pause, Instant::now()) => Tick::GiveUp,
            _ => self.silent(),
        }
    }
    fn silent(&mut self) -> Tick {
        if self.going_on() == Tick::Cancel {
            return Tick::Cancel;
        }
        match presence(self.client) {
            Presence::Gone => {
                self.abandon("its client has gone");
                Tick::Cancel
            }
            // A daemon that stops has shut the read side itself.
            Presence::HalfClosed
                if !self.probed && !self.client.is_unix() && !self.shared.backends.is_ending() =>
            {
                self.probed = true;
                // A socket that takes nothing more is full, or gone, which the next look tells.
                let _ = send(
                    self.client.stream(),
                    b"\0",
                    SendFlags::OOB | SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
                );
                Tick::Continue
            }
            _ => Tick::Continue,
        }
    }
    /// Does what the entry and the clock ask for.
    fn going_on(&mut self) -> Tick {
        match self.entry.call() {
            Some(Call::End(_)) => {
                self.abandon("its session ends");
                return Tick::Cancel;
            }
            Some(Call::KillQuery) => self.kill_query("as it was asked to"),
            None => {
                let now = Instant::now();
                if self.deadline.is_some_and(|deadline| now >= deadline) {
                    self.kill_query("for its time is over");
                }
            }
        }
        Tick::Continue
    }
    /// Ends the statement on its server, whose error is then the answer.
    fn kill_query(&mut self, why: &str) {
        self.deadline = match self.kill(Target::Query, why) {
            true => None,
            false => Some(Instant::now() + AGAIN),
        };
    }
    /// The server works for nobody any more.
    pub fn abandon(&self, why: &str) {
        if self.shared.config.variables().kill_backend_connection_when_disconnect {
            self.kill(Target::Connection, why);
        }
    }
    /// Whether it was done. The answer is not read meanwhile, so that the statement cannot become another.
    fn kill(&self, target: Target, why: &str) -> bool {
        let peer = self.entry.server(&self.entry.activity()).cloned();
        let Some(peer) = peer else { return true };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        let id = self.entry.id;
        match peer.kill(target, deadline) {
            Ok(()) => {
                let counters = &self.shared.registry.counters;
                count(match target {
                    Target::Query => &counters.killed_queries,
                    Target::Connection => &counters.killed_connections,
                });
                log::debug!("the statement of client {id} was killed on {} {why}", peer.endpoint);
                true
            }
            Err(error) => {
                log::warn!("cannot kill the statement of client {id} on {} ({why}): {error}", peer.endpoint);
                false
            }
        }
    }
}

fn presence(client: &Socket) -> Presence {
    let mut descriptors = [PollFd::new(client.stream(), PollFlags::RDHUP)];
    if poll(&mut descriptors, Some(&Timespec::default())).is_err() {
        return Presence::There;
    }
    let [client] = descriptors;
    let seen = client.revents();
    match () {
        () if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Presence::Gone,
        () if seen.contains(PollFlags::RDHUP) => Presence::HalfClosed,
        () => Presence::There,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{eventually, socket_pair};
    use std::io::{Read, Write};
    use std::net::Shutdown;

    fn ask(socket: &Socket) {
        send(socket.stream(), b"\0", SendFlags::OOB | SendFlags::NOSIGNAL).unwrap();
    }

    #[test]
    fn a_half_closed_client_stays_and_does_not_see_that_it_was_asked() {
        let (mut client, mut socket) = socket_pair();
        assert_eq!(presence(&socket), Presence::There);
        client.shutdown(Shutdown::Write).unwrap();
        eventually("the end is seen", || presence(&socket) == Presence::HalfClosed);
        ask(&socket);
        socket.write_all(b"answer").unwrap();
        socket.shutdown(Shutdown::Write);
        let mut read = Vec::new();
        client.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"answer");
        drop(client);
    }

    #[test]
    fn a_closed_client_is_known_to_be_gone_once_it_was_asked() {
        let (client, socket) = socket_pair();
        drop(client);
        eventually("the end is seen", || presence(&socket) == Presence::HalfClosed);
        ask(&socket);
        eventually("the answer is a reset", || presence(&socket) == Presence::Gone);
    }

    #[test]
    fn a_server_may_pause_between_packets_for_as_long_as_it_likes() {
        let (mut stall, start) = (Stall::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!stall.note(Pause::Stall, at(0)) && !stall.note(Pause::Stall, at(29)));
        assert!(!stall.note(Pause::Silence, at(30)) && !stall.note(Pause::Silence, at(3600)));
        assert!(!stall.note(Pause::Stall, at(3601)) && !stall.note(Pause::Stall, at(3630)));
        assert!(stall.note(Pause::Stall, at(3631)));
    }

    #[test]
    fn a_reset_needs_no_question() {
        let (client, socket) = socket_pair();
        rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        eventually("the reset is seen", || presence(&socket) == Presence::Gone);
    }
}
