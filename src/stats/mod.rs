//! Tables of the schema `stats`, over what the parts of the daemon count.

pub mod errors;
pub mod history;
mod memory;
mod metrics;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::digest::statistics::Statistics;
use crate::dns::Dns;
use crate::locality::{Category, Locality, Location, Report};
use crate::monitor::Monitor;
use crate::pool::{Backends, FreeConnection, HostgroupFigures, ServerFigures};
use crate::rules::RuleSet;
use crate::session::{Sessions, processlist_rows, users_rows};
use admin::{LiveTable, Schema, Value, ddl};
pub use metrics::metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Rows = Vec<Vec<Value>>;

/// The parts that count.
#[derive(Clone)]
pub struct Sources {
    /// Variables, and query rules with their hits.
    pub config: Arc<Config>,
    /// Servers and pools.
    pub backends: Arc<Backends>,
    /// Clients.
    pub sessions: Arc<Sessions>,
    /// Digests.
    pub statistics: Arc<Statistics>,
    /// Lookups.
    pub dns: Arc<Dns>,
    /// Checks, if servers are watched.
    pub monitor: Option<Arc<Monitor>>,
    /// Clients of the traffic port that were too many.
    pub refused: Arc<AtomicU64>,
    /// How often servers were published.
    pub servers_version: Arc<AtomicU64>,
}

impl Sources {
    /// Names and numbers of stats_mysql_global.
    fn global(&self) -> Vec<(String, u64)> {
        let own = [
            ("Servers_table_version", self.servers_version.load(Ordering::Relaxed)),
            ("SQLite3_memory_bytes", admin::sqlite_memory()),
        ];
        let sessions = self.sessions.global_figures(self.refused.load(Ordering::Relaxed));
        let named = sessions.into_iter().chain(own).chain(self.dns.counters());
        let checks = self.monitor.iter().flat_map(|monitor| monitor.counters());
        named.map(|(name, count)| (name.to_owned(), count)).chain(checks).collect()
    }
    /// Names and numbers of stats_memory_metrics.
    fn memory(&self) -> Vec<(&'static str, u64)> {
        memory::figures(&self.sessions, &self.config, &self.statistics)
    }
}

/// Every table of the schema.
pub fn tables(sources: &Sources) -> Vec<LiveTable> {
    let mut tables = pool_tables(&sources.backends);
    tables.extend(session_tables(&sources.sessions, &sources.config));
    tables.extend(query_tables(&sources.config, &sources.statistics));
    let all = sources.clone();
    tables.push(table("stats_mysql_global", ddl::STATS_MYSQL_GLOBAL, move || named_rows(all.global())));
    let all = sources.clone();
    tables.push(table("stats_memory_metrics", ddl::STATS_MEMORY_METRICS, move || named_rows(all.memory())));
    tables
}

/// Rows of names and numbers.
fn named_rows<N: Into<Value>>(figures: Vec<(N, u64)>) -> Rows {
    let row = |(name, value): (N, u64)| vec![name.into(), value.to_string().into()];
    figures.into_iter().map(row).collect()
}

/// A table of this schema.
fn table(
    name: &'static str,
    ddl: &'static str,
    rows: impl Fn() -> Rows + Send + Sync + 'static,
) -> LiveTable {
    LiveTable { name, schema: Schema::Stats, ddl, rows: Arc::new(rows) }
}

/// stats_mysql_aws_locality, where somebody tells what it shows.
pub fn locality_table(locality: &Arc<Locality>) -> Option<LiveTable> {
    let locality = locality.shows_table().then(|| Arc::clone(locality))?;
    Some(table("stats_mysql_aws_locality", ddl::STATS_MYSQL_AWS_LOCALITY, move || {
        locality.report().into_iter().map(locality_row).collect()
    }))
}

fn locality_row(report: Report) -> Vec<Value> {
    let Report { server, state, location, age, multiplier, error } = report;
    let (hostgroup, host, port) = match server {
        Some((hostgroup, endpoint)) => (hostgroup.into(), (&*endpoint.host).into(), endpoint.port.into()),
        None => (Value::Null, "".into(), Value::Null),
    };
    let Location { region, zone, zone_id, account } = location;
    vec![
        hostgroup,
        host,
        port,
        state.as_str().into(),
        region.into(),
        zone.into(),
        zone_id.into(),
        account.into(),
        age.map(|age| age.as_secs()).into(),
        multiplier.into(),
        error.map_or("", Category::as_str).into(),
    ]
}

