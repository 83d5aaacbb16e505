//! What mysql_hostgroup_attributes changes for sessions.

use super::*;
use admin::rows::HostgroupAttributesRow;

/// A proxy whose hostgroup 0 has these attributes.
fn world(change: impl FnOnce(&mut HostgroupAttributesRow)) -> World {
    let world = World::with(10, |variables| {
        variables.connect_timeout_server_max = Duration::from_millis(300);
    });
    let mut row = HostgroupAttributesRow::new(0);
    change(&mut row);
    let config = ServersConfig {
        servers: vec![server(&world.fake, 10)],
        hostgroup_attributes: vec![row],
        ..ServersConfig::default()
    };
    assert!(world.backends.update(|hostgroups| hostgroups.load(&config)).is_empty());
    world
}

#[test]
fn a_hostgroup_with_too_many_servers_is_not_used() {
    let world = world(|row| row.max_num_online_servers = 0);
    let (code, text) = refused(&mut world.client(), "SELECT ID");
    assert!(code == 9001 && text.contains("max_num_online_servers"), "{text}");
    assert!(world.fake.control.texts().is_empty());
}

#[test]
fn sessions_share_no_connection_where_the_hostgroup_says_so() {
    let world = world(|row| row.multiplex = false);
    let mut client = world.client();
    client.query_drop("SELECT ID").unwrap();
    world.await_pool(1, 0);
    drop(client);
    world.await_pool(0, 1);
}

#[test]
fn no_more_connections_are_kept_free_than_the_hostgroup_says() {
    let world = world(|row| row.free_connections_pct = 10);
    let mut clients = [world.client(), world.client()];
    clients.iter_mut().for_each(|client| client.query_drop("BEGIN").unwrap());
    clients.iter_mut().for_each(|client| client.query_drop("COMMIT").unwrap());
    world.await_pool(0, 1);
}

#[test]
fn connections_begin_with_init_connect_and_again_after_what_undoes_it() {
    let world = world(|row| row.init_connect = "SET init=1".into());
    let begun = |texts: &[String]| {
        let init = texts.iter().position(|text| text == "SET init=1");
        let names = texts.iter().position(|text| text.starts_with("SET NAMES"));
        init.is_some() && names.is_some() && init < names
    };
    world.client().query_drop("SELECT ID").unwrap();
    assert!(begun(&world.fake.control.texts()));
    world.await_pool(0, 1);
    // What the first has set is taken back for the second, and not by a server's default.
    world.client().query_drop("SET sql_mode='ANSI'").unwrap();
    world.await_pool(0, 1);
    world.fake.control.log.lock().clear();
    world.client().query_drop("SELECT ID").unwrap();
    let texts = world.fake.control.texts();
    assert!(texts[0] == "RESET" && begun(&texts), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("DEFAULT")), "{texts:?}");
}

#[test]
fn an_init_connect_that_fails_is_told_and_not_held_against_the_server() {
    let world = world(|row| row.init_connect = "READONLY secret".into());
    let (code, text) = refused(&mut world.client(), "SELECT ID");
    assert!(code == 9002 && text.contains("init_connect") && text.contains("1290"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(world.backends.connection_pool_rows()[0][3], Value::Text("ONLINE".into()));
    assert_eq!(world.fake.control.texts().len(), 1, "it is not tried again");
}

#[test]
fn who_waits_for_a_throttled_attempt_in_vain_is_told_why_the_last_failed() {
    let world = world(|row| {
        row.init_connect = "READONLY secret".into();
        row.throttle_connections_per_sec = 1;
    });
    assert_eq!(refused(&mut world.client(), "SELECT ID").0, 9002);
    let (code, text) = refused(&mut world.client(), "SELECT ID");
    assert!(code == 9001 && text.contains("throttle_connections_per_sec"), "{text}");
    assert!(text.contains("init_connect failed with error 1290") && !text.contains("secret"), "{text}");
}

#[test]
fn the_variable_is_for_hostgroups_that_have_no_init_connect() {
    let world = World::with(10, |variables| variables.init_connect = "SET init=2".into());
    world.client().query_drop("SELECT ID").unwrap();
    assert_eq!(world.fake.control.texts()[0], "SET init=2");
}

#[test]
fn nobody_takes_note_of_variables_that_are_to_be_ignored() {
    let world = world(|row| row.ignore_session_variables = "[\"SQL_MODE\"]".into());
    world.client().query_drop("SET sql_mode='ANSI'").unwrap();
    world.await_pool(0, 1);
    world.client().query_drop("SELECT ID").unwrap();
    assert_eq!(world.fake.control.texts(), ["SET sql_mode='ANSI'", "SELECT ID"]);
}
