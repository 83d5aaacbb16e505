//! One complete switchover, from AVAILABLE to the drained topology: status, placement, suppression of read_only checks,
//! pools and routing in every phase.

use std::process::ExitCode;
use std::thread;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1100);

fn main() -> ExitCode {
    scenario::run(30, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        configure(scenario, &cluster)?;
        test_available(tap, scenario, &cluster)?;
        let suppressed_since = test_initiated(tap, scenario, &cluster)?;
        test_in_progress_and_post_processing(tap, scenario, &cluster)?;
        test_repeated_post_processing(tap, scenario, &cluster)?;
        test_completed(tap, scenario, &cluster, suppressed_since)?;
        test_drained(tap, scenario, &cluster)
    })
}

/// One blue and one green reader, so that each hostgroup has one server and routing is certain.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    let members = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, blue_reader(cluster)),
        (HOSTGROUPS.green_writer, &cluster.green_writer),
        (HOSTGROUPS.green_reader, green_reader(cluster)),
    ];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_available(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    expect_writer_in_place(tap, scenario, cluster, "AVAILABLE")?;
    scenario.expect_answer(tap, HOSTGROUPS.writer, &cluster.blue_writer, "AVAILABLE: writer hostgroup")?;
    scenario.expect_answer(tap, HOSTGROUPS.reader, blue_reader(cluster), "AVAILABLE: reader hostgroup")?;
    scenario.expect_pooled(tap, blue_reader(cluster), "AVAILABLE: the reader's connection is pooled");
    scenario.expect_monitored(tap, &blue_servers(cluster), "AVAILABLE: read_only is checked");
    Ok(())
}

/// Returns the time, in µs of the epoch, from which on read_only checks are suppressed.
fn test_initiated(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<u128, Error> {
    scenario.publish(cluster, "SWITCHOVER_INITIATED")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_INITIATED");
    let suppressed_since = scenario::now_us();
    expect_writer_in_place(tap, scenario, cluster, "INITIATED")?;
    scenario.expect_unmonitored(tap, &blue_servers(cluster), "INITIATED: read_only is not checked")?;
    Ok(suppressed_since)
}

fn test_in_progress_and_post_processing(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_IN_PROGRESS");
    let demoted = admin::online_in(HOSTGROUPS.reader, &cluster.blue_writer);
    tap.ok(scenario.admin.holds(&demoted)?, "IN_PROGRESS: the blue writer is in the reader hostgroup");
    let removed = admin::absent_from(HOSTGROUPS.writer, &cluster.blue_writer);
    tap.ok(scenario.admin.holds(&removed)?, "IN_PROGRESS: the blue writer is not in the writer hostgroup");
    scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
    let saved = admin::configured_in_alone(HOSTGROUPS.writer, &cluster.blue_writer);
    tap.ok(scenario.admin.holds(&saved)?, "IN_PROGRESS: the blue writer is saved as it was configured");
    scenario.expect_pooled(tap, blue_reader(cluster), "IN_PROGRESS: the reader's pool is untouched");

    admin::route_clients(&mut scenario.admin, &scenario.command_line.client.username, HOSTGROUPS.writer)?;
    let mut client = scenario.command_line.connect_traffic()?;
    let held = thread::scope(|scope| {
        let held = scope.spawn(move || scenario::routing_echo(&mut client));
        test_post_processing(tap, scenario, cluster)?;
        // The thread ends by the connection's own deadline at the latest.
        held.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    tap.is(held, cluster.green_writer.ip.clone(), "a statement without a writer waits for the green one");
    Ok(())
}

fn test_post_processing(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_POST_PROCESSING");
    let drained = scenario.admin.wait_until(&format!("{}=0", admin::pooled(blue_reader(cluster))));
    tap.ok_result(drained, "POST_PROCESSING: connections to the blue reader are gone");
    expect_writer_in_place(tap, scenario, cluster, "POST_PROCESSING")?;
    scenario.expect_answer(
        tap,
        HOSTGROUPS.writer,
        &cluster.green_writer,
        "POST_PROCESSING: writer hostgroup",
    )?;
    scenario.expect_answer(tap, HOSTGROUPS.reader, green_reader(cluster), "POST_PROCESSING: reader hostgroup")
}

fn test_repeated_post_processing(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    let seen = scenario.simulator.probe_log_last_sequence()?;
    scenario.wait_for_probes(&cluster.green_writer, RdsBgdProbeKind::Metadata, seen, 3)?;
    let description = "repeated POST_PROCESSING: the new connections stay pooled";
    let both =
        format!("{}>0 AND {}>0", admin::pooled(&cluster.blue_writer), admin::pooled(blue_reader(cluster)));
    tap.ok(scenario.admin.holds(&both)?, description);
    Ok(())
}

fn test_completed(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    suppressed_since: u128,
) -> Result<(), Error> {
    scenario.publish_completed(cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS");
    expect_writer_in_place(tap, scenario, cluster, "COMPLETED")?;
    scenario.expect_answer(
        tap,
        HOSTGROUPS.green_writer,
        &cluster.green_writer,
        "COMPLETED: green hostgroup",
    )?;
    scenario.expect_pooled(tap, &cluster.green_writer, "COMPLETED: the green connection is pooled");
    let description = "from INITIATED to COMPLETED read_only was never checked";
    scenario.expect_unmonitored_since(tap, &blue_servers(cluster), suppressed_since, description)
}

fn test_drained(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    // Without a retry: the drain is finished when NONE is published.
    let drained = scenario.admin.holds(&format!("{}=0", admin::pooled(&cluster.green_writer)))?;
    tap.ok(drained, "drained: the green pool is empty");
    let kept = format!(
        "{} AND {}",
        admin::online_in(HOSTGROUPS.green_writer, &cluster.green_writer),
        admin::online_in(HOSTGROUPS.green_reader, green_reader(cluster))
    );
    tap.ok(scenario.admin.holds(&kept)?, "drained: the configured green rows are kept");
    scenario.expect_monitored(tap, &blue_servers(cluster), "drained: read_only is checked again");
    Ok(())
}

fn expect_writer_in_place(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &str,
) -> Result<(), Error> {
    let in_place = format!(
        "{} AND {}",
        admin::online_in(HOSTGROUPS.writer, &cluster.blue_writer),
        admin::absent_from(HOSTGROUPS.reader, &cluster.blue_writer)
    );
    let description = format!("{phase}: the blue writer is in the writer hostgroup only");
    tap.ok(scenario.admin.holds(&in_place)?, &description);
    Ok(())
}

fn blue_servers(cluster: &RdsBgdCluster) -> [&RdsBgdHost; 2] {
    [&cluster.blue_writer, blue_reader(cluster)]
}

fn blue_reader(cluster: &RdsBgdCluster) -> &RdsBgdHost {
    &cluster.blue_readers[0]
}

fn green_reader(cluster: &RdsBgdCluster) -> &RdsBgdHost {
    &cluster.green_readers[0]
}
