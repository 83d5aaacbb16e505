//! One client's session: its connection to the database, its transaction, and the answer to each statement.

use crate::database::{self, Deadline, sql_error};
use crate::rows;
#[cfg(feature = "test-rds-bgd")]
use crate::simulator::{Backend, Request, concerns};
use crate::statement::Statement;
use crate::system::{self, Context, Item};
use crate::text;
use rusqlite::{Connection, Params};
use std::path::Path;
use wire::reply::{Column, Reply};
use wire::serve::QueryHandler;
use wire::{SqlError, StatusFlags, WireError};

/// Who the session is, as its system variables and functions tell.
pub(crate) struct Identity {
    /// The version in the greeting.
    pub server_version: String,
    /// The connection's number.
    pub connection_id: u32,
    /// The user who logged in.
    pub user: String,
}

/// A session. Dropping it closes its connection, which undoes an open transaction.
pub(crate) struct Session {
    connection: Connection,
    deadline: Deadline,
    identity: Identity,
    autocommit: bool,
    #[cfg(feature = "test-rds-bgd")]
    backend: Backend,
    /// The file that `connection` has open.
    #[cfg(feature = "test-rds-bgd")]
    file: std::path::PathBuf,
}

impl Session {
    /// Opens the session's own connection to the database.
    pub(crate) fn open(
        file: &Path,
        deadline: Deadline,
        identity: Identity,
        #[cfg(feature = "test-rds-bgd")] backend: Backend,
    ) -> rusqlite::Result<Self> {
        let connection = database::open_session(file, deadline.clone())?;
        #[cfg(feature = "test-rds-bgd")]
        backend.simulator().define_functions(&connection)?;
        Ok(Self {
            connection,
            deadline,
            identity,
            autocommit: true,
            #[cfg(feature = "test-rds-bgd")]
            backend,
            #[cfg(feature = "test-rds-bgd")]
            file: file.to_owned(),
        })
    }

    /// Goes to another database file. A transaction keeps the session where it is.
    #[cfg(feature = "test-rds-bgd")]
    fn go_to(&mut self, file: std::path::PathBuf) -> Result<(), SqlError> {
        if self.file == file || !self.connection.is_autocommit() {
            return Ok(());
        }
        self.backend.make(&file)?;
        let opened = database::open_session(&file, self.deadline.clone()).and_then(|connection| {
            self.backend.simulator().define_functions(&connection)?;
            Ok(connection)
        });
        self.connection = opened.map_err(|error| sql_error(&error))?;
        self.file = file;
        Ok(())
    }

    /// Answers a statement as the backend that the client reached does.
    #[cfg(feature = "test-rds-bgd")]
    fn answer_as_backend(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        let request = Request::of(sql);
        let file = self.backend.admit(request.is_none() && !concerns(sql))?;
        self.deadline.restart();
        if let Err(error) = self.go_to(file) {
            return reply.error(&error);
        }
        match request {
            Some(request) => self.backend.answer(&request, &self.connection, reply),
            None => self.answer(sql, reply),
        }?;
        self.backend.answered()
    }

    fn answer(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        match Statement::of(sql) {
            Statement::Empty => reply.error(&SqlError::new(1065, "42000", "Query was empty")),
            Statement::Nothing => reply.ok(0, 0, ""),
            Statement::Begin => {
                // As in MySQL, a new transaction ends the one before.
                let begun =
                    self.end("COMMIT").and_then(|()| self.connection.execute_batch("BEGIN IMMEDIATE"));
                self.done(begun, reply)
            }
            Statement::Commit => {
                let ended = self.end("COMMIT");
                self.done(ended, reply)
            }
            Statement::Rollback => {
                let ended = self.end("ROLLBACK");
                self.done(ended, reply)
            }
            Statement::Autocommit(on) => {
                let ended = if on { self.end("COMMIT") } else { Ok(()) };
                self.autocommit = if ended.is_ok() { on } else { self.autocommit };
                self.done(ended, reply)
            }
            Statement::System(items) => self.system(&items, reply),
            Statement::ShowTables(pattern) => {
                let sql = "SELECT name AS tables FROM sqlite_master WHERE type IN ('table', 'view')
                    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name LIKE ?1 ESCAPE '\\' ORDER BY name";
                self.select(sql, [pattern.unwrap_or("%".into())], reply)
            }
            Statement::ShowDatabases(pattern) => {
                let sql = "SELECT 'main' AS \"Database\" WHERE 'main' LIKE ?1 ESCAPE '\\'";
                self.select(sql, [pattern.unwrap_or("%".into())], reply)
            }
            Statement::ShowCreateTable(name) => {
                let sql = "SELECT name AS \"Table\", sql AS \"Create Table\" FROM sqlite_master
                    WHERE type = 'table' AND name = ?1 COLLATE NOCASE";
                self.select(sql, [name], reply)
            }
            Statement::Sql(sql) => self.run(sql, reply),
        }
    }

