use super::*;
use std::sync::atomic::{AtomicI64, Ordering};

fn pool_row(hostgroup: i64, host: &str, used: i64, free: i64) -> Vec<Value> {
    let mut row = vec![Value::Int(hostgroup), Value::Text(host.into()), Value::Int(3306)];
    row.push(Value::Text("ONLINE".into()));
    row.extend([used, free, 0, 0, 0, 0, 0, 0, 0, 0].map(Value::Int));
    row
}

fn with_tables() -> Fixture {
    let f = fixture();
    f.register_runtime(vec![server_row(1, "a", "ONLINE"), server_row(2, "b", "SHUNNED_AWS_BGD")], vec![]);
    f.admin
        .register(LiveTable {
            name: "stats_mysql_connection_pool",
            schema: Schema::Stats,
            ddl: ddl::STATS_MYSQL_CONNECTION_POOL,
            rows: Arc::new(|| vec![pool_row(1, "a", 2, 3), pool_row(2, "b", 0, 4)]),
        })
        .unwrap();
    f.admin
        .register(LiveTable {
            name: "mysql_server_read_only_log",
            schema: Schema::Monitor,
            ddl: ddl::MYSQL_SERVER_READ_ONLY_LOG,
            rows: Arc::new(|| {
                let head = vec![Value::Text("a".into()), Value::Int(3306), Value::Int(10)];
                vec![[head, vec![Value::Int(5), Value::Int(0), Value::Null]].concat()]
            }),
        })
        .unwrap();
    f
}

#[test]
fn live_tables_answer_by_bare_and_by_full_name() {
    let f = with_tables();
    for name in [
        "runtime_mysql_servers",
        "main.runtime_mysql_servers",
        "stats_mysql_connection_pool",
        "stats.stats_mysql_connection_pool",
    ] {
        assert_eq!(f.one(&format!("SELECT COUNT(*) FROM {name}")), "2", "{name}");
    }
    for name in ["mysql_server_read_only_log", "monitor.mysql_server_read_only_log"] {
        assert_eq!(f.one(&format!("SELECT * FROM {name}")), "a|3306|10|5|0|NULL");
    }
    assert_eq!(f.rows("SHOW TABLES FROM stats"), ["stats_mysql_connection_pool"]);
    assert_eq!(f.rows("SHOW TABLES IN monitor"), ["mysql_server_read_only_log"]);
}

#[test]
fn live_tables_join_aggregate_and_nest() {
    let f = with_tables();
    let joined = "SELECT s.hostname, p.ConnUsed + p.ConnFree FROM runtime_mysql_servers s \
                  JOIN stats_mysql_connection_pool p ON p.hostgroup = s.hostgroup_id AND p.srv_host = s.hostname \
                  WHERE s.status LIKE 'SHUNNED%'";
    assert_eq!(f.one(joined), "b|4");
    assert_eq!(f.one("SELECT COALESCE(SUM(ConnUsed+ConnFree),0) FROM stats_mysql_connection_pool"), "9");
    let nested = "SELECT (SELECT COUNT(*) FROM runtime_mysql_servers WHERE hostgroup_id IN (1,2))=2 \
                  AND (SELECT MAX(time_start_us) FROM mysql_server_read_only_log WHERE error IS NULL)=10";
    assert_eq!(f.one(nested), "1");
    assert_eq!(f.rows("SELECT DISTINCT hostname FROM runtime_mysql_servers ORDER BY 1 DESC"), ["b", "a"]);
    assert_eq!(f.rows("SELECT hostname FROM runtime_mysql_servers LIMIT 1 OFFSET 1"), ["b"]);
}

#[test]
fn integers_are_integers() {
    let f = with_tables();
    let sql = "SELECT hostgroup, srv_host, SUM(ConnFree) FROM stats_mysql_connection_pool GROUP BY 1, 2";
    let Ok(Answer::Rows { integers, .. }) = f.admin.execute(sql) else { panic!() };
    assert_eq!(integers, [true, false, true]);
    let sql = "SELECT hostgroup_id, hostname FROM mysql_servers";
    let Ok(Answer::Rows { integers, rows, .. }) = f.admin.execute(sql) else { panic!() };
    assert!(rows.is_empty());
    assert_eq!(integers, [true, false]);
    assert_eq!(f.one("SELECT typeof(hostgroup) FROM stats_mysql_connection_pool LIMIT 1"), "integer");
}

