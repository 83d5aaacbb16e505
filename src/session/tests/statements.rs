//! Prepared statements over connections that are shared: one connection for two clients.

use super::raw::{Raw, error};
use super::*;
use wire::{CapabilityFlags, Command};

fn at_home(world: &World) -> Raw {
    let capabilities = CapabilityFlags::CLIENT_DEPRECATE_EOF | CapabilityFlags::CLIENT_MULTI_STATEMENTS;
    Raw::with(world, Some("home"), capabilities)
}

impl Raw {
    /// Prepares a statement; its id.
    fn prepare(&mut self, sql: &str) -> u32 {
        let deadline = Instant::now() + Duration::from_secs(10);
        self.0.prepare(&[], sql.as_bytes(), &[], deadline).unwrap().id
    }
    /// Executes a statement with what follows the iteration count.
    fn execute(&mut self, id: u32, flags: u8, parameters: &[u8]) -> Vec<u8> {
        self.ask(Command::COM_STMT_EXECUTE, &execute(id, flags, parameters))
    }
}

fn execute(id: u32, flags: u8, parameters: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[flags, 1, 0, 0, 0], parameters].concat()
}
fn of(id: u32, rest: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], rest].concat()
}
fn is_ok(packet: &[u8]) -> bool {
    packet.first() == Some(&0)
}

/// What the fake was told since the last look, without the connection's set-up.
fn told(world: &World) -> Vec<String> {
    let log = std::mem::take(&mut *world.fake.control.log.lock());
    log.into_iter().map(|(_, text)| text).collect()
}

const TEXT: &[u8] = b"\0\x01\xFD\0\x01x";
const TEXT_WITHOUT_TYPE: &[u8] = b"\0\0\x01y";

#[test]
fn clients_have_ids_of_their_own_and_share_what_they_prepare() {
    let world = World::with(1, |_| {});
    let (mut first, mut second) = (at_home(&world), at_home(&world));
    let ids = [first.prepare("SELECT ?"), second.prepare("SELECT 2, ?"), second.prepare("SELECT ?")];
    assert_eq!(ids, [1, 1, 2]);
    told(&world);
    assert!(is_ok(&first.execute(1, 0, TEXT)));
    assert!(is_ok(&second.execute(2, 0, TEXT)));
    assert!(is_ok(&first.execute(1, 0, TEXT_WITHOUT_TYPE)));
    let expected = [
        // Preparing the same again had closed the earlier one.
        r"CLOSE SELECT ? ",
        r"EXECUTE SELECT ? \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01x",
        r"EXECUTE SELECT ? \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01x",
        r"EXECUTE SELECT ? \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01y",
    ];
    assert_eq!(told(&world), expected);
}

#[test]
fn a_statement_is_prepared_again_where_it_is_not_known() {
    let world = World::new();
    let mut client = at_home(&world);
    let id = client.prepare("SELECT ?");
    assert!(is_ok(&client.execute(id, 0, TEXT)));
    world.await_pool(0, 1);
    world.backends.drain(&world.endpoint());
    told(&world);
    assert!(is_ok(&client.execute(id, 0, TEXT_WITHOUT_TYPE)));
    let told = told(&world);
    let [.., prepare, execute] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(prepare, "PREPARE SELECT ? in home");
    assert_eq!(execute, r"EXECUTE SELECT ? \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01y");
}

#[test]
fn it_is_prepared_again_in_its_own_schema() {
    let world = World::new();
    let mut client = at_home(&world);
    let id = client.prepare("SELECT 1");
    assert!(is_ok(&client.ask(Command::COM_INIT_DB, b"away")));
    world.await_pool(0, 1);
    world.backends.drain(&world.endpoint());
    told(&world);
    assert!(is_ok(&client.execute(id, 0, b"")));
    let told = told(&world);
    let expected = [
        "INIT_DB home",
        "PREPARE SELECT 1 in home",
        "INIT_DB away",
        r"EXECUTE SELECT 1 \x00\x01\x00\x00\x00",
    ];
    assert!(told.ends_with(&expected.map(str::to_owned)), "{told:?}");
}

