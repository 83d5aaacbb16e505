//! SAVE MYSQL SERVERS FROM RUNTIME: placement as rows of mysql_servers.

use super::{BgdStatus, Deployment, Endpoint, HostgroupId, Hostgroups, ServerStatus};
use admin::SavedServers;
use admin::rows::{ConfiguredStatus, ServerRow};
use std::collections::BTreeMap;

type Rows = BTreeMap<(HostgroupId, Endpoint), ServerRow>;

impl Hostgroups {
    /// What mysql_servers would say of the placement now.
    ///
    /// Shuns are not configuration, and OFFLINE_HARD servers are gone but for their connections. What a switchover does to its
    /// deployment's servers lasts no longer than the switchover: those stand as they are configured.
    pub fn to_save(&self) -> SavedServers {
        let placed = self.all().filter(|(_, _, server)| server.status != ServerStatus::OfflineHard);
        let mut rows: Rows =
            placed.map(|(id, endpoint, server)| saved(id, endpoint, &server.row, server.status)).collect();
        let mut notes = Vec::new();
        for (id, deployment) in &self.deployments {
            if deployment.status > BgdStatus::Available && self.undo_moves(deployment, &mut rows) {
                notes.push(format!(
                    "blue/green deployment {id} is in a switchover, its servers are saved as they were configured"
                ));
            }
        }
        SavedServers { rows: rows.into_values().collect(), notes }
    }

    /// Puts the servers that are configured in the blue hostgroups of a deployment back where they are configured. True if that
    /// changes anything.
    fn undo_moves(&self, deployment: &Deployment, rows: &mut Rows) -> bool {
        let blue = [deployment.row.writer_hostgroup, deployment.row.reader_hostgroup];
        let configured: Rows = blue
            .into_iter()
            .flat_map(|id| self.configured(id).map(move |(endpoint, row)| (id, endpoint, row)))
            .map(|(id, endpoint, row)| saved(id, endpoint, row, row.status.into()))
            .collect();
        let own = |endpoint: &Endpoint| configured.keys().any(|(_, each)| each == endpoint);
        let before = rows.clone();
        rows.retain(|(id, endpoint), _| !(blue.contains(id) && own(endpoint)));
        rows.extend(configured.clone());
        *rows != before
    }
}

