//! Which simulated backend a client has reached.

use std::io;
use std::net::SocketAddr;
use wire::SqlError;
use wire::socket::Socket;

/// The key of a backend: the accepted connection's local address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    /// Address in text; IPv4 also where it came mapped into IPv6.
    pub ip: String,
    /// Port.
    pub port: u16,
}

impl Endpoint {
    /// What getsockname tells (contract: "Backend Identity and Topology Ownership"). `None` where that is no IP address, as on a
    /// unix socket: no other address may stand in for it.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        // The stream is asked, because `Socket::local_addr` knows an address for a unix socket as well.
        Self::from_local(socket.stream().local_addr())
    }

    fn from_local(local: io::Result<SocketAddr>) -> Option<Self> {
        let local = local.ok()?;
        Some(Self { ip: local.ip().to_canonical().to_string(), port: local.port() })
    }
}

/// What a client is told who has reached no backend.
pub(super) fn unknown() -> SqlError {
    super::failure(
        "the local address of this connection is unknown; connect to the IP address and port of a backend",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn endpoint(ip: &str, port: u16) -> Option<Endpoint> {
        Some(Endpoint { ip: ip.to_owned(), port })
    }

    /// The backend of a client who connects to `ip`, where the server listens on `interface`.
    fn reached(interface: &str, ip: &str) -> (u16, Option<Endpoint>) {
        let listener = TcpListener::bind((interface, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = TcpStream::connect((ip, port)).unwrap();
        let accepted = Socket::new(listener.accept().unwrap().0).unwrap();
        (port, Endpoint::of(&accepted))
    }

    #[test]
    fn the_address_reached_is_the_key_whatever_the_server_listens_on() {
        for (interface, ip) in [
            ("0.0.0.0", "127.10.0.11"),
            ("127.10.0.14", "127.10.0.14"),
            ("::1", "::1"),
            ("::", "127.10.0.11"),
        ] {
            let (port, reached) = reached(interface, ip);
            assert_eq!(reached, endpoint(ip, port), "{ip} on {interface}");
        }
    }

    #[test]
    fn a_socket_without_an_ip_address_is_no_backend() {
        let (accepted, _client) = UnixStream::pair().unwrap();
        let accepted = TcpStream::from(OwnedFd::from(accepted));
        assert_eq!(Endpoint::from_local(accepted.local_addr()), None);
        assert_eq!(Endpoint::from_local(Err(io::Error::other("gone"))), None);
    }
}
