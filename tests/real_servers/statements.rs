//! Prepared statements, files of the client, and changes of user, over connections that are shared.

use std::io::Write;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn, Error, LocalInfileHandler, Value};
use wire::auth::Secret;
use wire::backend::{Backend, ConnectOptions};
use wire::{CapabilityFlags, Command, StatusFlags};

use crate::setup::{Lab, PASSWORD, ROUTES, Route};
use crate::state::narrow;

/// Sessions that take turns on one connection, each with statements of its own, some with the same text.
pub fn taking_turns(lab: &Lab) {
    for route in narrow(lab, "statements", 1) {
        let mut sessions = [(); 3].map(|()| lab.through(&route));
        let statements: Vec<_> = sessions
            .iter_mut()
            .enumerate()
            .map(|(number, conn)| {
                let own = conn.prep(format!("SELECT ?, {number}, DATABASE()")).unwrap();
                (conn.prep("SELECT ?").unwrap(), own)
            })
            .collect();
        for turn in 0..3 {
            for (number, (conn, (shared, own))) in sessions.iter_mut().zip(&statements).enumerate() {
                // Each has its own type of parameter, which the server must not mistake for another's.
                let parameter = match number {
                    0 => Value::from(turn),
                    1 => Value::from(format!("text {turn}")),
                    _ => Value::NULL,
                };
                let got: Value = conn.exec_first(shared, (parameter.clone(),)).unwrap().unwrap();
                assert_eq!(as_text(&got), as_text(&parameter), "{} turn {turn}", route.user);
                let got: (Value, u32, String) = conn.exec_first(own, (parameter.clone(),)).unwrap().unwrap();
                assert_eq!(
                    (as_text(&got.0), got.1, got.2),
                    (as_text(&parameter), number as u32, "app".into())
                );
            }
        }
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        number => Some(number.as_sql(true)),
    }
}

/// The count of the server falls when clients close, stays within the limit, and evicted statements are there when needed, in
/// the schema of their preparation.
pub fn counts(lab: &Lab) {
    for route in narrow(lab, "counts", 1) {
        let mut dba = lab.servers.dba(route.kind);
        let mut count = || -> u64 {
            let row: Option<(String, u64)> =
                dba.query_first("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").unwrap();
            row.unwrap().1
        };
        let before = count();
        let mut conn =
            Conn::new(lab.client_of(&route, lab.daemon.traffic_port).stmt_cache_size(100)).unwrap();
        let prepared: Vec<_> =
            (0..40).map(|number| conn.prep(format!("SELECT {number}, DATABASE()")).unwrap()).collect();
        // The last one to make room is closed in front of the next command.
        assert!(count() <= before + 20 + 1, "{}", route.user);
        conn.query_drop("USE information_schema").unwrap();
        for (number, statement) in prepared.iter().enumerate() {
            let got: Option<(usize, String)> = conn.exec_first(statement, ()).unwrap();
            assert_eq!(got, Some((number, "app".to_owned())));
        }
        let schema: Option<String> = conn.query_first("SELECT DATABASE()").unwrap();
        assert_eq!(schema.as_deref(), Some("information_schema"));
        prepared.into_iter().for_each(|statement| conn.close(statement).unwrap());
        conn.query_drop("SELECT 1").unwrap();
        assert_eq!(count(), before, "{}", route.user);
    }
}

/// A client that says what it is told to.
pub struct Raw(Backend);

