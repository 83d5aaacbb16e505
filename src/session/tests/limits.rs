//! KILL, time limits, clients that vanish, limits of users, and the process list.

use super::raw::{Raw, error};
use super::*;
use std::net::Shutdown;
use std::thread;
use std::time::Instant;
use wire::Command;

/// A raw client whose statement runs until somebody lets it.
fn running(world: &World) -> Raw {
    world.fake.control.statement.shut();
    let mut client = Raw::new(world);
    client.send_query("SELECT SLOWLY");
    world.fake.control.statement.await_visitor();
    client
}
/// The kills that the server was sent.
fn kills(world: &World) -> Vec<String> {
    world.fake.control.texts().into_iter().filter(|text| text.starts_with("KILL")).collect()
}
#[test]
fn kill_query_ends_the_statement_and_nothing_else() {
    let world = World::new();
    let mut victim = running(&world);
    let mut client = world.client();
    client.query_drop(format!("KILL QUERY {}", victim.0.connection_id)).unwrap();
    assert_eq!(victim.read_error(), 1317);
    let backend = world.fake.control.log.lock()[0].0;
    assert_eq!(kills(&world), [format!("KILL QUERY {backend}")]);
    victim.send_query("SELECT ID");
    assert!(victim.try_read().is_ok());
}

#[test]
fn kill_query_of_an_idle_session_does_not_wait_for_its_next_statement() {
    let world = World::new();
    let mut idle = world.client();
    value(&mut idle, "SELECT ID");
    let mut client = world.client();
    client.query_drop(format!("KILL QUERY {}", idle.connection_id())).unwrap();
    // It is longer than the relay's patience with a silent server.
    world.fake.control.statement.shut();
    let slow = thread::spawn(move || value(&mut idle, "SELECT SLOWLY"));
    world.fake.control.statement.await_visitor();
    thread::sleep(Duration::from_millis(400));
    world.fake.control.statement.open();
    assert_eq!(slow.join().unwrap(), "done");
    assert!(kills(&world).is_empty());
}

#[test]
fn kill_connection_ends_the_session_and_its_statement() {
    let world = World::new();
    let mut victim = running(&world);
    let mut client = world.client();
    client.query_drop(format!("KILL {}", victim.0.connection_id)).unwrap();
    assert!(victim.try_read().is_err());
    world.await_pool(0, 0);
    let backend = world.fake.control.log.lock()[0].0;
    assert_eq!(kills(&world), [format!("KILL CONNECTION {backend}")]);

    let mut idle = world.client();
    client.query_drop(format!("KILL CONNECTION {}", idle.connection_id())).unwrap();
    assert!(idle.query_drop("SELECT ID").is_err());
    assert_eq!(kills(&world).len(), 1, "there was nothing to kill on the server");
}

#[test]
fn a_statement_that_waits_for_a_server_can_be_killed() {
    let world = World::new();
    world.set_usable(false);
    let mut victim = Raw::new(&world);
    victim.send_query("SELECT ID");
    eventually("it waits", || world.backends.waiting() == 1);
    assert_eq!(processlist_rows(&world.registry)[0][11], Value::Text("Connect".into()));
    world.client().query_drop(format!("KILL QUERY {}", victim.0.connection_id)).unwrap();
    assert_eq!(victim.read_error(), 1317);
    assert!(world.fake.control.texts().is_empty());
}

#[test]
fn whom_a_client_may_kill() {
    let world = World::new();
    let (mut client, mut other) = (world.client(), world.client_as("other", None));
    let (own, foreign) = (client.connection_id(), other.connection_id());
    let refusal = |client: &mut Conn, sql: String| refused(client, &sql);
    let (code, text) = refusal(&mut client, format!("KILL {foreign}"));
    assert_eq!((code, text), (1095, format!("You are not owner of thread {foreign}")));
    let (code, text) = refusal(&mut client, "KILL QUERY 4000000000".into());
    assert_eq!((code, text.as_str()), (1094, "Unknown thread id: 4000000000"));
    assert_eq!(refusal(&mut client, format!("KILL QUERY {own}")).0, 1317);
    value(&mut client, "SELECT ID");
    assert_eq!(refusal(&mut client, format!("KILL {own}")).0, 1317);
    assert!(client.query_drop("SELECT ID").is_err());
    value(&mut other, "SELECT ID");
}

