//! Whose a connection is, and when it comes back.

use super::raw::Raw;
use super::*;
use crate::pool::{Identity, Processor, Profile, Want};
use crate::session::registry::Registry;
use crate::session::wait::{Asker, Patience, acquire};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use wire::Command;

#[test]
fn the_next_client_uses_the_same_connection() {
    let world = World::new();
    let first = value(&mut world.client(), "SELECT ID");
    world.await_pool(0, 1);
    let mut client = world.client();
    assert_eq!(value(&mut client, "SELECT ID"), first);
    world.await_pool(0, 1);
    let mut other = world.client_as("other", None);
    assert_ne!(value(&mut other, "SELECT ID"), first);
    world.await_pool(0, 2);
    assert_eq!(world.pool(9), 3, "queries are counted");
}

#[test]
fn a_transaction_keeps_its_connection_and_the_end_of_it_gives_it_back() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    assert_eq!(world.used(), 1);
    let held = value(&mut client, "SELECT ID");
    assert_ne!(value(&mut world.client(), "SELECT ID"), held);
    assert_eq!(value(&mut client, "SELECT ID"), held);
    client.query_drop("COMMIT").unwrap();
    world.await_pool(0, 2);
}

#[test]
fn what_a_session_left_is_reset_before_another_gets_the_connection() {
    let world = World::new();
    let mut client = world.client_as("app", Some("shop"));
    client.query_drop("SET @x = 1").unwrap();
    let held = value(&mut client, "SELECT ID");
    assert_eq!(world.used(), 1);
    drop(client);
    world.await_pool(0, 1);
    let log = world.fake.control.texts();
    assert_eq!(log[2..], ["RESET", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "INIT_DB shop"]);
    assert_eq!(value(&mut world.client_as("app", Some("shop")), "SELECT ID"), held);
}

#[test]
fn what_a_function_may_have_left_stays_with_its_session_and_is_reset_before_another_gets_it() {
    let world = World::with(1, |_| {});
    let mut other = world.client();
    let names = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci";
    for (call, keeps) in [("SELECT f(1)", true), ("SELECT COALESCE(1)", false)] {
        world.fake.control.log.lock().clear();
        let mut caller = world.client();
        let here = value(&mut caller, call);
        assert_eq!(value(&mut caller, "SELECT 1"), here);
        if keeps {
            assert_eq!(world.used(), 1, "it may have set user variables");
            drop(caller);
        }
        world.await_pool(0, 1);
        assert_eq!(value(&mut other, "SELECT 2"), here);
        world.await_pool(0, 1);
        let reset: &[&str] = if keeps { &["RESET", names] } else { &[] };
        assert_eq!(world.fake.control.texts(), [&[call, "SELECT 1"], reset, &["SELECT 2"]].concat());
    }
    let mut caller = world.client();
    value(&mut caller, "SELECT f(1)");
    caller.reset().unwrap();
    value(&mut caller, "SELECT 3");
    world.await_pool(0, 1);
}

#[test]
fn a_session_that_has_called_a_function_goes_on_where_its_connection_is_lost() {
    let world = World::new();
    let mut caller = world.client();
    let before = value(&mut caller, "SELECT f(1), ID");
    assert_eq!(world.used(), 1);
    world.backends.drain(&world.endpoint());
    assert_ne!(value(&mut caller, "SELECT f(1), ID"), before);
    assert_eq!(world.used(), 1, "it keeps the new one");
}

#[test]
fn schema_and_settings_follow_the_session_to_other_connections() {
    let world = World::new();
    let (mut one, mut two) = (world.client(), world.client());
    one.query_drop("SET time_zone='+01:00'").unwrap();
    one.query_drop("USE shop").unwrap();
    world.await_pool(0, 1);
    assert_eq!(value(&mut two, "SELECT SETTINGS"), "", "`two` has made no setting");
    world.await_pool(0, 2);
    world.backends.drain(&world.endpoint());
    assert_eq!(value(&mut one, "SELECT SETTINGS"), "time_zone='+01:00'");
    assert_eq!(value(&mut one, "SELECT SCHEMA"), "shop");
    world.await_pool(0, 1);
    assert!(one.select_db("stock").is_ok());
    assert_eq!(value(&mut one, "SELECT SCHEMA"), "stock");
    world.await_pool(0, 1);
}

