//! What a topology adds that a server of a replication pair has answered: a deployment without configuration, or a cluster's readers.

use super::{BgdStatus, Deployment, Endpoint, HostgroupId, Hostgroups};
use admin::rows::BgdHostgroupRow;

/// Polling of a deployment that nobody configured: the defaults of mysql_aws_rds_bgd_hostgroups.
const CHECK_INTERVAL_MS: u32 = 1_000;
const CHECK_TIMEOUT_MS: u32 = 800;

impl Hostgroups {
    /// The first pair of writer and reader hostgroups of an endpoint that no deployment names, in any role. A row of the
    /// administrator's stands whether it is active or not. None where discovery has made a deployment for another pair of the
    /// endpoint: a server belongs to one deployment (contract: "Read-Only Suppression").
    pub fn without_deployment(&self, endpoint: &Endpoint) -> Option<(HostgroupId, HostgroupId)> {
        let named = |hostgroup: HostgroupId| {
            self.deployments.values().any(|Deployment { row, .. }| {
                let green = [row.green_writer_hostgroup, row.green_reader_hostgroup];
                row.writer_hostgroup == hostgroup
                    || row.reader_hostgroup == hostgroup
                    || green.contains(&Some(hostgroup))
            })
        };
        let pairs = self.pairs_of(endpoint);
        let made = |writer| self.deployments.get(writer).is_some_and(|deployment| deployment.auto_generated);
        if pairs.iter().any(|(writer, _)| made(writer)) {
            return None;
        }
        pairs.into_iter().find(|(writer, reader)| !named(*writer) && !named(*reader))
    }
    /// Makes a deployment for this pair, with no green hostgroups; returns the pair. The next LOAD takes it away (contract:
    /// "Configuration Model").
    pub fn add_deployment(&mut self, endpoint: &Endpoint) -> Option<(HostgroupId, HostgroupId)> {
        let (writer_hostgroup, reader_hostgroup) = self.without_deployment(endpoint)?;
        let row = BgdHostgroupRow {
            writer_hostgroup,
            reader_hostgroup,
            green_writer_hostgroup: None,
            green_reader_hostgroup: None,
            active: true,
            writer_is_also_reader: false,
            check_interval_ms: CHECK_INTERVAL_MS,
            check_timeout_ms: CHECK_TIMEOUT_MS,
            comment: String::new(),
        };
        let deployment = Deployment { row, auto_generated: true, status: BgdStatus::None, since: 0 };
        self.deployments.insert(writer_hostgroup, deployment);
        self.generation += 1;
        Some((writer_hostgroup, reader_hostgroup))
    }
    /// Members of an endpoint's cluster that its pairs lack, each with the reader hostgroup it is missing in. A member that the
    /// administrator has as OFFLINE_HARD is not missing.
    pub fn missing_members(&self, endpoint: &Endpoint, members: &[Endpoint]) -> Vec<(HostgroupId, Endpoint)> {
        let mut missing = Vec::new();
        for (writer, reader) in self.pairs_of(endpoint) {
            let unknown = |member: &&Endpoint| {
                let absent =
                    |id| self.present(id, member).is_none() && !self.is_configured_offline_hard(id, member);
                absent(writer) && absent(reader)
            };
            missing.extend(members.iter().filter(unknown).map(|member| (reader, member.clone())));
        }
        missing
    }
    /// Adds them to the reader hostgroups; a read_only check finds the writer among them. Returns what was added.
    pub fn add_members(&mut self, endpoint: &Endpoint, members: &[Endpoint]) -> Vec<(HostgroupId, Endpoint)> {
        let mut missing = self.missing_members(endpoint, members);
        missing.retain(|(reader, member)| self.add_discovered(*reader, member));
        missing
    }

    fn pairs_of(&self, endpoint: &Endpoint) -> Vec<(HostgroupId, HostgroupId)> {
        let pairs = self.replication.iter().map(|pair| (pair.writer_hostgroup, pair.reader_hostgroup));
        let has = |(writer, reader): &(HostgroupId, HostgroupId)| {
            [writer, reader].iter().any(|id| self.present(**id, endpoint).is_some())
        };
        pairs.filter(has).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pair, server};
    use admin::rows::{ConfiguredStatus, HostgroupAttributesRow, ServerRow, ServersConfig};

