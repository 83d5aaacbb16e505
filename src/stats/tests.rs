//! The tables of `stats`, `monitor` and `stats_history` beside ProxySQL's, and what docs/compatibility.md says of them.

use super::*;
use crate::monitor::probe::Probes;
use crate::runtime::monitor_tables;
use admin::Variables;
use admin::history::History;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// Parts that have counted nothing, and a monitor of no servers.
pub(super) fn sources() -> Sources {
    let config = Arc::new(Config::new(Variables::default()));
    let dns = Dns::new(Arc::clone(&config), None);
    let backends = Arc::new(Backends::new(Arc::clone(&config), Arc::clone(&dns)));
    let probes = Arc::new(Probes::new(Arc::clone(&config)));
    let parts = (Arc::clone(&config), Arc::clone(&backends), Arc::clone(&dns));
    let monitor = Monitor::start(parts.0, parts.1, parts.2, probes, Arc::default(), Arc::default()).unwrap();
    let statistics = Arc::<Statistics>::default();
    let sessions = Sessions::new(Arc::clone(&config), Arc::clone(&backends), Arc::clone(&statistics));
    Sources {
        config,
        backends,
        sessions: Arc::new(sessions),
        statistics,
        dns,
        monitor: Some(Arc::new(monitor)),
        refused: Arc::default(),
        servers_version: Arc::default(),
    }
}

const POOL: &str = "hostgroup srv_host srv_port status ConnUsed ConnFree ConnOK ConnERR MaxConnUsed Queries Queries_GTID_sync \
                    Bytes_data_sent Bytes_data_recv Latency_us";
const DIGEST: &str = "hostgroup schemaname username client_address digest digest_text count_star first_seen last_seen sum_time \
                      min_time max_time sum_rows_affected sum_rows_sent";
const ERRORS: &str = "hostgroup hostname port username client_address schemaname errno count_star first_seen last_seen last_error";
const ERRORS_KEY: &str = "hostgroup hostname port username schemaname errno";
const HOSTGROUPS: &str = "hostgroup acquisitions_total waits_total wait_time_us_total waiters";
const CHECK: &str = "hostname port time_start_us";

/// ProxySQL's tables: name, columns, key. Of what is not known of a key nothing is said (`?`).
const TABLES: &[(&str, &str, &str)] = &[
    ("stats_mysql_connection_pool", POOL, ""),
    ("stats_mysql_connection_pool_reset", POOL, ""),
    ("stats_mysql_global", "Variable_Name Variable_Value", "Variable_Name"),
    ("stats_memory_metrics", "Variable_Name Variable_Value", "Variable_Name"),
    (
        "stats_mysql_processlist",
        "ThreadID SessionID user db cli_host cli_port hostgroup l_srv_host l_srv_port srv_host srv_port command time_ms info \
         status_flags extended_info",
        "SessionID",
    ),
    ("stats_mysql_query_digest", DIGEST, "hostgroup schemaname username client_address digest"),
    ("stats_mysql_query_digest_reset", DIGEST, "hostgroup schemaname username client_address digest"),
    (
        "stats_mysql_commands_counters",
        "Command Total_Time_us Total_cnt cnt_100us cnt_500us cnt_1ms cnt_5ms cnt_10ms cnt_50ms cnt_100ms cnt_500ms cnt_1s cnt_5s \
         cnt_10s cnt_INFs",
        "Command",
    ),
    ("stats_mysql_errors", ERRORS, ERRORS_KEY),
    ("stats_mysql_errors_reset", ERRORS, ERRORS_KEY),
    ("stats_mysql_users", "username frontend_connections frontend_max_connections", "username"),
    (
        "stats_mysql_free_connections",
        "fd hostgroup srv_host srv_port user schema init_connect time_zone sql_mode autocommit idle_ms statistics mysql_info",
        "",
    ),
    ("stats_mysql_query_rules", "rule_id hits", "rule_id"),
    ("stats_mysql_client_host_cache", "client_address error_count last_updated", "?"),
    ("stats_mysql_client_host_cache_reset", "client_address error_count last_updated", "?"),
    ("stats_mysql_hostgroup_connection_pool", HOSTGROUPS, "hostgroup"),
    ("stats_mysql_hostgroup_connection_pool_reset", HOSTGROUPS, "hostgroup"),
    ("mysql_server_connect_log", "hostname port time_start_us connect_success_time_us connect_error", CHECK),
    ("mysql_server_ping_log", "hostname port time_start_us ping_success_time_us ping_error", CHECK),
    ("mysql_server_read_only_log", "hostname port time_start_us success_time_us read_only error", CHECK),
    ("mysql_server_replication_lag_log", "hostname port time_start_us success_time_us repl_lag error", CHECK),
];

