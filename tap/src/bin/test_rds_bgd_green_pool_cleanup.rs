//! Which connections to green servers end with a switchover: a rollback leaves all of them, success drains every server of the green
//! hostgroups but offline ones, and what is in use then ends with its transaction.

use std::process::ExitCode;
use tap::admin::{self, Hostgroups};
use tap::connection::{Connection, Error};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdBackend, RdsBgdCluster, RdsBgdHost};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1670);

/// A member of a green hostgroup.
struct GreenServer<'a> {
    host: &'a RdsBgdHost,
    hostgroup: u32,
    /// Its status there
    status: &'static str,
    /// A hostgroup where it is alone and ONLINE, so that it gets connections whatever its status elsewhere is
    alone: u32,
    drained_by_success: bool,
}

fn main() -> ExitCode {
    scenario::run(43, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        let others = hosts::cluster_2(scenario.server_port());
        let servers = green_servers(&cluster, &others);
        configure(scenario, &cluster, &servers)?;
        expect(tap, scenario, "AVAILABLE");
        open_connections(tap, scenario, &servers)?;
        test_rollbacks(tap, scenario, &cluster, &servers)?;

        scenario.publish(&cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
        expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
        scenario.publish_completed(&cluster)?;
        expect(tap, scenario, "READER_SWITCHOVER_IN_PROGRESS");
        expect_kept(tap, scenario, &servers, "COMPLETED")?;
        let client = begin_transaction(tap, scenario, &servers[0])?;
        test_success(tap, scenario, &cluster, &servers)?;
        test_transaction(tap, scenario, &servers[0], client)
    })
}

/// The green servers in every status, and some of another cluster, which have no blue counterpart here.
fn green_servers<'a>(cluster: &'a RdsBgdCluster, others: &'a RdsBgdCluster) -> [GreenServer<'a>; 6] {
    let Hostgroups { green_writer, green_reader, .. } = HOSTGROUPS;
    let server = |host, hostgroup, status, alone, drained_by_success| GreenServer {
        host,
        hostgroup,
        status,
        alone,
        drained_by_success,
    };
    [
        server(&cluster.green_writer, green_writer, "ONLINE", 1680, true),
        server(&cluster.green_readers[0], green_reader, "ONLINE", 1681, true),
        server(&cluster.green_readers[1], green_reader, "SHUNNED", 1682, true),
        server(&others.green_writer, green_reader, "ONLINE", 1683, true),
        server(&others.green_readers[0], green_reader, "OFFLINE_SOFT", 1684, false),
        server(&others.green_readers[1], green_reader, "OFFLINE_HARD", 1685, false),
    ]
}

fn configure(
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    servers: &[GreenServer<'_>],
) -> Result<(), Error> {
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.publish(cluster, "AVAILABLE")?;
    for server in servers {
        admin::insert_server(&mut scenario.admin, server.hostgroup, server.host, server.status)?;
        admin::insert_server(&mut scenario.admin, server.alone, server.host, "ONLINE")?;
    }
    let blue = [
        (HOSTGROUPS.writer, &cluster.blue_writer),
        (HOSTGROUPS.reader, &cluster.blue_readers[0]),
        (HOSTGROUPS.reader, &cluster.blue_readers[1]),
    ];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &blue)
}

