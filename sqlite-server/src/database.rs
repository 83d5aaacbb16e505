//! The database file and the limits that each session's connection to it runs under.

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use wire::SqlError;
use wire::socket::Socket;

/// How long a statement may run, the time its client takes to read the rows included.
const STATEMENT_LIMIT: Duration = Duration::from_secs(60);
/// How long a writer waits for another one.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Time between two looks whether the other one is done. SQLite's own waits grow to 100 ms, which is longer than a probe of
/// the monitor may take in all.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Virtual machine steps between two looks at the clock: well under a millisecond.
const STEPS_BETWEEN_CHECKS: i32 = 10_000;
/// The largest value or row, in bytes.
const MAX_VALUE: i32 = 64 << 20;
/// Depth of expressions and of the parser, so that no statement overflows a stack of 2 MiB.
const MAX_DEPTH: i32 = 200;
/// Bytes of a LIKE pattern: SQLite recurses for each `%` in it.
const MAX_PATTERN: i32 = 1000;

/// What ends the running statement of one session: time, or the connection being cut (as at the end of a shutdown's grace).
#[derive(Clone)]
pub(crate) struct Deadline {
    at: Arc<Mutex<Instant>>,
    client: Socket,
}

impl Deadline {
    /// A deadline for the statements of the session that serves `client`.
    pub(crate) fn new(client: Socket) -> Self {
        Self { at: Arc::new(Mutex::new(Instant::now() + STATEMENT_LIMIT)), client }
    }
    /// Called where a statement begins.
    pub(crate) fn restart(&self) {
        *self.at.lock() = Instant::now() + STATEMENT_LIMIT;
    }
    fn passed(&self) -> bool {
        Instant::now() >= *self.at.lock() || self.client.is_cut()
    }
}

/// Makes the file if it is missing, and lets nobody but its owner read it. Files beside it get its mode from SQLite.
pub(crate) fn keep_private(file: &Path) -> io::Result<()> {
    let open =
        OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(file)?;
    open.set_permissions(Permissions::from_mode(0o600))
}

/// Opens the file as every user of it does: WAL, writers wait, no fsync (the data is a test's or a demo's).
pub(crate) fn open(file: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(file)?;
    connection.busy_handler(Some(patience(LOCK_WAIT)))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

/// What SQLite calls again and again while another one writes, with the number of looks before: whether to look once more.
fn patience(limit: Duration) -> impl FnMut(i32) -> bool + Send {
    let mut began = Instant::now();
    move |looks| {
        if looks == 0 {
            began = Instant::now();
        }
        thread::sleep(BETWEEN_LOOKS);
        began.elapsed() < limit
    }
}

/// Opens the file for a client's session, within the limits that keep one client from harming others or the machine.
pub(crate) fn open_session(file: &Path, deadline: Deadline) -> rusqlite::Result<Connection> {
    let mut connection = open(file)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_PARSER_DEPTH, MAX_DEPTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, MAX_DEPTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.authorizer(Some(authorize))?;
    connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || deadline.passed()))?;
    Ok(connection)
}

/// Refuses what reaches beyond this database: other files (VACUUM INTO attaches one, too) and settings.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Pragma { .. } => {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }
}