/// ProxySQL's tables whose columns are not known, or that are there without being compared.
const MORE_TABLES: &str = "stats_proxysql_global stats_tls_certificates stats_tsdb stats_mysql_passthrough_auth_* \
    stats_mysql_gtid_executed stats_mysql_prepared_statements_info stats_mysql_query_events stats_proxysql_servers_* \
    stats_proxysql_message_metrics mysql_connections myhgm_connections system_cpu system_memory mysql_query_cache \
    history_mysql_status_variables history_stats_mysql_connection_pool history_mysql_query_digest history_mysql_query_events";

/// ProxySQL's names in stats_mysql_global.
const GLOBAL: &str = "ProxySQL_Uptime Active_Transactions Client_Connections_aborted Client_Connections_connected \
    Client_Connections_connected_prim_pass Client_Connections_connected_addl_pass Client_Connections_created \
    Client_Connections_non_idle Client_Connections_hostgroup_locked Server_Connections_aborted Server_Connections_connected \
    Server_Connections_created Server_Connections_delayed mysql_backend_buffers_bytes mysql_frontend_buffers_bytes \
    mysql_session_internal_bytes Com_autocommit Com_autocommit_filtered Com_commit Com_commit_filtered Com_rollback \
    Com_rollback_filtered Com_backend_change_user Com_backend_init_db Com_backend_set_names Com_backend_stmt_prepare \
    Com_backend_stmt_execute Com_backend_stmt_close Com_frontend_init_db Com_frontend_set_names Com_frontend_use_db \
    Com_frontend_stmt_prepare Com_frontend_stmt_execute Com_frontend_stmt_close Questions Slow_queries GTID_consistent_queries \
    GTID_session_collected Queries_backends_bytes_recv Queries_backends_bytes_sent Queries_frontends_bytes_recv \
    Queries_frontends_bytes_sent Query_Processor_time_nsec Backend_query_time_nsec ConnPool_get_conn_latency_awareness \
    ConnPool_get_conn_immediate ConnPool_get_conn_success ConnPool_get_conn_failure mysql_killed_backend_connections \
    mysql_killed_backend_queries hostgroup_locked_set_cmds hostgroup_locked_queries mysql_unexpected_frontend_com_quit \
    mysql_unexpected_frontend_packets queries_with_max_lag_ms backend_lagging_during_query backend_offline_during_query \
    get_aws_aurora_replicas_skipped_during_query automatic_detected_sql_injection mysql_whitelisted_sqli_fingerprint \
    max_connect_timeouts generated_error_packets client_host_error_killed_connections Mirror_concurrency Mirror_queue_length \
    Servers_table_version MySQL_Thread_Workers Access_Denied_Wrong_Password Access_Denied_Max_Connections \
    Access_Denied_Max_User_Connections MySQL_Monitor_Workers MySQL_Monitor_Workers_Aux MySQL_Monitor_Workers_Started \
    MySQL_Monitor_connect_check_OK MySQL_Monitor_connect_check_ERR MySQL_Monitor_ping_check_OK MySQL_Monitor_ping_check_ERR \
    MySQL_Monitor_read_only_check_OK MySQL_Monitor_read_only_check_ERR MySQL_Monitor_replication_lag_check_OK \
    MySQL_Monitor_replication_lag_check_ERR MySQL_Monitor_dns_cache_queried MySQL_Monitor_dns_cache_lookup_success \
    MySQL_Monitor_dns_cache_record_updated MyHGM_myconnpoll_get MyHGM_myconnpoll_get_ok MyHGM_myconnpoll_push \
    MyHGM_myconnpoll_destroy MyHGM_myconnpoll_reset Query_Cache_* SQLite3_memory_bytes ConnPool_memory_bytes";

