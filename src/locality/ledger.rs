//! What is known of each subject, and when to ask again. No IO, no clock.

use super::policy::Policy;
use super::provider::{Answer, Category, Location, Subject, Ticket};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an answer is waited for.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after a first failure; it doubles up to the refresh interval.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// How good what is known is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing has been answered yet.
    Pending,
    /// The last answer is not older than the refresh interval.
    Fresh,
    /// It is older, or asking again has failed; it still holds.
    Stale,
    /// It is older than the stale TTL.
    Expired,
    /// Nothing is known, and asking has failed.
    Error,
    /// Nobody asks.
    Disabled,
}

impl State {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Expired => "expired",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }
    /// Whether a multiplier may rest on it.
    pub fn holds(self) -> bool {
        matches!(self, Self::Fresh | Self::Stale)
    }
}

#[derive(Debug, Default)]
struct Record {
    refresh: Duration,
    known: Option<(Location, Instant)>,
    /// Of the last attempt.
    error: Option<Category>,
    /// Failed attempts in a row.
    failures: u32,
    /// An answer is awaited until then.
    asked: Option<(Ticket, Instant)>,
    /// When to ask again; at once where nobody has asked.
    next: Option<Instant>,
}

/// What is known of one subject, by a policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knowledge<'a> {
    /// How good it is.
    pub state: State,
    /// The last answer, also one that holds no more.
    pub location: Option<&'a Location>,
    /// Its age.
    pub age: Option<Duration>,
    /// Why the last attempt gave none.
    pub error: Option<Category>,
}

/// All subjects.
#[derive(Debug, Default)]
pub struct Ledger {
    records: BTreeMap<Subject, Record>,
    tickets: Ticket,
}

impl Ledger {
    /// Keeps these subjects and no others; each is asked for in its interval.
    pub fn keep(&mut self, wanted: &BTreeMap<Subject, Duration>) {
        self.records.retain(|subject, _| wanted.contains_key(subject));
        for (subject, refresh) in wanted {
            let record = self.records.entry(subject.clone()).or_default();
            if record.refresh > *refresh && record.asked.is_none() {
                record.next = None;
            }
            record.refresh = *refresh;
        }
    }
    /// Who is to be asked about now. Answers that are overdue are given up first.
    pub fn due(&mut self, now: Instant) -> Vec<(Ticket, Subject)> {
        let mut due = Vec::new();
        for (subject, record) in &mut self.records {
            if record.asked.is_some_and(|(_, until)| until <= now) {
                record.fail(Category::Timeout, now);
            }
            if record.asked.is_none() && record.next.is_none_or(|next| next <= now) {
                self.tickets += 1;
                record.asked = Some((self.tickets, now + PATIENCE));
                due.push((self.tickets, subject.clone()));
            }
        }
        due
    }
    /// Takes an answer; one that is not awaited any more is ignored. `spread`, from 0 to 1, keeps refreshes apart. Says what
    /// it was about if it has failed as the attempt before has not.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        now: Instant,
        spread: f64,
    ) -> Option<(&Subject, Category)> {
        let awaited = |record: &Record| record.asked.is_some_and(|(asked, _)| asked == ticket);
        let (subject, record) = self.records.iter_mut().find(|(_, record)| awaited(record))?;
        match answer {
            Ok(location) if location.makes_sense() => {
                record.known = Some((location, now));
                (record.asked, record.error, record.failures) = (None, None, 0);
                // A little early, so that it stays fresh; what is asked for together today need not be tomorrow.
                record.next = Some(now + record.refresh.mul_f64(0.95 - spread.clamp(0.0, 1.0) / 20.0));
                None
            }
            other => {
                let category = other.err().unwrap_or(Category::InvalidAnswer);
                let is_new = record.error != Some(category);
                record.fail(category, now);
                is_new.then_some((subject, category))
            }
        }
    }
    /// When there will be something to ask, or to give up.
    pub fn next(&self) -> Option<Instant> {
        let next = |record: &Record| record.asked.map(|(_, until)| until).or(record.next);
        self.records.values().filter_map(next).min()
    }
    /// When what is known of a subject ceases to hold.
    pub fn expiry(&self, subject: &Subject, policy: &Policy) -> Option<Instant> {
        let (_, since) = self.records.get(subject)?.known.as_ref()?;
        Some(*since + policy.stale_ttl)
    }
    /// What is known of a subject.
    pub fn knowledge(&self, subject: &Subject, policy: &Policy, now: Instant) -> Knowledge<'_> {
        let nothing = Knowledge { state: State::Pending, location: None, age: None, error: None };
        let Some(record) = self.records.get(subject) else { return nothing };
        let Some((location, since)) = &record.known else {
            let state = if record.error.is_some() { State::Error } else { State::Pending };
            return Knowledge { state, error: record.error, ..nothing };
        };
        let age = now.saturating_duration_since(*since);
        let state = if age >= policy.stale_ttl {
            State::Expired
        } else if age > policy.refresh || record.error.is_some() {
            State::Stale
        } else {
            State::Fresh
        };
        Knowledge { state, location: Some(location), age: Some(age), error: record.error }
    }
}