/// An SQLite error as clients are told it: error 1045 with SQLite's text, as ProxySQL does.
pub(crate) fn sql_error(error: &rusqlite::Error) -> SqlError {
    let message = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            SqlError::new(1045, "28000", "Command not allowed")
        }
        Some(ErrorCode::OperationInterrupted) => {
            let seconds = STATEMENT_LIMIT.as_secs();
            let message = format!("Query execution was interrupted: it ran longer than {seconds} s");
            SqlError::new(1317, "70100", message)
        }
        _ => SqlError::new(1045, "28000", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// A session's connection, and the client that it is for.
    fn session(directory: &tempfile::TempDir) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::new(listener.accept().unwrap().0).unwrap();
        let connection = open_session(&directory.path().join("test.db"), Deadline::new(socket)).unwrap();
        (connection, client)
    }

    #[test]
    fn other_files_and_pragmas_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, _client) = session(&directory);
        let other = directory.path().join("other.db");
        for sql in [
            format!("ATTACH '{}' AS other", other.display()),
            format!("VACUUM INTO '{}'", other.display()),
            "DETACH main".to_owned(),
            "PRAGMA journal_mode=DELETE".to_owned(),
            "SELECT * FROM pragma_database_list".to_owned(),
        ] {
            let error = sql_error(&connection.execute_batch(&sql).unwrap_err());
            assert_eq!((error.code, &error.state), (1045, b"28000"), "{sql}");
            assert_eq!(error.message, "Command not allowed", "{sql}");
        }
        assert!(!other.exists());
    }

    #[test]
    fn errors_carry_sqlite_s_text() {
        let directory = tempfile::tempdir().unwrap();
        let (connection, _client) = session(&directory);
        let error = sql_error(&connection.prepare("SELECT * FROM missing").unwrap_err());
        assert_eq!((error.code, error.message.as_str()), (1045, "no such table: missing"));
        assert!(connection.prepare("SELECT 1; SELECT 2").is_err(), "one statement at a time");
    }

    #[test]
    fn every_wait_for_a_lock_has_its_own_limit() {
        assert!(!patience(Duration::ZERO)(0));
        let limit = Duration::from_millis(100);
        let mut look = patience(limit);
        thread::sleep(limit);
        assert!(!look(1));
        // The first look of a wait. A busy machine may sleep through the limit once, or more often.
        assert!((0..100).any(|_| look(0)));
    }

    /// Runs in a thread with the stack that sessions have; an overflow would end the test process.
    fn in_a_session_s_stack<T: Send + 'static>(run: impl FnOnce(Connection) -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            let directory = tempfile::tempdir().unwrap();
            let (connection, _client) = session(&directory);
            run(connection)
        });
        thread.unwrap().join().unwrap()
    }

    #[test]
    fn deep_statements_are_refused() {
        let deep = |open: &str, middle: &str, close: &str| {
            format!("SELECT {}{middle}{}", open.repeat(5000), close.repeat(5000))
        };
        let statements = [
            deep("(", "1", ")"),
            deep("-", "1", ""),
            deep("(SELECT ", "1", ")"),
            deep("* FROM (SELECT ", "1", ")"),
            deep("1 UNION ALL SELECT ", "1", ""),
            deep("1 + ", "1", ""),
            deep("abs(", "1", ")"),
            deep("1 WHERE 'x' LIKE '%", "1", "%'"),
        ];
        in_a_session_s_stack(move |connection| {
            for sql in &statements {
                assert!(connection.query_row(sql, [], |_| Ok(())).is_err(), "{}", &sql[..30]);
            }
        });
    }

    #[test]
    fn deep_patterns_views_and_values_overflow_no_stack() {
        let pattern = format!("SELECT '{}' LIKE '{}b'", "a".repeat(30_000), "%a".repeat(20_000));
        let json = |depth| format!("SELECT json('{}{}')", "[".repeat(depth), "]".repeat(depth));
        in_a_session_s_stack(move |connection| {
            let run = |sql: &str| connection.query_row(sql, [], |_| Ok(()));
            assert!(run(&pattern).is_err());
            assert!(run(&json(1000)).is_ok());
            assert!(run(&json(100_000)).is_err());
            connection.execute_batch("CREATE TABLE v0 (x); INSERT INTO v0 VALUES (1)").unwrap();
            for depth in 1..1000 {
                let view = format!("CREATE VIEW v{depth} AS SELECT x FROM v{}", depth - 1);
                connection.execute_batch(&view).unwrap();
            }
            assert!(run("SELECT * FROM v100").is_ok());
            assert!(run("SELECT * FROM v999").is_err());
        });
    }
}