    fn at(host: &str) -> Endpoint {
        Endpoint::new(host, 3306)
    }
    fn config() -> ServersConfig {
        ServersConfig {
            servers: vec![server(1, "w"), server(2, "r"), server(5, "w"), server(7, "w"), server(9, "alone")],
            replication: vec![pair(1, 2), pair(5, 6), pair(7, 8)],
            ..ServersConfig::default()
        }
    }
    fn loaded(config: &ServersConfig) -> Hostgroups {
        let mut hostgroups = Hostgroups::default();
        hostgroups.load(config);
        hostgroups
    }

    #[test]
    fn a_deployment_is_made_for_one_pair_of_the_server_until_the_next_load() {
        let mut hostgroups = loaded(&config());
        let generation = hostgroups.generation();
        assert_eq!(hostgroups.add_deployment(&at("r")), Some((1, 2)));
        assert!(hostgroups.generation() > generation, "the dispatcher looks again");
        let Deployment { row, auto_generated, status, .. } = &hostgroups.deployments()[&1];
        assert!(*auto_generated && row.active && !row.writer_is_also_reader);
        assert_eq!(
            (*status, row.green_writer_hostgroup, row.green_reader_hostgroup),
            (BgdStatus::None, None, None)
        );
        assert_eq!((row.reader_hostgroup, row.check_interval_ms, row.check_timeout_ms), (2, 1_000, 800));
        assert_eq!(hostgroups.add_deployment(&at("w")), None, "a server belongs to one deployment");
        assert_eq!(hostgroups.add_deployment(&at("alone")), None);
        hostgroups.load(&config());
        assert!(hostgroups.deployments().is_empty());
        assert_eq!(hostgroups.add_deployment(&at("w")), Some((1, 2)));
    }

    #[test]
    fn rows_of_the_administrator_stand() {
        let inactive = BgdHostgroupRow {
            writer_hostgroup: 1,
            reader_hostgroup: 3,
            active: false,
            ..crate::bgd::fixtures::row()
        };
        let explicit = ServersConfig { bgd: vec![inactive.clone()], ..config() };
        let mut hostgroups = loaded(&explicit);
        assert_eq!(hostgroups.add_deployment(&at("r")), None);
        assert_eq!((hostgroups.deployments().len(), &hostgroups.deployments()[&1].row), (1, &inactive));
        assert_eq!(
            hostgroups.add_deployment(&at("w")),
            Some((5, 6)),
            "another pair may be of another deployment"
        );
        for row in [
            BgdHostgroupRow { writer_hostgroup: 7, reader_hostgroup: 2, ..inactive.clone() },
            BgdHostgroupRow { writer_hostgroup: 7, green_writer_hostgroup: Some(1), ..inactive.clone() },
            BgdHostgroupRow { writer_hostgroup: 7, green_reader_hostgroup: Some(2), ..inactive.clone() },
        ] {
            assert_eq!(loaded(&ServersConfig { bgd: vec![row], ..config() }).add_deployment(&at("r")), None);
        }
    }

    #[test]
    fn members_of_a_cluster_join_the_readers_once() {
        let servers_defaults = r#" {"weight": 7, "use_ssl": 1} "#.to_owned();
        let attributes = HostgroupAttributesRow { servers_defaults, ..HostgroupAttributesRow::new(2) };
        let mut hostgroups = loaded(&ServersConfig { hostgroup_attributes: vec![attributes], ..config() });
        let members = ["w", "r", "new"].map(at);
        assert_eq!(hostgroups.missing_members(&at("r"), &members), [(2, at("new"))]);
        assert_eq!(hostgroups.add_members(&at("r"), &members), [(2, at("new"))]);
        let row = &hostgroups.server(2, &at("new")).unwrap().row;
        assert_eq!((row.weight, row.use_ssl), (7, true));
        assert_eq!(hostgroups.add_members(&at("r"), &members), []);
        assert_eq!(hostgroups.missing_members(&at("alone"), &members), []);
    }

    #[test]
    fn a_member_configured_offline_hard_stays_out() {
        let offline = ServerRow { status: ConfiguredStatus::OfflineHard, ..server(2, "new") };
        let mut hostgroups = loaded(&config());
        assert_eq!(hostgroups.missing_members(&at("r"), &[at("new")]), [(2, at("new"))]);
        let mut config = config();
        config.servers.push(offline);
        hostgroups.load(&config);
        assert_eq!(hostgroups.missing_members(&at("r"), &[at("new")]), []);
        config.servers.pop();
        hostgroups.load(&config);
        assert_eq!(hostgroups.add_members(&at("r"), &[at("new")]), [(2, at("new"))]);
    }
}