fn open_connections(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    servers: &[GreenServer<'_>],
) -> Result<(), Error> {
    for server in servers {
        scenario.expect_answer(tap, server.alone, server.host, "its own hostgroup")?;
        let pooled = scenario.admin.wait_until(&format!("{}=1", admin::pooled(server.host)));
        tap.ok_result(pooled, &format!("{}: a pooled connection", server.status));
    }
    Ok(())
}

fn test_rollbacks(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    servers: &[GreenServer<'_>],
) -> Result<(), Error> {
    scenario.publish(cluster, "SWITCHOVER_IN_PROGRESS")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_IN_PROGRESS");
    scenario.publish(cluster, "AVAILABLE")?;
    expect(tap, scenario, "AVAILABLE");
    expect_kept(tap, scenario, servers, "rolled back from IN_PROGRESS")?;

    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
    expect_kept(tap, scenario, servers, "POST_PROCESSING")?;
    let readers = [(&cluster.blue_readers[0], "ONLINE"), (&cluster.blue_readers[1], "ONLINE")];
    let when = "POST_PROCESSING, a SHUNNED green reader is a counterpart";
    scenario.expect_members(tap, HOSTGROUPS.reader, &readers, when)?;
    scenario.publish(cluster, "AVAILABLE")?;
    expect(tap, scenario, "AVAILABLE");
    expect_kept(tap, scenario, servers, "rolled back from POST_PROCESSING")?;

    scenario.publish(cluster, "SWITCHOVER_IN_POST_PROCESSING")?;
    expect(tap, scenario, "WRITER_SWITCHOVER_POST_PROCESSING");
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    expect(tap, scenario, "NONE");
    expect_kept(tap, scenario, servers, "drained before completion")
}

/// A client with a transaction on `server`, beside a free connection. Two tests.
fn begin_transaction(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    server: &GreenServer<'_>,
) -> Result<Connection, Error> {
    // A database of its own: a transaction in the shared one would keep probes from being logged.
    scenario.simulator.backend_update(&[server.host.endpoint()], RdsBgdBackend::default())?;
    scenario.connect_backend(server.host)?.execute("CREATE TABLE t (a INT)")?;
    admin::route_clients(&mut scenario.admin, &scenario.command_line.client.username, server.alone)?;
    let mut client = scenario.command_line.connect_traffic()?;
    client.execute("START TRANSACTION")?;
    client.execute("INSERT INTO t VALUES (1)")?;
    scenario.expect_answer(tap, server.alone, server.host, "another client")?;
    let both = scenario.admin.wait_until(&connections(server, 1, 1));
    tap.ok_result(both, "a connection with a transaction and a free one");
    Ok(client)
}

fn test_success(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    servers: &[GreenServer<'_>],
) -> Result<(), Error> {
    scenario.simulator.topology_delete(&cluster.get_writers())?;
    expect(tap, scenario, "NONE");
    // Without a retry: the drain is finished when NONE is published.
    let in_use = scenario.admin.holds(&connections(&servers[0], 1, 0))?;
    tap.ok(in_use, "drained: the connection with a transaction is left, the free one is not");
    for server in &servers[1..] {
        let left = u64::from(!server.drained_by_success);
        let found = scenario.admin.number(&format!("SELECT {}", admin::pooled(server.host)))?;
        tap.is(found, left, &format!("drained: connections to the {} {}", server.status, server.host.ip));
    }
    // OFFLINE_HARD rows are not shown at runtime.
    let shown = servers.iter().filter(|server| server.status != "OFFLINE_HARD");
    let (writers, readers): (Vec<_>, Vec<_>) =
        shown.partition(|server| server.hostgroup == HOSTGROUPS.green_writer);
    for (hostgroup, members) in [(HOSTGROUPS.green_writer, writers), (HOSTGROUPS.green_reader, readers)] {
        let members: Vec<_> = members.iter().map(|server| (server.host, server.status)).collect();
        scenario.expect_members(tap, hostgroup, &members, "drained")?;
    }
    Ok(())
}

/// The transaction goes on where it began; then its connection is destroyed.
fn test_transaction(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    server: &GreenServer<'_>,
    mut client: Connection,
) -> Result<(), Error> {
    tap.is(scenario::routing_echo(&mut client)?, server.host.ip.clone(), "the transaction is where it was");
    client.execute("INSERT INTO t VALUES (2)")?;
    let in_use = scenario.admin.holds(&connections(server, 1, 0))?;
    tap.ok(in_use, "its connection is in use until it ends");
    client.execute("COMMIT")?;
    let destroyed = scenario.admin.wait_until(&connections(server, 0, 0));
    tap.ok_result(destroyed, "when it has ended its connection is destroyed");
    let rows = scenario.connect_backend(server.host)?.number("SELECT COUNT(*) FROM t")?;
    tap.is(rows, 2, "both of its rows are there");
    let answering = scenario::routing_echo(&mut client)?;
    tap.is(answering, server.host.ip.clone(), "its client goes on with another connection");
    Ok(())
}

/// The condition that so many connections to `server` are used, and free.
fn connections(server: &GreenServer<'_>, used: u32, free: u32) -> String {
    format!(
        "(SELECT SUM(ConnUsed)={used} AND SUM(ConnFree)={free} FROM stats_mysql_connection_pool \
         WHERE hostgroup={})",
        server.alone
    )
}

/// One test: every connection is still there.
fn expect_kept(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    servers: &[GreenServer<'_>],
    when: &str,
) -> Result<(), Error> {
    let kept: Vec<_> = servers.iter().map(|server| format!("{}=1", admin::pooled(server.host))).collect();
    let kept = scenario.admin.holds(&kept.join(" AND "))?;
    tap.ok(kept, &format!("{when}: connections to green servers are kept"));
    Ok(())
}

fn expect(tap: &mut Emitter, scenario: &mut Scenario, status: &str) {
    scenario.expect_status(tap, HOSTGROUPS.writer, status);
}
