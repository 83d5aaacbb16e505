//! The frame of a scenario binary: set up, run, clean up, report.

use crate::admin;
use crate::command_line::CommandLine;
use crate::connection::{Connection, EFFECT_TIMEOUT, Error};
use crate::emitter::Emitter;
use crate::simulator::{Endpoint, RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind, RdsBgdSimulator, probe_steps};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod expectations;

/// Answered by the simulated backend with its own address. In exactly this upper-case spelling: the lower-case one may
/// be answered by the proxy itself.
pub const ROUTING_ECHO: &str = "SELECT @@version_comment LIMIT 1";

/// Five polls, or five read_only checks, at the intervals that scenarios configure: long enough to see one that must not be.
pub const QUIET_WINDOW: Duration = Duration::from_millis(500);

/// The connections every scenario has. Configuration and expectations are the scenario's own.
pub struct Scenario {
    /// Where the daemon is
    pub command_line: CommandLine,
    /// The admin port
    pub admin: Connection,
    /// The simulated backends
    pub simulator: RdsBgdSimulator,
}

impl Scenario {
    /// Connects, and removes whatever an earlier scenario may have left.
    fn set_up(command_line: CommandLine) -> Result<Self, Error> {
        let admin = command_line.connect_admin()?;
        let simulator =
            RdsBgdSimulator::connect(command_line.simulator.clone(), &command_line.client, false)?;
        let mut scenario = Self { command_line, admin, simulator };
        scenario.clean_up()?;
        admin::configure_monitor(&mut scenario.admin, &scenario.command_line.client)?;
        Ok(scenario)
    }

    /// Removes all configuration and all state of the simulator: admin state first, so that no worker sees the simulator's vanish.
    pub fn clean_up(&mut self) -> Result<(), Error> {
        admin::cleanup(&mut self.admin, &self.command_line.client.username)?;
        self.simulator.cleanup()
    }

    /// The port of every server in a scenario.
    pub fn server_port(&self) -> u16 {
        self.command_line.simulator.port
    }

    /// Publishes `cluster`'s writers with `status`, on both of them.
    pub fn publish(&mut self, cluster: &RdsBgdCluster, status: &str) -> Result<(), Error> {
        self.simulator.topology_update(&cluster.get_writers(), &cluster.get_topology(status))
    }

    /// Publishes that the writer's switchover has completed: the target alone.
    pub fn publish_completed(&mut self, cluster: &RdsBgdCluster) -> Result<(), Error> {
        self.simulator.topology_update(&cluster.get_writers(), &cluster.get_completed_topology())
    }

    /// Waits until `server` has been asked for `kind` after the probe `seen`, and returns that probe's number.
    pub fn wait_for_probe(
        &mut self,
        server: &RdsBgdHost,
        kind: RdsBgdProbeKind,
        seen: u64,
        encrypted: Option<bool>,
    ) -> Result<u64, Error> {
        let backend = server.endpoint();
        let probe = self.simulator.wait_for_probe_log(seen, &backend, kind, EFFECT_TIMEOUT, encrypted)?;
        Ok(probe.sequence_id)
    }

    /// [`Self::wait_for_probe`], for metadata.
    pub fn wait_for_metadata(
        &mut self,
        server: &RdsBgdHost,
        seen: u64,
        encrypted: Option<bool>,
    ) -> Result<u64, Error> {
        self.wait_for_probe(server, RdsBgdProbeKind::Metadata, seen, encrypted)
    }

    /// Waits for `count` probes of `server` after the probe `seen`. What all but the last of them said has been acted upon by then.
    pub fn wait_for_probes(
        &mut self,
        server: &RdsBgdHost,
        kind: RdsBgdProbeKind,
        seen: u64,
        count: usize,
    ) -> Result<(), Error> {
        (0..count).try_fold(seen, |seen, _| self.wait_for_probe(server, kind, seen, None)).map(drop)
    }

    /// The way that the monitor went after the probe `seen`.
    pub fn probe_steps_since(&mut self, seen: u64) -> Result<Vec<(RdsBgdProbeKind, Endpoint)>, Error> {
        Ok(probe_steps(&self.simulator.probe_log_since(seen)?))
    }

    /// From now on the daemon asks the simulator for names first. Cleaning up ends it.
    pub fn use_simulated_dns(&mut self) -> Result<(), Error> {
        let address = self.simulator.dns_listen()?;
        admin::use_dns_server(&mut self.admin, &address)
    }

    /// A connection to a backend itself, past the proxy: to see and to make what it holds.
    pub fn connect_backend(&self, backend: &RdsBgdHost) -> Result<Connection, Error> {
        Connection::open(backend.endpoint(), &self.command_line.client, false)
    }

    /// The IP of the backend that answers a new client whose hostgroup is `hostgroup`.
    pub fn answering_ip(&mut self, hostgroup: u32) -> Result<String, Error> {
        admin::route_clients(&mut self.admin, &self.command_line.client.username, hostgroup)?;
        let mut client = self.command_line.connect_traffic()?;
        routing_echo(&mut client)
    }
}

/// The IP of the backend that answers on `client`.
pub fn routing_echo(client: &mut Connection) -> Result<String, Error> {
    let answer = client.scalar(ROUTING_ECHO)?.unwrap_or_default();
    Ok(backend_ip(&answer).to_owned())
}

/// The backend's address at the end of a routing echo, as in `(Product) - 127.10.0.11`.
fn backend_ip(answer: &str) -> &str {
    answer.rsplit(' ').next().unwrap_or(answer)
}

/// Wall-clock time in µs of the epoch, the unit of `time_start_us`.
pub fn now_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros())
}

/// Runs one scenario of `tests` tests as a whole program. State is cleaned up before and after, also when it fails.
pub fn run(
    tests: usize,
    scenario: impl FnOnce(&mut Emitter, &mut Scenario) -> Result<(), Error>,
) -> ExitCode {
    let mut tap = Emitter::stdout();
    tap.plan(tests);
    let command_line = match CommandLine::from_environment(|file| tap.diag(file)) {
        Ok(command_line) => command_line,
        Err(error) => {
            tap.bail_out(&error.to_string());
            return tap.exit_status();
        }
    };
    match Scenario::set_up(command_line) {
        Err(error) => tap.bail_out(&format!("setup: {error}")),
        Ok(mut connections) => {
            if let Err(error) = scenario(&mut tap, &mut connections) {
                // The tests that did not run leave the plan unmet, so this is a failure.
                tap.diag(&format!("stopped: {error}"));
            }
            if let Err(error) = connections.clean_up() {
                tap.bail_out(&format!("cleanup: {error}"));
            }
        }
    }
    tap.exit_status()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_ip_ends_the_answer() {
        assert_eq!(backend_ip("(ProxySQL Automated Test Server) - 127.10.0.14"), "127.10.0.14");
        assert_eq!(backend_ip("127.10.0.14"), "127.10.0.14");
        assert_eq!(backend_ip(""), "");
    }
}
