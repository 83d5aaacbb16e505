//! The thread that pings free connections, so that their servers do not close them for silence.

use super::{Backends, quit_all};
use crate::hostgroups::Endpoint;
use crate::periodic::Periodic;
use crate::pool::lease::Place;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Command;

/// How often it looks. The shortest mysql-ping_interval_server_msec is twice that.
const INTERVAL: Duration = Duration::from_millis(500);

/// Starts the thread `pool-keeper`.
pub fn start_keeper(backends: Arc<Backends>) -> io::Result<Periodic> {
    Periodic::start("pool-keeper", INTERVAL, move || backends.ping_free(Instant::now()))
}

impl Backends {
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
                Ok(()) => place.give_back_pinged(idle),
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
