//! One explicit deployment as scenarios of loss and rollback use it: a writer, a reader with a green counterpart and one without, so
//! that each phase has all its effects.

use crate::admin::{self, Hostgroups};
use crate::connection::{EFFECT_TIMEOUT, Error, quote};
use crate::emitter::Emitter;
use crate::scenario::{self, Scenario};
use crate::simulator::{self, RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind, RdsBgdProbeLog};
use std::thread;
use std::time::Duration;

/// Five polls, or five read_only checks: long enough to see one that must not be.
pub const QUIET_WINDOW: Duration = Duration::from_millis(500);

/// What AWS publishes, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// AVAILABLE
    Available,
    /// SWITCHOVER_INITIATED
    Initiated,
    /// SWITCHOVER_IN_PROGRESS
    InProgress,
    /// SWITCHOVER_IN_POST_PROCESSING
    PostProcessing,
    /// SWITCHOVER_COMPLETED, of the target alone
    Completed,
}

impl Phase {
    /// From the first to the last.
    pub const ALL: [Self; 5] =
        [Self::Available, Self::Initiated, Self::InProgress, Self::PostProcessing, Self::Completed];

    /// AWS's word for it.
    pub fn published(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Initiated => "SWITCHOVER_INITIATED",
            Self::InProgress => "SWITCHOVER_IN_PROGRESS",
            Self::PostProcessing => "SWITCHOVER_IN_POST_PROCESSING",
            Self::Completed => "SWITCHOVER_COMPLETED",
        }
    }

    /// The status that a deployment has then.
    pub fn status(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Initiated => "WRITER_SWITCHOVER_INITIATED",
            Self::InProgress => "WRITER_SWITCHOVER_IN_PROGRESS",
            Self::PostProcessing => "WRITER_SWITCHOVER_POST_PROCESSING",
            Self::Completed => "READER_SWITCHOVER_IN_PROGRESS",
        }
    }
}

/// A cluster in the hostgroups of one deployment.
pub struct Deployment {
    /// Where
    pub hostgroups: Hostgroups,
    /// Who
    pub cluster: RdsBgdCluster,
}

impl Deployment {
    /// The reader that has a green counterpart.
    pub fn mapped_reader(&self) -> &RdsBgdHost {
        &self.cluster.blue_readers[0]
    }

    /// The reader whose green counterpart is not configured.
    pub fn unmapped_reader(&self) -> &RdsBgdHost {
        &self.cluster.blue_readers[1]
    }

    /// The mapped reader's counterpart.
    pub fn green_reader(&self) -> &RdsBgdHost {
        &self.cluster.green_readers[0]
    }

    /// Writer and readers.
    pub fn blue_servers(&self) -> [&RdsBgdHost; 3] {
        [&self.cluster.blue_writer, self.mapped_reader(), self.unmapped_reader()]
    }

    /// Configures servers and deployment, polled every 100 ms, and loads them to runtime.
    pub fn configure(&self, scenario: &mut Scenario) -> Result<(), Error> {
        self.configure_servers(scenario)?;
        admin::add_deployment(&mut scenario.admin, self.hostgroups)
    }

    /// Configures the servers alone and loads them to runtime. The unmapped reader has weight 0, so that it is known who answers in
    /// the reader hostgroup.
    pub fn configure_servers(&self, scenario: &mut Scenario) -> Result<(), Error> {
        scenario.simulator.read_only_update(&self.cluster.blue_writer.host_endpoint(), false)?;
        let Hostgroups { writer, reader, green_writer, green_reader } = self.hostgroups;
        let unmapped = self.unmapped_reader();
        scenario.admin.execute(&format!(
            "INSERT INTO mysql_servers(hostgroup_id,hostname,port,weight) VALUES ({reader},{},{},0)",
            quote(&unmapped.hostname),
            unmapped.port
        ))?;
        let members = [
            (writer, &self.cluster.blue_writer),
            (reader, self.mapped_reader()),
            (green_writer, &self.cluster.green_writer),
            (green_reader, self.green_reader()),
        ];
        admin::configure_pair(&mut scenario.admin, self.hostgroups, &members)
    }

