//! Names that change during a switchover: a green name that fails and recovers, a blue name that moves, a green name that
//! is removed. The names are in no hosts file, so that the simulated name server alone knows them.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tap::admin::{self, Hostgroups};
use tap::connection::{Error, quote};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdDnsAnswer, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1300);
/// Of servers that have no part in the deployment.
const OTHER_HOSTGROUP: u32 = 1310;

fn main() -> ExitCode {
    scenario::run(16, |tap, scenario| {
        let cluster = cluster(scenario.server_port());
        configure(scenario, &cluster)?;
        test_unresolved_green_writer(tap, scenario, &cluster)?;
        test_recovery_within_a_phase(tap, scenario, &cluster)?;
        test_blue_name_moves(tap, scenario, &cluster)?;
        test_drained(tap, scenario, &cluster)?;
        test_slow_answer(tap, scenario)?;
        test_answer_after_silence(tap, scenario)
    })
}

/// The writers of cluster 1 under names of this scenario's own.
fn cluster(port: u16) -> RdsBgdCluster {
    let named = |host: RdsBgdHost, hostname: &str| RdsBgdHost { hostname: hostname.to_owned(), ..host };
    let mapped = hosts::cluster_1_green_a(port);
    RdsBgdCluster {
        blue_writer: named(mapped.blue_writer, "db-1.scenario.test"),
        green_writer: named(mapped.green_writer, "db-1-green-iqu47r.scenario.test"),
        blue_readers: Vec::new(),
        green_readers: Vec::new(),
    }
}

fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.use_simulated_dns()?;
    let simulator = &mut scenario.simulator;
    simulator
        .dns_update(&cluster.blue_writer.hostname, &RdsBgdDnsAnswer::address(&cluster.blue_writer.ip))?;
    simulator.dns_update(&cluster.green_writer.hostname, &RdsBgdDnsAnswer::ServFail)?;
    simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    let members = [(HOSTGROUPS.writer, &cluster.blue_writer)];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_unresolved_green_writer(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.blue_writer, "the blue name")?;
    let asked = expect_probes(scenario, &cluster.blue_writer);
    tap.ok_result(asked, "the blue writer is asked while the green name fails");
    Ok(())
}

fn test_recovery_within_a_phase(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    for (published, status) in [
        ("SWITCHOVER_INITIATED", "WRITER_SWITCHOVER_INITIATED"),
        ("SWITCHOVER_IN_PROGRESS", "WRITER_SWITCHOVER_IN_PROGRESS"),
        ("SWITCHOVER_IN_POST_PROCESSING", "WRITER_SWITCHOVER_POST_PROCESSING"),
    ] {
        scenario.publish(cluster, published)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, status);
    }
    let green = cluster.green_writer.endpoint();
    let probes = scenario.simulator.probe_log_since(0)?;
    tap.ok(probes.iter().all(|probe| probe.backend != green), "nobody has asked the green writer so far");
    scenario
        .simulator
        .dns_update(&cluster.green_writer.hostname, &RdsBgdDnsAnswer::address(&cluster.green_writer.ip))?;
    let asked = expect_probes(scenario, &cluster.green_writer);
    tap.ok_result(asked, "the green writer is asked as soon as its name is known");
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.green_writer, "the pinned blue name")
}

/// AWS has moved the blue name when it says COMPLETED, and removes the green one afterwards.
fn test_blue_name_moves(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario
        .simulator
        .dns_update(&cluster.blue_writer.hostname, &RdsBgdDnsAnswer::address(&cluster.green_writer.ip))?;
    scenario.simulator.topology_update(&cluster.get_writers(), &cluster.get_completed_topology())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS");
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.green_writer, "the moved blue name")?;
    scenario.simulator.dns_update(&cluster.green_writer.hostname, &RdsBgdDnsAnswer::NxDomain)?;
    let asked = expect_probes(scenario, &cluster.green_writer);
    tap.ok_result(asked, "the green writer is asked on although its name is gone");
    Ok(())
}

fn test_drained(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.green_writer, "the moved blue name, afterwards,")
}

fn test_slow_answer(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    let server = hosts::cluster_2(scenario.server_port()).blue_writer;
    let server = RdsBgdHost { hostname: "slow.scenario.test".to_owned(), ..server };
    let addresses = vec![server.ip.clone()];
    let slow = RdsBgdDnsAnswer::Addresses { addresses, ttl: 1, delay: Duration::from_millis(200) };
    scenario.simulator.dns_update(&server.hostname, &slow)?;
    add_server(scenario, &server)?;
    scenario.expect_answer(tap, OTHER_HOSTGROUP, &server, "a name whose address takes a while")
}

fn test_answer_after_silence(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    let server = hosts::cluster_3(scenario.server_port()).blue_writer;
    let server = RdsBgdHost { hostname: "silent.scenario.test".to_owned(), ..server };
    scenario.simulator.dns_update(&server.hostname, &RdsBgdDnsAnswer::Drop)?;
    scenario.admin.execute(&format!("DELETE FROM mysql_servers WHERE hostgroup_id={OTHER_HOSTGROUP}"))?;
    add_server(scenario, &server)?;
    admin::route_clients(&mut scenario.admin, &scenario.command_line.client.username, OTHER_HOSTGROUP)?;
    let mut client = scenario.command_line.connect_traffic()?;
    let held = thread::scope(|scope| {
        let held = scope.spawn(move || scenario::routing_echo(&mut client));
        let waits = format!(
            "(SELECT COUNT(*) FROM stats_mysql_processlist WHERE info={})=1",
            quote(scenario::ROUTING_ECHO)
        );
        scenario.admin.wait_until(&waits)?;
        scenario.simulator.dns_update(&server.hostname, &RdsBgdDnsAnswer::address(&server.ip))?;
        held.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    tap.is(held.ok(), Some(server.ip), "a statement waits for a name that is not answered at first");
    Ok(())
}

fn add_server(scenario: &mut Scenario, server: &RdsBgdHost) -> Result<(), Error> {
    admin::change_servers(&mut scenario.admin, &[admin::add_server(OTHER_HOSTGROUP, server)])
}

/// Waits for two metadata probes of `server` after now: the second was begun when the first was answered.
fn expect_probes(scenario: &mut Scenario, server: &RdsBgdHost) -> Result<(), Error> {
    let seen = scenario.simulator.probe_log_last_sequence()?;
    scenario.wait_for_probes(server, RdsBgdProbeKind::Metadata, seen, 2)
}
