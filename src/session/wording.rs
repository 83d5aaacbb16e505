//! The words of the errors that a session makes in its server's place: MySQL and MariaDB have different ones.

use wire::{Command, SqlError};

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// MySQL 9.
    MySql,
    /// MariaDB 10.11.
    MariaDb,
}

impl Wording {
    /// Error 1243: a command on a statement that is not open.
    pub fn unknown_statement(self, id: u32, command: Command) -> SqlError {
        let place = self.place(command);
        let text = format!("Unknown prepared statement handler ({id}) given to {place}");
        SqlError::new(1243, "HY000", text)
    }
    /// Error 1421: nothing to fetch from.
    pub fn no_cursor(self, id: u32) -> SqlError {
        SqlError::new(1421, "HY000", format!("The statement ({id}) has no open cursor{}", self.full_stop()))
    }
    /// Error 1210: data for a parameter that the statement does not have.
    pub fn no_such_parameter(self) -> SqlError {
        wrong_arguments(self.place(Command::COM_STMT_SEND_LONG_DATA))
    }
    /// An execution without the types of its parameters, or, if it `counts` them, with too few. `pieces`: some were sent in pieces.
    pub fn untyped(self, counts: bool, pieces: bool) -> SqlError {
        match self {
            Self::MySql if counts => wrong_arguments("COM_STMT_EXECUTE"),
            Self::MySql if pieces => self.malformed_packet(),
            Self::MySql | Self::MariaDb => wrong_arguments("mysqld_stmt_execute"),
        }
    }
    /// An execution that cannot be read: it ends before the flag behind the NULL bits, or later.
    pub fn unreadable(self, ends_early: bool) -> SqlError {
        match self {
            Self::MariaDb if ends_early => self.untyped(true, false),
            _ => self.malformed_packet(),
        }
    }
    /// Error 1835: a packet that is not in its command's form.
    pub fn malformed_packet(self) -> SqlError {
        SqlError::new(1835, "HY000", format!("Malformed communication packet{}", self.full_stop()))
    }
    /// The first bytes of an argument. One that is too short is malformed to MySQL; MariaDB reads on where there is nothing, which is
    /// zero unless a longer packet was there before.
    pub fn padded<const N: usize>(self, argument: &[u8]) -> Option<[u8; N]> {
        if self == Self::MySql && argument.len() < N {
            return None;
        }
        let mut padded = [0; N];
        padded.iter_mut().zip(argument).for_each(|(to, from)| *to = *from);
        Some(padded)
    }
    fn full_stop(self) -> &'static str {
        match self {
            Self::MySql => ".",
            Self::MariaDb => "",
        }
    }
    /// The function that the server names as the one that found the fault.
    fn place(self, command: Command) -> &'static str {
        match (self, command) {
            (Self::MySql, _) => "mysql_stmt_precheck",
            (Self::MariaDb, Command::COM_STMT_FETCH) => "mysqld_stmt_fetch",
            (Self::MariaDb, Command::COM_STMT_RESET) => "mysqld_stmt_reset",
            (Self::MariaDb, Command::COM_STMT_SEND_LONG_DATA) => "mysqld_stmt_send_long_data",
            (Self::MariaDb, _) => "mysqld_stmt_execute",
        }
    }
}

fn wrong_arguments(place: &str) -> SqlError {
    SqlError::new(1210, "HY000", format!("Incorrect arguments to {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_words() {
        let both =
            |error: fn(Wording) -> SqlError| [Wording::MySql, Wording::MariaDb].map(|of| error(of).message);
        assert_eq!(
            both(|of| of.unknown_statement(9, Command::COM_STMT_FETCH)),
            [
                "Unknown prepared statement handler (9) given to mysql_stmt_precheck",
                "Unknown prepared statement handler (9) given to mysqld_stmt_fetch"
            ]
        );
        assert_eq!(
            both(Wording::no_such_parameter),
            [
                "Incorrect arguments to mysql_stmt_precheck",
                "Incorrect arguments to mysqld_stmt_send_long_data"
            ]
        );
        assert_eq!(
            both(|of| of.untyped(false, true)),
            ["Malformed communication packet.", "Incorrect arguments to mysqld_stmt_execute"]
        );
        assert_eq!(
            both(|of| of.untyped(false, false)),
            ["Incorrect arguments to mysqld_stmt_execute", "Incorrect arguments to mysqld_stmt_execute"]
        );
        assert_eq!(
            both(|of| of.untyped(true, false)),
            ["Incorrect arguments to COM_STMT_EXECUTE", "Incorrect arguments to mysqld_stmt_execute"]
        );
        assert_eq!(
            both(|of| of.unreadable(true)),
            ["Malformed communication packet.", "Incorrect arguments to mysqld_stmt_execute"]
        );
        assert_eq!(
            both(|of| of.unreadable(false)),
            ["Malformed communication packet.", "Malformed communication packet"]
        );
        assert_eq!(
            both(|of| of.no_cursor(1)),
            ["The statement (1) has no open cursor.", "The statement (1) has no open cursor"]
        );
    }
}
