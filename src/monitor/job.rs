//! A check to be made, and how it ended.

use super::kind::Kind;
use super::probe::ends_connection;
use super::suppression::Admission;
use crate::hostgroups::Endpoint;
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;
use std::time::Duration;
use wire::WireError;

/// A check that may begin.
pub struct Job {
    pub(super) endpoint: Endpoint,
    /// Whether its row asks for TLS.
    pub(super) tls: bool,
    pub(super) task: Task,
}

pub(super) enum Task {
    Connect,
    Ping,
    ReadOnly {
        sql: String,
        admission: Admission,
    },
    ReplicationLag,
    /// What the server's topology says.
    Discovery {
        admission: Admission,
    },
}

impl Job {
    /// What a server is asked once at a time.
    pub(super) fn key(&self) -> (Discriminant<Task>, Endpoint) {
        (discriminant(&self.task), self.endpoint.clone())
    }
    /// Which kind of check. Discovery is counted among the read_only checks, at whose pace it goes.
    pub fn kind(&self) -> Kind {
        match self.task {
            Task::Connect => Kind::Connect,
            Task::Ping => Kind::Ping,
            Task::ReadOnly { .. } | Task::Discovery { .. } => Kind::ReadOnly,
            Task::ReplicationLag => Kind::ReplicationLag,
        }
    }
}

/// A check that has ended.
pub(super) struct Check<T> {
    /// Wall clock when it began, microseconds since 1970.
    pub(super) start_us: i64,
    pub(super) took: Duration,
    pub(super) result: Result<T, Failure>,
}

/// Why a check gave no value.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The name has no address, or another one than was asked.
    NoAddress,
    Timeout,
    /// The server says no, and so lives.
    Refused,
    Other,
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        let cause = match &error {
            WireError::Sql(error) if !ends_connection(error.code) => Cause::Refused,
            error if error.is_timeout() => Cause::Timeout,
            _ => Cause::Other,
        };
        Self { text: error.to_string(), cause }
    }
}

impl Failure {
    /// Silence of an address that the server's name has left meanwhile, which says nothing of the server.
    pub(super) fn misled(address: SocketAddr) -> Self {
        Self { text: format!("the name does not lead to {address} any more"), cause: Cause::NoAddress }
    }
    /// Says of a timeout where it was, and how long it took.
    pub(super) fn located(self, address: SocketAddr, took: Duration) -> Self {
        match self.cause {
            Cause::Timeout => {
                Self { text: format!("timeout: no answer from {address} in {} ms", took.as_millis()), ..self }
            }
            _ => self,
        }
    }
}
