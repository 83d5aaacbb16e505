//! From the writer's completion to the drained topology: the writer's name means what DNS says at once, readers stay switched
//! until the topology is empty, or absent, and success then cleans up.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::Drain;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1640);
/// Hostgroups with the blue writer alone, and with the first blue reader alone. Each is used in one phase, so that its connections
/// are new there: pooled ones lead where the name led when they were opened.
const WRITER_ALONE: Phases = Phases { post_processing: 1650, completed: 1651, drained: 1652 };
const READER_ALONE: Phases = Phases { post_processing: 1655, completed: 1656, drained: 1657 };
/// The configured interval: long beside the 100 ms of post-processing.
const BASELINE: Duration = Duration::from_millis(600);
/// How long probes are counted.
const PROBE_WINDOW: Duration = Duration::from_millis(1500);

struct Phases {
    post_processing: u32,
    completed: u32,
    drained: u32,
}

fn main() -> ExitCode {
    scenario::run(Drain::ALL.len() * 34, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        for drain in Drain::ALL {
            scenario.clean_up()?;
            configure(scenario, &cluster)?;
            scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
            test_post_processing(tap, scenario, &cluster)?;
            test_completed(tap, scenario, &cluster)?;
            test_repeated_completed(tap, scenario, &cluster)?;
            test_drained(tap, scenario, &cluster, drain)?;
        }
        Ok(())
    })
}

/// One blue reader with a green counterpart and one without.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    let mut members = vec![
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, &cluster.blue_readers[0]),
        (HOSTGROUPS.reader, &cluster.blue_readers[1]),
        (HOSTGROUPS.green_writer, &cluster.green_writer),
        (HOSTGROUPS.green_reader, &cluster.green_readers[0]),
    ];
    for (alone, host) in [(WRITER_ALONE, &cluster.blue_writer), (READER_ALONE, &cluster.blue_readers[0])] {
        members.extend([alone.post_processing, alone.completed, alone.drained].map(|id| (id, host)));
    }
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)?;
    let interval = format!("check_interval_ms={}", BASELINE.as_millis());
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, &interval)
}

fn test_post_processing(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_POST_PROCESSING");
    expect_readers(tap, scenario, cluster, "SHUNNED_AWS_BGD", "POST_PROCESSING")?;
    let (writer, reader) = (&cluster.green_writer, &cluster.green_readers[0]);
    scenario.expect_answer(
        tap,
        WRITER_ALONE.post_processing,
        writer,
        "POST_PROCESSING: the writer's name",
    )?;
    scenario.expect_answer(tap, READER_ALONE.post_processing, reader, "POST_PROCESSING: the reader's name")
}

fn test_completed(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.publish_completed(cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS");
    let completed = scenario.simulator.probe_log_last_sequence()?;
    scenario.expect_answer(
        tap,
        WRITER_ALONE.completed,
        &cluster.blue_writer,
        "COMPLETED: the writer's name, no longer pinned,",
    )?;
    let reader = &cluster.green_readers[0];
    scenario.expect_answer(tap, READER_ALONE.completed, reader, "COMPLETED: the reader's name")?;
    expect_readers(tap, scenario, cluster, "SHUNNED_AWS_BGD", "COMPLETED")?;

    // Measured from outside, so that no delay of this program makes it look as if there were too many.
    let started = Instant::now();
    let before = scenario.simulator.probe_log_last_sequence()?;
    thread::sleep(PROBE_WINDOW);
    let probes = scenario.simulator.probe_log_since(before)?.len();
    let most = started.elapsed().as_millis() / BASELINE.as_millis() + 1;
    let description = format!("COMPLETED: at most {most} polls at the configured interval, not {probes}");
    tap.ok(probes as u128 <= most, &description);
    expect_green_probes_alone(tap, scenario, cluster, completed, "COMPLETED")
}

fn test_repeated_completed(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let repeated = scenario.simulator.probe_log_last_sequence()?;
    scenario.publish_completed(cluster)?;
    scenario.wait_for_probes(&cluster.green_writer, RdsBgdProbeKind::Metadata, repeated, 2)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS");
    expect_readers(tap, scenario, cluster, "SHUNNED_AWS_BGD", "repeated COMPLETED")?;
    expect_green_probes_alone(tap, scenario, cluster, repeated, "repeated COMPLETED")?;
    // Connections of these were opened in post-processing, and nothing has drained them since.
    for (name, host) in [("writer", &cluster.blue_writer), ("reader", &cluster.blue_readers[0])] {
        let kept = scenario.admin.holds(&format!("{}>0", admin::pooled(host)))?;
        tap.ok(kept, &format!("repeated COMPLETED: the {name}'s connections are kept"));
    }
    Ok(())
}

fn test_drained(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    drain: Drain,
) -> Result<(), Error> {
    let green = [
        (HOSTGROUPS.green_writer, &cluster.green_writer),
        (HOSTGROUPS.green_reader, &cluster.green_readers[0]),
    ];
    for (hostgroup, server) in green {
        scenario.expect_answer(tap, hostgroup, server, "a green hostgroup")?;
        scenario.expect_pooled(tap, server, "its connection is pooled");
    }
    let before = scenario.simulator.probe_log_last_sequence()?;
    drain.happen(scenario, cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    // Without a retry, like all that follows but traffic and probes: success has done it when NONE is published.
    for (_, server) in green {
        let drained = scenario.admin.holds(&format!("{}=0", admin::pooled(server)))?;
        tap.ok(drained, &format!("drained: no connections to {}", server.hostname));
    }
    expect_readers(tap, scenario, cluster, "ONLINE", "drained")?;
    for (hostgroup, server) in green {
        scenario.expect_members(tap, hostgroup, &[(server, "ONLINE")], "drained")?;
    }
    let reader = &cluster.blue_readers[0];
    scenario.expect_answer(tap, READER_ALONE.drained, reader, "drained: the reader's name")?;
    scenario.expect_answer(tap, WRITER_ALONE.drained, &cluster.blue_writer, "drained: the writer's name")?;
    let asked = scenario.wait_for_probe(&cluster.blue_writer, drain.asked(), before, None);
    tap.ok_result(asked, "drained: the blue writer is asked again");
    scenario.expect_monitored(tap, &[&cluster.blue_writer, reader], "drained: read_only is checked again");
    Ok(())
}

/// Two tests: the writer is in the writer hostgroup alone; the matched reader is ONLINE, the other one has `status`.
fn expect_readers(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    status: &str,
    when: &str,
) -> Result<(), Error> {
    let readers: [(&RdsBgdHost, &str); 2] =
        [(&cluster.blue_readers[0], "ONLINE"), (&cluster.blue_readers[1], status)];
    scenario.expect_members(tap, HOSTGROUPS.writer, &[(&cluster.blue_writer, "ONLINE")], when)?;
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, when)
}

/// One test: since `sequence` the green writer was asked for its metadata, and nobody for anything else.
fn expect_green_probes_alone(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    sequence: u64,
    when: &str,
) -> Result<(), Error> {
    let green = cluster.green_writer.endpoint();
    let mut probes = scenario.simulator.probe_log_since(sequence)?;
    let some = !probes.is_empty();
    probes.retain(|probe| probe.backend != green || probe.probe_kind != RdsBgdProbeKind::Metadata);
    if !tap.ok(some && probes.is_empty(), &format!("{when}: the green writer alone is asked")) {
        tap.diag(&format!("others: {probes:?}"));
    }
    Ok(())
}
