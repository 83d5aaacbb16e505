//! The metadata query fails. Error 1146 means that the table is gone, whoever says so; any other error changes no state, before and
//! after the writer's completion, and the third in a row gives up the direct target with the pins that rest on it.

use std::num::NonZeroU16;
use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::deployment::{Deployment, Phase};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{self, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1450);
// Both are checked when this is compiled.
const NO_SUCH_TABLE: NonZeroU16 = NonZeroU16::new(1146).expect("not zero");
const UNKNOWN_ERROR: NonZeroU16 = NonZeroU16::new(1105).expect("not zero");
const METADATA: RdsBgdProbeKind = RdsBgdProbeKind::Metadata;

fn main() -> ExitCode {
    scenario::run(54, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let deployment = Deployment { hostgroups: HOSTGROUPS, cluster };
        deployment.configure(scenario)?;
        test_vanished_on_green(tap, scenario, &deployment)?;
        test_vanished_on_both(tap, scenario, &deployment)?;
        for phase in [Phase::Available, Phase::Initiated, Phase::InProgress] {
            test_failing_before_switchover(tap, scenario, &deployment, phase)?;
        }
        test_failing_on_green(tap, scenario, &deployment)?;
        test_failing_with_pins(tap, scenario, &deployment)?;
        test_vanished_after_completion(tap, scenario, &deployment)?;
        test_failures_are_counted_in_a_row(tap, scenario, &deployment)
    })
}

/// Blue still has the topology: the worker goes round and round, and its placement with it.
fn test_vanished_on_green(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    deployment.reach(scenario, Phase::InProgress)?;
    let seen = scenario.simulator.probe_log_last_sequence()?;
    fail(scenario, &[&deployment.cluster.green_writer], NO_SUCH_TABLE)?;
    for round in ["first", "second"] {
        let restored = format!(
            "{} AND {}",
            admin::status_is(HOSTGROUPS.writer, "NONE"),
            deployment.placement(Phase::Available)
        );
        let restored = scenario.admin.wait_until(&restored);
        tap.ok_result(restored, &format!("1146 on green: status NONE, the writer restored, {round} time"));
        let demoted = format!(
            "{} AND {}",
            admin::status_is(HOSTGROUPS.writer, Phase::InProgress.status()),
            deployment.placement(Phase::InProgress)
        );
        let demoted = scenario.admin.wait_until(&demoted);
        tap.ok_result(demoted, &format!("1146 on green: the writer demoted again, {round} time"));
    }
    let (blue, green) =
        (deployment.cluster.blue_writer.endpoint(), deployment.cluster.green_writer.endpoint());
    let mut steps = scenario.probe_steps_since(seen)?;
    steps.truncate(4);
    let round = vec![
        (METADATA, green.clone()),
        (RdsBgdProbeKind::TableCheck, blue.clone()),
        (METADATA, blue),
        (METADATA, green),
    ];
    tap.is(steps, round, "1146 on green: table check and metadata on blue, then green again");
    Ok(())
}

fn test_vanished_on_both(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    deployment.reach(scenario, Phase::InProgress)?;
    deployment.pool_green(scenario)?;
    fail(scenario, &writers(deployment), NO_SUCH_TABLE)?;
    let when = "1146 on both";
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    deployment.expect_rolled_back(tap, scenario, when)?;
    let seen = scenario.simulator.probe_log_last_sequence()?;
    let blue = &deployment.cluster.blue_writer;
    scenario.wait_for_probe(blue, RdsBgdProbeKind::TableCheck, seen, None)?;
    let steps = scenario.probe_steps_since(seen)?;
    tap.is(steps, vec![(RdsBgdProbeKind::TableCheck, blue.endpoint())], "1146 on both: tables are checked");
    Ok(())
}

/// On both writers, so that the state cannot be had from the other one.
fn test_failing_before_switchover(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
) -> Result<(), Error> {
    deployment.reach(scenario, phase)?;
    let when = format!("1105 on both in {}", phase.status());
    test_fall_back(tap, scenario, deployment, phase, &when)?;
    deployment.publish(scenario, phase)?;
    let green = &deployment.cluster.green_writer;
    scenario.expect_probed(
        tap,
        green,
        None,
        &format!("{when}, then none: the green writer is asked again"),
    )?;
    scenario.expect_status(tap, HOSTGROUPS.writer, phase.status());
    Ok(())
}

/// Three tests: the worker goes from the green writer to the blue one without a table check, and status and placement stay.
fn test_fall_back(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
    phase: Phase,
    when: &str,
) -> Result<(), Error> {
    let (blue, green) = (&deployment.cluster.blue_writer, &deployment.cluster.green_writer);
    let seen = scenario.simulator.probe_log_last_sequence()?;
    fail(scenario, &writers(deployment), UNKNOWN_ERROR)?;
    scenario.wait_for_probes(blue, METADATA, seen, 2)?;
    let steps = scenario.probe_steps_since(seen)?;
    tap.is(
        steps,
        vec![(METADATA, green.endpoint()), (METADATA, blue.endpoint())],
        &format!("{when}: metadata on green, then on blue"),
    );
    scenario.expect_status(tap, HOSTGROUPS.writer, phase.status());
    deployment.expect_placement(tap, scenario, phase, when)
}