impl Raw {
    pub fn new(lab: &Lab, route: &Route) -> Self {
        let options = ConnectOptions {
            address: ([127, 0, 0, 1], lab.daemon.traffic_port).into(),
            tls: None,
            server_name: "",
            user: route.user,
            secret: &Secret::Clear(PASSWORD.to_owned()),
            database: Some("app"),
            capabilities: CapabilityFlags::CLIENT_DEPRECATE_EOF,
            collation: 45,
            attributes: &[],
            deadline: in_time(),
        };
        Self(Backend::connect(&options).unwrap())
    }
    fn send(&mut self, command: Command, id: u32, rest: &[u8]) {
        self.0.channel.reset_sequence();
        self.0.channel.queue(&[&[command as u8][..], &id.to_le_bytes(), rest].concat());
        self.0.channel.flush().unwrap();
    }
    fn read(&mut self) -> Vec<u8> {
        self.0.channel.read_packet(1 << 24, Duration::from_secs(20)).unwrap().to_vec()
    }
    /// Sends a command and reads packets up to the OK that ends its rows; the packets before that, and its status.
    fn rows(&mut self, command: Command, id: u32, rest: &[u8]) -> (Vec<Vec<u8>>, StatusFlags) {
        self.send(command, id, rest);
        let mut packets = Vec::new();
        loop {
            let packet = self.read();
            assert_ne!(packet[0], 0xFF, "{}", String::from_utf8_lossy(&packet));
            if packet[0] == 0xFE {
                return (packets, StatusFlags::from_bits_retain(u16::from_le_bytes([packet[3], packet[4]])));
            }
            packets.push(packet);
        }
    }
    /// A piece of the first parameter.
    pub fn long_data(&mut self, id: u32, piece: &[u8]) {
        self.send(Command::COM_STMT_SEND_LONG_DATA, id, &[b"\0\0", piece].concat());
    }
    /// What a statement with one parameter, which was sent in pieces, answers in its only column.
    pub fn echo(&mut self, id: u32) -> Vec<u8> {
        let (packets, _) = self.rows(Command::COM_STMT_EXECUTE, id, &[&ONCE[..], b"\0\x01\xFD\0"].concat());
        packets.last().unwrap()[2..].to_vec()
    }
    pub fn prepare(&mut self, sql: &str) -> u32 {
        self.0.prepare(&[], sql.as_bytes(), &[], in_time()).unwrap().id
    }
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

const ONCE: [u8; 5] = [0, 1, 0, 0, 0];
const WITH_CURSOR: [u8; 5] = [1, 1, 0, 0, 0];

/// Executions without types, parameters in pieces and cursors, with another session on the connection in between.
pub fn pieces_and_cursors(lab: &Lab) {
    for route in narrow(lab, "pieces", 1) {
        let (mut raw, mut other) = (Raw::new(lab, &route), Raw::new(lab, &route));
        let (echo, number) = (raw.prepare("SELECT ?"), other.prepare("SELECT ?"));
        let mut interrupt = || {
            let (packets, _) = other.rows(
                Command::COM_STMT_EXECUTE,
                number,
                &[&ONCE[..], b"\0\x01\x03\0\x05\0\0\0"].concat(),
            );
            assert_eq!(packets.last().map(|row| row[..3].to_vec()), Some(vec![0, 0, 5]));
        };
        let execute = |raw: &mut Raw, rest: &[u8]| {
            let (packets, _) = raw.rows(Command::COM_STMT_EXECUTE, echo, &[&ONCE[..], rest].concat());
            packets.last().unwrap()[2..].to_vec()
        };
        assert_eq!(execute(&mut raw, b"\0\x01\xFD\0\x01x"), b"\x01x");
        interrupt();
        assert_eq!(execute(&mut raw, b"\0\0\x01y"), b"\x01y", "{}: types sent before", route.user);
        interrupt();
        raw.long_data(echo, b"long ");
        raw.long_data(echo, b"data");
        assert_eq!(execute(&mut raw, b"\0\0"), b"\x09long data");
        interrupt();
        assert_eq!(execute(&mut raw, b"\0\0\x01z"), b"\x01z");
        raw.long_data(echo, b"lost");
        raw.send(Command::COM_STMT_RESET, echo, b"");
        assert_eq!(raw.read()[0], 0);
        interrupt();
        assert_eq!(execute(&mut raw, b"\0\0\x01z"), b"\x01z");

        let rows = raw.prepare("SELECT 'a' UNION ALL SELECT 'b' UNION ALL SELECT 'c'");
        let (_, status) = raw.rows(Command::COM_STMT_EXECUTE, rows, &WITH_CURSOR);
        assert!(status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS));
        let (first, _) = raw.rows(Command::COM_STMT_FETCH, rows, b"\x02\0\0\0");
        let (last, status) = raw.rows(Command::COM_STMT_FETCH, rows, b"\x05\0\0\0");
        assert_eq!(
            [first, last].concat(),
            [b"\0\0\x01a", b"\0\0\x01b", b"\0\0\x01c"].map(|row| row.to_vec())
        );
        assert!(status.contains(StatusFlags::SERVER_STATUS_LAST_ROW_SENT));
        interrupt();
        raw.rows(Command::COM_STMT_EXECUTE, rows, &WITH_CURSOR);
        raw.send(Command::COM_STMT_CLOSE, rows, b"");
        interrupt();
    }
}

