//! Who answers `SELECT VERSION()`: mysql-select_version_forwarding.

/// Where the version comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource<'a> {
    /// This text is the answer.
    Here(&'a str),
    /// The server is asked.
    Server,
}

/// Decides by the variable's value (0: the proxy answers; 1: the server; 2: the known version of a pooled connection, else the
/// proxy; 3: the same, else the server). `own` is mysql-server_version, `pooled` what the hostgroup's servers said when a
/// connection to them was opened.
pub fn version_source<'a>(forwarding: u32, own: &'a str, pooled: Option<&'a str>) -> VersionSource<'a> {
    match (forwarding, pooled) {
        (0, _) | (2, None) => VersionSource::Here(own),
        (2 | 3, Some(version)) => VersionSource::Here(version),
        _ => VersionSource::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_source_with_and_without_a_pooled_connection() {
        use VersionSource::{Here, Server};
        for (forwarding, without, with) in [
            (0, Here("own"), Here("own")),
            (1, Server, Server),
            (2, Here("own"), Here("pooled")),
            (3, Server, Here("pooled")),
        ] {
            assert_eq!(version_source(forwarding, "own", None), without, "{forwarding}");
            assert_eq!(version_source(forwarding, "own", Some("pooled")), with, "{forwarding}");
        }
    }
}