#[test]
fn what_cannot_be_prepared_again_is_the_clients_to_know() {
    let world = World::new();
    let mut client = at_home(&world);
    assert_eq!(error(&client.ask(Command::COM_STMT_PREPARE, b"bad")).0, 1064);
    assert_eq!(error(&client.execute(1, 0, b"")).0, 1243);
    let id = client.prepare("SELECT 1");
    assert_eq!(id, 2, "ids go up whether preparing succeeds or not");
    world.await_pool(0, 1);
    assert!(is_ok(&client.execute(id, 0, b"")));
    assert_eq!(error(&client.execute(u32::MAX, 0, b"")).0, 1243, "MariaDB's name for the last one");
}

#[test]
fn closed_statements_are_closed_on_the_server() {
    let world = World::with(1, |_| {});
    let (mut first, mut second) = (at_home(&world), at_home(&world));
    let (one, other) = (first.prepare("SELECT 1"), second.prepare("SELECT 2"));
    told(&world);
    first.send(Command::COM_STMT_CLOSE, &of(one, b""));
    // The session has seen the end of it when it answers the next command.
    assert!(is_ok(&first.ask(Command::COM_PING, b"")));
    assert!(is_ok(&second.execute(other, 0, b"")));
    assert_eq!(told(&world), ["CLOSE SELECT 1 ", r"EXECUTE SELECT 2 \x00\x01\x00\x00\x00"]);
    drop(second);
    eventually("the second session has ended", || {
        assert!(is_ok(&first.ask(Command::COM_INIT_DB, b"home")));
        told(&world).contains(&"CLOSE SELECT 2 ".to_owned())
    });
    assert_eq!(error(&first.execute(one, 0, b"")), (1243, unknown(one)));
}

fn unknown(id: u32) -> String {
    format!("Unknown prepared statement handler ({id}) given to mysql_stmt_precheck")
}

