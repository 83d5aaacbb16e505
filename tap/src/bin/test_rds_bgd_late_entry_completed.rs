//! A worker that sees COMPLETED first has missed the switchover: it waits for the topology to drain, without a map. Nothing is pinned
//! or moved, green is not asked, and the end drains green pools all the same.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1470);
/// Twelve polls: long enough to see one of green, which would be the next at the latest.
const BLUE_WINDOW: Duration = Duration::from_millis(1200);

fn main() -> ExitCode {
    scenario::run(34, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };
        let writers = deployment.cluster.get_writers();

        let when = "writer in use";
        let writer = (HOSTGROUPS.writer, &deployment.cluster.blue_writer);
        enter_late(tap, scenario, &deployment, writer, when)?;
        scenario.simulator.topology_delete(&writers)?;
        test_drained(tap, scenario, &deployment, when)?;

        let when = "reader in use";
        let reader = (HOSTGROUPS.reader, deployment.mapped_reader());
        enter_late(tap, scenario, &deployment, reader, when)?;
        scenario.simulator.topology_drop(&writers)?;
        test_drained(tap, scenario, &deployment, when)?;

        test_discovered(tap, scenario, &deployment)
    })
}

/// Nine tests. Clients have opened connections to green and to one of the blue hostgroups, with its server, before the deployment is there;
/// the other one shows where new connections go.
fn enter_late(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    (hostgroup, server): (u32, &RdsBgdHost),
    when: &str,
) -> Result<(), Error> {
    scenario.clean_up()?;
    deployment.publish(scenario, Phase::Completed)?;
    deployment.configure_servers(scenario)?;
    deployment.expect_monitored(tap, scenario, "no deployment");
    scenario.answering_ip(hostgroup)?;
    let in_use = format!("{}>0", admin::pooled(server));
    scenario.admin.wait_until(&in_use)?;
    deployment.pool_green(scenario)?;

    let seen = scenario.simulator.probe_log_last_sequence()?;
    admin::add_deployment(&mut scenario.admin, HOSTGROUPS)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Completed.status());
    thread::sleep(BLUE_WINDOW);
    deployment.expect_placement(tap, scenario, Phase::Available, when)?;
    let kept = scenario.admin.holds(&format!("{in_use} AND {}", deployment.green_pooled()))?;
    tap.ok(kept, &format!("{when}: no connection is drained"));
    deployment.expect_blue_answers(tap, scenario, when)?;
    deployment.expect_monitored(tap, scenario, when);
    let blue = deployment.cluster.blue_writer.endpoint();
    let steps = scenario.probe_steps_since(seen)?;
    let expected = vec![(RdsBgdProbeKind::TableCheck, blue.clone()), (RdsBgdProbeKind::Metadata, blue)];
    tap.is(steps, expected, &format!("{when}: the blue writer alone is asked"));
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Completed.status());
    Ok(())
}

/// Six tests.
fn test_drained(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    when: &str,
) -> Result<(), Error> {
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    deployment.expect_completed(tap, scenario, when)?;
    let blue = [&deployment.cluster.blue_writer, deployment.mapped_reader()].map(admin::pooled);
    let kept = scenario.admin.holds(&format!("{}>0 AND {}>0", blue[0], blue[1]))?;
    tap.ok(kept, &format!("{when}: connections by blue names are kept"));
    Ok(())
}

/// A deployment that discovery finds in COMPLETED has no green hostgroups to drain.
fn test_discovered(tap: &mut Emitter, scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    scenario.clean_up()?;
    deployment.publish(scenario, Phase::Completed)?;
    deployment.configure_servers(scenario)?;
    deployment.pool_green(scenario)?;
    admin::discover(&mut scenario.admin, 1, true)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Completed.status());
    scenario.simulator.topology_delete(&deployment.cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    let kept = scenario.admin.holds(&deployment.green_pooled())?;
    tap.ok(kept, "discovered: connections to green are kept");
    deployment.expect_placement(tap, scenario, Phase::Available, "discovered")
}
