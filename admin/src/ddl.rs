//! CREATE TABLE texts: columns, types, CHECKs, defaults and keys are ProxySQL's, because clients select and insert by them.
//!
//! One column per line, since SHOW CREATE TABLE prints them as they are.

mod attributes;
mod cluster;
mod monitor;
mod stats;

pub use attributes::*;
pub use cluster::*;
pub use monitor::*;
pub use stats::*;

/// mysql_servers and its runtime form, which has one more status.
macro_rules! servers {
    ($name:literal, $statuses:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup_id INT CHECK (hostgroup_id>=0) NOT NULL DEFAULT 0,
    hostname VARCHAR NOT NULL,
    port INT CHECK (port >= 0 AND port <= 65535) NOT NULL DEFAULT 3306,
    gtid_port INT CHECK ((gtid_port <> port OR gtid_port=0) AND gtid_port >= 0 AND gtid_port <= 65535) NOT NULL DEFAULT 0,
    status VARCHAR CHECK (UPPER(status) IN (",
            $statuses,
            ")) NOT NULL DEFAULT 'ONLINE',
    weight INT CHECK (weight >= 0 AND weight <= 10000000) NOT NULL DEFAULT 1,
    compression INT CHECK (compression IN (0,1)) NOT NULL DEFAULT 0,
    max_connections INT CHECK (max_connections >= 0) NOT NULL DEFAULT 1000,
    max_replication_lag INT CHECK (max_replication_lag >= 0 AND max_replication_lag <= 126144000) NOT NULL DEFAULT 0,
    use_ssl INT CHECK (use_ssl IN (0,1)) NOT NULL DEFAULT 0,
    max_latency_ms INT UNSIGNED CHECK (max_latency_ms >= 0) NOT NULL DEFAULT 0,
    comment VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (hostgroup_id, hostname, port)
)"
        )
    };
}

/// mysql_users and its runtime form.
macro_rules! users {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    username VARCHAR NOT NULL,
    password VARCHAR,
    active INT CHECK (active IN (0,1)) NOT NULL DEFAULT 1,
    use_ssl INT CHECK (use_ssl IN (0,1)) NOT NULL DEFAULT 0,
    default_hostgroup INT NOT NULL DEFAULT 0,
    default_schema VARCHAR,
    schema_locked INT CHECK (schema_locked IN (0,1)) NOT NULL DEFAULT 0,
    transaction_persistent INT CHECK (transaction_persistent IN (0,1)) NOT NULL DEFAULT 1,
    fast_forward INT CHECK (fast_forward IN (0,1)) NOT NULL DEFAULT 0,
    backend INT CHECK (backend IN (0,1)) NOT NULL DEFAULT 1,
    frontend INT CHECK (frontend IN (0,1)) NOT NULL DEFAULT 1,
    max_connections INT CHECK (max_connections >= 0) NOT NULL DEFAULT 10000,
    attributes VARCHAR CHECK (JSON_VALID(attributes) OR attributes = '') NOT NULL DEFAULT '',
    comment VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (username, backend),
    UNIQUE (username, frontend)
)"
        )
    };
}

/// mysql_replication_hostgroups and its runtime form.
macro_rules! replication_hostgroups {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    writer_hostgroup INT CHECK (writer_hostgroup>=0) NOT NULL PRIMARY KEY,
    reader_hostgroup INT NOT NULL CHECK (reader_hostgroup<>writer_hostgroup AND reader_hostgroup>=0),
    check_type VARCHAR CHECK (LOWER(check_type) IN ('read_only','innodb_read_only','super_read_only','read_only|innodb_read_only','read_only&innodb_read_only')) NOT NULL DEFAULT 'read_only',
    comment VARCHAR NOT NULL DEFAULT '',
    UNIQUE (reader_hostgroup)
)"
        )
    };
}

/// global_variables and its runtime form.
macro_rules! variables {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    variable_name VARCHAR NOT NULL PRIMARY KEY,
    variable_value VARCHAR NOT NULL
)"
        )
    };
}

