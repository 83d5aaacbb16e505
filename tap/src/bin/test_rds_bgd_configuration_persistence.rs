//! What of a deployment is saved: configured rows with every column, rows made by discovery never, servers that the monitor added or moved
//! as far as they are to last. Rows without green hostgroups are refused, and discovery leaves the administrator's rows alone.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::{Connection, Error, Row};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1270);
const CONFIGURED: &str = "SELECT * FROM mysql_aws_rds_bgd_hostgroups ORDER BY writer_hostgroup";
const ON_DISK: &str = "SELECT * FROM disk.mysql_aws_rds_bgd_hostgroups ORDER BY writer_hostgroup";
const AT_RUNTIME: &str = "SELECT writer_hostgroup,reader_hostgroup,green_writer_hostgroup,green_reader_hostgroup,active,\
     writer_is_also_reader,check_interval_ms,check_timeout_ms,comment FROM runtime_mysql_aws_rds_bgd_hostgroups \
     WHERE auto_generated=0 ORDER BY writer_hostgroup";
const SERVERS: &str =
    "SELECT hostgroup_id,hostname,port,status,weight FROM mysql_servers ORDER BY hostgroup_id,hostname";

fn main() -> ExitCode {
    scenario::run(45, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let outcome = run(tap, scenario, &cluster);
        // Nor may anything stay on disk.
        scenario.clean_up()?;
        scenario.admin.execute("SAVE MYSQL SERVERS TO DISK")?;
        outcome
    })
}

fn run(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    publish(scenario, cluster, "AVAILABLE")?;
    let members = [(HOSTGROUPS.writer, &cluster.blue_writer), (HOSTGROUPS.reader, &cluster.blue_readers[0])];
    admin::configure_pair(&mut scenario.admin, HOSTGROUPS, &members)?;
    test_discovered_row(tap, scenario)?;
    test_configured_row(tap, scenario)?;
    test_rows_without_green_hostgroups(tap, scenario)?;
    test_rows_stand(tap, scenario, &cluster.blue_readers[0])?;
    test_added_server(tap, scenario, cluster)?;
    test_switchover(tap, scenario, cluster)
}

/// The topology also on a blue reader, which discovery asks and a worker does not.
fn publish(scenario: &mut Scenario, cluster: &RdsBgdCluster, status: &str) -> Result<(), Error> {
    scenario.publish(cluster, status)?;
    let reader = cluster.blue_readers[0].endpoint();
    scenario.simulator.topology_update(&[reader], &cluster.get_topology(status))
}

fn test_discovered_row(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    admin::discover(&mut scenario.admin, 1, true)?;
    let made = scenario.admin.wait_until(&admin::discovered_alone(HOSTGROUPS));
    tap.ok_result(made, "a deployment is discovered");
    let servers = scenario.admin.rows(SERVERS)?;
    scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
    tap.is(scenario.admin.rows(CONFIGURED)?, vec![], "discovered: SAVE FROM RUNTIME leaves it out");
    tap.is(scenario.admin.rows(SERVERS)?, servers, "discovered: the servers are saved as they were");
    scenario.admin.execute("SAVE MYSQL SERVERS TO DISK")?;
    tap.is(scenario.admin.rows(ON_DISK)?, vec![], "discovered: it is not on disk");
    let stays = scenario.admin.holds(&admin::discovered_alone(HOSTGROUPS))?;
    tap.ok(stays, "discovered: it stays at runtime");
    Ok(())
}

