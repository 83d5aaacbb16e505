//! The variables: one typed struct, one registry entry each.

#[cfg(test)]
mod compatibility_tests;
pub mod kind;
pub mod registry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use wire::tls::ClientFiles;

/// Which addresses `mysql-resolution_family` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolutionFamily {
    /// Any
    System,
    /// IPv4 only
    Ipv4,
    /// IPv6 only
    Ipv6,
}

/// What `mysql-query_digests` and its relatives say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryDigests {
    /// mysql-query_digests: statements are counted
    pub enabled: bool,
    /// mysql-query_digests_lowercase
    pub lowercase: bool,
    /// mysql-query_digests_replace_null
    pub replace_null: bool,
    /// mysql-query_digests_no_digits
    pub no_digits: bool,
    /// mysql-query_digests_keep_comment
    pub keep_comment: bool,
    /// mysql-query_digests_track_hostname
    pub track_hostname: bool,
    /// mysql-query_digests_grouping_limit: values of a list that are shown
    pub grouping_limit: usize,
    /// mysql-query_digests_groups_grouping_limit: lists of a list that are shown
    pub groups_grouping_limit: usize,
    /// mysql-query_digests_max_digest_length, bytes
    pub max_digest_length: usize,
    /// mysql-query_digests_max_query_length, bytes
    pub max_query_length: usize,
}

impl Default for QueryDigests {
    fn default() -> Self {
        Self {
            enabled: true,
            lowercase: false,
            replace_null: true,
            no_digits: false,
            keep_comment: false,
            track_hostname: false,
            grouping_limit: 3,
            groups_grouping_limit: 10,
            max_digest_length: 2_048,
            max_query_length: 65_000,
        }
    }
}