    /// Ends an open transaction by COMMIT or ROLLBACK; without one there is nothing to do.
    fn end(&self, how: &str) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch(how)?;
        self.committed();
        Ok(())
    }

    fn done(&self, result: rusqlite::Result<()>, mut reply: Reply<'_>) -> Result<(), WireError> {
        reply.status = self.status();
        match result {
            Ok(()) => reply.ok(0, 0, ""),
            Err(error) => reply.error(&sql_error(&error)),
        }
    }

    fn select(&self, sql: &str, values: impl Params, reply: Reply<'_>) -> Result<(), WireError> {
        match self.connection.prepare(sql) {
            Ok(mut statement) => rows::send(&mut statement, values, reply, || ()),
            Err(error) => reply.error(&sql_error(&error)),
        }
    }

    /// Runs a statement of the client's own.
    fn run(&self, sql: &str, mut reply: Reply<'_>) -> Result<(), WireError> {
        let mut statement = match self.connection.prepare(sql) {
            Ok(statement) => statement,
            Err(error) => return reply.error(&sql_error(&error)),
        };
        #[cfg(feature = "test-rds-bgd")]
        if !statement.readonly()
            && let Some(error) = self.backend.write_error()
        {
            return reply.error(&error);
        }
        // Without autocommit the first statement that writes opens the transaction. One that reads does not: SQLite
        // has one writer at a time, and drivers that switch autocommit off would all hold its place.
        let opens = !self.autocommit && !statement.readonly() && self.connection.is_autocommit();
        if opens && let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            return reply.error(&sql_error(&error));
        }
        reply.status = self.status();
        // Transactions also end by RELEASE of a savepoint, which SQLite handles.
        let may_commit = !statement.readonly() || !self.connection.is_autocommit();
        if statement.column_count() > 0 {
            return rows::send(&mut statement, [], reply, || self.ran(may_commit));
        }
        let before = self.connection.total_changes();
        match statement.execute([]) {
            Ok(_) => {
                self.ran(may_commit);
                let changed = self.connection.total_changes() != before;
                // SQLite keeps the numbers of the last change, which may be an earlier statement's.
                let affected = if changed { self.connection.changes() } else { 0 };
                let inserts =
                    ["INSERT", "REPLACE"].iter().any(|word| text::after_words(sql, &[word]).is_some());
                let row = if changed && inserts { self.connection.last_insert_rowid() } else { 0 };
                reply.status = self.status();
                reply.ok(affected, u64::try_from(row).unwrap_or(0), "")
            }
            Err(error) => {
                reply.status = self.status();
                reply.error(&sql_error(&error))
            }
        }
    }

    /// Called when a statement has run and before its client is told.
    fn ran(&self, may_commit: bool) {
        if may_commit && self.connection.is_autocommit() {
            self.committed();
        }
    }

    /// Called when something may have been committed and before the client is told.
    fn committed(&self) {
        #[cfg(feature = "test-rds-bgd")]
        if self.backend.is_shared_file(&self.file) {
            self.backend.committed(&self.connection);
        }
    }

    fn system(&self, items: &[Item], reply: Reply<'_>) -> Result<(), WireError> {
        let comment = self.version_comment();
        let context = Context {
            server_version: &self.identity.server_version,
            version_comment: comment.as_deref(),
            connection_id: self.identity.connection_id,
            user: &self.identity.user,
            autocommit: self.autocommit,
        };
        let values = items.iter().map(|item| context.value(&item.asked)).collect::<Result<Vec<_>, _>>();
        let values = match values {
            Ok(values) => values,
            Err(error) => return reply.error(&error),
        };
        let columns: Vec<Column> = items
            .iter()
            .zip(&values)
            .map(|(item, value)| Column::new(item.column.as_str(), system::kind(value)))
            .collect();
        let mut rows = reply.rows(&columns)?;
        rows.row(values.iter().map(|value| Some(value.as_bytes())))?;
        rows.finish()
    }

    #[cfg(not(feature = "test-rds-bgd"))]
    fn version_comment(&self) -> Result<String, SqlError> {
        Ok("(ProxySQL SQLite3 Server)".to_owned())
    }

    /// Names the backend that the client reached, which is how tests see where they were routed.
    #[cfg(feature = "test-rds-bgd")]
    fn version_comment(&self) -> Result<String, SqlError> {
        self.backend.version_comment()
    }
}

