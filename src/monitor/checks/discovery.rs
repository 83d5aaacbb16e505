//! Discovery: servers of replication hostgroups that RDS runs are asked for their topology beside their read_only checks. What it
//! says of a blue/green deployment makes a deployment, what it says of a Multi-AZ DB cluster adds readers.

use super::{Checks, GivenUp, Job, Task};
use crate::bgd::topology::{METADATA, NO_SUCH_TABLE, cluster_members, is_blue_green};
use crate::hostgroups::Endpoint;
use crate::monitor::read_only::{self, Target};
use crate::monitor::suppression::Admission;
use wire::WireError;
use wire::backend::TextResult;

/// What RDS ends the names of its servers with; in China something follows.
const RDS: &str = "rds.amazonaws.com";

impl Checks {
    /// The questions of one cycle, in random order: to RDS's servers that answer pings, but for those suspended and those that have
    /// not yet answered the last one.
    pub fn discoveries(&self) -> Vec<Job> {
        let most = self.config.variables().monitor_ping_max_failures;
        let mut jobs: Vec<Job> = self
            .backends
            .read(read_only::targets)
            .into_iter()
            .filter(|target| is_rds(&target.endpoint.host) && self.health.responds(&target.endpoint, most))
            .filter_map(|Target { endpoint, tls, .. }| {
                let admission = self.suppression.admit(&endpoint)?;
                Some(Job { endpoint, tls, task: Task::Discovery { admission } })
            })
            .collect();
        fastrand::shuffle(&mut jobs);
        let mut state = self.state.lock();
        jobs.retain(|job| state.busy.insert(job.key()));
        jobs
    }
    /// Leaves no row in a log. A server without the table has no topology to tell of.
    pub(super) fn discover(&self, job: &Job, admission: Admission, given_up: GivenUp) -> Option<()> {
        if !self.suppression.still_admits(&job.endpoint, admission) {
            return Some(());
        }
        let limit = self.config.variables().monitor_read_only_timeout;
        let check = self.run(job, limit, given_up, |target, limit| {
            match self.probes.query(target, METADATA, limit) {
                Err(WireError::Sql(error)) if error.code == NO_SUCH_TABLE => Ok(TextResult::default()),
                answer => Ok(answer?),
            }
        })?;
        self.count(job, &check);
        if let Ok(answer) = &check.result {
            if is_blue_green(answer) {
                self.add_deployment(&job.endpoint, admission);
            } else {
                self.add_members(&job.endpoint, &cluster_members(answer), admission);
            }
        }
        Some(())
    }

    fn add_deployment(&self, endpoint: &Endpoint, admission: Admission) {
        let wanted = self.config.variables().bgd_auto_discovery;
        if !wanted || self.backends.read(|groups| groups.without_deployment(endpoint).is_none()) {
            return;
        }
        let added = self.backends.update(|groups| match self.suppression.still_admits(endpoint, admission) {
            true => groups.add_deployment(endpoint),
            false => None,
        });
        if let Some((writer, reader)) = added {
            ::log::info!(
                "{endpoint} is part of a blue/green deployment: auto-generated blue/green hostgroup entry \
                 (writer_hostgroup {writer}, reader_hostgroup {reader}), until the next LOAD MYSQL SERVERS"
            );
        }
    }
    fn add_members(&self, endpoint: &Endpoint, members: &[Endpoint], admission: Admission) {
        if self.backends.read(|groups| groups.missing_members(endpoint, members).is_empty()) {
            return;
        }
        let added = self.backends.update(|groups| match self.suppression.still_admits(endpoint, admission) {
            true => groups.add_members(endpoint, members),
            false => Vec::new(),
        });
        for (reader, member) in added {
            ::log::info!("{endpoint} has {member} in its cluster: added to reader hostgroup {reader}");
        }
    }
}

/// In any case, as names are.
fn is_rds(host: &str) -> bool {
    host.to_ascii_lowercase().contains(RDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rds_is_known_by_its_names() {
        assert!(is_rds("db-1.c1yqcg0ie39o.eu-north-1.RDS.amazonaws.com"));
        assert!(!is_rds("db-1.rds.example.com") && !is_rds("127.0.0.1"));
    }
}
