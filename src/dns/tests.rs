use super::resolver::DnsLookup;
use super::*;
use crate::testing::eventually;
use admin::Variables;
use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const SECOND: Duration = Duration::from_secs(1);

/// Answers from a table, counts, and can be held up by name.
#[derive(Default)]
struct Table {
    answers: Mutex<HashMap<String, Vec<IpAddr>>>,
    asked: AtomicUsize,
    /// Names whose lookups wait while they are here.
    held: Mutex<Vec<String>>,
    released: Condvar,
}

struct Fake(Arc<Table>);

impl Lookup for Fake {
    fn lookup(&self, name: &str, deadline: Instant) -> Result<Resolved, LookupError> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let mut held = self.0.held.lock();
        while held.iter().any(|other| other == name) {
            if self.0.released.wait_until(&mut held, deadline).timed_out() {
                return Err(lookups::failed(name, "held up"));
            }
        }
        assert_ne!(name, "panic");
        match self.0.answers.lock().get(name) {
            Some(addresses) => Ok(Resolved { addresses: addresses.clone(), ttl: None }),
            None => Err(LookupError::NotFound(name.to_owned())),
        }
    }
}

struct Fixture {
    config: Arc<Config>,
    table: Arc<Table>,
    dns: Arc<Dns>,
}

impl Fixture {
    fn new(life: Duration, hosts: Vec<HostsFile>) -> Self {
        let config = config(|variables| {
            variables.dns_cache_ttl = life;
            variables.dns_cache_refresh_interval = 60 * SECOND;
        });
        let table = Arc::new(Table::default());
        table.answers.lock().insert("a".into(), vec![ip(1), ip(2)]);
        let hosts = Arc::new(Hosts::new(config.clone(), hosts));
        let dns = Dns::with_source(config.clone(), hosts, Box::new(Fake(table.clone())));
        Self { config, table, dns }
    }
    fn resolve(&self, name: &str) -> Result<IpAddr, LookupError> {
        self.dns.resolve(name, Instant::now() + 10 * SECOND)
    }
    fn asked(&self) -> usize {
        self.table.asked.load(Ordering::SeqCst)
    }
    /// Follows the name `a`.
    fn follow(&self) -> Vec<Moved> {
        self.dns.follow(["A.", "10.0.0.1", ""].into_iter())
    }
    fn hold(&self, name: &str) {
        self.table.held.lock().push(name.into());
    }
    fn release(&self) {
        self.table.held.lock().clear();
        self.table.released.notify_all();
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn config(change: impl FnOnce(&mut Variables)) -> Arc<Config> {
    let mut variables = Variables::default();
    change(&mut variables);
    Arc::new(Config::new(variables))
}

#[test]
fn literals_and_empty_names_need_no_lookup() {
    let fixture = Fixture::new(SECOND, vec![]);
    assert_eq!(fixture.resolve(" 10.0.0.9 "), Ok(ip(9)));
    assert_eq!(fixture.resolve("::1"), Ok("::1".parse().unwrap()));
    for empty in ["", " ", "."] {
        assert!(matches!(fixture.resolve(empty), Err(LookupError::NotFound(_))));
    }
    assert_eq!(fixture.asked(), 0);
}

#[test]
fn answers_are_cached_in_turns_and_names_normalised() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    let answers = ["a", "A", " a. "].map(|name| fixture.resolve(name));
    assert_eq!(answers, [Ok(ip(1)), Ok(ip(2)), Ok(ip(1))]);
    assert_eq!(fixture.asked(), 1);
    assert_eq!(fixture.resolve("b"), Err(LookupError::NotFound("b".into())));
    fixture.table.answers.lock().insert("a".into(), vec![ip(3)]);
    assert_eq!(fixture.dns.resolve_fresh("a", Instant::now() + SECOND), Ok(ip(3)));
    assert_eq!(fixture.resolve("a"), Ok(ip(3)));
    fixture.dns.remove("A.", 1);
    fixture.resolve("a").unwrap();
    assert_eq!(fixture.asked(), 4);
}

#[test]
fn a_disabled_cache_keeps_pins_alone() {
    let fixture = Fixture::new(Duration::ZERO, vec![]);
    assert_eq!([fixture.resolve("a"), fixture.resolve("a")], [Ok(ip(1)), Ok(ip(2))]);
    assert_eq!(fixture.asked(), 2);
    fixture.dns.pin("A.", ip(9), "green".into(), 7);
    assert_eq!(fixture.resolve("a"), Ok(ip(9)));
    assert_eq!(fixture.dns.resolve_fresh("a", Instant::now() + SECOND), Ok(ip(1)));
    fixture.dns.remove("a", 8);
    assert_eq!(fixture.dns.pins(), [("a".to_owned(), ip(9), 7)]);
    fixture.dns.remove("a", 7);
    assert_eq!(fixture.resolve("a"), Ok(ip(2)));
}

#[test]
fn one_lookup_serves_everybody_and_blocks_no_other_name() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    fixture.table.answers.lock().insert("b".into(), vec![ip(3)]);
    fixture.hold("a");
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| fixture.resolve("a"))).collect();
        let short = fixture.dns.resolve("a", Instant::now() + Duration::from_millis(20));
        assert!(matches!(short, Err(LookupError::Failed { .. })), "{short:?}");
        assert_eq!(fixture.resolve("b"), Ok(ip(3)));
        fixture.release();
        for waiter in waiting {
            assert!(waiter.join().unwrap().is_ok());
        }
    });
    assert_eq!(fixture.asked(), 2);
}

