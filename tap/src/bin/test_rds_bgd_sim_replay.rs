//! Two recorded switchovers, played while a client writes: statuses come in the lifecycle's order, every acknowledged row is
//! on exactly one writer, and names lead to the green one in the end.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tap::admin::{self, Hostgroups};
use tap::command_line::CommandLine;
use tap::connection::{Connection, Error};
use tap::emitter::Emitter;
use tap::scenario::{self, Scenario};
use tap::simulator::{DRIVER_ARTICLE, MONITOR_TRACE, RdsBgdHost, RdsBgdRecording};

/// The recordings take one and a half and over two minutes.
const SPEED: NonZeroU32 = NonZeroU32::new(20).unwrap();
/// Time between two rows, and between two looks at the status.
const PACE: Duration = Duration::from_millis(10);
/// What a deployment goes through. A status that is over before anybody looks is not seen.
const LIFECYCLE: [&str; 8] = [
    "NONE",
    "AVAILABLE",
    "WRITER_SWITCHOVER_INITIATED",
    "WRITER_SWITCHOVER_IN_PROGRESS",
    "WRITER_SWITCHOVER_POST_PROCESSING",
    "READER_SWITCHOVER_IN_PROGRESS",
    "SWITCHOVER_COMPLETED",
    "NONE",
];

fn main() -> ExitCode {
    scenario::run(14, |tap, scenario| {
        test_recording(tap, scenario, "monitor trace", MONITOR_TRACE, Hostgroups::starting_at(1500))?;
        test_recording(tap, scenario, "driver article", DRIVER_ARTICLE, Hostgroups::starting_at(1510))
    })
}

/// What was seen while a recording played.
struct Seen {
    /// Without repetitions
    statuses: Vec<String>,
    /// Ids of rows whose INSERT was answered with OK
    written: Vec<u64>,
    /// Errors of those that were not
    refused: Vec<String>,
}

fn test_recording(
    tap: &mut Emitter,
    scenario: &mut Scenario,
    name: &str,
    text: &str,
    hostgroups: Hostgroups,
) -> Result<(), Error> {
    let recording = match RdsBgdRecording::parse(text, scenario.server_port()) {
        Ok(recording) => recording,
        Err(error) => {
            tap.ok(false, &format!("{name}: {error}"));
            return Ok(());
        }
    };
    let (Some(blue), Some(green)) = (recording.host("blue"), recording.host("green")) else {
        tap.ok(false, &format!("{name}: has hosts called blue and green"));
        return Ok(());
    };
    configure(scenario, hostgroups, blue, green)?;
    let seen = play(scenario, &recording, hostgroups.writer)?;
    tap.ok(in_order(&seen.statuses), &format!("{name}: statuses are in the lifecycle's order"));
    tap.diag(&seen.statuses.join(", "));
    scenario.expect_status(tap, hostgroups.writer, "NONE");

    let on_blue = ids(&mut scenario.connect_backend(blue)?)?;
    let on_green = ids(&mut scenario.connect_backend(green)?)?;
    tap.ok(!on_blue.is_empty() && !on_green.is_empty(), &format!("{name}: both writers had their time"));
    tap.diag(&format!("{} rows on blue, {} on green", on_blue.len(), on_green.len()));
    let all: Vec<u64> = on_blue.iter().chain(&on_green).copied().collect();
    tap.is(
        all,
        seen.written,
        &format!("{name}: what was acknowledged is on blue first, then on green, once"),
    );
    let unexpected: Vec<_> = seen.refused.iter().filter(|error| !error.contains("1290")).collect();
    tap.ok(unexpected.is_empty(), &format!("{name}: nothing but a read-only writer refused a row"));
    for error in &unexpected {
        tap.diag(error);
    }
    tap.is(
        scenario.answering_ip(hostgroups.writer)?,
        green.ip.clone(),
        &format!("{name}: the blue name leads to green"),
    );
    let unpinned = scenario.admin.wait_until(&admin::online_in(hostgroups.writer, blue));
    tap.ok_result(unpinned, &format!("{name}: the writer is in its place"));
    Ok(())
}

/// The deployment, and the application's table on both writers.
fn configure(
    scenario: &mut Scenario,
    hostgroups: Hostgroups,
    blue: &RdsBgdHost,
    green: &RdsBgdHost,
) -> Result<(), Error> {
    scenario.use_simulated_dns()?;
    for writer in [blue, green] {
        scenario.simulator.backend_update(&[writer.endpoint()], Default::default())?;
        scenario
            .simulator
            .dns_update(&writer.hostname, &tap::simulator::RdsBgdDnsAnswer::address(&writer.ip))?;
        scenario.connect_backend(writer)?.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;
    }
    scenario.simulator.read_only_update(&blue.host_endpoint(), false)?;
    let members = [(hostgroups.writer, blue), (hostgroups.green_writer, green)];
    admin::configure_deployment(&mut scenario.admin, hostgroups, &members)?;
    admin::route_clients(&mut scenario.admin, &scenario.command_line.client.username, hostgroups.writer)
}

/// Plays the recording while one thread writes and another looks at the status.
fn play(scenario: &mut Scenario, recording: &RdsBgdRecording, hostgroup: u32) -> Result<Seen, Error> {
    let over = AtomicBool::new(false);
    let command_line = scenario.command_line.clone();
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&command_line, &over));
        let watcher = scope.spawn(|| watch(&command_line, hostgroup, &over));
        let played = recording.play(&mut scenario.simulator, SPEED);
        let ended = scenario.admin.wait_until(&admin::status_is(hostgroup, "NONE"));
        over.store(true, Ordering::Relaxed);
        let (written, refused) = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let statuses = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        played.and(ended)?;
        Ok(Seen { statuses, written, refused })
    })
}

/// Inserts one row after the other. Returns the ids of those that were acknowledged, and the errors of the others.
fn write(command_line: &CommandLine, over: &AtomicBool) -> Result<(Vec<u64>, Vec<String>), Error> {
    let mut client = command_line.connect_traffic()?;
    let (mut written, mut refused) = (Vec::new(), Vec::new());
    for id in 1.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        match client.execute(&format!("INSERT INTO orders(id) VALUES ({id})")) {
            Ok(_) => written.push(id),
            Err(error) => refused.push(error.to_string()),
        }
        thread::sleep(PACE);
    }
    Ok((written, refused))
}

/// The statuses of a deployment, one after the other.
fn watch(command_line: &CommandLine, hostgroup: u32, over: &AtomicBool) -> Result<Vec<String>, Error> {
    let mut admin = command_line.connect_admin()?;
    let mut statuses = Vec::new();
    while !over.load(Ordering::Relaxed) {
        statuses.push(admin.scalar(&admin::status_query(hostgroup))?.unwrap_or_default());
        statuses.dedup();
        thread::sleep(PACE);
    }
    Ok(statuses)
}

/// Whether the statuses are the lifecycle's, with none out of its turn, and the switchover among them.
fn in_order(statuses: &[String]) -> bool {
    let mut lifecycle = LIFECYCLE.into_iter();
    let ordered = statuses.iter().all(|status| lifecycle.any(|expected| expected == status));
    ordered && statuses.iter().any(|status| status == "WRITER_SWITCHOVER_POST_PROCESSING")
}

fn ids(backend: &mut Connection) -> Result<Vec<u64>, Error> {
    let rows = backend.rows("SELECT id FROM orders ORDER BY id")?;
    Ok(rows.into_iter().flatten().flatten().filter_map(|id| id.parse().ok()).collect())
}
