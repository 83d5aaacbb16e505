//! The connections of one server in one hostgroup.
//!
//! Each connection has a place here from its ticket on, which it keeps until it is gone. It is free while it lies in its place, and
//! used while somebody holds it. So who comes back for the connection that he used last finds it by the number of its place.

use super::connection::{Connection, Shared, Traffic, Trash, Warnings};
use super::profile::Want;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Failures of one server are counted over this long before it is shunned.
const FAILURE_WINDOW: Duration = Duration::from_secs(1);
/// Among so many free connections one is looked for whose packets arrive on the right processor.
const MOST_LOOKS: usize = 16;

/// One use of a connection: by it the same connection can be had again, unless somebody else has used it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotId {
    place: u32,
    /// Of all uses of all connections.
    number: u64,
}

/// A free connection.
pub(super) struct Idle<T> {
    pub(super) connection: Box<Connection<T>>,
    pub(super) since: Instant,
    /// When it answered a ping last.
    pub(super) pinged: Option<Instant>,
    /// How it was used last.
    pub(super) last: SlotId,
}

impl<T> Idle<T> {
    /// Whether its packets arrive on the wanted processor.
    fn is_near(&self, want: &Want) -> bool {
        self.connection.processor.is(want.processor)
    }
}

/// Where a connection belongs.
struct Place<T> {
    shared: Arc<Shared>,
    /// `None` while it is used, or is being opened.
    idle: Option<Idle<T>>,
}

pub(super) struct ServerPool<T> {
    /// `None`: vacant.
    places: Vec<Option<Place<T>>>,
    vacant: Vec<u32>,
    /// Places of free connections, the newest at the end.
    free: Vec<u32>,
    pub(super) warnings: Arc<Warnings>,
    /// Traffic of connections that are gone, less what was counted before the last reset.
    past: Traffic,
    pub(super) connected: u64,
    pub(super) failed: u64,
    pub(super) most_used: usize,
    /// How often a connection, or the right to open one, was given out.
    pub(super) given_out: u64,
    // Start of the running failure window, and failures in it.
    failures: Option<(Instant, u32)>,
}

impl<T> Default for ServerPool<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            free: Vec::new(),
            warnings: Arc::default(),
            past: Traffic::default(),
            connected: 0,
            failed: 0,
            most_used: 0,
            given_out: 0,
            failures: None,
        }
    }
}

