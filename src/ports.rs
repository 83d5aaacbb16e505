//! DATADIR/ports: the addresses really bound, one `name address:port` or `name path` a line, written when the daemon is ready.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use wire::service::Address;

/// Writes the file whole, under a temporary name first, so that a reader never sees half of it.
pub fn write(path: &Path, services: &[(&str, Vec<Address>)]) -> Result<(), String> {
    let mut text = String::new();
    for (name, addresses) in services {
        for address in addresses {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} {address}");
        }
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Removes the file; a daemon that is not there has no ports.
pub fn remove(path: &Path) {
    // It may never have been written.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_an_address() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ports");
        let address = |text: &str| text.parse::<Address>().unwrap();
        let services = [("admin", vec![address("127.0.0.1:6032"), address("/run/sock")]), ("mysql", vec![])];
        write(&path, &services).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "admin 127.0.0.1:6032\nadmin /run/sock\n");
        remove(&path);
        assert!(!path.exists());
        let missing = directory.path().join("no/such/ports");
        assert!(write(&missing, &[]).unwrap_err().contains("no/such/ports"));
    }
}