/// All variables in force. Field names follow the variables' names; durations are typed.
#[derive(Clone, PartialEq)]
pub struct Variables {
    /// admin-admin_credentials, user and password pairs
    pub admin_credentials: Vec<(String, String)>,
    /// admin-stats_credentials, user and password pairs
    pub stats_credentials: Vec<(String, String)>,
    /// admin-stats_mysql_connection_pool (s): between samples; 0 for none
    pub stats_mysql_connection_pool: u32,
    /// admin-stats_mysql_connections (s)
    pub stats_mysql_connections: u32,
    /// admin-stats_mysql_query_digest_to_disk (s)
    pub stats_mysql_query_digest_to_disk: u32,
    /// admin-stats_system_cpu (s)
    pub stats_system_cpu: u32,
    /// admin-stats_system_memory (s)
    pub stats_system_memory: u32,
    /// admin-read_only
    pub admin_read_only: bool,
    /// admin-mysql_ifaces
    pub admin_interfaces: String,
    /// mysql-interfaces
    pub mysql_interfaces: String,
    /// sqliteserver-mysql_ifaces
    pub sqliteserver_interfaces: String,
    /// mysql-server_version
    pub server_version: String,
    /// mysql-default_authentication_plugin is caching_sha2_password (else mysql_native_password)
    pub default_plugin_sha2: bool,
    /// mysql-max_allowed_packet, bytes
    pub max_allowed_packet: usize,
    /// mysql-max_connections
    pub max_connections: usize,
    /// mysql-wait_timeout (ms)
    pub wait_timeout: Duration,
    /// mysql-client_host_cache_size: most addresses of clients kept whose logins failed
    pub client_host_cache_size: usize,
    /// mysql-client_host_error_counts: failed logins after which an address is refused
    pub client_host_error_counts: usize,
    /// mysql-commands_stats: statements are counted by their first words
    pub commands_stats: bool,
    /// mysql-long_query_time (ms): a statement that takes longer is counted as slow
    pub long_query_time: Duration,
    /// mysql-default_query_timeout (ms): a statement that runs longer is killed on its server
    pub default_query_timeout: Duration,
    /// mysql-max_transaction_time (ms)
    pub max_transaction_time: Duration,
    /// mysql-max_transaction_idle_time (ms)
    pub max_transaction_idle_time: Duration,
    /// mysql-kill_backend_connection_when_disconnect
    pub kill_backend_connection_when_disconnect: bool,
    /// mysql-enable_client_deprecate_eof
    pub enable_client_deprecate_eof: bool,
    /// mysql-enable_server_deprecate_eof
    pub enable_server_deprecate_eof: bool,
    /// mysql-select_version_forwarding
    pub select_version_forwarding: u32,
    /// mysql-have_compress
    pub have_compress: bool,
    /// mysql-have_ssl
    pub have_ssl: bool,
    /// mysql-multiplexing
    pub multiplexing: bool,
    /// mysql-max_stmts_per_connection
    pub max_stmts_per_connection: usize,
    /// mysql-free_connections_pct
    pub free_connections_pct: u32,
    /// mysql-init_connect: statement for new connections to servers, where hostgroup attributes have none; or empty
    pub init_connect: String,
    /// mysql-connection_warming: connections are opened until there are so many as may be free
    pub connection_warming: bool,
    /// mysql-throttle_connections_per_sec_to_hostgroup: most connections opened in a second, for each hostgroup
    pub throttle_connections_per_sec: u32,
    /// mysql-ping_interval_server_msec: how long a free connection is left alone
    pub ping_interval_server: Duration,
    /// mysql-ping_timeout_server (ms)
    pub ping_timeout_server: Duration,
    /// mysql-use_tcp_keepalive
    pub use_tcp_keepalive: bool,
    /// mysql-tcp_keepalive_time, seconds; zero for the default
    pub tcp_keepalive_time: Duration,
    /// mysql-ssl_p2s_ca and its relatives: TLS with servers that mysql_servers_ssl_params says nothing of
    pub ssl_p2s: ClientFiles,
    /// mysql-query_retries_on_failure: zero for none
    pub query_retries_on_failure: u32,
    /// mysql-default_query_delay (ms): how long statements are held back where no rule says
    pub default_query_delay: Duration,
    /// mysql-default_schema
    pub default_schema: String,
    /// mysql-connection_max_age_ms; zero for any age
    pub connection_max_age: Duration,
    /// mysql-connection_delay_multiplex_ms
    pub connection_delay_multiplex: Duration,
    /// mysql-connect_timeout_client (ms): the whole login of a client
    pub connect_timeout_client: Duration,
    /// mysql-connect_timeout_server (ms): one backend connect
    pub connect_timeout_server: Duration,
    /// mysql-connect_timeout_server_max (ms): the longest a statement waits for a usable server
    pub connect_timeout_server_max: Duration,
    /// mysql-connect_retries_on_failure
    pub connect_retries_on_failure: u32,
    /// mysql-connect_retries_delay (ms)
    pub connect_retries_delay: Duration,
    /// mysql-shun_on_failures
    pub shun_on_failures: u32,
    /// mysql-shun_recovery_time_sec
    pub shun_recovery_time: Duration,
    /// mysql-unshun_algorithm: 0, or 1 for servers that come back in all hostgroups at once
    pub unshun_algorithm: u32,
    /// mysql-default_max_latency_ms; zero for none
    pub default_max_latency: Duration,
    /// mysql-monitor_enabled
    pub monitor_enabled: bool,
    /// mysql-monitor_username
    pub monitor_username: String,
    /// mysql-monitor_password
    pub monitor_password: String,
    /// mysql-monitor_history (ms)
    pub monitor_history: Duration,
    /// mysql-monitor_connect_interval (ms)
    pub monitor_connect_interval: Duration,
    /// mysql-monitor_connect_timeout (ms)
    pub monitor_connect_timeout: Duration,
    /// mysql-monitor_ping_interval (ms): idle monitor connections are kept ten times as long
    pub monitor_ping_interval: Duration,
    /// mysql-monitor_ping_timeout (ms)
    pub monitor_ping_timeout: Duration,
    /// mysql-monitor_ping_max_failures
    pub monitor_ping_max_failures: u32,
    /// mysql-monitor_wait_timeout: monitor connections set their wait_timeout
    pub monitor_wait_timeout: bool,
    /// mysql-monitor_read_only_interval (ms)
    pub monitor_read_only_interval: Duration,
    /// mysql-monitor_read_only_timeout (ms)
    pub monitor_read_only_timeout: Duration,
    /// mysql-monitor_read_only_max_timeout_count
    pub monitor_read_only_max_timeout_count: u32,
    /// mysql-monitor_writer_is_also_reader
    pub monitor_writer_is_also_reader: bool,
    /// mysql-monitor_aws_rds_topology_discovery_interval, in read_only cycles; 0: never
    pub monitor_topology_discovery_interval: u32,
    /// mysql-aws_blue_green_deployment_auto_discovery
    pub bgd_auto_discovery: bool,
    /// mysql-aws_locality_awareness
    pub aws_locality_awareness: bool,
    /// mysql-monitor_replication_lag_interval (ms)
    pub monitor_replication_lag_interval: Duration,
    /// mysql-monitor_replication_lag_timeout (ms)
    pub monitor_replication_lag_timeout: Duration,
    /// mysql-monitor_replication_lag_count
    pub monitor_replication_lag_count: u32,
    /// mysql-monitor_replication_lag_use_percona_heartbeat: `schema.table`, or empty
    pub monitor_replication_lag_heartbeat: String,
    /// mysql-monitor_slave_lag_when_null, seconds
    pub monitor_slave_lag_when_null: u32,
    /// mysql-monitor_threads_min
    pub monitor_threads_min: usize,
    /// mysql-monitor_threads_max
    pub monitor_threads_max: usize,
    /// mysql-monitor_local_dns_cache_ttl (ms); 0 disables the cache
    pub dns_cache_ttl: Duration,
    /// mysql-monitor_local_dns_cache_refresh_interval (ms); 0 disables the cache
    pub dns_cache_refresh_interval: Duration,
    /// mysql-monitor_dns_server, `address:port`; None: the system's resolver
    pub dns_server: Option<std::net::SocketAddr>,
    /// mysql-resolution_family
    pub resolution_family: ResolutionFamily,
    /// mysql-query_digests and its relatives
    pub query_digests: QueryDigests,
    /// What is not the default of variables without effect, by their names
    pub inert: BTreeMap<&'static str, String>,
}

