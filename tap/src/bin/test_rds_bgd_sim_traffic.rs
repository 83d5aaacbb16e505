//! Application traffic through the proxy, and where it lands: which backend holds a row before and after the writer's
//! switchover, and what clients meet at a backend that is read-only, slow, closes connections, refuses or stalls.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use tap::admin::{self, Hostgroups};
use tap::connection::{Connection, Error};
use tap::emitter::Emitter;
use tap::hosts;
use tap::scenario::{self, Scenario};
use tap::simulator::{RdsBgdBackend, RdsBgdBackendMode, RdsBgdCluster, RdsBgdHost};

const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(1400);
const LATENCY: Duration = Duration::from_millis(200);

/// The application: it writes through the proxy and remembers what was acknowledged.
struct Client {
    connection: Connection,
    acknowledged: Vec<String>,
}

impl Client {
    fn insert(&mut self, id: u32) -> Result<(), Error> {
        self.connection.execute(&format!("INSERT INTO orders(id) VALUES ({id})"))?;
        self.acknowledged.push(id.to_string());
        Ok(())
    }
}

fn main() -> ExitCode {
    scenario::run(21, |tap, scenario| {
        let cluster = hosts::cluster_1_green_a(scenario.server_port());
        configure(scenario, &cluster)?;
        scenario.expect_status(tap, HOSTGROUPS.writer, "AVAILABLE");
        admin::route_clients(&mut scenario.admin, &scenario.command_line.client.username, HOSTGROUPS.writer)?;
        let mut client =
            Client { connection: scenario.command_line.connect_traffic()?, acknowledged: Vec::new() };
        client.insert(1)?;
        expect_rows(tap, scenario, &cluster.blue_writer, &["1".to_owned()], "a row is on the blue writer")?;
        expect_rows(tap, scenario, &cluster.green_writer, &[], "and not on the green one")?;
        test_read_only(tap, scenario, &cluster, &mut client)?;
        test_latency(tap, scenario, &cluster, &mut client)?;
        test_closed_connections(tap, scenario, &cluster, &mut client)?;
        test_stall(tap, scenario, &cluster, &mut client)?;
        test_refusal(tap, scenario, &cluster, &mut client)?;
        test_switchover(tap, scenario, &cluster, &mut client)?;
        test_end_of_own_data(tap, scenario, &cluster)
    })
}

/// Both writers have a table of the application's.
fn configure(scenario: &mut Scenario, cluster: &RdsBgdCluster) -> Result<(), Error> {
    scenario.simulator.backend_update(&cluster.get_writers(), RdsBgdBackend::default())?;
    for writer in [&cluster.blue_writer, &cluster.green_writer] {
        scenario.connect_backend(writer)?.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;
    }
    scenario.simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;
    scenario.simulator.topology_update(&cluster.get_writers(), &cluster.get_topology("AVAILABLE"))?;
    let members =
        [(HOSTGROUPS.writer, &cluster.blue_writer), (HOSTGROUPS.green_writer, &cluster.green_writer)];
    admin::configure_deployment(&mut scenario.admin, HOSTGROUPS, &members)
}

fn test_read_only(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    treat(scenario, &cluster.blue_writer, RdsBgdBackendMode::ReadOnly.into())?;
    let refused = client.insert(2).err().map(|error| error.to_string()).unwrap_or_default();
    tap.ok(refused.contains("1290"), "read_only: a write is refused with error 1290");
    tap.diag(&refused);
    tap.is(client.connection.number("SELECT COUNT(*) FROM orders")?, 1, "read_only: a read is answered");
    treat(scenario, &cluster.blue_writer, RdsBgdBackend::default())
}

fn test_latency(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    treat(scenario, &cluster.blue_writer, RdsBgdBackend { latency: LATENCY, ..RdsBgdBackend::default() })?;
    let begin = Instant::now();
    client.insert(3)?;
    tap.ok(begin.elapsed() >= LATENCY, "latency: a statement takes its time");
    Ok(())
}

