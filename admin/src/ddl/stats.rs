//! Statistics. A `_reset` form shows the same and has counting begin anew.

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

/// stats_mysql_query_digest and its form that clears what it shows.
macro_rules! query_digest {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup INT,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    client_address VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    digest_text VARCHAR NOT NULL,
    count_star INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    sum_time INTEGER NOT NULL,
    min_time INTEGER NOT NULL,
    max_time INTEGER NOT NULL,
    sum_rows_affected INTEGER NOT NULL,
    sum_rows_sent INTEGER NOT NULL,
    PRIMARY KEY (hostgroup, schemaname, username, client_address, digest)
)"
        )
    };
}

/// stats_mysql_processlist
pub const STATS_MYSQL_PROCESSLIST: &str = "CREATE TABLE stats_mysql_processlist (
    ThreadID INT NOT NULL,
    SessionID INTEGER PRIMARY KEY NOT NULL,
    user VARCHAR,
    db VARCHAR,
    cli_host VARCHAR,
    cli_port INT,
    hostgroup INT,
    l_srv_host VARCHAR,
    l_srv_port INT,
    srv_host VARCHAR,
    srv_port INT,
    command VARCHAR,
    time_ms INT NOT NULL,
    info VARCHAR,
    status_flags INT,
    extended_info VARCHAR
)";

/// stats_mysql_users
pub const STATS_MYSQL_USERS: &str = "CREATE TABLE stats_mysql_users (
    username VARCHAR PRIMARY KEY,
    frontend_connections INT NOT NULL,
    frontend_max_connections INT NOT NULL
)";

/// stats_mysql_commands_counters
pub const STATS_MYSQL_COMMANDS_COUNTERS: &str = "CREATE TABLE stats_mysql_commands_counters (
    Command VARCHAR NOT NULL PRIMARY KEY,
    Total_Time_us INT NOT NULL,
    Total_cnt INT NOT NULL,
    cnt_100us INT NOT NULL,
    cnt_500us INT NOT NULL,
    cnt_1ms INT NOT NULL,
    cnt_5ms INT NOT NULL,
    cnt_10ms INT NOT NULL,
    cnt_50ms INT NOT NULL,
    cnt_100ms INT NOT NULL,
    cnt_500ms INT NOT NULL,
    cnt_1s INT NOT NULL,
    cnt_5s INT NOT NULL,
    cnt_10s INT NOT NULL,
    cnt_INFs INT NOT NULL
)";

/// stats_mysql_global
pub const STATS_MYSQL_GLOBAL: &str = "CREATE TABLE stats_mysql_global (
    Variable_Name VARCHAR NOT NULL PRIMARY KEY,
    Variable_Value VARCHAR NOT NULL
)";

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

/// stats_mysql_query_rules
pub const STATS_MYSQL_QUERY_RULES: &str = "CREATE TABLE stats_mysql_query_rules (
    rule_id INTEGER PRIMARY KEY,
    hits INT NOT NULL
)";

/// stats_mysql_query_digest
pub const STATS_MYSQL_QUERY_DIGEST: &str = query_digest!("stats_mysql_query_digest");

/// stats_mysql_query_digest_reset
pub const STATS_MYSQL_QUERY_DIGEST_RESET: &str = query_digest!("stats_mysql_query_digest_reset");

/// Where servers are, as locality awareness knows it. The first row, without a hostgroup, is the proxy itself.
pub const STATS_MYSQL_AWS_LOCALITY: &str = "CREATE TABLE stats_mysql_aws_locality (
    hostgroup INT,
    srv_host VARCHAR NOT NULL,
    srv_port INT,
    state VARCHAR NOT NULL,
    region VARCHAR NOT NULL,
    zone VARCHAR NOT NULL,
    zone_id VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    age_s INT,
    multiplier REAL,
    last_error VARCHAR NOT NULL
)";
