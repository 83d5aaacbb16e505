//! LOAD MYSQL SERVERS: the configured placement comes back, what happened at run time is forgotten.

use super::{Deployment, Endpoint, HostgroupId, Hostgroups, Policy, Server, ServerStatus};
use admin::rows::{BgdHostgroupRow, ServerRow, ServersConfig};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

impl Hostgroups {
    /// Applies LOAD MYSQL SERVERS: placement is the configured one again, run-time additions vanish, deployments keep
    /// their status. Returns what was ignored, in words.
    ///
    /// A server that is gone or configured OFFLINE_HARD stays as OFFLINE_HARD until [`Hostgroups::purge`] finds it
    /// without connections, so that its connections remain accounted for; one that was not there does not appear.
    pub fn load(&mut self, config: &ServersConfig) -> Vec<String> {
        let mut ignored = Vec::new();
        self.generation += 1;
        self.loads += 1;
        let followed = self.followed();
        self.load_servers(&config.servers, &mut ignored);
        self.load_replication(config, &mut ignored);
        self.load_deployments(&config.bgd, &followed, &mut ignored);
        self.load_attributes(config, &mut ignored);
        ignored
    }

    fn load_servers(&mut self, rows: &[ServerRow], ignored: &mut Vec<String>) {
        let mut before = std::mem::take(&mut self.groups);
        self.configured.clear();
        self.offline_hard.clear();
        for row in rows {
            let endpoint = Endpoint::new(&row.hostname, row.port);
            let status = ServerStatus::from(row.status);
            let key = (row.hostgroup_id, endpoint.clone());
            if status == ServerStatus::OfflineHard {
                self.offline_hard.insert(key);
                continue;
            }
            if self.configured.contains_key(&key) {
                ignored.push(format!(
                    "mysql_servers: {endpoint} is in hostgroup {} twice; the first row is used",
                    row.hostgroup_id
                ));
                continue;
            }
            self.configured.insert(key, row.clone());
            let old = before.get_mut(&row.hostgroup_id).and_then(|group| group.remove(&endpoint));
            let mut server = Server::new(row.clone(), status);
            self.judge_latency(&endpoint, &mut server);
            if let Some(old) = old {
                server.keep_lag(&old);
            }
            self.groups.entry(row.hostgroup_id).or_default().insert(endpoint, server);
        }
        for (id, group) in before {
            for (endpoint, mut server) in group {
                server.set_status(ServerStatus::OfflineHard);
                self.groups.entry(id).or_default().insert(endpoint, server);
            }
        }
        let groups = &self.groups;
        self.latencies.retain(|endpoint, _| groups.values().any(|group| group.get(endpoint).is_some()));
    }

    fn load_replication(&mut self, config: &ServersConfig, ignored: &mut Vec<String>) {
        let readers: HashSet<HostgroupId> =
            config.replication.iter().map(|row| row.reader_hostgroup).collect();
        self.replication.clear();
        for row in &config.replication {
            if readers.contains(&row.writer_hostgroup) {
                ignored.push(incompatible(
                    "mysql_replication_hostgroups",
                    row.writer_hostgroup,
                    row.reader_hostgroup,
                ));
            } else {
                self.replication.push(row.clone());
            }
        }
    }

    fn load_attributes(&mut self, config: &ServersConfig, ignored: &mut Vec<String>) {
        let rows = config.hostgroup_attributes.iter();
        self.attributes = rows.map(|row| (row.hostgroup_id, row.clone())).collect();
        self.policies.clear();
        for row in self.attributes.values() {
            let (policy, lines) = Policy::new(row);
            self.policies.insert(row.hostgroup_id, Arc::new(policy));
            ignored.extend(lines);
        }
        self.ssl_params.clear();
        for row in &config.ssl_params {
            let endpoint = Endpoint::new(&row.hostname, row.port);
            match self.ssl_params.entry((endpoint, row.username.clone())) {
                Entry::Vacant(entry) => drop(entry.insert(row.clone())),
                Entry::Occupied(entry) => ignored.push(format!(
                    "mysql_servers_ssl_params: {} is there twice for user '{}'; the first row is used",
                    entry.key().0,
                    row.username.escape_debug()
                )),
            }
        }
        ignored.extend(self.attributes.values().flat_map(|row| row.servers_defaults().1));
    }

    /// The deployments that have a worker, and since when. What the next LOAD brings back of the others starts afresh, however soon
    /// it comes (contract: "Worker Detach And Recreation").
    fn followed(&self) -> BTreeMap<HostgroupId, u64> {
        let followed = self.deployments.iter().filter(|(id, each)| each.row.active && self.has_writer(**id));
        followed.map(|(id, deployment)| (*id, deployment.since)).collect()
    }

    fn load_deployments(
        &mut self,
        rows: &[BgdHostgroupRow],
        followed: &BTreeMap<HostgroupId, u64>,
        ignored: &mut Vec<String>,
    ) {
        let readers: HashSet<HostgroupId> = rows.iter().map(|row| row.reader_hostgroup).collect();
        let before = std::mem::take(&mut self.deployments);
        let mut deployments = BTreeMap::new();
        for row in rows {
            if readers.contains(&row.writer_hostgroup) {
                ignored.push(incompatible(
                    "mysql_aws_rds_bgd_hostgroups",
                    row.writer_hostgroup,
                    row.reader_hostgroup,
                ));
                continue;
            }
            let status = before.get(&row.writer_hostgroup).map(|old| old.status).unwrap_or_default();
            let since = followed.get(&row.writer_hostgroup).copied().unwrap_or(self.loads);
            let deployment = Deployment { row: row.clone(), auto_generated: false, status, since };
            deployments.insert(row.writer_hostgroup, deployment);
        }
        self.deployments = deployments;
    }
}

fn incompatible(table: &str, writer: HostgroupId, reader: HostgroupId) -> String {
    format!(
        "{table}: incompatible entry (writer_hostgroup {writer}, reader_hostgroup {reader}): \
         hostgroup {writer} is the reader_hostgroup of a row"
    )
}
