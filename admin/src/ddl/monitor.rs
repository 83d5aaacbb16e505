//! What checks of servers found: one row for each check.

/// mysql_server_connect_log
pub const MYSQL_SERVER_CONNECT_LOG: &str = "CREATE TABLE mysql_server_connect_log (
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 3306,
    time_start_us INT NOT NULL DEFAULT 0,
    connect_success_time_us INT DEFAULT 0,
    connect_error VARCHAR,
    PRIMARY KEY (hostname, port, time_start_us)
)";

/// mysql_server_ping_log
pub const MYSQL_SERVER_PING_LOG: &str = "CREATE TABLE mysql_server_ping_log (
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 3306,
    time_start_us INT NOT NULL DEFAULT 0,
    ping_success_time_us INT DEFAULT 0,
    ping_error VARCHAR,
    PRIMARY KEY (hostname, port, time_start_us)
)";

/// mysql_server_replication_lag_log
pub const MYSQL_SERVER_REPLICATION_LAG_LOG: &str = "CREATE TABLE mysql_server_replication_lag_log (
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 3306,
    time_start_us INT NOT NULL DEFAULT 0,
    success_time_us INT DEFAULT 0,
    repl_lag INT,
    error VARCHAR,
    PRIMARY KEY (hostname, port, time_start_us)
)";

/// mysql_server_read_only_log
pub const MYSQL_SERVER_READ_ONLY_LOG: &str = "CREATE TABLE mysql_server_read_only_log (
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 3306,
    time_start_us INT NOT NULL DEFAULT 0,
    success_time_us INT DEFAULT 0,
    read_only INT DEFAULT 1,
    error VARCHAR,
    PRIMARY KEY (hostname, port, time_start_us)
)";
