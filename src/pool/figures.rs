//! What stats tables show of servers and hostgroups: copied under the pool's lock, put into rows outside.

use super::connection::{Connection, Traffic};
use super::inner::Inner;
use super::server_pool::ServerPool;
use super::waiters::Waits;
use crate::hostgroups::{Endpoint, HostgroupId, ServerStatus};
use admin::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One server in one hostgroup.
pub struct ServerFigures {
    /// Hostgroup.
    pub hostgroup: HostgroupId,
    /// Server.
    pub endpoint: Endpoint,
    /// Its status there.
    pub status: ServerStatus,
    /// Connections in use.
    pub used: usize,
    /// Connections in the pool.
    pub free: usize,
    /// Connections that were opened.
    pub connected: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// The most that were in use at once.
    pub most_used: usize,
    /// Commands and their answers.
    pub traffic: Traffic,
    /// What its pings take.
    pub latency: Duration,
}

impl ServerFigures {
    /// A row of stats_mysql_connection_pool.
    pub fn row(&self) -> Vec<Value> {
        vec![
            Value::Int(self.hostgroup.into()),
            Value::Text(self.endpoint.host.to_string()),
            Value::Int(self.endpoint.port.into()),
            Value::Text(self.status.to_string()),
            number(self.used as u64),
            number(self.free as u64),
            number(self.connected),
            number(self.failed),
            number(self.most_used as u64),
            number(self.traffic.queries),
            Value::Int(0),
            number(self.traffic.sent),
            number(self.traffic.received),
            micros(self.latency),
        ]
    }
}

/// One hostgroup, as its statements found it.
#[derive(Debug, PartialEq, Eq)]
pub struct HostgroupFigures {
    /// Hostgroup.
    pub hostgroup: HostgroupId,
    /// How often a connection, or the right to open one, was given out.
    pub given_out: u64,
    /// Waits for its servers.
    pub waits: Waits,
}

impl HostgroupFigures {
    /// A row of stats_mysql_hostgroup_connection_pool.
    pub fn row(&self) -> Vec<Value> {
        vec![
            Value::Int(self.hostgroup.into()),
            number(self.given_out),
            number(self.waits.count),
            micros(self.waits.time),
            number(self.waits.waiting),
        ]
    }
}

/// Hostgroups that have servers, or that sessions have asked for.
pub(super) fn of_hostgroups(
    given_out: BTreeMap<HostgroupId, u64>,
    waits: BTreeMap<HostgroupId, Waits>,
) -> Vec<HostgroupFigures> {
    let mut all: BTreeMap<_, _> =
        given_out.into_iter().map(|(id, given_out)| (id, (given_out, Waits::default()))).collect();
    for (id, waits) in waits {
        all.entry(id).or_default().1 = waits;
    }
    let figures = |(hostgroup, (given_out, waits))| HostgroupFigures { hostgroup, given_out, waits };
    all.into_iter().map(figures).collect()
}

impl<T> Inner<T> {
    /// Every server of every hostgroup, and those gone that still have connections.
    pub fn servers(&self) -> Vec<ServerFigures> {
        let placed = self.hostgroups.all().map(|(id, endpoint, server)| ((id, endpoint), server.status));
        let mut servers: BTreeMap<_, _> = placed.collect();
        for (id, pools) in &self.pools {
            for (endpoint, _) in pools.iter().filter(|(_, pool)| pool.held() > 0) {
                servers.entry((*id, endpoint)).or_insert(ServerStatus::OfflineHard);
            }
        }
        let empty = ServerPool::default();
        let figures = |((hostgroup, endpoint), status): ((HostgroupId, &Endpoint), ServerStatus)| {
            let pool = self.pools.get(&hostgroup).and_then(|pools| pools.get(endpoint)).unwrap_or(&empty);
            ServerFigures {
                hostgroup,
                endpoint: endpoint.clone(),
                status,
                used: pool.used(),
                free: pool.free(),
                connected: pool.connected,
                failed: pool.failed,
                most_used: pool.most_used,
                traffic: pool.traffic(),
                latency: self.hostgroups.latency(endpoint).unwrap_or_default(),
            }
        };
        servers.into_iter().map(figures).collect()
    }
    /// Counts what servers did anew. What all of them did together is not forgotten.
    pub fn reset_servers(&mut self) {
        for pool in self.pools.values_mut().flat_map(BTreeMap::values_mut) {
            self.totals.add(pool.take_traffic());
            (pool.connected, pool.failed, pool.most_used) = (0, 0, pool.used());
        }
    }
    /// How often each hostgroup gave out a connection or the right to open one; with `reset` counting begins anew.
    pub fn given_out(&mut self, reset: bool) -> BTreeMap<HostgroupId, u64> {
        let placed = self.hostgroups.all().map(|(id, ..)| (id, 0));
        let mut all: BTreeMap<HostgroupId, u64> = placed.collect();
        self.given_out.iter().for_each(|(id, count)| *all.entry(*id).or_default() += count);
        for (id, pools) in &mut self.pools {
            for pool in pools.values_mut() {
                *all.entry(*id).or_default() += pool.given_out;
                if reset {
                    pool.given_out = 0;
                }
            }
        }
        if reset {
            self.given_out.clear();
        }
        all
    }
    /// What `show` makes of each free connection and of the time since when it is free.
    pub fn free<R>(&self, show: impl Fn(&Connection<T>, Instant) -> R) -> Vec<R> {
        let pools = self.pools.values().flat_map(BTreeMap::values);
        pools.flat_map(ServerPool::at_rest).map(|idle| show(&idle.connection, idle.since)).collect()
    }
}

/// A cell that holds a count.
pub(super) fn number(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn micros(time: Duration) -> Value {
    number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
