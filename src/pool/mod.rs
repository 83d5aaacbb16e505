//! Backend connections: who holds them, who waits for them, and how they are retired.
//!
//! One lock holds placement and pools together, so that choosing a server and taking its connection is one step.
//! No IO happens under it: connections are opened, reset and closed outside.
//!
//! A connection is in exactly one place: in its own among those of its server, where it is free, or in the hands of a session (a
//! [`Lease`], or a [`Ticket`] while it is being opened), and then its own place is kept for it. Retiring marks the part that slot and
//! connection share, from the ticket on, so that no path makes a retired connection free again.

mod connection;
mod figures;
mod free;
mod identity;
mod inner;
mod keeper;
mod lease;
mod names;
mod open;
mod peer;
mod processor;
mod profile;
mod server_pool;
mod statement_cache;
mod statements;
#[cfg(test)]
mod tests;
mod throttle;
mod totals;
mod variables;
mod waiters;
mod work;

pub use figures::{HostgroupFigures, ServerFigures};
pub use free::FreeConnection;
pub use identity::Identity;
pub use inner::Refusal;
pub use keeper::start_keeper;
pub use lease::Lease;
pub use open::{OpenError, Ticket};
pub use peer::{Peer, Target};
pub use processor::Processor;
pub use profile::{Profile, Want};
pub use server_pool::SlotId;
pub use statement_cache::Caller;
pub use statements::{StatementText, StatementTexts};
pub use totals::Totals;
pub use variables::{CHARACTER_SETS, MISTAKEN_DEFAULT, is_restorable, literal};
pub use waiters::Waiter;

use crate::config::Config;
use crate::dns::Dns;
use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups, Recovery, Unavailable, shun_time};
use crate::locality::Snapshot;
use admin::Variables;
use arc_swap::ArcSwap;
use connection::{Trash, WARNING_INTERVAL};
use crossbeam_channel::{Sender, TrySendError};
use inner::{Acquired, Inner, Opening, Terms};
use lease::Place;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use waiters::Waiters;
use wire::backend::Backend;

/// A free connection that was idle for longer is looked at before it is used again.
pub const TRUSTED_IDLE: Duration = Duration::from_millis(100);

/// Hostgroups and pools, shared by sessions, monitor, blue/green workers and admin.
pub struct Backends {
    inner: Mutex<Inner<Backend>>,
    /// Hostgroups without servers, and when the log last said so.
    warned: Mutex<HashMap<HostgroupId, Instant>>,
    waiters: Arc<Waiters>,
    /// How often placement was changed from outside.
    updates: AtomicU64,
    /// Who is told of it.
    bells: Mutex<Vec<Sender<()>>>,
    /// How often a schema was changed by a statement.
    schema_changes: AtomicU64,
    /// What servers' weights are multiplied by.
    locality: ArcSwap<Snapshot>,
    config: Arc<Config>,
    dns: Arc<Dns>,
}