/// mysql_query_rules and its runtime form.
macro_rules! query_rules {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    rule_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    active INT CHECK (active IN (0,1)) NOT NULL DEFAULT 0,
    username VARCHAR,
    schemaname VARCHAR,
    flagIN INT CHECK (flagIN >= 0) NOT NULL DEFAULT 0,
    client_addr VARCHAR,
    proxy_addr VARCHAR,
    proxy_port INT CHECK (proxy_port >= 0 AND proxy_port <= 65535),
    digest VARCHAR,
    match_digest VARCHAR,
    match_pattern VARCHAR,
    negate_match_pattern INT CHECK (negate_match_pattern IN (0,1)) NOT NULL DEFAULT 0,
    re_modifiers VARCHAR DEFAULT 'CASELESS',
    flagOUT INT CHECK (flagOUT >= 0),
    replace_pattern VARCHAR CHECK (CASE WHEN replace_pattern IS NULL THEN 1 WHEN replace_pattern IS NOT NULL AND match_pattern IS NOT NULL THEN 1 ELSE 0 END),
    destination_hostgroup INT DEFAULT NULL,
    cache_ttl INT CHECK (cache_ttl > 0),
    cache_empty_result INT CHECK (cache_empty_result IN (0,1)) DEFAULT NULL,
    cache_timeout INT CHECK (cache_timeout >= 0),
    reconnect INT CHECK (reconnect IN (0,1)) DEFAULT NULL,
    timeout INT UNSIGNED CHECK (timeout >= 0),
    retries INT CHECK (retries >= 0 AND retries <= 1000),
    delay INT UNSIGNED CHECK (delay >= 0),
    next_query_flagIN INT UNSIGNED,
    mirror_flagOUT INT UNSIGNED,
    mirror_hostgroup INT UNSIGNED,
    error_msg VARCHAR,
    OK_msg VARCHAR,
    sticky_conn INT CHECK (sticky_conn IN (0,1)),
    multiplex INT CHECK (multiplex IN (0,1,2)),
    gtid_from_hostgroup INT UNSIGNED,
    log INT CHECK (log IN (0,1)),
    apply INT CHECK (apply IN (0,1)) NOT NULL DEFAULT 0,
    attributes VARCHAR CHECK (JSON_VALID(attributes) OR attributes = '') NOT NULL DEFAULT '',
    comment VARCHAR
)"
        )
    };
}

/// mysql_query_rules_fast_routing and its runtime form.
macro_rules! query_rules_fast_routing {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    username VARCHAR NOT NULL,
    schemaname VARCHAR NOT NULL,
    flagIN INT NOT NULL DEFAULT 0,
    destination_hostgroup INT CHECK (destination_hostgroup >= 0) NOT NULL,
    comment VARCHAR NOT NULL,
    PRIMARY KEY (username, schemaname, flagIN)
)"
        )
    };
}

/// mysql_servers
pub const MYSQL_SERVERS: &str = servers!("mysql_servers", "'ONLINE','SHUNNED','OFFLINE_SOFT','OFFLINE_HARD'");

/// mysql_users
pub const MYSQL_USERS: &str = users!("mysql_users");

/// mysql_replication_hostgroups
pub const MYSQL_REPLICATION_HOSTGROUPS: &str = replication_hostgroups!("mysql_replication_hostgroups");

