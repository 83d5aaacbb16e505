//! Tables about pointsman itself and its peers.

/// proxysql_servers and its runtime form.
macro_rules! proxysql_servers {
    ($name:literal) => {
        concat!(
            "CREATE TABLE ",
            $name,
            " (
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 6032,
    weight INT CHECK (weight >= 0) NOT NULL DEFAULT 0,
    comment VARCHAR NOT NULL DEFAULT '',
    PRIMARY KEY (hostname, port)
)"
        )
    };
}

/// proxysql_servers
pub const PROXYSQL_SERVERS: &str = proxysql_servers!("proxysql_servers");

/// runtime_proxysql_servers
pub const RUNTIME_PROXYSQL_SERVERS: &str = proxysql_servers!("runtime_proxysql_servers");

/// runtime_checksums_values
pub const RUNTIME_CHECKSUMS_VALUES: &str = "CREATE TABLE runtime_checksums_values (
    name VARCHAR NOT NULL PRIMARY KEY,
    version INT NOT NULL,
    epoch INT NOT NULL,
    checksum VARCHAR NOT NULL
)";

/// mysql_collations
pub const MYSQL_COLLATIONS: &str = "CREATE TABLE mysql_collations (
    Id INTEGER NOT NULL PRIMARY KEY,
    Collation VARCHAR NOT NULL,
    Charset VARCHAR NOT NULL,
    \"Default\" VARCHAR NOT NULL
)";