#[test]
fn a_client_kills_several_at_once_and_none_among_other_statements() {
    let world = World::new();
    let mut idle = [(); 3].map(|()| world.client());
    let [first, second, third] = idle.each_ref().map(Conn::connection_id);
    let mut client = Raw::with(&world, None, CapabilityFlags::CLIENT_MULTI_STATEMENTS);
    let more = u8::try_from(wire::StatusFlags::SERVER_MORE_RESULTS_EXISTS.bits()).unwrap();
    client.send_query(&format!("KILL {first}; KILL {second}; KILL 4000000000; KILL {third};"));
    for _ in 0..2 {
        let ok = client.read();
        assert!(ok[0] == 0 && ok[3] & more != 0, "{ok:?}");
    }
    assert_eq!(client.read_error(), 1094, "it ends the others");
    for (client, goes_on) in idle.iter_mut().zip([false, false, true]) {
        assert_eq!(client.query_drop("SELECT ID").is_ok(), goes_on);
    }
    world.fake.control.log.lock().clear();
    for (sql, code) in [("SELECT ID; KILL", 1235), ("KILL", 1235), ("PREPARE s FROM 'KILL", 1295)] {
        let end = if code == 1295 { "'" } else { "; SELECT ID" };
        client.send_query(&format!("{sql} {third}{end}"));
        assert_eq!(client.read_error(), code, "{sql}");
    }
    assert!(world.fake.control.texts().is_empty(), "nothing of it is executed");
    // A server refuses several statements then.
    let mut single = Raw::new(&world);
    let compound = format!("BEGIN NOT ATOMIC KILL {third}; END");
    single.send_query(&compound);
    assert_eq!(single.read_error(), 1235, "this is one statement");
    assert_eq!(error(&single.ask(wire::Command::COM_STMT_PREPARE, compound.as_bytes())).0, 1295);
    single.send_query(&format!("KILL {third}; KILL {third}"));
    single.read();
    assert_eq!(world.fake.control.texts().len(), 1);
}

#[test]
fn a_statement_over_its_time_is_killed() {
    let world = World::with(10, |variables| variables.default_query_timeout = Duration::from_millis(100));
    let mut client = running(&world);
    assert_eq!(client.read_error(), 1317);
    assert_eq!(kills(&world).len(), 1);
}

#[test]
fn the_statement_of_a_client_that_has_gone_is_killed() {
    let world = World::new();
    drop(running(&world));
    eventually("the session ends", || world.registry.sessions() == 0);
    world.await_pool(0, 0);
    assert_eq!(kills(&world).len(), 1);
}

#[test]
fn it_is_left_alone_if_configuration_says_so() {
    let world = World::with(10, |variables| variables.kill_backend_connection_when_disconnect = false);
    drop(running(&world));
    eventually("the session ends", || world.registry.sessions() == 0);
    world.await_pool(0, 0);
    assert!(kills(&world).is_empty());
    world.fake.control.statement.open();
}

#[test]
fn a_client_that_has_only_ended_its_own_direction_gets_its_answer() {
    let world = World::new();
    let mut client = running(&world);
    client.stream().shutdown(Shutdown::Write).unwrap();
    // The session looks at its client several times meanwhile.
    thread::sleep(Duration::from_millis(800));
    world.fake.control.statement.open();
    assert!(client.try_read().is_ok());
    assert!(kills(&world).is_empty());
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let world = World::with(10, |variables| variables.wait_timeout = Duration::from_secs(1));
    let mut client = Raw::new(&world);
    client.send_query("SELECT ROWS 1000");
    eventually("the session begins to write", || world.used() == 1);
    eventually("it ends", || world.registry.sessions() == 0);
    world.await_pool(0, 0);
}

