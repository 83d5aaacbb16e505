//! A recording relay: what a server sent to one client, byte for byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;

use wire::CapabilityFlags;

/// One packet of the MySQL protocol: its sequence number and payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    pub sequence: u8,
    pub payload: Vec<u8>,
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = self.payload.get(..80).unwrap_or(&self.payload).escape_ascii();
        write!(f, "#{} {} bytes \"{start}\"", self.sequence, self.payload.len())
    }
}

/// Passes one connection through to a server and records what the server sends.
pub struct Relay {
    pub port: u16,
    thread: JoinHandle<Vec<u8>>,
}

impl Relay {
    /// A relay to `port` on the loopback address.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let thread = std::thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                let (client, _) = listener.accept().unwrap();
                drop(listener);
                carry(
                    client,
                    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap(),
                    CapabilityFlags::empty(),
                )
            })
            .unwrap();
        Self { port: own_port, thread }
    }

    /// Every packet that the server sent after the client had logged in. The client must have gone.
    pub fn finish(self) -> Vec<Packet> {
        // A client that never came must not leave the relay waiting for it.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        let sent = packets(&self.thread.join().unwrap());
        // The greeting differs, and so may the steps of the login up to its OK.
        let login = sent.iter().skip(1).position(|packet| packet.payload.first() == Some(&0));
        sent.into_iter().skip(login.expect("a login that succeeded") + 2).collect()
    }
}

/// Carries one connection to its end; the server seems to lack the capabilities `hidden`. Returns what it has sent.
pub fn carry(mut client: TcpStream, mut server: TcpStream, hidden: CapabilityFlags) -> Vec<u8> {
    let mut recorded = Vec::new();
    let mut from_client = client.try_clone().unwrap();
    let mut to_server = server.try_clone().unwrap();
    let upstream = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let mut buffer = vec![0; 64 * 1024];
    let greeting = greeting(&mut server, hidden);
    recorded.extend_from_slice(&greeting);
    client.write_all(&greeting).unwrap();
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        recorded.extend_from_slice(&buffer[..length]);
        if client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Whoever still waits for the other end wakes.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    upstream.join().unwrap();
    recorded
}

/// Reads the server's greeting and takes capabilities out of it, MariaDB's extended ones always: the daemon does not offer
/// them, and only clients that have agreed on the same capabilities are sent the same bytes.
fn greeting(server: &mut TcpStream, hidden: CapabilityFlags) -> Vec<u8> {
    let mut packet = vec![0; 4];
    server.read_exact(&mut packet).unwrap();
    packet.resize(4 + usize::from(packet[0]), 0);
    server.read_exact(&mut packet[4..]).unwrap();
    // Protocol::HandshakeV10: the version is the only part of variable length in front of them.
    let version = packet[5..].iter().position(|byte| *byte == 0).unwrap();
    let low = 5 + version + 1 + 4 + 8 + 1;
    let high = low + 2 + 1 + 2;
    let extended = high + 2 + 1 + 6;
    for (byte, hidden) in [low, low + 1, high, high + 1].into_iter().zip(hidden.bits().to_le_bytes()) {
        packet[byte] &= !hidden;
    }
    packet[extended..extended + 4].fill(0);
    packet
}

pub fn packets(mut bytes: &[u8]) -> Vec<Packet> {
    let mut found = Vec::new();
    while let [a, b, c, sequence, rest @ ..] = bytes {
        let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
        let (payload, rest) = rest.split_at(length);
        found.push(Packet { sequence: *sequence, payload: payload.to_vec() });
        bytes = rest;
    }
    found
}
