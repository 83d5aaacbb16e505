//! Choosing a server, and keeping those that fail out of the choice.

use super::group::Group;
use super::{Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use crate::locality::Factors;
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

impl Hostgroups {
    /// Chooses a server of a hostgroup for one more connection or statement: ONLINE (one that failures have shunned becomes ONLINE
    /// as `recovery` says), not slow, below max_connections by `in_use`, weighted by `weight` times its factor with `random`; weight 0 never.
    pub fn select(
        &mut self,
        hostgroup: HostgroupId,
        now: Instant,
        random: u64,
        factors: Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
        recovery: impl Fn() -> Recovery,
    ) -> Result<(&Endpoint, &ServerRow), Unavailable> {
        let (mut weight, resting) = self.weigh(hostgroup, factors, &in_use);
        if resting {
            let recovery = recovery();
            self.recover(hostgroup, now, recovery);
            (weight, _) = self.weigh(hostgroup, factors, &in_use);
            if self.quick(hostgroup).all(|server| server.row.weight == 0)
                && let Some(endpoint) = self.to_try(hostgroup, now, recovery.pause / DESPERATE, &in_use)
            {
                return self.attempt(hostgroup, &endpoint, now).ok_or(Unavailable::NoServer);
            }
        }
        if self.is_crowded(hostgroup) {
            return Err(Unavailable::Crowded);
        }
        if weight == 0 {
            return Err(self.refusal(hostgroup));
        }
        let at = random % weight;
        let place = self.sums.partition_point(|sum| *sum <= at);
        let chosen = self.groups.get(&hostgroup).and_then(|group| group.at(place));
        chosen.map(|(endpoint, server)| (endpoint, &server.row)).ok_or(Unavailable::NoServer)
    }
    /// What the servers weigh together that can be chosen, and whether failures keep any out. Leaves in `sums` what each server and
    /// those before it weigh.
    fn weigh(
        &mut self,
        hostgroup: HostgroupId,
        mut factors: Factors<'_>,
        in_use: impl Fn(&Endpoint) -> usize,
    ) -> (u64, bool) {
        let (mut weight, mut resting) = (0, false);
        self.sums.clear();
        for (endpoint, server) in self.groups.get(&hostgroup).into_iter().flat_map(Group::iter) {
            if server.status != ServerStatus::Online {
                resting |= server.shunned_since.is_some();
            } else if !server.slow && has_room(endpoint, server, &in_use) {
                weight += factors.effective(endpoint, server.row.weight);
            }
            self.sums.push(weight);
        }
        (weight, resting)
    }
    fn online(&self, hostgroup: HostgroupId) -> impl Iterator<Item = &Server> {
        self.members(hostgroup)
            .map(|(_, server)| server)
            .filter(|server| server.status == ServerStatus::Online)
    }
    fn quick(&self, hostgroup: HostgroupId) -> impl Iterator<Item = &Server> {
        self.online(hostgroup).filter(|server| !server.slow)
    }
    fn is_crowded(&self, hostgroup: HostgroupId) -> bool {
        let Some(policy) = self.policies.get(&hostgroup) else { return false };
        // Seldom are there so many at all.
        self.sums.len() > policy.max_online && self.online(hostgroup).count() > policy.max_online
    }
    /// Why nobody can be chosen.
    #[cold]
    fn refusal(&self, hostgroup: HostgroupId) -> Unavailable {
        if self.quick(hostgroup).any(|server| server.row.weight > 0) {
            Unavailable::Full
        } else if self.quick(hostgroup).next().is_some() {
            Unavailable::Weightless
        } else if self.online(hostgroup).next().is_some() {
            Unavailable::Slow
        } else {
            Unavailable::NoServer
        }
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
        let found = self.members(hostgroup).find(|(at, _)| *at == endpoint);
        found.map(|(endpoint, server)| (endpoint, &server.row))
    }
}

/// For how long a server stays shunned after connect failures: min(recovery, connect_max/1000 - 1 s), at least 1 s.
pub fn shun_time(recovery: Duration, connect_max: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    recovery.min(connect_max.saturating_sub(SECOND)).max(SECOND)
}

/// Whether a server may be chosen at all: its weight is not 0, and it holds fewer connections than it may.
fn has_room(endpoint: &Endpoint, server: &Server, in_use: impl Fn(&Endpoint) -> usize) -> bool {
    let limit = usize::try_from(server.row.max_connections).unwrap_or(usize::MAX);
    server.row.weight > 0 && in_use(endpoint) < limit
}
