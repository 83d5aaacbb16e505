//! What a scenario expects of its deployment, as tests.

use super::{Deployment, Phase};
use crate::admin;
use crate::connection::Error;
use crate::emitter::Emitter;
use crate::scenario::Scenario;
use crate::simulator::{RdsBgdHost, RdsBgdProbeKind};

impl Deployment {
    /// One test: read_only of every blue server is checked from now on.
    pub fn expect_monitored(&self, tap: &mut Emitter, scenario: &mut Scenario, when: &str) {
        let what = format!("{when}: read_only of every blue server is checked");
        scenario.expect_monitored(tap, &self.blue_servers(), &what);
    }

    /// One test: read_only of no blue server is checked for a while.
    pub fn expect_suppressed(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        let what = format!("{when}: read_only of no blue server is checked");
        scenario.expect_unmonitored(tap, &self.blue_servers(), &what)
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

    /// One test: in `phase` the blue servers are placed as they should be. Connections to green servers are pooled then.
    pub fn expect_reached(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        phase: Phase,
    ) -> Result<(), Error> {
        self.reach(scenario, phase)?;
        self.expect_placement(tap, scenario, phase, phase.status())?;
        self.pool_green(scenario)
    }

    /// Two tests: `end` takes IN_PROGRESS to `status`, and the demoted writer is back. A check of read_only would put it back, too:
    /// there are none meanwhile, so the deployment does it.
    pub fn expect_restored_without_checks(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        (end, status): (impl FnOnce(&mut Scenario) -> Result<(), Error>, &str),
        ending: &str,
    ) -> Result<(), Error> {
        admin::check_read_only_every(&mut scenario.admin, 60_000)?;
        self.reach(scenario, Phase::InProgress)?;
        end(scenario)?;
        scenario.expect_status(tap, self.hostgroups.writer, status);
        let when = format!("{ending} without checks of read_only");
        self.expect_placement(tap, scenario, Phase::Available, &when)?;
        admin::check_read_only_every(&mut scenario.admin, 100)
    }

    /// Two tests: new clients of the blue hostgroups are answered by blue servers.
    pub fn expect_blue_answers(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        self.expect_answers(tap, scenario, [&self.cluster.blue_writer, self.mapped_reader()], when)
    }

    /// Two tests: new clients of the blue hostgroups are answered by green servers.
    pub fn expect_green_answers(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        when: &str,
    ) -> Result<(), Error> {
        self.expect_answers(tap, scenario, [&self.cluster.green_writer, self.green_reader()], when)
    }

    fn expect_answers(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        [writer, reader]: [&RdsBgdHost; 2],
        when: &str,
    ) -> Result<(), Error> {
        let hostgroups = self.hostgroups;
        scenario.expect_answer(tap, hostgroups.writer, writer, &format!("{when}: writer hostgroup"))?;
        scenario.expect_answer(tap, hostgroups.reader, reader, &format!("{when}: reader hostgroup"))
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
        scenario.expect_quiet(tap, &format!("{when}: nobody is asked for the topology"))
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
        scenario.wait_for_metadata(&self.cluster.blue_writer, since, None)?;
        let mut steps = scenario.probe_steps_since(since)?;
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
