//! A deployment that is disabled during its switchover is rolled back and has no worker; enabled again, it starts afresh.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1410);

fn main() -> ExitCode {
    scenario::run(67, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };
        deployment.configure(scenario)?;
        for phase in Phase::ALL {
            test_disabled(tap, scenario, &deployment, phase)?;
            test_enabled_again(tap, scenario, &deployment, phase)?;
        }
        Ok(())
    })
}

fn test_disabled(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    deployment.reach(scenario, phase)?;
    deployment.expect_placement(tap, scenario, phase, phase.status())?;
    if phase == Phase::PostProcessing {
        deployment.expect_green_answers(tap, scenario, phase.status())?;
    }
    deployment.pool_green(scenario)?;
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, "active=0")?;
    let when = format!("disabled in {}", phase.status());
    let listed = scenario.admin.holds(&shown("active=0"))?;
    tap.ok(listed, &format!("{when}: LOAD shows it inactive"));
    let ended = scenario.admin.wait_until(&shown("active=0 AND status='NONE'"));
    tap.ok_result(ended, &format!("{when}: status NONE"));
    deployment.expect_rolled_back(tap, scenario, &when)?;
    deployment.expect_quiet(tap, scenario, &when)
}

fn test_enabled_again(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    let seen = scenario.simulator.probe_log_last_sequence()?;
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, "active=1")?;
    let when = format!("enabled again in {}", phase.status());
    deployment.expect_fresh_start(tap, scenario, seen, phase, &when)
}

/// The condition that the deployment is shown at runtime, and is `so`.
fn shown(so: &str) -> String {
    format!(
        "(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup={} AND {so})=1",
        HOSTGROUPS.writer
    )
}
