//! Three deployments at once, each in a phase and with TLS settings of its own. One moves, and nothing of the others changes: status,
//! placement, pools, routing, suppression, probes.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdProbeLog};

/// What is published: a deployment's next phase, or (None) an empty topology. Each is in another phase most of the time, and each meets
/// the end of another: 0 completes while 1 is rolled back and 2 is in post-processing.
const STEPS: [(usize, Option<Phase>); 15] = [
    (0, Some(Phase::Initiated)),
    (1, Some(Phase::Initiated)),
    (0, Some(Phase::InProgress)),
    (2, Some(Phase::Initiated)),
    (0, Some(Phase::PostProcessing)),
    (1, Some(Phase::InProgress)),
    (2, Some(Phase::InProgress)),
    (0, Some(Phase::Completed)),
    (2, Some(Phase::PostProcessing)),
    (1, Some(Phase::Available)),
    (0, None),
    (1, Some(Phase::Initiated)),
    (2, None),
    (1, Some(Phase::PostProcessing)),
    (1, None),
];
/// Tests of each step.
const TESTS: usize = 1 + 3 * 3 + 1;

/// One of the three.
struct Concurrent {
    deployment: Deployment,
    /// use_ssl of the blue and of the green writer
    tls: (bool, bool),
    phase: Option<Phase>,
    /// When its read_only checks were suspended, in µs of the epoch
    suspended: Option<u128>,
    /// Whether it has completed, and so drained its green pools
    succeeded: bool,
}

/// What is seen of one.
#[derive(Debug, PartialEq)]
struct Facts {
    status: Option<String>,
    placed: bool,
    green_pooled: bool,
    /// Who answers in the writer hostgroup, where that is certain
    answering: Option<String>,
}

fn main() -> ExitCode {
    scenario::run((1 + STEPS.len()) * TESTS + 2, |tap, scenario| {
        let port = scenario.server_port();
        let mut all = [
            Concurrent::new(1710, hosts::cluster_1_green_a(port), (false, false)),
            Concurrent::new(1720, hosts::cluster_2(port), (false, true)),
            Concurrent::new(1730, hosts::cluster_3(port), (true, false)),
        ];
        for one in &all {
            one.configure(scenario)?;
        }
        for one in &all {
            scenario.expect_status(tap, one.writer_hostgroup(), "AVAILABLE");
            one.deployment.pool_green(scenario)?;
        }
        test_all(tap, scenario, &all, "AVAILABLE")?;
        for (moving, phase) in STEPS {
            all[moving].enter(tap, scenario, phase)?;
            let when = format!("deployment {moving} is in {}", status_of(phase));
            test_all(tap, scenario, &all, &when)?;
        }
        Ok(())
    })
}

fn status_of(phase: Option<Phase>) -> &'static str {
    phase.map_or("NONE", Phase::status)
}

impl Concurrent {
    fn new(first_hostgroup: u32, cluster: RdsBgdCluster, tls: (bool, bool)) -> Self {
        Self {
            deployment: Deployment { hostgroups: Hostgroups::starting_at(first_hostgroup), cluster },
            tls,
            phase: Some(Phase::Available),
            suspended: None,
            succeeded: false,
        }
    }

    fn writer_hostgroup(&self) -> u32 {
        self.deployment.hostgroups.writer
    }

    fn configure(&self, scenario: &mut Scenario) -> Result<(), Error> {
        self.deployment.publish(scenario, Phase::Available)?;
        self.deployment.configure_servers(scenario)?;
        let Hostgroups { writer, green_writer, .. } = self.deployment.hostgroups;
        for (hostgroup, tls) in [(writer, self.tls.0), (green_writer, self.tls.1)] {
            let tls = u8::from(tls);
            let set = format!("UPDATE mysql_servers SET use_ssl={tls} WHERE hostgroup_id={hostgroup}");
            scenario.admin.execute(&set)?;
        }
        admin::add_deployment(&mut scenario.admin, self.deployment.hostgroups)
    }

