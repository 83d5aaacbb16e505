//! Sessions that begin anew on the connection of their client.

use super::*;
use mysql::{ChangeUserOpts, Error};

fn refused_change(client: &mut Conn) -> u16 {
    let options =
        ChangeUserOpts::new().with_user(Some("other".to_owned())).with_pass(Some("wrong".to_owned()));
    match client.change_user(options) {
        Err(Error::MySqlError(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reset_gives_up_the_character_set_of_the_login_as_the_server_would() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(value(&mut client, "SELECT SETTINGS"), "");
    client.reset().unwrap();
    assert_eq!(value(&mut client, "SELECT SETTINGS"), "NAMES DEFAULT");
}

#[test]
fn a_refused_change_of_user_ends_the_connection_of_a_client_of_mysql() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(refused_change(&mut client), 1045);
    assert!(client.query_drop("SELECT ID").is_err());
}

#[test]
fn a_refused_change_of_user_leaves_a_client_of_mariadb_its_user_in_a_new_session() {
    let world = World::with(1000, |variables| variables.server_version = "10.11.6-MariaDB".to_owned());
    let mut client = world.client();
    client.query_drop("SET @x = 1").unwrap();
    assert_eq!(refused_change(&mut client), 1045);
    world.await_pool(0, 1);
    assert_eq!(value(&mut client, "SELECT SETTINGS"), "NAMES utf8mb4 COLLATE utf8mb4_general_ci");
    assert_eq!([(); 3].map(|()| refused_change(&mut client)), [1045, 1045, 1047]);
    value(&mut client, "SELECT ID");
}
