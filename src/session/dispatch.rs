//! One command of the client: answered here, or sent to a server.

use super::classify::{Effect, Statement, only_count};
use super::counts::Counts;
use super::hold::Reason;
use super::kill::{Kill, not_preparable};
use super::local::{self, Answer};
use super::state::{Message, Pending, Role, Session, Step, status_of};
use std::sync::Arc;
use wire::attributes;
use wire::channel::RawCommand;
use wire::tracker::ResponseTracker;
use wire::{CapabilityFlags, Command, SqlError, WireError};

impl Session<'_> {
    /// Handles one command up to its answer.
    pub fn handle(&mut self, command: &RawCommand<'_>) -> Step {
        let Some((&code, argument)) = command.head.split_first() else { return unknown_command() };
        let Some(code) = wire::command(code) else { return unknown_command() };
        let complete = command.head.len() == command.length;
        self.route.begin();
        let statement = match code {
            Command::COM_QUIT => return Step::End(None),
            Command::COM_PING => return self.ping(),
            Command::COM_STATISTICS => return Step::Answer(Answer::Text(self.statistics())),
            Command::COM_RESET_CONNECTION => return self.reset(),
            Command::COM_PROCESS_KILL => return self.kill_by_command(argument),
            Command::COM_QUERY if complete => {
                let Ok(sql) = attributes::sql(argument, self.capabilities) else {
                    return Step::Answer(Answer::Error(self.wording().malformed_packet()));
                };
                return self.query(command, sql);
            }
            Command::COM_INIT_DB => match str::from_utf8(argument) {
                Ok(schema) => Effect::Use(schema.to_owned()).into(),
                Err(_) => Effect::Hold(Reason::State).into(),
            },
            Command::COM_STMT_PREPARE if self.prepares_kill(argument) => {
                return Step::Answer(Answer::Error(not_preparable()));
            }
            Command::COM_STMT_PREPARE => return self.prepare(command),
            Command::COM_STMT_EXECUTE => return self.execute(command),
            Command::COM_STMT_SEND_LONG_DATA => return self.send_long_data(command),
            Command::COM_STMT_FETCH => return self.fetch(command),
            Command::COM_STMT_RESET => return self.reset_statement(command),
            Command::COM_STMT_CLOSE => return self.close_statement(command),
            // Too long to be judged; able to lock all tables of a MariaDB; COM_SHUTDOWN, which ends one.
            Command::COM_QUERY | Command::COM_REFRESH | Command::COM_DEPRECATED_1 => {
                Effect::Hold(Reason::State).into()
            }
            Command::COM_FIELD_LIST | Command::COM_PROCESS_INFO | Command::COM_DEBUG => Statement::default(),
            Command::COM_SET_OPTION => return self.set_option(command),
            Command::COM_CHANGE_USER => return Step::ChangeUser(argument.to_vec()),
            Command::COM_BINLOG_DUMP | Command::COM_BINLOG_DUMP_GTID | Command::COM_REGISTER_SLAVE => {
                return unsupported_command(code);
            }
            _ => return unknown_command(),
        };
        if let Some(answer) = self.answer_here(&statement, argument) {
            return Step::Answer(answer);
        }
        self.aim_unruled();
        self.send(code, statement, Message::Framed(command.framed), Role::Plain)
    }
    /// What comes of a statement that is the proxy's own to answer. Only one that is [about it](Statement::about_proxy) can be.
    pub(super) fn answer_as_proxy(&mut self, sql: &[u8]) -> Option<Step> {
        let local = local::answer(sql, &self.want.identity.user, self.peer);
        let local = local.or_else(|| self.answer_own_status(sql));
        if let Some(answer) = local.or_else(|| self.answer_asked(sql)) {
            return Some(Step::Answer(answer));
        }
        let (own, version) = (self.id, || self.version_at_hand());
        match Kill::parse(sql, version, own) {
            Some(kill) => Some(self.kill(kill)),
            None => self.kill_among(sql),
        }
    }
    /// The answer to a statement that needs no server, or may not have one.
    pub(super) fn answer_here(&mut self, statement: &Statement, sql: &[u8]) -> Option<Answer> {
        if let Some(answer) = self.refuse_schema(&statement.effect) {
            return Some(answer);
        }
        if statement.reads_diagnostics
            && let Some(answer) = self.show_complaints(sql)
        {
            return Some(answer);
        }
        if statement.reads_counts
            && let Some(answer) = self.count(sql)
        {
            return Some(answer);
        }
        self.counts.note_question(statement);
        None
    }
    /// The session of a user that is schema_locked may not leave its schema.
    fn refuse_schema(&self, effect: &Effect) -> Option<Answer> {
        let Effect::Use(schema) = effect else { return None };
        if !self.user.schema_locked || self.want.profile.schema.as_deref() == Some(schema) {
            return None;
        }
        let (user, peer) = (&self.want.identity.user, self.peer);
        let text = format!("Access denied for user '{user}'@'{peer}' to database '{schema}'");
        Some(Answer::Error(SqlError::new(1044, "42000", text)))
    }
    /// Answers a statement that asks for ROW_COUNT() or FOUND_ROWS() alone, unless the connection that knows is at hand.
    fn count(&mut self, sql: &[u8]) -> Option<Answer> {
        let (count, name) = only_count(sql)?;
        let elsewhere = self.counts.is_elsewhere(count);
        (elsewhere || !self.is_at_hand()).then(|| self.counts.answer(count, name))
    }
    /// Sends a command to a server. It is sent a second time only if it did not get there whole, so that the server cannot have
    /// executed it: here if a write failed, otherwise as [`Session::pass_on`] finds.
    pub(super) fn send(
        &mut self,
        command: Command,
        statement: Statement,
        message: Message<'_>,
        role: Role,
    ) -> Step {
        let straight = self.goes_straight(command, &statement);
        if !straight && let Err(step) = self.leave_unusable(&statement) {
            return step;
        }
        let reads = statement.reads_counts || statement.reads_diagnostics;
        let may_repeat = self.variables.query_retries_on_failure > 0 && !self.repeats;
        let mut replaceable = may_repeat && !(reads || self.lease.is_some() && self.is_bound());
        loop {
            if !straight && let Err(step) = self.connected(&statement) {
                return step;
            }
            let ready = if straight { Ok(()) } else { self.bring_readable(command, &statement) };
            match ready.and_then(|()| self.write(&message)) {
                Ok(sent) if ResponseTracker::expects_answer(command) => {
                    return Step::Relay(Pending { command, statement, role, sent, replaceable, straight });
                }
                Ok(_) => return Step::Silent,
                Err(WireError::Sql(error)) => return self.refused(error),
                Err(error) if !replaceable => return self.lost(&error),
                Err(_) => self.drop_lease(),
            }
            replaceable = false;
        }
    }
    /// Writes a command to the connection in hand; returns its length in bytes.
    fn write(&mut self, message: &Message<'_>) -> Result<u64, WireError> {
        match message {
            Message::Call(call) => self.write_call(call),
            Message::Framed(framed) => {
                let Some(lease) = &mut self.lease else { return Err(WireError::Closed) };
                lease.queue_closes();
                let backend = lease.backend();
                let framed = attributes::adapt(framed, self.capabilities, backend.capabilities)?;
                backend.channel.write_raw(&framed)?;
                Ok(framed.len() as u64)
            }
        }
    }
    /// The server refused what was to be done before the command, which was not sent.
    fn refused(&mut self, error: SqlError) -> Step {
        self.count_error_of_server(&error);
        self.hold.own_diagnostics = true;
        self.hold.linger = true;
        Step::Answer(Answer::Error(error))
    }
    /// COM_RESET_CONNECTION: the session starts anew, whatever connection it gets next.
    fn reset(&mut self) -> Step {
        self.clean_up();
        let (mariadb, profile) = (self.is_mariadb(), &self.want.profile);
        let ignores_space = self.capabilities.contains(CapabilityFlags::CLIENT_IGNORE_SPACE);
        self.want.profile = Arc::new(profile.as_reset_by_client(self.collation, mariadb, ignores_space));
        self.begin_anew();
        Step::Answer(Answer::Ok)
    }
    /// Forgets what the connections of the session have told of it, beside its profile.
    pub(super) fn begin_anew(&mut self) {
        self.want.session = next_session(self.want.session);
        self.counts = Counts::default();
        self.unseen = None;
        self.status = status_of(self.sql_mode);
        self.insert_id = 0;
        self.warnings = 0;
        self.called_functions = false;
        self.statements.clear();
        self.route.restart();
    }
}

/// The number of the session that follows on the same connection of a client.
pub(super) fn next_session(session: u64) -> u64 {
    session.wrapping_add(1 << 32)
}

fn unknown_command() -> Step {
    Step::Answer(Answer::Error(SqlError::unknown_command()))
}

/// What a proxy cannot pass on: a replica must talk to its server itself.
fn unsupported_command(command: Command) -> Step {
    let text = format!("{command:?} is not supported through a proxy: connect to the server itself");
    Step::Answer(Answer::Error(SqlError::new(9003, "HY000", text)))
}
