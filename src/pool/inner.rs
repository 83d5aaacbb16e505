//! The state under the pool's lock: placement, and which list each connection is in. No IO.

use super::connection::{Connection, Counters, Shared, Traffic, Trash};
use super::peer::Peer;
use super::profile::Want;
use super::throttle::Throttle;
use super::work::{Done, Work};
use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups, Policy, Recovery, ServerStatus, Unavailable};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Failures of one server are counted over this long before it is shunned.
const FAILURE_WINDOW: Duration = Duration::from_secs(1);

/// `percent` of `whole`.
fn part_of(whole: u32, percent: u32) -> usize {
    usize::try_from(u64::from(whole) * u64::from(percent) / 100).unwrap_or(usize::MAX)
}

/// The right to one connection of one server, counted as used until it is given back.
pub struct Slot {
    /// Key in the server's used map.
    pub id: u64,
    /// The part of the connection others reach.
    pub shared: Arc<Shared>,
    /// What was said of its hostgroup when it was taken.
    pub policy: Option<Arc<Policy>>,
}

/// What is between packets and the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    /// use_ssl
    pub tls: bool,
    /// compression
    pub compressed: bool,
}

/// What a session got.
pub enum Acquired<T> {
    /// A connection from the free list, idle for so long.
    Reuse(Slot, Box<Connection<T>>, Duration),
    /// The right to open one, as the server's row says.
    Open(Slot, Transport),
}

/// What became of a connection that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// The pool was closed meanwhile.
    pub closed: bool,
    /// Its server was shunned, and is not any more.
    pub back: bool,
}

/// What decides whether a connection is opened, as variables say.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Where a server has fewer connections than this part of its max_connections, in percent, one is opened.
    pub warm_pct: u32,
    /// Most connections opened in a second, in a hostgroup.
    pub per_second: u32,
}

impl Opening {
    /// The same, as said of a hostgroup.
    fn of(policy: &Policy) -> Self {
        Self { warm_pct: if policy.warming { policy.free_pct } else { 0 }, per_second: policy.per_second }
    }
}

/// What a connection is chosen by, beside what is wanted of it.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The time.
    pub now: Instant,
    /// To choose a server by.
    pub random: u64,
    /// When to open one.
    pub opening: Opening,
}

/// Why it got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No server can serve now; waiting may help.
    Unavailable(Unavailable),
    /// The pool is closed for good.
    Closed,
}

/// A free connection.
pub(super) struct Idle<T> {
    pub(super) connection: Box<Connection<T>>,
    pub(super) since: Instant,
    /// When it answered a ping last.
    pub(super) pinged: Option<Instant>,
    /// The slot that it was used under last.
    last: u64,
}

/// What decides whether a connection that comes back is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// How much of max_connections (at least one) may be free, in percent, where nothing is said of the hostgroup; the newest stay.
    pub free_pct: u32,
    /// Somebody waits for a connection: all may be free, since they are about to be needed.
    pub awaited: bool,
    /// How old a connection may become; zero for any age.
    pub max_age: Duration,
}

pub(super) struct ServerPool<T> {
    // Newest at the back.
    pub(super) free: VecDeque<Idle<T>>,
    pub(super) used: BTreeMap<u64, Arc<Shared>>,
    pub(super) counters: Arc<Counters>,
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
            free: VecDeque::new(),
            used: BTreeMap::new(),
            counters: Arc::default(),
            connected: 0,
            failed: 0,
            most_used: 0,
            given_out: 0,
            failures: None,
        }
    }
}

