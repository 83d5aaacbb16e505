//! Locality awareness through the real program: a map file tells where two servers are, and which of them answers is counted.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/zones.rs"]
mod zones;

use mysql::prelude::Queryable;
use pair::PATIENCE;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;
use support::within;
use zones::{FAR, NEAR, World, place};

fn map_file(datadir: &Path) -> Vec<String> {
    let map = datadir.join("map");
    let places = format!("self eu-north-1 a\n{NEAR} eu-north-1 a\n{FAR} eu-north-1 b\n");
    std::fs::write(&map, places).unwrap();
    vec!["--locality-provider".into(), format!("file:{}", map.display())]
}

/// What locality leaves as it is: rows in force and on disk, their checksums, and connections.
fn kept(world: &mut World) -> Vec<String> {
    let questions = [
        "SELECT * FROM runtime_mysql_servers",
        "SELECT * FROM mysql_servers",
        "SELECT * FROM disk.mysql_servers",
        "SELECT * FROM disk.mysql_hostgroup_attributes",
        "SELECT name, checksum FROM runtime_checksums_values WHERE name <> 'mysql_variables'",
        "SELECT srv_host, ConnUsed, ConnFree, ConnOK, ConnERR FROM stats_mysql_connection_pool",
    ];
    let mut kept = Vec::new();
    for question in questions {
        let rows: Vec<mysql::Row> = world.admin.query(question).unwrap();
        assert!(!rows.is_empty(), "{question}");
        kept.extend(rows.into_iter().map(|row| format!("{question}: {:?}", row.unwrap())));
    }
    kept
}

#[test]
fn the_server_in_the_proxys_zone_answers_more_while_it_is_on() {
    let mut world = World::new(map_file);
    assert_eq!(
        world.places(),
        [
            place("", "disabled", "", None),
            place(FAR, "disabled", "", Some(1.0)),
            place(NEAR, "disabled", "", Some(1.0)),
        ]
    );
    let off = world.share_of_near();
    assert!((0.35..0.65).contains(&off), "{off}, not about a half");
    world.switch(true);
    let expected = [
        place("", "fresh", "a", None),
        place(FAR, "fresh", "b", Some(1.0)),
        place(NEAR, "fresh", "a", Some(9.0)),
    ];
    assert!(within(PATIENCE, || world.places() == expected), "{:?}", world.places());
    let on = world.share_of_near();
    assert!((0.8..0.97).contains(&on), "{on}, not about 0.9");
    let weights = "SELECT DISTINCT weight FROM runtime_mysql_servers";
    assert_eq!(world.admin.query::<u32, _>(weights).unwrap(), [100], "rows stay as they are");
    world.switch(false);
    let off = world.share_of_near();
    assert!((0.35..0.65).contains(&off), "{off}, not about a half");
}

#[test]
fn weights_checksums_connections_and_what_is_saved_stay_as_they_are() {
    let mut world = World::new(map_file);
    let variable =
        "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-aws_locality_awareness'";
    assert_eq!(world.admin.query_first(variable).unwrap(), Some("false".to_owned()), "the default");
    world.share_of_near();
    let save = |world: &mut World| {
        for sql in ["SAVE MYSQL SERVERS FROM RUNTIME", "SAVE MYSQL SERVERS TO DISK"] {
            world.admin.query_drop(sql).unwrap();
        }
    };
    save(&mut world);
    let before = kept(&mut world);
    world.switch(true);
    let near = format!("SELECT multiplier FROM stats_mysql_aws_locality WHERE srv_host = '{NEAR}'");
    assert!(within(PATIENCE, || world.admin.query_first(&near).unwrap() == Some(9.0)));
    save(&mut world);
    assert_eq!(kept(&mut world), before);
    world.switch(false);
    assert_eq!(kept(&mut world), before);
}

#[test]
fn a_map_file_that_does_not_come_keeps_nothing_waiting() {
    let mut world = World::new(map_file);
    let map = world.proxy.datadir().join("map");
    std::fs::remove_file(&map).unwrap();
    // Whoever opens it waits until somebody writes.
    mknodat(CWD, &map, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    world.switch(true);
    let errors =
        "SELECT srv_host, state, last_error, multiplier FROM stats_mysql_aws_locality WHERE srv_host <> ''";
    let error = |host: &str| (host.to_owned(), "error".to_owned(), "timeout".to_owned(), Some(1.0));
    let given_up = [error(FAR), error(NEAR)];
    let mut rows = || world.admin.query::<(String, String, String, Option<f64>), _>(errors).unwrap();
    assert!(within(PATIENCE, || rows() == given_up), "{:?}", rows());
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
    world.switch(false);
    let states: Vec<String> =
        world.admin.query("SELECT DISTINCT state FROM stats_mysql_aws_locality").unwrap();
    assert_eq!(states, ["disabled"]);
    let (status, log) = world.proxy.terminate();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{log}");
    assert!(log.contains("provider file keeps questions"), "{log}");
}

#[test]
fn without_a_provider_there_is_no_table_and_the_log_says_why() {
    let mut world = World::new(|_| Vec::new());
    world.switch(true);
    let said = |world: &World| world.proxy.log().matches("provider_unavailable").count();
    assert!(within(PATIENCE, || said(&world) > 0));
    assert!(world.proxy.log().contains("start pointsman with --locality-provider"));
    let error = world.admin.query_drop("SELECT * FROM stats_mysql_aws_locality").unwrap_err().to_string();
    assert!(error.contains("no such table"), "{error}");
    let share = world.share_of_near();
    assert!((0.35..0.65).contains(&share), "{share}, not about a half");
    assert_eq!(said(&world), 1, "once for all that is asked");
}
