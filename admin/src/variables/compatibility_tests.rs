//! docs/compatibility.md says of every variable of ProxySQL's what has become of it, and says the truth.

use super::kind::{Kind, VarDef};
use super::registry::{VARIABLES, find};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/compatibility.md");

/// ProxySQL's variables for MySQL, its admin interface and its SQLite3 server.
const PROXYSQLS: &[(&str, &str)] = &[
    (
        "mysql",
        "aws_blue_green_deployment_auto_discovery aws_locality_awareness commands_stats connect_retries_delay \
         connect_retries_on_failure connect_timeout_client connect_timeout_server connect_timeout_server_max \
         connection_delay_multiplex_ms connection_max_age_ms connection_warming connpoll_reset_queue_length \
         default_authentication_plugin default_max_latency_ms default_query_delay default_query_timeout default_schema \
         enable_client_deprecate_eof enable_server_deprecate_eof eventslog_default_log eventslog_filename \
         eventslog_filesize eventslog_format auditlog_filename free_connections_pct have_compress have_ssl \
         hostgroup_manager_verbose init_connect interfaces kill_backend_connection_when_disconnect log_unhealthy_connections \
         long_query_time max_allowed_packet max_connections max_stmts_cache max_stmts_per_connection \
         max_transaction_idle_time max_transaction_time multiplexing ping_interval_server_msec ping_timeout_server \
         poll_timeout poll_timeout_on_failure query_digests query_retries_on_failure reset_connection_algorithm \
         resolution_family select_version_forwarding server_capabilities server_version session_idle_ms \
         show_processlist_extended shun_on_failures shun_recovery_time_sec stacksize tcp_keepalive_time threads \
         threshold_query_length threshold_resultset_size throttle_connections_per_sec_to_hostgroup unshun_algorithm \
         ssl_p2s_ca ssl_p2s_capath ssl_p2s_cert ssl_p2s_cipher ssl_p2s_crl ssl_p2s_crlpath ssl_p2s_key \
         use_tcp_keepalive verbose_query_error wait_timeout",
    ),
    (
        "mysql-monitor",
        "aws_rds_topology_discovery_interval connect_interval connect_timeout enabled history local_dns_cache_ttl \
         local_dns_cache_refresh_interval local_dns_resolver_queue_maxsize password ping_interval ping_max_failures \
         ping_timeout query_interval query_timeout read_only_interval read_only_max_timeout_count read_only_timeout \
         replication_lag_count replication_lag_group_by_host replication_lag_interval replication_lag_timeout \
         replication_lag_use_percona_heartbeat slave_lag_when_null threads_max threads_min threads_queue_maxsize \
         username wait_timeout writer_is_also_reader galera_healthcheck_interval galera_healthcheck_timeout \
         galera_healthcheck_max_timeout_count groupreplication_healthcheck_interval \
         groupreplication_healthcheck_timeout groupreplication_healthcheck_max_timeout_count",
    ),
    (
        "admin",
        "admin_credentials stats_credentials mysql_ifaces refresh_interval read_only version vacuum_stats restapi_enabled \
         restapi_port web_enabled web_port web_verbosity cluster_username cluster_password cluster_check_interval_ms \
         cluster_check_status_frequency cluster_mysql_servers_diffs_before_sync cluster_mysql_servers_save_to_disk \
         cluster_mysql_servers_sync_algorithm checksum_mysql_servers checksum_mysql_users \
         checksum_mysql_query_rules stats_mysql_connection_pool stats_mysql_connections stats_mysql_query_cache \
         stats_system_cpu stats_system_memory stats_mysql_query_digest_to_disk prometheus_memory_metrics_interval \
         ssl_keylog_file telnet_admin_ifaces telnet_stats_ifaces",
    ),
    ("sqliteserver", "mysql_ifaces read_only"),
];

fn proxysqls() -> impl Iterator<Item = String> {
    PROXYSQLS.iter().flat_map(|(module, names)| {
        let separator = if module.contains('-') { '_' } else { '-' };
        names.split_whitespace().map(move |name| format!("{module}{separator}{name}"))
    })
}

/// What the page's section says, by the names in the first column of its rows.
fn told() -> BTreeMap<String, &'static str> {
    let section = PAGE.split("\n## Variables\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut told = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let (names, words) = row.trim_matches('|').split_once('|').unwrap();
        for name in names.split(',') {
            let name = name.trim().trim_matches('`').to_owned();
            assert!(told.insert(name.clone(), words.trim()).is_none(), "{name} has two rows");
        }
    }
    told
}

#[test]
fn every_variable_of_proxysqls_has_its_row() {
    let told = told();
    let missing: Vec<String> = proxysqls().filter(|name| !told.contains_key(name)).collect();
    assert!(missing.is_empty(), "without a row in docs/compatibility.md: {missing:?}");
}

fn is_inert(var: &VarDef) -> bool {
    matches!(var.kind, Kind::Inert { .. })
}

#[test]
fn rows_say_what_the_registry_does() {
    for (name, words) in told() {
        let becomes = match find(&name) {
            None => "absent: ",
            Some(var) if is_inert(var) => "accepted, without effect: ",
            Some(_) if words.starts_with("better: ") => "better: ",
            Some(_) => "same",
        };
        assert!(words.starts_with(becomes), "{name}: '{words}' is not '{becomes}'");
    }
}

#[test]
fn variables_without_effect_say_why() {
    for var in VARIABLES.iter().filter(|var| is_inert(var)) {
        assert!(var.doc.starts_with("Stored for compatibility; "), "{}", var.name);
    }
}