/// What a session may use.
pub enum Offer<'a> {
    /// A connection, perhaps still to be [prepared](Lease::prepare).
    Ready(Lease<'a>),
    /// The right to open one.
    Open(Ticket<'a>),
}

impl Backends {
    /// Empty hostgroups. New connections resolve names through `dns` and take limits from `config`.
    pub fn new(config: Arc<Config>, dns: Arc<Dns>) -> Self {
        let (inner, warned, waiters, updates, bells, schema_changes, locality) = Default::default();
        Self { inner, warned, waiters, updates, bells, schema_changes, locality, config, dns }
    }
    /// Reads placement under the lock.
    pub fn read<R>(&self, f: impl FnOnce(&Hostgroups) -> R) -> R {
        f(&self.inner.lock().hostgroups)
    }
    /// Changes placement under the lock, then: drops free connections of servers that are not usable any more, retires
    /// used ones of servers that are gone, OFFLINE_HARD or SHUNNED_AWS_BGD, removes OFFLINE_HARD servers without connections, wakes every
    /// waiting session.
    pub fn update<R>(&self, f: impl FnOnce(&mut Hostgroups) -> R) -> R {
        let mut trash = Vec::new();
        let mut inner = self.inner.lock();
        let result = f(&mut inner.hostgroups);
        inner.sweep(&mut trash);
        drop(inner);
        self.updates.fetch_add(1, Ordering::AcqRel);
        // A full bell rings already.
        self.bells.lock().retain(|bell| !matches!(bell.try_send(()), Err(TrySendError::Disconnected(()))));
        self.wake();
        quit_all(trash);
        result
    }
    /// Has choices from now on go by these factors. Those that say the same as the ones in force are let go.
    pub fn set_locality(&self, snapshot: Snapshot) {
        if !self.locality.load().is(&snapshot) {
            self.locality.store(Arc::new(snapshot));
        }
    }
    /// The factors in force.
    #[cfg(test)]
    pub fn locality(&self) -> Arc<Snapshot> {
        self.locality.load_full()
    }
    /// Grows with each [`Self::update`].
    pub fn updates(&self) -> u64 {
        self.updates.load(Ordering::Acquire)
    }
    /// Rings a bell after each [`Self::update`], for as long as somebody hears it.
    pub fn ring(&self, bell: Sender<()>) {
        self.bells.lock().push(bell);
    }
    /// Takes a connection of a hostgroup that fits `want`, or the right to open one, as `limits` allow. A connection is looked at
    /// before it is given out, unless it was idle for less than `trusted`.
    pub fn lease(
        &self,
        hostgroup: HostgroupId,
        want: &Want,
        limits: &Variables,
        now: Instant,
        trusted: Duration,
    ) -> Result<Offer<'_>, Refusal> {
        loop {
            let mut trash = Vec::new();
            let terms = Terms { now, random: fastrand::u64(..), opening: Opening::by(limits) };
            let recovery = || self.recovery();
            let locality = self.locality.load();
            let factors = locality.of(hostgroup);
            let acquired = self.inner.lock().acquire(hostgroup, want, terms, factors, recovery, &mut trash);
            quit_all(trash);
            if let Err(Refusal::Unavailable(why @ (Unavailable::NoServer | Unavailable::Crowded))) = &acquired
            {
                self.warn_of_nobody(hostgroup, *why, now);
            }
            match acquired? {
                Acquired::Open(slot, transport) => {
                    return Ok(Offer::Open(Ticket::new(Place::new(self, slot), transport)));
                }
                Acquired::Reuse(slot, connection, idle) => {
                    let lease = Lease::new(connection, Place::new(self, slot));
                    if idle < trusted || lease.is_quiet() {
                        return Ok(Offer::Ready(lease));
                    }
                }
            }
        }
    }
    /// Takes the connection that was last used under this id ([`Lease::id`]), if nobody has used it since.
    pub fn reclaim(&self, hostgroup: HostgroupId, id: SlotId) -> Option<Lease<'_>> {
        let (slot, connection) = self.inner.lock().reclaim(hostgroup, id)?;
        let lease = Lease::new(connection, Place::new(self, slot));
        lease.is_quiet().then_some(lease)
    }
    /// Notes that a statement has changed a schema itself, or made it anew.
    pub fn schema_changed(&self) {
        self.schema_changes.fetch_add(1, Ordering::Release);
    }
    /// How often that was.
    pub fn schema_changes(&self) -> u64 {
        self.schema_changes.load(Ordering::Acquire)
    }
    /// The version that a server of a hostgroup has told, if there is a connection to one.
    pub fn known_version(&self, hostgroup: HostgroupId) -> Option<String> {
        self.inner.lock().any_peer(hostgroup).map(|peer| peer.server_version.clone())
    }
    /// Queues for a hostgroup. Ask [`Backends::lease`] again after this, before waiting.
    pub fn wait_for(&self, hostgroup: HostgroupId) -> std::io::Result<Waiter> {
        self.waiters.register(hostgroup)
    }
    /// Whether somebody waits for a server of a hostgroup already.
    pub fn is_awaited(&self, hostgroup: HostgroupId) -> bool {
        self.waiters.has(hostgroup)
    }
    /// Why the last attempt to connect in a hostgroup has failed, where it has.
    pub fn last_failure(&self, hostgroup: HostgroupId) -> Option<String> {
        self.inner.lock().last_failure(hostgroup).map(str::to_owned)
    }
    /// How many sessions wait for a server.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }
    /// Shuns an endpoint that does not answer pings, in every hostgroup, and ends its connections under who uses them. True if it was
    /// in use until now.
    pub fn shun_unresponsive(&self, endpoint: &Endpoint, now: Instant) -> bool {
        let mut trash = Vec::new();
        let (used, new) = self.inner.lock().shun_unresponsive(endpoint, now, &mut trash);
        used.iter().for_each(|shared| shared.cut());
        quit_all(trash);
        new
    }
    /// Takes note of what pings of an endpoint take.
    pub fn set_latency(&self, endpoint: &Endpoint, latency: Duration) {
        let default_limit = self.config.variables().default_max_latency;
        self.inner.lock().hostgroups.set_latency(endpoint, latency, default_limit);
    }
    /// Applies how far a replica is behind ([`Hostgroups::apply_lag`]). Returns lines for the log.
    pub fn apply_lag(&self, endpoint: &Endpoint, lag: Option<u32>, needed: u32) -> Vec<String> {
        let mut trash = Vec::new();
        let lines = self.inner.lock().apply_lag(endpoint, lag, needed, &mut trash);
        if !lines.is_empty() {
            self.wake();
        }
        quit_all(trash);
        lines
    }
    /// How servers that failures have shunned come back.
    fn recovery(&self) -> Recovery {
        let variables = self.config.variables();
        Recovery {
            pause: shun_time(variables.shun_recovery_time, variables.connect_timeout_server_max),
            everywhere: variables.unshun_algorithm == 1,
        }
    }
    fn warn_of_nobody(&self, hostgroup: HostgroupId, why: Unavailable, now: Instant) {
        let mut warned = self.warned.lock();
        let recent = |at: &Instant| now.saturating_duration_since(*at) < WARNING_INTERVAL;
        if !warned.get(&hostgroup).is_some_and(recent) {
            warned.retain(|_, at| recent(at));
            warned.insert(hostgroup, now);
            drop(warned);
            let what = match why {
                Unavailable::Crowded => "more servers ONLINE than max_num_online_servers allows",
                _ => "no servers available",
            };
            log::warn!("Hostgroup {hostgroup} has {what}! Its statements wait");
        }
    }
    /// Drains an endpoint in every hostgroup: free connections are closed, used ones are retired (destroyed when released), and connections
    /// being opened now will be retired at birth.
    pub fn drain(&self, endpoint: &Endpoint) {
        self.drain_where(None, endpoint);
    }
    /// Drains an endpoint in one hostgroup alone.
    pub fn drain_in(&self, hostgroup: HostgroupId, endpoint: &Endpoint) {
        self.drain_where(Some(hostgroup), endpoint);
    }
    fn drain_where(&self, hostgroup: Option<HostgroupId>, endpoint: &Endpoint) {
        let mut trash = Vec::new();
        self.inner.lock().drain(hostgroup, endpoint, &mut trash);
        quit_all(trash);
    }
    /// What has happened to connections since the start.
    pub fn totals(&self) -> Totals {
        self.inner.lock().totals()
    }
    /// What stats_mysql_connection_pool shows; with `reset` counting begins anew.
    pub fn servers(&self, reset: bool) -> Vec<ServerFigures> {
        let mut inner = self.inner.lock();
        let figures = inner.servers();
        if reset {
            inner.reset_servers();
        }
        figures
    }
    /// Rows of stats_mysql_connection_pool.
    pub fn connection_pool_rows(&self) -> Vec<Vec<admin::Value>> {
        self.servers(false).iter().map(ServerFigures::row).collect()
    }
    /// What stats_mysql_hostgroup_connection_pool shows; with `reset` counting begins anew.
    pub fn hostgroups(&self, reset: bool) -> Vec<HostgroupFigures> {
        let given_out = self.inner.lock().given_out(reset);
        figures::of_hostgroups(given_out, self.waiters.waits(reset))
    }
    /// What stats_mysql_free_connections shows.
    pub fn free_connections(&self) -> Vec<FreeConnection> {
        let now = Instant::now();
        self.inner.lock().free(|connection, since| FreeConnection::of(connection, since, now))
    }
    /// Wakes every waiting session (placement, pin or shutdown changed).
    pub fn wake(&self) {
        self.waiters.wake_all();
    }
    /// From now on nobody waits for a server; who does is told [`Refusal::Closed`]. What can be had at once is still given out.
    pub fn end_waiting(&self) {
        self.inner.lock().ending = true;
        self.wake();
    }
    /// Whether [`Backends::end_waiting`] was called.
    pub fn is_ending(&self) -> bool {
        self.inner.lock().ending
    }
    /// Closes everything: free connections are quit, used ones are cut.
    pub fn close(&self) {
        let mut trash = Vec::new();
        let used = self.inner.lock().close(&mut trash);
        self.wake();
        used.iter().for_each(|shared| shared.cut());
        quit_all(trash);
    }
}

/// Closes connections politely. Their sockets' send buffers are empty, so this does not block.
#[inline]
fn quit_all(connections: Trash<Backend>) {
    if !connections.is_empty() {
        quit_each(connections);
    }
}

#[cold]
fn quit_each(connections: Trash<Backend>) {
    for mut connection in connections {
        connection.transport.quit();
    }
}
