//! Deployments that nobody configured: found through the read_only monitor in either order of topology and servers, followed through a
//! switchover, never saved, ended by LOAD, and never in the place of a row of the administrator's.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tap::admin::{self, Hostgroups};
use tap::connection::Error;
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::RdsBgdCluster;

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1120);
/// Several discovery cycles: long enough to see a deployment that must not be made.
const QUIET_WINDOW: Duration = Duration::from_millis(600);

fn main() -> ExitCode {
    scenario::run(18, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
        test_topology_first(tap, scenario, &cluster)?;
        test_never_saved(tap, scenario)?;
        test_switched_off(tap, scenario, &cluster)?;
        test_servers_first(tap, scenario, &cluster)?;
        test_switchover(tap, scenario, &cluster)?;
        test_configured_rows_stand(tap, scenario, &cluster)
    })
}

fn test_topology_first(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.publish(cluster, "AVAILABLE")?;
    let members = [(HOSTGROUPS.writer, &cluster.blue_writer), (HOSTGROUPS.reader, &cluster.blue_readers[0])];
    admin::configure_pair(&mut scenario.admin, HOSTGROUPS, &members)?;
    expect_none_for_a_while(tap, scenario, "without discovery no deployment is made")?;
    admin::discover(&mut scenario.admin, 1, true)?;
    expect_discovered(tap, scenario, "topology first");
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    let green = admin::absent_from(HOSTGROUPS.green_writer, &cluster.green_writer);
    tap.ok(scenario.admin.holds(&green)?, "AVAILABLE: no green server is added");
    scenario.expect_probed(tap, &cluster.green_writer, None, "AVAILABLE: the green writer is asked")
}

fn test_never_saved(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
    let configured = scenario.admin.number("SELECT COUNT(*) FROM mysql_aws_rds_bgd_hostgroups")?;
    tap.is(configured, 0, "SAVE leaves the discovered deployment out");
    Ok(())
}

fn test_switched_off(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    admin::discover(&mut scenario.admin, 1, false)?;
    tap.ok(scenario.admin.holds(&admin::discovered_alone(HOSTGROUPS))?, "switched off: the deployment stays");
    scenario.admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
    let deployments = scenario.admin.number("SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups")?;
    tap.is(deployments, 0, "switched off: LOAD ends it");
    let what = "switched off: the blue writer is asked all the same";
    scenario.expect_probed(tap, &cluster.blue_writer, None, what)?;
    expect_none_for_a_while(tap, scenario, "switched off: no other is made")
}

fn test_servers_first(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.simulator.topology_drop(&cluster.get_writers())?;
    admin::discover(&mut scenario.admin, 1, true)?;
    expect_none_for_a_while(tap, scenario, "without a topology no deployment is made")?;
    scenario.publish(cluster, "AVAILABLE")?;
    expect_discovered(tap, scenario, "servers first");
    scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
    Ok(())
}

fn test_switchover(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "WRITER_SWITCHOVER_POST_PROCESSING");
    let green = &cluster.green_writer;
    scenario.expect_answer(tap, HOSTGROUPS.writer, green, "POST_PROCESSING: writer hostgroup")?;
    scenario.publish_completed(cluster)?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "READER_SWITCHOVER_IN_PROGRESS");
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, HOSTGROUPS.writer, "NONE");
    Ok(())
}

fn test_configured_rows_stand(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_writer, green_reader } = HOSTGROUPS;
    scenario.admin.execute(&format!(
        "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup,reader_hostgroup,green_writer_hostgroup,\
         green_reader_hostgroup,active) VALUES ({writer},{reader},{green_writer},{green_reader},0)"
    ))?;
    scenario.admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
    scenario.publish(cluster, "AVAILABLE")?;
    thread::sleep(QUIET_WINDOW);
    let stands = format!(
        "(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup={writer} AND active=0 \
         AND auto_generated=0 AND green_writer_hostgroup={green_writer} AND status='NONE')=1"
    );
    tap.ok(scenario.admin.holds(&stands)?, "an inactive row of the administrator's stands");
    Ok(())
}

fn expect_discovered(tap: &mut Emitter, scenario: &mut Scenario, order: &str) {
    let made = scenario.admin.wait_until(&admin::discovered_alone(HOSTGROUPS));
    tap.ok_result(made, &format!("{order}: one deployment is made, without green hostgroups"));
}

fn expect_none_for_a_while(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    description: &str,
) -> Result<(), Error> {
    thread::sleep(QUIET_WINDOW);
    let deployments = scenario.admin.number("SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups")?;
    tap.is(deployments, 0, description);
    Ok(())
}
