//! Answers that need no server.

use super::own_status::OwnStatus;
use std::net::IpAddr;
use wire::reply::{Column, Reply};
use wire::{SqlError, StatusFlags, WireError};

/// An answer of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// OK.
    Ok,
    /// OK to COM_PING, which tells of so many warnings.
    Alive(u16),
    /// OK with an info text.
    Note(String),
    /// EOF, or the OK that takes its place.
    End,
    /// ERR.
    Error(SqlError),
    /// A bare text packet, as COM_STATISTICS has it.
    Text(String),
    /// One row of one column.
    Row(Column, String),
    /// Rows of columns that a server has defined; what FOUND_ROWS() is after them, if that is another than before. Warnings and
    /// errors stay as they were.
    Table {
        /// Protocol::ColumnDefinition41 of each.
        definitions: Vec<Vec<u8>>,
        /// NULL is `None`.
        rows: Vec<Vec<Option<Vec<u8>>>>,
        /// FOUND_ROWS().
        found: Option<u64>,
    },
    /// As many OKs, each of a statement of its own, and the answer of the one behind them.
    Several(usize, Box<Self>),
    /// Status variables of the client's connection.
    Status(OwnStatus, Box<[Column; 2]>),
}

impl Answer {
    /// The error that it ends with.
    pub fn error(&self) -> Option<&SqlError> {
        match self {
            Self::Error(error) => Some(error),
            Self::Several(_, last) => last.error(),
            _ => None,
        }
    }
    /// Writes the answer.
    pub fn write(self, reply: Reply<'_>) -> Result<(), WireError> {
        match self {
            Self::Ok => reply.ok(0, 0, ""),
            Self::Alive(warnings) => reply.ok_warning(warnings),
            Self::Note(text) => reply.ok(0, 0, &text),
            Self::End => reply.end(),
            Self::Error(error) => reply.error(&error),
            Self::Text(text) => {
                reply.channel.queue(text.as_bytes());
                reply.channel.flush()
            }
            Self::Row(column, value) => {
                let mut rows = reply.rows(&[column])?;
                rows.row([Some(value.as_bytes())])?;
                rows.finish()
            }
            Self::Several(before, last) => {
                let Reply { channel, capabilities, status } = reply;
                let more = status | StatusFlags::SERVER_MORE_RESULTS_EXISTS;
                for _ in 0..before {
                    Reply { channel: &mut *channel, capabilities, status: more }.ok(0, 0, "")?;
                }
                last.write(Reply { channel, capabilities, status })
            }
            Self::Status(status, columns) => status.write(&*columns, reply),
            Self::Table { definitions, rows, .. } => {
                let mut reply = reply.rows_of(&definitions)?;
                for row in &rows {
                    reply.row(row.iter().map(Option::as_deref))?;
                }
                reply.finish()
            }
        }
    }
}

/// Statements that ProxySQL answers itself, in exactly these spellings. Others go to a server.
pub fn answer(sql: &[u8], user: &str, peer: IpAddr) -> Option<Answer> {
    Some(match sql {
        b"select @@version_comment limit 1" => {
            Answer::Row(Column::text("@@version_comment"), "(ProxySQL)".to_owned())
        }
        b"select USER()" => Answer::Row(Column::text("USER()"), format!("{user}@{peer}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn only_the_exact_spelling_is_answered_here() {
        let answer = |sql: &str| answer(sql.as_bytes(), "app", Ipv4Addr::LOCALHOST.into());
        let value = |sql| match answer(sql) {
            Some(Answer::Row(_, value)) => Some(value),
            _ => None,
        };
        assert_eq!(value("select @@version_comment limit 1").as_deref(), Some("(ProxySQL)"));
        assert_eq!(value("select USER()").as_deref(), Some("app@127.0.0.1"));
        assert_eq!(answer("SELECT @@version_comment LIMIT 1"), None);
        assert_eq!(answer("select @@version_comment limit 1;"), None);
    }
}
