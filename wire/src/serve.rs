//! The command loop that simple servers (admin, SQLite) share.

use crate::channel::Channel;
use crate::login::Login;
use crate::reply::Reply;
use crate::{Command, SqlError, StatusFlags, WireError};
use std::time::Duration;

/// Time between the pieces of one packet.
const PARTIAL: Duration = Duration::from_secs(30);

/// How long an idle client may stay: MySQL's default wait_timeout, which handlers tell as theirs.
const IDLE_LIMIT: Duration = Duration::from_secs(28_800);

/// How long a client may take nothing of its result before it is given up.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// How long a client may go on sending a packet that is refused.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a simple server does with statements. COM_PING, COM_QUIT, COM_INIT_DB, COM_RESET_CONNECTION, COM_SET_OPTION, COM_STATISTICS, COM_FIELD_LIST
/// and unknown commands (error 1047) are answered by the loop.
pub trait QueryHandler {
    /// Answers one COM_QUERY. Statement errors are answered with `reply.error`; `Err` ends the connection.
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError>;
    /// Changes the default schema; the default accepts any name.
    fn use_schema(&mut self, _schema: &str) -> Result<(), SqlError> {
        Ok(())
    }
    /// Forgets what the session has set and undoes its transaction (COM_RESET_CONNECTION); the default has nothing to forget.
    fn reset(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
    /// Status flags to report with each answer.
    fn status(&self) -> StatusFlags {
        StatusFlags::SERVER_STATUS_AUTOCOMMIT
    }
}

/// Serves commands until the client leaves or is idle for eight hours, or the connection fails. Statements that are not
/// UTF-8 are answered with error 1300; packets over `max_packet` bytes with 1153 and the connection ends.
pub fn serve(
    channel: &mut Channel,
    login: &Login,
    max_packet: usize,
    handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    channel.stream().socket().set_timeouts(Some(IDLE_LIMIT), Some(WRITE_LIMIT));
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
        let reply = Reply { channel, capabilities: login.capabilities, status: handler.status() };
        answer(command, &argument, reply, handler)?;
    }
}

fn answer(
    command: Option<Command>,
    argument: &[u8],
    mut reply: Reply<'_>,
    handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    match command {
        Some(Command::COM_QUERY) => match crate::attributes::sql(argument, reply.capabilities)
            .map(str::from_utf8)
        {
            Err(_) => reply.error(&SqlError::malformed_packet()),
            Ok(Ok(sql)) => handler.query(sql, reply),
            Ok(Err(_)) => {
                reply.error(&SqlError::new(1300, "HY000", "Invalid utf8mb4 character string in statement"))
            }
        },
        Some(Command::COM_INIT_DB) => {
            let schema = str::from_utf8(argument);
            let used = match schema {
                Ok(schema) => handler.use_schema(schema),
                Err(_) => {
                    Err(SqlError::new(1300, "HY000", "Invalid utf8mb4 character string in schema name"))
                }
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
        Some(Command::COM_STMT_CLOSE | Command::COM_STMT_SEND_LONG_DATA) => Ok(()),
        Some(Command::COM_STMT_PREPARE) => {
            let text = "This command is not supported in the prepared statement protocol yet";
            reply.error(&SqlError::new(1295, "HY000", text))
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
