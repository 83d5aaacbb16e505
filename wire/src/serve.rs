//! The command loop that simple servers (admin, SQLite) share.

use crate::channel::Channel;
use crate::login::Login;
use crate::reply::Reply;
use crate::{SqlError, StatusFlags, WireError};

/// What a simple server does with statements. COM_PING, COM_QUIT, COM_INIT_DB, COM_SET_OPTION, COM_STATISTICS, COM_FIELD_LIST
/// and unknown commands (error 1047) are answered by the loop.
pub trait QueryHandler {
    /// Answers one COM_QUERY. Statement errors are answered with `reply.error`; `Err` ends the connection.
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError>;
    /// Changes the default schema; the default accepts any name.
    fn use_schema(&mut self, _schema: &str) -> Result<(), SqlError> {
        Ok(())
    }
    /// Status flags to report with each answer.
    fn status(&self) -> StatusFlags {
        StatusFlags::SERVER_STATUS_AUTOCOMMIT
    }
}

/// Serves commands until the client leaves or the connection fails. Statements that are not UTF-8 are answered
/// with error 1300; packets over `max_packet` bytes with 1153 and the connection ends.
pub fn serve(
    _channel: &mut Channel,
    _login: &Login,
    _max_packet: usize,
    _handler: &mut dyn QueryHandler,
) -> Result<(), WireError> {
    unimplemented!()
}
