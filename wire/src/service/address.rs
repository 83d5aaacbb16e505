//! Where a service listens: an IP address and port, or the path of a unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Longest path of a unix socket, in bytes: what the system allows, less the ending that it is bound under at first.
const LONGEST_PATH: usize = 103;

/// One address of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// IP address and port.
    Tcp(SocketAddr),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The IP address and port, unless it is a path.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// Why a text is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is neither form.
    #[error("not an address and port such as 0.0.0.0:6032, nor a path such as /run/pointsman.sock")]
    Unknown,
    /// The system has no room for it.
    #[error("a path of more than {LONGEST_PATH} bytes, which the system does not allow for a socket")]
    TooLong,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text {
            path if path.starts_with('/') && path.len() > LONGEST_PATH => Err(AddressError::TooLong),
            path if path.starts_with('/') && !path.ends_with('/') && !path.contains('\0') => {
                Ok(Self::Unix(path.into()))
            }
            address => address.parse().map(Self::Tcp).map_err(|_| AddressError::Unknown),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_shown() {
        for text in ["127.0.0.1:6032", "[::1]:6032", "/run/pointsman.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "localhost:6032", "0.0.0.0", "relative.sock", "1.2.3.4:99999", "/", "/run/", "/a\0b"]
        {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Unknown), "{text}");
        }
        let path = |length| format!("/{}", "x".repeat(length - 1)).parse::<Address>();
        assert!(path(LONGEST_PATH).is_ok());
        assert_eq!(path(LONGEST_PATH + 1), Err(AddressError::TooLong));
    }
}
