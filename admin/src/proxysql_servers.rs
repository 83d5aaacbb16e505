//! proxysql_servers: rows, typed and shown. They are kept as ProxySQL keeps them; nothing connects to these servers.

use crate::Value;
use crate::read::{Cells, table};
use rusqlite::Connection;
use wire::SqlError;

/// A row of proxysql_servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxysqlServerRow {
    /// hostname, trimmed
    pub hostname: String,
    /// port
    pub port: u16,
    /// weight
    pub weight: u32,
    /// comment
    pub comment: String,
}

impl ProxysqlServerRow {
    fn read(cells: &Cells<'_>) -> Result<Self, SqlError> {
        Ok(Self {
            hostname: cells.hostname("hostname")?,
            port: cells.number("port")?,
            weight: cells.number("weight")?,
            comment: cells.text("comment")?,
        })
    }

    /// The row as runtime_proxysql_servers shows it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.hostname.as_str().into(),
            self.port.into(),
            self.weight.into(),
            self.comment.as_str().into(),
        ]
    }
}

/// Reads proxysql_servers.
pub(crate) fn read(conn: &Connection) -> Result<Vec<ProxysqlServerRow>, SqlError> {
    table(conn, "proxysql_servers", "hostname, port", ProxysqlServerRow::read)
}
