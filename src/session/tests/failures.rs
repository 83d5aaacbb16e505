//! Servers that misbehave, are missing or come late, and clients that leave.

use super::raw::Raw;
use super::*;
use mysql::LocalInfileHandler;
use std::io::{Read, Write};
use std::thread;

#[test]
fn a_statement_waits_for_a_server_and_runs_once_there_is_one() {
    let world = World::new();
    world.set_usable(false);
    let mut client = world.client();
    let answer = thread::spawn(move || value(&mut client, "SELECT ID"));
    eventually("somebody waits", || world.backends.waiting() == 1);
    world.set_usable(true);
    answer.join().unwrap();
    assert_eq!(world.backends.waiting(), 0);
}

#[test]
fn a_wait_ends_with_error_9001_and_the_session_goes_on() {
    let world =
        World::with(10, |variables| variables.connect_timeout_server_max = Duration::from_millis(150));
    world.set_usable(false);
    let mut client = world.client();
    let (code, text) = refused(&mut client, "SELECT ID");
    assert_eq!(code, 9001);
    assert!(text.starts_with("Max connect timeout reached while reaching hostgroup 0 after 1"), "{text}");
    assert!(text.ends_with("ms"), "{text}");
    world.set_usable(true);
    value(&mut client, "SELECT ID");
}

#[test]
fn a_client_that_leaves_while_it_waits_is_noticed() {
    let world = World::new();
    world.set_usable(false);
    let mut client = world.client();
    let stream = thread::spawn(move || client.query_drop("SELECT ID"));
    eventually("somebody waits", || world.backends.waiting() == 1);
    // What a stopping daemon does to its clients looks the same from here: no more can be read.
    world.front.stop(Duration::from_secs(5));
    assert!(stream.join().unwrap().is_err());
    assert_eq!(world.backends.waiting(), 0);
    assert!(world.fake.control.texts().is_empty());
}

#[test]
fn a_server_that_dies_before_it_answers_costs_the_statement_alone() {
    let world = World::new();
    let mut client = world.client();
    let (code, text) = refused(&mut client, "SELECT DIE");
    assert_eq!(code, 2013);
    assert!(text.starts_with("Lost connection to MySQL server during query"), "{text}");
    world.await_pool(0, 0);
    value(&mut client, "SELECT ID");
    let sent = world.fake.control.texts();
    assert_eq!(sent, ["SELECT DIE", "SELECT ID"], "it was not sent again");
}

#[test]
fn a_library_that_takes_no_error_2013_is_told_by_the_end_of_its_connection() {
    let world = World::new();
    let none = CapabilityFlags::empty();
    let mut other = Raw::made_with(&world, None, none, &[("_os", "x"), ("_client_name", "libmysql")]);
    other.send_query("SELECT DIE");
    assert_eq!(other.read_error(), 2013);
    let mut client = Raw::made_with(&world, None, none, &[("_os", "x"), ("_client_name", "libmariadb")]);
    client.send_query("FAIL");
    assert_eq!(client.read_error(), 1064, "other errors are told");
    client.send_query("SELECT DIE");
    assert!(matches!(client.try_read(), Err(WireError::Closed)));
    world.await_pool(0, 0);
}

#[test]
fn a_server_that_dies_behind_a_file_of_the_client_costs_the_statement_alone() {
    let world = World::new();
    let mut client = world.client();
    let handler = LocalInfileHandler::new(|_, writer| writer.write_all(b"line"));
    client.set_local_infile_handler(Some(handler));
    assert_eq!(refused(&mut client, "LOAD").0, 2013);
    assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3");
}

#[test]
fn a_server_that_dies_between_rows_costs_the_statement_alone() {
    let world = World::new();
    let mut client = world.client();
    for sql in ["SELECT HALF", "SELECT NONSENSE"] {
        let rows: Result<Vec<String>, _> =
            client.query_iter(sql).unwrap().map(|row| row.map(mysql::from_row)).collect();
        assert!(matches!(rows, Err(mysql::Error::MySqlError(error)) if error.code == 2013), "{sql}");
        world.await_pool(0, 0);
        assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3");
    }
    client.query_drop("SET @a = 1").unwrap();
    assert!(client.query::<String, _>("SELECT HALF").is_err());
    assert!(client.query_drop("SELECT ID").is_err(), "what was set is lost, and the session with it");
}

