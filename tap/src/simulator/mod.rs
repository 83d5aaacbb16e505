//! The client of the simulator: it changes what simulated backends answer and reads which probes reached them.
//!
//! Contract: RDS_BGD_Simulator.md, "TAP Helper API"; names are the contract's in Rust's spelling. Where it says EXIT_SUCCESS,
//! EXIT_FAILURE or `rc_t`, these methods return a `Result` whose error names the endpoint and the statement.
//!
//! It neither advances the monitor nor knows a scenario's timing. Each write is one transaction, so that a
//! concurrent probe sees the old state or the new one.

mod backend;
mod cluster;
mod dns;
mod probe_log;
mod recording;
mod sql;

pub use crate::connection::Endpoint;
pub use backend::{RdsBgdBackend, RdsBgdBackendMode};
pub use cluster::{RdsBgdCluster, RdsBgdHost, RdsBgdTopologyRow};
pub use dns::RdsBgdDnsAnswer;
pub use probe_log::{RdsBgdProbeKind, RdsBgdProbeLog, probe_steps};
pub use recording::{DRIVER_ARTICLE, MONITOR_TRACE, RdsBgdRecording, RecordingError};

use crate::connection::{Connection, Credentials, Error};
use std::num::NonZeroU16;
use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The part that is common to simulators of any kind of cluster. Contract: `Cluster_Simulator`.
pub struct ClusterSimulator {
    control: Connection,
}

impl ClusterSimulator {
    /// Opens the control connection to the SQLite3 server (`CommandLine::simulator`, port 3306 unless set), in clear unless
    /// `use_ssl`. It is closed when the simulator is dropped.
    pub fn connect(endpoint: Endpoint, credentials: &Credentials, use_ssl: bool) -> Result<Self, Error> {
        Ok(Self { control: Connection::open(endpoint, credentials, use_ssl)? })
    }

    /// Sets the read_only value of the server configured as `backend`: its hostname in mysql_servers, not its IP. A server
    /// whose value was never set is read-only. Contract: "Read-Only Simulation".
    pub fn read_only_update(&mut self, backend: &Endpoint, read_only: bool) -> Result<(), Error> {
        self.control.transaction(&[sql::read_only_update(backend, read_only)])
    }
}

/// The simulator of RDS blue/green deployments. Contract: "BGD Topology Operations" and "Probe-Log Operations".
///
/// `backends` are always IPs: topology belongs to exactly the addresses it was written to. A backend to which none was ever
/// written has no topology table.
pub struct RdsBgdSimulator {
    cluster: ClusterSimulator,
}

impl RdsBgdSimulator {
    /// [`ClusterSimulator::connect`].
    pub fn connect(endpoint: Endpoint, credentials: &Credentials, use_ssl: bool) -> Result<Self, Error> {
        Ok(Self { cluster: ClusterSimulator::connect(endpoint, credentials, use_ssl)? })
    }

    /// [`ClusterSimulator::read_only_update`].
    pub fn read_only_update(&mut self, backend: &Endpoint, read_only: bool) -> Result<(), Error> {
        self.cluster.read_only_update(backend, read_only)
    }

    /// On `backends`: the table is present, has exactly `rows`, and answers without error.
    pub fn topology_update(
        &mut self,
        backends: &[Endpoint],
        rows: &[RdsBgdTopologyRow],
    ) -> Result<(), Error> {
        self.write(&sql::topology_update(backends, rows))
    }

    /// On `backends`: the table is present and empty.
    pub fn topology_delete(&mut self, backends: &[Endpoint]) -> Result<(), Error> {
        self.write(&sql::topology_update(backends, &[]))
    }

    /// On `backends`: the table does not exist, and the metadata query fails with error 1146, "Table 'mysql.rds_topology' doesn't exist".
    pub fn topology_drop(&mut self, backends: &[Endpoint]) -> Result<(), Error> {
        self.write(&sql::topology_drop(backends))
    }

    /// On `backends`: the metadata query fails with `error_code`. 1146 also makes the table absent; rows stay as they are.
    pub fn topology_error(
        &mut self,
        backends: &[Endpoint],
        error_code: NonZeroU16,
        message: &str,
    ) -> Result<(), Error> {
        self.write(&sql::topology_error(backends, error_code, message))
    }

    /// Removes all simulator state: read_only values, topology, control rows and the probe log, whose numbers go on growing;
    /// backends' own data and how they treat clients; names and their responder. Call it together with the cleanup of the
    /// admin port.
    pub fn cleanup(&mut self) -> Result<(), Error> {
        self.write(&sql::cleanup())?;
        self.cluster.control.scalar(&dns::listen("")).map(drop)
    }

    /// The sequence number of the newest probe; 0 when the log is empty.
    pub fn probe_log_last_sequence(&mut self) -> Result<u64, Error> {
        self.cluster.control.number(sql::PROBE_LOG_LAST_SEQUENCE)
    }

    /// The probes after `sequence_id`, oldest first.
    pub fn probe_log_since(&mut self, sequence_id: u64) -> Result<Vec<RdsBgdProbeLog>, Error> {
        let statement = sql::probe_log_since(sequence_id);
        let rows = self.cluster.control.rows(&statement)?;
        let parse = |row: &Vec<Option<String>>| {
            RdsBgdProbeLog::from_row(row)
                .ok_or_else(|| self.cluster.control.answer_error(&statement, format!("row {row:?}")))
        };
        rows.iter().map(parse).collect()
    }

    /// Waits up to `timeout` (the contract's `timeout_ms`) for one probe of `probe_kind` on `backend` after `sequence_id`, and
    /// returns the first; [`Error::Timeout`] if none comes. `encrypted`: Some(true) wants TLS, Some(false) plaintext (1 and 0 in
    /// the contract), None either (-1).
    pub fn wait_for_probe_log(
        &mut self,
        sequence_id: u64,
        backend: &Endpoint,
        probe_kind: RdsBgdProbeKind,
        timeout: Duration,
        encrypted: Option<bool>,
    ) -> Result<RdsBgdProbeLog, Error> {
        let deadline = Instant::now() + timeout;
        let matches = |probe: &RdsBgdProbeLog| {
            probe.backend == *backend
                && probe.probe_kind == probe_kind
                && encrypted.is_none_or(|wanted| probe.encrypted == wanted)
        };
        loop {
            if let Some(probe) = self.probe_log_since(sequence_id)?.into_iter().find(matches) {
                return Ok(probe);
            }
            if Instant::now() >= deadline {
                return Err(Error::Timeout {
                    endpoint: self.cluster.control.endpoint().clone(),
                    awaited: format!("{probe_kind:?} probe on {backend} after sequence {sequence_id}"),
                    waited: timeout,
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn write(&mut self, statements: &[String]) -> Result<(), Error> {
        self.cluster.control.transaction(statements)
    }
}
