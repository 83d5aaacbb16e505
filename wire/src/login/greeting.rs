//! The packets that open a login: the server's greeting and the client's response to it.

use super::{Login, ServerOptions};
use crate::auth::{AuthPlugin, NONCE, Secret};
use crate::channel::Algorithm;
use crate::packet::{Fields, put_nul_bytes};
use crate::{CapabilityFlags, StatusFlags, UTF8MB4_GENERAL_CI, WireError};

/// Payload of an SSLRequest: a response's fixed fields and nothing else.
const SSL_REQUEST: usize = 32;

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
        payload.extend_from_slice(&[low_0, low_1, UTF8MB4_GENERAL_CI]);
        payload.extend_from_slice(&StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits().to_le_bytes());
        payload.extend_from_slice(&[high_0, high_1, NONCE as u8 + 1]);
        payload.extend_from_slice(&[0; 10]);
        put_nul_bytes(&mut payload, second);
        put_nul_bytes(&mut payload, self.plugin.name().as_bytes());
        payload
    }
}

/// A challenge of 7-bit bytes without NUL, which ends it in packets, and without '$', which ends salts in stored hashes.
pub(super) fn new_nonce() -> Result<[u8; NONCE], WireError> {
    let mut nonce = [0; NONCE];
    openssl::rand::rand_bytes(&mut nonce).map_err(|e| WireError::Tls(format!("no random bytes: {e}")))?;
    for byte in &mut nonce {
        *byte &= 0x7F;
        if matches!(*byte, 0 | b'$') {
            *byte += 1;
        }
    }
    Ok(nonce)
}

pub(super) fn is_ssl_request(payload: &[u8]) -> bool {
    let flags = Fields::new(payload).u32().map(CapabilityFlags::from_bits_truncate).unwrap_or_default();
    payload.len() == SSL_REQUEST && flags.contains(CapabilityFlags::CLIENT_SSL)
}

/// Protocol::HandshakeResponse41.
#[derive(Debug)]
pub(super) struct HandshakeResponse {
    pub(super) user: String,
    pub(super) capabilities: CapabilityFlags,
    collation: u16,
    pub(super) auth_response: Vec<u8>,
    database: Option<String>,
    /// The client's plugin by name; `None` for clients that know only mysql_native_password.
    pub(super) plugin: Option<Vec<u8>>,
    attributes: Vec<(String, String)>,
    /// What compresses the connection once the login is done.
    pub(super) compression: Option<Algorithm>,
}

impl HandshakeResponse {
    /// Reads the response; fields of capabilities that were not offered are not looked for.
    pub(super) fn parse(payload: &[u8], offered: CapabilityFlags) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        let capabilities = CapabilityFlags::from_bits_truncate(fields.u32()?) & offered;
        if !capabilities
            .contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION)
        {
            return Err(WireError::Malformed("a client older than MySQL 4.1"));
        }
        let has = |flag| capabilities.contains(flag);
        let _max_packet = fields.u32()?;
        let collation = u16::from(fields.u8()?);
        fields.bytes(23)?;
        let user = text(fields.nul_bytes()?);
        let auth_response = if has(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            fields.lenenc_bytes()?
        } else {
            let length = fields.u8()?;
            fields.bytes(length.into())?
        };
        let auth_response = auth_response.to_vec();
        let database = has(CapabilityFlags::CLIENT_CONNECT_WITH_DB).then(|| fields.nul_bytes_or_rest());
        let plugin = has(CapabilityFlags::CLIENT_PLUGIN_AUTH).then(|| fields.nul_bytes_or_rest().to_vec());
        let attributes = if has(CapabilityFlags::CLIENT_CONNECT_ATTRS) && !fields.is_empty() {
            parse_attributes(fields.lenenc_bytes()?)?
        } else {
            Vec::new()
        };
        let database = database.filter(|name| !name.is_empty()).map(text);
        let compression = compression(capabilities, &mut fields)?;
        Ok(Self { user, capabilities, collation, auth_response, database, plugin, attributes, compression })
    }

    pub(super) fn into_login(self, secret: Secret) -> Login {
        Login {
            user: self.user,
            database: self.database,
            capabilities: self.capabilities,
            collation: self.collation,
            secret,
            attributes: self.attributes,
        }
    }
}

