//! What files for ProxySQL may say and pointsman has not: it is left out with a warning. All other names are mistakes.

/// Settings outside of sections that have no effect, and why.
pub(super) const GENERAL: &[(&str, &str)] = &[
    ("errorlog", "the log goes to standard error"),
    ("execute_on_exit_failure", "who starts pointsman sees its exit code"),
    ("restart_on_missing_heartbeats", "pointsman does not restart itself"),
];

/// Sections of modules that pointsman does not have. A section that has a table here is never looked up.
const SECTIONS: &[&str] = &[
    "clickhouse_*",
    "debug_*",
    "ldap_*",
    "mysql_aws_aurora_hostgroups",
    "mysql_firewall_*",
    "mysql_galera_hostgroups",
    "mysql_group_replication_hostgroups",
    "mysql_ldap_mapping",
    "pgsql_*",
    "restapi",
    "restapi_routes",
    "scheduler",
    "*_plugin",
    "uuid",
];

/// Variables that pointsman does not have. A name that has an entry in the registry is never looked up.
const VARIABLES: &[&str] = &[
    "admin-checksum_*",
    "admin-cluster_*",
    "admin-coredump_*",
    "admin-debug",
    "admin-hash_passwords",
    "admin-pgsql_ifaces",
    "admin-prometheus_memory_metrics_interval",
    "admin-restapi_*",
    "admin-ssl_keylog_file",
    "admin-stats_mysql_*",
    "admin-telnet_*",
    "admin-vacuum_stats",
    "admin-web_*",
    "mysql-add_ldap_user_comment",
    "mysql-auditlog_*",
    "mysql-auto_increment_delay_multiplex",
    "mysql-auto_increment_delay_multiplex_timeout_ms",
    "mysql-autocommit_false_*",
    "mysql-automatic_detect_sqli",
    "mysql-binlog_reader_connect_retry_msec",
    "mysql-client_multi_statements",
    "mysql-client_session_track_gtid",
    "mysql-data_packets_history_size",
    "mysql-default_character_set_*",
    "mysql-default_charset",
    "mysql-default_collation_connection",
    "mysql-default_isolation_level",
    "mysql-default_max_join_size",
    "mysql-default_net_write_timeout",
    "mysql-default_reconnect",
    "mysql-default_session_track_gtids",
    "mysql-default_sql_auto_is_null",
    "mysql-default_sql_mode",
    "mysql-default_sql_safe_updates",
    "mysql-default_sql_select_limit",
    "mysql-default_time_zone",
    "mysql-default_transaction_read",
    "mysql-default_tx_isolation",
    "mysql-enable_load_data_local_infile",
    "mysql-enforce_autocommit_on_reads",
    "mysql-eventslog_*",
    "mysql-ferr_*",
    "mysql-firewall_whitelist_*",
    "mysql-forward_autocommit",
    "mysql-handle_unknown_charset",
    "mysql-handle_warnings",
    "mysql-keep_multiplexing_variables",
    "mysql-ldap_user_variable",
    "mysql-log_mysql_warnings_enabled",
    "mysql-min_num_servers_lantency_awareness",
    "mysql-mirror_max_concurrency",
    "mysql-mirror_max_queue_length",
    "mysql-monitor_galera_*",
    "mysql-monitor_groupreplication_*",
    "mysql-monitor_query_status",
    "mysql-monitor_query_variables",
    "mysql-monitor_timer_cached",
    "mysql-processlist_max_query_length",
    "mysql-proxy_protocol_networks",
    "mysql-query_cache_*",
    "mysql-query_processor_iterations",
    "mysql-server_capabilities",
    "mysql-servers_stats",
    "mysql-session_idle_show_processlist",
    "mysql-sessions_sort",
    "mysql-set_parser_algorithm",
    "mysql-set_query_lock_on_hostgroup",
    "mysql-stats_time_*",
    "mysql-throttle_max_bytes_per_second_to_client",
    "mysql-throttle_ratio_server_to_client",
];

/// Whether a section is one of ProxySQL's.
pub(super) fn section(name: &str) -> bool {
    SECTIONS.iter().any(|pattern| matches(pattern, name))
}

/// Whether a variable is one of ProxySQL's.
pub(super) fn variable(name: &str) -> bool {
    VARIABLES.iter().any(|pattern| matches(pattern, name))
}

/// One `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((head, tail)) => {
            name.strip_prefix(head).is_some_and(|rest| rest.len() >= tail.len() && rest.ends_with(tail))
        }
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TABLES;
    use crate::variables::registry;

    #[test]
    fn what_pointsman_has_is_not_listed() {
        let variable = VARIABLES.iter().find(|name| registry::find(name).is_some());
        let section = SECTIONS.iter().find(|name| TABLES.iter().any(|table| table.name == **name));
        assert_eq!((variable, section), (None, None));
    }
}