#[test]
fn an_idle_client_is_told_and_disconnected() {
    for (version, told) in [("8.4.0", true), ("10.11.2-MariaDB", false)] {
        let world = World::with(10, |variables| {
            variables.wait_timeout = Duration::from_secs(1);
            variables.server_version = version.to_owned();
        });
        let mut client = Raw::new(&world);
        if told {
            assert_eq!(client.read_error(), 4031);
        }
        assert!(client.try_read().is_err());
    }
}

#[test]
fn a_session_says_how_long_it_may_be_idle() {
    let world = World::new();
    let mut client = Raw::new(&world);
    for sql in ["SET interactive_timeout=1", "SET wait_timeout=1"] {
        client.send_query(sql);
        let answer = client.read();
        assert_eq!(answer.first(), Some(&0), "{sql}");
    }
    assert_eq!(client.read_error(), 4031);
}

#[test]
fn transactions_have_limits_open_and_idle() {
    let world = World::new();
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (open, idle, ended) in [(9, 9, false), (9, 1, true), (1, 9, true)] {
        let mut client = world.client();
        let mut bystander = world.client();
        client.query_drop("BEGIN").unwrap();
        eventually("it is known", || {
            world.registry.entries().iter().any(|entry| entry.activity().transaction.is_some())
        });
        world.registry.end_transactions(hours(open), hours(idle), Instant::now() + hours(2));
        assert_eq!(client.query_drop("COMMIT").is_err(), ended, "{open} {idle}");
        value(&mut bystander, "SELECT ID");
    }
    eventually("connections are free", || world.used() == 0);
    assert!(world.fake.control.texts().contains(&"RESET".to_owned()), "what was open is rolled back");
}

#[test]
fn a_user_has_so_many_connections_and_no_more() {
    let world = World::new();
    let limited = UserRow { max_connections: 2, ..user("app") };
    world.config.set_users(&[limited, user("other")]);
    let connect = |name: &str| {
        Conn::new(
            OptsBuilder::new()
                .ip_or_hostname(Some(world.address.ip().to_string()))
                .tcp_port(world.address.port())
                .user(Some(name))
                .pass(Some(name))
                .prefer_socket(false),
        )
    };
    let first = connect("app").unwrap();
    let _second = connect("app").unwrap();
    match connect("app") {
        Err(mysql::Error::MySqlError(error)) => {
            assert_eq!((error.code, error.state.as_str()), (1226, "42000"));
            let text = "User 'app' has exceeded the 'max_user_connections' resource (current value: 2)";
            assert_eq!(error.message, text);
        }
        other => panic!("{:?}", other.err()),
    }
    connect("other").unwrap();
    let rows = users_rows(&world.registry, &world.config);
    assert_eq!(rows[0], [Value::Text("app".into()), Value::Int(2), Value::Int(2)]);
    drop(first);
    eventually("there is room again", || connect("app").is_ok());
}

#[test]
fn the_process_list_tells_what_sessions_do_and_why_they_keep_their_connections() {
    let world = World::new();
    let mut client = world.client_as("app", Some("shop"));
    client.query_drop("BEGIN").unwrap();
    let row = || processlist_rows(&world.registry)[0].clone();
    let command = |row: &[Value]| row[11].clone();
    eventually("the session is idle", || command(&row()) == Value::Text("Sleep".into()));
    let idle = row();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(
        idle[1..5],
        [Value::Int(client.connection_id().into()), text("app"), text("shop"), text("127.0.0.1")]
    );
    assert_eq!(idle[9..11], [text("127.0.0.1"), Value::Int(world.fake.address.port().into())]);
    assert_eq!(idle[13], Value::Null);
    let backend = world.fake.control.log.lock()[0].0;
    assert_eq!(idle[15], text(&format!("{{\"backend_connection_id\":{backend},\"held\":\"transaction\"}}")));

    world.fake.control.statement.shut();
    let slow = thread::spawn(move || {
        value(&mut client, "SELECT SLOWLY");
        client.query_drop("COMMIT").unwrap();
        client
    });
    world.fake.control.statement.await_visitor();
    assert_eq!((command(&row()), row()[13].clone()), (text("Query"), text("SELECT SLOWLY")));
    world.fake.control.statement.open();
    let _client = slow.join().unwrap();
    eventually("the connection is free", || row()[9] == Value::Null && row()[15] == Value::Null);
}