    /// Both writers publish `phase`.
    pub fn publish(&self, scenario: &mut Scenario, phase: Phase) -> Result<(), Error> {
        match phase {
            Phase::Completed => scenario.publish_completed(&self.cluster),
            _ => scenario.publish(&self.cluster, phase.published()),
        }
    }

    /// Publishes one phase after the other up to `phase`, each when the one before has been taken up.
    pub fn reach(&self, scenario: &mut Scenario, phase: Phase) -> Result<(), Error> {
        for step in Phase::ALL.into_iter().filter(|step| *step <= phase) {
            self.publish(scenario, step)?;
            scenario.admin.wait_until(&admin::status_is(self.hostgroups.writer, step.status()))?;
        }
        Ok(())
    }

    /// The condition that the blue servers are placed as they are in `phase`; AVAILABLE is as configured.
    pub fn placement(&self, phase: Phase) -> String {
        let Hostgroups { writer, reader, .. } = self.hostgroups;
        let blue_writer = &self.cluster.blue_writer;
        let (place, other) = match phase {
            Phase::InProgress => (reader, writer),
            _ => (writer, reader),
        };
        let unmapped = match phase {
            Phase::PostProcessing | Phase::Completed => "status='SHUNNED_AWS_BGD'",
            _ => "status='ONLINE'",
        };
        format!(
            "{} AND {} AND {} AND {}",
            admin::online_in(place, blue_writer),
            admin::absent_from(other, blue_writer),
            admin::online_in(reader, self.mapped_reader()),
            admin::member_with(reader, self.unmapped_reader(), unmapped)
        )
    }

    /// The condition that both green servers are there.
    pub fn green_servers(&self) -> String {
        let Hostgroups { green_writer, green_reader, .. } = self.hostgroups;
        format!(
            "{} AND {}",
            admin::online_in(green_writer, &self.cluster.green_writer),
            admin::online_in(green_reader, self.green_reader())
        )
    }

    /// Opens a connection to each green server, and waits until it is pooled.
    pub fn pool_green(&self, scenario: &mut Scenario) -> Result<(), Error> {
        scenario.answering_ip(self.hostgroups.green_writer)?;
        scenario.answering_ip(self.hostgroups.green_reader)?;
        scenario.admin.wait_until(&self.green_pooled())
    }

    /// The condition that a connection to each green server is pooled.
    pub fn green_pooled(&self) -> String {
        let pooled = [&self.cluster.green_writer, self.green_reader()].map(admin::pooled);
        format!("{}>0 AND {}>0", pooled[0], pooled[1])
    }

    /// The condition that no connection to a green server is pooled.
    pub fn green_drained(&self) -> String {
        let pooled = [&self.cluster.green_writer, self.green_reader()].map(admin::pooled);
        format!("{}+{}=0", pooled[0], pooled[1])
    }

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

    /// The next probe of `server` after `since`.
    pub fn await_probe(
        &self,
        scenario: &mut Scenario,
        since: u64,
        server: &RdsBgdHost,
        kind: RdsBgdProbeKind,
    ) -> Result<RdsBgdProbeLog, Error> {
        scenario.simulator.wait_for_probe_log(since, &server.endpoint(), kind, EFFECT_TIMEOUT, None)
    }

    /// Waits for `count` probes of `server` from now on. What all but the last of them said has been acted upon by then.
    pub fn await_probes(
        &self,
        scenario: &mut Scenario,
        server: &RdsBgdHost,
        kind: RdsBgdProbeKind,
        count: usize,
    ) -> Result<(), Error> {
        let mut seen = scenario.simulator.probe_log_last_sequence()?;
        for _ in 0..count {
            seen = self.await_probe(scenario, seen, server, kind)?.sequence_id;
        }
        Ok(())
    }
}
