//! Each configuration table beside ProxySQL's, column by column: names, types, defaults, keys, and what CHECKs let pass.

use crate::{ddl, tables::TABLES};
use rusqlite::Connection;

/// A column: its name, type and default (nothing: it has none), then values it takes and values it refuses. A type that ends
/// with `!` is NOT NULL. Values are SQL.
type Column = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

struct Expected {
    name: &'static str,
    columns: &'static [Column],
    key: &'static [&'static str],
    unique: &'static [&'static str],
    /// A row's values that have no default.
    row: &'static [(&'static str, &'static str)],
    runtime: &'static str,
    /// What the runtime form has more than the table, or otherwise.
    runtime_columns: &'static [Column],
}

const FLAG: &[&str] = &["0", "1"];
const NO_FLAG: &[&str] = &["2", "-1", "'x'"];
const PORT: &[&str] = &["0", "1", "65535"];
const NO_PORT: &[&str] = &["-1", "65536"];
const TEXT: &[&str] = &["''", "'text'"];
const JSON: &[&str] = &["''", "'{}'", "' {\"a\": [1]} '"];
const NO_JSON: &[&str] = &["' '", "'{'", "'text'"];
const NATURAL: &[&str] = &["0", "1", "2147483647"];
const NEGATIVE: &[&str] = &["-1"];
const NONE: &[&str] = &[];

