//! The registry of metrics: one entry for each, over figures of the stats tables. Names are ProxySQL's, or made in their manner.

use super::status_number;
use crate::pool::{HostgroupFigures, ServerFigures};

/// What a metric may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grow, but for a restart or a reset.
    Counter,
    /// Go up and down.
    Gauge,
}
use Kind::{Counter, Gauge};

/// A figure of stats_mysql_global or stats_memory_metrics as a metric. Those of one metric stand together; the first one's help
/// is the metric's.
pub(super) struct Figure {
    pub variable: &'static str,
    pub metric: &'static str,
    pub labels: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

const fn figure(variable: &'static str, kind: Kind, metric: &'static str, help: &'static str) -> Figure {
    Figure { variable, metric, labels: "", kind, help }
}

const fn labelled(
    variable: &'static str,
    metric: &'static str,
    labels: &'static str,
    help: &'static str,
) -> Figure {
    Figure { variable, metric, labels, kind: Counter, help }
}

/// Every figure.
pub(super) const FIGURES: &[Figure] = &[
    figure("ProxySQL_Uptime", Counter, "proxysql_uptime_seconds_total", "Seconds since the start."),
    figure("Active_Transactions", Gauge, "proxysql_active_transactions", "Sessions inside a transaction."),
    labelled(
        "Client_Connections_aborted",
        "proxysql_client_connections_total",
        "status=\"aborted\"",
        "Clients that logged in, or did not end in order.",
    ),
    labelled(
        "Client_Connections_created",
        "proxysql_client_connections_total",
        "status=\"created\"",
        "Clients that logged in, or did not end in order.",
    ),
    figure(
        "Client_Connections_connected",
        Gauge,
        "proxysql_client_connections_connected",
        "Clients that are connected.",
    ),
    figure(
        "Client_Connections_non_idle",
        Gauge,
        "proxysql_client_connections_non_idle",
        "Clients that wait for an answer.",
    ),
    labelled(
        "Server_Connections_aborted",
        "proxysql_server_connections_total",
        "status=\"aborted\"",
        "Connections to servers that were opened, or could not be.",
    ),
    labelled(
        "Server_Connections_created",
        "proxysql_server_connections_total",
        "status=\"created\"",
        "Connections to servers that were opened, or could not be.",
    ),
    figure(
        "Server_Connections_connected",
        Gauge,
        "proxysql_server_connections_connected",
        "Connections to servers that there are.",
    ),
    figure(
        "Server_Connections_delayed",
        Counter,
        "proxysql_server_connections_delayed_total",
        "Times a connection was not opened yet, as too many had been within the second.",
    ),
    figure(
        "Com_autocommit",
        Counter,
        "proxysql_com_autocommit_total",
        "Statements that have set autocommit.",
    ),
    figure("Com_commit", Counter, "proxysql_com_commit_total", "COMMIT of clients."),
    figure("Com_rollback", Counter, "proxysql_com_rollback_total", "ROLLBACK of clients."),
    figure(
        "Com_backend_init_db",
        Counter,
        "proxysql_com_backend_init_db_total",
        "COM_INIT_DB sent to servers.",
    ),
    labelled(
        "Com_backend_stmt_close",
        "proxysql_com_backend_stmt_total",
        "op=\"close\"",
        "Commands of prepared statements sent to servers.",
    ),
    labelled(
        "Com_backend_stmt_execute",
        "proxysql_com_backend_stmt_total",
        "op=\"execute\"",
        "Commands of prepared statements sent to servers.",
    ),
    labelled(
        "Com_backend_stmt_prepare",
        "proxysql_com_backend_stmt_total",
        "op=\"prepare\"",
        "Commands of prepared statements sent to servers.",
    ),
    figure("Com_frontend_init_db", Counter, "proxysql_com_frontend_init_db_total", "COM_INIT_DB of clients."),
    figure(
        "Com_frontend_set_names",
        Counter,
        "proxysql_com_frontend_set_names_total",
        "SET NAMES of clients.",
    ),
    labelled(
        "Com_frontend_stmt_close",
        "proxysql_com_frontend_stmt_total",
        "op=\"close\"",
        "Commands of prepared statements of clients.",
    ),
    labelled(
        "Com_frontend_stmt_execute",
        "proxysql_com_frontend_stmt_total",
        "op=\"execute\"",
        "Commands of prepared statements of clients.",
    ),
    labelled(
        "Com_frontend_stmt_prepare",
        "proxysql_com_frontend_stmt_total",
        "op=\"prepare\"",
        "Commands of prepared statements of clients.",
    ),
    figure("Com_frontend_use_db", Counter, "proxysql_com_frontend_use_db_total", "USE of clients."),
    figure("Questions", Counter, "proxysql_questions_total", "Commands of clients."),
    figure(
        "Slow_queries",
        Counter,
        "proxysql_slow_queries_total",
        "Answers that took longer than mysql-long_query_time.",
    ),
    labelled(
        "Queries_backends_bytes_recv",
        "proxysql_queries_backends_bytes_total",
        "traffic_flow=\"received\"",
        "Bytes of commands sent to servers and of their answers.",
    ),
    labelled(
        "Queries_backends_bytes_sent",
        "proxysql_queries_backends_bytes_total",
        "traffic_flow=\"sent\"",
        "Bytes of commands sent to servers and of their answers.",
    ),
    labelled(
        "Queries_frontends_bytes_recv",
        "proxysql_queries_frontends_bytes_total",
        "traffic_flow=\"received\"",
        "Bytes that came from clients and went to them.",
    ),
    labelled(
        "Queries_frontends_bytes_sent",
        "proxysql_queries_frontends_bytes_total",
        "traffic_flow=\"sent\"",
        "Bytes that came from clients and went to them.",
    ),
    figure(
        "ConnPool_get_conn_failure",
        Counter,
        "proxysql_connpool_get_conn_failure_total",
        "Times a statement found no server.",
    ),
    figure(
        "ConnPool_get_conn_immediate",
        Counter,
        "proxysql_connpool_get_conn_immediate_total",
        "Times a session took back the connection that it had used last.",
    ),
    figure(
        "ConnPool_get_conn_success",
        Counter,
        "proxysql_connpool_get_conn_success_total",
        "Times a statement got a connection or the right to open one.",
    ),
    figure(
        "MyHGM_myconnpoll_destroy",
        Counter,
        "proxysql_myhgm_myconnpool_destroy_total",
        "Connections to servers that were closed.",
    ),
    figure(
        "MyHGM_myconnpoll_get",
        Counter,
        "proxysql_myhgm_myconnpool_get_total",
        "Connections that statements asked for.",
    ),
    figure(
        "MyHGM_myconnpoll_get_ok",
        Counter,
        "proxysql_myhgm_myconnpool_get_ok_total",
        "Connections that statements asked for and that were in a pool.",
    ),
    figure(
        "MyHGM_myconnpoll_push",
        Counter,
        "proxysql_myhgm_myconnpool_push_total",
        "Connections that came back into a pool.",
    ),
    figure(
        "MyHGM_myconnpoll_reset",
        Counter,
        "proxysql_myhgm_myconnpool_reset_total",
        "Connections that were reset.",
    ),
    figure("Stmt_Cached", Gauge, "proxysql_stmt_cached", "Texts of prepared statements that are kept."),
    figure(
        "Stmt_Client_Active_Total",
        Gauge,
        "proxysql_stmt_client_active",
        "Prepared statements that clients have open.",
    ),
    figure(
        "Stmt_Client_Active_Unique",
        Gauge,
        "proxysql_stmt_client_active_unique",
        "The same, each text once.",
    ),
    figure(
        "Stmt_Max_Stmt_id",
        Gauge,
        "proxysql_stmt_max_stmt_id",
        "The number of the text that was prepared last.",
    ),
    figure(
        "Stmt_Server_Active_Total",
        Gauge,
        "proxysql_stmt_server_active",
        "Prepared statements on connections to servers.",
    ),
    figure(
        "Stmt_Server_Active_Unique",
        Gauge,
        "proxysql_stmt_server_active_unique",
        "The same, each text once.",
    ),
    figure(
        "mysql_killed_backend_connections",
        Counter,
        "proxysql_mysql_killed_backend_connections_total",
        "KILL CONNECTION sent to servers.",
    ),
    figure(
        "mysql_killed_backend_queries",
        Counter,
        "proxysql_mysql_killed_backend_queries_total",
        "KILL QUERY sent to servers.",
    ),
    figure(
        "mysql_unexpected_frontend_packets",
        Counter,
        "proxysql_mysql_unexpected_frontend_packets_total",
        "Packets of clients that were no commands.",
    ),
    figure(
        "backend_offline_during_query",
        Counter,
        "proxysql_backend_offline_during_query_total",
        "Statements lost with a server that was taken out of use.",
    ),
    figure(
        "max_connect_timeouts",
        Counter,
        "proxysql_max_connect_timeouts_total",
        "Statements that no server could be had for in time.",
    ),
    figure(
        "generated_error_packets",
        Counter,
        "proxysql_generated_error_packets_total",
        "Errors that no server has said.",
    ),
    figure("MySQL_Thread_Workers", Gauge, "proxysql_mysql_thread_workers", "Threads that serve clients."),
    figure(
        "client_host_error_killed_connections",
        Counter,
        "proxysql_client_host_error_killed_connections_total",
        "Clients refused for what failed from their address.",
    ),
    figure(
        "Access_Denied_Max_Connections",
        Counter,
        "proxysql_access_denied_max_connections_total",
        "Logins refused for mysql-max_connections.",
    ),
    figure(
        "Access_Denied_Max_User_Connections",
        Counter,
        "proxysql_access_denied_max_user_connections_total",
        "Logins refused for max_connections of the user.",
    ),
    figure(
        "Access_Denied_Wrong_Password",
        Counter,
        "proxysql_access_denied_wrong_password_total",
        "Logins refused for a wrong password.",
    ),
    figure(
        "Servers_table_version",
        Counter,
        "proxysql_servers_table_version_total",
        "Times LOAD MYSQL SERVERS was done.",
    ),
    figure("MySQL_Monitor_Workers", Gauge, "proxysql_mysql_monitor_workers", "Threads that check servers."),
    figure(
        "MySQL_Monitor_Workers_Aux",
        Gauge,
        "proxysql_mysql_monitor_workers_aux",
        "Threads that check servers that are down.",
    ),
    figure(
        "MySQL_Monitor_Workers_Started",
        Counter,
        "proxysql_mysql_monitor_workers_started_total",
        "Threads that were started to check servers.",
    ),
    labelled(
        "MySQL_Monitor_connect_check_ERR",
        "proxysql_mysql_monitor_connect_check_total",
        "status=\"err\"",
        "Connect checks.",
    ),
    labelled(
        "MySQL_Monitor_connect_check_OK",
        "proxysql_mysql_monitor_connect_check_total",
        "status=\"ok\"",
        "Connect checks.",
    ),
    labelled(
        "MySQL_Monitor_ping_check_ERR",
        "proxysql_mysql_monitor_ping_check_total",
        "status=\"err\"",
        "Ping checks.",
    ),
    labelled(
        "MySQL_Monitor_ping_check_OK",
        "proxysql_mysql_monitor_ping_check_total",
        "status=\"ok\"",
        "Ping checks.",
    ),
    labelled(
        "MySQL_Monitor_read_only_check_ERR",
        "proxysql_mysql_monitor_read_only_check_total",
        "status=\"err\"",
        "read_only checks.",
    ),
    labelled(
        "MySQL_Monitor_read_only_check_OK",
        "proxysql_mysql_monitor_read_only_check_total",
        "status=\"ok\"",
        "read_only checks.",
    ),
    labelled(
        "MySQL_Monitor_replication_lag_check_ERR",
        "proxysql_mysql_monitor_replication_lag_check_total",
        "status=\"err\"",
        "Replication lag checks.",
    ),
    labelled(
        "MySQL_Monitor_replication_lag_check_OK",
        "proxysql_mysql_monitor_replication_lag_check_total",
        "status=\"ok\"",
        "Replication lag checks.",
    ),
    figure(
        "MySQL_Monitor_dns_cache_lookup_success",
        Counter,
        "proxysql_mysql_monitor_dns_cache_lookup_success_total",
        "Names that were in the DNS cache.",
    ),
    figure(
        "MySQL_Monitor_dns_cache_queried",
        Counter,
        "proxysql_mysql_monitor_dns_cache_queried_total",
        "Names that the DNS cache was asked for.",
    ),
    figure(
        "MySQL_Monitor_dns_cache_record_updated",
        Counter,
        "proxysql_mysql_monitor_dns_cache_record_updated_total",
        "Records of the DNS cache that were made or changed.",
    ),
    figure("SQLite3_memory_bytes", Gauge, "proxysql_sqlite3_memory_bytes", "Memory that SQLite has taken."),
    figure("Auth_memory", Gauge, "proxysql_auth_memory_bytes", "Memory of the users in force."),
    figure(
        "mysql_query_digest_memory",
        Gauge,
        "proxysql_mysql_query_digest_memory_bytes",
        "Memory of stats_mysql_query_digest.",
    ),
    figure(
        "stack_memory_mysql_threads",
        Gauge,
        "proxysql_stack_memory_mysql_threads_bytes",
        "Address space of the stacks of clients' threads.",
    ),
    figure(
        "process_resident_memory_bytes",
        Gauge,
        "process_resident_memory_bytes",
        "What of the process is in memory.",
    ),
];

/// Values of a server, each with the label that sets it apart.
type Values = &'static [(&'static str, fn(&ServerFigures) -> u64)];

