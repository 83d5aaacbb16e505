//! Choosing a server, and keeping those that fail out of the choice.

use super::{Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use crate::locality::Factors;
use admin::rows::ServerRow;
use std::collections::BTreeMap;
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
    /// More servers are ONLINE than max_num_online_servers allows.
    Crowded,
    /// So many connections were opened in this second as may be.
    Throttled,
    /// Servers are ONLINE, but their pings take longer than max_latency_ms allows.
    Slow,
}

/// How servers come back that failures have shunned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// How long they rest.
    pub pause: Duration,
    /// mysql-unshun_algorithm=1: who comes back in one hostgroup comes back in all.
    pub everywhere: bool,
}

/// Where no other server is left, one that rests is tried once in each such part of its rest.
const DESPERATE: u32 = 10;

/// What a hostgroup has to choose from.
#[derive(Default)]
struct Tally<'a> {
    /// Weights of those that have room, together.
    weights: u64,
    /// The last of those, and the weights before it.
    last: Option<(&'a Endpoint, &'a ServerRow, u64)>,
    usable: bool,
    weightless: bool,
    slow: bool,
}

impl<'a> Tally<'a> {
    fn of(
        group: impl IntoIterator<Item = (&'a Endpoint, &'a Server)>,
        factors: &Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
    ) -> Self {
        let mut tally = Self::default();
        for (endpoint, server) in group {
            if server.status != ServerStatus::Online {
                continue;
            }
            if server.slow {
                tally.slow = true;
                continue;
            }
            tally.usable |= server.row.weight > 0;
            tally.weightless |= server.row.weight == 0;
            let weight = room(endpoint, server, factors, &in_use);
            if weight > 0 {
                tally.last = Some((endpoint, &server.row, tally.weights));
                tally.weights += weight;
            }
        }
        tally
    }
    /// Why nobody of it can be chosen.
    fn refusal(&self) -> Unavailable {
        match self {
            Self { usable: true, .. } => Unavailable::Full,
            Self { weightless: true, .. } => Unavailable::Weightless,
            Self { slow: true, .. } => Unavailable::Slow,
            _ => Unavailable::NoServer,
        }
    }
}

