//! What variables change for clients and pooled connections.

use super::raw::Raw;
use super::*;
use std::time::Instant;

#[test]
fn the_default_schema_is_for_those_who_name_none() {
    let world = World::with(10, |variables| variables.default_schema = "shared".into());
    assert_eq!(value(&mut world.client(), "SELECT SCHEMA"), "shared");
    assert_eq!(value(&mut world.client_as("app", Some("own")), "SELECT SCHEMA"), "own");
    let world = World::new();
    assert_eq!(value(&mut world.client(), "SELECT SCHEMA"), "", "information_schema, the default, is none");
}

#[test]
fn a_client_sets_itself_up_while_there_is_no_server() {
    let world =
        World::with(10, |variables| variables.connect_timeout_server_max = Duration::from_millis(300));
    world.set_usable(false);
    let mut client = Raw::new(&world);
    let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
    for (sql, autocommit) in [("SET NAMES latin1", 2), (level, 2), ("SET autocommit=0", 0)] {
        client.send_query(sql);
        let ok = client.read();
        assert!(ok[0] == 0 && ok[3] & 2 == autocommit, "{sql}: {ok:?}");
    }
    assert_eq!(world.total("Client_Connections_connected"), 1);
    // Of these a server must say whether it knows them.
    for sql in ["SET NAMES klingon", "SET sql_mode='ANSI'"] {
        client.send_query(sql);
        assert_eq!(client.read_error(), 9001, "{sql}");
    }
    world.set_usable(true);
    client.send_query("SELECT ID");
    client.read();
    let texts = world.fake.control.texts();
    let set = "SET NAMES latin1, autocommit='OFF', transaction_isolation='READ-COMMITTED'";
    assert_eq!(texts, [set, "SELECT ID"]);
}

#[test]
fn where_all_connections_are_in_use_set_names_waits_for_none() {
    let world = World::with(1, |variables| variables.connect_timeout_server_max = Duration::from_millis(300));
    let mut busy = world.client();
    busy.query_drop("BEGIN").unwrap();
    let mut client = world.client();
    client.query_drop("SET NAMES utf8mb4").unwrap();
    assert_eq!(refused(&mut client, "SELECT ID").0, 9001);
    busy.query_drop("COMMIT").unwrap();
    value(&mut client, "SELECT ID");
    assert!(world.fake.control.texts().iter().any(|text| text.contains("NAMES utf8mb4")));
}

#[test]
fn statements_are_held_back_where_no_rule_says() {
    let world = World::with(10, |variables| variables.default_query_delay = Duration::from_secs(3600));
    let mut victim = Raw::new(&world);
    victim.send_query("SELECT ID");
    eventually("it has begun", || {
        world.registry.entries().iter().any(|entry| entry.activity().statement().is_some())
    });
    world.registry.entries()[0].kill_query();
    assert_eq!(victim.read_error(), 1317);
    assert!(world.fake.control.texts().is_empty());
}

#[test]
fn nothing_is_sent_again_where_variables_forbid_it() {
    let world = World::with(10, |variables| variables.query_retries_on_failure = 0);
    let mut client = world.client();
    // A connection that was idle for long enough to be looked at first is found closed in time.
    let lost = (0..100).any(|_| {
        client.query_drop("INSERT id 5").unwrap();
        world.await_pool(0, 1);
        world.fake.control.cut_all();
        matches!(client.query_drop("INSERT id 5"), Err(mysql::Error::MySqlError(error)) if error.code == 2013)
    });
    assert!(lost);
}

#[test]
fn free_connections_are_pinged_and_those_that_do_not_answer_closed() {
    let world = World::new();
    value(&mut world.client(), "SELECT ID");
    world.await_pool(0, 1);
    let pings = || world.fake.control.texts().iter().filter(|text| *text == "COM_PING").count();
    let interval = Variables::default().ping_interval_server;
    world.backends.ping_free(Instant::now());
    assert_eq!(pings(), 0, "it was used just now");
    world.backends.ping_free(Instant::now() + interval);
    assert_eq!((pings(), world.used(), world.free()), (1, 0, 1));
    world.backends.ping_free(Instant::now() + interval / 2);
    assert_eq!(pings(), 1, "it was pinged just now");
    world.fake.control.cut_all();
    world.backends.ping_free(Instant::now() + 2 * interval);
    assert_eq!((world.used(), world.free()), (0, 0));
}