impl<T> ServerPool<T> {
    pub(super) fn held(&self) -> usize {
        self.free.len() + self.used.len()
    }
    /// Takes the free connection that is nearest to `want`; among equals the one its session used last, or the newest.
    fn take(&mut self, want: &Want) -> Option<Idle<T>> {
        let wanted = want.ahead.as_ref().unwrap_or(&want.profile);
        let distance = |idle: &Idle<T>| {
            let Connection { identity, profile, .. } = &*idle.connection;
            let same = Arc::ptr_eq(identity, &want.identity) || *identity == want.identity;
            match Arc::ptr_eq(profile, wanted) {
                true => same.then_some(0),
                false => same.then(|| profile.distance(wanted)).flatten(),
            }
        };
        let mut best: Option<(usize, usize)> = None;
        for (index, idle) in self.free.iter().enumerate().rev() {
            let Some(count) = distance(idle) else { continue };
            let own = want.last == Some(idle.last);
            // It is to be reset first.
            let count = count + usize::from(!own && idle.connection.touched.is_some());
            if best.is_none_or(|(least, _)| count < least || own && count == least) {
                best = Some((count, index));
            }
            if count == 0 && (own || want.last.is_none()) {
                break;
            }
        }
        self.free.remove(best?.1)
    }
    /// Counts a connection as used under `id`.
    fn occupy(&mut self, id: u64, shared: Arc<Shared>, policy: Option<Arc<Policy>>) -> Slot {
        self.used.insert(id, Arc::clone(&shared));
        self.most_used = self.most_used.max(self.used.len());
        self.given_out += 1;
        Slot { id, shared, policy }
    }
    fn drain(&mut self, trash: &mut Trash<T>) {
        trash.extend(self.free.drain(..).map(|idle| idle.connection));
        self.used.values().for_each(|shared| shared.retire());
    }
}

/// What has happened to connections since the start, in all pools.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Connections that statements asked for.
    pub asked: u64,
    /// Of these, those that were in a pool.
    pub found: u64,
    /// Of these, those for which there was no server, or no room at any.
    pub refused: u64,
    /// Of these, those for which too many connections had been opened within the second.
    pub delayed: u64,
    /// Connections that sessions took back which they had used last.
    pub reclaimed: u64,
    /// Connections that came back into a pool.
    pub returned: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// Connections that there are.
    pub held: u64,
    /// Bytes of commands sent to servers.
    pub sent: u64,
    /// Bytes of answers.
    pub received: u64,
    /// What was done on connections.
    pub done: Done,
}

/// Placement and pools. Connections that must be closed are handed out through `trash` parameters, to be closed
/// after unlocking.
pub struct Inner<T> {
    /// Placement.
    pub hostgroups: Hostgroups,
    pub(super) pools: BTreeMap<HostgroupId, BTreeMap<Endpoint, ServerPool<T>>>,
    next_id: u64,
    throttle: Throttle,
    work: Arc<Work>,
    /// Without what the pools know themselves.
    pub(super) totals: Totals,
    /// [`ServerPool::given_out`] of pools that are gone.
    pub(super) given_out: BTreeMap<HostgroupId, u64>,
    /// The daemon stops: nobody waits for a server any more.
    pub ending: bool,
    closed: bool,
}

impl Totals {
    /// Adds what went to and fro.
    pub(super) fn add(&mut self, traffic: Traffic) {
        self.sent += traffic.sent;
        self.received += traffic.received;
    }
}

impl<T> Default for Inner<T> {
    fn default() -> Self {
        Self {
            hostgroups: Hostgroups::default(),
            pools: BTreeMap::new(),
            next_id: 0,
            throttle: Throttle::default(),
            work: Arc::default(),
            totals: Totals::default(),
            given_out: BTreeMap::new(),
            ending: false,
            closed: false,
        }
    }
}

