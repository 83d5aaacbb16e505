//! What a client gets through the daemon is what the server would have sent it, byte for byte.

use std::io::Write;
use std::path::Path;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::relay::{Packet, Relay};
use crate::servers::Kind;
use crate::setup::{Lab, MARIADB, MYSQL, ROUTES, Route, connect};

const MIB: usize = 1024 * 1024;
/// The longest payload of one packet; a packet of just this length is followed by one more, which may be empty.
const PACKET_LIMIT: usize = 16 * MIB - 1;

/// A thousand rows, made without a table.
const THOUSAND: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)";

const TYPES_TABLE: &str = "CREATE TABLE app.types (
    id INT PRIMARY KEY AUTO_INCREMENT, c_bit BIT(10), c_tiny TINYINT, c_tiny_unsigned TINYINT UNSIGNED,
    c_small SMALLINT, c_medium MEDIUMINT, c_int INT, c_big BIGINT, c_big_unsigned BIGINT UNSIGNED,
    c_decimal DECIMAL(65, 30), c_float FLOAT, c_double DOUBLE, c_date DATE, c_time TIME(6), c_datetime DATETIME(6),
    c_timestamp TIMESTAMP(3) NULL, c_year YEAR, c_char CHAR(10), c_varchar VARCHAR(500),
    c_latin1 VARCHAR(20) CHARACTER SET latin1, c_binary BINARY(8), c_varbinary VARBINARY(300), c_tinyblob TINYBLOB,
    c_longblob LONGBLOB, c_text TEXT, c_enum ENUM('a', 'é'), c_set SET('x', 'y', 'z'), c_json JSON, c_point POINT
) CHARACTER SET utf8mb4";

const TYPES_ROWS: &[&str] = &[
    "INSERT INTO app.types () VALUES ()",
    r#"INSERT INTO app.types VALUES (DEFAULT, b'1000000001', -128, 255, -32768, 8388607, -2147483648,
        -9223372036854775808, 18446744073709551615, -12345678901234567890.000000000000000000000000000001, -1.5e-30,
        1.7976931348623157e308, '1000-01-01', '-838:59:59.000000', '9999-12-31 23:59:59.999999',
        '2038-01-19 03:14:07.123', 2155, 'ten chars.', '€ 𝄞 😀 \' \\ \0', 'Grüße', X'00FF00FF', X'00FFFE0A0D27',
        X'00', X'FB00FE00FF', 'línea 1\nlínea 2', 'é', 'x,z', '{"k": [1, null, "ü"]}', POINT(1, -1))"#,
    "INSERT INTO app.types (c_varchar, c_varbinary, c_tinyblob, c_longblob, c_text, c_set) VALUES
        ('', '', '', '', '', ''),
        (REPEAT('a', 250), REPEAT('b', 250), REPEAT('c', 250), REPEAT('d', 65535), REPEAT('e', 65535), 'y'),
        (REPEAT('a', 251), REPEAT('b', 251), REPEAT('c', 251), REPEAT('d', 65536), REPEAT('e', 252), 'y')",
];

/// Runs `statements` on the server itself and through the daemon, each on one connection, and demands the same packets.
/// Returns them.
fn same_packets(lab: &Lab, route: &Route, statements: &[String]) -> Vec<Packet> {
    let [direct, through] = [lab.servers.port(route.kind), lab.daemon.traffic_port].map(|port| {
        let relay = Relay::to(port);
        let mut conn = connect(lab.client_of(route, relay.port));
        for statement in statements {
            run(&mut conn, statement);
        }
        drop(conn);
        relay.finish()
    });
    assert_same(&direct, &through, &format!("{route:?}"));
    direct
}

