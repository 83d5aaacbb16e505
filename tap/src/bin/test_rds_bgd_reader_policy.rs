//! What a switchover makes of readers: those with a green counterpart follow it, those without are "SHUNNED_AWS_BGD", and where
//! none would be left the writer reads. Success and rollback both put the readers back.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1600);
/// Besides the deployment: the first reader by its blue name, whatever becomes of it in the reader hostgroup.
const FIRST_READER: u32 = 1605;

/// One deployment of cluster 1. Statuses are those of the two blue readers.
struct Case {
    name: &'static str,
    also_reader: bool,
    /// As configured
    readers: [&'static str; 2],
    /// How many of them have a configured green counterpart
    matched: usize,
    /// In post-processing, at runtime
    switched: [&'static str; 2],
    /// Whether the writer is in the reader hostgroup in post-processing
    writer_reads: bool,
    /// Whether new connections by the first reader's name go to its green counterpart in post-processing
    first_follows: bool,
}

/// With one matched and one unmatched reader.
const MIXED: Case = Case {
    name: "one of two matched",
    also_reader: false,
    readers: ["ONLINE", "ONLINE"],
    matched: 1,
    switched: ["ONLINE", "SHUNNED_AWS_BGD"],
    writer_reads: false,
    first_follows: true,
};

const CASES: [Case; 7] = [
    MIXED,
    Case { name: "writer is also reader", also_reader: true, writer_reads: true, ..MIXED },
    Case { name: "both matched", matched: 2, switched: ["ONLINE", "ONLINE"], ..MIXED },
    Case {
        name: "none matched",
        matched: 0,
        switched: ["SHUNNED_AWS_BGD", "SHUNNED_AWS_BGD"],
        writer_reads: true,
        first_follows: false,
        ..MIXED
    },
    Case {
        name: "none matched, one SHUNNED by configuration",
        readers: ["SHUNNED", "ONLINE"],
        matched: 0,
        switched: ["SHUNNED", "SHUNNED_AWS_BGD"],
        writer_reads: true,
        first_follows: false,
        ..MIXED
    },
    Case {
        name: "a SHUNNED one matched",
        readers: ["SHUNNED", "ONLINE"],
        switched: ["SHUNNED", "SHUNNED_AWS_BGD"],
        ..MIXED
    },
    // Neither is eligible: they are not mapped, nor does the writer stand in for them.
    Case {
        name: "offline ones matched",
        readers: ["OFFLINE_SOFT", "OFFLINE_HARD"],
        matched: 2,
        switched: ["OFFLINE_SOFT", "OFFLINE_HARD"],
        first_follows: false,
        ..MIXED
    },
];

/// Tests of each case.
const TESTS: usize = 24;

fn main() -> ExitCode {
    scenario::run(CASES.len() * TESTS, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        CASES.iter().try_for_each(|case| test_case(tap, scenario, &cluster, case))
    })
}

/// Two switchovers that are rolled back, in progress and in post-processing, then one that completes.
fn test_case(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    case: &Case,
) -> Result<(), Error> {
    tap.diag(case.name);
    scenario.clean_up()?;
    configure(scenario, cluster, case)?;
    expect(tap, scenario, "AVAILABLE");
    expect_placement(tap, scenario, cluster, case, false, "AVAILABLE")?;

    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_IN_PROGRESS");
    scenario.expect_members(tap, HOSTGROUPS.writer, &[], &format!("{}, IN_PROGRESS", case.name))?;
    let readers = members(cluster, case.readers, true);
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, &format!("{}, IN_PROGRESS", case.name))?;
    scenario.publish(cluster, "AVAILABLE")?;
    expect(tap, scenario, "AVAILABLE");
    expect_placement(tap, scenario, cluster, case, false, "rolled back from IN_PROGRESS")?;

    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
    expect_placement(tap, scenario, cluster, case, true, "POST_PROCESSING")?;
    let first = if case.first_follows { &cluster.green_readers[0] } else { &cluster.blue_readers[0] };
    scenario.expect_answer(tap, FIRST_READER, first, "POST_PROCESSING: the first reader's name")?;

    scenario.publish(cluster, "AVAILABLE")?;
    expect(tap, scenario, "AVAILABLE");
    expect_placement(tap, scenario, cluster, case, false, "rolled back")?;
    let first = &cluster.blue_readers[0];
    scenario.expect_answer(tap, FIRST_READER, first, "rolled back: the first reader's name")?;

    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
    scenario.publish_completed(cluster)?;
    expect(tap, scenario, "READER_SWITCHOVER_IN_PROGRESS");
    expect_placement(tap, scenario, cluster, case, true, "COMPLETED")?;

    scenario.simulator.topology_delete(&cluster.get_writers())?;
    expect(tap, scenario, "NONE");
    expect_placement(tap, scenario, cluster, case, false, "drained")
}

fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster, case: &Case) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    let admin = &mut scenario.admin;
    for (reader, status) in cluster.blue_readers.iter().zip(case.readers) {
        admin::insert_server(admin, HOSTGROUPS.reader, reader, status)?;
    }
    for green in &cluster.green_readers[..case.matched] {
        admin::insert_server(admin, HOSTGROUPS.green_reader, green, "ONLINE")?;
    }
    let others = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.green_writer, &cluster.green_writer),
        (FIRST_READER, &cluster.blue_readers[0]),
    ];
    if case.also_reader {
        admin::insert_server(admin, HOSTGROUPS.reader, &cluster.blue_writer, "ONLINE")?;
    }
    admin::configure_deployment(admin, HOSTGROUPS, &others)?;
    let also_reader = format!("writer_is_also_reader={}", u8::from(case.also_reader));
    admin::set_deployment(admin, HOSTGROUPS.writer, &also_reader)
}

/// Two tests: the members of both blue hostgroups, at once when the status is seen.
fn expect_placement(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    case: &Case,
    switched: bool,
    when: &str,
) -> Result<(), Error> {
    let when = format!("{}, {when}", case.name);
    scenario.expect_members(tap, HOSTGROUPS.writer, &[(&cluster.blue_writer, "ONLINE")], &when)?;
    let statuses = if switched { case.switched } else { case.readers };
    let writer_reads = case.also_reader || switched && case.writer_reads;
    scenario.expect_members(tap, HOSTGROUPS.reader, &members(cluster, statuses, writer_reads), &when)
}

/// The reader hostgroup at runtime, which does not show OFFLINE_HARD rows.
fn members<'a>(
    cluster: &'a RdsBgdCluster,
    statuses: [&'static str; 2],
    writer_reads: bool,
) -> Vec<(&'a RdsBgdHost, &'static str)> {
    let readers = cluster.blue_readers.iter().zip(statuses).filter(|(_, status)| *status != "OFFLINE_HARD");
    let writer = writer_reads.then_some((&cluster.blue_writer, "ONLINE"));
    readers.chain(writer).collect()
}

fn expect(tap: &mut Emitter, scenario: &mut Scenario, status: &str) {
    scenario.expect_status(tap, HOSTGROUPS.writer, status);
}