#[test]
fn a_result_has_so_many_columns_and_no_more() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(refused(&mut client, "SELECT COLUMNS").0, 2013);
    world.await_pool(0, 0);
    assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3");
}

#[test]
fn a_server_that_dies_within_a_row_ends_the_client() {
    let world = World::new();
    let mut client = world.client();
    let rows: Result<Vec<String>, _> = client.query("SELECT TORN");
    assert!(rows.is_err());
    assert!(client.query_drop("SELECT ID").is_err());
    eventually("the client is gone", || world.front.connections() == 0);
    world.await_pool(0, 0);
}

#[test]
fn a_connection_that_the_server_closed_is_not_used_again() {
    let world = World::new();
    let mut client = world.client();
    let first = value(&mut client, "SELECT ID");
    world.await_pool(0, 1);
    // Idle for longer than is trusted; the server says goodbye meanwhile.
    world.fake.control.cut_all();
    thread::sleep(Duration::from_millis(120));
    assert_ne!(value(&mut client, "SELECT ID"), first);
}

#[test]
fn a_connection_that_the_server_closes_as_it_is_taken_costs_no_statement() {
    let world = World::new();
    let mut client = world.client();
    client.query_drop("SET sql_mode='ANSI'").unwrap();
    let prepared = client.prep("SELECT LENGTH abcd").unwrap();
    for sql in ["SELECT LENGTH abc", "INSERT 1", "SELECT LAST_INSERT_ID()"] {
        world.await_pool(0, 1);
        world.fake.control.cut_all();
        client.query_drop(sql).unwrap();
        let sent = world.fake.control.texts();
        assert_eq!(sent.iter().filter(|text| *text == sql).count(), 1, "{sent:?}");
    }
    world.await_pool(0, 1);
    world.fake.control.cut_all();
    client.exec_drop(&prepared, ()).unwrap();
    assert_eq!(value(&mut client, "SELECT SETTINGS"), "sql_mode='ANSI'", "what the session has set is there");
}

#[test]
fn a_server_that_closes_every_connection_costs_no_statement() {
    let world = World::new();
    let mut clients = [(); 3].map(|()| world.client());
    clients.iter_mut().for_each(|client| client.query_drop("BEGIN").unwrap());
    clients.iter_mut().for_each(|client| client.query_drop("COMMIT").unwrap());
    world.await_pool(0, 3);
    world.fake.control.cut_all();
    assert_eq!(value(&mut clients[0], "SELECT LENGTH abc"), "3");
}

#[test]
fn what_a_lost_connection_knew_is_told_from_its_answer_or_not_at_all() {
    let world = World::with(10, |variables| variables.connection_delay_multiplex = Duration::from_secs(60));
    let mut client = world.client();
    value(&mut client, "SELECT FOUND_ROWS()");
    // A connection that is retired can still be asked; this server does not know the question.
    type Loss = fn(&World);
    let losses: [(Loss, u16); 2] = [
        (|world| world.fake.control.cut_all(), 2013),
        (|world| world.backends.drain(&world.endpoint()), 1064),
    ];
    for (lose, answer) in losses {
        client.query_drop("INSERT 1").unwrap();
        lose(&world);
        assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "1");
        client.query_drop("INSERT 1").unwrap();
        lose(&world);
        assert_eq!(refused(&mut client, "INSERT INTO t VALUES (ROW_COUNT())").0, 2013);
        assert_eq!(refused(&mut client, "UPDATE t SET a = 1").0, 1064);
        lose(&world);
        assert_eq!(refused(&mut client, "SHOW WARNINGS").0, answer);
        assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3", "the session goes on");
    }
}

#[test]
fn what_is_lost_with_a_connection_is_told() {
    let world = World::new();
    for begin in ["BEGIN", "SET @a = 1"] {
        let mut client = world.client();
        client.query_drop(begin).unwrap();
        world.fake.control.cut_all();
        assert_eq!(refused(&mut client, "SELECT LENGTH abc").0, 2013, "{begin}");
    }
    assert!(!world.fake.control.texts().contains(&"SELECT LENGTH abc".to_owned()));
}

#[test]
fn a_server_that_is_not_there_is_tried_again_then_shunned() {
    let world = World::with(10, |variables| {
        variables.connect_timeout_server_max = Duration::from_millis(300);
        variables.shun_on_failures = 3;
    });
    world.fake.stop();
    let mut client = world.client();
    assert_eq!(refused(&mut client, "SELECT ID").0, 9001);
    // Three failures shun it; after that it is tried once in each tenth of its rest of 1 s.
    assert!((3..=6).contains(&world.pool(7)), "{}", world.pool(7));
    assert_eq!(world.backends.connection_pool_rows()[0][3], Value::Text("SHUNNED".into()));
}

