//! A client that says what it is told to, byte for byte, and whose answers are read when the test wants them.

use super::*;
use std::net::TcpStream;
use wire::auth::Secret;
use wire::backend::{Backend, ConnectOptions};
use wire::{CapabilityFlags, Command};

const LIMIT: Duration = Duration::from_secs(20);

/// Logged in by the wire crate's own login.
pub struct Raw(pub Backend);

impl Raw {
    pub fn new(world: &World) -> Self {
        Self::with(world, None, CapabilityFlags::empty())
    }
    pub fn with(world: &World, schema: Option<&str>, capabilities: CapabilityFlags) -> Self {
        Self::made_with(world, schema, capabilities, &[])
    }
    pub fn made_with(
        world: &World,
        schema: Option<&str>,
        capabilities: CapabilityFlags,
        attributes: &[(&str, &str)],
    ) -> Self {
        let options = ConnectOptions {
            address: world.address,
            tls: None,
            server_name: "",
            user: "app",
            secret: &Secret::Clear("app".to_owned()),
            database: schema,
            capabilities,
            collation: 45,
            attributes,
            deadline: Instant::now() + LIMIT,
        };
        let client = Backend::connect(&options).unwrap();
        client.channel.stream().socket().set_timeouts(Some(LIMIT), Some(LIMIT));
        Self(client)
    }
    pub fn send(&mut self, command: Command, argument: &[u8]) {
        self.send_payload(&[&[command as u8], argument].concat());
    }
    pub fn send_payload(&mut self, payload: &[u8]) {
        self.0.channel.reset_sequence();
        self.0.channel.queue(payload);
        self.0.channel.flush().unwrap();
    }
    pub fn send_query(&mut self, sql: &str) {
        self.send(Command::COM_QUERY, sql.as_bytes());
    }
    pub fn read(&mut self) -> Vec<u8> {
        self.try_read().unwrap()
    }
    pub fn try_read(&mut self) -> Result<Vec<u8>, WireError> {
        Ok(self.0.channel.read_packet(1 << 20, LIMIT)?.to_vec())
    }
    /// The code of the error that comes.
    pub fn read_error(&mut self) -> u16 {
        error(&self.read()).0
    }
    /// The first packet that a command is answered with.
    pub fn ask(&mut self, command: Command, argument: &[u8]) -> Vec<u8> {
        self.send(command, argument);
        self.read()
    }
    /// The stream below, for bytes that are no packets.
    pub fn stream(&self) -> &TcpStream {
        self.0.channel.stream().socket().stream()
    }
}

/// Code and text of an ERR packet.
pub fn error(packet: &[u8]) -> (u16, String) {
    assert_eq!(packet.first(), Some(&0xFF), "{packet:?}");
    (u16::from_le_bytes([packet[1], packet[2]]), String::from_utf8_lossy(&packet[9..]).into_owned())
}
