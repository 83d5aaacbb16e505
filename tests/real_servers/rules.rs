//! Query rules between two servers: one user whose reads go to MariaDB and whose writes go to MySQL.

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::servers::Kind;
use crate::setup::{Lab, MARIADB, PASSWORD, Route};

const USER: Route =
    Route { user: "app_rules", hostgroup: 12, kind: Kind::MySql, use_ssl: false, compression: false };
/// Which server answers.
const WHERE: &str = "SELECT @@version LIKE '%MariaDB%'";

fn reader(conn: &mut Conn) -> bool {
    conn.query_first(WHERE).unwrap().unwrap()
}

fn load(lab: &Lab, rules: &[&str]) {
    let mut admin = lab.admin();
    for rule in rules {
        let columns = "rule_id, active, username, match_digest, destination_hostgroup, timeout, apply";
        admin.query_drop(format!("INSERT INTO mysql_query_rules ({columns}) VALUES ({rule})")).unwrap();
    }
    admin.query_drop("LOAD MYSQL QUERY RULES TO RUNTIME").unwrap();
}

pub fn read_write_split(lab: &Lab) {
    lab.add(&USER);
    let mut dba = lab.servers.dba(MARIADB.kind);
    dba.query_drop(format!("CREATE USER '{}'@'%' IDENTIFIED BY '{PASSWORD}'", USER.user)).unwrap();
    dba.query_drop(format!("GRANT ALL ON app.* TO '{}'@'%'", USER.user)).unwrap();
    let reads = format!("20, 1, '{}', '^SELECT', {}, NULL, 1", USER.user, MARIADB.hostgroup);
    let slow = format!("10, 1, '{}', 'SLEEP', NULL, 500, 0", USER.user);
    load(lab, &[&reads, &slow]);

    let mut conn = lab.through(&USER);
    assert!(reader(&mut conn));
    conn.query_drop("CREATE TABLE app.split (a INT)").unwrap();
    conn.query_drop("START TRANSACTION").unwrap();
    assert!(!reader(&mut conn));
    conn.query_drop("INSERT INTO app.split VALUES (1)").unwrap();
    conn.query_drop("COMMIT").unwrap();
    assert!(reader(&mut conn));

    let begun = Instant::now();
    let error = conn.query_drop("SELECT 'slowly' FROM (SELECT SLEEP(20)) t").unwrap_err();
    assert!(
        error.to_string().contains("interrupted") && begun.elapsed() < Duration::from_secs(10),
        "{error}"
    );

    let unlimited = format!("5, 1, '{}', 'PATIENT', NULL, 0, 1", USER.user);
    load(lab, &[&unlimited]);
    conn.query_drop("SELECT 'slowly' AS patient FROM (SELECT SLEEP(1)) t").unwrap();

    prepared(lab, &mut conn);
    lab.admin().query_drop("DELETE FROM mysql_query_rules").unwrap();
    load(lab, &[]);
    assert!(!reader(&mut conn));
}

/// Executions go where the statement was prepared to go, and are counted under its digest.
fn prepared(lab: &Lab, conn: &mut Conn) {
    let mut admin = lab.admin();
    admin.query_drop("TRUNCATE stats_mysql_query_digest").unwrap();
    let statement = conn.prep(format!("{WHERE} AND ? = 7")).unwrap();
    let insert = conn.prep("INSERT INTO app.split VALUES (?), (?)").unwrap();
    for _ in 0..3 {
        assert_eq!(conn.exec_first::<bool, _, _>(&statement, (7,)).unwrap(), Some(true));
        conn.exec_drop(&insert, (2, 3)).unwrap();
    }
    let columns = "hostgroup, digest_text, count_star, sum_rows_affected, sum_rows_sent";
    let counted: Vec<(u16, String, u64, u64, u64)> = admin
        .query(format!(
            "SELECT {columns} FROM stats_mysql_query_digest WHERE username = 'app_rules' ORDER BY 1"
        ))
        .unwrap();
    let expected = [
        (USER.hostgroup, "INSERT INTO app.split VALUES (?),(?)".to_owned(), 3, 6, 0),
        (MARIADB.hostgroup, "SELECT @@version LIKE ? AND ? = ?".to_owned(), 3, 0, 3),
    ];
    assert_eq!(counted, expected);
}
