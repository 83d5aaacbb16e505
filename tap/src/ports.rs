//! Free ports for a daemon on the host's own loopback.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Where ports are taken from: below the range that outgoing connections use, above the well-known ones.
pub const PORT_RANGE: Range<u16> = 20000..32000;

/// `count` different ports that nobody listens on, on any address.
///
/// The search starts at a random port, so that runs side by side do not meet. A port can still be taken by someone else
/// before the daemon binds it; the daemon then ends with a line that names it.
pub fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let start = RandomState::new().hash_one(std::process::id());
    free_ports_from(start, count, PORT_RANGE)
}

/// Whether nobody listens on `port`, on any address.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

fn free_ports_from(start: u64, count: usize, range: Range<u16>) -> io::Result<Vec<u16>> {
    let split = range.start + (start % range.len() as u64) as u16;
    // Each listener holds its port until all are found, so that none is found twice.
    let listeners: Vec<_> = (split..range.end)
        .chain(range.start..split)
        .filter_map(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).ok())
        .take(count)
        .collect();
    if listeners.len() < count {
        let message = format!("fewer than {count} free ports in {}-{}", range.start, range.end);
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ports_are_distinct_and_in_range() {
        let ports = free_ports(3).unwrap();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), 3);
        assert!(ports.iter().all(|port| PORT_RANGE.contains(port)), "{ports:?}");
    }

    #[test]
    fn a_taken_port_is_not_offered() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(!is_free(port));
        let error = free_ports_from(0, 1, port..port + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_search_wraps_around_at_the_end_of_the_range() {
        let last = u64::from(PORT_RANGE.end - PORT_RANGE.start - 1);
        assert_eq!(free_ports_from(last, 4, PORT_RANGE).unwrap().len(), 4);
    }
}
