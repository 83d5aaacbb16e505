//! A control connection to one of the daemon's ports: text statements, with errors that name endpoint and statement.

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// The longest a scenario waits for one effect.
pub const EFFECT_TIMEOUT: Duration = Duration::from_secs(3);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than any statement may be held by the daemon (mysql-connect_timeout_server_max, 10 s by default).
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// MySQL's own default. Given, because the client library asks the server for it otherwise.
const MAX_ALLOWED_PACKET: usize = 64 * 1024 * 1024;

/// One address: the simulated backend's IP in topology and probe log, the configured hostname in READONLY_STATUS. Contract:
/// RDS_BGD_Simulator.md, "Common Endpoint".
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// IP or hostname
    pub host: String,
    /// TCP port
    pub port: u16,
}

impl Endpoint {
    /// The endpoint `host:port`.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A user name and its password; only the name is ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name
    pub username: String,
    /// Password in clear
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// What went wrong on a control connection. Always names the endpoint, and the statement where there was one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No login
    #[error("cannot connect to {endpoint} as '{username}': {source}")]
    Connect {
        /// Where to
        endpoint: Endpoint,
        /// As whom
        username: String,
        /// The client library's reason
        source: Box<mysql::Error>,
    },
    /// The statement failed
    #[error("{endpoint}: {source} in: {statement}")]
    Statement {
        /// Where
        endpoint: Endpoint,
        /// The statement sent
        statement: String,
        /// The server's or the client library's reason
        source: Box<mysql::Error>,
    },
    /// The statement succeeded with an answer of another shape than expected
    #[error("{endpoint}: unexpected answer ({found}) to: {statement}")]
    Answer {
        /// Where
        endpoint: Endpoint,
        /// The statement sent
        statement: String,
        /// What came instead
        found: String,
    },
    /// What was waited for did not happen in time
    #[error("{endpoint}: not within {} ms: {awaited}", waited.as_millis())]
    Timeout {
        /// Where
        endpoint: Endpoint,
        /// The boolean SQL or event that was waited for
        awaited: String,
        /// How long
        waited: Duration,
    },
}

/// One row; NULL is None.
pub type Row = Vec<Option<String>>;

/// A connection in text protocol, without default schema. Closed when dropped.
pub struct Connection {
    endpoint: Endpoint,
    conn: Conn,
}

impl Connection {
    /// Logs in. With `use_ssl` the stream is encrypted and the certificate is not verified.
    pub fn open(endpoint: Endpoint, credentials: &Credentials, use_ssl: bool) -> Result<Self, Error> {
        Self::open_with_flags(endpoint, credentials, use_ssl, 0)
    }