#[test]
fn a_lookup_under_way_does_not_survive_remove() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    fixture.hold("a");
    let _ = fixture.dns.resolve("a", Instant::now() + Duration::from_millis(20));
    fixture.dns.remove("a", 1);
    fixture.release();
    fixture.table.answers.lock().insert("a".into(), vec![ip(5)]);
    assert_eq!(fixture.resolve("a"), Ok(ip(5)));
}

#[test]
fn a_resolver_that_fails_leaves_known_addresses() {
    let fixture = Fixture::new(Duration::from_millis(1), vec![]);
    fixture.table.answers.lock().insert("c".into(), vec![ip(6)]);
    assert_eq!(fixture.resolve("c"), Ok(ip(6)));
    thread::sleep(Duration::from_millis(2));
    fixture.hold("c");
    assert_eq!(fixture.resolve("c"), Ok(ip(6)));
    assert!(fixture.dns.resolve_fresh("c", Instant::now() + Duration::from_millis(20)).is_err());
}

#[test]
fn a_panic_in_the_resolver_is_an_error() {
    let fixture = Fixture::new(SECOND, vec![]);
    assert!(matches!(fixture.resolve("panic"), Err(LookupError::Failed { .. })));
    assert!(fixture.resolve("a").is_ok());
}

#[test]
fn names_in_use_are_refreshed() {
    let fixture = Fixture::new(Duration::from_millis(1200), vec![]);
    fixture.dns.start().unwrap();
    let end = Instant::now() + 10 * SECOND;
    fixture.resolve("a").unwrap();
    fixture.dns.pin("a", ip(9), "green".into(), 1);
    while fixture.asked() < 2 && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(fixture.asked() >= 2, "nothing was refreshed");
    assert_eq!(fixture.resolve("a"), Ok(ip(9)), "a refresh leaves the pin");
}

#[test]
fn names_that_are_followed_are_looked_up_for_nobody_and_their_moves_are_told_once() {
    let fixture = Fixture::new(Duration::from_millis(1200), vec![]);
    fixture.dns.start().unwrap();
    assert_eq!(fixture.follow(), []);
    eventually("the first lookup", || fixture.asked() == 1);
    fixture.table.answers.lock().insert("a".into(), vec![ip(2), ip(3)]);
    let mut moved = Vec::new();
    eventually("a move", || {
        moved = fixture.follow();
        !moved.is_empty()
    });
    assert_eq!(moved, [("a".to_owned(), vec![ip(1)])]);
    assert_eq!(fixture.follow(), []);
}

