//! Hostgroups that change under a running worker: green and reader hostgroups in each phase before post-processing, and another blue
//! writer. The phase stays, and its effects move with the hostgroups: added green writers, suppression, the demoted writer.

use std::process::ExitCode;
use std::thread;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, QUIET_WINDOW, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1250);
/// Where the deployment goes for a while. Its own writer hostgroup has no server: the reader hostgroup is that of another
/// replication pair, so that read_only is checked there whether a deployment has it or not.
const OTHER: Hostgroups = Hostgroups::starting_at(1260);

const INITIATED: &str = "WRITER_SWITCHOVER_INITIATED";
const IN_PROGRESS: &str = "WRITER_SWITCHOVER_IN_PROGRESS";

fn main() -> ExitCode {
    scenario::run(44, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        configure(scenario, &cluster)?;
        test_available(tap, scenario, &cluster)?;
        test_initiated(tap, scenario, &cluster)?;
        test_in_progress(tap, scenario, &cluster)?;
        test_green_readers(tap, scenario, &cluster)?;
        let other = hosts::cluster_2(scenario.server_port());
        test_other_writer(tap, scenario, &cluster, &other)
    })
}

/// A reader in either reader hostgroup; the green counterpart of the first in the other green reader hostgroup.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    admin::configure_pair(&mut scenario.admin, OTHER, &[(OTHER.reader, &cluster.blue_readers[1])])?;
    let members = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, &cluster.blue_readers[0]),
        (OTHER.green_reader, &cluster.green_readers[0]),
    ];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_available(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    let green = [(&cluster.green_writer, "ONLINE")];
    scenario.expect_members(tap, HOSTGROUPS.green_writer, &green, "AVAILABLE")?;
    let changes = [set_hostgroup("green_writer_hostgroup", OTHER.green_writer)];
    let what = "AVAILABLE, other green writer hostgroup";
    scenario.expect_refresh(tap, cluster, None, &changes, what)?;
    scenario.expect_members(tap, OTHER.green_writer, &green, what)?;
    scenario.expect_members(tap, HOSTGROUPS.green_writer, &[], what)?;
    expect_writer(tap, scenario, cluster, "AVAILABLE", HOSTGROUPS.writer, what)
}

fn test_initiated(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_INITIATED")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, INITIATED);
    let writer = &cluster.blue_writer;
    let (first, second) = (&cluster.blue_readers[0], &cluster.blue_readers[1]);
    expect_checks(tap, scenario, second, &[writer, first], "INITIATED")?;
    let what = "INITIATED, other reader hostgroup";
    scenario.expect_refresh(tap, cluster, None, &swap_readers(OTHER.reader, HOSTGROUPS.reader), what)?;
    expect_checks(tap, scenario, first, &[writer, second], what)?;
    expect_writer(tap, scenario, cluster, INITIATED, HOSTGROUPS.writer, what)
}

fn test_in_progress(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let writer = &cluster.blue_writer;
    let (first, second) = (&cluster.blue_readers[0], &cluster.blue_readers[1]);
    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, IN_PROGRESS);
    expect_writer(tap, scenario, cluster, IN_PROGRESS, OTHER.reader, "IN_PROGRESS")?;
    let what = "IN_PROGRESS, reader hostgroup as before";
    scenario.expect_refresh(tap, cluster, None, &swap_readers(HOSTGROUPS.reader, OTHER.reader), what)?;
    expect_writer(tap, scenario, cluster, IN_PROGRESS, HOSTGROUPS.reader, what)?;
    expect_checks(tap, scenario, second, &[writer, first], what)?;
    let what = "IN_PROGRESS, green writer hostgroup as before";
    let changes = [set_hostgroup("green_writer_hostgroup", HOSTGROUPS.green_writer)];
    scenario.expect_refresh(tap, cluster, None, &changes, what)?;
    let green = [(&cluster.green_writer, "ONLINE")];
    scenario.expect_members(tap, HOSTGROUPS.green_writer, &green, what)?;
    scenario.expect_members(tap, OTHER.green_writer, &[], what)?;
    expect_writer(tap, scenario, cluster, IN_PROGRESS, HOSTGROUPS.reader, what)
}

/// Readers pair by the green reader hostgroup in force when the names are pinned.
fn test_green_readers(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let what = "IN_PROGRESS, other green reader hostgroup";
    let changes = [set_hostgroup("green_reader_hostgroup", OTHER.green_reader)];
    scenario.expect_refresh(tap, cluster, None, &changes, what)?;
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_POST_PROCESSING");
    let readers = [(&cluster.blue_readers[0], "ONLINE")];
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, "POST_PROCESSING")?;
    let (writer, reader) = (&cluster.green_writer, &cluster.green_readers[0]);
    scenario.expect_answer(tap, HOSTGROUPS.writer, writer, "POST_PROCESSING: writer hostgroup")?;
    scenario.expect_answer(tap, HOSTGROUPS.reader, reader, "POST_PROCESSING: reader hostgroup")?;
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    Ok(())
}

