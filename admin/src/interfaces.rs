//! Interface lists: where a listener listens.

use std::net::SocketAddr;

/// Addresses in an interface list such as `0.0.0.0:6032;[::1]:6032`. An empty list has none; an entry that is
/// not an IP address and a port is an error that names it.
pub fn parse_interfaces(list: &str) -> Result<Vec<SocketAddr>, String> {
    let entries = list.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        entry.parse().map_err(|_| format!("'{entry}' is not an address and port such as 0.0.0.0:6032"))
    };
    entries.map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_their_bad_entry() {
        let two = parse_interfaces(" 0.0.0.0:6032; [::1]:6032 ;").unwrap();
        assert_eq!(two, ["0.0.0.0:6032".parse().unwrap(), "[::1]:6032".parse().unwrap()]);
        assert_eq!(parse_interfaces("").unwrap(), []);
        for bad in ["localhost:6032", "0.0.0.0", "/tmp/sock", "1.2.3.4:99999"] {
            let list = format!("0.0.0.0:6032;{bad}");
            assert!(parse_interfaces(&list).unwrap_err().contains(bad));
        }
    }
}
