//! The MySQL client/server protocol, both sides, over blocking sockets.
//!
//! This crate knows packets, logins, result sets and TLS. It knows no configuration, no pools and no SQLite.

pub mod attributes;
pub mod auth;
pub mod backend;
pub mod channel;
mod command;
mod descriptors;
pub mod error;
pub mod infile;
pub mod login;
mod packet;
mod read_ahead;
pub mod reply;
pub mod serve;
pub mod service;
pub mod socket;
mod sql_mode;
pub mod statement;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod tracker;
pub mod version;

pub use command::command;
pub use error::{SqlError, WireError};
pub use sql_mode::SqlMode;
/// Collation id of utf8mb4_general_ci, which every version of MySQL and MariaDB knows.
pub const UTF8MB4_GENERAL_CI: u8 = 45;

pub use mysql_common::constants::{CapabilityFlags, ColumnFlags, ColumnType, Command, StatusFlags};
