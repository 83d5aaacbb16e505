//! The responder on real sockets.

use super::*;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

/// A responder, its database, and where it listens.
struct Fixture {
    connection: Connection,
    address: SocketAddr,
    _dns: Arc<Dns>,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.db");
        let connection = crate::database::open(&file).unwrap();
        connection.execute_batch(TABLE).unwrap();
        let dns = Arc::new(Dns::new(&file));
        dns.define(&connection).unwrap();
        let address = listen(&connection, "127.0.0.1:0").unwrap().parse().unwrap();
        Self { connection, address, _dns: dns, _directory: directory }
    }
    fn set(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }
    fn client(&self) -> UdpSocket {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.connect(self.address).unwrap();
        client
    }
    fn udp(&self, name: &str) -> Message {
        let client = self.client();
        client.send(&question(name)).unwrap();
        received(&client)
    }
}

fn listen(connection: &Connection, address: &str) -> rusqlite::Result<String> {
    connection.query_row("SELECT rds_bgd_dns_listen(?1)", [address], |row| row.get(0))
}

fn question(name: &str) -> Vec<u8> {
    let mut message = Message::new();
    message.set_id(1).add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message.to_vec().unwrap()
}

fn received(client: &UdpSocket) -> Message {
    let mut packet = [0; 4096];
    let size = client.recv(&mut packet).unwrap();
    Message::from_vec(&packet[..size]).unwrap()
}

fn addresses(message: &Message) -> Vec<String> {
    message.answers().iter().filter_map(|record| record.data()?.ip_addr()).map(|ip| ip.to_string()).collect()
}

#[test]
fn answers_follow_the_table() {
    let fixture = Fixture::new();
    assert_eq!(fixture.udp("a.test").response_code(), ResponseCode::NXDomain);
    fixture.set("INSERT INTO RDS_BGD_DNS (name, address) VALUES ('a.test', '10.0.0.1')");
    assert_eq!(addresses(&fixture.udp("A.test.")), ["10.0.0.1"]);
    fixture.set("UPDATE RDS_BGD_DNS SET address = '10.0.0.2'");
    assert_eq!(addresses(&fixture.udp("a.test")), ["10.0.0.2"]);
    fixture.set("DROP TABLE RDS_BGD_DNS");
    assert_eq!(fixture.udp("a.test").response_code(), ResponseCode::ServFail);
}

#[test]
fn a_delayed_answer_delays_no_other() {
    let fixture = Fixture::new();
    fixture.set(
        "INSERT INTO RDS_BGD_DNS VALUES ('slow.test', '10.0.0.1', 1, 'delay', 300), ('gone.test', '', 1, 'drop', 0),
        ('a.test', '10.0.0.2', 1, 'answer', 0)",
    );
    let (client, begin) = (fixture.client(), Instant::now());
    for name in ["gone.test", "slow.test", "a.test"] {
        client.send(&question(name)).unwrap();
    }
    assert_eq!(addresses(&received(&client)), ["10.0.0.2"]);
    assert_eq!(addresses(&received(&client)), ["10.0.0.1"], "the dropped one is not answered at all");
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[test]
fn what_is_too_large_for_a_datagram_is_had_by_tcp() {
    let fixture = Fixture::new();
    for last in 0..60 {
        fixture.set(&format!("INSERT INTO RDS_BGD_DNS (name, address) VALUES ('a.test', '10.0.0.{last}')"));
    }
    assert!(fixture.udp("a.test").truncated());
    let mut client = TcpStream::connect(fixture.address).unwrap();
    for _ in 0..2 {
        assert_eq!(addresses(&tcp(&mut client, "a.test")).len(), 60);
    }
}

#[test]
fn clients_of_tcp_delay_neither_each_other_nor_the_end() {
    let fixture = Fixture::new();
    fixture.set(
        "INSERT INTO RDS_BGD_DNS VALUES ('slow.test', '10.0.0.1', 1, 'delay', 60000), ('a.test', '10.0.0.2', 1, 'answer', 0)",
    );
    let connect = || TcpStream::connect(fixture.address).unwrap();
    let silent: Vec<_> = (0..10).map(|_| connect()).collect();
    let mut slow = connect();
    slow.write_all(&framed("slow.test")).unwrap();
    let mut partial = connect();
    partial.write_all(&framed("a.test")[..9]).unwrap();
    let begin = Instant::now();
    assert_eq!(addresses(&tcp(&mut connect(), "a.test")), ["10.0.0.2"]);
    partial.write_all(&framed("a.test")[9..]).unwrap();
    assert_eq!(addresses(&answer(&mut partial)), ["10.0.0.2"]);
    // One after the other they would have taken 20 s and a minute.
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(listen(&fixture.connection, "").unwrap(), "");
    assert!(begin.elapsed() < PATIENCE);
    drop(silent);
}

#[test]
fn a_client_of_tcp_that_trickles_is_left() {
    let fixture = Fixture::new();
    let mut client = TcpStream::connect(fixture.address).unwrap();
    let begin = Instant::now();
    while client.write_all(&[1]).is_ok() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn framed(name: &str) -> Vec<u8> {
    let question = question(name);
    let length = u16::try_from(question.len()).unwrap().to_be_bytes();
    [&length[..], &question].concat()
}

fn tcp(client: &mut TcpStream, name: &str) -> Message {
    client.write_all(&framed(name)).unwrap();
    answer(client)
}

fn answer(client: &mut TcpStream) -> Message {
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut length = [0; 2];
    client.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    client.read_exact(&mut answer).unwrap();
    Message::from_vec(&answer).unwrap()
}

#[test]
fn it_moves_and_ends_as_told() {
    let fixture = Fixture::new();
    assert!(TcpStream::connect(fixture.address).is_ok());
    let second: SocketAddr = listen(&fixture.connection, "127.0.0.1:0").unwrap().parse().unwrap();
    assert!(TcpStream::connect(second).is_ok());
    for (address, reason) in
        [("here", "127.0.0.1:0"), ("0.0.0.0:0", "loopback"), ("192.0.2.1:53", "loopback")]
    {
        let error = listen(&fixture.connection, address).unwrap_err().to_string();
        assert!(error.contains(address) && error.contains(reason), "{error}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = listen(&fixture.connection, &taken.local_addr().unwrap().to_string()).unwrap_err();
    assert!(error.to_string().contains("choose another address"), "{error}");
    assert!(TcpStream::connect(second).is_ok(), "an address that cannot be had changes nothing");
    assert_eq!(listen(&fixture.connection, &second.to_string()).unwrap(), second.to_string());
    assert_eq!(listen(&fixture.connection, "").unwrap(), "");
    assert!(TcpStream::connect(second).is_err());
    assert!(UdpSocket::bind(second).is_ok(), "the port is free again");
    fixture.set("CREATE VIEW v AS SELECT rds_bgd_dns_listen('127.0.0.1:0')");
    assert!(fixture.connection.query_row("SELECT * FROM v", [], |_| Ok(())).is_err());
}