impl<T> ServerPool<T> {
    /// How many connections there are.
    pub(super) fn held(&self) -> usize {
        self.places.len() - self.vacant.len()
    }
    /// How many are free.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }
    /// How many are used.
    pub(super) fn used(&self) -> usize {
        self.held() - self.free()
    }
    /// All connections, by the part that others reach.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.places.iter().flatten().map(|place| &place.shared)
    }
    /// Those that are used.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.places.iter().flatten().filter(|place| place.idle.is_none()).map(|place| &place.shared)
    }
    /// Free connections, the newest last.
    pub(super) fn at_rest(&self) -> impl DoubleEndedIterator<Item = &Idle<T>> {
        self.free.iter().filter_map(|at| self.idle(*at))
    }
    fn idle(&self, place: u32) -> Option<&Idle<T>> {
        self.places.get(place as usize)?.as_ref()?.idle.as_ref()
    }
    /// What went to the server and came back since the last reset.
    pub(super) fn traffic(&self) -> Traffic {
        self.all().fold(self.past, |sum, shared| sum + shared.traffic())
    }
    /// The same, and counting begins anew.
    pub(super) fn take_traffic(&mut self) -> Traffic {
        let taken = self.traffic();
        self.past = self.past - taken;
        taken
    }

    /// Gives a new connection its place. It is used.
    pub(super) fn add(&mut self, number: u64, shared: &Arc<Shared>) -> SlotId {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(None);
            // There are no more than max_connections, a number of 32 bits.
            (self.places.len() - 1) as u32
        });
        if let Some(vacant) = self.places.get_mut(place as usize) {
            *vacant = Some(Place { shared: Arc::clone(shared), idle: None });
        }
        self.given_out(SlotId { place, number })
    }
    /// Takes the free connection that is nearest to `want`; among equals one whose packets arrive on the wanted processor, the one
    /// its session used last, or the newest.
    #[inline]
    pub(super) fn take(&mut self, number: u64, want: &Want) -> Option<(SlotId, Idle<T>)> {
        let own =
            want.last.and_then(|last| self.idle_after(last)).filter(|idle| lacks(idle, want) == Some(0));
        let place = match own {
            // What triggers have set there and nobody tells of is the session's, as long as no other was served.
            Some(own) if own.is_near(want) || !own.connection.served.has_others_than(want.session) => {
                Some(own)
            }
            own => self.near(want).or(own),
        };
        let place = place.map(|idle| idle.last.place).or_else(|| self.nearest(want))?;
        let idle = self.withdraw(place)?;
        Some((self.given_out(SlotId { place, number }), idle))
    }
    /// Takes the free connection that was used last so.
    pub(super) fn take_last(&mut self, number: u64, last: SlotId) -> Option<(SlotId, Idle<T>)> {
        let taken = self.take_aside(number, last)?;
        Some((self.given_out(taken.0), taken.1))
    }
    /// As `take_last`, for nobody.
    pub(super) fn take_aside(&mut self, number: u64, last: SlotId) -> Option<(SlotId, Idle<T>)> {
        self.idle_after(last)?;
        Some((SlotId { place: last.place, number }, self.withdraw(last.place)?))
    }
    /// Takes the one that is free for longest.
    pub(super) fn take_oldest(&mut self) -> Option<Box<Connection<T>>> {
        let place = *self.free.first()?;
        let idle = self.withdraw(place)?;
        self.remove(place);
        Some(idle.connection)
    }
    fn idle_after(&self, last: SlotId) -> Option<&Idle<T>> {
        self.idle(last.place).filter(|idle| idle.last == last)
    }
    /// The newest that lacks nothing and whose packets arrive on the wanted processor.
    fn near(&self, want: &Want) -> Option<&Idle<T>> {
        let fits = |idle: &&Idle<T>| {
            idle.is_near(want) && idle.connection.touched.is_none() && lacks(idle, want) == Some(0)
        };
        self.at_rest().rev().take(MOST_LOOKS).find(fits)
    }
    #[inline(never)]
    fn nearest(&self, want: &Want) -> Option<u32> {
        let mut best: Option<(usize, u32)> = None;
        for place in self.free.iter().rev() {
            let Some(idle) = self.idle(*place) else { continue };
            let Some(count) = lacks(idle, want) else { continue };
            let own = want.last == Some(idle.last);
            // It is to be reset first.
            let count = count + usize::from(!own && idle.connection.touched.is_some());
            if best.is_none_or(|(least, _)| count < least || own && count == least) {
                best = Some((count, *place));
            }
            if count == 0 {
                break;
            }
        }
        best.map(|(_, place)| place)
    }
    fn given_out(&mut self, id: SlotId) -> SlotId {
        self.most_used = self.most_used.max(self.used());
        self.given_out += 1;
        id
    }
    /// Takes a free connection out of its place.
    fn withdraw(&mut self, place: u32) -> Option<Idle<T>> {
        let at = self.free.iter().rposition(|free| *free == place)?;
        self.free.remove(at);
        self.places.get_mut(place as usize)?.as_mut()?.idle.take()
    }
    /// A connection that was used is free again, as the newest.
    pub(super) fn put(&mut self, idle: Idle<T>) {
        self.free.push(idle.last.place);
        self.lay(idle.last.place, idle);
    }
    /// One that was taken aside from `place` is free again, as new as it was.
    pub(super) fn put_back(&mut self, id: SlotId, idle: Idle<T>) {
        let newer = |place: &u32| self.idle(*place).is_some_and(|other| other.since > idle.since);
        let at = self.free.iter().position(newer).unwrap_or(self.free.len());
        self.free.insert(at, id.place);
        self.lay(id.place, idle);
    }
    fn lay(&mut self, place: u32, idle: Idle<T>) {
        if let Some(Some(place)) = self.places.get_mut(place as usize) {
            place.idle = Some(idle);
        }
    }
    /// A connection that was used is gone, or never came to be.
    pub(super) fn discard(&mut self, id: SlotId) {
        self.remove(id.place);
    }
    fn remove(&mut self, place: u32) {
        if let Some(gone) = self.places.get_mut(place as usize).and_then(Option::take) {
            self.past = self.past + gone.shared.traffic();
            self.vacant.push(place);
        }
    }
    /// Gives up what is free.
    pub(super) fn empty(&mut self, trash: &mut Trash<T>) {
        trash.extend(std::iter::from_fn(|| self.take_oldest()));
    }
    /// Gives up what is free, and retires the rest.
    pub(super) fn drain(&mut self, trash: &mut Trash<T>) {
        self.empty(trash);
        self.all().for_each(|shared| shared.retire());
    }
    /// As `drain`, for connections to `stray` addresses, or to none yet. Returns how many.
    pub(super) fn drain_strays(&mut self, stray: impl Fn(IpAddr) -> bool, trash: &mut Trash<T>) -> usize {
        let strays = |shared: &&Arc<Shared>| {
            !shared.is_retired() && shared.peer().is_none_or(|peer| stray(peer.address.ip()))
        };
        let count = self.all().filter(strays).map(|shared| shared.retire()).count();
        for place in self.free.clone() {
            if self.idle(place).is_some_and(|idle| idle.connection.shared.is_retired())
                && let Some(idle) = self.withdraw(place)
            {
                self.remove(place);
                trash.push(idle.connection);
            }
        }
        count
    }
    /// Counts a failure that speaks against the server; true if there are `limit` (0: never) within a second.
    pub(super) fn fails_too_often(&mut self, now: Instant, limit: u32) -> bool {
        let running = |(start, _): &(Instant, u32)| now.saturating_duration_since(*start) < FAILURE_WINDOW;
        let (start, count) = self.failures.filter(running).unwrap_or((now, 0));
        let count = count.saturating_add(1);
        let often = limit != 0 && count >= limit;
        self.failures = (!often).then_some((start, count));
        often
    }
}

/// How much a free connection lacks to be the one that is wanted; `None` if it cannot be.
#[inline]
fn lacks<T>(idle: &Idle<T>, want: &Want) -> Option<usize> {
    let Connection { identity, profile, .. } = &*idle.connection;
    let wanted = want.ahead.as_ref().unwrap_or(&want.profile);
    let same = Arc::ptr_eq(identity, &want.identity) || *identity == want.identity;
    match Arc::ptr_eq(profile, wanted) {
        true => same.then_some(0),
        false => same.then(|| profile.distance(wanted)).flatten(),
    }
}
