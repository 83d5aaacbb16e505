//! Every variable in force, with ProxySQL's name and range. `mysql-monitor_dns_server` is ours.

use super::kind::{Accepts, Field, Kind, VarDef};
use std::ops::RangeInclusive;

/// Access to a field of `Variables`.
macro_rules! field {
    ($($name:ident).+) => {
        Field { get: |variables| &variables.$($name).+, set: |variables| &mut variables.$($name).+ }
    };
}

const fn var(name: &'static str, kind: Kind, doc: &'static str) -> VarDef {
    VarDef { name, doc, kind }
}

/// A number without effect, and why it has none.
const fn inert(
    name: &'static str,
    default: &'static str,
    range: RangeInclusive<u64>,
    doc: &'static str,
) -> VarDef {
    VarDef { name, doc, kind: Kind::Inert { default, accepts: Accepts::Number(range) } }
}

/// A switch without effect, and why it has none.
const fn inert_switch(name: &'static str, default: &'static str, doc: &'static str) -> VarDef {
    VarDef { name, doc, kind: Kind::Inert { default, accepts: Accepts::Bool } }
}

const WEEK_MS: u64 = 604_800_000;
const TWENTY_DAYS_MS: u64 = 1_728_000_000;

/// The variables, in the order of their names.
pub const VARIABLES: &[VarDef] = &[
    var(
        "admin-admin_credentials",
        Kind::Credentials(field!(admin_credentials)),
        "Who may log in to the admin interface.",
    ),
    var(
        "admin-mysql_ifaces",
        Kind::Interfaces { field: field!(admin_interfaces), may_be_empty: false },
        "Where the admin interface listens.",
    ),
    var(
        "admin-read_only",
        Kind::Bool(field!(admin_read_only)),
        "Whether the tables and variables are refused to be changed; PROXYSQL READWRITE ends it.",
    ),
    inert(
        "admin-refresh_interval",
        "2000",
        101..=99_999,
        "Stored for compatibility; tables show what is the case when they are read.",
    ),
    var(
        "admin-stats_credentials",
        Kind::Credentials(field!(stats_credentials)),
        "Who may log in to the admin interface to read statistics.",
    ),
    var(
        "admin-stats_mysql_connection_pool",
        Kind::Number(field!(stats_mysql_connection_pool), 0..=300),
        "Seconds between samples of stats_mysql_connection_pool in stats_history; 0 for none.",
    ),
    var(
        "admin-stats_mysql_connections",
        Kind::Number(field!(stats_mysql_connections), 0..=300),
        "Seconds between samples of connections in stats_history; 0 for none.",
    ),
    var(
        "admin-stats_mysql_query_digest_to_disk",
        Kind::Number(field!(stats_mysql_query_digest_to_disk), 0..=86_400),
        "Seconds after which stats_mysql_query_digest is moved to stats_history; 0 for never.",
    ),
    var(
        "admin-stats_system_cpu",
        Kind::Number(field!(stats_system_cpu), 0..=600),
        "Seconds between samples of the processor time in stats_history; 0 for none.",
    ),
    var(
        "admin-stats_system_memory",
        Kind::Number(field!(stats_system_memory), 0..=600),
        "Seconds between samples of the memory in stats_history; 0 for none.",
    ),
    var("admin-version", Kind::Constant(crate::VERSION), "Version of this daemon."),
    var(
        "mysql-aws_blue_green_deployment_auto_discovery",
        Kind::Bit(field!(bgd_auto_discovery)),
        "Whether a blue/green topology that discovery finds makes a deployment of its own, until the next LOAD.",
    ),
    var(
        "mysql-aws_locality_awareness",
        Kind::Bool(field!(aws_locality_awareness)),
        "Whether servers near this proxy are chosen more often, as hostgroup_settings of their hostgroups say.",
    ),
    var(
        "mysql-client_host_cache_size",
        Kind::Size(field!(client_host_cache_size), 0..=1_048_576),
        "Most addresses of clients kept whose logins failed; 0 keeps none.",
    ),
    var(
        "mysql-client_host_error_counts",
        Kind::Size(field!(client_host_error_counts), 0..=1_048_576),
        "Failed logins after which an address is refused; 0 refuses none.",
    ),
    var(
        "mysql-commands_stats",
        Kind::Bool(field!(commands_stats)),
        "Whether statements are counted in stats_mysql_commands_counters.",
    ),
    var(
        "mysql-connect_retries_delay",
        Kind::Millis(field!(connect_retries_delay), 0..=10_000),
        "Pause between attempts to connect to a server.",
    ),
    var(
        "mysql-connect_retries_on_failure",
        Kind::Number(field!(connect_retries_on_failure), 0..=1_000),
        "Attempts after a first failure to connect to a server.",
    ),
    var(
        "mysql-connect_timeout_client",
        Kind::Millis(field!(connect_timeout_client), 500..=3_600_000),
        "Time a client has for its whole login.",
    ),
    var(
        "mysql-connect_timeout_server",
        Kind::Millis(field!(connect_timeout_server), 10..=120_000),
        "Time for one attempt to connect to a server.",
    ),
    var(
        "mysql-connect_timeout_server_max",
        Kind::Millis(field!(connect_timeout_server_max), 10..=3_600_000),
        "Longest time a statement waits for a usable server.",
    ),
    var(
        "mysql-connection_delay_multiplex_ms",
        Kind::Millis(field!(connection_delay_multiplex), 0..=300_000),
        "How long a session keeps its connection after each statement.",
    ),
    var(
        "mysql-connection_max_age_ms",
        Kind::Millis(field!(connection_max_age), 0..=86_400_000),
        "Age at which a connection to a server is closed instead of used again; 0 for never.",
    ),
    var(
        "mysql-connection_warming",
        Kind::Bool(field!(connection_warming)),
        "Whether connections are opened until a server has as many as may be free.",
    ),
    inert(
        "mysql-connpoll_reset_queue_length",
        "50",
        0..=10_000,
        "Stored for compatibility; a connection is reset when its session ends, and by its thread.",
    ),
    var(
        "mysql-default_authentication_plugin",
        Kind::Plugin(field!(default_plugin_sha2)),
        "Authentication plugin named in the greeting.",
    ),
    var(
        "mysql-default_max_latency_ms",
        Kind::Millis(field!(default_max_latency), 0..=TWENTY_DAYS_MS),
        "Longest ping of a server that is still chosen, where its max_latency_ms is 0; 0 for any.",
    ),
    var(
        "mysql-default_query_delay",
        Kind::Millis(field!(default_query_delay), 0..=3_600_000),
        "How long statements are held back, where no rule says.",
    ),
    var(
        "mysql-default_query_timeout",
        Kind::Millis(field!(default_query_timeout), 1_000..=TWENTY_DAYS_MS),
        "How long a statement may run before it is killed on its server.",
    ),
    var(
        "mysql-default_schema",
        Kind::Text(field!(default_schema)),
        "Schema of clients and users that name none; information_schema stands for none.",
    ),
    var(
        "mysql-enable_client_deprecate_eof",
        Kind::Bool(field!(enable_client_deprecate_eof)),
        "Whether clients may have result sets that end with OK instead of EOF.",
    ),
    var(
        "mysql-enable_server_deprecate_eof",
        Kind::Bool(field!(enable_server_deprecate_eof)),
        "Whether new connections to servers have result sets that end with OK instead of EOF.",
    ),
    var(
        "mysql-free_connections_pct",
        Kind::Number(field!(free_connections_pct), 0..=100),
        "Free connections kept to a server, in percent of its max_connections.",
    ),
    var(
        "mysql-have_compress",
        Kind::Bool(field!(have_compress)),
        "Whether clients may compress their connection.",
    ),
    var("mysql-have_ssl", Kind::Bool(field!(have_ssl)), "Whether clients are offered TLS."),
    inert(
        "mysql-hostgroup_manager_verbose",
        "1",
        0..=3,
        "Stored for compatibility; LOAD writes no tables to the log.",
    ),
    var(
        "mysql-init_connect",
        Kind::Text(field!(init_connect)),
        "Statement that new connections to servers begin with, where hostgroup attributes have none.",
    ),
    var(
        "mysql-interfaces",
        Kind::Interfaces { field: field!(mysql_interfaces), may_be_empty: true },
        "Where clients connect.",
    ),
    var(
        "mysql-kill_backend_connection_when_disconnect",
        Kind::Bool(field!(kill_backend_connection_when_disconnect)),
        "Whether the statement of a client that has gone is killed on its server.",
    ),
    inert_switch(
        "mysql-log_unhealthy_connections",
        "true",
        "Stored for compatibility; why a client's connection ended is logged at the level debug.",
    ),
    var(
        "mysql-long_query_time",
        Kind::Millis(field!(long_query_time), 0..=TWENTY_DAYS_MS),
        "How long a statement may take before it is counted as slow.",
    ),
    var(
        "mysql-max_allowed_packet",
        Kind::Size(field!(max_allowed_packet), 8_192..=1_073_741_824),
        "Largest packet a client may send, in bytes.",
    ),
    var(
        "mysql-max_connections",
        Kind::Size(field!(max_connections), 1..=1_000_000),
        "Most client connections at a time.",
    ),
    inert(
        "mysql-max_stmts_cache",
        "10000",
        1_024..=1_048_576,
        "Stored for compatibility; a statement's text is kept as long as a client has it open.",
    ),
    var(
        "mysql-max_stmts_per_connection",
        Kind::Size(field!(max_stmts_per_connection), 1..=1_024),
        "Most prepared statements kept on one connection to a server.",
    ),
    var(
        "mysql-max_transaction_idle_time",
        Kind::Millis(field!(max_transaction_idle_time), 1_000..=TWENTY_DAYS_MS),
        "How long a client may be idle inside a transaction.",
    ),
    var(
        "mysql-max_transaction_time",
        Kind::Millis(field!(max_transaction_time), 1_000..=TWENTY_DAYS_MS),
        "How long a transaction may be open.",
    ),
    var(
        "mysql-monitor_aws_rds_topology_discovery_interval",
        Kind::Number(field!(monitor_topology_discovery_interval), 0..=100_000),
        "Every how many read_only cycles RDS servers are asked for their topology; 0: never.",
    ),
    var(
        "mysql-monitor_connect_interval",
        Kind::Millis(field!(monitor_connect_interval), 100..=WEEK_MS),
        "How often a new connection to each server is tried.",
    ),
    var(
        "mysql-monitor_connect_timeout",
        Kind::Millis(field!(monitor_connect_timeout), 100..=600_000),
        "Time for the monitor to connect to a server.",
    ),
    var(
        "mysql-monitor_dns_server",
        Kind::Address(field!(dns_server)),
        "DNS server to ask instead of the system's resolver.",
    ),
    var("mysql-monitor_enabled", Kind::Bool(field!(monitor_enabled)), "Whether servers are monitored."),
    var(
        "mysql-monitor_history",
        Kind::Millis(field!(monitor_history), 1_000..=WEEK_MS),
        "How long the monitor's logs go back.",
    ),
    var(
        "mysql-monitor_local_dns_cache_refresh_interval",
        Kind::Millis(field!(dns_cache_refresh_interval), 0..=WEEK_MS),
        "How often the DNS cache looks for names to refresh; 0 disables the cache.",
    ),
    var(
        "mysql-monitor_local_dns_cache_ttl",
        Kind::Millis(field!(dns_cache_ttl), 0..=WEEK_MS),
        "How long an entry of the DNS cache lives; 0 disables the cache.",
    ),
    inert(
        "mysql-monitor_local_dns_resolver_queue_maxsize",
        "128",
        16..=1_024,
        "Stored for compatibility; each name is asked for once at a time, so that no queue grows.",
    ),
    var(
        "mysql-monitor_password",
        Kind::Secret(field!(monitor_password)),
        "Password the monitor logs in with.",
    ),
    var(
        "mysql-monitor_ping_interval",
        Kind::Millis(field!(monitor_ping_interval), 100..=WEEK_MS),
        "How often servers are pinged; idle monitor connections are kept ten times as long.",
    ),
    var(
        "mysql-monitor_ping_max_failures",
        Kind::Number(field!(monitor_ping_max_failures), 1..=1_000_000),
        "Pings in a row without answer after which a server is shunned and loses its connections.",
    ),
    var(
        "mysql-monitor_ping_timeout",
        Kind::Millis(field!(monitor_ping_timeout), 100..=600_000),
        "Time for the answer to a ping.",
    ),
    inert(
        "mysql-monitor_query_interval",
        "60000",
        100..=WEEK_MS,
        "Stored for compatibility; no check has it.",
    ),
    inert("mysql-monitor_query_timeout", "100", 100..=600_000, "Stored for compatibility; no check has it."),
    var(
        "mysql-monitor_read_only_interval",
        Kind::Millis(field!(monitor_read_only_interval), 100..=WEEK_MS),
        "How often read_only is checked.",
    ),
    var(
        "mysql-monitor_read_only_max_timeout_count",
        Kind::Number(field!(monitor_read_only_max_timeout_count), 1..=1_000_000),
        "Consecutive timeouts after which a server is taken to be read-only.",
    ),
    var(
        "mysql-monitor_read_only_timeout",
        Kind::Millis(field!(monitor_read_only_timeout), 100..=600_000),
        "Time for one read_only check.",
    ),
    var(
        "mysql-monitor_replication_lag_count",
        Kind::Number(field!(monitor_replication_lag_count), 1..=10),
        "Checks in a row that must find a replica late before it is shunned.",
    ),
    inert_switch(
        "mysql-monitor_replication_lag_group_by_host",
        "false",
        "Stored for compatibility; a server in several hostgroups is always asked once.",
    ),
    var(
        "mysql-monitor_replication_lag_interval",
        Kind::Millis(field!(monitor_replication_lag_interval), 100..=WEEK_MS),
        "How often replicas with max_replication_lag are asked how late they are.",
    ),
    var(
        "mysql-monitor_replication_lag_timeout",
        Kind::Millis(field!(monitor_replication_lag_timeout), 100..=600_000),
        "Time for one replication lag check.",
    ),
    var(
        "mysql-monitor_replication_lag_use_percona_heartbeat",
        Kind::Table(field!(monitor_replication_lag_heartbeat)),
        "Table that pt-heartbeat keeps, to tell the lag instead of the replica's status.",
    ),
    var(
        "mysql-monitor_slave_lag_when_null",
        Kind::Number(field!(monitor_slave_lag_when_null), 0..=604_800),
        "What to take an unknown lag for, in seconds: that of a replica that does not replicate.",
    ),
    var(
        "mysql-monitor_threads_max",
        Kind::Size(field!(monitor_threads_max), 4..=1_024),
        "Most threads that check servers at a time.",
    ),
    var(
        "mysql-monitor_threads_min",
        Kind::Size(field!(monitor_threads_min), 2..=256),
        "Threads that stay when there is nothing to check.",
    ),
    inert(
        "mysql-monitor_threads_queue_maxsize",
        "128",
        16..=1_024,
        "Stored for compatibility; at most one check of each kind is queued for a server.",
    ),
    var("mysql-monitor_username", Kind::Text(field!(monitor_username)), "User the monitor logs in as."),
    var(
        "mysql-monitor_wait_timeout",
        Kind::Bool(field!(monitor_wait_timeout)),
        "Whether servers are told to close monitor connections that nobody uses any more.",
    ),
    var(
        "mysql-monitor_writer_is_also_reader",
        Kind::Bool(field!(monitor_writer_is_also_reader)),
        "Whether a server that becomes writer stays in the reader hostgroup.",
    ),
    var(
        "mysql-multiplexing",
        Kind::Bool(field!(multiplexing)),
        "Whether server connections are shared between clients.",
    ),
    var(
        "mysql-ping_interval_server_msec",
        Kind::Millis(field!(ping_interval_server), 1_000..=WEEK_MS),
        "How often free connections to servers are pinged, so that servers keep them.",
    ),
    var(
        "mysql-ping_timeout_server",
        Kind::Millis(field!(ping_timeout_server), 10..=600_000),
        "Time for a free connection to answer a ping.",
    ),
    inert(
        "mysql-poll_timeout",
        "2000",
        10..=20_000,
        "Stored for compatibility; threads sleep until something happens.",
    ),
    inert(
        "mysql-poll_timeout_on_failure",
        "100",
        10..=20_000,
        "Stored for compatibility; threads sleep until something happens.",
    ),
    var(
        "mysql-query_digests",
        Kind::Bool(field!(query_digests.enabled)),
        "Whether statements are counted in stats_mysql_query_digest.",
    ),
    var(
        "mysql-query_digests_grouping_limit",
        Kind::Size(field!(query_digests.grouping_limit), 1..=2_089),
        "Values of a list that a digest shows before it says `...`.",
    ),
    var(
        "mysql-query_digests_groups_grouping_limit",
        Kind::Size(field!(query_digests.groups_grouping_limit), 1..=2_089),
        "Lists in parentheses that a digest shows before it says `...`.",
    ),
    var(
        "mysql-query_digests_keep_comment",
        Kind::Bool(field!(query_digests.keep_comment)),
        "Whether digests keep comments.",
    ),
    var(
        "mysql-query_digests_lowercase",
        Kind::Bool(field!(query_digests.lowercase)),
        "Whether digests are in lower case.",
    ),
    var(
        "mysql-query_digests_max_digest_length",
        Kind::Size(field!(query_digests.max_digest_length), 16..=1_048_576),
        "Longest text of a digest, in bytes.",
    ),
    var(
        "mysql-query_digests_max_query_length",
        Kind::Size(field!(query_digests.max_query_length), 16..=16_777_216),
        "How much of a statement its digest is made of, in bytes.",
    ),
    var(
        "mysql-query_digests_no_digits",
        Kind::Bool(field!(query_digests.no_digits)),
        "Whether digits in names become `?` in digests.",
    ),
    var(
        "mysql-query_digests_replace_null",
        Kind::Bool(field!(query_digests.replace_null)),
        "Whether NULL becomes `?` in digests.",
    ),
    var(
        "mysql-query_digests_track_hostname",
        Kind::Bool(field!(query_digests.track_hostname)),
        "Whether statements are counted by the client's address, too.",
    ),
    inert(
        "mysql-query_processor_regex",
        "1",
        1..=2,
        "Stored for compatibility; there is one kind of regular expressions.",
    ),
    var(
        "mysql-query_retries_on_failure",
        Kind::Number(field!(query_retries_on_failure), 0..=1_000),
        "Whether a statement that its server cannot have read is sent once more; 0 for no.",
    ),
    inert(
        "mysql-reset_connection_algorithm",
        "2",
        1..=2,
        "Stored for compatibility; connections are reset by COM_RESET_CONNECTION, and none waits for it.",
    ),
    var(
        "mysql-resolution_family",
        Kind::Family(field!(resolution_family)),
        "Addresses the DNS cache asks for: system (any), ipv4 or ipv6.",
    ),
    var(
        "mysql-select_version_forwarding",
        Kind::Number(field!(select_version_forwarding), 0..=3),
        "Who answers SELECT VERSION(): 0 the proxy, 1 the server, 2 a pooled connection's version or the proxy, 3 the same or \
         the server.",
    ),
    var("mysql-server_version", Kind::Version(field!(server_version)), "Version that clients are told."),
    inert(
        "mysql-session_idle_ms",
        "1",
        1..=3_600_000,
        "Stored for compatibility; there is no thread for idle sessions.",
    ),
    inert(
        "mysql-show_processlist_extended",
        "0",
        0..=2,
        "Stored for compatibility; extended_info is always there.",
    ),
    var(
        "mysql-shun_on_failures",
        Kind::Number(field!(shun_on_failures), 0..=10_000_000),
        "Failures within a second that shun a server.",
    ),
    var(
        "mysql-shun_recovery_time_sec",
        Kind::Seconds(field!(shun_recovery_time), 0..=31_536_000),
        "How long a shunned server rests, in seconds; a tenth of it where no other server is left.",
    ),
    var(
        "mysql-ssl_p2s_ca",
        Kind::Text(field!(ssl_p2s.ca)),
        "File of the CAs that certificates of servers must come from; where none is named, none is verified.",
    ),
    var(
        "mysql-ssl_p2s_capath",
        Kind::Text(field!(ssl_p2s.capath)),
        "Directory of such CAs, by the hashes of their names.",
    ),
    var(
        "mysql-ssl_p2s_cert",
        Kind::Text(field!(ssl_p2s.cert)),
        "Our certificate, for servers that ask for one.",
    ),
    var(
        "mysql-ssl_p2s_cipher",
        Kind::Text(field!(ssl_p2s.cipher)),
        "Ciphers for TLS 1.2 with servers, as OpenSSL names them.",
    ),
    var(
        "mysql-ssl_p2s_crl",
        Kind::Text(field!(ssl_p2s.crl)),
        "List of certificates that are not valid any more.",
    ),
    var(
        "mysql-ssl_p2s_crlpath",
        Kind::Text(field!(ssl_p2s.crlpath)),
        "Directory of such lists, by the hashes of their names.",
    ),
    var("mysql-ssl_p2s_key", Kind::Text(field!(ssl_p2s.key)), "Its key."),
    inert(
        "mysql-stacksize",
        "1048576",
        262_144..=4_194_304,
        "Stored for compatibility; stacks have the sizes that their threads need.",
    ),
    var(
        "mysql-tcp_keepalive_time",
        Kind::Seconds(field!(tcp_keepalive_time), 0..=7_200),
        "After how long a silence, in seconds; 0 for the default.",
    ),
    inert("mysql-threads", "4", 1..=255, "Stored for compatibility; every client has a thread."),
    inert(
        "mysql-threshold_query_length",
        "524288",
        1_024..=1_073_741_824,
        "Stored for compatibility; statements of any length go the same way.",
    ),
    inert(
        "mysql-threshold_resultset_size",
        "4194304",
        1_024..=1_073_741_824,
        "Stored for compatibility; answers are passed on as they come, whatever their size.",
    ),
    var(
        "mysql-throttle_connections_per_sec_to_hostgroup",
        Kind::Number(field!(throttle_connections_per_sec), 1..=100_000_000),
        "Most connections to servers opened in a second, for each hostgroup.",
    ),
    var(
        "mysql-unshun_algorithm",
        Kind::Number(field!(unshun_algorithm), 0..=1),
        "Where a shunned server comes back: 0 in the hostgroup that needs it, 1 in all of its hostgroups.",
    ),
    var(
        "mysql-use_tcp_keepalive",
        Kind::Bool(field!(use_tcp_keepalive)),
        "Whether peers that are silent are asked by TCP for a sign of life.",
    ),
    inert_switch(
        "mysql-verbose_query_error",
        "false",
        "Stored for compatibility; the errors that servers answer are not logged.",
    ),
    var(
        "mysql-wait_timeout",
        Kind::Millis(field!(wait_timeout), 0..=TWENTY_DAYS_MS),
        "How long a client may be idle.",
    ),
    var(
        "sqliteserver-mysql_ifaces",
        Kind::Interfaces { field: field!(sqliteserver_interfaces), may_be_empty: true },
        "Where the SQLite server listens.",
    ),
    inert_switch(
        "sqliteserver-read_only",
        "false",
        "Stored for compatibility; statements that write are not refused.",
    ),
];

/// The variable of that name (names have no case).
pub fn find(name: &str) -> Option<&'static VarDef> {
    VARIABLES.iter().find(|var| var.name.eq_ignore_ascii_case(name))
}