#[test]
fn rows_are_taken_when_a_scan_begins() {
    let f = fixture();
    let count = Arc::new(AtomicI64::new(0));
    let counter = Arc::clone(&count);
    let rows = Arc::new(move || vec![vec![Value::Int(counter.fetch_add(1, Ordering::Relaxed))]; 3]);
    let table = LiveTable { name: "t", schema: Schema::Stats, ddl: "CREATE TABLE t (n INT)", rows };
    f.admin.register(table).unwrap();
    assert_eq!(f.rows("SELECT n FROM t"), ["0", "0", "0"]);
    assert_eq!(f.rows("SELECT n FROM t"), ["1", "1", "1"]);
}

#[test]
fn live_tables_cannot_be_written_or_dropped() {
    let f = with_tables();
    for sql in [
        "DELETE FROM runtime_mysql_servers",
        "UPDATE stats_mysql_connection_pool SET ConnUsed=0",
        "INSERT INTO runtime_global_variables VALUES ('a', 'b')",
        "DROP TABLE runtime_mysql_servers",
        "DROP TABLE stats.stats_mysql_connection_pool",
        "ALTER TABLE runtime_mysql_servers RENAME TO x",
        "CREATE VIRTUAL TABLE main.x USING live",
    ] {
        f.error(sql);
    }
    assert_eq!(f.one("SELECT COUNT(*) FROM runtime_mysql_servers"), "2");
}

#[test]
fn tables_come_once() {
    let f = fixture();
    let table = |ddl| LiveTable { name: "t", schema: Schema::Main, ddl, rows: Arc::new(Vec::new) };
    assert!(f.admin.register(table("CREATE TABLE t (")).unwrap_err().0.contains("live table t"));
    assert!(f.admin.register(table("CREATE TABLE other (n INT)")).is_err());
    f.admin.register(table("CREATE TABLE t (n INT)")).unwrap();
    assert!(f.admin.register(table("CREATE TABLE t (n INT)")).unwrap_err().0.contains("exists"));
    assert_eq!(f.one("SELECT COUNT(*) FROM t"), "0");
}

#[test]
fn a_panic_while_rows_are_collected_is_an_error() {
    let f = fixture();
    let rows = Arc::new(|| panic!("a bug of the daemon"));
    let ddl = "CREATE TABLE broken (n INT)";
    f.admin.register(LiveTable { name: "broken", schema: Schema::Main, ddl, rows }).unwrap();
    assert!(f.error("SELECT * FROM broken").message.contains("broken"));
    assert_eq!(f.one("SELECT 1"), "1");
}

#[test]
fn short_rows_read_as_null() {
    let f = fixture();
    let rows = Arc::new(|| vec![vec![Value::Int(1)]]);
    let ddl = "CREATE TABLE t (a INT, b INT)";
    f.admin.register(LiveTable { name: "t", schema: Schema::Main, ddl, rows }).unwrap();
    assert_eq!(f.one("SELECT * FROM t"), "1|NULL");
}

#[test]
fn the_process_list_has_its_own_statements() {
    let f = fixture();
    let row = |id, info: &str| {
        let text = |text: &str| Value::Text(text.into());
        vec![
            Value::Int(1),
            Value::Int(id),
            text("app"),
            text("shop"),
            text("10.0.0.1"),
            Value::Int(40_000),
            Value::Int(3),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            text("Query"),
            Value::Int(12),
            text(info),
            Value::Int(2),
            Value::Null,
        ]
    };
    let long = "x".repeat(300);
    let rows = vec![row(5, &long)];
    f.admin
        .register(LiveTable {
            name: "stats_mysql_processlist",
            schema: Schema::Stats,
            ddl: ddl::STATS_MYSQL_PROCESSLIST,
            rows: Arc::new(move || rows.clone()),
        })
        .unwrap();
    let shown = |info: &str| format!("5|app|shop|3|Query|12|{info}");
    assert_eq!(f.rows("SHOW PROCESSLIST"), [shown(&long[..100])]);
    assert_eq!(f.rows("show full processlist"), [shown(&long)]);
}
