//! Names to addresses: pins first, then the cache over hosts files and DNS.

mod cache;
mod course;
mod hosts;
mod lookups;
mod resolver;
mod sources;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::hostgroups::HostgroupId;
use admin::variables::ResolutionFamily;
use cache::{Cache, Pin};
use course::{Courses, Moved};
use hosts::HostsFile;
use lookups::Lookups;
use parking_lot::{Condvar, Mutex};
use sources::{Hosts, Sources};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a lookup is waited for where an address is known from before.
const STALE_PATIENCE: Duration = Duration::from_millis(500);
/// The refresh thread looks at the settings at least this often.
const LONGEST_NAP: Duration = Duration::from_secs(10);
/// A name is in use for at least so long after somebody has asked for it.
const SHORTEST_USE: Duration = Duration::from_secs(5);

/// Who set a pin: a deployment, by its writer hostgroup. Only the owner removes it.
pub type Owner = HostgroupId;

/// Addresses of a name, and how long they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// At least one address.
    pub addresses: Vec<IpAddr>,
    /// Time to live as the source gave it; hosts files give none.
    pub ttl: Option<Duration>,
}

/// Why a name gave no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist or has no address.
    #[error("no address for {0}")]
    NotFound(String),
    /// The resolver did not answer in time or failed.
    #[error("cannot resolve {name}: {reason}")]
    Failed {
        /// The name.
        name: String,
        /// What the resolver said.
        reason: String,
    },
}

/// One source of addresses.
pub trait Lookup: Send + Sync {
    /// Looks a name up, by `deadline`.
    fn lookup(&self, name: &str, deadline: Instant) -> Result<Resolved, LookupError>;
}

/// What decides answers beside the name; a change makes the cache's entries worthless.
type Settings = (Option<SocketAddr>, ResolutionFamily);

struct State {
    cache: Cache,
    courses: Courses,
    lookups: Lookups,
    settings: Settings,
}

/// What the threads share. The lock is never held across a lookup or the reading of a file.
struct Shared {
    config: Arc<Config>,
    hosts: Arc<Hosts>,
    source: Box<dyn Lookup>,
    state: Mutex<State>,
    counters: Counters,
    /// Wakes the refresh thread.
    wake: Condvar,
}

/// What was asked of the cache, and what it was told, since the start.
#[derive(Default)]
struct Counters {
    queried: AtomicU64,
    found: AtomicU64,
    updated: AtomicU64,
}

/// The cache, its pins and its refresh thread.
pub struct Dns {
    shared: Arc<Shared>,
    refresh: Mutex<Option<JoinHandle<()>>>,
}

