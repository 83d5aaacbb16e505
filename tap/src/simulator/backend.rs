//! How simulated backends treat application traffic. Beyond the simulator specification: RDS_BGD_BACKEND in
//! docs/simulator.md.

use super::RdsBgdSimulator;
use crate::connection::{Endpoint, Error, quote};
use std::time::Duration;

/// What a backend does with connections and statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RdsBgdBackendMode {
    /// It answers
    #[default]
    Serve,
    /// It answers what only reads; error 1290 for the rest
    ReadOnly,
    /// It closes connections before the greeting, and open ones at their next statement
    Refuse,
    /// It accepts connections and statements and answers neither
    Stall,
}

/// How a backend treats application traffic. The default is a backend that serves at once and for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RdsBgdBackend {
    /// What it does
    pub mode: RdsBgdBackendMode,
    /// How long it takes over each statement of a client; at most a minute
    pub latency: Duration,
    /// After how many statements it closes a connection; 0 for never
    pub close_after: u32,
}

impl From<RdsBgdBackendMode> for RdsBgdBackend {
    fn from(mode: RdsBgdBackendMode) -> Self {
        Self { mode, ..Self::default() }
    }
}

impl RdsBgdSimulator {
    /// `backends` have data of their own from now on, if they have not yet, and treat clients so. What is on a backend is seen
    /// by connecting to it.
    pub fn backend_update(&mut self, backends: &[Endpoint], treatment: RdsBgdBackend) -> Result<(), Error> {
        self.write(&update(backends, treatment))
    }

    /// `backends` lose their own data, and serve what all share.
    pub fn backend_delete(&mut self, backends: &[Endpoint]) -> Result<(), Error> {
        let delete = |backend: &Endpoint| {
            format!(
                "DELETE FROM RDS_BGD_BACKEND WHERE backend_ip={} AND backend_port={}",
                quote(&backend.host),
                backend.port
            )
        };
        self.write(&backends.iter().map(delete).collect::<Vec<_>>())
    }
}

pub(super) fn update(backends: &[Endpoint], treatment: RdsBgdBackend) -> Vec<String> {
    let RdsBgdBackend { mode, latency, close_after } = treatment;
    let mode = match mode {
        RdsBgdBackendMode::Serve => "serve",
        RdsBgdBackendMode::ReadOnly => "read_only",
        RdsBgdBackendMode::Refuse => "refuse",
        RdsBgdBackendMode::Stall => "stall",
    };
    let row = |backend: &Endpoint| {
        format!(
            "INSERT OR REPLACE INTO RDS_BGD_BACKEND(backend_ip,backend_port,mode,latency_ms,close_after) \
             VALUES ({},{},{},{},{close_after})",
            quote(&backend.host),
            backend.port,
            quote(mode),
            latency.as_millis()
        )
    };
    backends.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_backend_gets_its_row() {
        let backends = [Endpoint::new("127.10.0.11", 3306), Endpoint::new("127.10.0.14", 3307)];
        let treatment = RdsBgdBackend {
            mode: RdsBgdBackendMode::ReadOnly,
            latency: Duration::from_millis(20),
            close_after: 3,
        };
        let statements = update(&backends, treatment);
        assert_eq!(statements.len(), 2);
        assert!(statements[0].ends_with("VALUES ('127.10.0.11',3306,'read_only',20,3)"), "{}", statements[0]);
        assert!(statements[1].ends_with("VALUES ('127.10.0.14',3307,'read_only',20,3)"), "{}", statements[1]);
        for (mode, name) in [
            (RdsBgdBackendMode::Serve, "serve"),
            (RdsBgdBackendMode::Refuse, "refuse"),
            (RdsBgdBackendMode::Stall, "stall"),
        ] {
            let statements = update(&backends[..1], mode.into());
            assert!(statements[0].ends_with(&format!("3306,'{name}',0,0)")), "{}", statements[0]);
        }
    }
}