#[test]
fn set_up_statements_find_the_connections_that_others_have_set_up() {
    let world = World::new();
    for _ in 0..3 {
        let mut client = world.client();
        client.query_drop("SET NAMES utf8mb4").unwrap();
        client.query_drop("SET time_zone='+01:00'").unwrap();
        value(&mut client, "SELECT ID");
        world.await_pool(0, 1);
    }
    assert_eq!(world.pool(6), 1, "one connection served all");
    let undone = "NAMES utf8mb4 COLLATE utf8mb4_general_ci, time_zone=DEFAULT";
    assert!(value(&mut world.client(), "SELECT SETTINGS").ends_with(undone));
}

#[test]
fn an_unknown_schema_is_refused_and_can_be_left() {
    let world = World::new();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    assert_eq!(refused(&mut client, "USE nowhere").0, 1049);
    assert_eq!(value(&mut client, "SELECT SCHEMA"), "");
    client.query_drop("USE shop").unwrap();
    assert_eq!(value(&mut client, "SELECT SCHEMA"), "shop");
}

#[test]
fn a_login_into_an_unknown_schema_is_refused_if_a_server_can_be_asked() {
    let world = World::new();
    let login = |schema| Conn::new(world.options_of("app", Some(schema)));
    for how in ["through a new connection", "through a free one"] {
        match login("nowhere") {
            Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1049, "{how}"),
            other => panic!("{how}: {:?}", other.err()),
        }
        login("shop").unwrap();
        world.await_pool(0, 1);
    }
    // What was opened lately is not asked for again, and who cannot be asked is no reason to refuse.
    let asked = world.fake.control.texts().len();
    login("shop").unwrap();
    world.set_usable(false);
    login("nowhere").unwrap();
    assert_eq!(world.fake.control.texts().len(), asked);
}

#[test]
fn a_schema_that_cannot_be_entered_leaves_a_connection_where_it_was() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("USE shop").unwrap();
    world.await_pool(0, 1);
    world.backends.schema_changed();
    let nowhere = Conn::new(world.options_of("app", Some("nowhere")));
    assert!(matches!(nowhere, Err(mysql::Error::MySqlError(error)) if error.code == 1049));
    world.await_pool(0, 1);
    assert_eq!(value(&mut world.client(), "SELECT SCHEMA"), "", "it is not taken for one in no schema");
    world.await_pool(0, 2);
    // Back in its own schema it has yet to see the change.
    assert_eq!(value(&mut client, "SELECT SCHEMA"), "shop");
    let entered = |text: &&String| *text == "INIT_DB shop";
    assert_eq!(world.fake.control.texts().iter().filter(entered).count(), 1);
}

#[test]
fn a_connection_that_was_opened_before_a_change_of_schemas_enters_its_own_anew() {
    let world = World::new();
    let mut client = world.client_as("app", None);
    client.query_drop("USE shop").unwrap();
    world.await_pool(0, 1);
    world.backends.drain(&world.endpoint());
    world.fake.control.login.shut();
    let asking = thread::spawn(move || value(&mut client, "SELECT SCHEMA"));
    world.fake.control.login.await_visitor();
    // The server may have read the schema's collation already.
    world.backends.schema_changed();
    world.fake.control.login.open();
    assert_eq!(asking.join().unwrap(), "shop");
    assert_eq!(world.fake.control.texts().iter().filter(|text| *text == "INIT_DB shop").count(), 1);
}

#[test]
fn a_generated_id_is_there_for_the_next_statement_and_for_later_ones() {
    let world = World::new();
    let mut client = world.client();
    let start = Instant::now();
    client.query_drop("INSERT INTO t").unwrap();
    assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "77");
    if start.elapsed() < Duration::from_millis(900) {
        assert_eq!(world.fake.control.texts().len(), 3, "the id is still on the connection");
    }
    value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
    world.backends.drain(&world.endpoint());
    assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "77");
    assert_eq!(value(&mut world.client(), "SELECT LAST_INSERT_ID()"), "0");
}

#[test]
fn an_id_that_another_session_generated_is_not_seen() {
    let world = World::new();
    world.client().query_drop("INSERT INTO t").unwrap();
    world.await_pool(0, 1);
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "0");
    assert_eq!(world.pool(6), 1, "it is the same connection");
}

#[test]
fn an_id_that_a_statement_named_hides_no_id_of_another_session() {
    let world = World::new();
    world.client().query_drop("INSERT INTO t").unwrap();
    world.await_pool(0, 1);
    let mut client = world.client();
    client.query_drop("INSERT id 5").unwrap();
    assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "0");
    assert_eq!(world.pool(6), 1, "it is the same connection");
}