fn saved(
    hostgroup_id: HostgroupId,
    endpoint: &Endpoint,
    row: &ServerRow,
    status: ServerStatus,
) -> ((HostgroupId, Endpoint), ServerRow) {
    let status = match status {
        ServerStatus::OfflineSoft => ConfiguredStatus::OfflineSoft,
        _ => ConfiguredStatus::Online,
    };
    let (hostname, port) = (endpoint.host.to_string(), endpoint.port);
    let row = ServerRow { hostgroup_id, hostname, port, status, ..row.clone() };
    ((hostgroup_id, endpoint.clone()), row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pair, server};
    use admin::rows::{BgdHostgroupRow, ServersConfig};
    use proptest::prelude::*;

    fn at(host: &str) -> Endpoint {
        Endpoint::new(host, 3306)
    }

    fn config() -> ServersConfig {
        let deployment = |writer_hostgroup| BgdHostgroupRow {
            writer_hostgroup,
            reader_hostgroup: writer_hostgroup + 1,
            ..crate::bgd::fixtures::row()
        };
        ServersConfig {
            servers: vec![
                ServerRow { weight: 7, ..server(10, "w") },
                server(11, "r"),
                ServerRow { status: ConfiguredStatus::OfflineSoft, ..server(11, "s") },
                server(20, "x"),
            ],
            replication: vec![pair(10, 11), pair(20, 21)],
            bgd: vec![deployment(10), deployment(20)],
            ..ServersConfig::default()
        }
    }

    fn loaded() -> Hostgroups {
        let mut hostgroups = Hostgroups::default();
        assert!(hostgroups.load(&config()).is_empty());
        hostgroups
    }

    fn places(saved: &SavedServers) -> Vec<String> {
        saved.rows.iter().map(|row| format!("{} {}", row.hostgroup_id, row.hostname)).collect()
    }

    #[test]
    fn what_was_loaded_is_saved() {
        let saved = loaded().to_save();
        assert_eq!((saved.rows, saved.notes.len()), (config().servers, 0));
    }

    #[test]
    fn a_switchover_s_moves_are_not_saved_and_what_it_adds_is() {
        let mut hostgroups = loaded();
        hostgroups.set_bgd_status(10, BgdStatus::WriterSwitchoverInProgress);
        hostgroups.demote(10, 11, &at("w"));
        hostgroups.shun_aws_bgd(11, &at("r"));
        hostgroups.add_discovered(30, &at("w-green-1"));
        // Another deployment's server has moved for good.
        hostgroups.demote(20, 21, &at("x"));
        let saved = hostgroups.to_save();
        assert_eq!(places(&saved), ["10 w", "11 r", "11 s", "21 x", "30 w-green-1"]);
        assert_eq!(saved.rows[..3], config().servers[..3]);
        assert_eq!(saved.notes.len(), 1);
        assert!(saved.notes[0].contains("deployment 10"), "{:?}", saved.notes);
        // The writer is back, and a reader too, as long as readers have no green ones.
        hostgroups.set_bgd_status(10, BgdStatus::ReaderSwitchoverInProgress);
        hostgroups.configure_writer(10, 11, &at("w"), true);
        assert_eq!(places(&hostgroups.to_save()), places(&saved));
        let again = ServersConfig { servers: saved.rows, ..config() };
        let (mut before, mut after) = (loaded(), loaded());
        before.demote(20, 21, &at("x"));
        before.add_discovered(30, &at("w-green-1"));
        after.load(&again);
        assert_eq!(shown(&mut after), shown(&mut before));
    }

    #[test]
    fn what_the_end_of_a_switchover_leaves_is_saved() {
        let mut hostgroups = loaded();
        for status in [BgdStatus::None, BgdStatus::Available] {
            hostgroups.set_bgd_status(10, status);
            hostgroups.configure_writer(10, 11, &at("w"), true);
            let saved = hostgroups.to_save();
            assert_eq!(places(&saved), ["10 w", "11 r", "11 s", "11 w", "20 x"]);
            assert!(saved.notes.is_empty());
        }
    }

    #[test]
    fn servers_that_are_gone_are_not_saved() {
        let mut hostgroups = loaded();
        hostgroups.load(&ServersConfig { servers: vec![server(10, "w")], ..config() });
        assert!(hostgroups.server(11, &at("r")).is_some(), "until its connections are gone");
        assert_eq!(places(&hostgroups.to_save()), ["10 w"]);
    }

    /// What runtime_mysql_servers shows once connections of servers that are gone have ended, shuns aside.
    fn shown(hostgroups: &mut Hostgroups) -> Vec<Vec<admin::Value>> {
        hostgroups.purge(|_, _| 0);
        let mut rows = super::super::rows::runtime_mysql_servers_rows(hostgroups);
        for row in &mut rows {
            if let admin::Value::Text(status) = &mut row[4]
                && status.starts_with("SHUNNED")
            {
                *status = "ONLINE".into();
            }
        }
        rows
    }

    fn any_server() -> impl Strategy<Value = ServerRow> {
        let hosts = prop::sample::select(vec!["w", "r", "s", "x"]);
        let groups = prop::sample::select(vec![10, 11, 20, 21, 30]);
        (groups, hosts, 0..4u8, 0..3u32).prop_map(|(group, host, status, weight)| {
            let status = match status {
                0 => ConfiguredStatus::Online,
                1 => ConfiguredStatus::Shunned,
                2 => ConfiguredStatus::OfflineSoft,
                _ => ConfiguredStatus::OfflineHard,
            };
            ServerRow { status, weight, ..server(group, host) }
        })
    }

    proptest! {
        #[test]
        fn what_is_saved_loads_as_what_was_in_force(
            servers in prop::collection::vec(any_server(), 0..8),
            moves in prop::collection::vec((0..4usize, any::<bool>(), any::<bool>()), 0..8),
        ) {
            let config = ServersConfig { servers, ..config() };
            let mut hostgroups = Hostgroups::default();
            hostgroups.load(&config);
            for (host, read_only, also_reader) in moves {
                let endpoint = at(["w", "r", "s", "x"][host]);
                hostgroups.apply_read_only(&endpoint, read_only, also_reader);
                hostgroups.shun_aws_bgd(11, &endpoint);
            }
            let saved = hostgroups.to_save();
            prop_assert!(saved.notes.is_empty());
            let mut again = Hostgroups::default();
            let ignored = again.load(&ServersConfig { servers: saved.rows.clone(), ..config });
            prop_assert_eq!(ignored, Vec::<String>::new());
            prop_assert_eq!(shown(&mut again), shown(&mut hostgroups));
            prop_assert_eq!(again.to_save(), saved);
        }

        #[test]
        fn what_is_saved_in_a_switchover_loads_as_what_was_configured(
            servers in prop::collection::vec(any_server(), 0..8),
            moves in prop::collection::vec((0..4usize, any::<bool>(), any::<bool>()), 0..8),
        ) {
            let config = ServersConfig { servers, ..config() };
            let mut hostgroups = Hostgroups::default();
            hostgroups.load(&config);
            let before = shown(&mut hostgroups);
            hostgroups.set_bgd_status(10, BgdStatus::WriterSwitchoverInProgress);
            for (host, demote, also_reader) in moves {
                let endpoint = at(["w", "r", "s", "x"][host]);
                match demote {
                    true => hostgroups.demote(10, 11, &endpoint),
                    false => hostgroups.configure_writer(10, 11, &endpoint, also_reader),
                }
            }
            let mut again = Hostgroups::default();
            again.load(&ServersConfig { servers: hostgroups.to_save().rows, ..config });
            prop_assert_eq!(shown(&mut again), before);
        }
    }
}