#[test]
fn a_server_that_is_not_there_is_named_when_retries_are_used_up() {
    let world = World::with(10, |variables| {
        variables.connect_retries_on_failure = 1;
        variables.shun_on_failures = 0;
    });
    world.fake.stop();
    let (code, text) = refused(&mut world.client(), "SELECT ID");
    assert_eq!(code, 9002);
    assert!(text.contains(&world.endpoint().to_string()), "{text}");
    assert_eq!(world.pool(7), 2);
}

#[test]
fn a_login_that_the_server_refuses_is_told_and_not_held_against_it() {
    let world = World::with(10, |variables| variables.shun_on_failures = 1);
    let mut client = world.client_as("nobody", None);
    assert_eq!(refused(&mut client, "SELECT ID").0, 1045);
    assert_eq!(world.pool(7), 1);
    value(&mut world.client(), "SELECT ID");
}

#[test]
fn a_value_of_several_packets_passes_both_ways() {
    const SIZE: usize = 20_000_000;
    let world = World::new();
    let mut client = world.client();
    let length = value(&mut client, &format!("SELECT LENGTH {}", "y".repeat(SIZE)));
    assert_eq!(length, SIZE.to_string());
    assert_eq!(value(&mut client, &format!("SELECT LONG {SIZE}")).len(), SIZE);
}

#[test]
fn a_large_result_streams_through() {
    const ROWS: usize = 3200;
    let world = World::new();
    let mut client = world.client();
    let mut rows = client.query_iter(format!("SELECT ROWS {ROWS}")).unwrap();
    assert_eq!(rows.by_ref().filter(Result::is_ok).count(), ROWS);
    drop(rows);
    // Over 200 MB went through, and the connection is whole.
    world.await_pool(0, 1);
    assert!(world.pool(12) > (ROWS << 16) as i64);
}

#[test]
fn a_client_that_leaves_amid_an_answer_takes_the_connection_along() {
    let world = World::new();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    let mut raw = Raw::new(&world);
    raw.send_payload(b"\x03SELECT ROWS 100000");
    let mut some = [0u8; 1000];
    raw.stream().read_exact(&mut some).unwrap();
    drop(raw);
    world.await_pool(0, 1);
    value(&mut client, "SELECT ID");
}

#[test]
fn packets_over_the_limit_are_refused_with_1153() {
    let world = World::with(10, |variables| variables.max_allowed_packet = 8192);
    let mut client = world.client();
    assert_eq!(refused(&mut client, &format!("SELECT {}", "x".repeat(9000))).0, 1153);
    assert!(client.query_drop("SELECT ID").is_err());
}

#[test]
fn commands_of_our_own_and_unknown_ones() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(value(&mut client, "select @@version_comment limit 1"), "(ProxySQL)");
    client.ping().unwrap();
    let mut raw = Raw::new(&world);
    const UNKNOWN: u16 = 1047;
    const UNSUPPORTED: u16 = 9003;
    let unknown = [0, 5, 6, 0x0b, 0x0c, 0x0f, 0x10, 0x13, 0x14, 0x1d, 0x20, 0x21, 0x55, 0xfa, 0xfe];
    let answers = unknown.map(|code| (code, UNKNOWN)).into_iter();
    for (code, error) in answers.chain([0x12, 0x15, 0x1e].map(|code| (code, UNSUPPORTED))) {
        raw.send_payload(&[code]);
        let answer = raw.read();
        assert_eq!(answer[..3], [&[0xff][..], &error.to_le_bytes()].concat(), "{code}");
    }
    raw.send_payload(b"");
    assert_eq!(raw.read()[0], 0xff);
    raw.send_payload(b"\x09");
    assert!(raw.read().starts_with(b"Uptime"));
    raw.send_payload(b"\x0e");
    assert_eq!(raw.read()[0], 0);
    assert!(world.fake.control.texts().is_empty(), "no server was asked");
}

#[test]
fn an_answer_of_our_own_does_not_repeat_what_the_last_one_said_of_itself() {
    let world = World::new();
    let mut raw = Raw::new(&world);
    raw.send_payload(b"\x03MORE");
    assert_eq!((raw.read()[0], raw.read()[0]), (0, 0xff));
    raw.send_payload(b"\x0e");
    assert_eq!(raw.read(), [0, 0, 0, 2, 0, 0, 0], "autocommit, and no more results to wait for");
}