/// A metric with values for each server of each hostgroup: stats_mysql_connection_pool.
pub(super) struct OfServers {
    pub metric: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub values: Values,
}

const fn of_servers(metric: &'static str, kind: Kind, help: &'static str, values: Values) -> OfServers {
    OfServers { metric, kind, help, values }
}

/// Every one.
pub(super) const SERVERS: &[OfServers] = &[
    of_servers(
        "proxysql_connpool_conns",
        Gauge,
        "Connections to a server that are in the pool or in use.",
        &[("status=\"free\"", |server| server.free as u64), ("status=\"used\"", |server| server.used as u64)],
    ),
    of_servers(
        "proxysql_connpool_conns_total",
        Counter,
        "Connections to a server that were opened, or could not be.",
        &[("status=\"err\"", |server| server.failed), ("status=\"ok\"", |server| server.connected)],
    ),
    of_servers(
        "proxysql_connpool_conns_queries_total",
        Counter,
        "Commands sent to a server.",
        &[("", |server| server.traffic.queries)],
    ),
    of_servers(
        "proxysql_connpool_data_bytes_total",
        Counter,
        "Bytes of commands sent to a server and of their answers.",
        &[
            ("traffic_flow=\"recv\"", |server| server.traffic.received),
            ("traffic_flow=\"sent\"", |server| server.traffic.sent),
        ],
    ),
    of_servers(
        "proxysql_connpool_conns_latency_us",
        Gauge,
        "What pings of a server take, in microseconds.",
        &[("", |server| u64::try_from(server.latency.as_micros()).unwrap_or(u64::MAX))],
    ),
    of_servers(
        "proxysql_connpool_conns_status",
        Gauge,
        "A server's status: 1 ONLINE, 2 SHUNNED, 3 OFFLINE_SOFT, 4 OFFLINE_HARD, 5 SHUNNED_REPLICATION_LAG, 6 SHUNNED_AWS_BGD.",
        &[("", |server| status_number(server.status))],
    ),
];

