//! Topology probes: the state of a simulated backend and what each probe of it is answered.

use super::Endpoint;
use rusqlite::{Connection, OptionalExtension};
use wire::SqlError;

/// The tables of the contract, "SQLite3-Server Storage".
pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS RDS_BGD_CONTROL (
    backend_ip TEXT NOT NULL,
    backend_port INTEGER NOT NULL,
    topology_present INTEGER NOT NULL DEFAULT 0 CHECK (topology_present IN (0,1)),
    error_code INTEGER NOT NULL DEFAULT 0,
    error_msg TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (backend_ip, backend_port)
);
CREATE TABLE IF NOT EXISTS RDS_BGD_TOPOLOGY (
    backend_ip TEXT NOT NULL,
    backend_port INTEGER NOT NULL,
    row_order INTEGER NOT NULL,
    id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    topology_port INTEGER NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (backend_ip, backend_port, row_order)
);
CREATE TABLE IF NOT EXISTS RDS_BGD_PROBE_LOG (
    sequence_id INTEGER PRIMARY KEY AUTOINCREMENT,
    backend_ip TEXT NOT NULL,
    backend_port INTEGER NOT NULL,
    probe_kind TEXT NOT NULL CHECK (probe_kind IN ('table_check','metadata')),
    encrypted INTEGER NOT NULL CHECK (encrypted IN (0,1))
);";

/// A backend's topology (parameters: ip, port), in the columns of mysql.rds_topology.
pub(super) const TOPOLOGY: &str =
    "SELECT id, endpoint, topology_port AS port, role, status FROM RDS_BGD_TOPOLOGY
    WHERE backend_ip = ?1 AND backend_port = ?2 ORDER BY row_order";

/// The two probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Is there a topology table?
    TableCheck,
    /// What does it hold?
    Metadata,
}

impl Kind {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::TableCheck, Self::Metadata];

    /// The statement that monitors send, the same as to a real server.
    pub(super) fn statement(self) -> &'static str {
        match self {
            Self::TableCheck => {
                "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'"
            }
            Self::Metadata => "SELECT * FROM mysql.rds_topology",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::TableCheck => "table_check",
            Self::Metadata => "metadata",
        }
    }
}

/// A row of RDS_BGD_CONTROL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Control {
    /// Whether the backend has a topology table.
    pub present: bool,
    /// The error its metadata query fails with; 0 for none.
    pub error_code: i64,
    /// That error's text.
    pub error_message: String,
}

/// What a probe is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The table check's one row, or none.
    TablePresent(bool),
    /// An error packet.
    Error(SqlError),
    /// The backend's topology rows, of which there may be none.
    Topology,
}

/// Logs a probe. It is committed before anything else happens, unless the client has a transaction open.
pub(super) fn record(
    connection: &Connection,
    endpoint: &Endpoint,
    kind: Kind,
    encrypted: bool,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO RDS_BGD_PROBE_LOG (backend_ip, backend_port, probe_kind, encrypted) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, (&endpoint.ip, endpoint.port, kind.name(), encrypted)).map(|_| ())
}

/// Reads a backend's control row, `None` where it has none.
pub(super) fn control(connection: &Connection, endpoint: &Endpoint) -> rusqlite::Result<Option<Control>> {
    let sql = "SELECT topology_present, error_code, error_msg FROM RDS_BGD_CONTROL
        WHERE backend_ip = ?1 AND backend_port = ?2";
    connection
        .query_row(sql, (&endpoint.ip, endpoint.port), |row| {
            Ok(Control { present: row.get(0)?, error_code: row.get(1)?, error_message: row.get(2)? })
        })
        .optional()
}

/// Decides the answer (contract: "Topology Responses").
pub(super) fn outcome(kind: Kind, control: Option<Control>) -> Outcome {
    match (kind, control) {
        (Kind::TableCheck, control) => Outcome::TablePresent(control.is_some_and(|control| control.present)),
        (Kind::Metadata, Some(control)) if control.error_code != 0 => {
            Outcome::Error(configured_error(control.error_code, control.error_message))
        }
        (Kind::Metadata, Some(control)) if control.present => Outcome::Topology,
        (Kind::Metadata, _) => {
            Outcome::Error(configured_error(1146, "Table 'mysql.rds_topology' doesn't exist".to_owned()))
        }
    }
}

/// An error a test configured. A number that no error packet can carry becomes 1105.
fn configured_error(code: i64, message: String) -> SqlError {
    let code = u16::try_from(code).unwrap_or(1105);
    SqlError::new(code, if code == 1146 { "42S02" } else { "HY000" }, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(present: bool, error_code: i64, message: &str) -> Option<Control> {
        Some(Control { present, error_code, error_message: message.into() })
    }

    fn missing() -> Outcome {
        Outcome::Error(SqlError::new(1146, "42S02", "Table 'mysql.rds_topology' doesn't exist"))
    }

    #[test]
    fn table_check_looks_at_presence_alone() {
        assert_eq!(outcome(Kind::TableCheck, None), Outcome::TablePresent(false));
        assert_eq!(outcome(Kind::TableCheck, control(false, 0, "")), Outcome::TablePresent(false));
        assert_eq!(outcome(Kind::TableCheck, control(false, 1146, "x")), Outcome::TablePresent(false));
        assert_eq!(outcome(Kind::TableCheck, control(true, 0, "")), Outcome::TablePresent(true));
        assert_eq!(outcome(Kind::TableCheck, control(true, 1105, "x")), Outcome::TablePresent(true));
    }

    #[test]
    fn metadata_of_an_unconfigured_backend_is_a_missing_table() {
        assert_eq!(outcome(Kind::Metadata, None), missing());
    }

    #[test]
    fn metadata_fails_as_configured_whatever_the_presence() {
        let error = |code, state, text: &str| Outcome::Error(SqlError::new(code, state, text));
        assert_eq!(outcome(Kind::Metadata, control(true, 1105, "broken")), error(1105, "HY000", "broken"));
        assert_eq!(outcome(Kind::Metadata, control(false, 1146, "gone")), error(1146, "42S02", "gone"));
        assert_eq!(outcome(Kind::Metadata, control(false, 1049, "no")), error(1049, "HY000", "no"));
        for no_packet_s in [70_000, -1, i64::MAX] {
            assert_eq!(
                outcome(Kind::Metadata, control(true, no_packet_s, "odd")),
                error(1105, "HY000", "odd")
            );
        }
    }

    #[test]
    fn metadata_without_a_table_falls_back_to_the_missing_table() {
        assert_eq!(outcome(Kind::Metadata, control(false, 0, "")), missing());
    }

    #[test]
    fn metadata_of_a_present_table_is_its_rows() {
        assert_eq!(outcome(Kind::Metadata, control(true, 0, "")), Outcome::Topology);
    }
}
