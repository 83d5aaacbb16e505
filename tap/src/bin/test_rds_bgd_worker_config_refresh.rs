//! Configuration that changes under a running worker before post-processing: TLS, members, statuses, interval, timeout and the green
//! environment are taken up in place. The phase stays, blue is asked again before green, and the table's existence is not.

use std::mem;
use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1230);
/// Longer than a scenario waits: whatever happens, the interval is not what it waited for.
const NEVER_MS: u32 = 600_000;

/// A phase, and how a green writer is asked in it.
struct Phase {
    published: &'static str,
    status: &'static str,
    encrypted: bool,
}

const PHASES: [Phase; 3] = [
    Phase { published: "AVAILABLE", status: "AVAILABLE", encrypted: true },
    Phase { published: "SWITCHOVER_INITIATED", status: "WRITER_SWITCHOVER_INITIATED", encrypted: false },
    Phase { published: "SWITCHOVER_IN_PROGRESS", status: "WRITER_SWITCHOVER_IN_PROGRESS", encrypted: true },
];

fn main() -> ExitCode {
    scenario::run(130, |tap, scenario| {
        // Two green environments of the same blue servers.
        let mut cluster = hosts::cluster_1_green_a(scenario.server_port());
        let mut other = hosts::cluster_1_green_b(scenario.server_port());
        test_sleeping_worker(tap, scenario, &cluster)?;
        for phase in &PHASES {
            scenario.publish(&cluster, phase.published)?;
            scenario.expect_status(tap, HOSTGROUPS.writer, phase.status);
            let since = scenario::now_us();
            test_changes(tap, scenario, &cluster, phase)?;
            test_offline_green_writer(tap, scenario, &cluster, phase)?;
            test_harmless_changes(tap, scenario, &cluster, phase)?;
            test_other_green(tap, scenario, &cluster, &other, phase)?;
            mem::swap(&mut cluster, &mut other);
            test_suppression(tap, scenario, &cluster, phase, since)?;
        }
        Ok(())
    })
}

/// A worker that would sleep on for minutes looks again at once when variables or its configuration change.
fn test_sleeping_worker(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    let members = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, &cluster.blue_readers[0]),
        (HOSTGROUPS.green_writer, &cluster.green_writer),
    ];
    admin::configure_pair(&mut scenario.admin, HOSTGROUPS, &members)?;
    let Hostgroups { writer, reader, green_writer, green_reader } = HOSTGROUPS;
    let deployment = format!(
        "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup,reader_hostgroup,green_writer_hostgroup,\
         green_reader_hostgroup,check_interval_ms) \
         VALUES ({writer},{reader},{green_writer},{green_reader},{NEVER_MS})"
    );
    let started = scenario.simulator.probe_log_last_sequence()?;
    admin::change_servers(&mut scenario.admin, &[deployment])?;
    let polled_after = |scenario: &mut Scenario, seen| {
        scenario.wait_for_probe(&cluster.blue_writer, RdsBgdProbeKind::TableCheck, seen, None)
    };
    let first = polled_after(scenario, started)?;
    scenario.admin.execute("LOAD MYSQL VARIABLES TO RUNTIME")?;
    let second = polled_after(scenario, first)?;
    scenario.publish(cluster, PHASES[0].published)?;
    admin::set_deployment(&mut scenario.admin, writer, "check_interval_ms=100")?;
    let third = polled_after(scenario, second);
    tap.ok_result(
        third,
        "NONE: variables and then the configuration changed, each is followed by a poll at once",
    );
    Ok(())
}

fn test_changes(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
) -> Result<(), Error> {
    let (first, second) = (&cluster.blue_readers[0], &cluster.blue_readers[1]);
    let (green, green_second) = (&cluster.green_writer, &cluster.green_readers[1]);
    let use_ssl = format!("use_ssl={}", u8::from(phase.encrypted));
    for (what, change) in [
        ("use_ssl of the green writer", admin::update_server(green, &use_ssl)),
        ("a blue reader joins", admin::add_server(HOSTGROUPS.reader, second)),
        ("a green reader joins", admin::add_server(HOSTGROUPS.green_reader, green_second)),
        ("the green reader leaves", admin::remove_server(green_second)),
        ("the blue reader leaves", admin::remove_server(second)),
        ("the other blue reader is OFFLINE_SOFT", admin::update_server(first, "status='OFFLINE_SOFT'")),
        ("it is ONLINE", admin::update_server(first, "status='ONLINE'")),
        (
            "check_timeout_ms",
            admin::update_deployment(HOSTGROUPS.writer, "check_timeout_ms=1700-check_timeout_ms"),
        ),
        (
            "check_interval_ms",
            admin::update_deployment(HOSTGROUPS.writer, &format!("check_interval_ms={NEVER_MS}")),
        ),
        ("check_interval_ms back", admin::update_deployment(HOSTGROUPS.writer, "check_interval_ms=100")),
    ] {
        expect_refresh(tap, scenario, cluster, phase, what, &[change])?;
    }
    Ok(())
}

