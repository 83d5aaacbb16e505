//! What clients say of themselves: the response to the greeting, and COM_CHANGE_USER.

use super::Login;
use crate::auth::{NONCE, Secret};
use crate::channel::Algorithm;
use crate::packet::Fields;
use crate::{CapabilityFlags, WireError};

/// Payload of an SSLRequest: a response's fixed fields and nothing else.
const SSL_REQUEST: usize = 32;
/// MySQL refuses connection attributes of more bytes.
const MAX_ATTRIBUTES: usize = 64 * 1024;

pub(super) fn is_ssl_request(payload: &[u8]) -> bool {
    let flags = Fields::new(payload).u32().map(CapabilityFlags::from_bits_truncate).unwrap_or_default();
    payload.len() == SSL_REQUEST && flags.contains(CapabilityFlags::CLIENT_SSL)
}

/// What cannot be read of COM_CHANGE_USER.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// What comes before the attributes.
    Argument,
    /// The attributes, which a client that can have some must not leave out. The rest could be read.
    Attributes(Box<ClientResponse>),
}

/// Protocol::HandshakeResponse41, or what COM_CHANGE_USER says in its place.
#[derive(Debug)]
pub(super) struct ClientResponse {
    pub(super) user: String,
    pub(super) capabilities: CapabilityFlags,
    pub(super) collation: u16,
    pub(super) auth_response: Vec<u8>,
    pub(super) database: Option<String>,
    /// The client's plugin by name; `None` for clients that know only mysql_native_password.
    pub(super) plugin: Option<Vec<u8>>,
    attributes: Vec<u8>,
    /// What compresses the connection once the login is done.
    pub(super) compression: Option<Algorithm>,
}

