use super::*;

#[test]
fn load_and_save_have_many_spellings() {
    let f = fixture();
    f.register_runtime(vec![], vec![]);
    for module in [
        "MYSQL SERVERS",
        "MYSQL USERS",
        "MYSQL QUERY RULES",
        "PROXYSQL SERVERS",
        "MYSQL VARIABLES",
        "ADMIN VARIABLES",
        "SQLITESERVER VARIABLES",
    ] {
        for way in ["FROM MEMORY", "FROM MEM", "TO RUNTIME", "TO RUN", "FROM DISK", "TO MEMORY", "TO MEM"] {
            assert_eq!(f.ok(&format!("LOAD {module} {way}")), (0, String::new()));
        }
        for way in ["TO MEMORY", "TO MEM", "FROM RUNTIME", "FROM RUN", "TO DISK", "FROM MEMORY", "FROM MEM"] {
            assert_eq!(f.ok(&format!("SAVE {module} {way}")), (0, String::new()));
        }
    }
    let before = f.daemon.sets.lock().len();
    f.ok(" /* now */ load\tMySQL \n users  to   runtime ; ; ");
    assert_eq!(f.daemon.sets.lock().len(), before + 1);
    for wrong in
        ["LOAD MYSQL USERS", "LOAD MYSQL USERS TO DISK", "SAVE MYSQL USERS TO RUNTIME", "LOAD X TO RUNTIME"]
    {
        assert!(f.error(wrong).message.starts_with("ProxySQL Admin Error: near"));
    }
}

#[test]
fn set_checks_and_stores_what_a_value_reads_as() {
    let f = fixture();
    for (sql, name, value) in [
        ("SET mysql-monitor_enabled='false'", "mysql-monitor_enabled", "false"),
        ("SET mysql-monitor_enabled = 1", "mysql-monitor_enabled", "true"),
        ("set global MYSQL-Wait_Timeout=\"5000\";", "mysql-wait_timeout", "5000"),
        (
            "SET sqliteserver-mysql_ifaces='0.0.0.0:3306;[::]:3306'",
            "sqliteserver-mysql_ifaces",
            "0.0.0.0:3306;[::]:3306",
        ),
        ("SET mysql-monitor_password='it''s; a, b'", "mysql-monitor_password", "it's; a, b"),
        ("SET mysql-monitor_username=''", "mysql-monitor_username", ""),
    ] {
        assert_eq!(f.ok(sql), (1, String::new()), "{sql}");
        assert_eq!(f.one(&format!("SELECT @@{name}")), value);
    }
    assert_eq!(f.ok("SET mysql-monitor_history=5000, mysql-max_connections=5").0, 2);
    assert_eq!(f.one("SELECT @@mysql-monitor_history, @@mysql-max_connections"), "5000|5");
    let error = f.error("SET mysql-max_connections=6, mysql-monitor_history=1");
    assert_eq!(error.code, 1231);
    assert!(error.message.contains("mysql-monitor_history"));
    assert_eq!(f.one("SELECT @@mysql-max_connections"), "5");
    assert_eq!(f.error("SET mysql-monitor_username=a,b").code, 1064);
    assert_eq!(f.one("SELECT @@mysql-monitor_username"), "");
    assert!(f.error("SET admin-version='9'").message.contains("read-only"));
}

#[test]
fn set_of_an_unknown_variable_is_ok_and_says_so() {
    let f = fixture();
    let (affected, info) = f.ok("SET mysql-no_such_thing='1'");
    assert_eq!((affected, info.as_str()), (0, "Unknown global variable: mysql-no_such_thing"));
    assert_eq!(f.ok("SET unknown-variable=1").1, "Unknown global variable: unknown-variable");
    assert_eq!(f.ok("SET time_zone='-08:00'").1, "");
    assert_eq!(f.one("SELECT COUNT(*) FROM global_variables WHERE variable_name LIKE '%no_such%'"), "0");
}

#[test]
fn what_drivers_send_is_accepted() {
    let f = fixture();
    for sql in [
        "SET NAMES utf8mb4",
        "SET autocommit=1",
        "SET AUTOCOMMIT = 0",
        "SET character_set_results = NULL",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET sql_mode='STRICT_TRANS_TABLES'",
        "SET @@session.wait_timeout=3600",
        "/*!40101 SET NAMES utf8 */",
        "BEGIN",
        "start  transaction",
        "COMMIT",
        "ROLLBACK",
        "USE main",
        "use `stats`;",
        "LOCK TABLES mysql_servers READ",
        "UNLOCK TABLES",
    ] {
        assert_eq!(f.ok(sql), (0, String::new()), "{sql}");
    }
    for (sql, answer) in [
        ("select @@version_comment limit 1", "(ProxySQL Admin Module)"),
        ("SELECT @@max_allowed_packet,@@wait_timeout,@@socket", "67108864|28800|NULL"),
        ("/* c */SELECT @@session.auto_increment_increment AS a, @@sql_mode", "1|"),
        ("SELECT @@version", VERSION),
        ("select VERSION()", VERSION),
        ("select DATABASE(), USER() limit 1", "admin|admin"),
        ("SELECT CONNECTION_ID()", "0"),
    ] {
        assert_eq!(f.one(sql), answer, "{sql}");
    }
    assert_eq!(f.error("SELECT @@nothing").code, 1193);
    let Ok(Answer::Rows { columns, .. }) = f.admin.execute("SELECT @@sql_mode, @@license AS l") else {
        panic!()
    };
    assert_eq!(columns, ["@@sql_mode", "l"]);
}

