//! The blue/green simulator: one server that answers as many backends, told apart by the local address a client reached.
//!
//! Contract: "AWS RDS Blue/Green Deployment Simulator". The tables are ordinary ones, written by a test through any session.

mod probe;
mod read_only;

use crate::database::sql_error;
use crate::rows;
use crate::text;
use probe::{Kind, Outcome};
use read_only::ReadOnly;
pub(crate) use read_only::concerns as concerns_read_only;
use rusqlite::Connection;
use std::io;
use std::sync::Arc;
use wire::reply::{Column, Reply};
use wire::socket::Stream;
use wire::{ColumnType, SqlError, WireError};

/// What all sessions share: the read_only values.
pub(crate) struct Simulator {
    read_only: ReadOnly,
}

impl Simulator {
    /// Makes the tables that are missing (what they hold is kept) and reads the read_only values.
    pub(crate) fn open(connection: &Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(probe::TABLES)?;
        connection.execute_batch(read_only::TABLE)?;
        let simulator = Self { read_only: ReadOnly::default() };
        simulator.read_only.refresh(connection)?;
        Ok(simulator)
    }
}

/// The simulated backend that one client reached.
pub(crate) struct Backend {
    simulator: Arc<Simulator>,
    endpoint: Option<Endpoint>,
    encrypted: bool,
}

/// The key of a backend: the accepted connection's local address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Address in text; IPv4 also where it came mapped into IPv6.
    pub ip: String,
    /// Port.
    pub port: u16,
}

/// A statement that the simulator answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A topology probe.
    Probe(Kind),
    /// A read_only check and what stands behind it, `hostname:port` where it is well formed.
    ReadOnly(Option<(String, u16)>),
}

impl Request {
    /// Recognises a statement by its whole text, blanks and letter case aside.
    pub(crate) fn of(sql: &str) -> Option<Self> {
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| text::same_words(sql, kind.statement())) {
            return Some(Self::Probe(kind));
        }
        read_only::suffix(sql).map(|suffix| Self::ReadOnly(read_only::host_and_port(suffix)))
    }
}

impl Backend {
    /// The backend that a stream's local address stands for.
    pub(crate) fn new(simulator: &Arc<Simulator>, stream: &Stream) -> Self {
        let endpoint = endpoint(stream.socket().local_addr());
        Self { simulator: Arc::clone(simulator), endpoint, encrypted: stream.is_encrypted() }
    }

    /// Answers a request. Failures of the simulator itself are error 1105, so that they cannot pass for a backend's answer.
    pub(crate) fn answer(
        &self,
        request: &Request,
        connection: &Connection,
        reply: Reply<'_>,
    ) -> Result<(), WireError> {
        match request {
            Request::Probe(kind) => self.probe(*kind, connection, reply),
            Request::ReadOnly(Some((hostname, port))) => {
                let value = if self.simulator.read_only.get(hostname, *port) { "1" } else { "0" };
                one_number("read_only", Some(value), reply)
            }
            Request::ReadOnly(None) => reply
                .error(&failure("a read_only check ends with hostname:port, as in ...read_only db-1:3306")),
        }
    }

    fn probe(&self, kind: Kind, connection: &Connection, reply: Reply<'_>) -> Result<(), WireError> {
        let Some(endpoint) = &self.endpoint else {
            return reply.error(&unknown_address());
        };
        if let Err(error) = probe::record(connection, endpoint, kind, self.encrypted) {
            return reply.error(&internal("record a probe", &error));
        }
        // One snapshot for the control row and the topology rows. A client's own transaction is one already.
        let snapshot = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose();
        let outcome = snapshot.and_then(|snapshot| Ok((probe::control(connection, endpoint)?, snapshot)));
        let (control, _snapshot) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return reply.error(&internal("read the state of a backend", &error)),
        };
        match probe::outcome(kind, control) {
            Outcome::TablePresent(present) => one_number("1", present.then_some("1"), reply),
            Outcome::Error(error) => reply.error(&error),
            Outcome::Topology => match connection.prepare(probe::TOPOLOGY) {
                Ok(mut rows) => rows::send(&mut rows, (&endpoint.ip, endpoint.port), reply),
                Err(error) => reply.error(&internal("read a topology", &error)),
            },
        }
    }

    /// Takes note of a commit. Called outside transactions alone.
    pub(crate) fn committed(&self, connection: &Connection) {
        if let Err(error) = self.simulator.read_only.refresh(connection) {
            log::error!("simulator: cannot read {}: {error}; the values before stay", read_only::NAME);
        }
    }

    /// The product label with the address reached: tests look for it to learn where a statement was routed.
    pub(crate) fn version_comment(&self) -> Result<String, SqlError> {
        let endpoint = self.endpoint.as_ref().ok_or_else(unknown_address)?;
        Ok(format!("(ProxySQL Automated Test Server) - {}", endpoint.ip))
    }
}

