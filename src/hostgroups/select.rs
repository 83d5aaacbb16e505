//! Choosing a server, and keeping those that fail out of the choice.

use super::{Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use admin::rows::ServerRow;
use std::time::{Duration, Instant};

/// Why no server could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The hostgroup has no usable server now.
    NoServer,
    /// Servers are usable but all at max_connections.
    Full,
    /// Servers are usable but all of weight 0, which is never chosen.
    Weightless,
}

impl Hostgroups {
    /// Chooses a server of a hostgroup for one more connection or statement: ONLINE (a connect-failure shun whose time is over becomes
    /// ONLINE), below max_connections by `in_use`, weighted by `weight` with `random`; weight 0 never.
    pub fn select(
        &mut self,
        hostgroup: HostgroupId,
        now: Instant,
        random: u64,
        in_use: impl Fn(&Endpoint) -> usize,
    ) -> Result<(&Endpoint, &ServerRow), Unavailable> {
        let group = self.groups.get_mut(&hostgroup).ok_or(Unavailable::NoServer)?;
        group.values_mut().for_each(|server| recover(server, now));
        let (mut usable, mut weightless) = (false, false);
        let (mut total, mut last) = (0u64, None);
        for (endpoint, server) in group.iter() {
            if server.status == ServerStatus::Online {
                usable |= server.row.weight > 0;
                weightless |= server.row.weight == 0;
                let weight = room(endpoint, server, &in_use);
                if weight > 0 {
                    last = Some((endpoint, &server.row, total));
                    total += weight;
                }
            }
        }
        if total == 0 {
            return Err(match (usable, weightless) {
                (true, _) => Unavailable::Full,
                (false, true) => Unavailable::Weightless,
                (false, false) => Unavailable::NoServer,
            });
        }
        // No other has room.
        if let Some((endpoint, row, 0)) = last {
            return Ok((endpoint, row));
        }
        let mut left = random % total;
        for (endpoint, server) in group.iter() {
            if server.status != ServerStatus::Online {
                continue;
            }
            let weight = room(endpoint, server, &in_use);
            if left < weight {
                return Ok((endpoint, &server.row));
            }
            left -= weight;
        }
        Err(Unavailable::NoServer)
    }
    /// Whether new statements may use a server: ONLINE.
    pub fn usable(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        self.server(hostgroup, endpoint).is_some_and(|server| server.status == ServerStatus::Online)
    }
    /// Shuns an endpoint everywhere after connect failures. A configured SHUNNED and the other statuses stay as they are.
    pub fn shun_failed(&mut self, endpoint: &Endpoint, until: Instant) {
        for server in self.groups.values_mut().filter_map(|group| group.get_mut(endpoint)) {
            match (server.status, server.shunned_until) {
                (ServerStatus::Online, _) => {
                    server.status = ServerStatus::Shunned;
                    server.shunned_until = Some(until);
                }
                (ServerStatus::Shunned, Some(earlier)) => server.shunned_until = Some(earlier.max(until)),
                _ => {}
            }
        }
    }
}

/// For how long a server stays shunned after connect failures: min(recovery, connect_max/1000 - 1 s), at least 1 s.
pub fn shun_time(recovery: Duration, connect_max: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    recovery.min(connect_max.saturating_sub(SECOND)).max(SECOND)
}

fn recover(server: &mut Server, now: Instant) {
    if server.status == ServerStatus::Shunned && server.shunned_until.is_some_and(|until| until <= now) {
        server.status = ServerStatus::Online;
        server.shunned_until = None;
    }
}

/// A server's weight, or 0 where it holds as many connections as it may.
fn room(endpoint: &Endpoint, server: &Server, in_use: impl Fn(&Endpoint) -> usize) -> u64 {
    let limit = usize::try_from(server.row.max_connections).unwrap_or(usize::MAX);
    if in_use(endpoint) < limit { u64::from(server.row.weight) } else { 0 }
}
