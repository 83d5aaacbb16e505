//! The command loop that simple servers (admin, SQLite) share.

mod prepared;

use crate::auth::{Accounts, NONCE};
use crate::channel::Channel;
use crate::login::{self, Login, ServerOptions};
use crate::reply::{Column, Reply};
use crate::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};
pub use prepared::Parameter;
use prepared::Statements;
use std::time::Duration;

/// Time between the pieces of one packet.
const PARTIAL: Duration = Duration::from_secs(30);

/// How long an idle client may stay: MySQL's default wait_timeout, which handlers tell as theirs.
const IDLE_LIMIT: Duration = Duration::from_secs(28_800);

/// How long a client may take nothing of its result before it is given up.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// How long a client may go on sending a packet that is refused.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a server tells of a statement that it has prepared.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// How many parameters it has.
    pub parameters: u16,
    /// The columns of its result, where they are known before it runs.
    pub columns: Vec<Column>,
}

/// Who may log in, and how: for a change of user.
#[derive(Clone, Copy)]
pub struct Entrance<'a> {
    /// What the listener offers.
    pub options: &'a ServerOptions,
    /// Who there is.
    pub accounts: &'a dyn Accounts,
}

/// What a simple server does with statements. COM_PING, COM_QUIT, COM_INIT_DB, COM_RESET_CONNECTION, COM_CHANGE_USER, COM_SET_OPTION,
/// COM_STATISTICS, COM_FIELD_LIST and unknown commands (error 1047) are answered by the loop.
pub trait QueryHandler {
    /// Answers one COM_QUERY. Statement errors are answered with `reply.error`; `Err` ends the connection.
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError>;
    /// Reads a statement that is to be run later; the default can do none so.
    fn prepare(&mut self, _sql: &str) -> Result<Prepared, SqlError> {
        let text = "This command is not supported in the prepared statement protocol yet";
        Err(SqlError::new(1295, "HY000", text))
    }
    /// Answers a statement that `prepare` has read. Rows are written in their binary form.
    fn execute(&mut self, _sql: &str, _values: &[Parameter], reply: Reply<'_>) -> Result<(), WireError> {
        reply.error(&SqlError::unknown_command())
    }
    /// Changes the default schema; the default accepts any name.
    fn use_schema(&mut self, _schema: &str) -> Result<(), SqlError> {
        Ok(())
    }
    /// Forgets what the session has set and undoes its transaction (COM_RESET_CONNECTION); the default has nothing to forget.
    fn reset(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
    /// Another user goes on with the connection (COM_CHANGE_USER), after a reset; the default serves all alike.
    fn change_user(&mut self, _user: &str) {}
    /// Status flags to report with each answer.
    fn status(&self) -> StatusFlags {
        StatusFlags::SERVER_STATUS_AUTOCOMMIT
    }
}

/// Serves commands until the client leaves or is idle for eight hours, or the connection fails. Statements that are not
/// UTF-8 are answered with error 1300; packets over `max_packet` bytes with 1153 and the connection ends, as it does after a change
/// of user that is refused.
pub fn serve(
    channel: &mut Channel,
    login: &Login,
    entrance: Entrance<'_>,
    max_packet: usize,
    handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    channel.stream().socket().set_timeouts(Some(IDLE_LIMIT), Some(WRITE_LIMIT));
    let mut statements = Statements::default();
    let mut capabilities = login.capabilities;
    loop {
        channel.shrink();
        channel.reset_sequence();
        let packet = match channel.read_packet(max_packet, PARTIAL) {
            Ok(packet) => packet,
            Err(WireError::Closed) => return Ok(()),
            Err(error @ WireError::TooLarge { .. }) => {
                refuse_large_packet(channel)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        // Copied, because the answer is written through the channel that holds the packet.
        let (command, argument) = match packet.split_first() {
            Some((&code, argument)) => (crate::command(code), argument.to_vec()),
            None => (None, Vec::new()),
        };
        if command == Some(Command::COM_QUIT) {
            return Ok(());
        }
        match command {
            Some(Command::COM_SET_OPTION) => set_option(&mut capabilities, &argument),
            Some(Command::COM_RESET_CONNECTION) => statements = Statements::default(),
            Some(Command::COM_CHANGE_USER) => {
                statements = Statements::default();
                let client = Client { capabilities, nonce: login.nonce };
                change_user(channel, &argument, client, entrance, handler)?;
                continue;
            }
            _ => {}
        }
        let reply = Reply { channel, capabilities, status: handler.status() };
        match command {
            Some(command) if is_of_prepared_statements(command) => {
                let payload = [&[command as u8], &argument[..]].concat();
                answer_prepared(command, &payload, reply, handler, &mut statements)?;
            }
            _ => answer(command, &argument, reply, handler)?,
        }
    }
}

/// What the login has settled with the client.
struct Client {
    capabilities: CapabilityFlags,
    nonce: [u8; NONCE],
}

/// COM_CHANGE_USER. Nothing is left of the session before it, whoever comes after.
fn change_user(
    channel: &mut Channel,
    argument: &[u8],
    client: Client,
    entrance: Entrance<'_>,
    handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    let Client { capabilities, nonce } = client;
    if let Err(error) = handler.reset() {
        Reply { channel, capabilities, status: handler.status() }.error(&error)?;
        return Err(error.into());
    }
    let Entrance { options, accounts } = entrance;
    let login = login::change_user(channel, argument, capabilities, nonce, options, accounts)?;
    handler.change_user(&login.user);
    Ok(())
}

/// Several statements in one command: 0 allows them, 1 forbids them.
fn set_option(capabilities: &mut CapabilityFlags, argument: &[u8]) {
    let allowed = argument.first() == Some(&0);
    capabilities.set(CapabilityFlags::CLIENT_MULTI_STATEMENTS, allowed);
}

fn is_of_prepared_statements(command: Command) -> bool {
    matches!(
        command,
        Command::COM_STMT_PREPARE
            | Command::COM_STMT_EXECUTE
            | Command::COM_STMT_SEND_LONG_DATA
            | Command::COM_STMT_CLOSE
            | Command::COM_STMT_RESET
    )
}

/// `payload` is the whole of the command.
fn answer_prepared(
    command: Command,
    payload: &[u8],
    reply: Reply<'_>,
    handler: &mut dyn QueryHandler,
    statements: &mut Statements,
) -> Result<(), WireError> {
    match command {
        Command::COM_STMT_CLOSE => statements.close(payload),
        Command::COM_STMT_SEND_LONG_DATA => statements.send_ahead(payload),
        Command::COM_STMT_RESET => {
            return match statements.reset(payload) {
                Ok(()) => reply.ok(0, 0, ""),
                Err(error) => reply.error(&error),
            };
        }
        Command::COM_STMT_EXECUTE => {
            return match statements.execute(payload, reply.capabilities) {
                Ok((sql, values)) => handler.execute(&sql, &values, reply),
                Err(error) => reply.error(&error),
            };
        }
        _ => {
            let sql = str::from_utf8(payload.get(1..).unwrap_or_default()).map_err(|_| not_utf8("statement"));
            let prepared = sql.and_then(|sql| {
                let prepared = handler.prepare(sql)?;
                Ok((statements.add(sql, prepared.parameters)?, prepared))
            });
            return match prepared {
                Ok((id, prepared)) => reply.prepared(id, prepared.parameters, &prepared.columns),
                Err(error) => reply.error(&error),
            };
        }
    }
    Ok(())
}

fn not_utf8(what: &str) -> SqlError {
    SqlError::new(1300, "HY000", format!("Invalid utf8mb4 character string in {what}"))
}

fn answer(
    command: Option<Command>,
    argument: &[u8],
    mut reply: Reply<'_>,
    handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    match command {
        Some(Command::COM_QUERY) => {
            match crate::attributes::sql(argument, reply.capabilities).map(str::from_utf8) {
                Err(_) => reply.error(&SqlError::malformed_packet()),
                Ok(Ok(sql)) => handler.query(sql, reply),
                Ok(Err(_)) => reply.error(&not_utf8("statement")),
            }
        }
        Some(Command::COM_INIT_DB) => {
            let schema = str::from_utf8(argument);
            let used = match schema {
                Ok(schema) => handler.use_schema(schema),
                Err(_) => Err(not_utf8("schema name")),
            };
            reply.status = handler.status();
            match used {
                Ok(()) => reply.ok(0, 0, ""),
                Err(error) => reply.error(&error),
            }
        }
        Some(Command::COM_RESET_CONNECTION) => {
            let reset = handler.reset();
            reply.status = handler.status();
            match reset {
                Ok(()) => reply.ok(0, 0, ""),
                Err(error) => reply.error(&error),
            }
        }
        Some(Command::COM_PING) => reply.ok(0, 0, ""),
        Some(Command::COM_FIELD_LIST | Command::COM_SET_OPTION) => reply.end(),
        Some(Command::COM_STATISTICS) => {
            reply.channel.queue(b"Threads: 1");
            reply.channel.flush()
        }
        _ => reply.error(&SqlError::unknown_command()),
    }
}

fn refuse_large_packet(channel: &mut Channel) -> Result<(), WireError> {
    channel.queue(&SqlError::packet_too_large().to_payload());
    channel.flush()?;
    channel.close_gently(GOODBYE);
    Ok(())
}
