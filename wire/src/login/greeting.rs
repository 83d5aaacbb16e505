//! The packet that opens a login: the server's greeting.

use super::ServerOptions;
use crate::auth::{AuthPlugin, NONCE};
use crate::packet::put_nul_bytes;
use crate::version::is_mysql_8;
use crate::{CapabilityFlags, StatusFlags, UTF8MB4_GENERAL_CI, WireError};
use rustix::rand::{GetRandomFlags, getrandom};

/// Protocol::HandshakeV10.
pub(super) struct Greeting {
    version: String,
    connection_id: u32,
    capabilities: CapabilityFlags,
    pub(super) plugin: AuthPlugin,
    pub(super) nonce: [u8; NONCE],
}

impl Greeting {
    pub(super) fn new(connection_id: u32, options: &ServerOptions) -> Result<Self, WireError> {
        Ok(Self {
            version: options.server_version.clone(),
            connection_id,
            capabilities: options.offered(),
            plugin: options.default_plugin,
            nonce: new_nonce()?,
        })
    }

    pub(super) fn to_payload(&self) -> Vec<u8> {
        let [low_0, low_1, high_0, high_1] = self.capabilities.bits().to_le_bytes();
        let (first, second) = self.nonce.split_at(8);
        let mut payload = vec![10];
        put_nul_bytes(&mut payload, self.version.as_bytes());
        payload.extend_from_slice(&self.connection_id.to_le_bytes());
        put_nul_bytes(&mut payload, first);
        payload.extend_from_slice(&[low_0, low_1, collation(&self.version)]);
        payload.extend_from_slice(&StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits().to_le_bytes());
        payload.extend_from_slice(&[high_0, high_1, NONCE as u8 + 1]);
        payload.extend_from_slice(&[0; 10]);
        put_nul_bytes(&mut payload, second);
        put_nul_bytes(&mut payload, self.plugin.name().as_bytes());
        payload
    }
}

/// Collation id that a server of this version greets with: the default of MySQL 8.0 and later is utf8mb4_0900_ai_ci, which
/// older ones and MariaDB do not know.
fn collation(version: &str) -> u8 {
    const UTF8MB4_0900_AI_CI: u8 = 255;
    if is_mysql_8(version) { UTF8MB4_0900_AI_CI } else { UTF8MB4_GENERAL_CI }
}

/// A challenge of 7-bit bytes without NUL, which ends it in packets, and without '$', which ends salts in stored hashes.
fn new_nonce() -> Result<[u8; NONCE], WireError> {
    let mut nonce = [0; NONCE];
    // The system's own generator: OpenSSL's takes kilobytes of memory for each thread.
    // Up to 256 bytes come whole (getrandom(2)).
    let _count = getrandom(&mut nonce, GetRandomFlags::empty()).map_err(std::io::Error::from)?;
    for byte in &mut nonce {
        *byte &= 0x7F;
        if matches!(*byte, 0 | b'$') {
            *byte += 1;
        }
    }
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::CAPABILITIES;

    #[test]
    fn the_greeting_has_the_documented_form() {
        let greeting = Greeting {
            version: "8.4.0".to_owned(),
            connection_id: 0x0102_0304,
            capabilities: CAPABILITIES,
            plugin: AuthPlugin::CachingSha2,
            nonce: *b"abcdefghijklmnopqrst",
        };
        let mut expected = b"\x0A8.4.0\0\x04\x03\x02\x01abcdefgh\0".to_vec();
        let bits = CAPABILITIES.bits().to_le_bytes();
        expected.extend_from_slice(&[bits[0], bits[1], 255, 2, 0, bits[2], bits[3], 21]);
        expected.extend_from_slice(&[0; 10]);
        expected.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        assert_eq!(greeting.to_payload(), expected);
    }

    #[test]
    fn nonces_are_free_of_nul_and_dollar() {
        for _ in 0..1000 {
            assert!(new_nonce().unwrap().iter().all(|&b| b != 0 && b != b'$' && b < 0x80));
        }
    }

    #[test]
    fn the_greetings_collation_is_that_of_the_versions_server() {
        for (version, id) in
            [("9.7.0", 255), ("8.0.11", 255), ("5.7.44", 45), ("10.11.6-MariaDB", 45), ("x", 45)]
        {
            assert_eq!(collation(version), id, "{version}");
        }
    }
}
