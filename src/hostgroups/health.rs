//! What checks tell of servers, apart from read_only: how long pings take, who does not answer them, and how far replicas are
//! behind.

use super::{Endpoint, HostgroupId, Hostgroups, Server, ServerStatus};
use std::time::{Duration, Instant};

impl Server {
    /// Its status but for what ends by itself, without notice: a shun after failures or for replication lag.
    pub fn lasting_status(&self) -> ServerStatus {
        match self.status {
            ServerStatus::Shunned if self.shunned_since.is_some() => ServerStatus::Online,
            ServerStatus::ShunnedReplicationLag => ServerStatus::Online,
            status => status,
        }
    }
    /// A replica that was late before LOAD is so after it, unless LOAD gave it another limit or status.
    pub(super) fn keep_lag(&mut self, old: &Self) {
        let same_limit = self.row.max_replication_lag == old.row.max_replication_lag;
        if same_limit
            && old.status == ServerStatus::ShunnedReplicationLag
            && self.status == ServerStatus::Online
        {
            self.status = old.status;
            self.late_checks = old.late_checks;
        }
    }
}

impl Hostgroups {
    /// What pings of an endpoint take.
    pub fn latency(&self, endpoint: &Endpoint) -> Option<Duration> {
        self.latencies.get(endpoint).copied()
    }
    /// Takes note of what pings of an endpoint take. Where that is longer than max_latency_ms of its row, or `default_limit` (zero
    /// for none) if that is 0, it is not chosen.
    pub fn set_latency(&mut self, endpoint: &Endpoint, latency: Duration, default_limit: Duration) {
        self.default_max_latency = default_limit;
        self.latencies.insert(endpoint.clone(), latency);
        for server in self.groups.values_mut().filter_map(|group| group.get_mut(endpoint)) {
            server.slow = is_slow(server, latency, default_limit);
        }
    }
    /// Shuns an endpoint that does not answer pings, wherever nothing keeps it out of use already. Returns the hostgroups in which
    /// it counts as shunned by failures now, and whether that is new in any of them.
    pub fn shun_unresponsive(&mut self, endpoint: &Endpoint, now: Instant) -> (Vec<HostgroupId>, bool) {
        let new = self.members_of(endpoint).any(|(_, server)| server.status == ServerStatus::Online);
        self.shun_failed(endpoint, now);
        let shunned = self.members_of(endpoint).filter(|(_, server)| server.shunned_since.is_some());
        (shunned.map(|(id, _)| id).collect(), new)
    }
    /// Applies how far an endpoint is behind its source, in seconds; `None` if it is nobody's replica. It is shunned in each hostgroup
    /// whose row's max_replication_lag was exceeded in `needed` checks in a row, and back once that is not so. Writers stay: late
    /// or not, there is no other. Returns a line for the log for each change.
    pub fn apply_lag(&mut self, endpoint: &Endpoint, lag: Option<u32>, needed: u32) -> Vec<String> {
        let watched: Vec<HostgroupId> =
            self.members_of(endpoint).map(|(id, _)| id).filter(|id| !self.is_for_writers(*id)).collect();
        let mut lines = Vec::new();
        for id in watched {
            let Some(server) = self.server_mut(id, endpoint) else { continue };
            let limit = server.row.max_replication_lag;
            let late = limit > 0 && lag.is_some_and(|lag| lag > limit);
            server.late_checks = if late { server.late_checks.saturating_add(1) } else { 0 };
            let shown = lag.map_or("no replica".to_owned(), |lag| format!("{lag} s behind"));
            match server.status {
                ServerStatus::Online if late && server.late_checks >= needed => {
                    server.set_status(ServerStatus::ShunnedReplicationLag);
                    lines.push(format!(
                        "{endpoint} is {shown}: shunned in hostgroup {id}, where max_replication_lag is {limit}"
                    ));
                }
                ServerStatus::ShunnedReplicationLag if !late => {
                    server.set_status(ServerStatus::Online);
                    lines.push(format!("{endpoint} is {shown}: ONLINE again in hostgroup {id}"));
                }
                _ => {}
            }
        }
        lines
    }
    /// Whether replication lag keeps nobody out of a hostgroup: it is there for the writer.
    pub fn is_for_writers(&self, hostgroup: HostgroupId) -> bool {
        self.replication.iter().any(|pair| pair.writer_hostgroup == hostgroup)
            || self.deployments.values().any(|deployment| {
                let row = &deployment.row;
                row.writer_hostgroup == hostgroup || row.green_writer_hostgroup == Some(hostgroup)
            })
    }
    /// Takes back what only checks would take back: nobody checks servers any more.
    pub fn forget_checks(&mut self) {
        self.latencies.clear();
        for server in self.groups.values_mut().flat_map(|group| group.values_mut()) {
            server.slow = false;
            server.late_checks = 0;
            if server.status == ServerStatus::ShunnedReplicationLag {
                server.set_status(ServerStatus::Online);
            }
        }
    }

    /// Judges a server that is placed anew by the pings before.
    pub(super) fn judge_latency(&self, endpoint: &Endpoint, server: &mut Server) {
        let latency = self.latency(endpoint);
        server.slow = latency.is_some_and(|latency| is_slow(server, latency, self.default_max_latency));
    }
    fn members_of<'a>(&'a self, endpoint: &'a Endpoint) -> impl Iterator<Item = (HostgroupId, &'a Server)> {
        self.groups.iter().filter_map(move |(id, group)| group.get(endpoint).map(|server| (*id, server)))
    }
}

fn is_slow(server: &Server, latency: Duration, default_limit: Duration) -> bool {
    let limit = match server.row.max_latency_ms {
        0 => default_limit,
        millis => Duration::from_millis(millis.into()),
    };
    !limit.is_zero() && latency > limit
}
