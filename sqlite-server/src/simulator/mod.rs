//! The blue/green simulator: one server that answers as many backends, told apart by the local address a client reached.
//!
//! Contract: "AWS RDS Blue/Green Deployment Simulator". The tables are ordinary ones, written by a test through any session.

mod behaviour;
mod dns;
mod endpoint;
mod own_data;
mod probe;
mod read_only;
mod snapshot;
mod traffic;

use crate::database::{LOCK_WAIT, sql_error};
use crate::rows;
use crate::text;
use behaviour::{Behaviour, Behaviours};
use dns::Dns;
use endpoint::Endpoint;
use own_data::OwnData;
use parking_lot::Mutex;
use probe::{Kind, Outcome};
use read_only::ReadOnly;
use rusqlite::{Connection, Transaction};
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(crate) use traffic::concerns;
use wire::reply::{Column, Reply};
use wire::socket::{Socket, Stream};
use wire::{ColumnType, SqlError, WireError};

/// How the names of all that is the simulator's begin.
const NAMES: [&str; 2] = ["RDS_BGD_", read_only::NAME];

/// What all sessions share.
pub(crate) struct Simulator {
    /// The database of the simulator's tables, and of all data but a backend's own.
    file: PathBuf,
    read_only: ReadOnly,
    behaviours: Behaviours,
    own_data: OwnData,
    dns: Arc<Dns>,
    /// Whose turn it is to log a probe: hundreds of probers in line cost less than as many that look again and again whether the
    /// log is free.
    logging: Mutex<()>,
}

impl Simulator {
    /// Makes the tables that are missing. What the contract's tables hold is kept; those beyond it begin empty.
    pub(crate) fn open(connection: &Connection, file: &Path) -> rusqlite::Result<Self> {
        for tables in [probe::TABLES, read_only::TABLE, behaviour::TABLE, dns::TABLE] {
            connection.execute_batch(tables)?;
        }
        let simulator = Self {
            file: file.to_owned(),
            read_only: ReadOnly::default(),
            behaviours: Behaviours::default(),
            own_data: OwnData::beside(file),
            dns: Arc::new(Dns::new(file)),
            logging: Mutex::default(),
        };
        if let Err(error) = simulator.own_data.remove() {
            log::warn!("simulator: cannot remove the backends' data of an earlier start: {error}");
        }
        simulator.read_only.refresh(connection);
        Ok(simulator)
    }

    /// Makes the simulator's functions known to a session.
    pub(crate) fn define_functions(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.dns.define(connection)
    }

    /// Takes up how backends are to treat clients; those that have no row any more lose their data.
    fn refresh_behaviours(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.behaviours.refresh(connection)?.into_iter().for_each(|endpoint| self.own_data.abandon(endpoint));
        Ok(())
    }
}

/// The simulated backend that one client reached.
pub(crate) struct Backend {
    simulator: Arc<Simulator>,
    endpoint: Option<Endpoint>,
    encrypted: bool,
    client: Socket,
    /// The row of RDS_BGD_BACKEND that the statement under way is treated by.
    treatment: Option<Behaviour>,
    /// How many statements were treated by one.
    statements: u32,
}

