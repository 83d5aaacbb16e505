//! The two kinds of error: what a MySQL peer is told, and what went wrong on the wire.

use std::io;

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
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The peer closed the connection between packets.
    #[error("the peer closed the connection")]
    Closed,
    /// The socket failed, a timeout included (`WouldBlock` or `TimedOut`).
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer sent something that is not the protocol.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// A packet is larger than the limit in force (bytes).
    #[error("packet larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The peer answered with an ERR packet, or we did before giving up.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The TLS handshake failed.
    #[error("TLS handshake: {0}")]
    Tls(String),
}
