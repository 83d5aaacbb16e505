//! Interface lists: where a listener listens.

use wire::service::Address;

/// Addresses in an interface list such as `0.0.0.0:6032;[::]:6032;/run/admin.sock`. An empty list has none; an entry that is
/// neither an IP address and a port nor a path is an error that names it.
pub fn parse_interfaces(list: &str) -> Result<Vec<Address>, String> {
    let entries = list.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        entry.parse().map_err(|error: wire::service::AddressError| {
            let shown: String = entry.chars().take(64).collect();
            format!("'{shown}' is {error}")
        })
    };
    entries.map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_their_bad_entry() {
        let three = parse_interfaces(" 0.0.0.0:6032; [::1]:6032 ;/run/admin.sock").unwrap();
        let texts = ["0.0.0.0:6032", "[::1]:6032", "/run/admin.sock"];
        assert_eq!(three, texts.map(|text| text.parse().unwrap()));
        assert_eq!(parse_interfaces("").unwrap(), []);
        for bad in ["localhost:6032", "0.0.0.0", "tmp/sock", "1.2.3.4:99999"] {
            let list = format!("0.0.0.0:6032;{bad}");
            assert!(parse_interfaces(&list).unwrap_err().contains(bad));
        }
    }
}
