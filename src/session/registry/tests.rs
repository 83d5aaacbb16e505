use super::*;
use std::net::{TcpListener, TcpStream};

fn enter(registry: &Arc<Registry>, id: u32, user: &str, most: u32) -> Result<Registered, SqlError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let address = client.local_addr().unwrap();
    registry.enter(id, address, Socket::new(client).unwrap(), user, most)
}

#[test]
fn users_are_counted_while_they_are_there() {
    let registry = Arc::new(Registry::default());
    let first = enter(&registry, 1, "a", 1).unwrap();
    assert_eq!(enter(&registry, 2, "a", 1).err().map(|error| error.code), Some(1226));
    assert_eq!(enter(&registry, 2, "b", 0).err().map(|error| error.code), Some(1226));
    let second = enter(&registry, 2, "b", 5).unwrap();
    assert_eq!(second.change_user("a", 1).unwrap_err().code, 1226);
    assert_eq!((registry.of_user("a"), registry.of_user("b")), (1, 1));
    second.change_user("a", 2).unwrap();
    assert_eq!((registry.of_user("a"), registry.of_user("b")), (2, 0));
    second.change_user("a", 2).unwrap();
    drop((first, second));
    assert_eq!((registry.of_user("a"), registry.sessions()), (0, 0));
    assert_eq!(registry.counters.refused_users.load(Ordering::Relaxed), 3);
}

#[test]
fn commands_of_sessions_that_ended_are_counted_too() {
    let registry = Arc::new(Registry::default());
    for id in [1, 2] {
        let session = enter(&registry, id, "a", 9).unwrap();
        session.entry.begin(Command::COM_QUERY, b"SELECT 1", Instant::now());
        session.entry.finish(Instant::now(), |_| {});
        session.entry.begin(Command::COM_PING, b"", Instant::now());
        assert_eq!(registry.questions(), u64::from(id) * 2);
    }
}

#[test]
fn a_kill_is_for_the_statement_that_runs_and_is_told_once() {
    let registry = Arc::new(Registry::default());
    let session = enter(&registry, 1, "a", 9).unwrap();
    let entry = &session.entry;
    let begin = || entry.begin(Command::COM_QUERY, b"SELECT 1", Instant::now());
    entry.kill_query();
    begin();
    assert_eq!(entry.call(), None, "an idle session has nothing to kill");
    entry.kill_query();
    assert_eq!(entry.call(), Some(Call::KillQuery));
    assert_eq!(entry.call(), None);
    entry.kill_query();
    entry.finish(Instant::now(), |_| {});
    begin();
    assert_eq!(entry.call(), None, "the next statement is another");
    entry.end(Ending::Killed);
    entry.end(Ending::Transaction);
    entry.finish(Instant::now(), |_| {});
    assert_eq!(entry.call(), Some(Call::End(Ending::Killed)));
    assert_eq!(entry.call(), Some(Call::End(Ending::Killed)));
}

#[test]
fn only_the_start_of_a_statement_is_kept() {
    let registry = Arc::new(Registry::default());
    let session = enter(&registry, 1, "a", 9).unwrap();
    session.entry.begin(Command::COM_QUERY, &[b'x'; 5000], Instant::now());
    assert_eq!(session.entry.activity().statement().map(<[u8]>::len), Some(SHOWN));
    session.entry.begin(Command::COM_QUERY, b"SELECT 1", Instant::now());
    assert_eq!(session.entry.activity().statement(), Some(&b"SELECT 1"[..]));
    session.entry.finish(Instant::now(), |_| {});
    assert_eq!(session.entry.activity().statement(), None);
}
