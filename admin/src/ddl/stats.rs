//! Statistics of pools, errors and clients' hosts. A `_reset` form shows the same and has counting begin anew.

/// stats_mysql_connection_pool and its form that clears what it shows.
macro_rules! connection_pool {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup INT,
    srv_host VARCHAR,
    srv_port INT,
    status VARCHAR,
    ConnUsed INT,
    ConnFree INT,
    ConnOK INT,
    ConnERR INT,
    MaxConnUsed INT,
    Queries INT,
    Queries_GTID_sync INT,
    Bytes_data_sent INT,
    Bytes_data_recv INT,
    Latency_us INT
)"
        )
    };
}

/// stats_mysql_hostgroup_connection_pool and its form that clears what it shows.
macro_rules! hostgroup_connection_pool {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup INT NOT NULL PRIMARY KEY,
    acquisitions_total INT NOT NULL,
    waits_total INT NOT NULL,
    wait_time_us_total INT NOT NULL,
    waiters INT NOT NULL
)"
        )
    };
}

/// stats_mysql_errors and its form that clears what it shows.
macro_rules! errors {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup INT NOT NULL,
    hostname VARCHAR NOT NULL,
    port INT NOT NULL,
    username VARCHAR NOT NULL,
    client_address VARCHAR NOT NULL,
    schemaname VARCHAR NOT NULL,
    errno INT NOT NULL,
    count_star INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    last_error VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (hostgroup, hostname, port, username, schemaname, errno)
)"
        )
    };
}

/// stats_mysql_errors
pub const STATS_MYSQL_ERRORS: &str = errors!("stats_mysql_errors");

/// stats_mysql_errors_reset
pub const STATS_MYSQL_ERRORS_RESET: &str = errors!("stats_mysql_errors_reset");

/// stats_mysql_connection_pool
pub const STATS_MYSQL_CONNECTION_POOL: &str = connection_pool!("stats_mysql_connection_pool");

/// stats_mysql_connection_pool_reset
pub const STATS_MYSQL_CONNECTION_POOL_RESET: &str = connection_pool!("stats_mysql_connection_pool_reset");

/// stats_mysql_hostgroup_connection_pool
pub const STATS_MYSQL_HOSTGROUP_CONNECTION_POOL: &str =
    hostgroup_connection_pool!("stats_mysql_hostgroup_connection_pool");

/// stats_mysql_hostgroup_connection_pool_reset
pub const STATS_MYSQL_HOSTGROUP_CONNECTION_POOL_RESET: &str =
    hostgroup_connection_pool!("stats_mysql_hostgroup_connection_pool_reset");

/// stats_mysql_client_host_cache and its form that clears what it shows.
macro_rules! client_host_cache {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    client_address VARCHAR NOT NULL,
    error_count INT NOT NULL,
    last_updated BIGINT NOT NULL
)"
        )
    };
}

/// stats_mysql_client_host_cache
pub const STATS_MYSQL_CLIENT_HOST_CACHE: &str = client_host_cache!("stats_mysql_client_host_cache");

/// stats_mysql_client_host_cache_reset
pub const STATS_MYSQL_CLIENT_HOST_CACHE_RESET: &str =
    client_host_cache!("stats_mysql_client_host_cache_reset");

/// stats_memory_metrics
pub const STATS_MEMORY_METRICS: &str = "CREATE TABLE stats_memory_metrics (
    Variable_Name VARCHAR NOT NULL PRIMARY KEY,
    Variable_Value VARCHAR NOT NULL
)";

/// stats_mysql_prepared_statements_info
pub const STATS_MYSQL_PREPARED_STATEMENTS_INFO: &str = "CREATE TABLE stats_mysql_prepared_statements_info (
    global_stmt_id INT NOT NULL,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    ref_count_client INT NOT NULL,
    ref_count_server INT NOT NULL,
    num_columns INT NOT NULL,
    num_params INT NOT NULL,
    query VARCHAR NOT NULL
)";

/// stats_mysql_free_connections
pub const STATS_MYSQL_FREE_CONNECTIONS: &str = "CREATE TABLE stats_mysql_free_connections (
    fd INT NOT NULL,
    hostgroup INT NOT NULL,
    srv_host VARCHAR NOT NULL,
    srv_port INT NOT NULL,
    user VARCHAR NOT NULL,
    schema VARCHAR,
    init_connect VARCHAR,
    time_zone VARCHAR,
    sql_mode VARCHAR,
    autocommit VARCHAR,
    idle_ms INT,
    statistics VARCHAR,
    mysql_info VARCHAR
)";