/// Packets as far as they must be the same: the EOF after column definitions has status flags that describe the whole
/// result, which a server that does without that EOF tells at the end alone; and an OK tells of several variables in the order of
/// a table that has grown with its connection.
fn comparable(packets: &[Packet]) -> Vec<Packet> {
    let definition = |packet: &Packet| packet.payload.starts_with(b"\x03def");
    let mut packets = packets.to_vec();
    for at in 1..packets.len() {
        if definition(&packets[at - 1]) && packets[at].payload.len() == 5 && packets[at].payload[0] == 0xFE {
            packets[at].payload.truncate(3);
        }
        let Packet { sequence, payload } = &mut packets[at];
        if *sequence == 1 && payload[0] == 0 {
            payload.sort_unstable();
        }
    }
    packets
}

fn assert_same(direct: &[Packet], through: &[Packet], what: &str) {
    let (direct, through) = (&comparable(direct), &comparable(through));
    let common = direct.iter().zip(through).take_while(|(a, b)| a == b).count();
    let context = &direct[common.saturating_sub(2)..common];
    assert!(
        common == direct.len() && common == through.len(),
        "{what}: {} packets directly, {} through the daemon; after {context:?}\n  directly {:?}\n  through  {:?}",
        direct.len(),
        through.len(),
        direct.get(common),
        through.get(common),
    );
}