const EXPECTED: &[Expected] = &[
    Expected {
        name: "mysql_servers",
        columns: &[
            ("hostgroup_id", "INT!", "0", NATURAL, NEGATIVE),
            ("hostname", "VARCHAR!", "", TEXT, NONE),
            ("port", "INT!", "3306", PORT, NO_PORT),
            ("gtid_port", "INT!", "0", &["0", "1", "65535"], &["3306", "-1", "65536"]),
            (
                "status",
                "VARCHAR!",
                "'ONLINE'",
                &["'ONLINE'", "'shunned'", "'OFFLINE_SOFT'", "'Offline_Hard'"],
                &["'SHUNNED_AWS_BGD'", "'SHUNNED_REPLICATION_LAG'", "''", "'UP'"],
            ),
            ("weight", "INT!", "1", &["0", "10000000"], &["-1", "10000001"]),
            ("compression", "INT!", "0", FLAG, NO_FLAG),
            ("max_connections", "INT!", "1000", NATURAL, NEGATIVE),
            ("max_replication_lag", "INT!", "0", &["0", "126144000"], &["-1", "126144001"]),
            ("use_ssl", "INT!", "0", FLAG, NO_FLAG),
            ("max_latency_ms", "INT UNSIGNED!", "0", NATURAL, NEGATIVE),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["hostgroup_id", "hostname", "port"],
        unique: &[],
        row: &[("hostname", "'h'")],
        runtime: ddl::RUNTIME_MYSQL_SERVERS,
        runtime_columns: &[(
            "status",
            "VARCHAR!",
            "'ONLINE'",
            &["'ONLINE'", "'SHUNNED_AWS_BGD'"],
            &["'SHUNNED_REPLICATION_LAG'", "''"],
        )],
    },
    Expected {
        name: "mysql_replication_hostgroups",
        columns: &[
            ("writer_hostgroup", "INT!", "", &["0", "1"], NEGATIVE),
            ("reader_hostgroup", "INT!", "", &["0", "1"], &["-1", "5"]),
            (
                "check_type",
                "VARCHAR!",
                "'read_only'",
                &[
                    "'read_only'",
                    "'INNODB_READ_ONLY'",
                    "'super_read_only'",
                    "'read_only|innodb_read_only'",
                    "'read_only&innodb_read_only'",
                ],
                &["''", "'read_only|super_read_only'"],
            ),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["writer_hostgroup"],
        unique: &["reader_hostgroup"],
        row: &[("writer_hostgroup", "5"), ("reader_hostgroup", "6")],
        runtime: ddl::RUNTIME_MYSQL_REPLICATION_HOSTGROUPS,
        runtime_columns: &[],
    },
    Expected {
        name: "mysql_aws_rds_bgd_hostgroups",
        columns: &[
            ("writer_hostgroup", "INT!", "", &["0", "1"], NEGATIVE),
            ("reader_hostgroup", "INT!", "", &["1"], &["-1", "0", "5"]),
            ("green_writer_hostgroup", "INT!", "", &["0", "5", "6"], NEGATIVE),
            ("green_reader_hostgroup", "INT!", "", &["0", "5", "6", "7"], NEGATIVE),
            ("active", "INT!", "1", FLAG, NO_FLAG),
            ("writer_is_also_reader", "INT!", "0", FLAG, NO_FLAG),
            ("check_interval_ms", "INT!", "1000", &["100", "600000"], &["99", "600001"]),
            ("check_timeout_ms", "INT!", "800", &["80", "3000"], &["79", "3001"]),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["writer_hostgroup"],
        unique: &["reader_hostgroup"],
        row: &[
            ("writer_hostgroup", "5"),
            ("reader_hostgroup", "6"),
            ("green_writer_hostgroup", "7"),
            ("green_reader_hostgroup", "8"),
        ],
        runtime: ddl::RUNTIME_MYSQL_AWS_RDS_BGD_HOSTGROUPS,
        runtime_columns: &[
            ("green_writer_hostgroup", "INT", "NULL", &["0"], NEGATIVE),
            ("green_reader_hostgroup", "INT", "NULL", &["0"], NEGATIVE),
            ("auto_generated", "INT!", "0", FLAG, NO_FLAG),
            ("status", "VARCHAR!", "'NONE'", TEXT, NONE),
        ],
    },
    Expected {
        name: "mysql_hostgroup_attributes",
        columns: &[
            ("hostgroup_id", "INT!", "", NATURAL, NONE),
            ("max_num_online_servers", "INT!", "1000000", &["0", "1000000"], &["-1", "1000001"]),
            ("autocommit", "INT!", "-1", &["-1", "0", "1"], &["-2", "2"]),
            ("free_connections_pct", "INT!", "10", &["0", "100"], &["-1", "101"]),
            ("init_connect", "VARCHAR!", "''", TEXT, NONE),
            ("multiplex", "INT!", "1", FLAG, NO_FLAG),
            ("connection_warming", "INT!", "0", FLAG, NO_FLAG),
            ("throttle_connections_per_sec", "INT!", "1000000", &["1", "1000000"], &["0", "1000001"]),
            ("ignore_session_variables", "VARCHAR!", "''", JSON, NO_JSON),
            ("hostgroup_settings", "VARCHAR!", "''", JSON, NO_JSON),
            ("servers_defaults", "VARCHAR!", "''", JSON, NO_JSON),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["hostgroup_id"],
        unique: &[],
        row: &[("hostgroup_id", "5")],
        runtime: ddl::RUNTIME_MYSQL_HOSTGROUP_ATTRIBUTES,
        runtime_columns: &[],
    },
    Expected {
        name: "mysql_servers_ssl_params",
        columns: &[
            ("hostname", "VARCHAR!", "", TEXT, NONE),
            ("port", "INT!", "3306", PORT, NO_PORT),
            ("username", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_ca", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_cert", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_key", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_capath", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_crl", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_crlpath", "VARCHAR!", "''", TEXT, NONE),
            ("ssl_cipher", "VARCHAR!", "''", TEXT, NONE),
            ("tls_version", "VARCHAR!", "''", TEXT, NONE),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["hostname", "port", "username"],
        unique: &[],
        row: &[("hostname", "'h'")],
        runtime: ddl::RUNTIME_MYSQL_SERVERS_SSL_PARAMS,
        runtime_columns: &[],
    },
    Expected {
        name: "mysql_users",
        columns: &[
            ("username", "VARCHAR!", "", TEXT, NONE),
            ("password", "VARCHAR", "", TEXT, NONE),
            ("active", "INT!", "1", FLAG, NO_FLAG),
            ("use_ssl", "INT!", "0", FLAG, NO_FLAG),
            ("default_hostgroup", "INT!", "0", NATURAL, NONE),
            ("default_schema", "VARCHAR", "", TEXT, NONE),
            ("schema_locked", "INT!", "0", FLAG, NO_FLAG),
            ("transaction_persistent", "INT!", "1", FLAG, NO_FLAG),
            ("fast_forward", "INT!", "0", FLAG, NO_FLAG),
            ("backend", "INT!", "1", FLAG, NO_FLAG),
            ("frontend", "INT!", "1", FLAG, NO_FLAG),
            ("max_connections", "INT!", "10000", NATURAL, NEGATIVE),
            ("attributes", "VARCHAR!", "''", JSON, NO_JSON),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["username", "backend"],
        unique: &["username,frontend"],
        row: &[("username", "'u'")],
        runtime: ddl::RUNTIME_MYSQL_USERS,
        runtime_columns: &[],
    },
    Expected {
        name: "mysql_query_rules",
        columns: &[
            ("rule_id", "INTEGER!", "", &["0", "1", "4294967296"], &["'x'"]),
            ("active", "INT!", "0", FLAG, NO_FLAG),
            ("username", "VARCHAR", "", TEXT, NONE),
            ("schemaname", "VARCHAR", "", TEXT, NONE),
            ("flagIN", "INT!", "0", NATURAL, NEGATIVE),
            ("client_addr", "VARCHAR", "", TEXT, NONE),
            ("proxy_addr", "VARCHAR", "", TEXT, NONE),
            ("proxy_port", "INT", "", PORT, NO_PORT),
            ("digest", "VARCHAR", "", TEXT, NONE),
            ("match_digest", "VARCHAR", "", TEXT, NONE),
            ("match_pattern", "VARCHAR", "", TEXT, NONE),
            ("negate_match_pattern", "INT!", "0", FLAG, NO_FLAG),
            ("re_modifiers", "VARCHAR", "'CASELESS'", TEXT, NONE),
            ("flagOUT", "INT", "", NATURAL, NEGATIVE),
            // A replacement needs a pattern, which the row has not.
            ("replace_pattern", "VARCHAR", "", NONE, &["''", "'x'"]),
            ("destination_hostgroup", "INT", "NULL", &["0", "-1"], NONE),
            ("cache_ttl", "INT", "", &["1"], &["0", "-1"]),
            ("cache_empty_result", "INT", "NULL", FLAG, NO_FLAG),
            ("cache_timeout", "INT", "", NATURAL, NEGATIVE),
            ("reconnect", "INT", "NULL", FLAG, NO_FLAG),
            ("timeout", "INT UNSIGNED", "", NATURAL, NEGATIVE),
            ("retries", "INT", "", &["0", "1000"], &["-1", "1001"]),
            ("delay", "INT UNSIGNED", "", NATURAL, NEGATIVE),
            ("next_query_flagIN", "INT UNSIGNED", "", NATURAL, NONE),
            ("mirror_flagOUT", "INT UNSIGNED", "", NATURAL, NONE),
            ("mirror_hostgroup", "INT UNSIGNED", "", NATURAL, NONE),
            ("error_msg", "VARCHAR", "", TEXT, NONE),
            ("OK_msg", "VARCHAR", "", TEXT, NONE),
            ("sticky_conn", "INT", "", FLAG, NO_FLAG),
            ("multiplex", "INT", "", &["0", "1", "2"], &["-1", "3"]),
            ("gtid_from_hostgroup", "INT UNSIGNED", "", NATURAL, NONE),
            ("log", "INT", "", FLAG, NO_FLAG),
            ("apply", "INT!", "0", FLAG, NO_FLAG),
            ("attributes", "VARCHAR!", "''", JSON, NO_JSON),
            ("comment", "VARCHAR", "", TEXT, NONE),
        ],
        key: &["rule_id"],
        unique: &[],
        row: &[("rule_id", "5")],
        runtime: ddl::RUNTIME_MYSQL_QUERY_RULES,
        runtime_columns: &[],
    },
    Expected {
        name: "mysql_query_rules_fast_routing",
        columns: &[
            ("username", "VARCHAR!", "", TEXT, NONE),
            ("schemaname", "VARCHAR!", "", TEXT, NONE),
            ("flagIN", "INT!", "0", NATURAL, NONE),
            ("destination_hostgroup", "INT!", "", NATURAL, NEGATIVE),
            ("comment", "VARCHAR!", "", TEXT, NONE),
        ],
        key: &["username", "schemaname", "flagIN"],
        unique: &[],
        row: &[("username", "'u'"), ("schemaname", "'s'"), ("destination_hostgroup", "1"), ("comment", "''")],
        runtime: ddl::RUNTIME_MYSQL_QUERY_RULES_FAST_ROUTING,
        runtime_columns: &[],
    },
    Expected {
        name: "proxysql_servers",
        columns: &[
            ("hostname", "VARCHAR!", "", TEXT, NONE),
            ("port", "INT!", "6032", PORT, NONE),
            ("weight", "INT!", "0", NATURAL, NEGATIVE),
            ("comment", "VARCHAR!", "''", TEXT, NONE),
        ],
        key: &["hostname", "port"],
        unique: &[],
        row: &[("hostname", "'h'")],
        runtime: ddl::RUNTIME_PROXYSQL_SERVERS,
        runtime_columns: &[],
    },
    Expected {
        name: "global_variables",
        columns: &[
            ("variable_name", "VARCHAR!", "", TEXT, NONE),
            ("variable_value", "VARCHAR!", "", TEXT, NONE),
        ],
        key: &["variable_name"],
        unique: &[],
        row: &[("variable_name", "'n'"), ("variable_value", "'v'")],
        runtime: ddl::RUNTIME_GLOBAL_VARIABLES,
        runtime_columns: &[],
    },
];

/// Lines of `SELECT ...`, cells joined with commas.
fn lines(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Compares a table that a text makes.
fn compare(ddl: &str, table: &str, columns: &[Column], expected: &Expected) {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(ddl).unwrap();
    let found = lines(
        &conn,
        &format!(
            "SELECT name || ' ' || type || iif(\"notnull\", '!', '') || ' ' || ifnull(dflt_value, '') FROM pragma_table_info('{table}')"
        ),
    );
    let wanted: Vec<_> =
        columns.iter().map(|(name, kind, default, ..)| format!("{name} {kind} {default}")).collect();
    assert_eq!(found, wanted, "{table}");
    let key = format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk");
    assert_eq!(lines(&conn, &key), expected.key, "{table}");
    let unique = format!(
        "SELECT (SELECT group_concat(name) FROM pragma_index_info(l.name)) FROM pragma_index_list('{table}') l WHERE origin = 'u'"
    );
    assert_eq!(lines(&conn, &unique), expected.unique, "{table}");
    for (column, kind, _, good, bad) in columns {
        let try_value = |value: &str| {
            let row = expected.row.iter().filter(|(name, _)| name != column);
            let row: Vec<_> = row.copied().chain([(*column, value)]).collect();
            let (names, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
            let (names, values) = (names.join(", "), values.join(", "));
            let inserted = conn.execute(&format!("INSERT INTO {table} ({names}) VALUES ({values})"), []);
            conn.execute(&format!("DELETE FROM {table}"), []).unwrap();
            inserted.is_ok()
        };
        good.iter().for_each(|value| assert!(try_value(value), "{table}.{column} refuses {value}"));
        bad.iter().for_each(|value| assert!(!try_value(value), "{table}.{column} takes {value}"));
        // NULL in an integer key is the next number.
        let null = !kind.ends_with('!') || *kind == "INTEGER!";
        assert_eq!(try_value("NULL"), null, "{table}.{column} and NULL");
    }
}

#[test]
fn tables_are_those_of_proxysql() {
    let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    let mut expected: Vec<_> = EXPECTED.iter().map(|table| table.name).collect();
    expected.sort_by_key(|name| names.iter().position(|each| each == name));
    assert_eq!(expected, names, "each table has its row above");
    for expected in EXPECTED {
        let table = TABLES.iter().find(|table| table.name == expected.name).unwrap();
        compare(table.ddl, table.name, expected.columns, expected);
        let mut columns = expected.columns.to_vec();
        for column in expected.runtime_columns {
            match columns.iter_mut().find(|(name, ..)| *name == column.0) {
                Some(other) => *other = *column,
                None => columns.push(*column),
            }
        }
        compare(expected.runtime, &format!("runtime_{}", table.name), &columns, expected);
    }
}

#[test]
fn a_replacement_needs_a_pattern() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(ddl::MYSQL_QUERY_RULES).unwrap();
    let insert = |columns, values| {
        conn.execute(&format!("INSERT INTO mysql_query_rules ({columns}) VALUES ({values})"), [])
    };
    assert!(insert("match_pattern, replace_pattern", "'a', 'b'").is_ok());
    assert!(insert("match_digest, replace_pattern", "'a', 'b'").is_err());
}

#[test]
fn the_other_tables_of_main_have_the_known_columns() {
    for (ddl, table, expected) in [
        (
            ddl::RUNTIME_CHECKSUMS_VALUES,
            "runtime_checksums_values",
            ["name VARCHAR 1 1", "version INT 1 0", "epoch INT 1 0", "checksum VARCHAR 1 0"],
        ),
        (
            ddl::MYSQL_COLLATIONS,
            "mysql_collations",
            ["Id INTEGER 1 1", "Collation VARCHAR 1 0", "Charset VARCHAR 1 0", "Default VARCHAR 1 0"],
        ),
    ] {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(ddl).unwrap();
        let sql = format!(
            "SELECT name || ' ' || type || ' ' || \"notnull\" || ' ' || pk FROM pragma_table_info('{table}')"
        );
        assert_eq!(lines(&conn, &sql), expected, "{table}");
    }
}
