//! Several statements in one packet, and comments in them.

use super::*;
use crate::command::run_packet;

fn count(f: &Fixture) -> String {
    f.one("SELECT COUNT(*) FROM mysql_servers")
}

fn insert(host: &str) -> String {
    format!("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, '{host}')")
}

#[test]
fn sql_takes_effect_together_or_not_at_all() {
    let f = fixture();
    let client = Client::daemon();
    let packet = format!("{}; {}; SELECT COUNT(*) FROM mysql_servers; ", insert("a"), insert("b"));
    let outcome = run_packet(&f.admin, &client, &packet, true);
    assert_eq!(outcome.error, None);
    let affected = |answer: &Answer| match answer {
        Answer::Ok { affected, .. } => format!("ok {affected}"),
        Answer::Rows { rows, .. } => line(&rows[0]),
    };
    assert_eq!(outcome.answers.iter().map(affected).collect::<Vec<_>>(), ["ok 1", "ok 1", "2"]);

    for bad in [insert("a"), "INSERT INTO nowhere VALUES (1)".into(), "SELECT nothing".into()] {
        let packet = format!("{}; DELETE FROM mysql_servers WHERE hostname = 'b'; {bad}", insert("c"));
        let outcome = run_packet(&f.admin, &client, &packet, true);
        assert!(outcome.answers.is_empty() && outcome.error.is_some(), "{bad}");
        assert_eq!(f.rows("SELECT hostname FROM mysql_servers"), ["a", "b"], "{bad}");
    }
    f.ok(&insert("after"));
}

#[test]
fn a_command_takes_effect_when_it_runs_and_the_first_error_ends_the_packet() {
    let f = fixture();
    let packet = format!(
        "{}; LOAD MYSQL SERVERS TO RUNTIME; {}; {}; LOAD MYSQL SERVERS TO RUNTIME",
        insert("a"),
        insert("b"),
        insert("b")
    );
    let outcome = run_packet(&f.admin, &Client::daemon(), &packet, true);
    assert_eq!(outcome.answers.len(), 2);
    assert!(outcome.error.unwrap().message.contains("UNIQUE"));
    assert_eq!(f.daemon.servers().len(), 1);
    assert_eq!(count(&f), "1");
}

#[test]
fn a_client_must_have_asked_for_several() {
    let f = fixture();
    let client = Client::daemon();
    let packet = format!("{}; {}", insert("a"), insert("b"));
    let outcome = run_packet(&f.admin, &client, &packet, false);
    assert_eq!(outcome.error.unwrap().code, 1064);
    assert_eq!(count(&f), "0");
    let one = run_packet(&f.admin, &client, &format!(" ;{} ; -- the end", insert("a;b")), false);
    assert_eq!((one.answers.len(), one.error), (1, None));
}

#[test]
fn comments_may_stand_anywhere() {
    let f = fixture();
    for sql in [
        "LOAD/* now */MYSQL -- all\n USERS TO RUNTIME # done",
        "load mysql users to runtime /*!40101 SET NAMES utf8 */;",
        "# first\n-- second\n/* third */ LOAD MYSQL USERS TO RUNTIME",
    ] {
        let before = f.daemon.sets.lock().len();
        f.ok(sql);
        assert_eq!(f.daemon.sets.lock().len(), before + 1, "{sql}");
    }
    assert_eq!(f.rows("SELECT /*!40001 SQL_NO_CACHE */ 1 # one\n + 1 -- two"), ["2"]);
    assert_eq!(f.one("SELECT '# -- /* */ ;' /* ; */"), "# -- /* */ ;");
    assert_eq!(f.ok("/*!40101 SET @saved=@@character_set_client */"), (0, String::new()));
}