#[test]
fn totals_are_kept_and_told() {
    let world = World::new();
    let mut client = world.client();
    value(&mut client, "SELECT ID");
    client.query_drop("BEGIN").unwrap();
    let total = |name: &str| world.total(name);
    eventually("the transaction is known", || total("Active_Transactions") == 1);
    assert_eq!(total("Client_Connections_connected"), 1);
    drop(client);
    eventually("it has left", || total("Client_Connections_connected") == 0);
    assert_eq!((total("Client_Connections_created"), total("Questions")), (1, 3));

    let mut client = Raw::new(&world);
    let told = String::from_utf8(client.ask(Command::COM_STATISTICS, b"")).unwrap();
    let fields: Vec<&str> = told.split("  ").collect();
    assert_eq!(
        (fields[1], fields[2], fields[3]),
        ("Threads: 1", "Questions: 4", "Slow queries: 0"),
        "{told}"
    );
    assert!(fields[0].starts_with("Uptime: ") && fields[7].starts_with("Queries per second avg: "), "{told}");
}

#[test]
fn what_goes_wrong_and_what_is_done_is_counted() {
    let world = World::with(10, |variables| {
        variables.connect_timeout_server_max = Duration::from_millis(50);
        variables.long_query_time = Duration::ZERO;
    });
    let total = |name: &str| world.total(name);
    let mut client = world.client();
    client.query_drop("BEGIN").unwrap();
    client.query_drop("COMMIT").unwrap();
    client.exec_drop("SELECT ID", ()).unwrap();
    world.await_pool(0, 1);
    for (name, expected) in [
        ("Com_commit", 1),
        ("Com_rollback", 0),
        ("Com_frontend_stmt_prepare", 1),
        ("Com_frontend_stmt_execute", 1),
        ("Com_backend_stmt_prepare", 1),
        ("Com_backend_stmt_execute", 1),
        ("Stmt_Max_Stmt_id", 1),
        ("Server_Connections_created", 1),
        ("Server_Connections_connected", 1),
        ("MyHGM_myconnpoll_get", 3),
        ("MyHGM_myconnpoll_get_ok", 2),
        ("MyHGM_myconnpoll_push", 3),
        ("ConnPool_get_conn_success", 3),
        ("Slow_queries", 4),
        ("generated_error_packets", 0),
    ] {
        assert_eq!(total(name), expected, "{name}");
    }
    assert!(total("Queries_backends_bytes_sent") > 0 && total("Queries_backends_bytes_recv") > 0);
    let select =
        world.registry.commands.rows().into_iter().find(|row| row[0] == Value::Text("SELECT".into()));
    assert_eq!(select.unwrap()[2], Value::Int(1));

    world.set_usable(false);
    assert_eq!(refused(&mut client, "SELECT ID").0, 9001);
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(world.address.ip().to_string()))
        .tcp_port(world.address.port())
        .user(Some("app"))
        .pass(Some("wrong"))
        .prefer_socket(false);
    assert!(Conn::new(options).is_err());
    eventually("the refusal is counted", || total("Access_Denied_Wrong_Password") == 1);
    assert_eq!((total("max_connect_timeouts"), total("generated_error_packets")), (1, 1));
    assert!(total("ConnPool_get_conn_failure") > 0);
    assert_eq!(total("Client_Connections_aborted"), 1);
    assert_eq!(total("Access_Denied_Max_Connections"), 0);

    let mut raw = Raw::new(&world);
    raw.0.channel.write_raw(b"\x01\0\0\x07\x0E").unwrap();
    assert_eq!(raw.read_error(), 1156);
    assert_eq!(total("mysql_unexpected_frontend_packets"), 1);
}

