//! An explicitly configured deployment whose topology is AVAILABLE: the worker finds the topology on the blue writer,
//! then watches the green writer directly.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::{Error, quote};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{self, RdsBgdCluster, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(970);

fn main() -> ExitCode {
    scenario::run(7, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let baseline = publish_available_topology(scenario, &cluster)?;
        configure_deployment(scenario, &cluster)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
        test_green_writer_row(tap, scenario, &cluster)?;
        test_probe_order(tap, scenario, &cluster, baseline)
    })
}

/// Returns the probe log's last sequence number before there is anything to probe.
fn publish_available_topology(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<u64, Error> {
    let simulator = &mut scenario.simulator;
    simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    simulator.topology_update(&cluster.get_writers(), &cluster.get_topology("AVAILABLE"))?;
    simulator.probe_log_last_sequence()
}

fn configure_deployment(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    let members = [(HOSTGROUPS.writer, &cluster.blue_writer), (HOSTGROUPS.reader, &cluster.blue_readers[0])];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_green_writer_row(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let admin = &mut scenario.admin;
    let green = &cluster.green_writer;
    let added = admin.wait_until(&admin::online_in(HOSTGROUPS.green_writer, green));
    tap.ok_result(added, "the green writer is added to its hostgroup at runtime");
    let configured = admin
        .number(&format!("SELECT COUNT(*) FROM mysql_servers WHERE hostname={}", quote(&green.hostname)))?;
    tap.is(configured, 0, "the green writer is not added to the configuration");
    let in_place = admin.holds(&admin::online_in(HOSTGROUPS.writer, &cluster.blue_writer))?;
    tap.ok(in_place, "the blue writer stays in the writer hostgroup");
    Ok(())
}

fn test_probe_order(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    baseline: u64,
) -> Result<(), Error> {
    let (blue, green) = (cluster.blue_writer.endpoint(), cluster.green_writer.endpoint());
    let mut wait_for_green = |after| scenario.wait_for_metadata(&cluster.green_writer, after, Some(false));
    let direct = wait_for_green(baseline).and_then(&mut wait_for_green);
    tap.ok_result(direct, "the green writer's address is probed directly, again and again");

    let probes = scenario.simulator.probe_log_since(baseline)?;
    let expected = [
        (RdsBgdProbeKind::TableCheck, blue.clone()),
        (RdsBgdProbeKind::Metadata, blue),
        (RdsBgdProbeKind::Metadata, green),
    ];
    tap.is(
        simulator::probe_steps(&probes),
        expected.into(),
        "table check on blue, metadata on blue, then only green",
    );
    tap.ok(probes.iter().all(|probe| !probe.encrypted), "no probe is encrypted while use_ssl is 0");
    Ok(())
}