/// ProxySQL's names in stats_memory_metrics.
const MEMORY: &str = "SQLite3_memory_bytes jemalloc_* Auth_memory mysql_query_digest_memory mysql_query_rules_memory \
    mysql_firewall_* stack_memory_mysql_threads stack_memory_admin_threads stack_memory_cluster_threads";

fn all_tables() -> (Vec<LiveTable>, tempfile::TempDir) {
    let sources = sources();
    let dir = tempfile::tempdir().unwrap();
    let history = Arc::new(History::open(dir.path()).unwrap());
    let mut all = tables(&sources);
    all.extend(monitor_tables(sources.monitor.as_ref()));
    all.extend(history.tables());
    (all, dir)
}

/// The table's columns, all or those of its key, in order.
fn columns(table: &LiveTable, order: &str) -> String {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(table.ddl).unwrap();
    let sql = format!(
        "SELECT COALESCE(group_concat(name, ' '), '') FROM (SELECT name FROM pragma_table_info(?1) {order})"
    );
    conn.query_row(&sql, [table.name], |row| row.get(0)).unwrap()
}

#[test]
fn tables_have_proxysqls_columns_and_keys() {
    let (all, _dir) = all_tables();
    for (name, expected, key) in TABLES {
        let table = all.iter().find(|table| table.name == *name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(columns(table, "ORDER BY cid"), *expected, "{name}");
        if *key != "?" {
            assert_eq!(columns(table, "WHERE pk > 0 ORDER BY pk"), *key, "{name}");
        }
    }
}

#[test]
fn rows_have_as_many_cells_as_their_table_has_columns() {
    let (all, _dir) = all_tables();
    for table in all {
        let count = columns(&table, "ORDER BY cid").split(' ').count();
        assert!((table.rows)().iter().all(|row| row.len() == count), "{}", table.name);
    }
}

/// Names between backticks in the first column of the page's tables, with the other column's text.
fn told() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../docs/compatibility.md");
    let section = page.split("\n## Stats tables and counters\n").nth(1).unwrap();
    let section = section.split("\n## Variables\n").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.filter_map(|row| row.trim_matches('|').split_once(" | "));
    cells
        .flat_map(|(names, words)| names.split('`').skip(1).step_by(2).map(move |name| (name, words.trim())))
        .collect()
}

#[test]
fn what_is_proxysqls_and_not_here_is_told() {
    let (all, _dir) = all_tables();
    let sources = sources();
    let mut here: BTreeSet<String> = all.iter().map(|table| table.name.to_owned()).collect();
    here.extend(sources.global().into_iter().map(|(name, _)| name));
    here.extend(sources.memory().into_iter().map(|(name, _)| name.to_owned()));
    let absent: BTreeSet<_> =
        told().into_iter().filter(|(_, words)| words.starts_with("absent")).map(|(name, _)| name).collect();
    let tables = TABLES.iter().map(|(name, ..)| *name).chain(MORE_TABLES.split_whitespace());
    let names = tables.chain(GLOBAL.split_whitespace()).chain(MEMORY.split_whitespace());
    let untold: Vec<_> = names.filter(|name| here.contains(*name) == absent.contains(name)).collect();
    assert!(untold.is_empty(), "neither here nor told to be absent, or both: {untold:?}");
    let wrong: Vec<_> = absent.iter().filter(|name| here.contains(**name)).collect();
    assert!(wrong.is_empty(), "told to be absent: {wrong:?}");
}
