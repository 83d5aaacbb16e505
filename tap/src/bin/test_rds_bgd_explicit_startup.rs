//! A configured deployment has a worker only while its row and an eligible blue writer are both there, whichever came first.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::RdsBgdCluster;

const ROW_FIRST: Hostgroups = Hostgroups::starting_at(1140);
const SERVERS_FIRST: Hostgroups = Hostgroups::starting_at(1150);
/// Five polls: long enough to see a worker that must not be there.
const QUIET_WINDOW: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    scenario::run(15, |tap, scenario| {
        let first = hosts::cluster_1_green_a(scenario.server_port());
        let second = hosts::cluster_2(scenario.server_port());
        for cluster in [&first, &second] {
            scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
            scenario.simulator.topology_update(&cluster.get_writers(), &cluster.get_topology("AVAILABLE"))?;
        }
        test_row_first(tap, scenario, &first)?;
        test_servers_first(tap, scenario, &second)?;
        test_offline_writer(tap, scenario, &second)
    })
}

fn test_row_first(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    admin::configure_deployment(&mut scenario.admin, ROW_FIRST, &[])?;
    let none = admin::status_is(ROW_FIRST.writer, "NONE");
    tap.ok(scenario.admin.holds(&none)?, "row first: LOAD shows it at once, with status NONE");
    expect_quiet(tap, scenario, "row first")?;
    admin::put_server(&mut scenario.admin, ROW_FIRST.reader, &cluster.blue_readers[0], "ONLINE")?;
    expect_quiet(tap, scenario, "row first, then a reader")?;
    admin::put_server(&mut scenario.admin, ROW_FIRST.writer, &cluster.blue_writer, "ONLINE")?;
    expect_started(tap, scenario, ROW_FIRST, cluster)
}

fn test_servers_first(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let members =
        [(SERVERS_FIRST.writer, &cluster.blue_writer), (SERVERS_FIRST.reader, &cluster.blue_readers[0])];
    admin::configure_pair(&mut scenario.admin, SERVERS_FIRST, &members)?;
    let seen = scenario.simulator.probe_log_last_sequence()?;
    thread::sleep(QUIET_WINDOW);
    let blue = cluster.blue_writer.endpoint();
    let probes = scenario.simulator.probe_log_since(seen)?;
    tap.ok(probes.iter().all(|probe| probe.backend != blue), "servers first: they are not asked");
    admin::add_deployment(&mut scenario.admin, SERVERS_FIRST)?;
    expect_started(tap, scenario, SERVERS_FIRST, cluster)
}

fn test_offline_writer(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    admin::put_server(&mut scenario.admin, SERVERS_FIRST.writer, &cluster.blue_writer, "OFFLINE_SOFT")?;
    scenario.expect_status(tap, SERVERS_FIRST.writer, "NONE");
    let ended = scenario.simulator.probe_log_last_sequence()?;
    thread::sleep(QUIET_WINDOW);
    let writers = cluster.get_writers();
    let probes = scenario.simulator.probe_log_since(ended)?;
    tap.ok(
        probes.iter().all(|probe| !writers.contains(&probe.backend)),
        "OFFLINE_SOFT writer: nobody is asked",
    );
    admin::put_server(&mut scenario.admin, SERVERS_FIRST.writer, &cluster.blue_writer, "ONLINE")?;
    scenario.expect_status(tap, SERVERS_FIRST.writer, "AVAILABLE");
    Ok(())
}

/// Three tests: status, the green writer's row, and the direct probe.
fn expect_started(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    hostgroups: Hostgroups,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    let added = admin::online_in(hostgroups.green_writer, &cluster.green_writer);
    tap.ok(scenario.admin.holds(&added)?, "AVAILABLE: the green writer has been added");
    let what = "AVAILABLE: the green writer is asked directly";
    scenario.expect_probed(tap, &cluster.green_writer, None, what)
}

/// Two tests: nobody is asked for a topology, and no status has changed.
fn expect_quiet(tap: &mut Emitter, scenario: &mut Scenario, when: &str) -> Result<(), Error> {
    scenario.expect_quiet(tap, &format!("{when}: nobody is asked"))?;
    let none = admin::status_is(ROW_FIRST.writer, "NONE");
    tap.ok(scenario.admin.holds(&none)?, &format!("{when}: status NONE"));
    Ok(())
}
