//! Clients and servers that differ in what they can do: the answers that a client gets through the daemon are those that a
//! server gives it directly, packet by packet.

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use wire::auth::Secret;
use wire::backend::{Backend, ConnectOptions};
use wire::tracker::{Progress, ResponseTracker, Sides};
use wire::{CapabilityFlags, Command};

use crate::relay::{Packet, carry, packets};
use crate::servers::Kind;
use crate::setup::{Lab, PASSWORD, Route};

const DEPRECATES: CapabilityFlags = CapabilityFlags::CLIENT_DEPRECATE_EOF;
const TRACKS: CapabilityFlags = CapabilityFlags::CLIENT_SESSION_TRACK;
/// What a server may lack, and what a client may have.
const MIXES: [CapabilityFlags; 4] = [CapabilityFlags::empty(), DEPRECATES, TRACKS, DEPRECATES.union(TRACKS)];

pub fn every_mix(lab: &Lab) {
    let mut differences = Vec::new();
    for kind in [Kind::MySql, Kind::MariaDb] {
        let mut dba = lab.servers.dba(kind);
        for statement in [
            "CREATE TABLE app.mixed (a INT PRIMARY KEY, b VARCHAR(20))",
            "CREATE PROCEDURE app.mixed(OUT o INT) BEGIN SELECT 7; SET o = 5; END",
        ] {
            dba.query_drop(statement).unwrap();
        }
        for (at, hidden) in MIXES.into_iter().enumerate() {
            let server = Weakened::start(lab.servers.port(kind), hidden);
            let (user, hostgroup) = match kind {
                Kind::MySql => (["mix_my0", "mix_my1", "mix_my2", "mix_my3"][at], 5000 + at as u16),
                Kind::MariaDb => (["mix_ma0", "mix_ma1", "mix_ma2", "mix_ma3"][at], 5010 + at as u16),
            };
            lab.add_at(&Route { user, hostgroup, kind, use_ssl: false, compression: false }, server.port);
            for client in MIXES {
                // What a server does not track nobody can tell.
                let reference = if hidden.contains(TRACKS) { client.difference(TRACKS) } else { client };
                let directly = Script::run(lab.servers.port(kind), user, reference);
                let through = Script::run(lab.daemon.traffic_port, user, client);
                assert_eq!(through.len(), directly.len());
                for ((command, expected), (_, found)) in directly.iter().zip(&through) {
                    if found != expected {
                        differences.push(format!(
                            "{command} on {kind:?} without {} for a client with {}:\n  {expected:?}\n  {found:?}",
                            named(hidden),
                            named(client)
                        ));
                    }
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn named(capabilities: CapabilityFlags) -> String {
    let known = [(DEPRECATES, "DEPRECATE_EOF"), (TRACKS, "SESSION_TRACK")];
    let names = known.iter().filter(|(flag, _)| capabilities.contains(*flag)).map(|(_, name)| *name);
    format!("{{{}}}", names.collect::<Vec<_>>().join(", "))
}

/// A server that seems to lack some capabilities.
struct Weakened {
    port: u16,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Weakened {
    fn start(server: u16, hidden: CapabilityFlags) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let accept = move || {
            let mut connections = Vec::new();
            while let Ok((client, _)) = listener.accept() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
                let socket = client.try_clone().unwrap();
                connections.push((socket, std::thread::spawn(move || carry(client, server, hidden))));
            }
            for (socket, thread) in connections {
                let _ = socket.shutdown(Shutdown::Both);
                thread.join().unwrap();
            }
        };
        Self { port, stopping, thread: Some(std::thread::spawn(accept)) }
    }
}

impl Drop for Weakened {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A client that sends commands one after the other and records the answers.
struct Script {
    backend: Backend,
    answers: Vec<(String, Vec<Packet>)>,
}

impl Script {
    /// Everything whose answer depends on the capabilities.
    fn run(port: u16, user: &str, capabilities: CapabilityFlags) -> Vec<(String, Vec<Packet>)> {
        let secret = Secret::Clear(PASSWORD.to_owned());
        let options = ConnectOptions {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            tls: None,
            server_name: "",
            user,
            secret: &secret,
            database: Some("app"),
            capabilities: capabilities
                | CapabilityFlags::CLIENT_MULTI_STATEMENTS
                | CapabilityFlags::CLIENT_MULTI_RESULTS
                | CapabilityFlags::CLIENT_PS_MULTI_RESULTS,
            collation: 45,
            attributes: &[],
            deadline: Instant::now() + Duration::from_secs(30),
        };
        let backend = Backend::connect(&options).unwrap();
        let asked = backend.capabilities & (DEPRECATES | TRACKS);
        assert_eq!(asked, capabilities, "capabilities in force");
        let mut script = Self { backend, answers: Vec::new() };
        script.statements();
        script.prepared();
        script.backend.quit();
        script.answers
    }
    fn statements(&mut self) {
        for sql in [
            "SELECT 1",
            "SELECT 1 FROM DUAL WHERE 1 = 0",
            "TRUNCATE TABLE mixed",
            "INSERT INTO mixed VALUES (1, 'one'), (2, 'two')",
            "UPDATE mixed SET b = 'eins' WHERE a = 1",
            "SELECT a, b FROM mixed ORDER BY a",
            "SELECT 1; DO 1; SET time_zone = '+02:00'; SELECT a FROM mixed ORDER BY a",
            "SELECT 1; SELECT a FROM mixed; SELECT 2;",
            "SELECT 1; SELEC",
            "SELECT a FROM mixed WHERE a = (SELECT a FROM mixed)",
            "SELEC",
            "CALL mixed(@o)",
            "SET time_zone = '+01:00'",
            "SET character_set_results = latin1",
            "SET sql_mode = 'ANSI'",
            "SET @a = 1",
            "BEGIN",
            "INSERT INTO mixed VALUES (3, 'three')",
            "ROLLBACK",
            "SET autocommit = 0",
            "SELECT a FROM mixed WHERE a = 1",
            "COMMIT",
            "SET autocommit = 1",
            "CREATE TEMPORARY TABLE mixed_temporary (a INT)",
            "USE app",
        ] {
            self.ask(Command::COM_QUERY, sql.as_bytes());
        }
        self.ask(Command::COM_INIT_DB, b"app");
        self.ask(Command::COM_INIT_DB, b"nowhere");
        self.ask(Command::COM_FIELD_LIST, b"mixed\0");
        self.ask(Command::COM_PING, b"");
        self.ask(Command::COM_SET_OPTION, &[0, 0]);
    }
    fn prepared(&mut self) {
        let plain = self.prepare("SELECT a, b FROM mixed WHERE a > ? ORDER BY a");
        let parameter = b"\0\x01\x03\0\0\0\0\0";
        self.execute(plain, 0, parameter);
        let cursor = self.prepare("SELECT a FROM mixed ORDER BY a");
        self.execute(cursor, 1, b"");
        for _ in 0..2 {
            self.ask(Command::COM_STMT_FETCH, &[&cursor[..], &1u32.to_le_bytes()].concat());
        }
        self.ask(Command::COM_STMT_RESET, &cursor);
        let nothing = self.prepare("DO 1");
        self.execute(nothing, 0, b"");
        let call = self.prepare("CALL mixed(?)");
        self.execute(call, 0, parameter);
        self.prepare("SELEC");
    }
    /// Prepares a statement and returns its id.
    fn prepare(&mut self, sql: &str) -> [u8; 4] {
        self.ask(Command::COM_STMT_PREPARE, sql.as_bytes());
        let first = &mut self.answers.last_mut().unwrap().1[0].payload;
        let mut id = [0; 4];
        if first[0] == 0 {
            // Ids are the daemon's own.
            id.swap_with_slice(&mut first[1..5]);
        }
        id
    }
    fn execute(&mut self, id: [u8; 4], flags: u8, parameters: &[u8]) {
        self.ask(Command::COM_STMT_EXECUTE, &[&id[..], &[flags, 1, 0, 0, 0], parameters].concat());
    }
    fn ask(&mut self, command: Command, argument: &[u8]) {
        let Backend { channel, capabilities, .. } = &mut self.backend;
        channel.reset_sequence();
        channel.queue(&[&[command as u8], argument].concat());
        channel.flush().unwrap();
        let mut tracker = ResponseTracker::new(command, Sides::same(*capabilities));
        let mut answer = Vec::new();
        loop {
            let bytes = channel.fill().unwrap();
            answer.extend_from_slice(bytes);
            let length = bytes.len();
            let fed = tracker.feed(bytes, &mut Vec::new()).unwrap();
            channel.consume(length);
            if fed.progress != Progress::More {
                assert_eq!(fed.progress, Progress::Done(length));
                break;
            }
        }
        let name = format!("{command:?} \"{}\"", argument.escape_ascii());
        self.answers.push((name, comparable(packets(&answer))));
    }
}

/// Leaves out what may differ.
///
/// The status in the EOF between definitions and rows cannot be known before the rows have come, and most clients go by the last
/// one; what it says of more results stays, and all of it where it says more (a cursor, OUT parameters). Of OUT parameters MySQL tells before their row only, MariaDB
/// also after it; clients take both.
fn comparable(mut packets: Vec<Packet>) -> Vec<Packet> {
    const TELLING: u16 = 0x1040;
    const OUT_PARAMETERS: u16 = 0x1000;
    const MORE_RESULTS: u8 = 8;
    let (mut after_definition, mut out_parameters) = (false, false);
    for Packet { payload, .. } in &mut packets {
        if payload.len() == 5 && payload[0] == 0xFE {
            let status = u16::from_le_bytes([payload[3], payload[4]]);
            if out_parameters {
                payload[1..].fill(0);
            } else if after_definition && status & TELLING == 0 {
                payload[1..].copy_from_slice(&[0, 0, status.to_le_bytes()[0] & MORE_RESULTS, 0]);
            }
            out_parameters = after_definition && status & OUT_PARAMETERS != 0;
        }
        after_definition = payload.starts_with(b"\x03def");
    }
    packets
}
