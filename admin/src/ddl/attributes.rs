//! What hostgroups and servers have beside their placement.

/// mysql_hostgroup_attributes and its runtime form.
macro_rules! hostgroup_attributes {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostgroup_id INT NOT NULL PRIMARY KEY,
    max_num_online_servers INT CHECK (max_num_online_servers >= 0 AND max_num_online_servers <= 1000000) NOT NULL DEFAULT 1000000,
    autocommit INT CHECK (autocommit IN (-1,0,1)) NOT NULL DEFAULT -1,
    free_connections_pct INT CHECK (free_connections_pct >= 0 AND free_connections_pct <= 100) NOT NULL DEFAULT 10,
    init_connect VARCHAR NOT NULL DEFAULT '',
    multiplex INT CHECK (multiplex IN (0,1)) NOT NULL DEFAULT 1,
    connection_warming INT CHECK (connection_warming IN (0,1)) NOT NULL DEFAULT 0,
    throttle_connections_per_sec INT CHECK (throttle_connections_per_sec >= 1 AND throttle_connections_per_sec <= 1000000) NOT NULL DEFAULT 1000000,
    ignore_session_variables VARCHAR CHECK (JSON_VALID(ignore_session_variables) OR ignore_session_variables = '') NOT NULL DEFAULT '',
    hostgroup_settings VARCHAR CHECK (JSON_VALID(hostgroup_settings) OR hostgroup_settings = '') NOT NULL DEFAULT '',
    servers_defaults VARCHAR CHECK (JSON_VALID(servers_defaults) OR servers_defaults = '') NOT NULL DEFAULT '',
    comment VARCHAR NOT NULL DEFAULT ''
)"
        )
    };
}

/// mysql_servers_ssl_params and its runtime form.
macro_rules! servers_ssl_params {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostname VARCHAR NOT NULL,
    port INT CHECK (port >= 0 AND port <= 65535) NOT NULL DEFAULT 3306,
    username VARCHAR NOT NULL DEFAULT '',
    ssl_ca VARCHAR NOT NULL DEFAULT '',
    ssl_cert VARCHAR NOT NULL DEFAULT '',
    ssl_key VARCHAR NOT NULL DEFAULT '',
    ssl_capath VARCHAR NOT NULL DEFAULT '',
    ssl_crl VARCHAR NOT NULL DEFAULT '',
    ssl_crlpath VARCHAR NOT NULL DEFAULT '',
    ssl_cipher VARCHAR NOT NULL DEFAULT '',
    tls_version VARCHAR NOT NULL DEFAULT '',
    comment VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (hostname, port, username)
)"
        )
    };
}

/// mysql_hostgroup_attributes
pub const MYSQL_HOSTGROUP_ATTRIBUTES: &str = hostgroup_attributes!("mysql_hostgroup_attributes");

/// runtime_mysql_hostgroup_attributes
pub const RUNTIME_MYSQL_HOSTGROUP_ATTRIBUTES: &str =
    hostgroup_attributes!("runtime_mysql_hostgroup_attributes");

/// mysql_servers_ssl_params
pub const MYSQL_SERVERS_SSL_PARAMS: &str = servers_ssl_params!("mysql_servers_ssl_params");

/// runtime_mysql_servers_ssl_params
pub const RUNTIME_MYSQL_SERVERS_SSL_PARAMS: &str = servers_ssl_params!("runtime_mysql_servers_ssl_params");
