//! Sessions of a user with fast_forward.

use super::*;

/// A world whose user `app` has it.
fn world() -> World {
    let world = World::new();
    world.config.set_users(&[UserRow { fast_forward: true, ..user("app") }, user("other")]);
    world
}

#[test]
fn it_keeps_its_connection_and_answers_pass() {
    let world = world();
    let mut client = world.client();
    let id = value(&mut client, "SELECT ID");
    for _ in 0..3 {
        assert_eq!(value(&mut client, "SELECT ID"), id);
    }
    assert_eq!(value(&mut client, "SELECT LONG 100000").len(), 100_000, "in many pieces");
    client.query_drop("INSERT x").unwrap();
    assert_eq!((client.affected_rows(), client.last_insert_id()), (1, 77));
    assert_eq!(refused(&mut client, "READONLY").0, 1290);
    for _ in 0..3 {
        client.exec_drop("SELECT ID", ()).unwrap();
    }
    assert_eq!(world.used(), 1);
    client.query_drop("BEGIN").unwrap();
    assert_eq!(value(&mut client, "SELECT ID"), id);
    client.query_drop("COMMIT").unwrap();
    assert_eq!(value(&mut client, "SELECT CONNECTION_ID()"), client.connection_id().to_string());
    drop(client);
    world.await_pool(0, 1);
}

#[test]
fn it_finds_nothing_that_another_session_left() {
    let world = world();
    let mut other = world.client_as("other", None);
    other.query_drop("INSERT x").unwrap();
    drop(other);
    world.await_pool(0, 1);
    // The same account on the server, so that the connection fits.
    let mut first = world.client();
    let id = value(&mut first, "SELECT ID");
    first.query_drop("INSERT x").unwrap();
    drop(first);
    eventually("it is back", || world.used() == 0);
    let mut second = world.client();
    assert_eq!(value(&mut second, "SELECT ID"), id, "a connection that was used");
    let texts = world.fake.control.texts();
    let inserted = texts.iter().rposition(|text| text == "INSERT x").unwrap();
    assert!(texts[inserted..].iter().any(|text| text == "RESET"), "{texts:?}");
}

#[test]
fn a_connection_that_the_server_closes_as_it_is_taken_costs_no_statement() {
    let world = world();
    for sql in ["SELECT LENGTH abc", "INSERT 1"] {
        let mut first = world.client();
        value(&mut first, "SELECT ID");
        drop(first);
        world.await_pool(0, 1);
        let mut second = world.client();
        world.fake.control.cut_all();
        second.query_drop(sql).unwrap();
        drop(second);
        world.await_pool(0, 1);
        let sent = world.fake.control.texts();
        assert_eq!(sent.iter().filter(|text| *text == sql).count(), 1, "{sent:?}");
    }
}

#[test]
fn a_statement_that_is_lost_is_told_of_and_not_sent_again() {
    let world = world();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    assert!(client.query_drop("SELECT DIE").is_err());
    let died = world.fake.control.texts().iter().filter(|text| *text == "SELECT DIE").count();
    assert_eq!(died, 1);
}

#[test]
fn its_statement_can_be_killed_and_a_retired_connection_is_not_used() {
    let world = world();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    world.fake.control.statement.shut();
    let id = client.connection_id();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| refused(&mut client, "SELECT SLOWLY"));
        world.fake.control.statement.await_visitor();
        world.client().query_drop(format!("KILL QUERY {id}")).unwrap();
        assert_eq!(slow.join().unwrap().0, 1317);
    });
    world.backends.drain(&world.endpoint());
    assert_eq!(refused(&mut client, "SELECT ID").0, 2013);
}

#[test]
fn nobody_who_is_locked_into_a_schema_leaves_it() {
    let world = World::new();
    for fast_forward in [false, true] {
        world.config.set_users(&[UserRow { fast_forward, schema_locked: true, ..user("app") }]);
        let mut client = world.client_as("app", Some("home"));
        value(&mut client, "SELECT ID");
        assert_eq!(refused(&mut client, "USE away").0, 1044);
        assert!(client.select_db("away").is_err());
        client.query_drop("USE home").unwrap();
    }
}

#[test]
fn what_is_not_looked_into_leaves_nothing_to_be_read() {
    let world = world();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    let may_be_read = || world.registry.entries()[0].activity().hold.linger;
    assert_eq!(refused(&mut client, "READONLY").0, 1290);
    eventually("its error can be read", may_be_read);
    value(&mut client, "SELECT ID");
    eventually("it cannot be any more", || !may_be_read());
}

#[test]
fn a_transaction_is_known_from_its_first_statement_to_its_last() {
    let world = world();
    let mut client = world.client();
    let is_open = || world.registry.entries()[0].activity().transaction.is_some();
    for (sql, open) in [
        ("SELECT ID", false),
        ("BEGIN", true),
        ("SELECT ID", true),
        ("INSERT x", true),
        ("COMMIT", false),
        ("SELECT ID", false),
        ("SET autocommit=0", false),
        ("SELECT ID", false),
    ] {
        client.query_drop(sql).unwrap();
        // The entry is brought up to date when the client has its answer.
        eventually(sql, || is_open() == open);
    }
}

#[test]
fn what_concerns_more_than_its_connection_is_judged() {
    let world = world();
    let changes = world.backends.schema_changes();
    world.client().query_drop("CREATE DATABASE new").unwrap();
    eventually("other sessions' connections enter theirs anew", || {
        world.backends.schema_changes() == changes + 1
    });
}

#[test]
fn what_can_be_read_on_its_connection_is_never_taken_away() {
    let world = world();
    let mut client = world.client();
    for sql in ["SELECT ID", "SHOW WARNINGS", "SELECT @@warning_count, 1", "PREPARE s FROM 'x'"] {
        // To some the server objects.
        let _ = client.query_drop(sql);
        assert_eq!(world.fake.control.texts().last().map(String::as_str), Some(sql));
    }
    let texts = world.fake.control.texts();
    assert!(!texts.iter().any(|text| text.contains("(SELECT 1)")), "{texts:?}");
}

#[test]
fn its_statements_are_held_back_as_all() {
    let world = World::with(10, |variables| variables.default_query_delay = Duration::from_millis(50));
    world.config.set_users(&[UserRow { fast_forward: true, ..user("app") }]);
    let mut client = world.client();
    for _ in 0..2 {
        let start = Instant::now();
        value(&mut client, "SELECT ID");
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
}

#[test]
fn its_statements_are_not_counted() {
    let world = world();
    let mut client = world.client();
    for _ in 0..2 {
        value(&mut client, "SELECT ID");
        client.query_drop("SET x=1").unwrap();
        client.exec_drop("SELECT ID", ()).unwrap();
    }
    world.client_as("other", None).query_drop("SELECT ID").unwrap();
    let mut counted = world.registry.commands.rows();
    counted.retain(|row| row[2] != admin::Value::Int(0));
    let [one] = counted.as_slice() else { panic!("more than the other's: {counted:?}") };
    assert_eq!(one[2], admin::Value::Int(1));
}