/// Blue tells the state, and green is tried again: it fails three times more before blue is asked the next time.
fn test_failing_on_green(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    deployment.reach(scenario, Phase::InProgress)?;
    let (blue, green) = (&deployment.cluster.blue_writer, &deployment.cluster.green_writer);
    let seen = scenario.simulator.probe_log_last_sequence()?;
    fail(scenario, &[green], UNKNOWN_ERROR)?;
    scenario.wait_for_probes(blue, METADATA, seen, 2)?;
    let probes = scenario.simulator.probe_log_since(seen)?;
    let when = "1105 on green in WRITER_SWITCHOVER_IN_PROGRESS";
    let mut steps = simulator::probe_steps(&probes);
    steps.truncate(4);
    let [green, blue] = [green, blue].map(|server| (METADATA, server.endpoint()));
    tap.is(steps, vec![green.clone(), blue.clone(), green, blue.clone()], &format!("{when}: who is asked"));
    let between = probes.iter().skip_while(|probe| probe.backend != blue.1).skip(1);
    let tries = between.take_while(|probe| probe.backend != blue.1).count();
    tap.is(tries, 3, &format!("{when}: polls of green between two of blue"));
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::InProgress.status());
    deployment.expect_placement(tap, scenario, Phase::InProgress, when)
}

fn test_failing_with_pins(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    deployment.reach(scenario, Phase::PostProcessing)?;
    let when = "1105 on both in POST_PROCESSING";
    // Nobody has used the blue hostgroups since their connections were drained: who comes now needs a new one.
    test_fall_back(tap, scenario, deployment, Phase::PostProcessing, when)?;
    scenario.expect_answer(tap, HOSTGROUPS.reader, deployment.mapped_reader(), when)?;
    deployment.publish(scenario, Phase::PostProcessing)?;
    let when = "POST_PROCESSING, answering again";
    let now = scenario.simulator.probe_log_last_sequence()?;
    scenario.wait_for_probes(&deployment.cluster.green_writer, METADATA, now, 2)?;
    scenario.expect_answer(tap, HOSTGROUPS.writer, &deployment.cluster.green_writer, when)?;
    // The connection that was opened to the blue reader meanwhile is not used any more.
    scenario.expect_answer(tap, HOSTGROUPS.reader, deployment.green_reader(), when)?;
    deployment.expect_suppressed(tap, scenario, when)
}

/// Green's word ends the switchover; blue's, which still says COMPLETED, begins nothing new: there is no map, and nobody asks green.
fn test_vanished_after_completion(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    // NONE lasts for two intervals.
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, "check_interval_ms=500")?;
    deployment.reach(scenario, Phase::Completed)?;
    deployment.pool_green(scenario)?;
    fail(scenario, &[&deployment.cluster.green_writer], NO_SUCH_TABLE)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    let when = "1146 on green in COMPLETED";
    tap.ok(scenario.admin.holds(&deployment.green_drained())?, &format!("{when}: green pools are drained"));
    deployment.expect_placement(tap, scenario, Phase::Available, when)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Completed.status());
    let seen = scenario.simulator.probe_log_last_sequence()?;
    let blue = &deployment.cluster.blue_writer;
    scenario.wait_for_probes(blue, METADATA, seen, 2)?;
    let steps = scenario.probe_steps_since(seen)?;
    tap.is(steps, vec![(METADATA, blue.endpoint())], &format!("{when}: metadata on blue alone"));
    scenario.simulator.topology_delete(&deployment.cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    Ok(())
}

/// The interval is long, so that each poll is one that this scenario asks for.
fn test_failures_are_counted_in_a_row(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    deployment: &Deployment,
) -> Result<(), Error> {
    let (blue, green) = (&deployment.cluster.blue_writer, &deployment.cluster.green_writer);
    deployment.reach(scenario, Phase::Available)?;
    admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, "check_interval_ms=60000")?;
    deployment.reach(scenario, Phase::Completed)?;
    for round in ["first", "second"] {
        fail(scenario, &[green], UNKNOWN_ERROR)?;
        expect_asked(tap, scenario, green, 2, &format!("green fails twice, {round} time"));
        deployment.publish(scenario, Phase::Completed)?;
        expect_asked(tap, scenario, green, 1, &format!("green is still asked, {round} time"));
    }
    fail(scenario, &[green], UNKNOWN_ERROR)?;
    expect_asked(tap, scenario, green, 3, "green fails three times");
    expect_asked(tap, scenario, blue, 2, "then blue is asked");
    scenario.expect_status(tap, HOSTGROUPS.writer, Phase::Completed.status());
    deployment.expect_placement(tap, scenario, Phase::Completed, "three failures in COMPLETED")?;
    // The reader's pin has gone with the target.
    scenario.expect_answer(
        tap,
        HOSTGROUPS.reader,
        deployment.mapped_reader(),
        "three failures in COMPLETED: reader hostgroup",
    )
}

/// One test: each of `polls` polls, made by a LOAD of variables, asks `server`.
fn expect_asked(tap: &mut Emitter, scenario: &mut Scenario, server: &RdsBgdHost, polls: usize, what: &str) {
    let poll = |scenario: &mut Scenario| {
        let seen = scenario.simulator.probe_log_last_sequence()?;
        scenario.admin.execute("LOAD MYSQL VARIABLES TO RUNTIME")?;
        scenario.wait_for_metadata(server, seen, None)
    };
    let asked = (0..polls).try_for_each(|_| poll(scenario).map(drop));
    tap.ok_result(asked, what);
}

fn fail(scenario: &mut Scenario, servers: &[&RdsBgdHost], code: NonZeroU16) -> Result<(), Error> {
    let backends: Vec<_> = servers.iter().map(|server| server.endpoint()).collect();
    scenario.simulator.topology_error(&backends, code, "made to fail")
}

fn writers(deployment: &Deployment) -> [&RdsBgdHost; 2] {
    [&deployment.cluster.blue_writer, &deployment.cluster.green_writer]
}