#[test]
fn what_is_done_on_connections_to_servers_is_counted() {
    let world = World::with(1, |_| {});
    let mut client = world.client();
    for sql in ["SET NAMES utf8mb4", "SET autocommit=0, NAMES latin1", "SET autocommit=1", "SET sql_mode=''"]
    {
        client.query_drop(sql).unwrap();
    }
    client.select_db("shop").unwrap();
    world.await_pool(0, 1);
    assert_eq!((world.total("Com_frontend_set_names"), world.total("Com_autocommit")), (2, 2));
    // A connection is taken that is there already, so that it cannot fail for the schema before.
    assert_eq!((world.total("Com_frontend_init_db"), world.total("Com_backend_init_db")), (1, 2));

    let mut other = world.client();
    // Of a statement that a client closes its server hears in front of the next command.
    let prepared = other.prep("SELECT ID").unwrap();
    world.await_pool(0, 1);
    let open = [
        "Client_Active_Total",
        "Client_Active_Unique",
        "Server_Active_Total",
        "Server_Active_Unique",
        "Cached",
    ];
    for name in open {
        assert_eq!(world.total(&format!("Stmt_{name}")), 1, "{name}");
    }
    other.close(prepared).unwrap();
    other.query_drop("SELECT ID").unwrap();
    assert_eq!((world.total("Com_backend_stmt_close"), world.total("Stmt_Cached")), (1, 0));

    // What a session has left undone is made undone.
    assert_eq!(world.total("MyHGM_myconnpoll_reset"), 0);
    other.query_drop("SET @x = 1").unwrap();
    drop(other);
    world.await_pool(0, 1);
    assert_eq!(world.total("MyHGM_myconnpoll_reset"), 1);

    let created = world.total("Server_Connections_created");
    assert_eq!(world.total("MyHGM_myconnpoll_destroy"), created - 1, "one is there");
    world.set_usable(false);
    eventually("it is gone", || world.total("MyHGM_myconnpoll_destroy") == created);
    assert_eq!(world.total("Server_Connections_connected"), 0);
}

#[test]
fn bytes_of_clients_are_counted_and_outlast_them() {
    let world = World::new();
    let mut client = Raw::new(&world);
    let both = || (world.total("Queries_frontends_bytes_recv"), world.total("Queries_frontends_bytes_sent"));
    let (mut last, mut received) = ((0, 0), 0);
    for _ in 0..3 {
        let answer = client.ask(Command::COM_PING, b"").len() as u64;
        let (before, now) = (last, received);
        // An answer of our own is written when its command is over, and counted with the next one.
        eventually("the command is counted", || {
            last = both();
            received = last.0;
            received > now
        });
        if before.0 > 0 {
            assert_eq!((last.0 - before.0, last.1 - before.1), (4 + 1, 4 + answer));
        }
    }
    drop(client);
    eventually("the last answer is counted", || both().1 > last.1);
    eventually("it has left", || world.total("Client_Connections_connected") == 0);
    assert!(both().0 >= last.0 && both().1 > last.1);
}

#[test]
fn connections_that_are_put_off_are_counted() {
    let world = World::with(10, |variables| variables.throttle_connections_per_sec = 1);
    let mut clients = [world.client(), world.client()];
    clients[0].query_drop("BEGIN").unwrap();
    assert_eq!(world.total("Server_Connections_delayed"), 0);
    clients[1].query_drop("BEGIN").unwrap();
    assert!(world.total("Server_Connections_delayed") > 0);
}