#[test]
fn show_lists_tables_and_databases() {
    let f = fixture();
    let tables = f.rows("SHOW TABLES");
    for name in ["mysql_servers", "mysql_users", "global_variables", "runtime_global_variables"] {
        assert!(tables.contains(&name.to_owned()), "{name}");
    }
    assert_eq!(f.rows("show tables like 'mysql\\_u%'"), ["mysql_users"]);
    assert_eq!(f.rows("SHOW TABLES FROM disk LIKE '%users'"), ["mysql_users"]);
    assert_eq!(f.rows("SHOW TABLES FROM `stats`"), Vec::<String>::new());
    assert!(f.error("SHOW TABLES FROM nowhere").message.contains("nowhere"));
    let databases = f.rows("SHOW DATABASES");
    let names: Vec<_> = databases.iter().filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(names, ["main", "disk", "stats", "monitor", "stats_history"]);
}

#[test]
fn show_variables_filters() {
    let f = fixture();
    let all = f.rows("SHOW VARIABLES");
    assert_eq!(all.len(), registry::VARIABLES.len());
    assert_eq!(f.rows("SHOW GLOBAL VARIABLES LIKE 'mysql-wait\\_timeout'"), ["mysql-wait_timeout|28800000"]);
    assert_eq!(f.rows("SHOW ALL VARIABLES WHERE Variable_name IN ('admin-version', 'language')").len(), 1);
    assert!(f.rows("SHOW ADMIN VARIABLES").iter().all(|row| row.starts_with("admin-")));
    assert_eq!(f.rows("SHOW MYSQL VARIABLES LIKE 'admin%'"), Vec::<String>::new());
    assert_eq!(f.rows("SHOW WARNINGS"), Vec::<String>::new());
}

#[test]
fn show_create_table_prints_the_ddl() {
    let f = fixture();
    assert_eq!(f.one("SHOW CREATE TABLE mysql_servers"), format!("mysql_servers|{}", ddl::MYSQL_SERVERS));
    assert_eq!(f.one("SHOW CREATE TABLE disk.mysql_users"), format!("mysql_users|{}", ddl::MYSQL_USERS));
    let live = f.one("SHOW CREATE TABLE `main`.`runtime_mysql_users`");
    assert_eq!(live, format!("runtime_mysql_users|{}", ddl::RUNTIME_MYSQL_USERS));
    assert!(f.error("SHOW CREATE TABLE nothing").message.contains("no such table: nothing"));
}

#[test]
fn shutdown_reaches_the_daemon() {
    let f = fixture();
    f.ok("proxysql shutdown slow");
    f.ok("PROXYSQL SHUTDOWN;");
    assert_eq!(*f.daemon.commands.lock(), [ProcessCommand::ShutdownSlow, ProcessCommand::Shutdown]);
    f.error("PROXYSQL DANCE");
}

#[test]
fn sessions_and_their_statements_are_killed_by_number() {
    let f = fixture();
    for sql in ["KILL CONNECTION 7", "kill  query 8;", "KILL 9"] {
        f.ok(sql);
    }
    let expected =
        [ProcessCommand::KillConnection(7), ProcessCommand::KillQuery(8), ProcessCommand::KillConnection(9)];
    assert_eq!(*f.daemon.commands.lock(), expected);
    for sql in ["KILL", "KILL CONNECTION", "KILL QUERY x", "KILL 5000000000", "KILL -1"] {
        f.error(sql);
    }
    assert_eq!(f.daemon.commands.lock().len(), 3);
}

#[test]
fn what_refusals_show_is_printable() {
    let f = fixture();
    f.ok("INSERT INTO mysql_servers (hostname, max_connections) VALUES ('a', '\u{1b}[31m\n')");
    let message = f.error("LOAD MYSQL SERVERS TO RUNTIME").message;
    assert!(message.contains("'\\u{1b}[31m\\n'"), "{message}");
    for sql in [
        "SET mysql-wait_timeout='\u{1b}\n'",
        "SELECT \u{7}x FROM mysql_servers",
        "LOAD MYSQL USER a\u{7}b TO RUNTIME",
        "SHOW CREATE TABLE \u{7}x",
    ] {
        let message = f.error(sql).message;
        assert!(!message.contains(char::is_control) && message.contains("\\u{"), "{message:?}");
    }
    assert_eq!(f.ok("SET mysql-a\u{7}='1'").1, "Unknown global variable: mysql-a\\u{7}");
}

#[test]
fn an_address_that_cannot_be_listened_on_says_why() {
    let f = fixture();
    let path = "x".repeat(200);
    let message = f.error(&format!("SET mysql-interfaces='/{path}'")).message;
    assert!(message.contains("103 bytes") && message.len() < 400, "{message}");
    assert!(
        f.error("SET mysql-interfaces='localhost:1'").message.contains("'localhost:1' is not an address")
    );
    assert!(f.error("SET admin-mysql_ifaces=''").message.contains("expected one or more addresses"));
}