impl Dns {
    /// A cache in the order: pin, `mysql-monitor_dns_server`, `hosts_file`, /etc/hosts, the system's DNS.
    pub fn new(config: Arc<Config>, hosts_file: Option<PathBuf>) -> Arc<Self> {
        let files = hosts_file.map(HostsFile::named).into_iter().chain([HostsFile::system()]).collect();
        let hosts = Arc::new(Hosts::new(config.clone(), files));
        let sources = Sources::new(config.clone(), hosts.clone());
        Self::with_source(config, hosts, Box::new(sources))
    }
    /// Starts the refresh thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let mut refresh = self.refresh.lock();
        if refresh.is_none() {
            let shared = self.shared.clone();
            let builder = std::thread::Builder::new().name("dns-refresh".into());
            *refresh = Some(builder.spawn(move || shared.refresh())?);
        }
        Ok(())
    }
    /// Stops and joins it, and the threads of lookups. Everybody who waits for a lookup gets an error at once.
    pub fn stop(&self) {
        let mut threads = self.shared.state.lock().lookups.stop();
        self.shared.wake.notify_all();
        threads.extend(self.refresh.lock().take());
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a DNS thread panicked");
            }
        }
    }
    /// One address for a name (an address literal is itself): the pin if there is one, else the cache, else a lookup by `deadline`.
    /// Where that does not succeed, or takes long, an address known from before serves on.
    pub fn resolve(&self, host: &str, deadline: Instant) -> Result<IpAddr, LookupError> {
        self.find(host, deadline, true)
    }
    /// As `resolve`, past the pin and past the cache's entry (a fresh lookup, which the cache then holds). A lookup that is under
    /// way already is joined.
    pub fn resolve_fresh(&self, host: &str, deadline: Instant) -> Result<IpAddr, LookupError> {
        self.find(host, deadline, false)
    }
    /// Pins a name to an address until the owner removes it. The pin holds with the cache disabled, too.
    /// `target` is the name of the server that has it.
    pub fn pin(&self, host: &str, address: IpAddr, target: Arc<str>, owner: Owner) {
        self.shared.state.lock().cache.pin(normalise(host), Pin { address, target, owner });
    }
    /// Removes a name's cache entry, and its pin if `owner` set it.
    pub fn remove(&self, host: &str, owner: Owner) {
        let name = normalise(host);
        let mut state = self.shared.state.lock();
        state.cache.remove(&name, owner);
        state.lookups.forget(&name);
    }
    /// Keeps the addresses of these names known and fresh from now on, for as long as this is called every second or so, and
    /// returns what has moved since the last time: names, and addresses they do not lead to any more. Waits for no lookup.
    pub fn follow<'a>(&self, hosts: impl Iterator<Item = &'a str>) -> Vec<Moved> {
        let shared = &self.shared;
        for name in hosts.filter(|host| host.trim().parse::<IpAddr>().is_err()).map(normalise) {
            let listed = shared.listed(&name);
            let mut state = shared.state.lock();
            let now = Instant::now();
            if !listed.is_empty() {
                state.courses.note(&name, &listed, now);
                continue;
            }
            shared.settle(&mut state);
            if shared.longest_life().is_some() && !state.cache.touch(&name, now) && !name.is_empty() {
                state.lookups.begin(&name, shared);
            }
        }
        let mut state = shared.state.lock();
        let mut moved = state.courses.take_moved();
        for (name, gone) in &mut moved {
            let pinned = state.cache.pinned(name).map(|pin| pin.address);
            gone.retain(|address| Some(*address) != pinned);
        }
        moved.retain(|(_, gone)| !gone.is_empty());
        moved
    }
    /// Whether a name still leads to an address that it led to: by its pin, else by the last answer.
    pub fn leads_to(&self, host: &str, address: IpAddr) -> bool {
        let name = normalise(host);
        let state = self.shared.state.lock();
        match state.cache.pinned(&name) {
            Some(pin) => pin.address == address,
            None => state.courses.leads_to(&name, address),
        }
    }
    /// The name of the server that a pinned name leads to.
    pub fn pinned_target(&self, host: &str) -> Option<Arc<str>> {
        self.shared.state.lock().cache.pinned(&normalise(host)).map(|pin| Arc::clone(&pin.target))
    }
    /// Pins now: (name, address, owner).
    pub fn pins(&self) -> Vec<(String, IpAddr, Owner)> {
        self.shared.state.lock().cache.pins()
    }

    /// The cache's part of stats_mysql_global: names asked for, those of them that were known, answers that it took up.
    pub fn counters(&self) -> [(&'static str, u64); 3] {
        let Counters { queried, found, updated } = &self.shared.counters;
        [
            ("MySQL_Monitor_dns_cache_queried", queried),
            ("MySQL_Monitor_dns_cache_lookup_success", found),
            ("MySQL_Monitor_dns_cache_record_updated", updated),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }

    fn with_source(config: Arc<Config>, hosts: Arc<Hosts>, source: Box<dyn Lookup>) -> Arc<Self> {
        let settings = settings(&config);
        let (cache, courses, lookups) = Default::default();
        let state = State { cache, courses, lookups, settings };
        let wake = Condvar::new();
        let counters = Counters::default();
        let shared = Arc::new(Shared { config, hosts, source, state: Mutex::new(state), counters, wake });
        Arc::new(Self { shared, refresh: Mutex::new(None) })
    }
    fn find(&self, host: &str, deadline: Instant, known_is_enough: bool) -> Result<IpAddr, LookupError> {
        if let Ok(address) = host.trim().parse() {
            return Ok(address);
        }
        let name = normalise(host);
        let absent = || LookupError::NotFound(host.to_owned());
        if name.is_empty() {
            return Err(absent());
        }
        let shared = &self.shared;
        count(&shared.counters.queried);
        if known_is_enough
            && let Some(address) = shared.state.lock().cache.pinned(&name).map(|pin| pin.address)
        {
            count(&shared.counters.found);
            return Ok(address);
        }
        let listed = shared.listed(&name);
        if !listed.is_empty() {
            count(&shared.counters.found);
            let mut state = shared.state.lock();
            state.courses.note(&name, &listed, Instant::now());
            return state.cache.take_turn(&name, &listed).ok_or_else(absent);
        }
        shared.look_up(&name, deadline, known_is_enough)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// What hosts files say of a name, unless a name server is asked first.
    fn listed(&self, name: &str) -> Vec<IpAddr> {
        match self.config.variables().dns_server {
            Some(_) => Vec::new(),
            None => self.hosts.addresses(name),
        }
    }
    /// How long the cache may keep an answer; `None` where it is disabled.
    fn longest_life(&self) -> Option<Duration> {
        let variables = self.config.variables();
        let (life, interval) = (variables.dns_cache_ttl, variables.dns_cache_refresh_interval);
        (!life.is_zero() && !interval.is_zero()).then_some(life)
    }
    /// Forgets what other settings led to.
    fn settle(&self, state: &mut State) {
        let settings = settings(&self.config);
        if state.settings != settings {
            state.settings = settings;
            state.lookups.forget_all();
            state.cache.clear();
        }
        if self.longest_life().is_none() {
            state.cache.clear();
        }
    }
    fn look_up(
        self: &Arc<Self>,
        name: &str,
        deadline: Instant,
        known_is_enough: bool,
    ) -> Result<IpAddr, LookupError> {
        let (flight, patience) = {
            let mut state = self.state.lock();
            self.settle(&mut state);
            let now = Instant::now();
            if known_is_enough && let Some(known) = state.cache.get(name, now) {
                if known.is_ok() {
                    count(&self.counters.found);
                }
                return known;
            }
            let stale = known_is_enough && state.cache.has_stale(name);
            let patience = if stale { deadline.min(now + STALE_PATIENCE) } else { deadline };
            (state.lookups.begin(name, self), patience)
        };
        let outcome = flight.wait(name, patience);
        let mut state = self.state.lock();
        match outcome {
            Ok(resolved) => state
                .cache
                .take_turn(name, &resolved.addresses)
                .ok_or_else(|| LookupError::NotFound(name.to_owned())),
            Err(error @ LookupError::Failed { .. }) if known_is_enough => {
                state.cache.stale(name).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
    /// Takes note of a lookup's outcome.
    fn take_up(&self, state: &mut State, name: &str, outcome: &Result<Resolved, LookupError>) {
        let now = Instant::now();
        if let Ok(resolved) = outcome {
            state.courses.note(name, &resolved.addresses, now);
        }
        if let Some(life) = self.longest_life() {
            state.cache.put(name, outcome, life, now);
            if outcome.is_ok() {
                count(&self.counters.updated);
            }
            self.wake.notify_all();
        }
    }
    /// The refresh thread: looks up names in use (asked for within the refresh interval) again before their time is over.
    fn refresh(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.lookups.stopped() {
            self.settle(&mut state);
            let in_use = self.config.variables().dns_cache_refresh_interval.max(SHORTEST_USE);
            let now = Instant::now();
            state.courses.forget_unused(now);
            let (due, next) = state.cache.due(in_use, now);
            for name in due {
                state.lookups.begin(&name, self);
            }
            let latest = now + LONGEST_NAP;
            self.wake.wait_until(&mut state, next.map_or(latest, |next| next.min(latest)));
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn settings(config: &Config) -> Settings {
    let variables = config.variables();
    (variables.dns_server, variables.resolution_family)
}

/// Names are compared in lower case and without the dot that may end them.
pub(crate) fn normalise(host: &str) -> String {
    let host = host.trim();
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}
