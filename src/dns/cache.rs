//! What is known of names: pins and cached answers. Pure: time comes in as an argument.

use super::{LookupError, Owner, Resolved};
use fastrand::Rng;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For how long a failed lookup stands for the next ones.
pub const NEGATIVE_LIFE: Duration = Duration::from_secs(1);
/// Shortest time between two refreshes of a name, for sources that give no time to live.
const SHORTEST_REFRESH: Duration = Duration::from_secs(1);
/// How long after a failure a name is looked up again for those who only want to know it.
const RETRY: Duration = Duration::from_secs(10);
/// The part of its life after which a name is looked up again, and how much sooner or later by chance, so that names that came
/// together do not go on together.
const REFRESH_AT: f32 = 0.8;
const JITTER: f32 = 0.025;
/// How long after its end an answer is kept in case the resolver fails.
const KEPT_AFTER_END: Duration = Duration::from_secs(3600);

struct Entry {
    answer: Result<Vec<IpAddr>, LookupError>,
    /// When a refresh is due: before the end, so that nobody waits for it.
    refresh: Instant,
    end: Instant,
    used: Instant,
}

/// Where a name leads whatever DNS says.
pub struct Pin {
    /// The address.
    pub address: IpAddr,
    /// The name of the server that has it.
    pub target: Arc<str>,
    /// Who set it.
    pub owner: Owner,
}

/// Pins and entries by normalised name.
#[derive(Default)]
pub struct Cache {
    pins: HashMap<String, Pin>,
    entries: HashMap<String, Entry>,
    turns: HashMap<String, usize>,
    random: Rng,
}

impl Cache {
    /// The pin of a name.
    pub fn pinned(&self, name: &str) -> Option<&Pin> {
        self.pins.get(name)
    }
    /// Pins a name; of two owners the later one has it.
    pub fn pin(&mut self, name: String, pin: Pin) {
        self.pins.insert(name, pin);
    }
    /// Every pin.
    pub fn pins(&self) -> Vec<(String, IpAddr, Owner)> {
        self.pins.iter().map(|(name, pin)| (name.clone(), pin.address, pin.owner)).collect()
    }
    /// Drops the entry, and the pin if it is the owner's.
    pub fn remove(&mut self, name: &str, owner: Owner) {
        self.entries.remove(name);
        if self.pins.get(name).is_some_and(|pin| pin.owner == owner) {
            self.pins.remove(name);
        }
    }
    /// Drops every entry; pins stay.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
    /// The addresses of a name, one after the other.
    pub fn take_turn(&mut self, name: &str, addresses: &[IpAddr]) -> Option<IpAddr> {
        match addresses {
            [] => None,
            [only] => Some(*only),
            _ => {
                let turn = self.turns.entry(name.to_owned()).or_default();
                let address = addresses.get(*turn % addresses.len()).copied();
                *turn = turn.wrapping_add(1);
                address
            }
        }
    }
    /// What the cache says now: the addresses in turn, or the failure of a moment ago.
    pub fn get(&mut self, name: &str, now: Instant) -> Option<Result<IpAddr, LookupError>> {
        let entry = self.entries.get_mut(name).filter(|entry| now < entry.end)?;
        entry.used = now;
        match entry.answer.clone() {
            Ok(addresses) => self.take_turn(name, &addresses).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
    /// Notes that a name is in use. False if it is to be looked up: nothing is known of it, or only that it led nowhere a while ago.
    pub fn touch(&mut self, name: &str, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(name) else { return false };
        entry.used = now;
        entry.answer.is_ok() || now < entry.end + RETRY
    }
    /// The addresses known last, in turn, even though their time is over.
    pub fn stale(&mut self, name: &str) -> Option<IpAddr> {
        let addresses = self.entries.get(name)?.answer.clone().ok()?;
        self.take_turn(name, &addresses)
    }
    /// Whether `stale` would give an address.
    pub fn has_stale(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.answer.is_ok())
    }
    /// Keeps the result of a lookup, for `longest` or its own time to live, whichever is shorter. Where the resolver failed,
    /// addresses known from before serve on: they are more likely right than none.
    pub fn put(
        &mut self,
        name: &str,
        result: &Result<Resolved, LookupError>,
        longest: Duration,
        now: Instant,
    ) {
        let old = self.entries.remove(name);
        let used = old.as_ref().map_or(now, |entry| entry.used);
        let known = old.and_then(|entry| entry.answer.ok());
        let (answer, life) = match (result, known) {
            (Ok(resolved), _) => {
                (Ok(resolved.addresses.clone()), resolved.ttl.map_or(longest, |ttl| ttl.min(longest)))
            }
            (Err(LookupError::Failed { .. }), Some(addresses)) => (Ok(addresses), NEGATIVE_LIFE),
            (Err(error), _) => (Err(error.clone()), NEGATIVE_LIFE),
        };
        let part = REFRESH_AT + JITTER * (2.0 * self.random.f32() - 1.0);
        let refresh = now + life.mul_f32(part).max(SHORTEST_REFRESH);
        let entry = Entry { answer, refresh, end: now + life, used };
        self.entries.insert(name.to_owned(), entry);
    }
    /// Names whose refresh is due and that were used within `in_use`, and when to ask again. Forgets what is long past.
    /// Failures are not refreshed: who still needs the name asks again.
    pub fn due(&mut self, in_use: Duration, now: Instant) -> (Vec<String>, Option<Instant>) {
        self.entries.retain(|_, entry| now < entry.end + KEPT_AFTER_END);
        let mut due = Vec::new();
        let mut next: Option<Instant> = None;
        for (name, entry) in &self.entries {
            if entry.answer.is_err() || entry.used + in_use < now {
                continue;
            }
            if entry.refresh <= now {
                due.push(name.clone());
            } else {
                next = Some(next.map_or(entry.refresh, |next| next.min(entry.refresh)));
            }
        }
        (due, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }
    fn found(last: &[u8], ttl: Option<Duration>) -> Result<Resolved, LookupError> {
        Ok(Resolved { addresses: last.iter().copied().map(ip).collect(), ttl })
    }
    fn pin(last: u8, owner: Owner) -> Pin {
        Pin { address: ip(last), target: "green".into(), owner }
    }
    fn pinned(cache: &Cache) -> Option<IpAddr> {
        cache.pinned("a").map(|pin| pin.address)
    }
    fn missing() -> LookupError {
        LookupError::NotFound("a".into())
    }
    fn failed() -> LookupError {
        LookupError::Failed { name: "a".into(), reason: "timeout".into() }
    }

    #[test]
    fn addresses_take_turns_until_the_end() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        cache.put("a", &found(&[1, 2], None), 10 * SECOND, now);
        let turns: Vec<_> = (0..3).map(|_| cache.get("a", now).unwrap().unwrap()).collect();
        assert_eq!(turns, [ip(1), ip(2), ip(1)]);
        assert!(cache.get("a", now + 9 * SECOND).is_some());
        assert_eq!((cache.get("a", now + 10 * SECOND), cache.stale("a")), (None, Some(ip(1))));
        cache.put("a", &found(&[1], Some(2 * SECOND)), 10 * SECOND, now);
        assert_eq!(cache.get("a", now + 2 * SECOND), None);
    }

    #[test]
    fn failures_are_short_and_spare_known_addresses() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        cache.put("a", &Err(failed()), 10 * SECOND, now);
        assert_eq!(cache.get("a", now), Some(Err(failed())));
        assert_eq!(cache.get("a", now + NEGATIVE_LIFE), None);
        cache.put("a", &found(&[1], None), 10 * SECOND, now);
        cache.put("a", &Err(failed()), 10 * SECOND, now + 20 * SECOND);
        assert_eq!(cache.get("a", now + 20 * SECOND), Some(Ok(ip(1))));
        assert_eq!(cache.get("a", now + 21 * SECOND), None);
        cache.put("a", &Err(missing()), 10 * SECOND, now + 21 * SECOND);
        assert_eq!(cache.get("a", now + 21 * SECOND), Some(Err(missing())));
    }