/// What a probe has found: the backend, the answer, and the snapshot that this was read in.
type Seen<'a> = (&'a Endpoint, Outcome, Option<Transaction<'a>>);

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
        Self {
            simulator: Arc::clone(simulator),
            endpoint: Endpoint::of(stream.socket()),
            encrypted: stream.is_encrypted(),
            client: stream.socket().clone(),
            treatment: None,
            statements: 0,
        }
    }

    /// What all backends share.
    pub(crate) fn simulator(&self) -> &Simulator {
        &self.simulator
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
                match self.simulator.read_only.get(hostname, *port) {
                    Ok(read_only) => one_number("read_only", Some(if read_only { "1" } else { "0" }), reply),
                    Err(unreadable) => reply.error(&failure(&unreadable)),
                }
            }
            Request::ReadOnly(None) => reply
                .error(&failure("a read_only check ends with hostname:port, as in ...read_only db-1:3306")),
        }
    }

    fn probe(&self, kind: Kind, connection: &Connection, reply: Reply<'_>) -> Result<(), WireError> {
        let (endpoint, outcome, _snapshot) = match self.look(kind, connection) {
            Ok(seen) => seen,
            Err(error) => return reply.error(&error),
        };
        match outcome {
            Outcome::TablePresent(present) => one_number("1", present.then_some("1"), reply),
            Outcome::Error(error) => reply.error(&error),
            Outcome::Topology => match connection.prepare(probe::TOPOLOGY) {
                Ok(mut rows) => rows::send(&mut rows, (&endpoint.ip, endpoint.port), reply, || ()),
                Err(error) => reply.error(&internal("read a topology", &error)),
            },
        }
    }

    /// Logs a probe, then reads the backend's state. The transaction is the snapshot that the topology rows are to be read
    /// in as well; a client's own is one already.
    fn look<'a>(&'a self, kind: Kind, connection: &'a Connection) -> Result<Seen<'a>, SqlError> {
        let endpoint = self.endpoint.as_ref().ok_or_else(endpoint::unknown)?;
        let own = connection.is_autocommit();
        // A client's transaction may hold what the first in line waits for. Whose turn does not come goes on without.
        let turn = own.then(|| self.simulator.logging.try_lock_for(LOCK_WAIT)).flatten();
        probe::record(connection, endpoint, kind, self.encrypted)
            .map_err(|error| internal("record a probe", &error))?;
        drop(turn);
        let failed = |error| internal("read the state of a backend", &error);
        let snapshot = own.then(|| connection.unchecked_transaction()).transpose().map_err(failed)?;
        let control = probe::control(connection, endpoint).map_err(failed)?;
        Ok((endpoint, probe::outcome(kind, control), snapshot))
    }

    /// Takes note of a commit. Called outside transactions alone.
    pub(crate) fn committed(&self, connection: &Connection) {
        self.simulator.read_only.refresh(connection);
        if let Err(error) = self.simulator.refresh_behaviours(connection) {
            log::error!("simulator: RDS_BGD_BACKEND: {error}");
        }
    }

    /// The product label with the address reached: tests look for it to learn where a statement was routed.
    pub(crate) fn version_comment(&self) -> Result<String, SqlError> {
        let endpoint = self.endpoint.as_ref().ok_or_else(endpoint::unknown)?;
        Ok(format!("(ProxySQL Automated Test Server) - {}", endpoint.ip))
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

fn internal(action: &str, error: &rusqlite::Error) -> SqlError {
    let text = sql_error(error).message;
    log::error!("simulator: cannot {action}: {text}");
    failure(&format!("cannot {action}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;
    use wire::channel::Channel;

    #[test]
    fn only_whole_statements_are_taken() {
        for check in [
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'",
            "select 1  from information_schema.TABLES\n where table_schema='mysql' AND TABLE_NAME='rds_topology' ;",
            "\tSELECT 1\r\nFROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA='MYSQL' AND table_name='rds_topology'; ; ",
        ] {
            assert_eq!(Request::of(check), Some(Request::Probe(Kind::TableCheck)), "{check}");
        }
        for metadata in ["SELECT * FROM mysql.rds_topology", " select  *\nfrom MySQL.RDS_topology;;"] {
            assert_eq!(Request::of(metadata), Some(Request::Probe(Kind::Metadata)), "{metadata}");
        }
        for near in [
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql'",
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = 'rds_topology'",
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology' LIMIT 1",
            "SELECT 2 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'",
            "SELECT * FROM mysql.rds_topology WHERE 1",
            "SELECT * FROM mysql . rds_topology",
            "SELECT * FROM `mysql`.`rds_topology`",
            "SELECT *FROM mysql.rds_topology",
            "SELECT * FROM rds_topology",
            "SELECT id FROM mysql.rds_topology",
            "SELECT * FROM mysql.rds_topology; SELECT 1",
            "SELECT * FROM mysql.rds_topology -- db-1:3306",
            "/* db-1:3306 */ SELECT * FROM mysql.rds_topology",
            "EXPLAIN SELECT * FROM mysql.rds_topology",
            "DELETE FROM RDS_BGD_TOPOLOGY",
            "",
        ] {
            assert_eq!(Request::of(near), None, "{near}");
        }
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

    /// A simulated backend and a session's connection to the database.
    fn backend(file: &Path) -> (Backend, Connection) {
        let connection = database::open(file).unwrap();
        let simulator = Arc::new(Simulator::open(&connection, file).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Socket::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
        let endpoint = Some(Endpoint { ip: "127.10.0.11".into(), port: 3306 });
        let backend = Backend { endpoint, ..Backend::new(&simulator, Channel::new(client).stream()) };
        (backend, connection)
    }

    fn logged(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM RDS_BGD_PROBE_LOG", [], |row| row.get(0)).unwrap()
    }

    /// A probe's own failure, which must not look like a backend's answer.
    fn assert_fails(backend: &Backend, kind: Kind, connection: &Connection, why: &str) {
        let before = logged(connection);
        let error = backend.look(kind, connection).map(|seen| seen.1).unwrap_err();
        assert_eq!((error.code, &error.state), (1105, b"HY000"));
        assert!(error.message.starts_with("simulator: ") && error.message.contains(why), "{error}");
        assert_eq!(logged(connection), before);
    }

    #[test]
    fn a_transaction_between_the_control_row_and_the_topology_is_not_seen() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.db");
        let (backend, connection) = backend(&file);
        let writer = database::open(&file).unwrap();
        writer
            .execute_batch(
                "INSERT INTO RDS_BGD_CONTROL VALUES ('127.10.0.11', 3306, 1, 0, '');
                 INSERT INTO RDS_BGD_TOPOLOGY VALUES ('127.10.0.11', 3306, 0, '', '', 1, '', 'AVAILABLE')",
            )
            .unwrap();
        let rows = || {
            let mut statement = connection.prepare(probe::TOPOLOGY).unwrap();
            statement.query_map(("127.10.0.11", 3306), |_| Ok(())).unwrap().count()
        };
        let seen = backend.look(Kind::Metadata, &connection).unwrap();
        writer
            .execute_batch(
                "BEGIN; UPDATE RDS_BGD_CONTROL SET topology_present = 0; DELETE FROM RDS_BGD_TOPOLOGY; COMMIT",
            )
            .unwrap();
        assert_eq!((&seen.1, rows()), (&Outcome::Topology, 1));
        drop(seen);
        let seen = backend.look(Kind::Metadata, &connection).unwrap();
        assert!(matches!(seen.1, Outcome::Error(_)) && rows() == 0);
    }

    #[test]
    fn a_full_disk_fails_probes_until_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let (backend, connection) = backend(&directory.path().join("test.db"));
        let pages: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        let limit = |pages: u32| {
            let _: u32 = connection
                .query_row(&format!("PRAGMA max_page_count={pages}"), [], |row| row.get(0))
                .unwrap();
        };
        limit(pages + 1);
        let probes = (0..10_000).take_while(|_| backend.look(Kind::Metadata, &connection).is_ok()).count();
        assert_eq!(i64::try_from(probes).unwrap(), logged(&connection));
        for kind in Kind::ALL {
            assert_fails(&backend, kind, &connection, "full");
        }
        limit(pages + 2);
        assert!(backend.look(Kind::TableCheck, &connection).is_ok());
    }

    #[test]
    fn a_database_that_stays_locked_fails_probes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.db");
        let (backend, connection) = backend(&file);
        connection.busy_timeout(Duration::from_millis(1)).unwrap();
        let writer = database::open(&file).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_fails(&backend, Kind::TableCheck, &connection, "locked");
        writer.execute_batch("COMMIT").unwrap();
        assert!(backend.look(Kind::TableCheck, &connection).is_ok());
    }

    #[test]
    fn a_log_that_refuses_the_row_fails_probes() {
        let directory = tempfile::tempdir().unwrap();
        let (backend, connection) = backend(&directory.path().join("test.db"));
        connection
            .execute_batch(
                "DROP TABLE RDS_BGD_PROBE_LOG;
                 CREATE TABLE RDS_BGD_PROBE_LOG (sequence_id INTEGER PRIMARY KEY AUTOINCREMENT, backend_ip TEXT,
                     backend_port INTEGER, probe_kind TEXT CHECK (probe_kind <> 'metadata'), encrypted INTEGER)",
            )
            .unwrap();
        assert!(backend.look(Kind::TableCheck, &connection).is_ok());
        assert_fails(&backend, Kind::Metadata, &connection, "CHECK");
    }

    #[test]
    fn a_backend_without_an_address_answers_and_logs_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (mut backend, connection) = backend(&directory.path().join("test.db"));
        connection
            .execute_batch("INSERT INTO RDS_BGD_CONTROL VALUES ('', 0, 1, 0, ''), ('127.0.0.1', 0, 1, 0, '')")
            .unwrap();
        backend.endpoint = None;
        for kind in Kind::ALL {
            assert_fails(&backend, kind, &connection, "local address");
        }
        assert_eq!(backend.version_comment().unwrap_err().code, 1105);
    }

    #[test]
    fn a_state_that_cannot_be_read_is_a_failure_that_was_logged() {
        let directory = tempfile::tempdir().unwrap();
        let (backend, connection) = backend(&directory.path().join("test.db"));
        connection
            .execute_batch("INSERT INTO RDS_BGD_CONTROL VALUES ('127.10.0.11', 3306, 1, 'x', '')")
            .unwrap();
        for (probes, kind) in (1..).zip(Kind::ALL) {
            let error = backend.look(kind, &connection).map(|seen| seen.1).unwrap_err();
            assert_eq!(error.code, 1105, "{error}");
            assert_eq!(logged(&connection), probes);
        }
    }
}