    /// [`Self::open`], asking for the capabilities `flags` besides the usual ones. Those that the client library decides about by
    /// itself, such as TLS and compression, are left to it.
    pub fn open_with_flags(
        endpoint: Endpoint,
        credentials: &Credentials,
        use_ssl: bool,
        flags: u32,
    ) -> Result<Self, Error> {
        let options = OptsBuilder::new()
            .additional_capabilities(CapabilityFlags::from_bits_truncate(flags))
            .ip_or_hostname(Some(endpoint.host.as_str()))
            .tcp_port(endpoint.port)
            .user(Some(credentials.username.as_str()))
            .pass(Some(credentials.password.as_str()))
            // By default a loopback address makes the library look for a unix socket.
            .prefer_socket(false)
            .max_allowed_packet(Some(MAX_ALLOWED_PACKET))
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(REPLY_TIMEOUT))
            .write_timeout(Some(REPLY_TIMEOUT))
            .ssl_opts(use_ssl.then(|| SslOpts::default().with_danger_accept_invalid_certs(true)));
        match Conn::new(options) {
            Ok(conn) => Ok(Self { endpoint, conn }),
            Err(source) => {
                let username = credentials.username.clone();
                Err(Error::Connect { endpoint, username, source: Box::new(source) })
            }
        }
    }

    /// Where this connection goes.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Runs a statement for its effect; the number of affected rows.
    pub fn execute(&mut self, statement: &str) -> Result<u64, Error> {
        match self.conn.query_drop(statement) {
            Ok(()) => Ok(self.conn.affected_rows()),
            Err(source) => Err(self.statement_error(statement, source)),
        }
    }

    /// All rows of a query.
    pub fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Error> {
        let rows: Vec<mysql::Row> =
            self.conn.query(statement).map_err(|source| self.statement_error(statement, source))?;
        // Row::unwrap gives the row's values away; it can only fail for a row that has given some away already.
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
    }

    /// The one value of a query with one row and one column; NULL is None.
    pub fn scalar(&mut self, statement: &str) -> Result<Option<String>, Error> {
        let mut rows = self.rows(statement)?;
        let row_count = rows.len();
        match rows.pop() {
            Some(mut row) if row_count == 1 && row.len() == 1 => Ok(row.pop().flatten()),
            _ => Err(self.answer_error(statement, format!("{row_count} rows, expected one value"))),
        }
    }

    /// The one value of a query as a number.
    pub fn number(&mut self, statement: &str) -> Result<u64, Error> {
        let value = self.scalar(statement)?;
        let number = value.as_deref().and_then(|text| text.parse().ok());
        number.ok_or_else(|| {
            let found = value.unwrap_or_else(|| "NULL".to_owned());
            self.answer_error(statement, format!("{found:?}, expected a number"))
        })
    }

    /// Whether `condition`, a boolean SQL expression, holds now.
    pub fn holds(&mut self, condition: &str) -> Result<bool, Error> {
        Ok(self.scalar(&format!("SELECT {condition}"))?.as_deref() == Some("1"))
    }

    /// Waits up to `timeout` until `condition`, a boolean SQL expression, holds; [`Error::Timeout`] if it does not.
    pub fn wait_until_within(&mut self, condition: &str, timeout: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        while !self.holds(condition)? {
            if Instant::now() >= deadline {
                let awaited = condition.to_owned();
                return Err(Error::Timeout { endpoint: self.endpoint.clone(), awaited, waited: timeout });
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// [`Self::wait_until_within`] with [`EFFECT_TIMEOUT`].
    pub fn wait_until(&mut self, condition: &str) -> Result<(), Error> {
        self.wait_until_within(condition, EFFECT_TIMEOUT)
    }

    /// Runs the statements as one transaction: all of them take effect, or none.
    pub fn transaction(&mut self, statements: &[String]) -> Result<(), Error> {
        self.execute("START TRANSACTION")?;
        let outcome = statements.iter().try_for_each(|statement| self.execute(statement).map(drop));
        match outcome {
            Ok(()) => self.execute("COMMIT").map(drop),
            Err(error) => {
                // The first error is the one to report; a server that is gone has rolled back by itself.
                let _ = self.execute("ROLLBACK");
                Err(error)
            }
        }
    }

    pub(crate) fn answer_error(&self, statement: &str, found: String) -> Error {
        Error::Answer { endpoint: self.endpoint.clone(), statement: statement.to_owned(), found }
    }

    fn statement_error(&self, statement: &str, source: mysql::Error) -> Error {
        let statement = statement.to_owned();
        Error::Statement { endpoint: self.endpoint.clone(), statement, source: Box::new(source) }
    }
}

/// `text` as an SQL string literal: in single quotes, which are doubled inside.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn text(value: mysql::Value) -> Option<String> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        // The text protocol carries bytes only.
        other => Some(other.as_sql(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_and_backslashes_are_left_alone() {
        assert_eq!(
            quote("Table 'mysql.rds_topology' doesn't exist"),
            "'Table ''mysql.rds_topology'' doesn''t exist'"
        );
        assert_eq!(quote(r"a\b"), r"'a\b'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn credentials_do_not_show_the_password() {
        let credentials = Credentials { username: "testuser".into(), password: "s3cret".into() };
        let shown = format!("{credentials:?}");
        assert!(shown.contains("testuser") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn a_refused_connection_names_endpoint_and_user() {
        // Nobody listens on a port that was only just given back.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let credentials = Credentials { username: "testuser".into(), password: "testuser".into() };
        let error = Connection::open(Endpoint::new("127.0.0.1", port), &credentials, false).err().unwrap();
        let shown = error.to_string();
        assert!(shown.contains(&format!("127.0.0.1:{port}")) && shown.contains("'testuser'"), "{shown}");
    }
}
