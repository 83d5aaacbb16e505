//! What drivers and tools send, as lab/admin/record.py has recorded it: everything is answered, but for what is marked.

use super::*;
use crate::command::{prepared, run_packet};

const RECORDED: &[(&str, &str)] = &[
    ("dolphie", include_str!("setup/dolphie.txt")),
    ("go_sql_driver", include_str!("setup/go_sql_driver.txt")),
    ("known", include_str!("setup/known.txt")),
    ("mariadb", include_str!("setup/mariadb.txt")),
    ("mariadb_connector_j", include_str!("setup/mariadb_connector_j.txt")),
    ("mariadb_dump", include_str!("setup/mariadb_dump.txt")),
    ("mysql", include_str!("setup/mysql.txt")),
    ("mysql2", include_str!("setup/mysql2.txt")),
    ("mysql_connector_python", include_str!("setup/mysql_connector_python.txt")),
    ("mysqladmin", include_str!("setup/mysqladmin.txt")),
    ("mysqlclient", include_str!("setup/mysqlclient.txt")),
    ("mysqldump", include_str!("setup/mysqldump.txt")),
    ("mysqlshow", include_str!("setup/mysqlshow.txt")),
    ("php", include_str!("setup/php.txt")),
    ("pymysql", include_str!("setup/pymysql.txt")),
];

/// Registers what the daemon registers and these statements name, without rows.
fn register(f: &Fixture) {
    f.register_runtime(vec![], vec![]);
    for (name, ddl) in [
        ("stats_mysql_global", ddl::STATS_MYSQL_GLOBAL),
        ("stats_mysql_processlist", ddl::STATS_MYSQL_PROCESSLIST),
        ("stats_mysql_connection_pool", ddl::STATS_MYSQL_CONNECTION_POOL),
        ("stats_mysql_commands_counters", ddl::STATS_MYSQL_COMMANDS_COUNTERS),
    ] {
        let table = LiveTable { name, schema: Schema::Stats, ddl, rows: Arc::new(Vec::new) };
        f.admin.register(table).unwrap();
    }
}

#[test]
fn drivers_and_tools_get_their_answers() {
    for (tool, recorded) in RECORDED {
        let f = fixture();
        register(&f);
        let lines: Vec<&str> = recorded.lines().filter(|line| !line.starts_with('#')).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((kind, text)) = line.split_once(' ') else { continue };
            let sql = text.replace("\\n", "\n").replace("\\\\", "\\");
            let expected = lines.get(at + 1) == Some(&"E");
            let client = Client::daemon();
            let refused = match kind {
                "Q" => run_packet(&f.admin, &client, &sql, true).error,
                "P" => prepared::prepare(&f.admin, &client, &sql).err(),
                // COM_INIT_DB takes any name.
                "U" => None,
                other => panic!("{tool}: {other}"),
            };
            assert_eq!(refused.is_some(), expected, "{tool}: {sql}: {refused:?}");
        }
    }
}
