//! Who tells where servers are, and how it is asked: through leases, which outlive no daemon.
//!
//! A provider is asked for a batch of subjects and answers each through its [`Lease`], at once or later, from any thread. A lease that
//! is dropped has answered, too. Once the [`Inbox`] is closed it hands out no lease and takes no answer, and whoever ends the
//! provider waits until the last lease is gone.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Instant;

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Where this proxy runs.
    Own,
    /// Where an endpoint is: its host name in lower case, without the final dot.
    Endpoint(Arc<str>),
}

/// A place, in AWS's terms. Empty texts stand for what is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// `eu-north-1`
    pub region: String,
    /// `eu-north-1a`: a name, which means another zone in another account
    pub zone: String,
    /// `eun1-az1`: the same in all accounts
    pub zone_id: String,
    /// Twelve digits
    pub account: String,
}

/// How near two places are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// Another Region, or nothing is known.
    Remote,
    /// The same Region.
    Region,
    /// The same Availability Zone.
    Zone,
}

/// Longest text of a place, in bytes. None of AWS's comes near.
const LONGEST: usize = 63;

impl Location {
    /// Whether it can be a place: a Region at least, and words.
    pub fn makes_sense(&self) -> bool {
        let is_word = |text: &String| text.len() <= LONGEST && !text.contains(char::is_control);
        !self.region.is_empty()
            && [&self.region, &self.zone, &self.zone_id, &self.account].into_iter().all(is_word)
    }
    /// How near another place is. Zones are compared by id where both have one, else by name, which says nothing
    /// between two accounts.
    pub fn nearness(&self, other: &Self) -> Nearness {
        if self.region.is_empty() || self.region != other.region {
            return Nearness::Remote;
        }
        let both = |one: &str, another: &str| !one.is_empty() && !another.is_empty();
        let same_zone = if both(&self.zone_id, &other.zone_id) {
            self.zone_id == other.zone_id
        } else {
            let two_accounts = both(&self.account, &other.account) && self.account != other.account;
            both(&self.zone, &other.zone) && self.zone == other.zone && !two_accounts
        };
        if same_zone { Nearness::Zone } else { Nearness::Region }
    }
}

/// Why a subject's place is not known. The words are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// There is no provider.
    ProviderUnavailable,
    /// The provider does not know such an endpoint.
    NotFound,
    /// The provider may not ask.
    AccessDenied,
    /// The provider asks too often.
    Throttled,
    /// No answer in time.
    Timeout,
    /// An answer that makes no sense.
    InvalidAnswer,
    /// Another failure of the provider's.
    ProviderError,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ProviderUnavailable,
        Self::NotFound,
        Self::AccessDenied,
        Self::Throttled,
        Self::Timeout,
        Self::InvalidAnswer,
        Self::ProviderError,
    ];
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderUnavailable => "provider_unavailable",
            Self::NotFound => "not_found",
            Self::AccessDenied => "access_denied",
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::InvalidAnswer => "invalid_answer",
            Self::ProviderError => "provider_error",
        }
    }
}

/// What a provider says of one subject.
pub type Answer = Result<Location, Category>;

/// Tells where subjects are.
pub trait Provider: Send + Sync {
    /// Its name, for the log.
    fn name(&self) -> &str;
    /// Whether stats_mysql_aws_locality is to be there.
    fn shows_table(&self) -> bool;
    /// Answers these, now or later. Nothing else is asked until it returns.
    fn request(&self, leases: Vec<Lease>);
    /// Gives up what it has not answered yet and ends its threads. No request follows.
    fn shut_down(&self);
}

/// What a subject of a batch is called in its answer; a later batch has others.
pub type Ticket = u64;

/// Where answers arrive.
pub struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    open: bool,
    /// Leases that are out.
    leases: usize,
    answers: Vec<(Ticket, Answer)>,
    /// Somebody wants the reader to look up from its wait.
    roused: bool,
}

/// The daemon ends, or does not ask any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("answers are not taken any more")]
pub struct Closed;