/// What the proxy sends on a connection that closes just then is lost, and its client told.
fn test_closed_connections(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    let blue = &cluster.blue_writer;
    treat(scenario, blue, RdsBgdBackend { close_after: 4, ..RdsBgdBackend::default() })?;
    let mut direct = scenario.connect_backend(blue)?;
    let answered = [(); 5].map(|()| direct.rows("SELECT id FROM orders").is_ok());
    tap.is(
        answered,
        [true, true, true, true, false],
        "close_after: a connection ends when it has been answered so often",
    );
    for id in 4..=8 {
        if let Err(error) = client.insert(id) {
            tap.diag(&error.to_string());
        }
    }
    treat(scenario, blue, RdsBgdBackend::default())?;
    tap.ok_result(client.insert(9), "close_after: the client's session outlasts its server connections");
    expect_rows(tap, scenario, blue, &client.acknowledged, "close_after: what was acknowledged is there")
}

fn test_stall(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    treat(scenario, &cluster.blue_writer, RdsBgdBackendMode::Stall.into())?;
    let (held, outcome) = thread::scope(|scope| {
        let stalled = scope.spawn(|| client.insert(10));
        let busy = format!(
            "(SELECT COALESCE(SUM(ConnUsed),0) FROM stats_mysql_connection_pool WHERE hostgroup={})=1",
            HOSTGROUPS.writer
        );
        let busy = scenario.admin.wait_until(&busy);
        let held = busy.is_ok() && !stalled.is_finished();
        treat(scenario, &cluster.blue_writer, RdsBgdBackend::default())?;
        let outcome = stalled.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, Error>((held, outcome))
    })?;
    tap.ok(held, "stall: a statement gets no answer");
    tap.ok_result(outcome, "stall: it gets one when the stall is over");
    Ok(())
}

fn test_refusal(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    let blue = &cluster.blue_writer;
    treat(scenario, blue, RdsBgdBackendMode::Refuse.into())?;
    tap.ok(scenario.connect_backend(blue).is_err(), "refuse: a connection is closed before the greeting");
    tap.ok(client.insert(11).is_err(), "refuse: a write on an open connection is lost, and its client told");
    treat(scenario, blue, RdsBgdBackend::default())?;
    tap.ok_result(client.insert(12), "refuse: the client's session goes on afterwards");
    expect_rows(tap, scenario, blue, &client.acknowledged, "refuse: the lost row is not there")
}

fn test_switchover(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
    client: &mut Client,
) -> Result<(), Error> {
    for (published, status) in [
        ("SWITCHOVER_INITIATED", "WRITER_SWITCHOVER_INITIATED"),
        ("SWITCHOVER_IN_PROGRESS", "WRITER_SWITCHOVER_IN_PROGRESS"),
        ("SWITCHOVER_IN_POST_PROCESSING", "WRITER_SWITCHOVER_POST_PROCESSING"),
    ] {
        scenario.simulator.topology_update(&cluster.get_writers(), &cluster.get_topology(published))?;
        scenario.expect_status(tap, HOSTGROUPS.writer, status);
    }
    let on_blue = client.acknowledged.clone();
    client.insert(13)?;
    expect_rows(
        tap,
        scenario,
        &cluster.green_writer,
        &["13".to_owned()],
        "after the switchover a row is on the green writer",
    )?;
    expect_rows(tap, scenario, &cluster.blue_writer, &on_blue, "and not on the blue one")
}

fn test_end_of_own_data(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    cluster: &RdsBgdCluster,
) -> Result<(), Error> {
    scenario.simulator.backend_delete(&cluster.get_writers())?;
    let gone = scenario.connect_backend(&cluster.green_writer)?.rows("SELECT id FROM orders");
    tap.ok(gone.is_err(), "a backend that loses its row loses its data");
    Ok(())
}

fn treat(scenario: &mut Scenario, server: &RdsBgdHost, treatment: RdsBgdBackend) -> Result<(), Error> {
    scenario.simulator.backend_update(&[server.endpoint()], treatment)
}

/// The ids of the rows that `server` itself has.
fn expect_rows(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    server: &RdsBgdHost,
    expected: &[String],
    description: &str,
) -> Result<(), Error> {
    let rows = scenario.connect_backend(server)?.rows("SELECT id FROM orders ORDER BY id")?;
    let ids: Vec<_> = rows.into_iter().flatten().flatten().collect();
    tap.is(ids, expected.to_vec(), description);
    Ok(())
}
