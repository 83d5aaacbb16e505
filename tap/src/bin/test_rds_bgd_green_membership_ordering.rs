//! Green servers may be configured before the topology is there, after the deployment was discovered, or under a running worker; where
//! nobody has configured the green writer it is added at run time.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::{Error, quote};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind, probe_steps};

/// Each case has hostgroups of its own, and another cluster than the two before: their workers may still be ending.
const FIRST_HOSTGROUP: u32 = 1310;
/// What an added server has where its hostgroup has no servers_defaults.
const DEFAULTS: &str = "status='ONLINE' AND weight=1 AND max_connections=1000 AND use_ssl=0";
const SERVERS_DEFAULTS: &str = r#"  {"weight": 7, "max_connections": 33, "use_ssl": 1}  "#;
const BY_SERVERS_DEFAULTS: &str = "status='ONLINE' AND weight=7 AND max_connections=33 AND use_ssl=1";

fn main() -> ExitCode {
    scenario::run(54, |tap, scenario| {
        let port = scenario.server_port();
        let clusters = [hosts::cluster_1_green_a(port), hosts::cluster_2(port), hosts::cluster_3(port)];
        test_before_available(tap, scenario, &clusters[0], hostgroups(0))?;
        test_after_discovery(tap, scenario, &clusters[1], hostgroups(1))?;
        test_after_start(tap, scenario, &clusters[2], hostgroups(2))?;
        for (case, cluster, published, status) in [
            (3, &clusters[0], "AVAILABLE", "AVAILABLE"),
            (4, &clusters[1], "SWITCHOVER_INITIATED", "WRITER_SWITCHOVER_INITIATED"),
            (5, &clusters[2], "SWITCHOVER_IN_PROGRESS", "WRITER_SWITCHOVER_IN_PROGRESS"),
            (6, &clusters[0], "SWITCHOVER_IN_POST_PROCESSING", "WRITER_SWITCHOVER_POST_PROCESSING"),
        ] {
            test_added(tap, scenario, cluster, hostgroups(case), published, status)?;
        }
        test_offline_hard(tap, scenario, &clusters[1], hostgroups(7))?;
        test_offline_soft(tap, scenario, &clusters[2], hostgroups(8))?;
        test_shunned(tap, scenario, &clusters[0], hostgroups(9))
    })
}

const fn hostgroups(case: u32) -> Hostgroups {
    Hostgroups::starting_at(FIRST_HOSTGROUP + 4 * case)
}

/// Nothing of the case before, and `published` as the topology, if anything.
fn prepare(scenario: &mut Scenario, cluster: &RdsBgdCluster, published: Option<&str>) -> Result<(), Error> {
    scenario.clean_up()?;
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    published.map_or(Ok(()), |status| scenario.publish(cluster, status))
}

fn blue(hostgroups: Hostgroups, cluster: &RdsBgdCluster) -> [(u32, &RdsBgdHost); 2] {
    [(hostgroups.writer, &cluster.blue_writer), (hostgroups.reader, &cluster.blue_readers[0])]
}

fn test_before_available(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    prepare(scenario, cluster, None)?;
    insert_green(scenario, hostgroups, cluster, "ONLINE", 7)?;
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    // The worker runs, and has found no table.
    scenario.wait_for_probe(&cluster.blue_writer, RdsBgdProbeKind::TableCheck, baseline, None)?;
    scenario.publish(cluster, "AVAILABLE")?;
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    let what = "configured before AVAILABLE";
    expect_green(tap, scenario, hostgroups, cluster, "status='ONLINE' AND weight=7", what)?;
    scenario.expect_probed(tap, &cluster.green_writer, None, &format!("{what}: the green writer is asked"))
}