#[test]
fn an_id_that_a_statement_named_is_not_the_last_one_made_after_a_move_either() {
    let world = World::new();
    let mut client = world.client();
    for inserts in [
        &["INSERT INTO t", "INSERT id 5"][..],
        &["BEGIN", "INSERT INTO t", "INSERT id 5", "COMMIT"],
        &["INSERT INTO t VALUES (77)", "INSERT id 5", "INSERT id 5"],
    ] {
        for sql in inserts {
            client.query_drop(sql).unwrap();
        }
        let here = value(&mut client, "SELECT ID");
        world.await_pool(0, 1);
        world.backends.drain(&world.endpoint());
        assert_ne!(value(&mut client, "SELECT ID"), here);
        assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "77", "{inserts:?}");
        world.await_pool(0, 1);
    }
    assert_eq!(value(&mut world.client(), "SELECT LAST_INSERT_ID()"), "0");
}

#[test]
fn a_savepoint_without_autocommit_keeps_the_connection_before_a_transaction_begins() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SAVEPOINT a").unwrap();
    world.await_pool(0, 1);
    client.query_drop("SET autocommit=0").unwrap();
    world.await_pool(0, 1);
    client.query_drop("SAVEPOINT a").unwrap();
    value(&mut client, "SELECT ID");
    let held = &processlist_rows(&world.registry)[0];
    assert!(
        held.iter().any(|value| matches!(value, Value::Text(text) if text.contains("savepoint"))),
        "{held:?}"
    );
    assert_eq!((world.used(), world.free()), (1, 0));
    client.query_drop("COMMIT").unwrap();
    world.await_pool(0, 1);
}

#[test]
fn an_error_without_autocommit_keeps_the_transaction_that_it_may_have_opened() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SET autocommit=0").unwrap();
    let here = value(&mut client, "SELECT ID");
    refused(&mut client, "DELETE");
    world.backends.drain(&world.endpoint());
    assert_eq!(value(&mut client, "SELECT ID"), here, "as if BEGIN had been said");
    assert_ne!(value(&mut client, "SELECT ID"), here, "the server says that there is none");
}

#[test]
fn an_answer_of_our_own_after_an_error_tells_the_servers_status() {
    let world = World::new();
    let mut client = Raw::new(&world);
    let pings = || world.fake.control.texts().iter().filter(|text| *text == "COM_PING").count();
    let ok = |status| vec![0, 0, 0, status, 0, 0, 0];
    for (begin, status) in [("SET autocommit=0", 0), ("BEGIN", 1), ("COMMIT", 0), ("SET autocommit=1", 2)] {
        let before = pings();
        for (sql, first) in [(begin, 0), ("DELETE", 0xFF)] {
            client.send_query(sql);
            assert_eq!(client.read().first(), Some(&first));
        }
        assert_eq!(client.ask(Command::COM_PING, b""), ok(status), "{begin}");
        assert_eq!(client.ask(Command::COM_PING, b""), ok(status), "{begin}");
        assert!(pings() > before, "{begin}");
    }
    world.await_pool(0, 1);
}

#[test]
fn a_server_that_is_lost_with_nothing_on_it_is_not_missed_by_a_ping() {
    let world = World::new();
    for (sql, first) in [("SAVEPOINT a", 0), ("BEGIN", 0xFF)] {
        let mut client = Raw::new(&world);
        client.send_query(sql);
        assert_eq!(client.read().first(), Some(&0));
        client.send_query("DELETE");
        assert_eq!(client.read_error(), 1064);
        world.fake.control.cut_all();
        assert_eq!(client.ask(Command::COM_PING, b"").first(), Some(&first), "{sql}");
        client.send_query("SELECT ID");
        assert_eq!(client.read().first(), Some(&1), "{sql}");
    }
}

#[test]
fn a_connection_kept_for_the_next_statement_is_not_kept_for_long() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("INSERT INTO t").unwrap();
    world.await_pool(0, 1);
    let first = value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
    assert_eq!(value(&mut world.client(), "SELECT ID"), first);
}

#[test]
fn a_drained_connection_finishes_its_transaction_and_is_gone() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    let held = value(&mut client, "SELECT ID");
    world.backends.drain(&world.endpoint());
    assert_eq!(value(&mut client, "SELECT ID"), held);
    client.query_drop("COMMIT").unwrap();
    world.await_pool(0, 0);
    assert_ne!(value(&mut client, "SELECT ID"), held);
}

#[test]
fn autocommit_off_goes_on_elsewhere_after_a_drain() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SET autocommit=0").unwrap();
    let first = value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
    world.backends.drain(&world.endpoint());
    assert_ne!(value(&mut client, "SELECT ID"), first);
    assert_eq!(value(&mut client, "SELECT SETTINGS"), "autocommit='OFF'");
    world.await_pool(0, 1);
}

