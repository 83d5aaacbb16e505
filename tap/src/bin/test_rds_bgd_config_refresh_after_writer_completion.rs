//! Configuration that changes from post-processing on: the worker rolls back, asks again whether the table exists, and begins at NONE.
//! What the topology still says is then done anew, by the new configuration.

use std::process::ExitCode;
use std::thread;
use tap::admin::{self, Hostgroups};
use tap::connection::{Error, quote};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, QUIET_WINDOW, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1240);
const POST_PROCESSING: &str = "WRITER_SWITCHOVER_POST_PROCESSING";
const READER_SWITCHOVER: &str = "READER_SWITCHOVER_IN_PROGRESS";

fn main() -> ExitCode {
    scenario::run(46, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        configure(scenario, &cluster)?;
        test_post_processing(tap, scenario, &cluster)?;
        test_green_membership(tap, scenario, &cluster)?;
        test_reader_switchover(tap, scenario, &cluster)?;
        test_drained(tap, scenario, &cluster)
    })
}

/// Of two blue readers the first has a green counterpart.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    let members = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, &cluster.blue_readers[0]),
        (HOSTGROUPS.reader, &cluster.blue_readers[1]),
        (HOSTGROUPS.green_writer, &cluster.green_writer),
        (HOSTGROUPS.green_reader, &cluster.green_readers[0]),
    ];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_post_processing(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    expect_switched(tap, scenario, cluster, "POST_PROCESSING")?;
    let baseline = refresh_unseen(scenario, cluster, "check_timeout_ms=900")?;
    expect_rolled_back(tap, scenario, cluster, baseline, "refresh in POST_PROCESSING")?;
    let what = "refresh in POST_PROCESSING: read_only is checked again";
    scenario.expect_monitored(tap, &[&cluster.blue_writer], what);

    let baseline = scenario.simulator.probe_log_last_sequence()?;
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect_switched(tap, scenario, cluster, "POST_PROCESSING again")?;
    let since = scenario::now_us();
    let (blue, green) = (&cluster.blue_writer, &cluster.green_writer);
    expect_restart(tap, scenario, baseline, blue, Some(green), "POST_PROCESSING again")?;
    thread::sleep(QUIET_WINDOW);
    let servers = [&cluster.blue_writer, &cluster.blue_readers[0]];
    scenario.expect_unmonitored_since(tap, &servers, since, "POST_PROCESSING again: read_only is not checked")
}

/// Nothing hides the topology here: the worker is back in post-processing after two polls.
fn test_green_membership(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_reader, .. } = HOSTGROUPS;
    let green = &cluster.green_readers[1];
    for (what, change, status) in [
        ("a green reader joins", admin::add_server(green_reader, green), "ONLINE"),
        ("it leaves", admin::remove_server(green), "SHUNNED_AWS_BGD"),
    ] {
        let baseline = scenario.simulator.probe_log_last_sequence()?;
        admin::change_servers(&mut scenario.admin, &[change])?;
        let (blue, green) = (&cluster.blue_writer, &cluster.green_writer);
        expect_restart(tap, scenario, baseline, blue, Some(green), what)?;
        let placed = format!(
            "{} AND {}",
            admin::status_is(writer, POST_PROCESSING),
            admin::member_with(reader, &cluster.blue_readers[1], &format!("status={}", quote(status)))
        );
        let placed = scenario.admin.wait_until(&placed);
        tap.ok_result(placed, &format!("{what}: its blue reader is {status} in POST_PROCESSING"));
    }
    expect_switched(tap, scenario, cluster, "the green reader has left")
}

fn test_reader_switchover(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish_completed(cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, READER_SWITCHOVER);
    let reader = &cluster.green_readers[0];
    scenario.expect_answer(tap, HOSTGROUPS.reader, reader, "COMPLETED: reader hostgroup")?;
    let baseline = refresh_unseen(scenario, cluster, "check_timeout_ms=800")?;
    expect_rolled_back(tap, scenario, cluster, baseline, "refresh in READER_SWITCHOVER")?;

    let baseline = scenario.simulator.probe_log_last_sequence()?;
    scenario.publish_completed(cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, READER_SWITCHOVER);
    // A worker that begins at COMPLETED makes no map: blue is all that it knows.
    scenario.wait_for_probes(&cluster.blue_writer, RdsBgdProbeKind::Metadata, baseline, 4)?;
    expect_restart(tap, scenario, baseline, &cluster.blue_writer, None, "READER_SWITCHOVER again")?;
    expect_blue_placement(tap, scenario, cluster, "READER_SWITCHOVER again")
}