/// The target becomes the green copy of another server of the writer hostgroup.
fn test_other_writer(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    other: &RdsBgdCluster,
) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_writer, .. } = HOSTGROUPS;
    let (old, new) = (&cluster.blue_writer, &other.blue_writer);
    let blue_reader = &cluster.blue_readers[0];
    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    scenario.expect_status(tap, writer, IN_PROGRESS);
    expect_writer(tap, scenario, cluster, IN_PROGRESS, reader, "IN_PROGRESS again")?;

    scenario.simulator.read_only_update(&new.host_endpoint(), false)?;
    let target = other.get_topology("SWITCHOVER_IN_PROGRESS");
    let asked = [old.endpoint(), new.endpoint(), other.green_writer.endpoint()];
    scenario.simulator.topology_update(&asked, &target)?;
    let what = "IN_PROGRESS, another writer";
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::change_servers(&mut scenario.admin, &[admin::add_server(writer, new)])?;
    let direct = scenario.wait_for_metadata(&other.green_writer, baseline, None);
    tap.ok_result(direct, &format!("{what}: its green copy is asked"));
    scenario.expect_members(tap, writer, &[(old, "ONLINE")], what)?;
    scenario.expect_members(tap, reader, &[(blue_reader, "ONLINE"), (new, "ONLINE")], what)?;
    scenario.expect_members(tap, green_writer, &[(&other.green_writer, "ONLINE")], what)?;
    tap.ok(
        scenario.admin.holds(&admin::status_is(writer, IN_PROGRESS))?,
        &format!("{what}: the status stays"),
    );
    let available = other.get_topology("AVAILABLE");
    scenario.simulator.topology_update(&asked, &available)?;
    scenario.expect_status(tap, writer, "AVAILABLE");
    scenario.expect_members(tap, writer, &[(old, "ONLINE"), (new, "ONLINE")], "AVAILABLE again")?;
    scenario.expect_members(tap, reader, &[(blue_reader, "ONLINE")], "AVAILABLE again")
}

/// One test: the status, and the blue writer in `hostgroup` alone.
fn expect_writer(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    status: &str,
    hostgroup: u32,
    what: &str,
) -> Result<(), Error> {
    let places = [HOSTGROUPS.writer, HOSTGROUPS.reader, OTHER.reader];
    let mut conditions =
        vec![admin::status_is(HOSTGROUPS.writer, status), admin::online_in(hostgroup, &cluster.blue_writer)];
    let others = places.iter().filter(|place| **place != hostgroup);
    conditions.extend(others.map(|place| admin::absent_from(*place, &cluster.blue_writer)));
    let description = format!("{what}: the status stays, and the writer is in hostgroup {hostgroup} alone");
    tap.ok(scenario.admin.holds(&conditions.join(" AND "))?, &description);
    Ok(())
}

/// Two tests: from now on read_only of one server is checked, and that of the others is not.
fn expect_checks(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    checked: &RdsBgdHost,
    suppressed: &[&RdsBgdHost],
    what: &str,
) -> Result<(), Error> {
    let since = scenario::now_us();
    scenario.expect_monitored(tap, &[checked], &format!("{what}: read_only is checked on {}", checked.ip));
    thread::sleep(QUIET_WINDOW);
    let names: Vec<_> = suppressed.iter().map(|host| host.ip.as_str()).collect();
    let what = format!("{what}: read_only is not checked on {}", names.join(" and "));
    scenario.expect_unmonitored_since(tap, suppressed, since, &what)
}

/// The deployment and its replication pair get the reader hostgroup `own`; the pair beside them gets `others`.
fn swap_readers(own: u32, others: u32) -> [String; 4] {
    let (writer, other_writer) = (HOSTGROUPS.writer, OTHER.writer);
    [
        format!("DELETE FROM mysql_replication_hostgroups WHERE writer_hostgroup={other_writer}"),
        format!(
            "UPDATE mysql_replication_hostgroups SET reader_hostgroup={own} WHERE writer_hostgroup={writer}"
        ),
        format!(
            "INSERT INTO mysql_replication_hostgroups(writer_hostgroup,reader_hostgroup) \
             VALUES ({other_writer},{others})"
        ),
        set_hostgroup("reader_hostgroup", own),
    ]
}

fn set_hostgroup(column: &str, hostgroup: u32) -> String {
    admin::update_deployment(HOSTGROUPS.writer, &format!("{column}={hostgroup}"))
}