#[test]
fn a_goodbye_of_the_server_is_no_answer() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(refused(&mut client, "SELECT UNASKED").0, 2013);
    assert_eq!(world.used(), 0, "the connection is not used again");
    assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3");
}

#[test]
fn a_goodbye_behind_an_answer_costs_the_connection_alone() {
    let world = World::new();
    let mut client = world.client();
    assert_eq!(value(&mut client, "SELECT GOODBYE"), "x");
    world.await_pool(0, 0);
    assert_eq!(value(&mut client, "SELECT LENGTH abc"), "3");
    client.query_drop("SET @a = 1").unwrap();
    assert_eq!(value(&mut client, "SELECT GOODBYE"), "x");
    assert_eq!(refused(&mut client, "SELECT LENGTH abc").0, 2013);
    assert!(client.query_drop("SELECT ID").is_err(), "what was set is lost, and the session with it");
}

#[test]
fn a_server_that_dies_while_it_is_prepared_is_not_stormed() {
    let world = World::with(10, |variables| variables.connect_retries_on_failure = 2);
    let mut client = world.client();
    client.query_drop("SET sql_mode='ANSI'").unwrap();
    // Takes the connection, so that others are opened.
    world.await_pool(0, 1);
    let mut other = world.client();
    other.query_drop("BEGIN").unwrap();
    let before = world.fake.control.texts().len();
    *world.fake.control.fatal.lock() = Some("sql_mode");
    let (code, text) = refused(&mut client, "SELECT ID");
    assert_eq!(code, 2013, "{text}");
    let since = world.fake.control.texts().split_off(before);
    assert_eq!(since.len(), 3, "{since:?}");
    *world.fake.control.fatal.lock() = None;
    value(&mut client, "SELECT ID");
}

#[test]
fn a_stop_tells_who_waits_for_a_server() {
    let world = World::new();
    world.set_usable(false);
    let mut client = world.client();
    let waiting = thread::spawn(move || refused(&mut client, "SELECT ID").0);
    eventually("somebody waits", || world.backends.waiting() == 1);
    world.backends.end_waiting();
    world.front.stop(Duration::from_secs(5));
    assert_eq!(waiting.join().unwrap(), 1053);
}

#[test]
fn a_close_ends_a_connect_that_goes_nowhere() {
    let world = World::with(10, |variables| {
        variables.connect_timeout_server = Duration::from_secs(100);
        variables.connect_timeout_server_max = Duration::from_secs(100);
    });
    world.fake.control.login.shut();
    let mut client = world.client();
    let begun = Instant::now();
    let connecting = thread::spawn(move || client.query_drop("SELECT ID").is_err());
    world.fake.control.login.await_visitor();
    world.backends.close();
    assert!(connecting.join().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(100), "it did not wait for its time limit");
    world.fake.control.login.open();
}

#[test]
fn a_command_out_of_order_ends_its_client_and_no_server_sees_it() {
    let world = World::new();
    let mut raw = Raw::new(&world);
    raw.stream().write_all(b"\x0A\0\0\x07\x03SELECT ID").unwrap();
    assert_eq!(raw.read()[..9], *b"\xff\x84\x04#08S01", "error 1156");
    assert_eq!(raw.stream().read(&mut [0]).unwrap(), 0);
    assert!(world.fake.control.texts().is_empty());
}

#[test]
fn a_close_cuts_running_statements() {
    let world = World::new();
    world.fake.control.statement.shut();
    let mut client = world.client();
    let running = thread::spawn(move || client.query_drop("SELECT SLOWLY"));
    world.fake.control.statement.await_visitor();
    world.backends.close();
    assert!(running.join().unwrap().is_err());
    world.fake.control.statement.open();
    assert_eq!(refused(&mut world.client(), "SELECT ID").0, 1053);
}

#[test]
fn who_is_told_to_go_has_no_connection_while_going() {
    let world = World::new();
    let mut client = Raw::new(&world);
    client.send_query("SET @a=1");
    client.read();
    world.backends.drain(&world.endpoint());
    client.send_query("SELECT ID");
    assert_eq!(client.read_error(), 2013);
    eventually("its connection is free", || world.used() == 0 && world.registry.sessions() == 1);
}