fn test_configured_row(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_writer, green_reader } = HOSTGROUPS;
    let values = [writer, reader, green_writer, green_reader, 1, 1, 500, 700].map(|value| value.to_string());
    let kept = vec![row(&values, "kept")];
    let insert = format!("INSERT INTO mysql_aws_rds_bgd_hostgroups VALUES ({},'kept')", values.join(","));
    admin::change_servers(&mut scenario.admin, &[insert])?;
    tap.is(scenario.admin.rows(AT_RUNTIME)?, kept.clone(), "configured: it is loaded with every column");
    let discovered = scenario
        .admin
        .number("SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE auto_generated=1")?;
    tap.is(discovered, 0, "configured: it replaces the discovered one");
    scenario.expect_status(tap, writer, "AVAILABLE");

    let delete = "DELETE FROM mysql_aws_rds_bgd_hostgroups".to_owned();
    scenario.admin.execute(&delete)?;
    scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
    tap.is(
        scenario.admin.rows(CONFIGURED)?,
        kept.clone(),
        "configured: SAVE FROM RUNTIME keeps every column",
    );
    scenario.admin.execute("SAVE MYSQL SERVERS TO DISK")?;
    tap.is(scenario.admin.rows(ON_DISK)?, kept.clone(), "configured: so does SAVE TO DISK");

    admin::discover(&mut scenario.admin, 0, false)?;
    admin::change_servers(&mut scenario.admin, &[delete])?;
    tap.is(scenario.admin.rows(AT_RUNTIME)?, vec![], "configured: removed from memory and runtime");
    scenario.admin.execute("LOAD MYSQL SERVERS FROM DISK")?;
    tap.is(scenario.admin.rows(CONFIGURED)?, kept.clone(), "configured: LOAD FROM DISK brings it back");
    scenario.admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
    tap.is(scenario.admin.rows(AT_RUNTIME)?, kept, "configured: and LOAD TO RUNTIME");
    scenario.expect_status(tap, writer, "AVAILABLE");
    Ok(())
}

/// Seven tests. Statements fail, and leave the one row that there is as it was.
fn test_rows_without_green_hostgroups(tap: &mut Emitter, scenario: &mut Scenario) -> Result<(), Error> {
    let before = scenario.admin.rows(CONFIGURED)?;
    for (columns, values) in [
        ("green_writer_hostgroup,green_reader_hostgroup", "NULL,1292"),
        ("green_writer_hostgroup,green_reader_hostgroup", "1292,NULL"),
        ("green_writer_hostgroup,green_reader_hostgroup", "NULL,NULL"),
        ("green_writer_hostgroup,active", "1292,1"),
        ("green_reader_hostgroup,active", "1292,0"),
        ("active,comment", "1,''"),
    ] {
        let insert = format!(
            "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup,reader_hostgroup,{columns}) \
             VALUES (1290,1291,{values})"
        );
        expect_refused(tap, &mut scenario.admin, &insert, &before, &format!("{columns} = {values}"))?;
    }
    let update = "UPDATE mysql_aws_rds_bgd_hostgroups SET green_writer_hostgroup=NULL";
    expect_refused(tap, &mut scenario.admin, update, &before, "UPDATE to NULL")
}

fn expect_refused(
    tap: &mut Emitter,
    admin: &mut Connection,
    statement: &str,
    before: &[Row],
    what: &str,
) -> Result<(), Error> {
    let refused = matches!(admin.execute(statement), Err(Error::Statement { .. }));
    let unchanged = admin.rows(CONFIGURED)? == before;
    tap.ok(refused && unchanged, &format!("{what}: an error, and no row"));
    Ok(())
}

/// Discovery finds the topology again and again where the administrator has a row: active, inactive, and with other hostgroups.
fn test_rows_stand(tap: &mut Emitter, scenario: &mut Scenario, reader: &RdsBgdHost) -> Result<(), Error> {
    for (what, columns) in [
        ("active", "active=1"),
        ("inactive", "active=0"),
        ("inactive, of another reader hostgroup", "reader_hostgroup=1291"),
    ] {
        admin::set_deployment(&mut scenario.admin, HOSTGROUPS.writer, columns)?;
        let configured = scenario.admin.rows(CONFIGURED)?;
        admin::discover(&mut scenario.admin, 1, true)?;
        let seen = scenario.simulator.probe_log_last_sequence()?;
        scenario.wait_for_probes(reader, RdsBgdProbeKind::Metadata, seen, 4)?;
        tap.is(scenario.admin.rows(AT_RUNTIME)?, configured, &format!("discovery leaves a row: {what}"));
        let deployments =
            scenario.admin.number("SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups")?;
        tap.is(deployments, 1, &format!("discovery makes no other: {what}"));
        admin::discover(&mut scenario.admin, 0, false)?;
    }
    let Hostgroups { writer, reader, green_writer, .. } = HOSTGROUPS;
    // SAVE FROM RUNTIME has made it configured.
    scenario.admin.execute(&format!("DELETE FROM mysql_servers WHERE hostgroup_id={green_writer}"))?;
    let columns = format!("active=1,writer_is_also_reader=0,reader_hostgroup={reader}");
    admin::set_deployment(&mut scenario.admin, writer, &columns)
}

