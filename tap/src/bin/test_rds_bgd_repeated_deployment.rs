//! One deployment after the other in the same hostgroups, with the worker of the one before and with a new worker: of the one before
//! nothing is left, neither servers nor probes, pins, connections or suppression.

use std::process::ExitCode;
use std::thread;
use std::time::Instant;
use tap::admin::{self, Hostgroups};
use tap::connection::{EFFECT_TIMEOUT, Error};
use tap::deployment::Drain;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, QUIET_WINDOW, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1690);
/// For each turn, from here on, a hostgroup with the blue writer alone and one with the blue reader alone: their connections are opened
/// after the turn's switchover, and lead where the names lead then.
const ALONE: u32 = 1695;

/// One deployment, from its publication to the drained topology.
struct Turn {
    deployment: Green,
    /// Whether the row is disabled and enabled again before it
    new_worker: bool,
    /// Whether the worker asks for the table before it asks for its rows: a new one does, and one that has seen it vanish
    asks_for_table: bool,
    /// Its end
    drain: Drain,
}

/// The green deployments of cluster 1.
#[derive(Clone, Copy, PartialEq)]
enum Green {
    A,
    B,
}

const TURNS: [Turn; 4] = [
    Turn { deployment: Green::A, new_worker: false, asks_for_table: true, drain: Drain::Empty },
    Turn { deployment: Green::B, new_worker: false, asks_for_table: false, drain: Drain::Absent },
    Turn { deployment: Green::A, new_worker: false, asks_for_table: true, drain: Drain::Empty },
    Turn { deployment: Green::B, new_worker: true, asks_for_table: true, drain: Drain::Empty },
];

fn main() -> ExitCode {
    scenario::run(TURNS.len() * 21, |tap, scenario| {
        let port = scenario.server_port();
        let (a, b) = (hosts::cluster_1_green_a(port), hosts::cluster_1_green_b(port));
        configure(scenario, &a)?;
        for (turn, alone) in TURNS.iter().zip((ALONE..).step_by(2)) {
            let (cluster, other) = if turn.deployment == Green::A { (&a, &b) } else { (&b, &a) };
            let began = prepare(scenario, cluster, turn)?;
            test_switchover(tap, scenario, cluster)?;
            test_drained(tap, scenario, cluster, turn, alone)?;
            test_probes(tap, scenario, other, turn, began)?;
        }
        Ok(())
    })
}

/// The blue servers, of which both deployments are the counterparts. There is no topology yet.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    let (writer, reader) = (&cluster.blue_writer, &cluster.blue_readers[0]);
    let mut members = vec![(HOSTGROUPS.writer, writer), (HOSTGROUPS.reader, reader)];
    for alone in (ALONE..).step_by(2).take(TURNS.len()) {
        members.extend([(alone, writer), (alone + 1, reader)]);
    }
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

/// Replaces the green servers, and the worker if the turn is to have a new one. The probes after the returned one are the turn's: a new
/// worker asks as soon as it is there.
fn prepare(scenario: &mut Scenario, cluster: &RdsBgdCluster, turn: &Turn) -> Result<u64, Error> {
    if turn.new_worker {
        admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, "active=0")?;
        wait_until_quiet(scenario)?;
    }
    let began = scenario.simulator.probe_log_last_sequence()?;
    let Hostgroups { writer, green_writer, green_reader, .. } = HOSTGROUPS;
    scenario.admin.execute(&format!(
        "DELETE FROM mysql_servers WHERE hostgroup_id IN ({green_writer},{green_reader})"
    ))?;
    admin::insert_server(&mut scenario.admin, green_writer, &cluster.green_writer, "ONLINE")?;
    admin::insert_server(&mut scenario.admin, green_reader, &cluster.green_readers[0], "ONLINE")?;
    admin::set_deployment(&mut scenario.admin, writer, "active=1")?;
    Ok(began)
}

