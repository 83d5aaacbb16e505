//! Which servers a check of connections, pings or replication lag concerns.

use crate::hostgroups::{Endpoint, Hostgroups, Server, ServerStatus};
use std::collections::BTreeMap;

/// Every endpoint that is configured or in use, once, and whether a row of it asks for TLS.
pub fn all(hostgroups: &Hostgroups) -> BTreeMap<Endpoint, bool> {
    of(hostgroups, |_, server| server.status != ServerStatus::OfflineHard)
}

/// Every endpoint in service that has max_replication_lag in a hostgroup of readers.
pub fn replicas(hostgroups: &Hostgroups) -> BTreeMap<Endpoint, bool> {
    of(hostgroups, |hostgroup, server| {
        server.row.max_replication_lag > 0
            && !server.status.is_offline()
            && !hostgroups.is_for_writers(hostgroup)
    })
}

fn of(hostgroups: &Hostgroups, concerns: impl Fn(u32, &Server) -> bool) -> BTreeMap<Endpoint, bool> {
    let mut found = BTreeMap::new();
    for (hostgroup, endpoint, server) in hostgroups.all() {
        if concerns(hostgroup, server) {
            *found.entry(endpoint.clone()).or_default() |= server.row.use_ssl;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pair, server as row};
    use admin::rows::{ConfiguredStatus, ServerRow, ServersConfig};

    #[test]
    fn servers_are_checked_once_wherever_they_are() {
        let offline = |hostgroup, host, status| ServerRow { status, ..row(hostgroup, host) };
        let late = |hostgroup, host| ServerRow { max_replication_lag: 1, ..row(hostgroup, host) };
        let mut hostgroups = Hostgroups::default();
        let mut config = ServersConfig {
            servers: vec![
                late(1, "writer"),
                late(2, "reader"),
                ServerRow { use_ssl: true, ..row(3, "reader") },
                row(4, "writer"),
                ServerRow { max_replication_lag: 1, ..offline(5, "soft", ConfiguredStatus::OfflineSoft) },
                offline(6, "hard", ConfiguredStatus::OfflineHard),
                row(7, "gone"),
            ],
            replication: vec![pair(1, 2)],
            ..ServersConfig::default()
        };
        hostgroups.load(&config);
        config.servers.pop();
        hostgroups.load(&config);
        let names = |found: BTreeMap<Endpoint, bool>| -> Vec<(String, bool)> {
            found.into_iter().map(|(endpoint, tls)| (endpoint.host.to_string(), tls)).collect()
        };
        let expected =
            [("reader", true), ("soft", false), ("writer", false)].map(|(name, tls)| (name.to_owned(), tls));
        assert_eq!(names(all(&hostgroups)), expected);
        assert_eq!(names(replicas(&hostgroups)), [("reader".to_owned(), false)]);
    }
}