/// A metric with a value for each hostgroup: stats_mysql_hostgroup_connection_pool.
pub(super) struct OfHostgroups {
    pub metric: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub value: fn(&HostgroupFigures) -> u64,
}

const fn of_hostgroups(
    metric: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&HostgroupFigures) -> u64,
) -> OfHostgroups {
    OfHostgroups { metric, kind, help, value }
}

/// Every one.
pub(super) const HOSTGROUPS: &[OfHostgroups] = &[
    of_hostgroups(
        "proxysql_hostgroup_acquisitions_total",
        Counter,
        "Times a statement got a connection of a hostgroup or the right to open one.",
        |hostgroup| hostgroup.given_out,
    ),
    of_hostgroups(
        "proxysql_hostgroup_waits_total",
        Counter,
        "Waits for a server of a hostgroup that have ended.",
        |hostgroup| hostgroup.waits.count,
    ),
    of_hostgroups(
        "proxysql_hostgroup_wait_time_us_total",
        Counter,
        "What these waits took, in microseconds.",
        |hostgroup| u64::try_from(hostgroup.waits.time.as_micros()).unwrap_or(u64::MAX),
    ),
    of_hostgroups(
        "proxysql_hostgroup_waiters",
        Gauge,
        "Sessions that wait for a server of a hostgroup.",
        |hostgroup| hostgroup.waits.waiting,
    ),
];
