//! The frame of a scenario binary: set up, run, clean up, report.

use crate::admin;
use crate::command_line::CommandLine;
use crate::connection::{Connection, EFFECT_TIMEOUT, Error};
use crate::emitter::Emitter;
use crate::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdProbeKind, RdsBgdSimulator};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Answered by the simulated backend with its own address. In exactly this upper-case spelling: the lower-case one may
/// be answered by the proxy itself.
pub const ROUTING_ECHO: &str = "SELECT @@version_comment LIMIT 1";

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

    /// One test: the deployment with this blue writer hostgroup gets `status`. If not, the one it has is shown.
    pub fn expect_status(&mut self, tap: &mut Emitter, writer_hostgroup: u32, status: &str) {
        let reached = self.admin.wait_until(&admin::status_is(writer_hostgroup, status));
        if !tap.ok_result(reached, &format!("status {status}")) {
            tap.diag(&format!("status is {:?}", self.admin.scalar(&admin::status_query(writer_hostgroup))));
        }
    }

    /// Publishes `cluster`'s writers with `status`, on both of them.
    pub fn publish(&mut self, cluster: &RdsBgdCluster, status: &str) -> Result<(), Error> {
        self.simulator.topology_update(&cluster.get_writers(), &cluster.get_topology(status))
    }

    /// Publishes that the writer's switchover has completed: the target alone.
    pub fn publish_completed(&mut self, cluster: &RdsBgdCluster) -> Result<(), Error> {
        self.simulator.topology_update(&cluster.get_writers(), &cluster.get_completed_topology())
    }

    /// One test: `hostgroup` has exactly these members at runtime, with these statuses.
    pub fn expect_members(
        &mut self,
        tap: &mut Emitter,
        hostgroup: u32,
        members: &[(&RdsBgdHost, &str)],
        when: &str,
    ) -> Result<(), Error> {
        let mut expected: Vec<_> =
            members.iter().map(|(host, status)| format!("{} {status}", host.hostname)).collect();
        expected.sort_unstable();
        let found = admin::members(&mut self.admin, hostgroup)?;
        tap.is(found, expected, &format!("{when}: members of hostgroup {hostgroup}"));
        Ok(())
    }

    /// One test: a new client whose hostgroup is `hostgroup` is answered by `server`.
    pub fn expect_answer(
        &mut self,
        tap: &mut Emitter,
        hostgroup: u32,
        server: &RdsBgdHost,
        what: &str,
    ) -> Result<(), Error> {
        let ip = self.answering_ip(hostgroup)?;
        tap.is(ip, server.ip.clone(), &format!("{what} is answered by {}", server.ip));
        Ok(())
    }

    /// One test: from now on the topology is asked of `server`, which is read in the probe log.
    pub fn expect_probed(
        &mut self,
        tap: &mut Emitter,
        server: &RdsBgdHost,
        encrypted: Option<bool>,
        what: &str,
    ) -> Result<(), Error> {
        let seen = self.simulator.probe_log_last_sequence()?;
        let kind = RdsBgdProbeKind::Metadata;
        let probe =
            self.simulator.wait_for_probe_log(seen, &server.endpoint(), kind, EFFECT_TIMEOUT, encrypted);
        tap.ok_result(probe, what);
        Ok(())
    }

    /// Waits until `server` has been asked for metadata after the probe `seen`, and returns that probe's number.
    pub fn wait_for_metadata(
        &mut self,
        server: &RdsBgdHost,
        seen: u64,
        encrypted: Option<bool>,
    ) -> Result<u64, Error> {
        let (backend, kind) = (server.endpoint(), RdsBgdProbeKind::Metadata);
        let probe = self.simulator.wait_for_probe_log(seen, &backend, kind, EFFECT_TIMEOUT, encrypted)?;
        Ok(probe.sequence_id)
    }

    /// Two tests: `changes` of the servers are taken up in place, so that the blue writer is asked first and then the green one again
    /// and again, and nobody is asked whether the table exists.
    pub fn expect_refresh(
        &mut self,
        tap: &mut Emitter,
        cluster: &RdsBgdCluster,
        encrypted: Option<bool>,
        changes: &[String],
        what: &str,
    ) -> Result<(), Error> {
        let baseline = self.simulator.probe_log_last_sequence()?;
        admin::change_servers(&mut self.admin, changes)?;
        let direct = self
            .wait_for_metadata(&cluster.blue_writer, baseline, None)
            .and_then(|blue| self.wait_for_metadata(&cluster.green_writer, blue, encrypted))
            .and_then(|green| self.wait_for_metadata(&cluster.green_writer, green, encrypted));
        tap.ok_result(direct, &format!("{what}: blue is asked, then green again and again"));
        let probes = self.simulator.probe_log_since(baseline)?;
        let checks = probes.iter().filter(|probe| probe.probe_kind == RdsBgdProbeKind::TableCheck).count();
        tap.is(checks, 0, &format!("{what}: no table check"));
        Ok(())
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