#[test]
fn the_oldest_statement_of_a_connection_makes_room() {
    let world = World::with(1, |variables| variables.max_stmts_per_connection = 2);
    let mut client = at_home(&world);
    let ids = ["SELECT 1", "SELECT 2", "SELECT 3"].map(|sql| client.prepare(sql));
    told(&world);
    assert!(ids.iter().all(|id| is_ok(&client.execute(*id, 0, b""))));
    let run = |number| format!(r"EXECUTE SELECT {number} \x00\x01\x00\x00\x00");
    let closed = |number| format!("CLOSE SELECT {number} ");
    let prepared = |number| format!("PREPARE SELECT {number} in home");
    let expected = [
        prepared(1),
        closed(1),
        closed(2),
        run(1),
        prepared(2),
        closed(3),
        run(2),
        prepared(3),
        closed(1),
        run(3),
    ];
    let mut told = told(&world);
    // The first to be closed went in front of the statement prepared again.
    told.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn parameters_in_pieces_keep_the_connection_until_the_statement_has_run() {
    let world = World::with(1, |_| {});
    let mut client = at_home(&world);
    let id = client.prepare("INSERT ?");
    world.await_pool(0, 1);
    client.send(Command::COM_STMT_SEND_LONG_DATA, &of(id, b"\0\0one"));
    client.send(Command::COM_STMT_SEND_LONG_DATA, &of(id, b"\0\0two"));
    assert!(is_ok(&client.ask(Command::COM_PING, b"")));
    assert_eq!(world.used(), 1);
    assert!(is_ok(&client.execute(id, 0, b"\0\x01\xFD\0")));
    world.await_pool(0, 1);
    let told = told(&world);
    let expected = [
        r"SEND_LONG_DATA INSERT ? \x00\x00one",
        r"SEND_LONG_DATA INSERT ? \x00\x00two",
        r"EXECUTE INSERT ? \x00\x01\x00\x00\x00\x00\x01\xfd\x00",
    ];
    assert!(told.ends_with(&expected.map(str::to_owned)), "{told:?}");
    client.send(Command::COM_STMT_SEND_LONG_DATA, &of(id, b"\0\0three"));
    assert!(is_ok(&client.ask(Command::COM_STMT_RESET, &of(id, b""))));
    world.await_pool(0, 1);
}

#[test]
fn data_for_a_parameter_that_is_not_there_fails_the_statement_until_it_is_reset() {
    let world = World::new();
    let mut client = at_home(&world);
    let id = client.prepare("INSERT ?");
    client.send(Command::COM_STMT_SEND_LONG_DATA, &of(id, b"\x01\0data"));
    let precheck = "Incorrect arguments to mysql_stmt_precheck";
    assert_eq!(
        error(&client.execute(id, 0, TEXT_WITHOUT_TYPE)),
        (1210, "Incorrect arguments to mysqld_stmt_execute".to_owned())
    );
    assert_eq!(error(&client.execute(id, 0, TEXT)), (1210, precheck.to_owned()));
    assert_eq!(
        error(&client.execute(id, 0, TEXT_WITHOUT_TYPE)),
        (1210, precheck.to_owned()),
        "it has types now"
    );
    assert!(is_ok(&client.ask(Command::COM_STMT_RESET, &of(id, b""))));
    assert!(is_ok(&client.execute(id, 0, TEXT_WITHOUT_TYPE)));
    // One that nobody has prepared has no answer at all.
    client.send(Command::COM_STMT_SEND_LONG_DATA, &of(99, b"\0\0data"));
    assert!(is_ok(&client.ask(Command::COM_PING, b"")));
}

#[test]
fn an_open_cursor_keeps_the_connection() {
    const CURSOR: u8 = 1;
    let world = World::with(1, |_| {});
    let mut client = at_home(&world);
    let id = client.prepare("SELECT rows");
    let open = |client: &mut Raw| {
        client.execute(id, CURSOR, b"");
        assert_eq!((client.read().first(), client.read().first()), (Some(&3), Some(&0xFE)));
        assert_eq!(world.used(), 1);
    };
    assert_eq!(
        error(&client.ask(Command::COM_STMT_FETCH, &of(id, b"\x01\0\0\0"))),
        (1421, format!("The statement ({id}) has no open cursor."))
    );
    open(&mut client);
    assert_eq!(client.ask(Command::COM_STMT_FETCH, &of(id, b"\x01\0\0\0")), b"\0\0\x03row");
    client.read();
    assert_eq!(world.used(), 1);
    client.ask(Command::COM_STMT_FETCH, &of(id, b"\x02\0\0\0"));
    client.read();
    world.await_pool(0, 1);
    open(&mut client);
    assert!(is_ok(&client.ask(Command::COM_STMT_RESET, &of(id, b""))));
    world.await_pool(0, 1);
    open(&mut client);
    client.send(Command::COM_STMT_CLOSE, &of(id, b""));
    world.await_pool(0, 1);
    let mut other = at_home(&world);
    let id = other.prepare("SELECT rows");
    assert!(is_ok(&other.execute(id, 0, b"")));
    drop(client);
}

#[test]
fn a_cursor_is_known_where_statements_take_the_short_way() {
    let world = World::new();
    world.config.set_users(&[UserRow { fast_forward: true, ..user("app") }]);
    let mut client = at_home(&world);
    let id = client.prepare("SELECT rows");
    for _ in 0..2 {
        client.execute(id, 1, b"");
        assert_eq!((client.read().first(), client.read().first()), (Some(&3), Some(&0xFE)));
        assert_eq!(client.ask(Command::COM_STMT_FETCH, &of(id, b"\x01\0\0\0")), b"\0\0\x03row");
        client.read();
    }
}

#[test]
fn packets_cut_short_are_refused_and_the_session_goes_on() {
    let world = World::new();
    let mut client = at_home(&world);
    let id = client.prepare("SELECT ?");
    for command in [
        Command::COM_STMT_EXECUTE,
        Command::COM_STMT_FETCH,
        Command::COM_STMT_RESET,
        Command::COM_STMT_CLOSE,
        Command::COM_STMT_SEND_LONG_DATA,
    ] {
        assert_eq!(error(&client.ask(command, b"\x01")).0, 1835, "{command:?}");
    }
    assert_eq!(error(&client.execute(id, 0, b"\0")).0, 1835);
    assert_eq!(error(&client.execute(id, 0, TEXT_WITHOUT_TYPE)).0, 1210, "no types were sent ever");
    assert!(is_ok(&client.execute(id, 0, TEXT)));
}

#[test]
fn a_reset_drops_the_sessions_statements() {
    let world = World::new();
    let mut client = at_home(&world);
    let id = client.prepare("SELECT 1");
    assert!(is_ok(&client.ask(Command::COM_RESET_CONNECTION, b"")));
    assert_eq!(error(&client.execute(id, 0, b"")), (1243, unknown(id)));
}
