//! The two kinds of error: what a MySQL peer is told, and what went wrong on the wire.

use crate::packet::Fields;
use std::io;

/// The most bytes that are read of a message. MySQL and MariaDB write 511 at most (MYSQL_ERRMSG_SIZE).
const LONGEST_MESSAGE: usize = 512;

/// An error as MySQL clients see it: an ERR packet's code, SQLSTATE and text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct SqlError {
    /// MySQL error number, for example 1045.
    pub code: u16,
    /// Five characters of SQLSTATE.
    pub state: [u8; 5],
    /// Text for a person.
    pub message: String,
}

impl SqlError {
    /// An error with its SQLSTATE; a state that is not five bytes long becomes HY000.
    pub fn new(code: u16, state: &str, message: impl Into<String>) -> Self {
        let state = state.as_bytes().try_into().unwrap_or(*b"HY000");
        Self { code, state, message: message.into() }
    }

    /// 1047: a command that is not served.
    pub fn unknown_command() -> Self {
        Self::new(1047, "08S01", "Unknown command")
    }
    /// 1053: the daemon stops.
    pub fn shutdown() -> Self {
        Self::new(1053, "08S01", "Server shutdown in progress")
    }
    /// 1835: a packet that is not in its command's form.
    pub fn malformed_packet() -> Self {
        Self::new(1835, "HY000", "Malformed communication packet.")
    }
    /// 1153: a packet above the limit in force.
    pub fn packet_too_large() -> Self {
        Self::new(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    }
    /// 1156: a packet whose number is not the next.
    pub fn out_of_order() -> Self {
        Self::new(1156, "08S01", "Got packets out of order")
    }
    /// 1157: compressed data that cannot be decompressed.
    pub fn damaged_packet() -> Self {
        Self::new(1157, "08S01", "Couldn't uncompress communication packet")
    }

    /// The payload of an ERR packet (MySQL protocol, ERR_Packet, CLIENT_PROTOCOL_41 form).
    pub(crate) fn to_payload(&self) -> Vec<u8> {
        let mut payload = vec![0xFF];
        payload.extend_from_slice(&self.code.to_le_bytes());
        payload.push(b'#');
        payload.extend_from_slice(&self.state);
        payload.extend_from_slice(self.message.as_bytes());
        payload
    }

    /// Reads an ERR packet's payload, its first byte (0xFF) included. One sent before the login has no SQLSTATE.
    pub(crate) fn from_payload(payload: &[u8]) -> Result<Self, WireError> {
        let mut fields = Fields::new(payload);
        fields.u8()?;
        let code = fields.u16()?;
        let rest = fields.rest();
        let (state, message) = match rest.strip_prefix(b"#").and_then(|r| r.split_first_chunk::<5>()) {
            Some((state, message)) => (*state, message),
            None => (*b"HY000", rest),
        };
        // A server that lies could fill logs and memory.
        let message = &message[..message.len().min(LONGEST_MESSAGE)];
        Ok(Self { code, state, message: String::from_utf8_lossy(message).into_owned() })
    }
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The peer closed the connection between packets.
    #[error("the peer closed the connection")]
    Closed,
    /// The socket failed, a timeout included (`WouldBlock` or `TimedOut`).
    #[error("{}", io_text(.0))]
    Io(#[from] io::Error),
    /// The peer sent something that is not the protocol.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// The peer sent compressed data that cannot be decompressed.
    #[error("damaged packet: {0}")]
    Damaged(&'static str),
    /// A packet is larger than the limit in force (bytes).
    #[error("packet larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The peer answered with an ERR packet, or we did before giving up.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A TLS handshake failed, or certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server's certificate is not one that we are to trust.
    #[error("TLS: the server's certificate is not trusted: {0}")]
    Untrusted(&'static str),
}

/// The system's text, except that a blocking socket's "would block" is a time limit that has passed.
fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "timed out".to_owned(),
        _ => error.to_string(),
    }
}

impl WireError {
    /// Whether a read or write ran out of time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn err_packets_round_trip() {
        let error = SqlError::new(1045, "28000", "Access denied");
        let payload = error.to_payload();
        assert_eq!(payload, b"\xFF\x15\x04#28000Access denied");
        assert_eq!(SqlError::from_payload(&payload).unwrap(), error);
    }

    #[test]
    fn a_time_limit_is_called_one() {
        let error = WireError::Io(io::ErrorKind::WouldBlock.into());
        assert!(error.is_timeout());
        assert_eq!(error.to_string(), "timed out");
    }

    #[test]
    fn an_err_packet_may_lack_its_state() {
        let error = SqlError::from_payload(b"\xFF\x10\x04Too many connections").unwrap();
        assert_eq!(error, SqlError::new(1040, "HY000", "Too many connections"));
        assert!(SqlError::from_payload(b"\xFF\x10").is_err());
    }

    #[test]
    fn of_an_err_packet_no_more_is_read_than_a_server_writes() {
        let long = SqlError::new(1040, "08004", "x".repeat(60_000));
        assert_eq!(SqlError::from_payload(&long.to_payload()).unwrap().message, "x".repeat(512));
    }

    #[test]
    fn a_state_has_five_bytes() {
        assert_eq!(SqlError::new(1, "bad state", "").state, *b"HY000");
    }
}