impl QueryHandler for Session {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        #[cfg(feature = "test-rds-bgd")]
        return self.answer_as_backend(sql, reply);
        #[cfg(not(feature = "test-rds-bgd"))]
        {
            self.deadline.restart();
            self.answer(sql, reply)
        }
    }

    fn reset(&mut self) -> Result<(), SqlError> {
        self.end("ROLLBACK").map_err(|error| sql_error(&error))?;
        self.autocommit = true;
        Ok(())
    }

    fn change_user(&mut self, user: &str) {
        self.identity.user = user.to_owned();
    }

    fn status(&self) -> StatusFlags {
        let mut status = StatusFlags::empty();
        status.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, self.autocommit);
        status.set(StatusFlags::SERVER_STATUS_IN_TRANS, !self.connection.is_autocommit());
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use wire::CapabilityFlags;
    use wire::channel::Channel;
    use wire::socket::Socket;

    /// A session and both ends of a connection to answer on.
    struct Fixture {
        session: Session,
        channel: Channel,
        client: TcpStream,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let channel = Channel::new(Socket::new(listener.accept().unwrap().0).unwrap());
            let file = directory.path().join("test.db");
            #[cfg(feature = "test-rds-bgd")]
            let simulator = std::sync::Arc::new(
                crate::simulator::Simulator::open(&database::open(&file).unwrap(), &file).unwrap(),
            );
            let session = Session::open(
                &file,
                Deadline::new(channel.stream().socket().clone()),
                Identity { server_version: "8.0.0".into(), connection_id: 1, user: "testuser".into() },
                #[cfg(feature = "test-rds-bgd")]
                Backend::new(&simulator, channel.stream()),
            )
            .unwrap();
            Self { session, channel, client, _directory: directory }
        }

        /// The status flags in the OK packet that answers a statement.
        fn status_after(&mut self, sql: &str) -> StatusFlags {
            self.channel.reset_sequence();
            let reply = Reply {
                channel: &mut self.channel,
                capabilities: CapabilityFlags::CLIENT_PROTOCOL_41,
                status: self.session.status(),
            };
            self.session.query(sql, reply).unwrap();
            let mut header = [0; 4];
            self.client.read_exact(&mut header).unwrap();
            let mut payload = vec![0; usize::from(header[0])];
            self.client.read_exact(&mut payload).unwrap();
            assert_eq!(payload[0], 0, "{sql} was not answered with OK: {payload:?}");
            // The two counters before the flags take one byte each here.
            StatusFlags::from_bits_truncate(u16::from_le_bytes([payload[3], payload[4]]))
        }
    }

    #[test]
    fn a_reset_undoes_the_transaction_and_turns_autocommit_on() {
        let mut fixture = Fixture::new();
        fixture.status_after("CREATE TABLE t (i)");
        fixture.status_after("SET autocommit = 0");
        fixture.status_after("INSERT INTO t VALUES (1)");
        fixture.session.reset().unwrap();
        assert_eq!(fixture.session.status(), StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        let rows = fixture.session.connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
        assert_eq!(rows, Ok(0));
    }

    #[test]
    fn status_flags_tell_of_transactions_and_autocommit() {
        let auto = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        let open = StatusFlags::SERVER_STATUS_IN_TRANS;
        let mut fixture = Fixture::new();
        for (sql, expected) in [
            ("CREATE TABLE t (i)", auto),
            ("BEGIN", auto | open),
            ("INSERT INTO t VALUES (1)", auto | open),
            ("COMMIT", auto),
            ("START TRANSACTION", auto | open),
            ("ROLLBACK", auto),
            ("SAVEPOINT a", auto | open),
            ("RELEASE a", auto),
            ("SET autocommit=0", StatusFlags::empty()),
            ("INSERT INTO t VALUES (1)", open),
            ("COMMIT", StatusFlags::empty()),
            ("INSERT INTO t VALUES (1)", open),
            ("SET NAMES utf8, autocommit=1", auto),
        ] {
            assert_eq!(fixture.status_after(sql), expected, "{sql}");
        }
    }
}