impl ClientResponse {
    /// Reads the response to the greeting; fields of capabilities that were not offered are not looked for.
    pub(super) fn parse(payload: &[u8], offered: CapabilityFlags) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        let capabilities = CapabilityFlags::from_bits_truncate(fields.u32()?) & offered;
        if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
            return Err(WireError::Malformed("a client older than MySQL 4.1"));
        }
        let has = |flag| capabilities.contains(flag);
        let _max_packet = fields.u32()?;
        // MySQL and MariaDB read one byte here even of a client that writes two.
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
        let database = database.filter(|name| !name.is_empty()).map(text);
        let plugin = has(CapabilityFlags::CLIENT_PLUGIN_AUTH).then(|| fields.nul_bytes_or_rest().to_vec());
        let attributes = attributes(&mut fields, capabilities)?;
        let compression = compression(capabilities, &mut fields)?;
        Ok(Self { user, capabilities, collation, auth_response, database, plugin, attributes, compression })
    }

    /// Reads the argument of COM_CHANGE_USER.
    pub(super) fn parse_change_user(
        argument: &[u8],
        capabilities: CapabilityFlags,
    ) -> Result<Self, Unreadable> {
        let mut fields = Fields::new(argument);
        let response = Self::before_attributes(&mut fields, capabilities);
        let mut response = response.map_err(|_| Unreadable::Argument)?;
        let missing = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) && fields.is_empty();
        match attributes(&mut fields, capabilities) {
            Ok(attributes) if !missing => {
                response.attributes = attributes;
                Ok(response)
            }
            _ => Err(Unreadable::Attributes(Box::new(response))),
        }
    }
    /// Its collation has two bytes, and must be there as MySQL demands.
    fn before_attributes(fields: &mut Fields<'_>, capabilities: CapabilityFlags) -> Result<Self, WireError> {
        let user = text(fields.nul_bytes()?);
        let length = fields.u8()?;
        let auth_response = fields.bytes(length.into())?.to_vec();
        let database = Some(fields.nul_bytes()?).filter(|name| !name.is_empty()).map(text);
        let collation = fields.u16()?;
        // Of this both servers want the whole, though not of a login.
        let plugin = match capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            true => Some(fields.nul_bytes()?.to_vec()),
            false => None,
        };
        let (attributes, compression) = (Vec::new(), None);
        Ok(Self { user, capabilities, collation, auth_response, database, plugin, attributes, compression })
    }

    pub(super) fn into_login(self, secret: Secret, nonce: [u8; NONCE]) -> Login {
        Login {
            user: self.user,
            database: self.database,
            capabilities: self.capabilities,
            collation: self.collation,
            secret,
            attributes: self.attributes,
            nonce,
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

/// Connection attributes, as they came.
fn attributes(fields: &mut Fields<'_>, capabilities: CapabilityFlags) -> Result<Vec<u8>, WireError> {
    if !capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) || fields.is_empty() {
        return Ok(Vec::new());
    }
    match fields.lenenc_bytes()? {
        bytes if bytes.len() > MAX_ATTRIBUTES => Err(WireError::TooLarge { limit: MAX_ATTRIBUTES }),
        bytes => Ok(bytes.to_vec()),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The character set of a collation that no client may have, because its statements could not be read
/// (MySQL, "Impermissible Client Character Sets").
pub(super) fn impermissible_charset(collation: u16) -> Option<&'static str> {
    match collation {
        35 | 90 | 128..=151 | 159 => Some("ucs2"),
        54 | 55 | 101..=124 => Some("utf16"),
        56 | 62 => Some("utf16le"),
        60 | 61 | 160..=183 => Some("utf32"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::CAPABILITIES;

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
        let parsed = ClientResponse::parse(&response(CAPABILITIES, tail), CAPABILITIES).unwrap();
        assert_eq!((parsed.user.as_str(), parsed.collation), ("bob", 45));
        assert_eq!(parsed.auth_response, b"xyz");
        assert_eq!(parsed.plugin.as_deref(), Some(&b"caching_sha2_password"[..]));
        let login = parsed.into_login(Secret::Empty, [0; NONCE]);
        assert_eq!(login.database.as_deref(), Some("shop"));
        assert_eq!(login.attributes, b"\x02os\x02vm");
        assert_eq!(login.library(), None);
        let named = Login { attributes: b"\x02os\x02vm\x0c_client_name\x03lib".to_vec(), ..login };
        assert_eq!(named.library(), Some(&b"lib"[..]));
        let cut = Login { attributes: b"\x0c_client_name\x09lib".to_vec(), ..named };
        assert_eq!(cut.library(), None);
    }

    #[test]
    fn a_short_or_old_response_is_refused() {
        let whole = response(CAPABILITIES, b"bob\0\x03xyz");
        for length in 0..whole.len() {
            let cut = whole.get(..length).unwrap();
            assert!(ClientResponse::parse(cut, CAPABILITIES).is_err(), "{length}");
        }
        let old = response(CAPABILITIES - CapabilityFlags::CLIENT_PROTOCOL_41, b"bob\0\0");
        assert!(ClientResponse::parse(&old, CAPABILITIES).is_err());
    }

    #[test]
    fn an_ssl_request_is_32_bytes_with_the_flag() {
        assert!(is_ssl_request(&response(CapabilityFlags::CLIENT_SSL, b"")));
        assert!(!is_ssl_request(&response(CapabilityFlags::CLIENT_SSL, b"bob\0")));
        assert!(!is_ssl_request(&response(CAPABILITIES, b"")));
        assert!(!is_ssl_request(b""));
    }

    #[test]
    fn attributes_end_at_64_kib() {
        for (length, fits) in [(MAX_ATTRIBUTES, true), (MAX_ATTRIBUTES + 1, false)] {
            let mut attributes = b"\x01a".to_vec();
            crate::packet::put_lenenc_bytes(&mut attributes, &vec![b'v'; length - 5]);
            let mut tail = b"bob\0\0\0\0".to_vec();
            crate::packet::put_lenenc_bytes(&mut tail, &attributes);
            let parsed = ClientResponse::parse(&response(CAPABILITIES, &tail), CAPABILITIES);
            assert_eq!(parsed.is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn attributes_may_be_cut_short() {
        let tail = b"bob\0\0\0\0\x0a\x02os\x02vm\x02\xc3\xbc\x02\xc3\xa9";
        let parsed = ClientResponse::parse(&response(CAPABILITIES, tail), CAPABILITIES).unwrap();
        // As by mysql-connector-python, which counts characters, not bytes.
        assert_eq!(parsed.attributes, b"\x02os\x02vm\x02\xc3\xbc\x02");
    }

    #[test]
    fn zlib_is_preferred_and_zstd_has_its_level_last() {
        let (zlib, zstd) =
            (CapabilityFlags::CLIENT_COMPRESS, CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM);
        let offered = CAPABILITIES | zlib | zstd;
        let asked = |flags, level: &[u8]| {
            let tail = [b"bob\0\0shop\0mysql_native_password\0\0", level].concat();
            ClientResponse::parse(&response(CAPABILITIES | flags, &tail), offered).map(|r| r.compression)
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
    fn a_change_of_user_has_a_collation_of_two_bytes() {
        let argument = b"bob\0\x03xyzshop\0\x31\x01mysql_native_password\0\x06\x02os\x02vm";
        let parsed = ClientResponse::parse_change_user(argument, CAPABILITIES).unwrap();
        assert_eq!((parsed.user.as_str(), parsed.collation), ("bob", 305));
        assert_eq!(parsed.plugin.as_deref(), Some(&b"mysql_native_password"[..]));
        let login = parsed.into_login(Secret::Empty, [0; NONCE]);
        assert_eq!(login.database.as_deref(), Some("shop"));
        assert_eq!(login.attributes, b"\x02os\x02vm");
        for length in 0..argument.len() {
            let cut = argument.get(..length).unwrap();
            let parsed = ClientResponse::parse_change_user(cut, CAPABILITIES);
            let expected = match parsed {
                Err(Unreadable::Argument) => length < 37,
                Err(Unreadable::Attributes(response)) => length >= 37 && response.user == "bob",
                Ok(_) => false,
            };
            assert!(expected, "{length}");
        }
        let without = CAPABILITIES - CapabilityFlags::CLIENT_CONNECT_ATTRS;
        assert!(ClientResponse::parse_change_user(&argument[..37], without).is_ok());
    }

    #[test]
    fn character_sets_of_several_bytes_are_told() {
        let of = |id| impermissible_charset(id);
        assert_eq!([of(35), of(54), of(56), of(60)], ["ucs2", "utf16", "utf16le", "utf32"].map(Some));
        assert_eq!([of(0), of(45), of(255), of(305)], [None; 4]);
    }
}
