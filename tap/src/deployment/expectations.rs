//! What a scenario expects of its deployment, as tests.

use super::{Deployment, Phase};
use crate::admin::{self, Hostgroups};
use crate::connection::Error;
use crate::emitter::Emitter;
use crate::scenario::{self, Scenario};
use crate::simulator::{self, RdsBgdProbeKind};
use std::thread;
use std::time::Duration;

/// Five polls, or five read_only checks: long enough to see one that must not be.
const QUIET_WINDOW: Duration = Duration::from_millis(500);

impl Deployment {
    /// One test: read_only of every blue server is checked from now on.
    pub fn expect_monitored(&self, tap: &mut Emitter, scenario: &mut Scenario, when: &str) {
        let since = scenario::now_us();
        let checked =
            self.blue_servers().map(|host| format!("{}>0", admin::read_only_checks(&[host], since)));
        let monitored = scenario.admin.wait_until(&checked.join(" AND "));
        tap.ok_result(monitored, &format!("{when}: read_only of every blue server is checked"));
    }

    /// One test: read_only of no blue server is checked for a while.
    pub fn expect_suppressed(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        let since = scenario::now_us();
        thread::sleep(QUIET_WINDOW);
        let checks = admin::read_only_checks(&self.blue_servers(), since);
        let checks = scenario.admin.number(&format!("SELECT {checks}"))?;
        tap.is(checks, 0, &format!("{when}: read_only of no blue server is checked"));
        Ok(())
    }

    /// One test: the blue servers are placed as in `phase`.
    pub fn expect_placement(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        phase: Phase,
        when: &str,
    ) -> Result<(), Error> {
        let placed = scenario.admin.holds(&self.placement(phase))?;
        tap.ok(placed, &format!("{when}: blue servers are placed as in {}", phase.published()));
        Ok(())
    }

    /// Two tests: new clients of the blue hostgroups are answered by blue servers.
    pub fn expect_blue_answers(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        let Hostgroups { writer, reader, .. } = self.hostgroups;
        scenario.expect_answer(
            tap,
            writer,
            &self.cluster.blue_writer,
            &format!("{when}: writer hostgroup"),
        )?;
        scenario.expect_answer(tap, reader, self.mapped_reader(), &format!("{when}: reader hostgroup"))
    }

    /// Two tests: new clients of the blue hostgroups are answered by green servers.
    pub fn expect_green_answers(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        let Hostgroups { writer, reader, .. } = self.hostgroups;
        scenario.expect_answer(
            tap,
            writer,
            &self.cluster.green_writer,
            &format!("{when}: writer hostgroup"),
        )?;
        scenario.expect_answer(tap, reader, self.green_reader(), &format!("{when}: reader hostgroup"))
    }

    /// Six tests: everything is as configured, and green servers have been left alone. Checks of read_only come back last, so
    /// that nothing else has to be waited for.
    pub fn expect_rolled_back(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        self.expect_monitored(tap, scenario, when);
        self.expect_placement(tap, scenario, Phase::Available, when)?;
        self.expect_blue_answers(tap, scenario, when)?;
        let kept = scenario.admin.holds(&self.green_servers())?;
        tap.ok(kept, &format!("{when}: the green servers are kept"));
        let pooled = scenario.admin.holds(&self.green_pooled())?;
        tap.ok(pooled, &format!("{when}: connections to green servers are kept"));
        Ok(())
    }

    /// Four tests: blue names mean the promoted servers, and green hostgroups have served their purpose. Pools are looked at first,
    /// and without a retry: they are empty when NONE is published.
    pub fn expect_completed(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        let drained = scenario.admin.holds(&self.green_drained())?;
        tap.ok(drained, &format!("{when}: connections to green servers are gone"));
        self.expect_placement(tap, scenario, Phase::Available, when)?;
        let kept = scenario.admin.holds(&self.green_servers())?;
        tap.ok(kept, &format!("{when}: the green servers are kept"));
        self.expect_monitored(tap, scenario, when);
        Ok(())
    }

    /// One test: no topology is asked for, for a while.
    pub fn expect_quiet(&self, tap: &mut Emitter, scenario: &mut Scenario, when: &str) -> Result<(), Error> {
        let seen = scenario.simulator.probe_log_last_sequence()?;
        thread::sleep(QUIET_WINDOW);
        let probes = scenario.simulator.probe_log_since(seen)?;
        tap.is(probes.len(), 0, &format!("{when}: nobody is asked for the topology"));
        Ok(())
    }

    /// Three tests: the probes after `since` begin with those of a fresh worker, table check and metadata on the blue writer; it
    /// enters `phase`, which is still published, and goes back to AVAILABLE.
    pub fn expect_fresh_start(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        since: u64,
        phase: Phase,
        when: &str,
    ) -> Result<(), Error> {
        self.await_probe(scenario, since, &self.cluster.blue_writer, RdsBgdProbeKind::Metadata)?;
        let mut steps = simulator::probe_steps(&scenario.simulator.probe_log_since(since)?);
        steps.truncate(2);
        let blue = self.cluster.blue_writer.endpoint();
        let expected = vec![(RdsBgdProbeKind::TableCheck, blue.clone()), (RdsBgdProbeKind::Metadata, blue)];
        tap.is(steps, expected, &format!("{when}: table check and metadata of the blue writer come first"));
        scenario.expect_status(tap, self.hostgroups.writer, phase.status());
        self.publish(scenario, Phase::Available)?;
        scenario.expect_status(tap, self.hostgroups.writer, Phase::Available.status());
        Ok(())
    }
}