/// Waits until the worker has ended, which nothing tells but that it asks no more.
fn wait_until_quiet(scenario: &mut Scenario) -> Result<(), Error> {
    let deadline = Instant::now() + EFFECT_TIMEOUT;
    loop {
        let seen = scenario.simulator.probe_log_last_sequence()?;
        thread::sleep(QUIET_WINDOW);
        if scenario.simulator.probe_log_since(seen)?.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let (endpoint, awaited) =
                (scenario.command_line.simulator.clone(), "the worker's end".to_owned());
            return Err(Error::Timeout { endpoint, awaited, waited: EFFECT_TIMEOUT });
        }
    }
}

fn test_switchover(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    let (writer, reader) = (&cluster.blue_writer, &cluster.blue_readers[0]);
    scenario.publish(cluster, "AVAILABLE")?;
    expect(tap, scenario, "AVAILABLE");
    expect_green_members(tap, scenario, cluster, "AVAILABLE")?;
    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_IN_PROGRESS");
    scenario.expect_members(tap, HOSTGROUPS.writer, &[], "IN_PROGRESS")?;
    scenario.expect_members(
        tap,
        HOSTGROUPS.reader,
        &[(writer, "ONLINE"), (reader, "ONLINE")],
        "IN_PROGRESS",
    )?;
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.green_writer, "POST_PROCESSING: the writer")?;
    scenario.expect_answer(
        tap,
        HOSTGROUPS.reader,
        &cluster.green_readers[0],
        "POST_PROCESSING: the reader",
    )?;
    scenario.publish_completed(cluster)?;
    expect(tap, scenario, "READER_SWITCHOVER_IN_PROGRESS");
    Ok(())
}

fn test_drained(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    turn: &Turn,
    alone: u32,
) -> Result<(), Error> {
    let (writer, reader) = (&cluster.blue_writer, &cluster.blue_readers[0]);
    scenario.expect_answer(tap, HOSTGROUPS.green_writer, &cluster.green_writer, "the green hostgroup")?;
    scenario.expect_pooled(tap, &cluster.green_writer, "its connection is pooled");
    turn.drain.happen(scenario, cluster)?;
    expect(tap, scenario, "NONE");
    let drained = scenario.admin.holds(&format!("{}=0", admin::pooled(&cluster.green_writer)))?;
    tap.ok(drained, "drained: no connections to the green writer");
    scenario.expect_members(tap, HOSTGROUPS.writer, &[(writer, "ONLINE")], "drained")?;
    scenario.expect_members(tap, HOSTGROUPS.reader, &[(reader, "ONLINE")], "drained")?;
    scenario.expect_answer(tap, alone, writer, "drained: the writer's name")?;
    scenario.expect_answer(tap, alone + 1, reader, "drained: the reader's name")?;
    scenario.expect_monitored(tap, &[writer, reader], "drained: read_only is checked again");
    Ok(())
}

/// Two tests: the worker has begun as it should, and nothing of the other deployment was asked or has connections.
fn test_probes(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    other: &RdsBgdCluster,
    turn: &Turn,
    began: u64,
) -> Result<(), Error> {
    let probes = scenario.simulator.probe_log_since(began)?;
    let first = probes.first().map(|probe| probe.probe_kind);
    let kind = if turn.asks_for_table { RdsBgdProbeKind::TableCheck } else { RdsBgdProbeKind::Metadata };
    tap.is(first, Some(kind), "what the worker asked first");
    let stale = other.get_green_endpoints();
    let asked = probes.iter().any(|probe| stale.contains(&probe.backend));
    let pools = format!("{}+{}", admin::pooled(&other.green_writer), admin::pooled(&other.green_readers[0]));
    let left = scenario.admin.number(&format!("SELECT {pools}"))?;
    tap.ok(!asked && left == 0, "the other deployment's servers were left alone");
    Ok(())
}

/// Two tests: the green hostgroups have the deployment's servers and no others.
fn expect_green_members(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    when: &str,
) -> Result<(), Error> {
    let Hostgroups { green_writer, green_reader, .. } = HOSTGROUPS;
    scenario.expect_members(tap, green_writer, &[(&cluster.green_writer, "ONLINE")], when)?;
    scenario.expect_members(tap, green_reader, &[(&cluster.green_readers[0], "ONLINE")], when)
}

fn expect(tap: &mut Emitter, scenario: &mut Scenario, status: &str) {
    scenario.expect_status(tap, HOSTGROUPS.writer, status);
}
