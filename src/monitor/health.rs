//! What pings have told of servers: who answers, and how soon. Shared with the blue/green workers.

use crate::hostgroups::Endpoint;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// The latency of a server is the average of so many answers.
const AVERAGED: usize = 3;

/// How a ping ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pong {
    /// Answered, after so long.
    Answered(Duration),
    /// The server lives, but would not have the monitor: wrong password, too many connections and the like.
    Refused,
    /// No answer, or none that a sound server gives.
    Missed,
}

#[derive(Debug, Default)]
struct State {
    missed: u32,
    /// Of the last answers, the newest last.
    latencies: Vec<Duration>,
    /// Whether the log says that the server is gone.
    told: bool,
}

/// What a ping has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// How many in a row were missed.
    pub missed: u32,
    /// The average of the last answers, where this was one.
    pub latency: Option<Duration>,
    /// Whether the log says that the server is gone, and it is back.
    pub back: bool,
}

/// The state of every server that is pinged.
#[derive(Debug, Default)]
pub struct Health {
    servers: Mutex<HashMap<Endpoint, State>>,
}

impl Health {
    /// Takes note of a ping.
    pub fn note(&self, endpoint: &Endpoint, pong: Pong) -> Noted {
        let mut servers = self.servers.lock();
        let state = servers.entry(endpoint.clone()).or_default();
        state.missed = if pong == Pong::Missed { state.missed.saturating_add(1) } else { 0 };
        let missed = state.missed;
        let back = missed == 0 && std::mem::take(&mut state.told);
        let Pong::Answered(latency) = pong else { return Noted { missed, latency: None, back } };
        if state.latencies.len() >= AVERAGED {
            state.latencies.remove(0);
        }
        state.latencies.push(latency);
        let count = u32::try_from(state.latencies.len()).unwrap_or(u32::MAX).max(1);
        let latency = Some(state.latencies.iter().sum::<Duration>() / count);
        Noted { missed, latency, back }
    }
    /// Whether the log is to be told that a server is gone: once, until it is back. It is shunned anew whenever its rest has
    /// ended meanwhile.
    pub fn tell_gone(&self, endpoint: &Endpoint) -> bool {
        let mut servers = self.servers.lock();
        let state = servers.get_mut(endpoint);
        state.is_some_and(|state| state.missed > 0 && !std::mem::replace(&mut state.told, true))
    }
    /// Whether a server answers pings: fewer than `max_failures` in a row were missed. One that was never pinged does.
    pub fn responds(&self, endpoint: &Endpoint, max_failures: u32) -> bool {
        self.servers.lock().get(endpoint).is_none_or(|state| state.missed < max_failures)
    }
    /// Forgets the servers that are not among `known`.
    pub fn retain(&self, known: impl Fn(&Endpoint) -> bool) {
        self.servers.lock().retain(|endpoint, _| known(endpoint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_pings_count_in_a_row() {
        let (health, a) = (Health::default(), Endpoint::new("a", 1));
        let missed = |pong| health.note(&a, pong).missed;
        assert!(health.responds(&a, 1));
        assert_eq!([missed(Pong::Missed), missed(Pong::Missed)], [1, 2]);
        assert!(health.responds(&a, 3) && !health.responds(&a, 2));
        assert_eq!(missed(Pong::Refused), 0);
        assert!(health.responds(&a, 1));
        assert_eq!([missed(Pong::Missed), missed(Pong::Answered(Duration::ZERO))], [1, 0]);
        missed(Pong::Missed);
        health.retain(|endpoint| *endpoint != a);
        assert!(health.responds(&a, 1));
    }

    #[test]
    fn who_is_gone_and_who_is_back_is_told_once() {
        let (health, a) = (Health::default(), Endpoint::new("a", 1));
        assert!(!health.tell_gone(&a), "it was never pinged");
        for (pong, expected) in [
            (Pong::Missed, (true, false)),
            (Pong::Missed, (false, false)),
            (Pong::Answered(Duration::ZERO), (false, true)),
            (Pong::Refused, (false, false)),
            (Pong::Missed, (true, false)),
            (Pong::Refused, (false, true)),
        ] {
            let back = health.note(&a, pong).back;
            assert_eq!((health.tell_gone(&a), back), expected, "{pong:?}");
        }
    }

    #[test]
    fn the_latency_is_that_of_the_last_three_answers() {
        let (health, a) = (Health::default(), Endpoint::new("a", 1));
        let micros = |micros| Pong::Answered(Duration::from_micros(micros));
        for (pong, expected) in [
            (micros(10), Some(10)),
            (micros(20), Some(15)),
            (Pong::Missed, None),
            (micros(60), Some(30)),
            (micros(100), Some(60)),
        ] {
            assert_eq!(health.note(&a, pong).latency, expected.map(Duration::from_micros));
        }
    }
}