impl Hostgroups {
    /// Chooses a server of a hostgroup for one more connection or statement: ONLINE (one that failures have shunned becomes ONLINE
    /// as `recovery` says), not slow, below max_connections by `in_use`, weighted by `weight` times its factor with `random`; weight 0 never.
    pub fn select(
        &mut self,
        hostgroup: HostgroupId,
        now: Instant,
        random: u64,
        factors: &Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
        recovery: impl Fn() -> Recovery,
    ) -> Result<(&Endpoint, &ServerRow), Unavailable> {
        // Most hostgroups have one server, and that serves.
        let serves = |(endpoint, server): &(&Endpoint, &Server)| {
            server.status == ServerStatus::Online && !server.slow && has_room(endpoint, server, &in_use)
        };
        let only = |group| only(group).filter(serves);
        let permits = self.policies.get(&hostgroup).is_none_or(|policy| policy.max_online > 0);
        if permits && self.groups.get(&hostgroup).and_then(only).is_some() {
            let found = self.groups.get(&hostgroup).and_then(BTreeMap::first_key_value);
            return found.map(|(endpoint, server)| (endpoint, &server.row)).ok_or(Unavailable::NoServer);
        }
        self.select_among(hostgroup, now, random, factors, in_use, recovery)
    }
    #[inline(never)]
    fn select_among(
        &mut self,
        hostgroup: HostgroupId,
        now: Instant,
        random: u64,
        factors: &Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
        recovery: impl Fn() -> Recovery,
    ) -> Result<(&Endpoint, &ServerRow), Unavailable> {
        if self.members(hostgroup).any(|(_, server)| server.shunned_since.is_some())
            && let Some(endpoint) = self.look_after_resting(hostgroup, now, factors, &in_use, recovery())
        {
            return self.attempt(hostgroup, &endpoint, now).ok_or(Unavailable::NoServer);
        }
        let group = self.groups.get(&hostgroup).ok_or(Unavailable::NoServer)?;
        if let Some(policy) = self.policies.get(&hostgroup) {
            let online = group.values().filter(|server| server.status == ServerStatus::Online).count();
            if online > policy.max_online {
                return Err(Unavailable::Crowded);
            }
        }
        let tally = Tally::of(group, factors, &in_use);
        let Some((endpoint, row, weights_before)) = tally.last else { return Err(tally.refusal()) };
        // No other has room.
        if weights_before == 0 {
            return Ok((endpoint, row));
        }
        let mut left = random % tally.weights;
        for (endpoint, server) in group {
            if server.status != ServerStatus::Online || server.slow {
                continue;
            }
            let weight = room(endpoint, server, factors, &in_use);
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
    /// Shuns an endpoint everywhere after failures. A configured SHUNNED and the other statuses stay as they are.
    pub fn shun_failed(&mut self, endpoint: &Endpoint, now: Instant) {
        for server in self.groups.values_mut().filter_map(|group| group.get_mut(endpoint)) {
            match (server.status, server.shunned_since) {
                (ServerStatus::Online, _) => {
                    server.set_status(ServerStatus::Shunned);
                    server.shunned_since = Some(now);
                }
                (ServerStatus::Shunned, Some(earlier)) => server.shunned_since = Some(earlier.max(now)),
                _ => {}
            }
        }
    }
    /// Whether failures keep a server out of use.
    pub fn is_resting(&self, hostgroup: HostgroupId, endpoint: &Endpoint) -> bool {
        self.server(hostgroup, endpoint).is_some_and(|server| server.shunned_since.is_some())
    }
    /// A server that was tried although shunned has let somebody in: it is back, `everywhere` or in this hostgroup. True if it was
    /// shunned.
    pub fn acquit(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint, everywhere: bool) -> bool {
        let rests = self.is_resting(hostgroup, endpoint);
        if rests {
            self.bring_back(hostgroup, endpoint, everywhere);
        }
        rests
    }
    /// Brings back who has rested. Returns the server to try nevertheless, if nobody else is there.
    fn look_after_resting(
        &mut self,
        hostgroup: HostgroupId,
        now: Instant,
        factors: &Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
        recovery: Recovery,
    ) -> Option<Endpoint> {
        self.recover(hostgroup, now, recovery);
        if Tally::of(self.members(hostgroup), factors, &in_use).usable {
            return None;
        }
        self.to_try(hostgroup, now, recovery.pause / DESPERATE, &in_use)
    }
    /// Brings back the servers of a hostgroup that failures have shunned and that have rested for `recovery.pause`.
    fn recover(&mut self, hostgroup: HostgroupId, now: Instant, recovery: Recovery) {
        let rested =
            |server: &Server| server.shunned_since.is_some_and(|since| since + recovery.pause <= now);
        let rested: Vec<Endpoint> = self
            .members(hostgroup)
            .filter(|(_, server)| rested(server))
            .map(|(endpoint, _)| endpoint.clone())
            .collect();
        rested.iter().for_each(|endpoint| self.bring_back(hostgroup, endpoint, recovery.everywhere));
    }
    fn bring_back(&mut self, hostgroup: HostgroupId, endpoint: &Endpoint, everywhere: bool) {
        let here = |id: HostgroupId| everywhere || id == hostgroup;
        let servers = self.groups.iter_mut().filter(|(id, _)| here(**id));
        for server in servers.filter_map(|(_, group)| group.get_mut(endpoint)) {
            if server.shunned_since.is_some() {
                server.set_status(ServerStatus::Online);
            }
        }
    }
    /// The server to try although it rests: the one tried longest ago, if that is `pause` ago.
    fn to_try(
        &self,
        hostgroup: HostgroupId,
        now: Instant,
        pause: Duration,
        in_use: impl Fn(&Endpoint) -> usize,
    ) -> Option<Endpoint> {
        let resting = self.members(hostgroup).filter_map(|(endpoint, server)| {
            let last = server.shunned_since?.max(server.tried.unwrap_or(server.shunned_since?));
            has_room(endpoint, server, &in_use).then_some((last, endpoint))
        });
        let (last, endpoint) = resting.min()?;
        (last + pause <= now).then(|| endpoint.clone())
    }
    fn attempt(
        &mut self,
        hostgroup: HostgroupId,
        endpoint: &Endpoint,
        now: Instant,
    ) -> Option<(&Endpoint, &ServerRow)> {
        self.server_mut(hostgroup, endpoint)?.tried = Some(now);
        self.groups.get(&hostgroup)?.get_key_value(endpoint).map(|(endpoint, server)| (endpoint, &server.row))
    }
}

/// For how long a server stays shunned after connect failures: min(recovery, connect_max/1000 - 1 s), at least 1 s.
pub fn shun_time(recovery: Duration, connect_max: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    recovery.min(connect_max.saturating_sub(SECOND)).max(SECOND)
}

/// The one server of a hostgroup that has no other.
fn only(group: &BTreeMap<Endpoint, Server>) -> Option<(&Endpoint, &Server)> {
    group.first_key_value().filter(|_| group.len() == 1)
}

/// A server's weight for this choice, or 0 where it holds as many connections as it may.
fn room(
    endpoint: &Endpoint,
    server: &Server,
    factors: &Factors<'_>,
    in_use: impl Fn(&Endpoint) -> usize,
) -> u64 {
    if has_room(endpoint, server, in_use) { factors.effective(endpoint, server.row.weight) } else { 0 }
}

/// Whether a server may be chosen at all: its weight is not 0, and it holds fewer connections than it may.
fn has_room(endpoint: &Endpoint, server: &Server, in_use: impl Fn(&Endpoint) -> usize) -> bool {
    let limit = usize::try_from(server.row.max_connections).unwrap_or(usize::MAX);
    server.row.weight > 0 && in_use(endpoint) < limit
}