/// mysql_aws_rds_bgd_hostgroups
pub const MYSQL_AWS_RDS_BGD_HOSTGROUPS: &str = "CREATE TABLE mysql_aws_rds_bgd_hostgroups (
    writer_hostgroup INT CHECK (writer_hostgroup>=0) NOT NULL PRIMARY KEY,
    reader_hostgroup INT NOT NULL CHECK (reader_hostgroup<>writer_hostgroup AND reader_hostgroup>0),
    green_writer_hostgroup INT NOT NULL CHECK (green_writer_hostgroup>=0),
    green_reader_hostgroup INT NOT NULL CHECK (green_reader_hostgroup>=0),
    active INT CHECK (active IN (0,1)) NOT NULL DEFAULT 1,
    writer_is_also_reader INT CHECK (writer_is_also_reader IN (0,1)) NOT NULL DEFAULT 0,
    check_interval_ms INT NOT NULL CHECK (check_interval_ms >= 100 AND check_interval_ms <= 600000) DEFAULT 1000,
    check_timeout_ms INT NOT NULL CHECK (check_timeout_ms >= 80 AND check_timeout_ms <= 3000) DEFAULT 800,
    comment VARCHAR NOT NULL DEFAULT '',
    UNIQUE (reader_hostgroup)
)";

/// global_variables
pub const GLOBAL_VARIABLES: &str = variables!("global_variables");

/// runtime_mysql_servers: as mysql_servers, with one more status.
pub const RUNTIME_MYSQL_SERVERS: &str =
    servers!("runtime_mysql_servers", "'ONLINE','SHUNNED','OFFLINE_SOFT','OFFLINE_HARD','SHUNNED_AWS_BGD'");

/// runtime_mysql_users: a user that is both frontend and backend shows as two rows.
pub const RUNTIME_MYSQL_USERS: &str = users!("runtime_mysql_users");

/// runtime_mysql_replication_hostgroups
pub const RUNTIME_MYSQL_REPLICATION_HOSTGROUPS: &str =
    replication_hostgroups!("runtime_mysql_replication_hostgroups");

/// runtime_mysql_aws_rds_bgd_hostgroups: green hostgroups may be NULL; who made the row, and the switchover's status.
pub const RUNTIME_MYSQL_AWS_RDS_BGD_HOSTGROUPS: &str = "CREATE TABLE runtime_mysql_aws_rds_bgd_hostgroups (
    writer_hostgroup INT CHECK (writer_hostgroup>=0) NOT NULL PRIMARY KEY,
    reader_hostgroup INT NOT NULL CHECK (reader_hostgroup<>writer_hostgroup AND reader_hostgroup>0),
    green_writer_hostgroup INT CHECK (green_writer_hostgroup IS NULL OR green_writer_hostgroup>=0) DEFAULT NULL,
    green_reader_hostgroup INT CHECK (green_reader_hostgroup IS NULL OR green_reader_hostgroup>=0) DEFAULT NULL,
    active INT CHECK (active IN (0,1)) NOT NULL DEFAULT 1,
    writer_is_also_reader INT CHECK (writer_is_also_reader IN (0,1)) NOT NULL DEFAULT 0,
    check_interval_ms INT NOT NULL CHECK (check_interval_ms >= 100 AND check_interval_ms <= 600000) DEFAULT 1000,
    check_timeout_ms INT NOT NULL CHECK (check_timeout_ms >= 80 AND check_timeout_ms <= 3000) DEFAULT 800,
    comment VARCHAR NOT NULL DEFAULT '',
    auto_generated INT CHECK (auto_generated IN (0,1)) NOT NULL DEFAULT 0,
    status VARCHAR NOT NULL DEFAULT 'NONE',
    UNIQUE (reader_hostgroup)
)";

/// runtime_global_variables
pub const RUNTIME_GLOBAL_VARIABLES: &str = variables!("runtime_global_variables");

/// mysql_query_rules
pub const MYSQL_QUERY_RULES: &str = query_rules!("mysql_query_rules");

/// runtime_mysql_query_rules
pub const RUNTIME_MYSQL_QUERY_RULES: &str = query_rules!("runtime_mysql_query_rules");

/// mysql_query_rules_fast_routing
pub const MYSQL_QUERY_RULES_FAST_ROUTING: &str = query_rules_fast_routing!("mysql_query_rules_fast_routing");

/// runtime_mysql_query_rules_fast_routing
pub const RUNTIME_MYSQL_QUERY_RULES_FAST_ROUTING: &str =
    query_rules_fast_routing!("runtime_mysql_query_rules_fast_routing");