#[test]
fn warnings_that_another_session_left_are_not_seen() {
    let world = World::new();
    let (mut first, mut second) = (world.client(), world.client());
    refused(&mut first, "DELETE");
    first.query_drop("SHOW WARNINGS").unwrap_err();
    drop(first);
    world.await_pool(0, 1);
    second.query_drop("SHOW WARNINGS").unwrap_err();
    let cleared = "SELECT 1 FROM (SELECT 1) t";
    assert_eq!(world.fake.control.texts(), ["DELETE", "SHOW WARNINGS", cleared, "SHOW WARNINGS"]);
}

#[test]
fn an_insert_id_that_an_answer_of_rows_does_not_tell_is_kept() {
    let world = World::new();
    let (mut first, mut second) = (world.client(), world.client());
    assert_eq!(value(&mut first, "INSERT INTO t VALUES (1) RETURNING id"), "78");
    world.await_pool(0, 1);
    second.query_drop("INSERT INTO t VALUES (1)").unwrap();
    world.await_pool(0, 1);
    assert_eq!(value(&mut first, "SELECT LAST_INSERT_ID()"), "78");
}

#[test]
fn state_lost_by_a_drain_ends_the_session_with_an_error() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SET @x = 1").unwrap();
    world.backends.drain(&world.endpoint());
    let (code, text) = refused(&mut client, "SELECT ID");
    assert_eq!(code, 2013);
    assert!(text.contains("taken out of use"), "{text}");
    assert!(client.query_drop("SELECT ID").is_err());
    world.await_pool(0, 0);
}

#[test]
fn a_drain_reaches_a_connection_that_is_being_opened() {
    let world = World::new();
    world.fake.control.login.shut();
    let mut client = world.client();
    let answer = thread::spawn(move || value(&mut client, "SELECT ID"));
    world.fake.control.login.await_visitor();
    assert_eq!(world.used(), 1);
    world.backends.drain(&world.endpoint());
    world.fake.control.login.open();
    answer.join().unwrap();
    let log = world.fake.control.log.lock();
    assert_eq!(log.len(), 1, "the statement was sent once");
    assert_eq!(world.pool(6), 2, "over the second connection");
}

#[test]
fn a_running_statement_survives_a_drain_and_its_connection_does_not() {
    let world = World::new();
    world.fake.control.statement.shut();
    let mut client = world.client();
    let answer = thread::spawn(move || value(&mut client, "SELECT SLOWLY"));
    world.fake.control.statement.await_visitor();
    world.backends.drain_in(0, &world.endpoint());
    world.fake.control.statement.open();
    assert_eq!(answer.join().unwrap(), "done");
    world.await_pool(0, 0);
}

#[test]
fn max_connections_holds_however_many_clients_come() {
    const CLIENTS: usize = 50;
    let world = World::with(3, |_| {});
    let start = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (world, start) = (&world, &start);
            scope.spawn(move || {
                // Two logins compete, so that connections must also make room for each other.
                let user = if client % 5 == 0 { "other" } else { "app" };
                let mut client = world.client_as(user, None);
                start.wait();
                for _ in 0..20 {
                    value(&mut client, "SELECT ID");
                }
            });
        }
    });
    let (most, _) = *world.fake.control.open.lock();
    eventually("all are back", || world.used() == 0);
    assert!((1..=3).contains(&world.pool(8)));
    // Closing is seen by the server a moment later than by us.
    assert!(most <= 3 + 3, "{most} connections at once");
    assert_eq!(world.backends.waiting(), 0);
}

#[test]
fn free_connections_are_not_closed_while_somebody_waits() {
    let world = World::with(2, |variables| variables.free_connections_pct = 10);
    let two_statements_at_once = || {
        world.fake.control.statement.shut();
        let answers = [(), ()].map(|()| {
            let mut client = world.client();
            thread::spawn(move || value(&mut client, "SELECT SLOWLY"))
        });
        eventually("both run", || world.used() == 2);
        world.fake.control.statement.open();
        answers.into_iter().for_each(|answer| assert_eq!(answer.join().unwrap(), "done"));
    };
    let waiter = world.backends.wait_for(0).unwrap();
    two_statements_at_once();
    world.await_pool(0, 2);
    drop(waiter);
    two_statements_at_once();
    world.await_pool(0, 1);
}