/// A discovered deployment adds nothing, and becomes the configured one in place.
fn test_after_discovery(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_writer, green_reader } = hostgroups;
    let what = "configured after discovery";
    prepare(scenario, cluster, Some("AVAILABLE"))?;
    admin::configure_pair(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    admin::discover(&mut scenario.admin, 1, true)?;
    scenario.admin.wait_until(&admin::discovered_alone(hostgroups))?;
    admin::discover(&mut scenario.admin, 0, true)?;
    scenario.expect_status(tap, writer, "AVAILABLE");
    insert_green(scenario, hostgroups, cluster, "ONLINE", 9)?;
    scenario.expect_members(tap, green_writer, &[], "discovered")?;
    let insert = format!(
        "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup,reader_hostgroup,green_writer_hostgroup,\
         green_reader_hostgroup) VALUES ({writer},{reader},{green_writer},{green_reader})"
    );
    scenario.expect_refresh(tap, cluster, None, &[insert], what)?;
    let configured = format!(
        "(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup={writer} AND \
         green_writer_hostgroup={green_writer} AND green_reader_hostgroup={green_reader} AND auto_generated=0 \
         AND status='AVAILABLE')=1"
    );
    let in_place = scenario.admin.holds(&configured)?;
    tap.ok(in_place, &format!("{what}: the row is the configured one, AVAILABLE"));
    expect_green(tap, scenario, hostgroups, cluster, "status='ONLINE' AND weight=9", what)
}

/// A configured green writer takes the place of the one that was added, and is missed when it is removed.
fn test_after_start(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    prepare(scenario, cluster, Some("AVAILABLE"))?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    expect_green(tap, scenario, hostgroups, cluster, DEFAULTS, "added under a running worker")?;
    let what = "LOAD that does not concern the deployment";
    scenario.admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
    let condition = admin::member_with(hostgroups.green_writer, &cluster.green_writer, DEFAULTS);
    let again = scenario.admin.wait_until(&condition);
    tap.ok_result(again, &format!("{what}: the green writer is added again"));

    let what = "configured under a running worker";
    insert_green(scenario, hostgroups, cluster, "ONLINE", 5)?;
    let use_ssl =
        format!("UPDATE mysql_servers SET use_ssl=1 WHERE hostgroup_id={}", hostgroups.green_writer);
    scenario.expect_refresh(tap, cluster, Some(true), &[use_ssl], what)?;
    expect_green(tap, scenario, hostgroups, cluster, "weight=5 AND use_ssl=1", what)?;
    let what = "removed under a running worker";
    let delete = format!("DELETE FROM mysql_servers WHERE hostgroup_id={}", hostgroups.green_writer);
    scenario.expect_refresh(tap, cluster, Some(false), &[delete], what)?;
    expect_green(tap, scenario, hostgroups, cluster, DEFAULTS, what)
}

/// A worker that begins in any phase adds the green writer as its hostgroup's servers_defaults say, and leaves it when it rolls back.
fn test_added(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
    published: &str,
    status: &str,
) -> Result<(), Error> {
    prepare(scenario, cluster, Some(published))?;
    set_servers_defaults(scenario, hostgroups)?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    scenario.expect_status(tap, hostgroups.writer, status);
    let what = format!("added in {published}");
    expect_green(tap, scenario, hostgroups, cluster, BY_SERVERS_DEFAULTS, &what)?;
    let green = &cluster.green_writer;
    scenario.expect_probed(tap, green, Some(true), &format!("{what}: it is asked by its use_ssl"))?;
    let configured = admin::configured_in_alone(hostgroups.green_writer, green);
    tap.ok(!scenario.admin.holds(&configured)?, &format!("{what}: at run time only"));
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, hostgroups.writer, "NONE");
    expect_green(tap, scenario, hostgroups, cluster, BY_SERVERS_DEFAULTS, &format!("{what}, rolled back"))
}

fn test_offline_hard(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    prepare(scenario, cluster, None)?;
    set_servers_defaults(scenario, hostgroups)?;
    insert_green(scenario, hostgroups, cluster, "OFFLINE_HARD", 9)?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    scenario.expect_members(tap, hostgroups.green_writer, &[], "OFFLINE_HARD")?;
    scenario.publish(cluster, "AVAILABLE")?;
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    expect_green(tap, scenario, hostgroups, cluster, BY_SERVERS_DEFAULTS, "OFFLINE_HARD, restored")?;
    let what = "OFFLINE_HARD, restored: it is asked by its use_ssl";
    scenario.expect_probed(tap, &cluster.green_writer, Some(true), what)
}