/// Runs one statement and reads all it returns. An error of the server is a result like any other.
fn run(conn: &mut Conn, statement: &str) {
    let outcome = conn.query_iter(statement).and_then(|mut results| {
        while let Some(rows) = results.iter() {
            for row in rows {
                row?;
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) | Err(Error::MySqlError(_)) => {}
        Err(error) => panic!("{error} at {}", &statement[..statement.len().min(100)]),
    }
}

fn owned(statements: &[&str]) -> Vec<String> {
    statements.iter().map(|&statement| statement.to_owned()).collect()
}

/// Prepares a table on both servers.
fn prepare(lab: &Lab, statements: &[&str]) {
    for kind in [Kind::MySql, Kind::MariaDb] {
        let mut dba = lab.servers.dba(kind);
        for statement in statements {
            dba.query_drop(statement).unwrap();
        }
    }
}

pub fn column_types(lab: &Lab) {
    prepare(lab, &[&[TYPES_TABLE], TYPES_ROWS].concat());
    for route in &ROUTES {
        let packets = same_packets(lab, route, &owned(&["SELECT * FROM types ORDER BY id"]));
        assert!(packets.iter().any(|packet| packet.payload.len() > 131_072), "the longest row is missing");
        same_packets(
            lab,
            route,
            &owned(&[
                "SELECT * FROM types WHERE FALSE",
                "SELECT t.id AS number, t.c_varchar, NULL, '', 'x' AS `ö` FROM types t ORDER BY id",
                "SELECT COUNT(*), SUM(c_decimal), MAX(c_datetime), AVG(c_float) FROM types",
                "SHOW TABLES",
                "SHOW FULL COLUMNS FROM types",
                "DESCRIBE types",
            ]),
        );
    }
}

pub fn statements_without_rows(lab: &Lab) {
    prepare(lab, &["CREATE TABLE app.written (id INT)"]);
    for route in &ROUTES {
        same_packets(
            lab,
            route,
            &owned(&[
                "DO 0",
                "-- nothing at all",
                "DROP TABLE written",
                "CREATE TABLE written (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))",
                "INSERT INTO written (v) VALUES ('a'), ('b'), ('c')",
                "SELECT LAST_INSERT_ID()",
                "UPDATE written SET v = 'z' WHERE id <= 2",
                "UPDATE written SET v = 'z' WHERE id <= 3",
                "INSERT IGNORE INTO written VALUES (1, 'twice'), (9, 'nine')",
                "SHOW WARNINGS",
                "BEGIN",
                "DELETE FROM written WHERE id > 1",
                "ROLLBACK",
                "SET @seen = 5",
                "SELECT @seen, COUNT(*) FROM written",
                "SET autocommit = 0",
                "DELETE FROM written",
                "COMMIT",
                "SET autocommit = 1",
                "SELECT * FROM written",
                "USE app",
                "SELECT DATABASE()",
            ]),
        );
    }
}

pub fn errors(lab: &Lab) {
    prepare(
        lab,
        &[
            "CREATE TABLE app.numbers (id INT PRIMARY KEY)",
            &format!("INSERT INTO app.numbers {THOUSAND} SELECT i FROM n"),
        ],
    );
    for route in &ROUTES {
        let packets = same_packets(
            lab,
            route,
            &owned(&[
                "SELEC 1",
                "SELECT * FROM missing",
                "SELECT * FROM mysql.global_priv",
                "INSERT INTO numbers VALUES (1)",
                "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'ours: é'",
                "USE no_such_database",
                // Rows first, then an error in the place of the next one.
                "SELECT id, IF(id < 900, id, (SELECT n.id FROM numbers m WHERE m.id <= 2)) FROM numbers n ORDER BY id",
                "SELECT 'still here'",
            ]),
        );
        let errors = packets.iter().filter(|packet| packet.payload.first() == Some(&0xff)).count();
        assert_eq!(errors, 7);
    }
}

pub fn several_results(lab: &Lab) {
    prepare(
        lab,
        &["CREATE PROCEDURE app.several() BEGIN SELECT 1 AS a; SELECT * FROM numbers LIMIT 3; DO 0; END"],
    );
    for route in &ROUTES {
        same_packets(
            lab,
            route,
            &owned(&[
                "SELECT 1; DO 0; SELECT 'a', NULL; SELECT 2 FROM numbers WHERE FALSE",
                "CALL several()",
                "SELECT 1; SELECT * FROM missing; SELECT 2",
                "CALL several(); SELECT 'last'",
            ]),
        );
    }
}

pub fn five_megabytes(lab: &Lab) {
    for route in &ROUTES {
        let statement =
            format!("{THOUSAND} SELECT i, REPEAT(CHAR(97 + i % 26 USING ascii), 5000 + i) FROM n");
        let packets = same_packets(lab, route, &[statement]);
        assert!(packets.iter().map(|packet| packet.payload.len()).sum::<usize>() > 5_000_000);
    }
}

pub fn packet_limit(lab: &Lab) {
    // One column of this length is preceded by a length of four bytes.
    let row = PACKET_LIMIT - 4;
    // A statement is preceded by one byte, the command.
    let text = PACKET_LIMIT - 1 - "SELECT LENGTH('')".len();
    for route in [MYSQL, MARIADB] {
        for excess in [0, 1, 2] {
            let packets = same_packets(
                lab,
                &route,
                &[
                    format!("SELECT REPEAT('x', {})", row - 1 + excess),
                    format!("SELECT LENGTH('{}')", "y".repeat(text - 1 + excess)),
                ],
            );
            let full = packets.iter().filter(|packet| packet.payload.len() == PACKET_LIMIT).count();
            assert_eq!(full, usize::from(excess > 0));
        }
    }
}

pub fn twenty_megabytes(lab: &Lab) {
    prepare(lab, &["CREATE TABLE app.large (v LONGBLOB)"]);
    let value: String = (0_u8..=255).cycle().map(|n| char::from(b'a' + n % 26)).take(20 * MIB).collect();
    for route in &ROUTES {
        same_packets(
            lab,
            route,
            &[
                "TRUNCATE TABLE large".to_owned(),
                format!("INSERT INTO large VALUES ('{value}')"),
                "SELECT LENGTH(v), SHA2(v, 256) FROM large".to_owned(),
            ],
        );
        let back: Option<String> = lab.through(route).query_first("SELECT v FROM large").unwrap();
        assert!(back.as_deref() == Some(value.as_str()), "{route:?}: another value came back");
    }
}

pub fn bounded_memory(lab: &Lab) {
    for route in &ROUTES {
        let mut conn = lab.through(route);
        lab.daemon.restart_peak();
        let before = lab.daemon.peak_resident_kib();
        let mut received = 0;
        let statement = format!("{THOUSAND} SELECT REPEAT('m', 200000) FROM n");
        for row in conn.query_iter(statement).unwrap() {
            let (value,): (Vec<u8>,) = mysql::from_row(row.unwrap());
            received += value.len();
        }
        assert_eq!(received, 200_000_000);
        // The system may have been slow to take the earlier peak back.
        let growth = lab.daemon.peak_resident_kib().saturating_sub(before);
        assert!(growth < 16 * 1024, "{route:?}: {growth} KiB more for a result of 200 MB");
    }
}

pub fn command_line_clients(lab: &Lab) {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    for statement in [
        "SELECT * FROM types ORDER BY id",
        "SELECT * FROM types WHERE FALSE",
        "SHOW CREATE TABLE types",
        "SELECT * FROM missing",
        "CALL several()",
        "USE app",
        "SET NAMES latin1",
        "SELECT c_latin1, HEX(c_varchar) FROM types",
        "SELECT @@character_set_client, DATABASE()",
        "SELECT id, REPEAT('z', 1000) FROM numbers",
    ] {
        writeln!(script, "{statement};").unwrap();
    }
    // MariaDB's client also prints what only MariaDB's extended capabilities carry, which the daemon does not offer.
    let clients: [(_, &[&str], &[&str]); 2] = [
        (MYSQL, &["--column-type-info"], &["--ssl-mode=DISABLED", "--get-server-public-key"]),
        (MARIADB, &[], &["--skip-ssl"]),
    ];
    for (route, metadata, plain) in clients {
        let ports = [lab.servers.port(route.kind), lab.daemon.traffic_port];
        // As they come, which is with TLS where the other side has it: what they print.
        let [direct, through] = ports.map(|port| printed(lab, &route, port, metadata, script.path()));
        let differing = direct.lines().zip(through.lines()).find(|(direct, through)| direct != through);
        assert!(direct == through, "{route:?} prints, directly and through the daemon: {differing:?}");
        assert!(direct.contains("ERROR 1146 (42S02)") && direct.contains("zzz"), "{route:?}: {direct}");
        // Without TLS: also what they are sent.
        let [direct, through] = ports.map(|port| {
            let relay = Relay::to(port);
            printed(lab, &route, relay.port, plain, script.path());
            without_version_comment(relay.finish())
        });
        assert_same(&direct, &through, &format!("the client of {:?}", route.kind));
    }
}

/// What a client sends of its own accord when it connects must not be in the way of the first statement.
pub fn command_line_clients_on_the_admin_port(lab: &Lab) {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    writeln!(script, "SELECT hostname FROM mysql_servers LIMIT 1;").unwrap();
    let port = lab.daemon.admin_port.to_string();
    for kind in [Kind::MySql, Kind::MariaDb] {
        let output = lab.servers.command_line(kind, &["-P", &port, "-uadmin", "-padmin"], script.path());
        let (answer, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(answer, "hostname\n127.0.0.1\n", "{kind:?}: {error}");
    }
}

/// The clients ask for @@version_comment of their own accord, and the daemon answers with its own.
fn without_version_comment(mut packets: Vec<Packet>) -> Vec<Packet> {
    let asks =
        |packet: &Packet| packet.payload.windows(17).any(|window| window == b"@@version_comment".as_slice());
    if let Some(column) = packets.iter().position(asks) {
        // From the column count to the next statement's first packet.
        let end = packets.iter().skip(column).position(|packet| packet.sequence == 1);
        packets.drain(column - 1..end.map_or(packets.len(), |end| column + end));
    }
    packets
}

/// What the server's own command-line client prints, on both of its streams.
pub fn printed(lab: &Lab, route: &Route, port: u16, more: &[&str], script: &Path) -> String {
    let port = port.to_string();
    let mut arguments = vec!["-P", &port, "-u", route.user, "-papp-secret", "--force", "--table"];
    arguments.push("--default-character-set=utf8mb4");
    arguments.extend(more);
    arguments.push("app");
    let output = lab.servers.command_line(route.kind, &arguments, script);
    [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned()).concat()
}