/// Two thousand sessions that wait for a server, released at once. They are no clients: acquiring is what is tried.
#[test]
fn waiters_released_at_once_keep_to_max_connections() {
    const WAITERS: usize = 2000;
    let world = World::with(3, |variables| variables.connect_timeout_server_max = Duration::from_secs(100));
    world.set_usable(false);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let client = wire::socket::Socket::new(stream).unwrap();
    let registry = Arc::new(Registry::default());
    let registered =
        registry.enter(1, listener.local_addr().unwrap(), client.clone(), "app", u32::MAX).unwrap();
    let secret = wire::auth::Secret::Clear("app".to_owned());
    let identity = Identity::new("app", secret, wire::CapabilityFlags::empty());
    let profile = Arc::new(Profile::login(None, 45));
    let want = Want {
        identity: Arc::new(identity),
        profile,
        ahead: None,
        last: None,
        processor: Processor::default(),
        session: 0,
    };
    let variables =
        Variables { connect_timeout_server_max: Duration::from_secs(100), ..Variables::default() };
    let (most, served) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let errors = &Default::default();
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            let (world, client, want, variables) = (&world, &client, &want, &variables);
            let (entry, most, served) = (&registered.entry, &most, &served);
            let asker = Asker { client, entry, errors };
            let patience = Patience {
                waits: true,
                limits: variables,
                start: Instant::now(),
                trusted: Duration::ZERO,
                unshared: false,
            };
            let wait = move || {
                let lease = acquire(&world.backends, 0, want, None, asker, patience).unwrap();
                most.fetch_max(world.used() as usize, Ordering::SeqCst);
                served.fetch_add(1, Ordering::SeqCst);
                lease.release(Instant::now(), variables);
            };
            thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, wait).unwrap();
        }
        eventually("all wait", || world.backends.waiting() == WAITERS);
        world.set_usable(true);
    });
    let (open, _) = *world.fake.control.open.lock();
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)) && open <= 3, "{most:?} used, {open} open");
    assert_eq!(served.into_inner(), WAITERS);
}

#[test]
fn counts_are_read_where_they_were_left_or_told_from_the_answer() {
    let world = World::new();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
    value(&mut client, "SELECT FOUND_ROWS()");
    assert_eq!(world.fake.control.texts().last().unwrap(), "SELECT FOUND_ROWS()");
    client.query_drop("INSERT INTO t").unwrap();
    // It has asked once, so that its connection stays for a moment; then somebody else has it.
    world.await_pool(0, 1);
    value(&mut world.client(), "SELECT ID");
    world.await_pool(0, 1);
    assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "1");
    assert_eq!(world.fake.control.texts().last().unwrap(), "SELECT ID", "no server was asked");
}

#[test]
fn an_insert_id_that_a_select_has_set_outlives_the_next_statements() {
    let world = World::new();
    let mut client = world.client();
    for sql in ["SELECT LAST_INSERT_ID(9)", "SELECT ID", "SELECT ID"] {
        value(&mut client, sql);
    }
    world.await_pool(0, 1);
    client.query_drop("BEGIN").unwrap();
    assert_eq!(value(&mut client, "SELECT LAST_INSERT_ID()"), "9");
}

#[test]
fn a_write_sent_to_a_server_that_refuses_it_shuns_nothing() {
    let world = World::with(10, |variables| variables.shun_on_failures = 1);
    let mut client = world.client();
    for _ in 0..5 {
        assert_eq!(refused(&mut client, "READONLY").0, 1290);
    }
    value(&mut world.client(), "SELECT ID");
    assert_eq!(world.pool(7), 0, "no failure is counted");
    assert_eq!(world.backends.connection_pool_rows()[0][3], Value::Text("ONLINE".into()));
}

#[test]
fn a_reset_does_not_bring_a_retired_connection_back() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SET @x = 1").unwrap();
    world.backends.drain(&world.endpoint());
    client.reset().unwrap();
    world.await_pool(0, 0);
    value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
}

#[test]
fn connections_deprecate_eof_unless_configuration_says_no() {
    for deprecates in [true, false] {
        let world = World::with(10, |variables| variables.enable_server_deprecate_eof = deprecates);
        value(&mut world.client(), "SELECT ID");
        let capabilities = *world.fake.control.capabilities.lock();
        assert_eq!(capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF), deprecates);
    }
}

#[test]
fn nothing_is_shared_while_multiplexing_is_off() {
    let world = World::with(10, |variables| variables.multiplexing = false);
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    assert_eq!((world.used(), world.free()), (1, 0));
    drop(client);
    world.await_pool(0, 1);
    assert!(!world.fake.control.texts().contains(&"RESET".to_owned()), "nothing was left to reset");
}