#[test]
fn moves_are_told_with_the_cache_disabled_and_nothing_is_looked_up_for_nobody() {
    let fixture = Fixture::new(Duration::ZERO, vec![]);
    assert_eq!(fixture.follow(), []);
    fixture.resolve("a").unwrap();
    fixture.table.answers.lock().insert("a".into(), vec![ip(3)]);
    assert_eq!(fixture.follow(), []);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(fixture.asked(), 1);
    fixture.resolve("a").unwrap();
    assert_eq!(fixture.follow(), [("a".to_owned(), vec![ip(1), ip(2)])]);
}

#[test]
fn where_a_pin_leads_has_not_been_left() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    fixture.resolve("a").unwrap();
    fixture.dns.pin("a", ip(1), "green".into(), 7);
    fixture.table.answers.lock().insert("a".into(), vec![ip(3)]);
    fixture.dns.remove("a", 8);
    fixture.dns.resolve_fresh("a", Instant::now() + 10 * SECOND).unwrap();
    assert_eq!(fixture.follow(), [("a".to_owned(), vec![ip(2)])]);
}

#[test]
fn a_change_of_a_hosts_file_is_a_move() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    std::fs::write(&path, "10.0.0.7 a\n").unwrap();
    let fixture = Fixture::new(100 * SECOND, vec![HostsFile::named(path.clone())]);
    assert_eq!(fixture.follow(), []);
    std::fs::write(&path, "10.0.0.18 a\n").unwrap();
    assert_eq!(fixture.follow(), [("a".to_owned(), vec![ip(7)])]);
    assert_eq!(fixture.asked(), 0);
}

#[test]
fn a_name_that_does_not_exist_is_asked_for_once_in_a_while() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    for _ in 0..20 {
        assert!(matches!(fixture.resolve("b"), Err(LookupError::NotFound(_))));
    }
    // On a machine that stops for a second in between, twice.
    assert!(fixture.asked() < 5, "{}", fixture.asked());
}

#[test]
fn stop_releases_those_who_wait() {
    let fixture = Fixture::new(SECOND, vec![]);
    fixture.dns.start().unwrap();
    fixture.hold("a");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| fixture.resolve("a"));
        while fixture.asked() == 0 {
            thread::yield_now();
        }
        let stopper = scope.spawn(|| fixture.dns.stop());
        let error = waiter.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("shutting down"), "{error}");
        fixture.release();
        stopper.join().unwrap();
    });
    assert!(fixture.resolve("b").is_err());
}

#[test]
fn changed_settings_empty_the_cache() {
    let fixture = Fixture::new(100 * SECOND, vec![]);
    fixture.resolve("a").unwrap();
    let mut variables = Variables::clone(&fixture.config.variables());
    variables.resolution_family = ResolutionFamily::Ipv4;
    fixture.config.set_variables(variables);
    fixture.resolve("a").unwrap();
    assert_eq!(fixture.asked(), 2);
}

#[test]
fn hosts_files_come_first_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        HostsFile::named(path)
    };
    let files = vec![
        file("first", "10.0.0.7 A\n10.0.0.8 a.\n::1 a six\n"),
        file("second", "10.0.0.9 a\n10.0.0.10 b\n"),
    ];
    let fixture = Fixture::new(100 * SECOND, files);
    let answers = [(); 3].map(|()| fixture.resolve("a").unwrap());
    assert_eq!(answers, [ip(7), ip(8), ip(7)]);
    assert_eq!(fixture.resolve("B"), Ok(ip(10)));
    assert_eq!(fixture.resolve("six"), Ok("::1".parse().unwrap()));
    assert_eq!(fixture.asked(), 0);
    let mut variables = Variables::clone(&fixture.config.variables());
    variables.resolution_family = ResolutionFamily::Ipv6;
    fixture.config.set_variables(variables);
    assert_eq!(fixture.resolve("a"), Ok("::1".parse().unwrap()));
    assert!(fixture.resolve("b").is_err(), "an IPv4 address in spite of the family");
}

