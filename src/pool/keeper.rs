//! The thread that looks after connections that nobody uses: it pings them, so that their servers do not close them for silence, and
//! follows the names of servers, so that none goes on to an address that its name has left.

use super::{Backends, quit_all};
use crate::dns::normalise;
use crate::hostgroups::Endpoint;
use crate::periodic::Periodic;
use crate::pool::lease::Place;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Command;

/// How often it looks. The shortest mysql-ping_interval_server_msec is twice that.
const INTERVAL: Duration = Duration::from_millis(500);

/// Starts the thread `pool-keeper`.
pub fn start_keeper(backends: Arc<Backends>) -> io::Result<Periodic> {
    Periodic::start("pool-keeper", INTERVAL, move || {
        backends.follow_names();
        backends.ping_free(Instant::now());
    })
}

impl Backends {
    /// Keeps the addresses of all servers known, and retires connections to those that a name does not lead to any more: free ones
    /// are closed, used ones when they come back.
    pub fn follow_names(&self) {
        let hosts: BTreeSet<Arc<str>> =
            self.read(|groups| groups.all().map(|(_, endpoint, _)| Arc::clone(&endpoint.host)).collect());
        for (name, gone) in self.dns.follow(hosts.iter().map(|host| &**host)) {
            let count = self.drain_strays(&name, |address| gone.contains(&address));
            if count > 0 {
                let gone: Vec<_> = gone.iter().map(ToString::to_string).collect();
                log::info!("{name} has left {}: {count} connections are retired", gone.join(", "));
            }
        }
    }
    /// Retires connections that a name opened and that do not lead to this address. Returns how many.
    pub fn drain_elsewhere(&self, host: &str, address: IpAddr) -> usize {
        self.drain_strays(&normalise(host), |other| other != address)
    }
    fn drain_strays(&self, name: &str, stray: impl Fn(IpAddr) -> bool) -> usize {
        let mut trash = Vec::new();
        let count = self.inner.lock().drain_strays(name, stray, &mut trash);
        quit_all(trash);
        count
    }
    /// Pings the free connections that nobody has used for mysql-ping_interval_server_msec, one after the other; each counts as used
    /// meanwhile. One that does not answer within mysql-ping_timeout_server is closed, and the server's others wait for the next round.
    pub fn ping_free(&self, now: Instant) {
        let variables = self.config.variables();
        let (interval, timeout) = (variables.ping_interval_server, variables.ping_timeout_server);
        drop(variables);
        let Some(before) = now.checked_sub(interval) else { return };
        let due = self.inner.lock().silent_since(before);
        let mut hung: HashSet<Endpoint> = HashSet::new();
        for (hostgroup, endpoint, id) in due {
            if hung.contains(&endpoint) {
                continue;
            }
            let Some((slot, mut idle)) = self.inner.lock().take_to_ping(hostgroup, &endpoint, id) else {
                continue;
            };
            let place = Place::new(self, slot);
            let backend = &mut idle.connection.transport;
            match backend.simple(Command::COM_PING, b"", Instant::now() + timeout) {
                Ok(_warnings) => place.give_back_pinged(idle),
                Err(error) => {
                    log::debug!("a free connection to {endpoint} did not answer a ping: {error}");
                    hung.insert(endpoint);
                    // Before its place is given up, so that max_connections holds at the server too.
                    drop(idle);
                }
            }
        }
    }
}

impl Place<'_> {
    fn give_back_pinged(mut self, mut idle: super::server_pool::Idle<wire::backend::Backend>) {
        idle.pinged = Some(Instant::now());
        let mut trash = Vec::new();
        self.backends().inner.lock().put_back(&self.slot, idle, &mut trash);
        self.given_back = true;
        drop(self);
        quit_all(trash);
    }
}