/// Tables of servers, hostgroups and free connections.
fn pool_tables(backends: &Arc<Backends>) -> Vec<LiveTable> {
    let of_pools = |name, ddl, rows: fn(&Backends) -> Rows| {
        let backends = Arc::clone(backends);
        table(name, ddl, move || rows(&backends))
    };
    vec![
        of_pools("stats_mysql_connection_pool", ddl::STATS_MYSQL_CONNECTION_POOL, |backends| {
            backends.connection_pool_rows()
        }),
        of_pools("stats_mysql_connection_pool_reset", ddl::STATS_MYSQL_CONNECTION_POOL_RESET, |backends| {
            backends.servers(true).iter().map(ServerFigures::row).collect()
        }),
        of_pools(
            "stats_mysql_hostgroup_connection_pool",
            ddl::STATS_MYSQL_HOSTGROUP_CONNECTION_POOL,
            |backends| backends.hostgroups(false).iter().map(HostgroupFigures::row).collect(),
        ),
        of_pools(
            "stats_mysql_hostgroup_connection_pool_reset",
            ddl::STATS_MYSQL_HOSTGROUP_CONNECTION_POOL_RESET,
            |backends| backends.hostgroups(true).iter().map(HostgroupFigures::row).collect(),
        ),
        of_pools("stats_mysql_free_connections", ddl::STATS_MYSQL_FREE_CONNECTIONS, |backends| {
            backends.free_connections().iter().map(FreeConnection::row).collect()
        }),
    ]
}

/// Tables of sessions, and of what they have met.
fn session_tables(sessions: &Arc<Sessions>, config: &Arc<Config>) -> Vec<LiveTable> {
    let of_sessions = |name, ddl, rows: fn(&Sessions) -> Rows| {
        let sessions = Arc::clone(sessions);
        table(name, ddl, move || rows(&sessions))
    };
    let (all, variables) = (Arc::clone(sessions), Arc::clone(config));
    let users =
        table("stats_mysql_users", ddl::STATS_MYSQL_USERS, move || users_rows(all.registry(), &variables));
    let (all, variables) = (Arc::clone(sessions), Arc::clone(config));
    let prepared =
        table("stats_mysql_prepared_statements_info", ddl::STATS_MYSQL_PREPARED_STATEMENTS_INFO, move || {
            all.statement_texts().rows(&variables.variables().query_digests)
        });
    vec![
        of_sessions("stats_mysql_processlist", ddl::STATS_MYSQL_PROCESSLIST, |sessions| {
            processlist_rows(sessions.registry())
        }),
        users,
        of_sessions(
            "stats_mysql_commands_counters",
            ddl::STATS_MYSQL_COMMANDS_COUNTERS,
            Sessions::commands_rows,
        ),
        of_sessions("stats_mysql_errors", ddl::STATS_MYSQL_ERRORS, |sessions| {
            sessions.registry().errors.rows()
        }),
        of_sessions("stats_mysql_errors_reset", ddl::STATS_MYSQL_ERRORS_RESET, |sessions| {
            sessions.registry().errors.take_rows()
        }),
        of_sessions("stats_mysql_client_host_cache", ddl::STATS_MYSQL_CLIENT_HOST_CACHE, |sessions| {
            sessions.registry().hosts.rows()
        }),
        of_sessions(
            "stats_mysql_client_host_cache_reset",
            ddl::STATS_MYSQL_CLIENT_HOST_CACHE_RESET,
            |sessions| sessions.registry().hosts.take_rows(),
        ),
        prepared,
    ]
}

/// Tables of what is counted of statements.
fn query_tables(config: &Arc<Config>, statistics: &Arc<Statistics>) -> Vec<LiveTable> {
    let of_digests = |name, ddl, rows: fn(&Statistics) -> Rows| {
        let statistics = Arc::clone(statistics);
        table(name, ddl, move || rows(&statistics))
    };
    let config = Arc::clone(config);
    vec![
        table("stats_mysql_query_rules", ddl::STATS_MYSQL_QUERY_RULES, move || {
            RuleSet::hits(&config.rules())
        }),
        of_digests("stats_mysql_query_digest", ddl::STATS_MYSQL_QUERY_DIGEST, Statistics::rows),
        of_digests(
            "stats_mysql_query_digest_reset",
            ddl::STATS_MYSQL_QUERY_DIGEST_RESET,
            Statistics::take_rows,
        ),
    ]
}
