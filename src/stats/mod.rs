//! Tables of the schema `stats`, over what the parts of the daemon count.

pub mod errors;
mod memory;

use crate::config::Config;
use crate::digest::statistics::Statistics;
use crate::pool::{Backends, FreeConnection, HostgroupFigures, ServerFigures};
use crate::session::Sessions;
use admin::{LiveTable, Schema, Value, ddl};
use std::sync::Arc;

type Rows = Vec<Vec<Value>>;

/// A table of this schema.
fn table(
    name: &'static str,
    ddl: &'static str,
    rows: impl Fn() -> Rows + Send + Sync + 'static,
) -> LiveTable {
    LiveTable { name, schema: Schema::Stats, ddl, rows: Arc::new(rows) }
}

/// Tables of servers, hostgroups and free connections.
pub fn pool_tables(backends: &Arc<Backends>) -> Vec<LiveTable> {
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

/// Tables of what sessions have met.
pub fn session_tables(
    sessions: &Arc<Sessions>,
    config: &Arc<Config>,
    statistics: &Arc<Statistics>,
) -> Vec<LiveTable> {
    let of_sessions = |name, ddl, rows: fn(&Sessions) -> Rows| {
        let sessions = Arc::clone(sessions);
        table(name, ddl, move || rows(&sessions))
    };
    let (all, variables) = (Arc::clone(sessions), Arc::clone(config));
    let prepared =
        table("stats_mysql_prepared_statements_info", ddl::STATS_MYSQL_PREPARED_STATEMENTS_INFO, move || {
            all.statement_texts().rows(&variables.variables().query_digests)
        });
    let (all, config, statistics) = (Arc::clone(sessions), Arc::clone(config), Arc::clone(statistics));
    let memory = table("stats_memory_metrics", ddl::STATS_MEMORY_METRICS, move || {
        memory::rows(&all, &config, &statistics)
    });
    vec![
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
        memory,
    ]
}