/// An OFFLINE_SOFT green writer is asked no more: blue is, for as long as it lasts.
fn test_offline_green_writer(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
) -> Result<(), Error> {
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    let offline = admin::update_server(&cluster.green_writer, "status='OFFLINE_SOFT'");
    admin::change_servers(&mut scenario.admin, &[offline])?;
    let first = scenario.wait_for_metadata(&cluster.blue_writer, baseline, None)?;
    scenario.wait_for_probes(&cluster.blue_writer, RdsBgdProbeKind::Metadata, first, 3)?;
    let asked = scenario.probe_steps_since(first)?;
    let steps = [(RdsBgdProbeKind::Metadata, cluster.blue_writer.endpoint())];
    tap.is(asked, steps.into(), &format!("{}: an OFFLINE_SOFT green writer is not asked", phase.published));
    let online = admin::update_server(&cluster.green_writer, "status='ONLINE'");
    expect_refresh(tap, scenario, cluster, phase, "it is ONLINE again", &[online])
}

/// Weights and comments are no part of what a worker depends on.
fn test_harmless_changes(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
) -> Result<(), Error> {
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    let changes = [
        "UPDATE mysql_servers SET weight=weight+7, comment='heavier'".to_owned(),
        admin::update_deployment(HOSTGROUPS.writer, "comment='changed'"),
    ];
    admin::change_servers(&mut scenario.admin, &changes)?;
    let heavier = admin::member_with(HOSTGROUPS.green_writer, &cluster.green_writer, "weight>7");
    tap.ok(scenario.admin.holds(&heavier)?, &format!("{}: weights change", phase.published));
    let mut seen = scenario.simulator.probe_log_last_sequence()?;
    for _ in 0..3 {
        seen = scenario.wait_for_metadata(&cluster.green_writer, seen, Some(phase.encrypted))?;
    }
    let asked = scenario.probe_steps_since(baseline)?;
    let steps = [(RdsBgdProbeKind::Metadata, cluster.green_writer.endpoint())];
    tap.is(asked, steps.into(), &format!("{}: weights and comments refresh nothing", phase.published));
    expect_phase(tap, scenario, cluster, phase, "weights and comments");
    Ok(())
}

/// The blue servers get another green environment, as after a deployment was deleted and made anew.
fn test_other_green(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    other: &RdsBgdCluster,
    phase: &Phase,
) -> Result<(), Error> {
    // Blue alone is asked right after a refresh, so the old green writer may go on showing itself.
    scenario.publish(other, phase.published)?;
    let use_ssl = format!("use_ssl={}", u8::from(phase.encrypted));
    let changes = [
        admin::remove_server(&cluster.green_writer),
        admin::add_server(HOSTGROUPS.green_writer, &other.green_writer),
        admin::update_server(&other.green_writer, &use_ssl),
    ];
    expect_refresh(tap, scenario, other, phase, "another green writer", &changes)?;
    scenario.expect_members(
        tap,
        HOSTGROUPS.green_writer,
        &[(&other.green_writer, "ONLINE")],
        &format!("{}, another green writer", phase.published),
    )
}

/// From INITIATED on nobody checks read_only, whatever was changed since.
fn test_suppression(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
    since_us: u128,
) -> Result<(), Error> {
    let checks = admin::read_only_checks(&[&cluster.blue_writer, &cluster.blue_readers[0]], since_us);
    let checks = scenario.admin.number(&format!("SELECT {checks}"))?;
    let suppressed = phase.status != "AVAILABLE";
    let verb = if suppressed { "is not" } else { "is" };
    tap.is(checks == 0, suppressed, &format!("{}: read_only {verb} checked", phase.published));
    Ok(())
}

/// Three tests: after the change blue is asked, then green as the phase wants it; the table check is not repeated; the phase stays.
fn expect_refresh(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
    what: &str,
    changes: &[String],
) -> Result<(), Error> {
    let case = format!("{}, {what}", phase.published);
    scenario.expect_refresh(tap, cluster, Some(phase.encrypted), changes, &case)?;
    expect_phase(tap, scenario, cluster, phase, what);
    Ok(())
}

/// One test: the status is the phase's, and the blue writer where the phase wants it.
fn expect_phase(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    phase: &Phase,
    what: &str,
) {
    let Hostgroups { writer, reader, .. } = HOSTGROUPS;
    let (place, other) =
        if phase.status == "WRITER_SWITCHOVER_IN_PROGRESS" { (reader, writer) } else { (writer, reader) };
    let stays = format!(
        "{} AND {} AND {}",
        admin::status_is(writer, phase.status),
        admin::online_in(place, &cluster.blue_writer),
        admin::absent_from(other, &cluster.blue_writer)
    );
    let stays = scenario.admin.wait_until(&stays);
    tap.ok_result(stays, &format!("{}, {what}: status and placement stay", phase.published));
}