    #[test]
    fn pins_belong_to_their_owner() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        cache.pin("a".into(), pin(9, 1));
        cache.put("a", &found(&[1], None), SECOND, now);
        cache.remove("a", 2);
        assert_eq!((pinned(&cache), cache.get("a", now)), (Some(ip(9)), None));
        cache.clear();
        assert_eq!(cache.pins(), [("a".to_owned(), ip(9), 1)]);
        cache.pin("a".into(), pin(8, 2));
        cache.remove("a", 1);
        assert_eq!(pinned(&cache), Some(ip(8)));
        cache.remove("a", 2);
        assert_eq!(pinned(&cache), None);
    }

    #[test]
    fn only_names_in_use_are_due() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        cache.put("a", &found(&[1], None), 10 * SECOND, now);
        cache.put("b", &found(&[2], None), 100 * SECOND, now);
        cache.put("c", &Err(missing()), 10 * SECOND, now);
        let next = |range: std::ops::Range<f32>, found: Option<Instant>| {
            found.is_some_and(|found| range.contains(&(found - now).as_secs_f32()))
        };
        let (due, first) = cache.due(60 * SECOND, now);
        assert!(due.is_empty() && next(7.7..8.3, first), "{:?}", first.map(|first| first - now));
        let (due, second) = cache.due(60 * SECOND, now + 9 * SECOND);
        assert_eq!(due, ["a"]);
        assert!(next(77.0..83.0, second), "{:?}", second.map(|second| second - now));
        assert_eq!(cache.due(SECOND, now + 9 * SECOND), (vec![], None));
        assert!(cache.touch("a", now + 8 * SECOND) && cache.touch("c", now) && !cache.touch("d", now));
        assert!(cache.touch("c", now + RETRY) && !cache.touch("c", now + RETRY + NEGATIVE_LIFE));
        assert_eq!(cache.due(SECOND, now + 9 * SECOND).0, ["a"]);
        cache.due(SECOND, now + KEPT_AFTER_END + 100 * SECOND);
        assert!(cache.entries.is_empty());
    }

    #[test]
    fn names_that_came_together_are_refreshed_apart_within_bounds() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        let life = 1000 * SECOND;
        for name in 0..500 {
            cache.put(&name.to_string(), &found(&[1], None), life, now);
        }
        let due = |part: f32, cache: &mut Cache| cache.due(life, now + life.mul_f32(part)).0.len();
        let parts = [0.774, 0.79, 0.81, 0.826].map(|part| due(part, &mut cache));
        assert_eq!((parts[0], parts[3]), (0, 500));
        assert!(0 < parts[1] && parts[1] < parts[2] && parts[2] < 500, "{parts:?}");
    }
}
