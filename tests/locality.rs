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
use std::path::Path;
use support::within;
use zones::{FAR, NEAR, World, place};

fn map_file(datadir: &Path) -> Vec<String> {
    let map = datadir.join("map");
    let places = format!("self eu-north-1 a\n{NEAR} eu-north-1 a\n{FAR} eu-north-1 b\n");
    std::fs::write(&map, places).unwrap();
    vec!["--locality-provider".into(), format!("file:{}", map.display())]
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