fn endpoint(local: io::Result<std::net::SocketAddr>) -> Option<Endpoint> {
    match local {
        Ok(address) => Some(Endpoint { ip: address.ip().to_canonical().to_string(), port: address.port() }),
        Err(error) => {
            log::error!("simulator: the local address of a connection is unknown: {error}");
            None
        }
    }
}

/// A result of one numeric column and at most one row.
fn one_number(name: &str, value: Option<&str>, reply: Reply<'_>) -> Result<(), WireError> {
    let mut rows = reply.rows(&[Column::new(name, ColumnType::MYSQL_TYPE_LONGLONG)])?;
    if let Some(value) = value {
        rows.row([Some(value.as_bytes())])?;
    }
    rows.finish()
}

fn failure(message: &str) -> SqlError {
    SqlError::new(1105, "HY000", format!("simulator: {message}"))
}

fn unknown_address() -> SqlError {
    failure("the local address of this connection is unknown")
}

fn internal(action: &str, error: &rusqlite::Error) -> SqlError {
    let text = sql_error(error).message;
    log::error!("simulator: cannot {action}: {text}");
    failure(&format!("cannot {action}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_ipv6_mapping() {
        let mapped = endpoint(Ok("[::ffff:127.10.0.11]:3306".parse().unwrap()));
        assert_eq!(mapped, Some(Endpoint { ip: "127.10.0.11".into(), port: 3306 }));
        assert_eq!(endpoint(Ok("[::1]:3306".parse().unwrap())).unwrap().ip, "::1");
        assert_eq!(endpoint(Err(io::Error::other("gone"))), None);
    }

    #[test]
    fn only_whole_statements_are_taken() {
        let check = "select 1  from information_schema.TABLES\n where table_schema='mysql' AND TABLE_NAME='rds_topology' ;";
        assert_eq!(Request::of(check), Some(Request::Probe(Kind::TableCheck)));
        assert_eq!(Request::of("SELECT * FROM mysql.rds_topology"), Some(Request::Probe(Kind::Metadata)));
        assert_eq!(Request::of("SELECT * FROM mysql.rds_topology WHERE 1"), None);
        assert_eq!(Request::of("/* x */ SELECT * FROM mysql.rds_topology"), None);
        assert_eq!(Request::of("DELETE FROM RDS_BGD_TOPOLOGY"), None);
    }

    #[test]
    fn read_only_checks_carry_their_key() {
        let key = |host: &str, port| Some(Request::ReadOnly(Some((host.to_owned(), port))));
        assert_eq!(Request::of("SELECT @@global.read_only read_only db-1.x:3306"), key("db-1.x", 3306));
        assert_eq!(Request::of("select  @@GLOBAL.read_only READ_ONLY ::1:3306;"), key("::1", 3306));
        for malformed in ["", " db-1", " :3306", " db-1:", " db-1:99999", " db-1:3306 x", " db-1:-1"] {
            let sql = format!("SELECT @@global.read_only read_only{malformed}");
            assert_eq!(Request::of(&sql), Some(Request::ReadOnly(None)), "{sql}");
        }
        assert_eq!(Request::of("SELECT @@global.read_only"), None);
    }
}
