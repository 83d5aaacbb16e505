//! SHOW, DESCRIBE and information_schema.

use super::*;

fn columns(f: &Fixture, sql: &str) -> Vec<String> {
    match f.admin.execute(sql) {
        Ok(Answer::Rows { columns, .. }) => columns,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn tables_are_described() {
    let f = fixture();
    let fields = f.rows("SHOW FIELDS FROM mysql_users");
    assert_eq!(fields[0], "username|varchar|NO|PRI|NULL|");
    assert_eq!(fields[1], "password|varchar|YES||NULL|");
    assert_eq!(fields[2], "active|int|NO||1|");
    assert_eq!(f.rows("SHOW COLUMNS IN `main`.`mysql_users`"), fields);
    assert_eq!(f.rows("show columns from mysql_users from main"), fields);
    assert_eq!(f.rows("DESCRIBE mysql_users"), fields);
    assert_eq!(f.rows("desc mysql_users 'active'"), fields[2..3]);
    assert_eq!(f.rows("SHOW FIELDS FROM mysql_users LIKE 'act%'"), fields[2..3]);
    assert_eq!(f.rows("SHOW FIELDS FROM mysql_users WHERE Field = 'comment'"), ["comment|varchar|NO|||"]);
    assert_eq!(columns(&f, "SHOW FULL COLUMNS FROM mysql_users").len(), 9);
    assert_eq!(f.rows("SHOW FIELDS FROM runtime_mysql_users"), fields);
    assert!(f.error("SHOW FIELDS FROM nothing").message.contains("no such table: nothing"));
    assert!(f.error("SHOW FIELDS FROM stats.mysql_users").message.contains("no such table"));
    assert!(f.error("SHOW FIELDS FROM mysql_users GROUP").message.contains("syntax error"));
}

#[test]
fn keys_and_status_are_shown() {
    let f = fixture();
    let keys = f.rows("SHOW KEYS FROM mysql_users");
    assert_eq!(keys.len(), 4);
    assert!(keys[0].starts_with("mysql_users|0|PRIMARY|1|username|A|"));
    assert!(keys[2].starts_with("mysql_users|0|username|1|username|A|"));
    assert_eq!(f.rows("SHOW INDEX FROM mysql_users WHERE Key_name = 'PRIMARY'"), keys[..2]);
    assert_eq!(f.rows("SHOW INDEXES IN mysql_users FROM admin"), keys);
    let status = f.rows("SHOW TABLE STATUS LIKE 'mysql\\_users'");
    assert_eq!(status.len(), 1);
    assert!(status[0].starts_with("mysql_users|SQLite|"));
    assert_eq!(f.rows("SHOW TABLE STATUS FROM disk").len(), crate::tables::TABLES.len());
    assert_eq!(f.rows("SHOW TABLE STATUS FROM disk WHERE Name = 'nothing'"), Vec::<String>::new());
}

#[test]
fn tables_and_databases_are_listed_as_tools_ask() {
    let f = fixture();
    assert_eq!(columns(&f, "SHOW TABLES"), ["tables"]);
    assert_eq!(f.rows("SHOW FULL TABLES FROM disk LIKE 'mysql\\_users'"), ["mysql_users|BASE TABLE"]);
    assert_eq!(f.rows("SHOW FULL TABLES FROM `main` WHERE tables = 'mysql_users'").len(), 1);
    assert_eq!(f.rows("SHOW TABLES FROM admin"), f.rows("SHOW TABLES FROM main"));
    assert_eq!(columns(&f, "SHOW SCHEMAS"), ["seq", "name", "file"]);
    assert_eq!(f.rows("SHOW DATABASES LIKE 'ma%'"), ["0|main|"]);
    assert_eq!(f.one("SHOW CREATE DATABASE IF NOT EXISTS `main`"), "main|CREATE DATABASE `main`");
}

#[test]
fn variables_of_a_server_are_found_by_name_alone() {
    let f = fixture();
    assert!(f.rows("SHOW VARIABLES").iter().all(|row| row.split('|').next().unwrap().contains('-')));
    assert_eq!(f.rows("SHOW VARIABLES LIKE 'lower_case_table_names'"), ["lower_case_table_names|0"]);
    let connector = "SHOW VARIABLES WHERE Variable_name = 'language' OR Variable_name = 'net_write_timeout' \
        OR Variable_name = 'interactive_timeout' OR Variable_name = 'wait_timeout' OR Variable_name = 'admin-version'";
    assert_eq!(f.rows(connector).len(), 4);
    assert_eq!(f.rows("SHOW GLOBAL VARIABLES LIKE 'read_only'"), ["read_only|OFF"]);
    assert_eq!(f.rows("SHOW MYSQL VARIABLES LIKE 'version'"), Vec::<String>::new());
}

#[test]
fn status_and_the_short_forms_are_those_of_their_tables() {
    let f = fixture();
    let rows = Arc::new(|| vec![vec![Value::Text("Questions".into()), Value::Text("7".into())]]);
    let ddl = ddl::STATS_MYSQL_GLOBAL;
    f.admin.register(LiveTable { name: "stats_mysql_global", schema: Schema::Stats, ddl, rows }).unwrap();
    for sql in ["SHOW MYSQL STATUS", "SHOW STATUS LIKE 'Quest%'", "SHOW GLOBAL STATUS WHERE Value > 1"] {
        assert_eq!(f.rows(sql), ["Questions|7"], "{sql}");
    }
    assert_eq!(columns(&f, "SHOW MYSQL STATUS"), ["Variable_name", "Value"]);
    assert_eq!(f.one("SELECT @@questions"), "7");
    f.ok("INSERT INTO mysql_users (username, password) VALUES ('b', 'x'), ('a', 'x')");
    f.ok("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (2, 'h'), (1, 'h')");
    assert!(f.rows("SHOW MYSQL USERS")[0].starts_with("a|x|"));
    assert!(f.rows("show mysql servers;")[0].starts_with("1|h|"));
}

#[test]
fn what_there_is_nothing_of_is_empty() {
    let f = fixture();
    for sql in [
        "SHOW WARNINGS",
        "SHOW WARNINGS LIMIT 5",
        "SHOW ERRORS",
        "SHOW TRIGGERS LIKE 'mysql\\_users'",
        "SHOW TRIGGERS FROM `main`",
        "SHOW EVENTS",
        "SHOW FUNCTION STATUS WHERE Db = 'main'",
        "SHOW PROCEDURE STATUS",
        "SHOW PLUGINS",
        "SHOW BINARY LOG STATUS",
        "SHOW REPLICA STATUS",
        "SHOW ENGINES WHERE Engine = 'InnoDB'",
    ] {
        assert_eq!(f.rows(sql), Vec::<String>::new(), "{sql}");
    }
    assert!(f.rows("SHOW CHARSET LIKE 'utf8mb4'")[0].starts_with("utf8mb4|utf8mb4|"));
    assert_eq!(f.rows("SHOW COLLATION WHERE Charset = 'utf8mb4' AND Id = 45").len(), 1);
    assert_eq!(f.rows("SHOW CHARACTER SET").len(), 41);
    assert_eq!(f.one("SHOW GRANTS FOR CURRENT_USER()"), "GRANT ALL PRIVILEGES ON *.* TO 'admin'@'%'");
    assert_eq!(f.one("SHOW COUNT(*) WARNINGS"), "0");
    f.error("SHOW SOMETHING ELSE");
}

#[test]
fn information_schema_answers_tools() {
    let f = fixture();
    let tables =
        "SELECT table_schema FROM information_schema.TABLES WHERE TABLE_NAME = 'mysql_users' ORDER BY 1";
    assert_eq!(f.rows(tables), ["admin", "disk", "main"]);
    assert_eq!(f.one("SELECT COUNT(*) FROM information_schema.TABLES WHERE table_schema = DATABASE() AND table_name = 'mysql_users'"), "1");
    let columns = "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_KEY, COLUMN_DEFAULT FROM INFORMATION_SCHEMA.COLUMNS
        WHERE TABLE_SCHEMA = 'main' AND TABLE_NAME = 'mysql_users' ORDER BY ORDINAL_POSITION LIMIT 3";
    assert_eq!(f.rows(columns), ["username|varchar|PRI|NULL", "password|varchar||NULL", "active|bigint||1"]);
    assert_eq!(f.rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA").len(), 5);
    let keys = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'main' AND table_name = 'mysql_users'";
    assert_eq!(f.one(keys), "4");
    for table in ["VIEWS", "ROUTINES", "TRIGGERS", "EVENTS", "FILES", "KEY_COLUMN_USAGE", "PARTITIONS"] {
        assert_eq!(f.one(&format!("SELECT COUNT(*) FROM information_schema.{table}")), "0");
    }
    let listed: usize = f.one("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'COLUMNS'").parse().unwrap();
    assert_eq!(listed, self::columns(&f, "SELECT * FROM information_schema.COLUMNS").len());
}

#[test]
fn variables_may_stand_among_other_things() {
    let f = fixture();
    assert_eq!(f.one("SELECT @@version, DATABASE() AS d"), format!("{VERSION}|admin"));
    assert_eq!(columns(&f, "SELECT @@version, @@sql_mode m, DATABASE() AS d"), ["@@version", "m", "d"]);
    assert_eq!(f.one("SELECT CONCAT(@@version_comment, '@@x')"), "(ProxySQL Admin Module)@@x");
    assert_eq!(f.one("SELECT 1 FROM DUAL"), "1");
    assert_eq!(f.one("select @@session.auto_increment_increment + 1 from dual limit 1"), "2");
    assert_eq!(f.error("SELECT 1, @@unheard_of").code, 1193);
    assert_eq!(f.one("SELECT COUNT(*) FROM global_variables WHERE variable_value = @@version"), "1");
}