/// A name server that answers A queries for `a.test` with two addresses and a TTL of 7 s, AAAA queries with one, `slow.test` never, `broken.test`
/// with SERVFAIL and all else with NXDOMAIN. Ends when it is asked for `end.test`.
fn name_server() -> (SocketAddr, thread::JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let serve = move || {
        let mut packet = [0; 512];
        loop {
            let (size, peer) = socket.recv_from(&mut packet).unwrap();
            let question = &packet[12..size];
            let name_end = question.iter().position(|byte| *byte == 0).unwrap();
            let question = &question[..name_end + 5];
            let label = &question[1..=usize::from(question[0])];
            let is_a = question[name_end + 2] == 1;
            let (code, addresses): (u8, &[u8]) = match label {
                b"a" if is_a => (0, &[1, 2]),
                b"a" => (0, &[6]),
                b"slow" => continue,
                b"broken" => (2, &[]),
                b"end" => return,
                _ => (3, &[]),
            };
            let count = u8::try_from(addresses.len()).unwrap();
            let mut answer = packet[..2].to_vec();
            answer.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
            answer.extend(question);
            for last in addresses {
                let (kind, address) = match is_a {
                    true => (1, vec![10, 0, 0, *last]),
                    false => (28, [vec![0; 15], vec![*last]].concat()),
                };
                answer.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 7, 0, u8::try_from(address.len()).unwrap()]);
                answer.extend(address);
            }
            socket.send_to(&answer, peer).unwrap();
        }
    };
    (address, thread::spawn(serve))
}

fn end(server: SocketAddr, thread: thread::JoinHandle<()>) {
    let query = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x03end\x04test\0\0\x01\0\x01";
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(query, server).unwrap();
    thread.join().unwrap();
}

#[test]
fn name_servers_are_asked_within_the_deadline() {
    let (server, thread) = name_server();
    let lookup = DnsLookup::new(config(|_| ()), Some(server));
    let ask = |name: &str| lookup.lookup(name, Instant::now() + SECOND);
    let found = ask("a.test").unwrap();
    assert_eq!(found.addresses, [ip(1), ip(2)]);
    let ttl = found.ttl.unwrap();
    assert!(ttl > 5 * SECOND && ttl <= 7 * SECOND, "{ttl:?}");
    assert_eq!(ask("b.test"), Err(LookupError::NotFound("b.test".into())));
    for (family, expected) in
        [(ResolutionFamily::Ipv4, vec![ip(1), ip(2)]), (ResolutionFamily::Ipv6, vec!["::6".parse().unwrap()])]
    {
        let lookup = DnsLookup::new(config(|variables| variables.resolution_family = family), Some(server));
        assert_eq!(lookup.lookup("a.test", Instant::now() + SECOND).unwrap().addresses, expected);
    }
    let broken = ask("broken.test");
    assert!(matches!(broken, Err(LookupError::Failed { .. })), "{broken:?}");
    let begin = Instant::now();
    let slow = ask("slow.test");
    assert!(matches!(slow, Err(LookupError::Failed { .. })), "{slow:?}");
    assert!(begin.elapsed() < 3 * SECOND, "{:?}", begin.elapsed());
    for strange in ["a b.test", "ä.test", "..", &"x".repeat(300)] {
        assert!(ask(strange).is_err(), "{strange}");
    }
    end(server, thread);
}

#[test]
fn the_configured_server_wins_over_hosts_files() {
    let (server, thread) = name_server();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    std::fs::write(&path, "10.0.0.9 a.test\n10.0.0.8 b.test\n").unwrap();
    let config = config(|variables| variables.dns_server = Some(server));
    let dns = Dns::new(config, Some(path));
    let ask = |name: &str| dns.resolve(name, Instant::now() + 3 * SECOND);
    assert_eq!([ask("a.test"), ask("a.test")], [Ok(ip(1)), Ok(ip(2))]);
    assert_eq!(ask("b.test"), Ok(ip(8)));
    end(server, thread);
}