/// A green writer that the monitor added is saved like any other, and is configured from then on.
fn test_added_server(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    let Hostgroups { writer, green_writer, .. } = HOSTGROUPS;
    let green = &cluster.green_writer;
    scenario.expect_status(tap, writer, "AVAILABLE");
    tap.ok(
        scenario.admin.holds(&admin::online_in(green_writer, green))?,
        "added: the green writer is there at runtime",
    );
    let configured = admin::configured_in_alone(green_writer, green);
    tap.ok(!scenario.admin.holds(&configured)?, "added: it is not configured");
    scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
    tap.ok(scenario.admin.holds(&configured)?, "added: SAVE FROM RUNTIME makes it configured");
    scenario.expect_refresh(
        tap,
        cluster,
        None,
        &[],
        "added: LOAD finds a green server more than it had been configured",
    )?;
    tap.ok(
        scenario.admin.holds(&format!(
            "{} AND {}",
            admin::status_is(writer, "AVAILABLE"),
            admin::online_in(green_writer, green)
        ))?,
        "added: status and green writer outlast LOAD",
    );
    Ok(())
}

/// What a switchover does to the blue servers is not saved, nor does saving and loading undo it.
fn test_switchover(tap: &mut Emitter, scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    let Hostgroups { writer, reader, .. } = HOSTGROUPS;
    let (blue_writer, blue_reader) = (&cluster.blue_writer, &cluster.blue_readers[0]);
    let servers = scenario.admin.rows(SERVERS)?;
    let demoted =
        format!("{} AND {}", admin::online_in(reader, blue_writer), admin::absent_from(writer, blue_writer));
    // No reader has a green counterpart: the writer reads, too, and the reader is shunned.
    let shunned = format!(
        "{} AND {} AND {}",
        admin::online_in(writer, blue_writer),
        admin::online_in(reader, blue_writer),
        admin::member_with(reader, blue_reader, "status='SHUNNED_AWS_BGD'")
    );
    for (published, status, effect) in [
        ("SWITCHOVER_IN_PROGRESS", "WRITER_SWITCHOVER_IN_PROGRESS", &demoted),
        ("SWITCHOVER_IN_POST_PROCESSING", "WRITER_SWITCHOVER_POST_PROCESSING", &shunned),
    ] {
        scenario.publish(cluster, published)?;
        scenario.expect_status(tap, writer, status);
        tap.ok(scenario.admin.holds(effect)?, &format!("{published}: writer and reader are placed"));
        scenario.admin.execute("SAVE MYSQL SERVERS FROM RUNTIME")?;
        tap.is(
            scenario.admin.rows(SERVERS)?,
            servers.clone(),
            &format!("{published}: SAVE keeps the servers as they were configured"),
        );
        scenario.admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
        let again = format!("{} AND {effect}", admin::status_is(writer, status));
        let again = scenario.admin.wait_until(&again);
        tap.ok_result(again, &format!("{published}: LOAD of what was saved undoes nothing"));
    }
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    scenario.expect_status(tap, writer, "NONE");
    scenario.expect_members(tap, writer, &[(blue_writer, "ONLINE")], "NONE")?;
    scenario.expect_members(tap, reader, &[(blue_reader, "ONLINE")], "NONE")
}

fn row(values: &[String], comment: &str) -> Row {
    values.iter().cloned().chain([comment.to_owned()]).map(Some).collect()
}
