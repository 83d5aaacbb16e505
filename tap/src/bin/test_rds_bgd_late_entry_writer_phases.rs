//! A worker that starts during the writer's switchover does what the phase that it sees first asks for, and nothing of later ones.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::RdsBgdProbeKind;

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1460);

fn main() -> ExitCode {
    scenario::run(54, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };

        enter_late(tap, scenario, &deployment, Phase::Initiated)?;
        deployment.expect_blue_answers(tap, scenario, "SWITCHOVER_INITIATED first")?;
        for phase in [Phase::InProgress, Phase::PostProcessing, Phase::Completed] {
            expect_next(tap, scenario, &deployment, phase, phase)?;
        }
        test_drained(tap, scenario, &deployment)?;

        // Without post-processing no reader is shunned; the writer is back all the same.
        enter_late(tap, scenario, &deployment, Phase::InProgress)?;
        expect_next(tap, scenario, &deployment, Phase::Completed, Phase::Available)?;
        scenario.expect_probed(
            tap,
            &deployment.cluster.green_writer,
            None,
            "COMPLETED: green is still asked",
        )?;
        test_drained(tap, scenario, &deployment)?;

        enter_late(tap, scenario, &deployment, Phase::PostProcessing)?;
        deployment.expect_green_answers(tap, scenario, "SWITCHOVER_IN_POST_PROCESSING first")?;
        expect_next(tap, scenario, &deployment, Phase::Completed, Phase::Completed)?;
        test_drained(tap, scenario, &deployment)
    })
}

/// Eight tests. Topology and servers are there before the deployment, and clients have opened connections to blue and green. The
/// green writer is not configured.
fn enter_late(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    scenario.clean_up()?;
    deployment.publish(scenario, phase)?;
    deployment.configure_servers(scenario)?;
    let removal = format!("DELETE FROM mysql_servers WHERE hostgroup_id={}", HOSTGROUPS.green_writer);
    admin::change_servers(&mut scenario.admin, &[removal])?;
    deployment.expect_monitored(tap, scenario, "no deployment");
    for hostgroup in [HOSTGROUPS.writer, HOSTGROUPS.reader, HOSTGROUPS.green_reader] {
        scenario.answering_ip(hostgroup)?;
    }
    let (writer, green_writer) = (&deployment.cluster.blue_writer, &deployment.cluster.green_writer);
    let [blue, reader, green] =
        [writer, deployment.mapped_reader(), deployment.green_reader()].map(admin::pooled);
    scenario.admin.wait_until(&format!("{blue}>0 AND {reader}>0 AND {green}>0"))?;

    let seen = scenario.simulator.probe_log_last_sequence()?;
    admin::add_deployment(&mut scenario.admin, HOSTGROUPS)?;
    let when = format!("{} first", phase.published());
    scenario.expect_status(tap, HOSTGROUPS.writer, phase.status());
    deployment.expect_placement(tap, scenario, phase, &when)?;
    let added = scenario.admin.holds(&admin::online_in(HOSTGROUPS.green_writer, green_writer))?;
    tap.ok(added, &format!("{when}: the green writer has been added"));
    let (pools, what) = match phase {
        Phase::PostProcessing => (format!("{blue}+{reader}=0"), "drained"),
        _ => (format!("{reader}>0"), "kept"),
    };
    tap.ok(scenario.admin.holds(&pools)?, &format!("{when}: connections to mapped servers are {what}"));
    tap.ok(scenario.admin.holds(&format!("{green}>0"))?, &format!("{when}: connections to green are kept"));
    scenario.wait_for_metadata(green_writer, seen, None)?;
    let steps = scenario.probe_steps_since(seen)?;
    let expected = vec![
        (RdsBgdProbeKind::TableCheck, writer.endpoint()),
        (RdsBgdProbeKind::Metadata, writer.endpoint()),
        (RdsBgdProbeKind::Metadata, green_writer.endpoint()),
    ];
    tap.is(steps, expected, &format!("{when}: who is asked"));
    deployment.expect_suppressed(tap, scenario, &when)
}

/// Two tests: status and placement once `phase` is published.
fn expect_next(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
    placed_as: Phase,
) -> Result<(), Error> {
    deployment.publish(scenario, phase)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, phase.status());
    deployment.expect_placement(tap, scenario, placed_as, phase.published())
}

/// Five tests: the switchover ends as any other.
fn test_drained(tap: &mut Emitter, scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    deployment.pool_green(scenario)?;
    scenario.simulator.topology_delete(&deployment.cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    deployment.expect_completed(tap, scenario, "drained")
}