/// The administrator's word stands: no row is added beside it, nobody asks it, and no traffic goes there.
fn test_offline_soft(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    prepare(scenario, cluster, Some("AVAILABLE"))?;
    insert_green(scenario, hostgroups, cluster, "OFFLINE_SOFT", 9)?;
    let baseline = scenario.simulator.probe_log_last_sequence()?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    let row = "status='OFFLINE_SOFT' AND weight=9";
    expect_green(tap, scenario, hostgroups, cluster, row, "OFFLINE_SOFT")?;
    scenario.wait_for_probes(&cluster.blue_writer, RdsBgdProbeKind::Metadata, baseline, 4)?;
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    scenario.expect_status(tap, hostgroups.writer, "WRITER_SWITCHOVER_POST_PROCESSING");
    let what = "OFFLINE_SOFT, POST_PROCESSING: writer hostgroup";
    scenario.expect_answer(tap, hostgroups.writer, &cluster.blue_writer, what)?;
    let mut probes = scenario.simulator.probe_log_since(baseline)?;
    probes.retain(|probe| cluster.get_writers().contains(&probe.backend));
    let endpoint = cluster.blue_writer.endpoint();
    let expected = [(RdsBgdProbeKind::TableCheck, endpoint.clone()), (RdsBgdProbeKind::Metadata, endpoint)];
    tap.is(probe_steps(&probes), expected.into(), "OFFLINE_SOFT: the blue writer alone is asked");
    Ok(())
}

fn test_shunned(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    prepare(scenario, cluster, Some("AVAILABLE"))?;
    insert_green(scenario, hostgroups, cluster, "SHUNNED", 9)?;
    admin::configure_deployment(&mut scenario.admin, hostgroups, &blue(hostgroups, cluster))?;
    scenario.expect_status(tap, hostgroups.writer, "AVAILABLE");
    expect_green(tap, scenario, hostgroups, cluster, "status='SHUNNED' AND weight=9", "SHUNNED")?;
    scenario.expect_probed(tap, &cluster.green_writer, None, "SHUNNED: the green writer is asked")
}

/// One test: the green writer is the only member of its hostgroup, and `condition` holds for its row.
fn expect_green(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    hostgroups: Hostgroups,
    cluster: &RdsBgdCluster,
    condition: &str,
    what: &str,
) -> Result<(), Error> {
    let Hostgroups { green_writer, .. } = hostgroups;
    let alone = format!(
        "{} AND (SELECT COUNT(*) FROM runtime_mysql_servers WHERE hostgroup_id={green_writer})=1",
        admin::member_with(green_writer, &cluster.green_writer, condition)
    );
    tap.ok(scenario.admin.holds(&alone)?, &format!("{what}: the green writer's row has {condition}"));
    Ok(())
}

/// Configures the green writer without loading it.
fn insert_green(
    scenario: &mut Scenario,
    hostgroups: Hostgroups,
    cluster: &RdsBgdCluster,
    status: &str,
    weight: u32,
) -> Result<(), Error> {
    admin::insert_server(&mut scenario.admin, hostgroups.green_writer, &cluster.green_writer, status)?;
    let update = admin::update_server(&cluster.green_writer, &format!("weight={weight}"));
    scenario.admin.execute(&update).map(drop)
}

/// With blanks around them, which are no part of the JSON.
fn set_servers_defaults(scenario: &mut Scenario, hostgroups: Hostgroups) -> Result<(), Error> {
    let insert = format!(
        "INSERT INTO mysql_hostgroup_attributes(hostgroup_id,servers_defaults) VALUES ({},{})",
        hostgroups.green_writer,
        quote(SERVERS_DEFAULTS)
    );
    scenario.admin.execute(&insert).map(drop)
}