impl Record {
    fn fail(&mut self, category: Category, now: Instant) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16));
        (self.asked, self.error) = (None, Some(category));
        self.failures = self.failures.saturating_add(1);
        self.next = Some(now + pause.min(self.refresh));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        same_region: 2.0,
        same_zone: 4.0,
        refresh: Duration::from_secs(300),
        stale_ttl: Duration::from_secs(1_800),
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn place(zone: &str) -> Location {
        Location { region: "eu-north-1".into(), zone: zone.into(), ..Location::default() }
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.keep(&BTreeMap::from([(Subject::Own, POLICY.refresh)]));
        ledger
    }

    fn ask(ledger: &mut Ledger, now: Instant) -> Ticket {
        let due = ledger.due(now);
        assert_eq!(due.len(), 1, "{due:?}");
        due[0].0
    }

    fn state(ledger: &Ledger, now: Instant) -> (State, Option<Category>) {
        let knowledge = ledger.knowledge(&Subject::Own, &POLICY, now);
        (knowledge.state, knowledge.error)
    }

    #[test]
    fn an_answer_is_fresh_then_stale_then_expired() {
        let (mut ledger, start) = (ledger(), Instant::now());
        assert_eq!(state(&ledger, start), (State::Pending, None));
        let ticket = ask(&mut ledger, start);
        assert_eq!(ledger.due(start), [], "it is being asked");
        ledger.answer(ticket, Ok(place("a")), start, 0.0);
        for (age, expected) in [
            (0, State::Fresh),
            (300, State::Fresh),
            (301, State::Stale),
            (1_799, State::Stale),
            (1_800, State::Expired),
        ] {
            assert_eq!(state(&ledger, start + seconds(age)).0, expected, "{age}");
        }
        assert_eq!(ledger.expiry(&Subject::Own, &POLICY), Some(start + seconds(1_800)));
        assert_eq!(ledger.next(), Some(start + seconds(285)));
        assert_eq!(ledger.due(start + seconds(284)), []);
        assert_eq!(ledger.due(start + seconds(285)).len(), 1);
    }

    #[test]
    fn a_failed_refresh_keeps_what_was_known_until_it_expires() {
        let (mut ledger, start) = (ledger(), Instant::now());
        let ticket = ask(&mut ledger, start);
        ledger.answer(ticket, Ok(place("a")), start, 0.0);
        let later = start + seconds(300);
        let ticket = ask(&mut ledger, later);
        let told = ledger.answer(ticket, Err(Category::Throttled), later, 0.0);
        assert_eq!(told, Some((&Subject::Own, Category::Throttled)));
        assert_eq!(state(&ledger, later), (State::Stale, Some(Category::Throttled)));
        assert_eq!(ledger.knowledge(&Subject::Own, &POLICY, later).location, Some(&place("a")));
        assert_eq!(state(&ledger, start + seconds(1_800)).0, State::Expired);
        let ticket = ask(&mut ledger, later + seconds(5));
        ledger.answer(ticket, Ok(place("b")), later + seconds(5), 0.0);
        assert_eq!(state(&ledger, later + seconds(5)), (State::Fresh, None));
    }

    #[test]
    fn failures_are_told_once_and_asked_again_with_growing_pauses() {
        let (mut ledger, mut now) = (ledger(), Instant::now());
        for (attempt, pause) in [5, 10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
            let ticket = ask(&mut ledger, now);
            let told = ledger.answer(ticket, Err(Category::NotFound), now, 0.0).is_some();
            assert_eq!(told, attempt == 0);
            assert_eq!(state(&ledger, now), (State::Error, Some(Category::NotFound)));
            assert_eq!(ledger.due(now + seconds(pause - 1)), [], "attempt {attempt}");
            now += seconds(pause);
        }
    }

    #[test]
    fn an_answer_that_comes_late_or_twice_is_ignored() {
        let (mut ledger, start) = (ledger(), Instant::now());
        let ticket = ask(&mut ledger, start);
        let late = start + PATIENCE;
        assert_eq!(ledger.due(late), []);
        assert_eq!(state(&ledger, late), (State::Error, Some(Category::Timeout)));
        ledger.answer(ticket, Ok(place("a")), late, 0.0);
        assert_eq!(state(&ledger, late).0, State::Error);
        let ticket = ask(&mut ledger, late + FIRST_PAUSE);
        ledger.answer(ticket, Ok(place("b")), late + FIRST_PAUSE, 0.0);
        ledger.answer(ticket, Ok(place("c")), late + FIRST_PAUSE, 0.0);
        let known = ledger.knowledge(&Subject::Own, &POLICY, late + FIRST_PAUSE);
        assert_eq!(known.location, Some(&place("b")));
    }

    #[test]
    fn a_place_that_makes_no_sense_is_no_answer() {
        for (region, zone) in [("", "a"), ("eu-north-1", &*"z".repeat(64)), ("eu-north-1", "a\nb")] {
            let (mut ledger, now) = (ledger(), Instant::now());
            let ticket = ask(&mut ledger, now);
            let place = Location { region: region.into(), zone: zone.into(), ..Location::default() };
            ledger.answer(ticket, Ok(place), now, 0.0);
            assert_eq!(state(&ledger, now), (State::Error, Some(Category::InvalidAnswer)));
        }
    }

    #[test]
    fn subjects_come_and_go_and_a_shorter_interval_is_heeded_at_once() {
        let (mut ledger, now) = (ledger(), Instant::now());
        let ticket = ask(&mut ledger, now);
        ledger.answer(ticket, Ok(place("a")), now, 0.0);
        let endpoint = Subject::Endpoint("db".into());
        let wanted = BTreeMap::from([(Subject::Own, seconds(30)), (endpoint.clone(), seconds(300))]);
        ledger.keep(&wanted);
        let due: Vec<_> = ledger.due(now).into_iter().map(|(_, subject)| subject).collect();
        assert_eq!(due, [Subject::Own, endpoint]);
        assert_eq!(state(&ledger, now).0, State::Fresh, "what is known stays");
        ledger.keep(&BTreeMap::new());
        assert_eq!((ledger.next(), state(&ledger, now)), (None, (State::Pending, None)));
    }

    #[test]
    fn refreshes_are_spread() {
        let (mut ledger, now) = (ledger(), Instant::now());
        let ticket = ask(&mut ledger, now);
        ledger.answer(ticket, Ok(place("a")), now, 1.0);
        assert_eq!(ledger.next(), Some(now + seconds(270)));
    }
}
