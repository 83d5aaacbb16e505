use super::*;

const VERSIONS: &str = "SELECT name, version, checksum FROM runtime_checksums_values";

fn checksum(f: &Fixture, what: &str) -> String {
    f.one(&format!("CHECKSUM {what}"))
}

#[test]
fn checksum_follows_the_rows_of_a_layer() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'), (2, 'b')");
    let filled = checksum(&f, "MYSQL SERVERS");
    let (table, number) = filled.split_once('|').unwrap();
    assert_eq!((table, number.len()), ("mysql_servers", 18));
    assert!(number.starts_with("0x"), "{number}");
    assert_eq!(checksum(&f, "MEMORY MYSQL SERVERS"), filled);
    assert_eq!(checksum(&f, " mem  mysql servers ;"), filled);
    assert_ne!(checksum(&f, "DISK MYSQL SERVERS"), filled);
    f.ok("SAVE MYSQL SERVERS TO DISK");
    assert_eq!(checksum(&f, "DISK MYSQL SERVERS"), filled);
    // The order of making does not count, and each value does.
    f.ok("DELETE FROM mysql_servers");
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (2, 'b'), (1, 'a')");
    assert_eq!(checksum(&f, "MYSQL SERVERS"), filled);
    f.ok("UPDATE mysql_servers SET comment = 'x' WHERE hostname = 'a'");
    assert_ne!(checksum(&f, "MYSQL SERVERS"), filled);
}

#[test]
fn every_table_and_kind_of_variables_has_a_checksum() {
    let f = fixture();
    for (words, table) in [
        ("MYSQL USERS", "mysql_users"),
        ("MYSQL QUERY RULES", "mysql_query_rules"),
        ("MYSQL QUERY RULES FAST ROUTING", "mysql_query_rules_fast_routing"),
        ("MYSQL REPLICATION HOSTGROUPS", "mysql_replication_hostgroups"),
        ("MYSQL AWS RDS BGD HOSTGROUPS", "mysql_aws_rds_bgd_hostgroups"),
        ("MYSQL HOSTGROUP ATTRIBUTES", "mysql_hostgroup_attributes"),
        ("MYSQL SERVERS SSL PARAMS", "mysql_servers_ssl_params"),
        ("PROXYSQL SERVERS", "proxysql_servers"),
        ("MYSQL VARIABLES", "global_variables"),
        ("ADMIN VARIABLES", "global_variables"),
        ("SQLITESERVER VARIABLES", "global_variables"),
    ] {
        for layer in ["", "MEMORY ", "MEM ", "DISK "] {
            let found = checksum(&f, &format!("{layer}{words}"));
            assert!(found.starts_with(&format!("{table}|0x")), "{layer}{words}: {found}");
        }
    }
    let before = checksum(&f, "MYSQL VARIABLES");
    f.ok("SET admin-read_only = 'true'");
    assert_eq!(checksum(&f, "MYSQL VARIABLES"), before);
    f.ok("SET mysql-wait_timeout = 5");
    assert_ne!(checksum(&f, "MYSQL VARIABLES"), before);
    for wrong in ["CHECKSUM", "CHECKSUM MYSQL", "CHECKSUM GLOBAL VARIABLES", "CHECKSUM TAPE MYSQL USERS"] {
        assert!(f.error(wrong).message.starts_with("ProxySQL Admin Error: "), "{wrong}");
    }
}

#[test]
fn a_version_begins_where_the_content_changes() {
    let f = fixture();
    let placed =
        f.register_runtime(vec![server_row(1, "a", "ONLINE"), server_row(1, "gone", "OFFLINE_HARD")], vec![]);
    let version = |name: &str| -> i64 {
        let sql = format!("SELECT version FROM runtime_checksums_values WHERE name = '{name}'");
        f.one(&sql).parse().unwrap()
    };
    let names = [
        "admin_variables",
        "mysql_query_rules",
        "mysql_servers",
        "mysql_servers_v2",
        "mysql_users",
        "mysql_variables",
        "proxysql_servers",
    ];
    assert_eq!(f.rows("SELECT name FROM runtime_checksums_values"), names);
    assert_eq!(names.map(version), [1; 7]);
    let before = f.rows(VERSIONS);
    for module in ["MYSQL SERVERS", "MYSQL USERS", "MYSQL QUERY RULES", "MYSQL VARIABLES", "PROXYSQL SERVERS"]
    {
        f.ok(&format!("LOAD {module} TO RUNTIME"));
    }
    assert_eq!(f.rows(VERSIONS), before, "the same was loaded again");
    let global = f.one("SELECT GLOBAL_CHECKSUM()");
    f.ok("INSERT INTO mysql_users (username) VALUES ('u')");
    assert_eq!(f.rows(VERSIONS), before, "nothing was loaded");
    assert_eq!(f.one("select global_checksum();"), global);
    f.ok("LOAD MYSQL USER u TO RUNTIME");
    f.ok("INSERT INTO mysql_servers (hostname, status) VALUES ('b', 'SHUNNED')");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    f.ok("INSERT INTO proxysql_servers (hostname) VALUES ('p')");
    f.ok("LOAD PROXYSQL SERVERS TO RUNTIME");
    f.ok("SET mysql-wait_timeout = 5, mysql-interfaces = '127.0.0.1:1'");
    f.ok("LOAD MYSQL VARIABLES TO RUNTIME");
    assert_eq!(names.map(version), [1, 1, 1, 2, 2, 2, 2]);
    assert_ne!(f.one("SELECT GLOBAL_CHECKSUM()"), global);
    assert_ne!(f.one("SELECT MIN(epoch) FROM runtime_checksums_values"), "0");
    // A shun is no change, nor is where this machine listens.
    let loaded = f.rows(VERSIONS);
    f.ok("UPDATE mysql_servers SET status = 'ONLINE'");
    f.ok("LOAD MYSQL SERVERS TO RUNTIME");
    f.ok("SET mysql-interfaces = '127.0.0.1:2'");
    f.ok("LOAD MYSQL VARIABLES TO RUNTIME");
    assert_eq!(f.rows(VERSIONS), loaded);
    // Moves are: the table is over what is in force.
    *placed.lock() = vec![server_row(2, "a", "SHUNNED")];
    assert_eq!(names.map(version), [1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn deployments_that_discovery_made_do_not_count() {
    let checksum = |deployments: Vec<Vec<Value>>| {
        let f = fixture();
        f.register_runtime(vec![], deployments);
        f.one("SELECT checksum FROM runtime_checksums_values WHERE name = 'mysql_servers'")
    };
    let configured = checksum(vec![deployment_row(10, false)]);
    assert_eq!(checksum(vec![deployment_row(10, false), deployment_row(20, true)]), configured);
    assert_ne!(checksum(vec![deployment_row(20, false)]), configured);
}