/// What the client compresses with; the last field is zstd's level.
fn compression(
    capabilities: CapabilityFlags,
    fields: &mut Fields<'_>,
) -> Result<Option<Algorithm>, WireError> {
    if capabilities.contains(CapabilityFlags::CLIENT_COMPRESS) {
        return Ok(Some(Algorithm::Zlib));
    }
    if !capabilities.contains(CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
        return Ok(None);
    }
    match fields.u8()? {
        level @ 1..=22 => Ok(Some(Algorithm::Zstd { level })),
        _ => Err(WireError::Malformed("no compression level of zstd")),
    }
}

fn parse_attributes(bytes: &[u8]) -> Result<Vec<(String, String)>, WireError> {
    let mut fields = Fields::new(bytes);
    let mut attributes = Vec::new();
    while !fields.is_empty() {
        attributes.push((text(fields.lenenc_bytes()?), text(fields.lenenc_bytes()?)));
    }
    Ok(attributes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
        expected.extend_from_slice(&[bits[0], bits[1], 45, 2, 0, bits[2], bits[3], 21]);
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

    fn response(capabilities: CapabilityFlags, tail: &[u8]) -> Vec<u8> {
        let mut payload = capabilities.bits().to_le_bytes().to_vec();
        payload.extend_from_slice(&[0, 0, 0, 1, 45]);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(tail);
        payload
    }

    #[test]
    fn a_full_response_is_read() {
        let tail = b"bob\0\x03xyzshop\0caching_sha2_password\0\x06\x02os\x02vm";
        let parsed = HandshakeResponse::parse(&response(CAPABILITIES, tail), CAPABILITIES).unwrap();
        assert_eq!((parsed.user.as_str(), parsed.collation), ("bob", 45));
        assert_eq!(parsed.auth_response, b"xyz");
        assert_eq!(parsed.plugin.as_deref(), Some(&b"caching_sha2_password"[..]));
        let login = parsed.into_login(Secret::Empty);
        assert_eq!(login.database.as_deref(), Some("shop"));
        assert_eq!(login.attributes, [("os".to_owned(), "vm".to_owned())]);
    }

    #[test]
    fn a_short_or_old_response_is_refused() {
        let whole = response(CAPABILITIES, b"bob\0\x03xyz");
        for length in 0..whole.len() {
            let cut = whole.get(..length).unwrap();
            assert!(HandshakeResponse::parse(cut, CAPABILITIES).is_err(), "{length}");
        }
        let old = response(CapabilityFlags::CLIENT_SECURE_CONNECTION, b"bob\0\0");
        assert!(HandshakeResponse::parse(&old, CAPABILITIES).is_err());
    }

    #[test]
    fn zlib_is_preferred_and_zstd_has_its_level_last() {
        let (zlib, zstd) =
            (CapabilityFlags::CLIENT_COMPRESS, CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);
        let offered = CAPABILITIES | zlib | zstd;
        let asked = |flags, level: &[u8]| {
            let tail = [b"bob\0\0shop\0mysql_native_password\0\0", level].concat();
            HandshakeResponse::parse(&response(CAPABILITIES | flags, &tail), offered).map(|r| r.compression)
        };
        assert_eq!(asked(CapabilityFlags::empty(), b"").unwrap(), None);
        assert_eq!(asked(zlib, b"").unwrap(), Some(Algorithm::Zlib));
        assert_eq!(asked(zlib | zstd, b"\x07").unwrap(), Some(Algorithm::Zlib));
        assert_eq!(asked(zstd, b"\x07").unwrap(), Some(Algorithm::Zstd { level: 7 }));
        for level in [&b""[..], b"\0", b"\x17"] {
            assert!(asked(zstd, level).is_err());
        }
    }

    #[test]
    fn an_ssl_request_is_32_bytes_with_the_flag() {
        assert!(is_ssl_request(&response(CapabilityFlags::CLIENT_SSL, b"")));
        assert!(!is_ssl_request(&response(CapabilityFlags::CLIENT_SSL, b"bob\0")));
        assert!(!is_ssl_request(&response(CAPABILITIES, b"")));
        assert!(!is_ssl_request(b""));
    }
}