fn test_drained(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    let green = &cluster.green_writer;
    scenario.expect_answer(tap, HOSTGROUPS.green_writer, green, "READER_SWITCHOVER: green hostgroup")?;
    scenario.expect_pooled(tap, green, "READER_SWITCHOVER: the green connection is pooled");
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    let drained = scenario.admin.holds(&format!("{}=0", admin::pooled(green)))?;
    tap.ok(drained, "drained: the green pool is empty");
    Ok(())
}

/// Changes the deployment while blue, which is asked after a rollback, has no table. What follows can be looked at without haste.
fn refresh_unseen(scenario: &mut Scenario, cluster: &RdsBgdCluster, columns: &str) -> Result<u64, Error> {
    scenario.simulator.topology_drop(&[cluster.blue_writer.endpoint()])?;
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, columns)?;
    Ok(baseline)
}

/// Five tests: post-processing, and what it does to writer and readers.
fn expect_switched(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    when: &str,
) -> Result<(), Error> {
    let Hostgroups { writer, reader, .. } = HOSTGROUPS;
    scenario.expect_status(tap, writer, POST_PROCESSING);
    scenario.expect_members(tap, writer, &[(&cluster.blue_writer, "ONLINE")], when)?;
    let readers = [(&cluster.blue_readers[0], "ONLINE"), (&cluster.blue_readers[1], "SHUNNED_AWS_BGD")];
    scenario.expect_members(tap, reader, &readers, when)?;
    scenario.expect_answer(tap, writer, &cluster.green_writer, &format!("{when}: writer hostgroup"))?;
    scenario.expect_answer(tap, reader, &cluster.green_readers[0], &format!("{when}: reader hostgroup"))
}

/// Seven tests: NONE, nothing of the switchover stands, and blue alone is asked whether it has the table.
fn expect_rolled_back(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    baseline: u64,
    when: &str,
) -> Result<(), Error> {
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    expect_blue_placement(tap, scenario, cluster, when)?;
    scenario.expect_answer(
        tap,
        HOSTGROUPS.writer,
        &cluster.blue_writer,
        &format!("{when}: writer hostgroup"),
    )?;
    let ip = scenario.answering_ip(HOSTGROUPS.reader)?;
    let blue = cluster.blue_readers.iter().any(|reader| reader.ip == ip);
    tap.ok(blue, &format!("{when}: reader hostgroup is answered by a blue reader"));
    let green = admin::online_in(HOSTGROUPS.green_writer, &cluster.green_writer);
    tap.ok(scenario.admin.holds(&green)?, &format!("{when}: the green writer's row stays"));
    let kind = RdsBgdProbeKind::TableCheck;
    scenario.wait_for_probe(&cluster.blue_writer, kind, baseline, None)?;
    let steps = scenario.probe_steps_since(baseline)?;
    let after_green: Vec<_> =
        steps.into_iter().skip_while(|(_, backend)| *backend == cluster.green_writer.endpoint()).collect();
    let blue = cluster.blue_writer.endpoint();
    tap.is(after_green, vec![(kind, blue)], &format!("{when}: blue is asked for the table, and no one else"));
    Ok(())
}

/// Two tests: writer and readers are where and what they are configured to be.
fn expect_blue_placement(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    when: &str,
) -> Result<(), Error> {
    scenario.expect_members(tap, HOSTGROUPS.writer, &[(&cluster.blue_writer, "ONLINE")], when)?;
    let readers: Vec<(&RdsBgdHost, &str)> =
        cluster.blue_readers.iter().map(|reader| (reader, "ONLINE")).collect();
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, when)
}

/// One test: after `baseline` come a table check on blue, metadata from blue, and then from `green` if there is a map.
fn expect_restart(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    baseline: u64,
    blue: &RdsBgdHost,
    green: Option<&RdsBgdHost>,
    when: &str,
) -> Result<(), Error> {
    let (check, metadata) = (RdsBgdProbeKind::TableCheck, RdsBgdProbeKind::Metadata);
    let first = scenario.wait_for_probe(blue, check, baseline, None)?;
    scenario.wait_for_metadata(green.unwrap_or(blue), first, None)?;
    let mut expected = vec![(check, blue.endpoint()), (metadata, blue.endpoint())];
    expected.extend(green.map(|green| (metadata, green.endpoint())));
    let steps = scenario.probe_steps_since(first - 1)?;
    tap.is(steps, expected, &format!("{when}: the table check comes first again"));
    Ok(())
}
