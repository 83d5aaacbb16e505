//! The packets that open a connection to a server: its greeting, and our response. A hostile greeting gives an error.

use super::ConnectOptions;
use crate::auth::NONCE;
use crate::channel::Algorithm;
use crate::packet::{Fields, put_lenenc_bytes, put_nul_bytes};
use crate::{CapabilityFlags, UTF8MB4_GENERAL_CI, WireError};

const ZSTD: CapabilityFlags = CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM;
/// The level that MySQL's own clients ask for if not told otherwise.
const ZSTD_LEVEL: u8 = 3;

/// Protocol::HandshakeV10.
pub(super) struct ServerGreeting {
    pub(super) version: String,
    pub(super) connection_id: u32,
    pub(super) capabilities: CapabilityFlags,
    pub(super) nonce: Vec<u8>,
    pub(super) plugin: Vec<u8>,
}

impl ServerGreeting {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        if fields.u8()? != 10 {
            return Err(WireError::Malformed("not a greeting of protocol version 10"));
        }
        let version = String::from_utf8_lossy(fields.nul_bytes()?).into_owned();
        let connection_id = fields.u32()?;
        let mut nonce = fields.bytes(8)?.to_vec();
        fields.bytes(1)?;
        let low = fields.u16()?;
        let _collation = fields.u8()?;
        let _status = fields.u16()?;
        let high = fields.u16()?;
        let capabilities = CapabilityFlags::from_bits_truncate(u32::from(high) << 16 | u32::from(low));
        let nonce_length = usize::from(fields.u8()?);
        fields.bytes(10)?;
        // The second part has at least 13 bytes, its NUL included, whatever the length says.
        let second = fields.bytes(nonce_length.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(second);
        nonce.truncate(NONCE);
        let plugin = if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            fields.nul_bytes_or_rest().to_vec()
        } else {
            Vec::new()
        };
        Ok(Self { version, connection_id, capabilities, nonce, plugin })
    }
}

/// The capabilities for a connection: those wanted and those the login needs, as far as the server has them.
pub(super) fn capabilities(
    options: &ConnectOptions<'_>,
    server: CapabilityFlags,
) -> Result<CapabilityFlags, WireError> {
    const REQUIRED: CapabilityFlags =
        CapabilityFlags::CLIENT_PROTOCOL_41.union(CapabilityFlags::CLIENT_SECURE_CONNECTION);
    /// They change the form of packets in ways that this crate does not speak.
    const UNSPOKEN: CapabilityFlags = CapabilityFlags::CLIENT_OPTIONAL_RESULTSET_METADATA;
    if !server.contains(REQUIRED) {
        return Err(WireError::Malformed("a server older than MySQL 4.1"));
    }
    if options.tls.is_some() && !server.contains(CapabilityFlags::CLIENT_SSL) {
        return Err(WireError::Tls("the server does not offer it".to_owned()));
    }
    let mut wanted = options.capabilities
        | REQUIRED
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
    wanted.set(CapabilityFlags::CLIENT_SSL, options.tls.is_some());
    wanted.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, options.database.is_some());
    // Of both a server takes zlib, which costs it more.
    wanted.set(ZSTD, options.compresses() && has(server, ZSTD));
    wanted.set(CapabilityFlags::CLIENT_COMPRESS, options.compresses() && !has(server, ZSTD));
    wanted.set(CapabilityFlags::CLIENT_CONNECT_ATTRS, !options.attributes.is_empty());
    Ok((wanted & server).difference(UNSPOKEN))
}

/// The fields that an SSLRequest consists of and a HandshakeResponse41 begins with.
pub(super) fn fixed_fields(options: &ConnectOptions<'_>, capabilities: CapabilityFlags) -> Vec<u8> {
    const MAX_PACKET: u32 = 1 << 30;
    let mut payload = capabilities.bits().to_le_bytes().to_vec();
    payload.extend_from_slice(&MAX_PACKET.to_le_bytes());
    payload.push(u8::try_from(options.collation).unwrap_or(UTF8MB4_GENERAL_CI));
    payload.extend_from_slice(&[0; 23]);
    payload
}

/// Protocol::HandshakeResponse41.
pub(super) fn response(
    options: &ConnectOptions<'_>,
    capabilities: CapabilityFlags,
    plugin: &str,
    answer: &[u8],
) -> Vec<u8> {
    let mut payload = fixed_fields(options, capabilities);
    put_nul_bytes(&mut payload, options.user.as_bytes());
    // For answers of less than 251 bytes, which all are, the length-encoded form is the one-byte form too.
    put_lenenc_bytes(&mut payload, answer);
    if let Some(database) =
        options.database.filter(|_| has(capabilities, CapabilityFlags::CLIENT_CONNECT_WITH_DB))
    {
        put_nul_bytes(&mut payload, database.as_bytes());
    }
    if has(capabilities, CapabilityFlags::CLIENT_PLUGIN_AUTH) {
        put_nul_bytes(&mut payload, plugin.as_bytes());
    }
    if has(capabilities, CapabilityFlags::CLIENT_CONNECT_ATTRS) {
        let mut attributes = Vec::new();
        for (name, value) in options.attributes {
            put_lenenc_bytes(&mut attributes, name.as_bytes());
            put_lenenc_bytes(&mut attributes, value.as_bytes());
        }
        put_lenenc_bytes(&mut payload, &attributes);
    }
    if let Some(Algorithm::Zstd { level }) = algorithm(capabilities) {
        payload.push(level);
    }
    payload
}

/// What these capabilities compress with.
pub(super) fn algorithm(capabilities: CapabilityFlags) -> Option<Algorithm> {
    if has(capabilities, ZSTD) {
        Some(Algorithm::Zstd { level: ZSTD_LEVEL })
    } else {
        has(capabilities, CapabilityFlags::CLIENT_COMPRESS).then_some(Algorithm::Zlib)
    }
}

fn has(capabilities: CapabilityFlags, flag: CapabilityFlags) -> bool {
    capabilities.contains(flag)
}
