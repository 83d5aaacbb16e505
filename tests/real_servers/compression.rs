//! Connections that are compressed: to servers, and those of clients; the servers' own clients, which both are strict about it.

use std::io::Write;

use mysql::prelude::Queryable;

use crate::results::printed;
use crate::setup::{Lab, MARIADB, MARIADB_ZLIB, MYSQL, MYSQL_TLS, MYSQL_ZSTD, Route};

/// What the servers say of the connections that the daemon has opened.
pub fn connections_to_servers(lab: &Lab) {
    for (route, statement, expected) in [
        (&MYSQL_TLS, "SHOW SESSION STATUS LIKE 'Compression_algorithm'", ""),
        (&MYSQL_ZSTD, "SHOW SESSION STATUS LIKE 'Compression_algorithm'", "zstd"),
        (&MARIADB, MARIADB_SAYS, "OFF"),
        (&MARIADB_ZLIB, MARIADB_SAYS, "ON"),
    ] {
        let said: Option<(String, String)> = lab.through(route).query_first(statement).unwrap();
        assert_eq!(said.map(|(_, value)| value).as_deref(), Some(expected), "{route:?}");
    }
}

const MARIADB_SAYS: &str = "SELECT variable_name, variable_value FROM information_schema.session_status WHERE variable_name = 'COMPRESSION'";

/// Statements and rows on both sides of the 16 MiB limit, and what is too short to be compressed.
fn script() -> tempfile::NamedTempFile {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    let long = "0123456789".repeat(1_700_000);
    for statement in [
        "SELECT 1",
        "SELECT id, REPEAT('z', 1000) FROM numbers",
        &format!("SELECT LENGTH('{long}')"),
        "SELECT REPEAT('abc', 6000000) AS much",
        "SELECT * FROM missing",
        "SELECT 'after'",
    ] {
        writeln!(script, "{statement};").unwrap();
    }
    script
}

pub fn command_line_clients(lab: &Lab) {
    let script = script();
    let mysql = |algorithms: &'static str, tls: &'static str| {
        [algorithms, tls, "--get-server-public-key", "--max-allowed-packet=256M"]
    };
    let runs: [(&Route, &str, [&str; 4]); 6] = [
        (&MYSQL, "zlib", mysql("--compression-algorithms=zlib", "--ssl-mode=DISABLED")),
        (&MYSQL, "zstd", mysql("--compression-algorithms=zstd", "--ssl-mode=DISABLED")),
        (&MYSQL_TLS, "zstd in TLS", mysql("--compression-algorithms=zstd", "--ssl-mode=REQUIRED")),
        (&MYSQL, "both", mysql("--compression-algorithms=zstd,zlib", "--ssl-mode=REQUIRED")),
        (&MARIADB, "zlib", ["--compress", "--skip-ssl", "--max-allowed-packet=256M", "--quick"]),
        (&MARIADB, "zlib in TLS", ["--compress", "--ssl", "--max-allowed-packet=256M", "--quick"]),
    ];
    for (route, name, options) in runs {
        let [direct, through] = [lab.servers.port(route.kind), lab.daemon.traffic_port]
            .map(|port| printed(lab, route, port, &options, script.path()));
        assert!(
            direct == through,
            "{route:?} with {name}: directly and through the daemon it prints another thing"
        );
        assert!(direct.contains("17000000") && direct.contains("after"), "{route:?} with {name}");
    }
}
