//! A deployment that vanishes during its switchover is rolled back and has no worker: its row is removed, or its blue writer, or
//! discovery made it and a LOAD ends it. What comes back starts afresh.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::RdsBgdHost;

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1420);
const NONE_SHOWN: &str = "(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups)=0";

fn main() -> ExitCode {
    scenario::run(97, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };
        deployment.configure(scenario)?;
        for phase in Phase::ALL {
            test_row_removed(tap, scenario, &deployment, phase)?;
        }
        for phase in [Phase::InProgress, Phase::PostProcessing] {
            let writer = &deployment.cluster.blue_writer;
            let offline = admin::update_server(writer, "status='OFFLINE_SOFT'");
            let offline = ("OFFLINE_SOFT", offline, Some((writer, "OFFLINE_SOFT")));
            test_writer_gone(tap, scenario, &deployment, phase, offline)?;
            let removed = ("removed", admin::remove_server(writer), None);
            test_writer_gone(tap, scenario, &deployment, phase, removed)?;
        }
        test_discovered(tap, scenario, &deployment)
    })
}

fn test_row_removed(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    deployment.expect_reached(tap, scenario, phase)?;
    admin::change_servers(&mut scenario.admin, &["DELETE FROM mysql_aws_rds_bgd_hostgroups".to_owned()])?;
    let when = format!("removed in {}", phase.status());
    tap.ok(scenario.admin.holds(NONE_SHOWN)?, &format!("{when}: LOAD shows it no more"));
    deployment.expect_rolled_back(tap, scenario, &when)?;
    deployment.expect_quiet(tap, scenario, &when)?;

    let seen = scenario.simulator.probe_log_last_sequence()?;
    admin::add_deployment(&mut scenario.admin, HOSTGROUPS)?;
    let when = format!("added again in {}", phase.status());
    deployment.expect_fresh_start(tap, scenario, seen, phase, &when)
}

/// The blue writer goes by `change` and comes back, ONLINE, while the topology still shows `phase`. `shown` is what is left of its hostgroup.
fn test_writer_gone(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
    (what, change, shown): (&str, String, Option<(&RdsBgdHost, &str)>),
) -> Result<(), Error> {
    let writer = &deployment.cluster.blue_writer;
    deployment.reach(scenario, phase)?;
    admin::change_servers(&mut scenario.admin, &[change])?;
    let when = format!("writer {what} in {}", phase.status());
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    expect_readers_back(tap, scenario, deployment, &when)?;
    scenario.expect_members(tap, HOSTGROUPS.writer, shown.as_slice(), &when)?;
    deployment.expect_quiet(tap, scenario, &when)?;

    let seen = scenario.simulator.probe_log_last_sequence()?;
    admin::put_server(&mut scenario.admin, HOSTGROUPS.writer, writer, "ONLINE")?;
    let when = format!("writer ONLINE again, {what} in {}", phase.status());
    deployment.expect_fresh_start(tap, scenario, seen, phase, &when)
}

/// One test: the readers, and they alone, are where they are configured.
fn expect_readers_back(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    when: &str,
) -> Result<(), Error> {
    let readers: Vec<(&RdsBgdHost, &str)> =
        deployment.cluster.blue_readers.iter().map(|reader| (reader, "ONLINE")).collect();
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, when)
}

/// Discovery is switched off before the LOAD, so that it does not make the deployment anew.
fn test_discovered(tap: &mut Emitter, scenario: &mut Scenario, deployment: &Deployment) -> Result<(), Error> {
    admin::change_servers(&mut scenario.admin, &["DELETE FROM mysql_aws_rds_bgd_hostgroups".to_owned()])?;
    admin::discover(&mut scenario.admin, 1, true)?;
    scenario.admin.wait_until(&admin::discovered_alone(HOSTGROUPS))?;
    deployment.reach(scenario, Phase::InProgress)?;
    deployment.expect_placement(tap, scenario, Phase::InProgress, "discovered, in progress")?;
    deployment.pool_green(scenario)?;
    admin::discover(&mut scenario.admin, 0, false)?;
    admin::change_servers(&mut scenario.admin, &[])?;
    let when = "discovered, ended by LOAD";
    tap.ok(scenario.admin.holds(NONE_SHOWN)?, &format!("{when}: LOAD shows it no more"));
    deployment.expect_rolled_back(tap, scenario, when)?;
    deployment.expect_quiet(tap, scenario, when)
}