    /// One test: it takes up what is published.
    fn enter(
        &mut self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        phase: Option<Phase>,
    ) -> Result<(), Error> {
        match phase {
            Some(phase) => self.deployment.publish(scenario, phase)?,
            None => scenario.simulator.topology_delete(&self.deployment.cluster.get_writers())?,
        }
        scenario.expect_status(tap, self.writer_hostgroup(), status_of(phase));
        self.succeeded |= phase.is_none() && self.phase == Some(Phase::Completed);
        self.phase = phase;
        match phase {
            None | Some(Phase::Available) => self.suspended = None,
            Some(_) => self.suspended = self.suspended.or_else(|| Some(scenario::now_us())),
        }
        Ok(())
    }

    fn expected(&self) -> Facts {
        let cluster = &self.deployment.cluster;
        let answering = match self.phase {
            Some(Phase::Available | Phase::Initiated) => Some(cluster.blue_writer.ip.clone()),
            Some(Phase::PostProcessing) => Some(cluster.green_writer.ip.clone()),
            // Nobody, or whoever it was when a pooled connection was opened.
            None | Some(Phase::InProgress | Phase::Completed) => None,
        };
        let status = Some(status_of(self.phase).to_owned());
        Facts { status, placed: true, green_pooled: !self.succeeded, answering }
    }

    fn facts(&self, scenario: &mut Scenario, answers: bool) -> Result<Facts, Error> {
        let placement = self.deployment.placement(self.phase.unwrap_or(Phase::Available));
        let status = scenario.admin.scalar(&admin::status_query(self.writer_hostgroup()))?;
        let placed = scenario.admin.holds(&placement)?;
        let green_pooled = scenario.admin.holds(&self.deployment.green_pooled())?;
        let answering = answers.then(|| scenario.answering_ip(self.writer_hostgroup())).transpose()?;
        Ok(Facts { status, placed, green_pooled, answering })
    }

    /// One test: read_only of its blue servers is checked, or has not been since it was suspended.
    fn test_read_only(&self, tap: &mut Emitter, scenario: &mut Scenario, when: &str) -> Result<(), Error> {
        let Some(since) = self.suspended else {
            self.deployment.expect_monitored(tap, scenario, when);
            return Ok(());
        };
        let what = format!("{when}: read_only of no server is checked");
        scenario.expect_unmonitored_since(tap, &self.deployment.blue_servers(), since, &what)
    }

    /// Whether one of its writers was asked, with that one's TLS setting.
    fn may_cause(&self, probe: &RdsBgdProbeLog) -> bool {
        let cluster = &self.deployment.cluster;
        [(&cluster.blue_writer, self.tls.0), (&cluster.green_writer, self.tls.1)]
            .into_iter()
            .any(|(writer, tls)| writer.endpoint() == probe.backend && tls == probe.encrypted)
    }

    /// One test: the server that is to be asked is asked, with its TLS setting.
    fn test_probe(
        &self,
        tap: &mut Emitter,
        scenario: &mut Scenario,
        since: u64,
        when: &str,
    ) -> Result<(), Error> {
        let cluster = &self.deployment.cluster;
        let (server, tls) = match self.phase {
            Some(_) => (&cluster.green_writer, self.tls.1),
            None => (&cluster.blue_writer, self.tls.0),
        };
        let probe = scenario.wait_for_metadata(server, since, Some(tls));
        tap.ok_result(probe, &format!("{when}: {} is asked, TLS {tls}", server.ip));
        Ok(())
    }
}

/// Everything of every deployment, whichever has moved.
fn test_all(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    all: &[Concurrent; 3],
    when: &str,
) -> Result<(), Error> {
    let since = scenario.simulator.probe_log_last_sequence()?;
    for one in all {
        let expected = one.expected();
        let facts = one.facts(scenario, expected.answering.is_some())?;
        tap.is(facts, expected, &format!("{when}: hostgroup {}", one.writer_hostgroup()));
    }
    for one in all {
        let when = format!("{when}: hostgroup {}", one.writer_hostgroup());
        one.test_read_only(tap, scenario, &when)?;
        one.test_probe(tap, scenario, since, &when)?;
    }
    let mut probes = scenario.simulator.probe_log_since(since)?;
    probes.retain(|probe| !all.iter().any(|one| one.may_cause(probe)));
    if !tap.ok(probes.is_empty(), &format!("{when}: nobody else is asked, nor with another TLS setting")) {
        tap.diag(&format!("others: {probes:?}"));
    }
    Ok(())
}