impl<T> Inner<T> {
    fn pool(&mut self, slot: &Slot) -> Option<&mut ServerPool<T>> {
        self.pools.get_mut(&slot.shared.hostgroup)?.get_mut(&slot.shared.endpoint)
    }
    /// Chooses a server and takes a connection of it, or the right to open one.
    pub fn acquire(
        &mut self,
        hostgroup: HostgroupId,
        want: &Want,
        terms: Terms,
        recovery: impl Fn() -> Recovery,
        trash: &mut Trash<T>,
    ) -> Result<Acquired<T>, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        let Terms { now, random, opening } = terms;
        let policy = self.hostgroups.policy(hostgroup).cloned();
        let opening = policy.as_deref().map_or(opening, Opening::of);
        let totals = &mut self.totals;
        totals.asked += 1;
        let ending = self.ending;
        let refuse = |why, totals: &mut Totals| {
            totals.refused += 1;
            if ending { Refusal::Closed } else { Refusal::Unavailable(why) }
        };
        let pools = self.pools.entry(hostgroup).or_default();
        let in_use = |endpoint: &Endpoint| pools.get(endpoint).map_or(0, |pool| pool.used.len());
        let (endpoint, row) = self
            .hostgroups
            .select(hostgroup, now, random, in_use, recovery)
            .map_err(|unavailable| refuse(unavailable, totals))?;
        self.next_id += 1;
        let id = self.next_id;
        let throttle = &mut self.throttle;
        let warm = part_of(row.max_connections, opening.warm_pct);
        if let Some(pool) = pools.get_mut(endpoint)
            && !(pool.held() < warm && throttle.permits(hostgroup, now, opening.per_second))
            && let Some(Idle { mut connection, since, .. }) = pool.take(want)
        {
            totals.found += 1;
            connection.usage.taken += 1;
            let slot = pool.occupy(id, Arc::clone(&connection.shared), policy);
            return Ok(Acquired::Reuse(slot, connection, now.saturating_duration_since(since)));
        }
        if !throttle.permits(hostgroup, now, opening.per_second) {
            totals.delayed += 1;
            return Err(refuse(Unavailable::Throttled, totals));
        }
        throttle.note(hostgroup, now);
        let pool = pools.entry(endpoint.clone()).or_default();
        while pool.held() >= row.max_connections as usize
            && let Some(oldest) = pool.free.pop_front()
        {
            trash.push(oldest.connection);
        }
        let shared =
            Shared::new(hostgroup, endpoint.clone(), Arc::clone(&pool.counters), Arc::clone(&self.work));
        Ok(Acquired::Open(
            pool.occupy(id, Arc::new(shared), policy),
            Transport { tls: row.use_ssl, compressed: row.compression },
        ))
    }
    /// Counts a connection that was opened; a server that was tried although shunned is back, `everywhere` or in its hostgroup.
    pub fn connected(&mut self, slot: &Slot, everywhere: bool) -> Connected {
        let back = self.hostgroups.acquit(slot.shared.hostgroup, &slot.shared.endpoint, everywhere);
        if let Some(pool) = self.pool(slot) {
            pool.connected += 1;
        }
        slot.shared.set_opened();
        self.totals.opened += 1;
        Connected { closed: self.closed, back }
    }
    /// Counts a connect failure. Those that speak against the server (`against_server`) shun it once there are
    /// `limit` of them (0: never) within a second. One that was tried although shunned stays so. True if it was shunned just now.
    pub fn failed(
        &mut self,
        slot: &Slot,
        against_server: bool,
        now: Instant,
        limit: u32,
        trash: &mut Trash<T>,
    ) -> bool {
        self.totals.failed += 1;
        let resting = self.hostgroups.is_resting(slot.shared.hostgroup, &slot.shared.endpoint);
        let Some(pool) = self.pool(slot) else { return false };
        pool.failed += 1;
        if !against_server {
            return false;
        }
        if resting {
            self.hostgroups.shun_failed(&slot.shared.endpoint, now);
            return false;
        }
        let (start, count) = pool
            .failures
            .filter(|(start, _)| now.saturating_duration_since(*start) < FAILURE_WINDOW)
            .unwrap_or((now, 0));
        let count = count.saturating_add(1);
        if limit == 0 || count < limit {
            pool.failures = Some((start, count));
            return false;
        }
        pool.failures = None;
        let Shared { hostgroup, endpoint, .. } = &*slot.shared;
        let now_shunned = self.hostgroups.usable(*hostgroup, endpoint);
        self.hostgroups.shun_failed(endpoint, now);
        self.sweep(trash);
        now_shunned
    }
    /// The server's end of an open connection of a hostgroup, free or used.
    pub fn any_peer(&self, hostgroup: HostgroupId) -> Option<&Arc<Peer>> {
        self.pools.get(&hostgroup)?.values().find_map(|pool| {
            let free = pool.free.iter().map(|idle| &idle.connection.shared);
            free.chain(pool.used.values()).find_map(|shared| shared.peer())
        })
    }
    /// Takes the free connection of a hostgroup that was last used under the slot `id`.
    pub fn reclaim(&mut self, hostgroup: HostgroupId, id: u64) -> Option<(Slot, Box<Connection<T>>)> {
        let policy = self.hostgroups.policy(hostgroup).cloned();
        for pool in self.pools.get_mut(&hostgroup)?.values_mut() {
            let Some(at) = pool.free.iter().rposition(|idle| idle.last == id) else { continue };
            let Idle { mut connection, .. } = pool.free.remove(at)?;
            self.totals.reclaimed += 1;
            connection.usage.taken += 1;
            self.next_id += 1;
            let slot = pool.occupy(self.next_id, Arc::clone(&connection.shared), policy);
            return Some((slot, connection));
        }
        None
    }
    /// Free connections that were neither used nor pinged since then: where they are, and the slots they were used under last.
    pub fn silent_since(&self, then: Instant) -> Vec<(HostgroupId, Endpoint, u64)> {
        let pools = self.pools.iter().flat_map(|(id, pools)| pools.iter().map(move |pool| (*id, pool)));
        pools
            .flat_map(|(id, (endpoint, pool))| {
                let silent = pool.free.iter().filter(move |idle| idle.pinged.unwrap_or(idle.since) <= then);
                silent.map(move |idle| (id, endpoint.clone(), idle.last))
            })
            .collect()
    }
    /// Takes such a connection, if nobody has taken it meanwhile. It is used, but by no session.
    pub fn take_to_ping(
        &mut self,
        hostgroup: HostgroupId,
        endpoint: &Endpoint,
        last: u64,
    ) -> Option<(Slot, Idle<T>)> {
        let pool = self.pools.get_mut(&hostgroup)?.get_mut(endpoint)?;
        let at = pool.free.iter().position(|idle| idle.last == last)?;
        let idle = pool.free.remove(at)?;
        self.next_id += 1;
        let shared = Arc::clone(&idle.connection.shared);
        pool.used.insert(self.next_id, Arc::clone(&shared));
        Some((Slot { id: self.next_id, shared, policy: None }, idle))
    }
    /// Puts it back where it was, unless it or its server is out of use.
    pub fn put_back(&mut self, slot: &Slot, idle: Idle<T>, trash: &mut Trash<T>) {
        let server = self.hostgroups.server(slot.shared.hostgroup, &slot.shared.endpoint);
        let max = server.map_or(0, |server| server.row.max_connections) as usize;
        let status = server.map(|server| server.status);
        let usable = !self.closed && status == Some(ServerStatus::Online);
        let Some(pool) = self.pool(slot) else { return trash.push(idle.connection) };
        pool.used.remove(&slot.id);
        if !usable || slot.shared.is_retired() || pool.held() >= max {
            trash.push(idle.connection);
        } else {
            let at = pool.free.partition_point(|other| other.since <= idle.since);
            pool.free.insert(at, idle);
        }
        self.forget_gone(status);
    }
    /// Gives a connection back. It goes to the free list unless it or its server is out of use, or `keep` says otherwise.
    pub fn release(
        &mut self,
        slot: &Slot,
        mut connection: Box<Connection<T>>,
        now: Instant,
        keep: Keep,
        trash: &mut Trash<T>,
    ) {
        let server = self.hostgroups.server(slot.shared.hostgroup, &slot.shared.endpoint);
        let max = server.map_or(0, |server| server.row.max_connections) as usize;
        let said = self.hostgroups.policy(slot.shared.hostgroup).map(|policy| policy.free_pct);
        let free_pct = if keep.awaited { 100 } else { said.unwrap_or(keep.free_pct) };
        let status = server.map(|server| server.status);
        let usable = !self.closed && status == Some(ServerStatus::Online);
        let Some(pool) = self.pool(slot) else { return trash.push(connection) };
        pool.used.remove(&slot.id);
        let too_old =
            !keep.max_age.is_zero() && now.saturating_duration_since(connection.opened) > keep.max_age;
        if !usable || too_old || slot.shared.is_retired() || pool.held() >= max {
            trash.push(connection);
        } else {
            connection.usage.returned += 1;
            pool.free.push_back(Idle { connection, since: now, pinged: None, last: slot.id });
            let allowed = (max.saturating_mul(free_pct as usize) / 100).max(1);
            if pool.free.len() > allowed {
                trash.extend(pool.free.pop_front().map(|oldest| oldest.connection));
            }
            self.totals.returned += 1;
        }
        self.forget_gone(status);
    }
    /// Gives up a slot whose connection is gone or never came to be.
    pub fn discard(&mut self, slot: &Slot) {
        if let Some(pool) = self.pool(slot) {
            pool.used.remove(&slot.id);
        }
        let server = self.hostgroups.server(slot.shared.hostgroup, &slot.shared.endpoint);
        self.forget_gone(server.map(|server| server.status));
    }
    /// Retires every connection of an endpoint, in one hostgroup or in all.
    pub fn drain(&mut self, hostgroup: Option<HostgroupId>, endpoint: &Endpoint, trash: &mut Trash<T>) {
        for (id, pools) in &mut self.pools {
            if hostgroup.is_none_or(|only| only == *id)
                && let Some(pool) = pools.get_mut(endpoint)
            {
                pool.drain(trash);
            }
        }
    }
    /// Shuns an endpoint that does not answer pings. Returns its used connections, to be cut, and whether it was in use until now.
    pub fn shun_unresponsive(
        &mut self,
        endpoint: &Endpoint,
        now: Instant,
        trash: &mut Trash<T>,
    ) -> (Vec<Arc<Shared>>, bool) {
        let (hostgroups, new) = self.hostgroups.shun_unresponsive(endpoint, now);
        let pools = hostgroups.iter().filter_map(|id| self.pools.get(id)?.get(endpoint));
        let used = pools.flat_map(|pool| pool.used.values().map(Arc::clone)).collect();
        self.sweep(trash);
        (used, new)
    }
    /// Applies how far a replica is behind ([`Hostgroups::apply_lag`]).
    pub fn apply_lag(
        &mut self,
        endpoint: &Endpoint,
        lag: Option<u32>,
        needed: u32,
        trash: &mut Trash<T>,
    ) -> Vec<String> {
        let lines = self.hostgroups.apply_lag(endpoint, lag, needed);
        if !lines.is_empty() {
            self.sweep(trash);
        }
        lines
    }
    /// Follows a change of placement: drops free connections of servers that are not usable, retires used ones
    /// of servers that are gone, OFFLINE_HARD or SHUNNED_AWS_BGD, and forgets servers without connections that are gone.
    pub fn sweep(&mut self, trash: &mut Trash<T>) {
        let hostgroups = &self.hostgroups;
        for (id, pools) in &mut self.pools {
            for (endpoint, pool) in pools {
                match hostgroups.server(*id, endpoint).map(|server| server.status) {
                    Some(ServerStatus::Online) => {}
                    None | Some(ServerStatus::OfflineHard | ServerStatus::ShunnedAwsBgd) => pool.drain(trash),
                    Some(_) => trash.extend(pool.free.drain(..).map(|idle| idle.connection)),
                }
            }
        }
        self.purge();
    }
    fn purge(&mut self) {
        let pools = &self.pools;
        self.hostgroups.purge(|id, endpoint| {
            pools.get(&id).and_then(|pools| pools.get(endpoint)).map_or(0, ServerPool::held)
        });
        let Self { hostgroups, pools, totals, given_out, .. } = self;
        pools.retain(|id, pools| {
            pools.retain(|endpoint, pool| {
                let stays = pool.held() > 0 || hostgroups.server(*id, endpoint).is_some();
                if !stays {
                    totals.add(pool.counters.traffic());
                    *given_out.entry(*id).or_default() += pool.given_out;
                }
                stays
            });
            !pools.is_empty()
        });
        self.throttle.retain(|id| self.pools.contains_key(&id));
    }
    /// Forgets the servers that are gone, if one of that status may be one of them.
    fn forget_gone(&mut self, status: Option<ServerStatus>) {
        if matches!(status, None | Some(ServerStatus::OfflineHard)) {
            self.purge();
        }
    }
    /// What has happened so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { done: self.work.done(), ..self.totals };
        for pool in self.pools.values().flat_map(BTreeMap::values) {
            totals.held += pool.held() as u64;
            totals.add(pool.counters.traffic());
        }
        totals
    }
    /// Whether the pool was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
    /// Closes the pool for good; returns what is in use, to be cut.
    pub fn close(&mut self, trash: &mut Trash<T>) -> Vec<Arc<Shared>> {
        self.closed = true;
        let pools = self.pools.values_mut().flat_map(BTreeMap::values_mut);
        pools
            .flat_map(|pool| {
                pool.drain(trash);
                pool.used.values().map(Arc::clone)
            })
            .collect()
    }
}
