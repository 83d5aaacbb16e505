//! Application traffic at a simulated backend: what becomes of a connection or a statement, by the backend's row in
//! RDS_BGD_BACKEND. Probes and read_only checks share the backend's fate on the network (refuse, stall) and nothing else.

use super::behaviour::{Behaviour, Mode};
use super::endpoint::Endpoint;
use super::{Backend, NAMES, Simulator, failure};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use wire::socket::Socket;
use wire::{SqlError, WireError};

/// How long a stalled client is kept. Most leave before; a thread must not wait for ever.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// How soon a wait notices a change, and the daemon's end.
const TICK: Duration = Duration::from_millis(10);

/// Whether a statement is about the simulator itself: it names one of its tables.
pub(crate) fn concerns(sql: &str) -> bool {
    let names = |name: &str| {
        sql.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    };
    NAMES.into_iter().any(names)
}

impl Simulator {
    /// Lets a new connection pass, or not: called before the greeting. `Err` ends it.
    pub(crate) fn greet(&self, client: &Socket) -> Result<(), WireError> {
        let endpoint = Endpoint::of(client);
        self.pass(endpoint.as_ref(), client).map(drop)
    }

    /// Waits while the backend stalls and returns its row then. `Err` where it refuses, or stalled for too long.
    fn pass(&self, endpoint: Option<&Endpoint>, client: &Socket) -> Result<Option<Behaviour>, WireError> {
        let row = || endpoint.and_then(|endpoint| self.behaviours.get(endpoint));
        let stalls = || row().is_some_and(|row| row.mode == Mode::Stall);
        wait(client, STALL_LIMIT, || !stalls())?;
        match row() {
            Some(Behaviour { mode: Mode::Refuse | Mode::Stall, .. }) => Err(WireError::Closed),
            row => Ok(row),
        }
    }
}

impl Backend {
    /// Lets a statement pass, or not, and says on which database file it runs. `own` is whether the statement is the
    /// client's own and not one for the simulator, which is always the same file. `Err` ends the connection.
    pub(crate) fn admit(&mut self, own: bool) -> Result<PathBuf, WireError> {
        let row = self.simulator.pass(self.endpoint.as_ref(), &self.client)?;
        self.treatment = row.filter(|_| own);
        let (Some(row), Some(endpoint)) = (self.treatment, &self.endpoint) else {
            return Ok(self.simulator.file.clone());
        };
        let begin = Instant::now();
        wait(&self.client, row.latency, || begin.elapsed() >= row.latency)?;
        self.statements += 1;
        Ok(self.simulator.own_data.file(endpoint))
    }

    /// Makes a file that `admit` named, if it is not there yet.
    pub(crate) fn make(&self, file: &Path) -> Result<(), SqlError> {
        if self.is_shared_file(file) {
            return Ok(());
        }
        let failed = |error| failure(&format!("cannot make {}: {error}", file.display()));
        self.simulator.own_data.make(file).map_err(failed)
    }

    /// Whether a file is the database that all backends share, where the simulator's tables are.
    pub(crate) fn is_shared_file(&self, file: &Path) -> bool {
        self.simulator.file == file
    }

    /// What a statement that writes is answered by a backend that is read-only.
    pub(crate) fn write_error(&self) -> Option<SqlError> {
        let read_only = self.treatment.is_some_and(|row| row.mode == Mode::ReadOnly);
        let text =
            "The MySQL server is running with the --read-only option so it cannot execute this statement";
        read_only.then(|| SqlError::new(1290, "HY000", text))
    }

    /// Takes note that a statement was answered. `Err` where the backend closes the connection after so many.
    pub(crate) fn answered(&self) -> Result<(), WireError> {
        match self.treatment {
            Some(row) if row.close_after > 0 && self.statements >= row.close_after => {
                // Now, and not when the session's database has been closed: the client could send another statement meanwhile.
                self.client.shutdown(Shutdown::Both);
                Err(WireError::Closed)
            }
            _ => Ok(()),
        }
    }
}

/// Waits until `done`, at most for `limit`. `Err` where the connection is cut meanwhile, as when the daemon stops.
fn wait(client: &Socket, limit: Duration, done: impl Fn() -> bool) -> Result<(), WireError> {
    let end = Instant::now() + limit;
    while !done() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if client.is_cut() {
            return Err(WireError::Closed);
        }
        thread::sleep(TICK.min(left));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn statements_on_the_simulator_s_tables_are_recognised() {
        assert!(concerns("insert or replace into readonly_status VALUES ('a', 1, 1)"));
        assert!(concerns("SELECT rds_bgd_dns_listen('')"));
        assert!(concerns("SELECT * FROM `RDS_BGD_Topology`"));
        assert!(!concerns("DELETE FROM READONLY"));
        assert!(!concerns("é"));
    }

    #[test]
    fn a_wait_ends_with_its_reason_its_limit_or_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let client = Socket::new(listener.accept().unwrap().0).unwrap();
        let hour = Duration::from_secs(3600);
        assert!(wait(&client, hour, || true).is_ok());
        assert!(wait(&client, Duration::from_millis(1), || false).is_ok());
        client.shutdown(Shutdown::Both);
        assert!(matches!(wait(&client, hour, || false), Err(WireError::Closed)));
    }
}
