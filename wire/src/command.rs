//! Command bytes.

use crate::Command;

/// The commands that clients of MySQL and MariaDB send; the others are of servers' inner use.
const KNOWN: &[Command] = &[
    Command::COM_QUIT,
    Command::COM_INIT_DB,
    Command::COM_QUERY,
    Command::COM_FIELD_LIST,
    Command::COM_CREATE_DB,
    Command::COM_DROP_DB,
    Command::COM_REFRESH,
    // COM_SHUTDOWN.
    Command::COM_DEPRECATED_1,
    Command::COM_STATISTICS,
    Command::COM_PROCESS_INFO,
    Command::COM_PROCESS_KILL,
    Command::COM_DEBUG,
    Command::COM_PING,
    Command::COM_CHANGE_USER,
    Command::COM_BINLOG_DUMP,
    Command::COM_TABLE_DUMP,
    Command::COM_REGISTER_SLAVE,
    Command::COM_STMT_PREPARE,
    Command::COM_STMT_EXECUTE,
    Command::COM_STMT_SEND_LONG_DATA,
    Command::COM_STMT_CLOSE,
    Command::COM_STMT_RESET,
    Command::COM_SET_OPTION,
    Command::COM_STMT_FETCH,
    Command::COM_BINLOG_DUMP_GTID,
    Command::COM_RESET_CONNECTION,
];

/// The command of a packet's first byte (MySQL protocol, "Command Phase").
pub fn command(byte: u8) -> Option<Command> {
    KNOWN.iter().copied().find(|&command| command as u8 == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_their_documented_meaning() {
        assert_eq!(command(0x03), Some(Command::COM_QUERY));
        assert_eq!(command(0x1F), Some(Command::COM_RESET_CONNECTION));
        assert_eq!(command(0x00), None);
        assert_eq!(command(0xFF), None);
    }
}
