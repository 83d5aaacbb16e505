//! What scenarios expect, as tests.

use super::{QUIET_WINDOW, Scenario, now_us};
use crate::admin;
use crate::connection::Error;
use crate::emitter::Emitter;
use crate::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind};
use std::thread;

impl Scenario {
    /// One test: the deployment with this blue writer hostgroup gets `status`. If not, the one it has is shown.
    pub fn expect_status(&mut self, tap: &mut Emitter, writer_hostgroup: u32, status: &str) {
        let reached = self.admin.wait_until(&admin::status_is(writer_hostgroup, status));
        if !tap.ok_result(reached, &format!("status {status}")) {
            tap.diag(&format!("status is {:?}", self.admin.scalar(&admin::status_query(writer_hostgroup))));
        }
    }

    /// One test: `hostgroup` has exactly these members at runtime, with these statuses.
    pub fn expect_members(
        &mut self,
        tap: &mut Emitter,
        hostgroup: u32,
        members: &[(&RdsBgdHost, &str)],
        when: &str,
    ) -> Result<(), Error> {
        let mut expected: Vec<_> =
            members.iter().map(|(host, status)| format!("{} {status}", host.hostname)).collect();
        expected.sort_unstable();
        let found = admin::members(&mut self.admin, hostgroup)?;
        tap.is(found, expected, &format!("{when}: members of hostgroup {hostgroup}"));
        Ok(())
    }

    /// One test: a new client whose hostgroup is `hostgroup` is answered by `server`.
    pub fn expect_answer(
        &mut self,
        tap: &mut Emitter,
        hostgroup: u32,
        server: &RdsBgdHost,
        what: &str,
    ) -> Result<(), Error> {
        let ip = self.answering_ip(hostgroup)?;
        tap.is(ip, server.ip.clone(), &format!("{what} is answered by {}", server.ip));
        Ok(())
    }

    /// One test: from now on the topology is asked of `server`, which is read in the probe log.
    pub fn expect_probed(
        &mut self,
        tap: &mut Emitter,
        server: &RdsBgdHost,
        encrypted: Option<bool>,
        what: &str,
    ) -> Result<(), Error> {
        let seen = self.simulator.probe_log_last_sequence()?;
        let probe = self.wait_for_metadata(server, seen, encrypted);
        tap.ok_result(probe, what);
        Ok(())
    }

    /// Two tests: `changes` of the servers are taken up in place, so that the blue writer is asked first and then the green one again
    /// and again, and nobody is asked whether the table exists.
    pub fn expect_refresh(
        &mut self,
        tap: &mut Emitter,
        cluster: &RdsBgdCluster,
        encrypted: Option<bool>,
        changes: &[String],
        what: &str,
    ) -> Result<(), Error> {
        let baseline = self.simulator.probe_log_last_sequence()?;
        admin::change_servers(&mut self.admin, changes)?;
        let direct = self
            .wait_for_metadata(&cluster.blue_writer, baseline, None)
            .and_then(|blue| self.wait_for_metadata(&cluster.green_writer, blue, encrypted))
            .and_then(|green| self.wait_for_metadata(&cluster.green_writer, green, encrypted));
        tap.ok_result(direct, &format!("{what}: blue is asked, then green again and again"));
        let probes = self.simulator.probe_log_since(baseline)?;
        let checks = probes.iter().filter(|probe| probe.probe_kind == RdsBgdProbeKind::TableCheck).count();
        tap.is(checks, 0, &format!("{what}: no table check"));
        Ok(())
    }

    /// One test: a connection to `server` is pooled, as soon as the client that has just used it is gone.
    pub fn expect_pooled(&mut self, tap: &mut Emitter, server: &RdsBgdHost, what: &str) {
        let pooled = self.admin.wait_until(&format!("{}>0", admin::pooled(server)));
        tap.ok_result(pooled, what);
    }

    /// One test: read_only of each of `servers` is checked from now on.
    pub fn expect_monitored(&mut self, tap: &mut Emitter, servers: &[&RdsBgdHost], what: &str) {
        let since = now_us();
        let checked: Vec<_> = servers
            .iter()
            .map(|server| format!("{}>0", admin::read_only_checks(&[*server], since)))
            .collect();
        let monitored = self.admin.wait_until(&checked.join(" AND "));
        tap.ok_result(monitored, what);
    }

    /// One test: read_only of none of `servers` has been checked since `since_us`, in µs of the epoch.
    pub fn expect_unmonitored_since(
        &mut self,
        tap: &mut Emitter,
        servers: &[&RdsBgdHost],
        since_us: u128,
        what: &str,
    ) -> Result<(), Error> {
        let checks = admin::read_only_checks(servers, since_us);
        tap.is(self.admin.number(&format!("SELECT {checks}"))?, 0, what);
        Ok(())
    }

    /// One test: read_only of none of `servers` is checked for a while.
    pub fn expect_unmonitored(
        &mut self,
        tap: &mut Emitter,
        servers: &[&RdsBgdHost],
        what: &str,
    ) -> Result<(), Error> {
        let since = now_us();
        thread::sleep(QUIET_WINDOW);
        self.expect_unmonitored_since(tap, servers, since, what)
    }

    /// One test: nobody is asked for a topology, for a while.
    pub fn expect_quiet(&mut self, tap: &mut Emitter, what: &str) -> Result<(), Error> {
        let seen = self.simulator.probe_log_last_sequence()?;
        thread::sleep(QUIET_WINDOW);
        tap.is(self.simulator.probe_log_since(seen)?.len(), 0, what);
        Ok(())
    }
}