/// The value of mysql-default_schema that stands for none.
pub const NO_SCHEMA: &str = "information_schema";

impl Variables {
    /// After how long a silence TCP asks a peer for a sign of life; `None` for never.
    pub fn keepalive(&self) -> Option<Duration> {
        let time = self.tcp_keepalive_time;
        self.use_tcp_keepalive.then(|| if time.is_zero() { wire::socket::KEEPALIVE } else { time })
    }
}

impl Default for Variables {
    /// ProxySQL's defaults.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            admin_credentials: vec![("admin".into(), "admin".into())],
            stats_credentials: vec![("stats".into(), "stats".into())],
            stats_mysql_connection_pool: 60,
            stats_mysql_connections: 60,
            stats_mysql_query_digest_to_disk: 0,
            stats_system_cpu: 60,
            stats_system_memory: 60,
            admin_read_only: false,
            admin_interfaces: "0.0.0.0:6032".into(),
            mysql_interfaces: "0.0.0.0:6033".into(),
            sqliteserver_interfaces: "127.0.0.1:6030".into(),
            server_version: "8.0.11".into(),
            default_plugin_sha2: false,
            max_allowed_packet: 67_108_864,
            max_connections: 10_000,
            wait_timeout: ms(28_800_000),
            client_host_cache_size: 0,
            client_host_error_counts: 0,
            commands_stats: true,
            default_query_timeout: ms(86_400_000),
            long_query_time: ms(1_000),
            max_transaction_time: ms(14_400_000),
            max_transaction_idle_time: ms(14_400_000),
            kill_backend_connection_when_disconnect: true,
            enable_client_deprecate_eof: true,
            enable_server_deprecate_eof: true,
            select_version_forwarding: 3,
            have_compress: true,
            have_ssl: true,
            multiplexing: true,
            max_stmts_per_connection: 20,
            free_connections_pct: 10,
            init_connect: String::new(),
            connection_warming: false,
            throttle_connections_per_sec: 1_000_000,
            ping_interval_server: ms(10_000),
            ping_timeout_server: ms(200),
            use_tcp_keepalive: true,
            tcp_keepalive_time: wire::socket::KEEPALIVE,
            ssl_p2s: ClientFiles::default(),
            query_retries_on_failure: 1,
            default_query_delay: Duration::ZERO,
            default_schema: NO_SCHEMA.into(),
            connection_max_age: Duration::ZERO,
            connection_delay_multiplex: Duration::ZERO,
            connect_timeout_client: ms(10_000),
            connect_timeout_server: ms(1_000),
            connect_timeout_server_max: ms(10_000),
            connect_retries_on_failure: 10,
            connect_retries_delay: ms(1),
            shun_on_failures: 5,
            shun_recovery_time: Duration::from_secs(10),
            unshun_algorithm: 0,
            default_max_latency: ms(1_000),
            monitor_enabled: true,
            monitor_username: "monitor".into(),
            monitor_password: "monitor".into(),
            monitor_history: ms(7_200_000),
            monitor_connect_interval: ms(120_000),
            monitor_connect_timeout: ms(600),
            monitor_ping_interval: ms(8_000),
            monitor_ping_timeout: ms(1_000),
            monitor_ping_max_failures: 3,
            monitor_wait_timeout: true,
            monitor_read_only_interval: ms(1_000),
            monitor_read_only_timeout: ms(800),
            monitor_read_only_max_timeout_count: 3,
            monitor_writer_is_also_reader: true,
            monitor_topology_discovery_interval: 0,
            bgd_auto_discovery: true,
            aws_locality_awareness: false,
            monitor_replication_lag_interval: ms(10_000),
            monitor_replication_lag_timeout: ms(1_000),
            monitor_replication_lag_count: 1,
            monitor_replication_lag_heartbeat: String::new(),
            monitor_slave_lag_when_null: 60,
            monitor_threads_min: 8,
            monitor_threads_max: 128,
            dns_cache_ttl: ms(300_000),
            dns_cache_refresh_interval: ms(60_000),
            dns_server: None,
            resolution_family: ResolutionFamily::System,
            query_digests: QueryDigests::default(),
            inert: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for Variables {
    /// Names and texts, credentials left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = registry::VARIABLES.iter().filter(|var| !var.is_secret());
        f.debug_map().entries(shown.map(|var| (var.name, var.show(self)))).finish()
    }
}