impl Default for Inbox {
    fn default() -> Self {
        let state = State { open: true, leases: 0, answers: Vec::new(), roused: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Inbox {
    /// A lease for one subject.
    pub fn lease(self: &Arc<Self>, ticket: Ticket, subject: Subject) -> Result<Lease, Closed> {
        let mut state = self.state.lock();
        if !state.open {
            return Err(Closed);
        }
        state.leases += 1;
        Ok(Lease { inbox: Arc::clone(self), ticket, subject, answered: false })
    }
    /// The answers so far, once there are some, somebody [rouses](Self::rouse) the reader, or `until` has come.
    pub fn wait(&self, until: Option<Instant>) -> Vec<(Ticket, Answer)> {
        let mut state = self.state.lock();
        while state.open && state.answers.is_empty() && !state.roused {
            match until {
                Some(until) => {
                    if self.changed.wait_until(&mut state, until).timed_out() {
                        break;
                    }
                }
                None => self.changed.wait(&mut state),
            }
        }
        state.roused = false;
        std::mem::take(&mut state.answers)
    }
    /// Ends the reader's wait, or its next one.
    pub fn rouse(&self) {
        self.state.lock().roused = true;
        self.changed.notify_all();
    }
    /// No more leases, no more answers.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.open = false;
        state.answers.clear();
        drop(state);
        self.changed.notify_all();
    }
    /// Whether leases can be had and answers are taken.
    pub fn is_open(&self) -> bool {
        self.state.lock().open
    }
    /// Waits until no lease is out. False if some still are at `deadline`.
    pub fn drain(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while state.leases > 0 {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.leases == 0;
            }
        }
        true
    }
    fn give_back(&self, ticket: Ticket, answer: Answer) -> Result<(), Closed> {
        let mut state = self.state.lock();
        state.leases -= 1;
        let taken = if state.open { Ok(()) } else { Err(Closed) };
        if taken.is_ok() {
            state.answers.push((ticket, answer));
        }
        drop(state);
        self.changed.notify_all();
        taken
    }
}

/// The right to answer for one subject, once.
pub struct Lease {
    inbox: Arc<Inbox>,
    ticket: Ticket,
    subject: Subject,
    answered: bool,
}

impl Lease {
    /// What is asked about.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }
    /// Answers.
    pub fn answer(mut self, answer: Answer) -> Result<(), Closed> {
        self.answered = true;
        self.inbox.give_back(self.ticket, answer)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.answered {
            // Nobody waits for it where the inbox is closed.
            let _ = self.inbox.give_back(self.ticket, Err(Category::ProviderError));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    fn place(region: &str, zone: &str, zone_id: &str, account: &str) -> Location {
        Location {
            region: region.into(),
            zone: zone.into(),
            zone_id: zone_id.into(),
            account: account.into(),
        }
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn zones_are_the_same_by_id_or_by_name_in_one_account() {
        let own = place("eu-north-1", "eu-north-1a", "eun1-az1", "111111111111");
        for (other, expected) in [
            (place("eu-north-1", "eu-north-1a", "eun1-az1", "111111111111"), Nearness::Zone),
            (place("eu-north-1", "eu-north-1c", "eun1-az1", "222222222222"), Nearness::Zone),
            (place("eu-north-1", "eu-north-1a", "eun1-az2", "222222222222"), Nearness::Region),
            (place("eu-north-1", "eu-north-1a", "", "222222222222"), Nearness::Region),
            (place("eu-north-1", "eu-north-1a", "", "111111111111"), Nearness::Zone),
            (place("eu-north-1", "eu-north-1a", "", ""), Nearness::Zone),
            (place("eu-north-1", "", "", ""), Nearness::Region),
            (place("eu-west-1", "eu-north-1a", "eun1-az1", "111111111111"), Nearness::Remote),
            (Location::default(), Nearness::Remote),
        ] {
            assert_eq!(own.nearness(&other), expected, "{other:?}");
            assert_eq!(other.nearness(&own), expected, "{other:?}");
        }
        assert_eq!(Location::default().nearness(&Location::default()), Nearness::Remote);
    }

    #[test]
    fn a_dropped_lease_has_answered() {
        let inbox = Arc::new(Inbox::default());
        drop(inbox.lease(4, Subject::Own).unwrap());
        assert_eq!(inbox.wait(soon()), [(4, Err(Category::ProviderError))]);
        let lease = inbox.lease(5, Subject::Own).unwrap();
        let answer = Ok(place("eu-north-1", "", "", ""));
        let giver = thread::spawn({
            let answer = answer.clone();
            move || lease.answer(answer)
        });
        assert_eq!(inbox.wait(soon()), [(5, answer)]);
        assert_eq!(giver.join().unwrap(), Ok(()));
        assert!(inbox.drain(Instant::now()));
    }

    #[test]
    fn a_closed_inbox_takes_nothing_and_waits_for_its_leases() {
        let inbox = Arc::new(Inbox::default());
        let (one, other) = (inbox.lease(1, Subject::Own).unwrap(), inbox.lease(2, Subject::Own).unwrap());
        inbox.close();
        assert!(inbox.lease(3, Subject::Own).is_err());
        assert_eq!(one.answer(Ok(Location::default())), Err(Closed));
        assert!(!inbox.drain(Instant::now()), "a lease is out");
        let holder = thread::spawn(move || drop(other));
        assert!(inbox.drain(Instant::now() + Duration::from_secs(10)));
        holder.join().unwrap();
        assert_eq!(inbox.wait(None), []);
    }

    #[test]
    fn a_reader_can_be_roused() {
        let inbox = Arc::new(Inbox::default());
        inbox.rouse();
        assert_eq!(inbox.wait(None), [], "roused before it waited");
        let other = Arc::clone(&inbox);
        let reader = thread::spawn(move || other.wait(None));
        inbox.rouse();
        assert_eq!(reader.join().unwrap(), []);
        assert_eq!(inbox.wait(Some(Instant::now())), []);
    }
}
