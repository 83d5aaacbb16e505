//! The state under the pool's lock: placement, and which list each connection is in. No IO.

use super::connection::{Connection, Shared, Trash};
use super::peer::Peer;
use super::profile::Want;
use super::server_pool::{Idle, ServerPool, SlotId};
use super::throttle::Throttle;
use super::totals::Totals;
use super::work::Work;
use crate::dns::normalise;
use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups, Policy, Recovery, ServerStatus, Unavailable};
use crate::locality::Factors;
use admin::Variables;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `percent` of `whole`.
fn part_of(whole: u32, percent: u32) -> usize {
    usize::try_from(u64::from(whole) * u64::from(percent) / 100).unwrap_or(usize::MAX)
}

/// The right to one connection of one server, counted as used until it is given back.
pub struct Slot {
    /// The use that it is for.
    pub id: SlotId,
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
    /// As variables say.
    pub fn by(variables: &Variables) -> Self {
        Self {
            warm_pct: if variables.connection_warming { variables.free_connections_pct } else { 0 },
            per_second: variables.throttle_connections_per_sec,
        }
    }
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

/// Placement and pools. Connections that must be closed are handed out through `trash` parameters, to be closed
/// after unlocking.
pub struct Inner<T> {
    /// Placement.
    pub hostgroups: Hostgroups,
    pub(super) pools: BTreeMap<HostgroupId, BTreeMap<Endpoint, ServerPool<T>>>,
    /// How often a connection, or the right to open one, was taken.
    uses: u64,
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

impl<T> Default for Inner<T> {
    fn default() -> Self {
        Self {
            hostgroups: Hostgroups::default(),
            pools: BTreeMap::new(),
            uses: 0,
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
        factors: Factors<'_>,
        recovery: impl Fn() -> Recovery,
        trash: &mut Trash<T>,
    ) -> Result<Acquired<T>, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        let Terms { now, random, opening } = terms;
        let policy = self.hostgroups.policy(hostgroup).cloned();
        let opening = policy.as_deref().map_or(opening, Opening::of);
        self.totals.asked += 1;
        let Self { hostgroups, pools, throttle, .. } = self;
        let mut pools = pools.get_mut(&hostgroup);
        let in_use = |endpoint: &Endpoint| {
            pools.as_ref().and_then(|pools| pools.get(endpoint)).map_or(0, ServerPool::used)
        };
        let (endpoint, row) = match hostgroups.select(hostgroup, now, random, factors, in_use, recovery) {
            Ok(selected) => selected,
            Err(unavailable) => return Err(self.refuse(unavailable)),
        };
        self.uses += 1;
        let number = self.uses;
        let warm = part_of(row.max_connections, opening.warm_pct);
        if let Some(pool) = pools.as_mut().and_then(|pools| pools.get_mut(endpoint))
            && !(pool.held() < warm && throttle.permits(hostgroup, now, opening.per_second))
            && let Some((id, Idle { mut connection, since, .. })) = pool.take(number, want)
        {
            self.totals.found += 1;
            connection.usage.taken += 1;
            let slot = Slot { id, shared: Arc::clone(&connection.shared), policy };
            return Ok(Acquired::Reuse(slot, connection, now.saturating_duration_since(since)));
        }
        if !throttle.permits(hostgroup, now, opening.per_second) {
            self.totals.delayed += 1;
            return Err(self.refuse(Unavailable::Throttled));
        }
        throttle.note(hostgroup, now);
        let (endpoint, most) = (endpoint.clone(), row.max_connections as usize);
        let transport = Transport { tls: row.use_ssl, compressed: row.compression };
        let (id, shared) = self.add(hostgroup, endpoint, most, trash);
        Ok(Acquired::Open(Slot { id, shared, policy }, transport))
    }
    #[cold]
    fn refuse(&mut self, why: Unavailable) -> Refusal {
        self.totals.refused += 1;
        if self.ending { Refusal::Closed } else { Refusal::Unavailable(why) }
    }
    /// Makes a place for a new connection to a server that may have so many. Not inlined: its frame would be on the stack of
    /// everybody who finds a free one.
    #[inline(never)]
    fn add(
        &mut self,
        hostgroup: HostgroupId,
        endpoint: Endpoint,
        most: usize,
        trash: &mut Trash<T>,
    ) -> (SlotId, Arc<Shared>) {
        let pool = self.pools.entry(hostgroup).or_default().entry(endpoint.clone()).or_default();
        while pool.held() >= most
            && let Some(oldest) = pool.take_oldest()
        {
            trash.push(oldest);
        }
        let (warnings, work) = (Arc::clone(&pool.warnings), Arc::clone(&self.work));
        let shared = Arc::new(Shared::new(hostgroup, endpoint, warnings, work));
        (pool.add(self.uses, &shared), shared)
    }
    /// Counts a connection that was opened; a server that was tried although shunned is back, `everywhere` or in its hostgroup.
    pub fn connected(&mut self, slot: &Slot, everywhere: bool) -> Connected {
        let back = self.hostgroups.acquit(slot.shared.hostgroup, &slot.shared.endpoint, everywhere);
        if let Some(pool) = self.pool(slot) {
            pool.connected += 1;
        }
        slot.shared.set_opened();
        self.throttle.ended(slot.shared.hostgroup, None);
        self.totals.opened += 1;
        Connected { closed: self.closed, back }
    }
    /// Takes note of why an attempt to connect has failed, for those who wait for theirs in vain.
    pub fn explain(&mut self, slot: &Slot, reason: String) {
        self.throttle.ended(slot.shared.hostgroup, Some(reason));
    }
    /// Why the last attempt to connect in a hostgroup has failed, where it has.
    pub fn last_failure(&self, hostgroup: HostgroupId) -> Option<&str> {
        self.throttle.failure(hostgroup)
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
        if !pool.fails_too_often(now, limit) {
            return false;
        }
        let Shared { hostgroup, endpoint, .. } = &*slot.shared;
        let now_shunned = self.hostgroups.usable(*hostgroup, endpoint);
        self.hostgroups.shun_failed(endpoint, now);
        self.sweep(trash);
        now_shunned
    }
    /// The server's end of an open connection of a hostgroup, free or used.
    pub fn any_peer(&self, hostgroup: HostgroupId) -> Option<&Arc<Peer>> {
        self.pools.get(&hostgroup)?.values().flat_map(ServerPool::all).find_map(|shared| shared.peer())
    }
    /// Takes the free connection of a hostgroup that was used last so.
    pub fn reclaim(&mut self, hostgroup: HostgroupId, last: SlotId) -> Option<(Slot, Box<Connection<T>>)> {
        let policy = self.hostgroups.policy(hostgroup).cloned();
        self.uses += 1;
        let pools = self.pools.get_mut(&hostgroup)?;
        let (id, idle) = pools.values_mut().find_map(|pool| pool.take_last(self.uses, last))?;
        let Idle { mut connection, .. } = idle;
        self.totals.reclaimed += 1;
        connection.usage.taken += 1;
        Some((Slot { id, shared: Arc::clone(&connection.shared), policy }, connection))
    }
    /// Free connections that were neither used nor pinged since then: where they are, and how they were used last.
    pub fn silent_since(&self, then: Instant) -> Vec<(HostgroupId, Endpoint, SlotId)> {
        let pools = self.pools.iter().flat_map(|(id, pools)| pools.iter().map(move |pool| (*id, pool)));
        pools
            .flat_map(|(id, (endpoint, pool))| {
                let silent = pool.at_rest().filter(move |idle| idle.pinged.unwrap_or(idle.since) <= then);
                silent.map(move |idle| (id, endpoint.clone(), idle.last))
            })
            .collect()
    }
    /// Takes such a connection, if nobody has taken it meanwhile. It is used, but by no session.
    pub fn take_to_ping(
        &mut self,
        hostgroup: HostgroupId,
        endpoint: &Endpoint,
        last: SlotId,
    ) -> Option<(Slot, Idle<T>)> {
        self.uses += 1;
        let pool = self.pools.get_mut(&hostgroup)?.get_mut(endpoint)?;
        let (id, idle) = pool.take_aside(self.uses, last)?;
        let shared = Arc::clone(&idle.connection.shared);
        Some((Slot { id, shared, policy: None }, idle))
    }
    /// Puts it back where it was, unless it or its server is out of use.
    pub fn put_back(&mut self, slot: &Slot, idle: Idle<T>, trash: &mut Trash<T>) {
        let (usable, max) = self.capacity(slot);
        let Some(pool) = self.pool(slot) else { return trash.push(idle.connection) };
        if !usable || slot.shared.is_retired() || pool.held() > max {
            pool.discard(slot.id);
            trash.push(idle.connection);
            self.forget_gone(slot);
        } else {
            pool.put_back(slot.id, idle);
        }
    }
    /// Gives a connection back. It goes to the free ones unless it or its server is out of use, or `keep` says otherwise.
    pub fn release(
        &mut self,
        slot: &Slot,
        mut connection: Box<Connection<T>>,
        now: Instant,
        keep: Keep,
        trash: &mut Trash<T>,
    ) {
        let said = self.hostgroups.policy(slot.shared.hostgroup).map(|policy| policy.free_pct);
        let free_pct = if keep.awaited { 100 } else { said.unwrap_or(keep.free_pct) };
        let (usable, max) = self.capacity(slot);
        let Some(pool) = self.pool(slot) else { return trash.push(connection) };
        let too_old =
            !keep.max_age.is_zero() && now.saturating_duration_since(connection.opened) > keep.max_age;
        if !usable || too_old || slot.shared.is_retired() || pool.held() > max {
            pool.discard(slot.id);
            trash.push(connection);
            return self.forget_gone(slot);
        }
        connection.usage.returned += 1;
        pool.put(Idle { connection, since: now, pinged: None, last: slot.id });
        let allowed = (max.saturating_mul(free_pct as usize) / 100).max(1);
        if pool.free() > allowed {
            trash.extend(pool.take_oldest());
        }
        self.totals.returned += 1;
    }
    /// Whether the server of a slot may be used, and how many connections it may have.
    fn capacity(&self, slot: &Slot) -> (bool, usize) {
        let Some(server) = self.hostgroups.server(slot.shared.hostgroup, &slot.shared.endpoint) else {
            return (false, 0);
        };
        (!self.closed && server.status == ServerStatus::Online, server.row.max_connections as usize)
    }
    /// Gives up a slot whose connection is gone or never came to be.
    pub fn discard(&mut self, slot: &Slot) {
        if let Some(pool) = self.pool(slot) {
            pool.discard(slot.id);
        }
        self.forget_gone(slot);
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
    /// Retires connections to `stray` addresses, which a name (normalised) does not lead to any more. Returns how many.
    pub fn drain_strays(
        &mut self,
        name: &str,
        stray: impl Fn(IpAddr) -> bool,
        trash: &mut Trash<T>,
    ) -> usize {
        let pools = self.pools.values_mut().flatten();
        let named = pools.filter(|(endpoint, _)| normalise(&endpoint.host) == name);
        named.map(|(_, pool)| pool.drain_strays(&stray, trash)).sum()
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
        let used = pools.flat_map(ServerPool::in_use).map(Arc::clone).collect();
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
                    Some(_) => pool.empty(trash),
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
                    totals.add(pool.traffic());
                    *given_out.entry(*id).or_default() += pool.given_out;
                }
                stays
            });
            !pools.is_empty()
        });
        self.throttle.retain(|id| self.pools.contains_key(&id));
    }
    /// A connection of the slot's server is gone; so are servers now that were there only for their connections.
    #[cold]
    fn forget_gone(&mut self, slot: &Slot) {
        let server = self.hostgroups.server(slot.shared.hostgroup, &slot.shared.endpoint);
        if server.is_none_or(|server| server.status == ServerStatus::OfflineHard) {
            self.purge();
        }
    }
    /// What has happened so far.
    pub fn totals(&self) -> Totals {
        let mut totals = self.totals;
        totals.done = self.work.done(totals.done.executed);
        for pool in self.pools.values().flat_map(BTreeMap::values) {
            totals.held += pool.held() as u64;
            totals.add(pool.traffic());
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
                pool.in_use().map(Arc::clone)
            })
            .collect()
    }
}
