//! Cancellation: a target status of an earlier phase, or an unknown one, puts everything back and leaves green servers alone; a result
//! without a target does not. A whole switchover is possible afterwards.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1430);

fn main() -> ExitCode {
    scenario::run(118, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };
        deployment.configure(scenario)?;
        for phase in [Phase::Initiated, Phase::InProgress, Phase::PostProcessing, Phase::Completed] {
            test_available_again(tap, scenario, &deployment, phase, "green writer configured")?;
        }
        remove_green_writer(scenario, &deployment)?;
        for phase in [Phase::Initiated, Phase::InProgress] {
            test_available_again(tap, scenario, &deployment, phase, "green writer added")?;
        }
        test_earlier_phase(tap, scenario, &deployment)?;
        for phase in [Phase::InProgress, Phase::PostProcessing] {
            test_unknown_status(tap, scenario, &deployment, phase)?;
        }
        test_restored_without_checks(tap, scenario, &deployment)?;
        test_no_target(tap, scenario, &deployment)?;
        test_switchover(tap, scenario, &deployment)
    })
}

/// The monitor adds it again, at run time only.
fn remove_green_writer(scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    let green_writer = HOSTGROUPS.green_writer;
    let removal = format!("DELETE FROM mysql_servers WHERE hostgroup_id={green_writer}");
    admin::change_servers(&mut scenario.admin, &[removal])?;
    scenario.admin.wait_until(&admin::online_in(green_writer, &deployment.cluster.green_writer))
}

fn test_available_again(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
    green: &str,
) -> Result<(), Error> {
    deployment.expect_reached(tap, scenario, phase)?;
    deployment.publish(scenario, Phase::Available)?;
    let when = format!("{green}, AVAILABLE after {}", phase.status());
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    deployment.expect_rolled_back(tap, scenario, &when)?;
    let green_writer = &deployment.cluster.green_writer;
    scenario.expect_probed(tap, green_writer, None, &format!("{when}: the green writer is asked"))
}

/// What is before INITIATED is not AVAILABLE: the deployment is rolled back to NONE, and enters the earlier phase from there.
fn test_earlier_phase(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    deployment.reach(scenario, Phase::PostProcessing)?;
    deployment.expect_green_answers(tap, scenario, "POST_PROCESSING")?;
    deployment.publish(scenario, Phase::Initiated)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Initiated.status());
    let when = "INITIATED after POST_PROCESSING";
    deployment.expect_placement(tap, scenario, Phase::Initiated, when)?;
    deployment.expect_blue_answers(tap, scenario, when)?;
    deployment.expect_suppressed(tap, scenario, when)
}

fn test_unknown_status(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    deployment.expect_reached(tap, scenario, phase)?;
    scenario.publish(&deployment.cluster, "PROVISIONING")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    let when = format!("unknown status after {}", phase.status());
    deployment.expect_rolled_back(tap, scenario, &when)?;
    // The topology is there, and read again and again; the status stays.
    let blue = &deployment.cluster.blue_writer;
    scenario.expect_probed(tap, blue, None, &format!("{when}: the blue writer is asked"))?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    Ok(())
}

fn test_restored_without_checks(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    for (published, status) in [("AVAILABLE", "AVAILABLE"), ("PROVISIONING", "NONE")] {
        let end = |scenario: &mut Scenario| scenario.publish(&deployment.cluster, published);
        deployment.expect_restored_without_checks(tap, scenario, (end, status), published)?;
    }
    Ok(())
}

/// NONE, and read_only is checked again, but pins and shuns stand until a target is there again.
fn test_no_target(tap: &mut Emitter, scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    let writers = deployment.cluster.get_writers();
    let mut source = deployment.cluster.get_topology("SWITCHOVER_IN_POST_PROCESSING");
    source.truncate(1);
    for (topology, what) in [(deployment.cluster.get_topology(""), "empty status"), (source, "no target")] {
        deployment.reach(scenario, Phase::PostProcessing)?;
        scenario.simulator.topology_update(&writers, &topology)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
        deployment.expect_monitored(tap, scenario, what);
        deployment.expect_placement(tap, scenario, Phase::PostProcessing, what)?;
        deployment.expect_green_answers(tap, scenario, what)?;
        deployment.publish(scenario, Phase::Available)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
        let when = format!("AVAILABLE after {what}");
        deployment.expect_placement(tap, scenario, Phase::Available, &when)?;
        deployment.expect_blue_answers(tap, scenario, &when)?;
    }
    Ok(())
}

fn test_switchover(tap: &mut Emitter, scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    for phase in Phase::ALL {
        deployment.publish(scenario, phase)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, phase.status());
        deployment.expect_placement(tap, scenario, phase, "afterwards")?;
        if phase == Phase::PostProcessing {
            deployment.expect_green_answers(tap, scenario, "afterwards")?;
        }
    }
    deployment.pool_green(scenario)?;
    scenario.simulator.topology_delete(&deployment.cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    tap.ok(scenario.admin.holds(&deployment.green_drained())?, "afterwards: green pools are drained");
    deployment.expect_placement(tap, scenario, Phase::Available, "afterwards")
}