/// OUT parameters and several results of one call.
pub fn procedures(lab: &Lab) {
    for route in &ROUTES {
        let mut conn = lab.through(route);
        conn.query_drop("DROP PROCEDURE IF EXISTS several").unwrap();
        conn.query_drop(
            "CREATE PROCEDURE several(IN a INT, OUT b INT) BEGIN SET b = a + 1; SELECT a; SELECT b, 'x'; END",
        )
        .unwrap();
        let statement = conn.prep("CALL several(?, ?)").unwrap();
        for _ in 0..2 {
            let mut result = conn.exec_iter(&statement, (5, 0)).unwrap();
            let mut sets = Vec::new();
            while let Some(set) = result.iter() {
                sets.push(set.map(|row| row.unwrap().unwrap().len()).collect::<Vec<_>>());
            }
            assert_eq!(sets, [vec![1], vec![2], vec![1], vec![]], "{}", route.user);
        }
        conn.query_drop("DROP PROCEDURE several").unwrap();
    }
}

/// LOCAL INFILE: a file of 8 MB, an empty one, one among other statements, and a client that leaves amid one.
pub fn files(lab: &Lab) {
    const LINES: u64 = 500_000;
    const LOAD: &str = "LOAD DATA LOCAL INFILE 'lines' INTO TABLE local_file";
    for route in &ROUTES {
        let mut conn = lab.through(route);
        conn.query_drop("CREATE TABLE local_file (line VARCHAR(20))").unwrap();
        let count = |conn: &mut Conn| -> u64 {
            conn.query_first("SELECT COUNT(*) FROM local_file").unwrap().unwrap()
        };
        let handler = |lines: u64| {
            LocalInfileHandler::new(move |name, writer| {
                assert_eq!(name, b"lines");
                (0..lines).try_for_each(|number| writeln!(writer, "line {number:09}"))
            })
        };
        conn.set_local_infile_handler(Some(handler(LINES)));
        conn.query_drop(LOAD).unwrap();
        assert_eq!((conn.affected_rows(), count(&mut conn)), (LINES, LINES), "{}", route.user);
        conn.set_local_infile_handler(Some(handler(0)));
        conn.query_drop(LOAD).unwrap();
        conn.set_local_infile_handler(Some(handler(1)));
        let got: Vec<u8> = conn.query(format!("SELECT 1; {LOAD}; SELECT 2")).unwrap();
        assert_eq!(got, [1]);
        assert_eq!(count(&mut conn), LINES + 1);
        let mut leaving = lab.through(route);
        leaving.set_local_infile_handler(Some(LocalInfileHandler::new(|_, writer| {
            writeln!(writer, "line")?;
            panic!("the client leaves amid its file")
        })));
        let left = std::thread::spawn(move || leaving.query_drop(LOAD));
        assert!(left.join().is_err());
        assert_eq!(count(&mut conn), LINES + 1);
        conn.query_drop("DROP TABLE local_file").unwrap();
    }
}

/// COM_CHANGE_USER, right and wrong: nothing of the session before is left.
pub fn changes_of_user(lab: &Lab) {
    for route in narrow(lab, "change", 2) {
        let mut conn = lab.through(&route);
        conn.query_drop("SET @x = 1").unwrap();
        conn.query_drop("SET time_zone = '+05:00'").unwrap();
        conn.query_drop("BEGIN").unwrap();
        let options = || {
            ChangeUserOpts::new()
                .with_user(Some(route.user.to_owned()))
                .with_db_name(Some("information_schema".to_owned()))
        };
        conn.change_user(options().with_pass(Some(PASSWORD.to_owned()))).unwrap();
        let left: Option<(Option<u8>, String, String)> =
            conn.query_first("SELECT @x, @@time_zone, DATABASE()").unwrap();
        assert_eq!(
            left,
            Some((None, "SYSTEM".to_owned(), "information_schema".to_owned())),
            "{}",
            route.user
        );
        match conn.change_user(options().with_pass(Some("wrong".to_owned()))) {
            Err(Error::MySqlError(error)) => assert_eq!(error.code, 1045),
            other => panic!("{}: {other:?}", route.user),
        }
        // As a server does, the proxy ends such a session.
        assert!(conn.query_drop("SELECT 1").is_err());
    }
}
