//! The server's end of a connection, as another connection can reach it: to end what runs there.

use super::identity::Identity;
use super::inner::Slot;
use super::open::ATTRIBUTES;
use crate::hostgroups::{Endpoint, HostgroupId};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use wire::backend::{Backend, ConnectOptions, OWN_ANSWER};
use wire::tls::ClientTls;
use wire::{CapabilityFlags, UTF8MB4_GENERAL_CI, WireError};

/// What a KILL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The statement that runs.
    Query,
    /// The connection, and with it the statement.
    Connection,
}

/// Where a connection leads, fixed once it is open. No `Debug`: its identity holds a password.
pub struct Peer {
    /// Hostgroup it was opened for.
    pub hostgroup: HostgroupId,
    /// Server.
    pub endpoint: Endpoint,
    /// The address that was connected to. The name may lead elsewhere by now, and the connection is still there.
    pub address: SocketAddr,
    /// This end of the connection.
    pub local: SocketAddr,
    /// How TLS is spoken to it, if it is.
    pub tls: Option<ClientTls>,
    /// The server's id of the connection.
    pub connection_id: u32,
    /// Who is logged in.
    pub identity: Arc<Identity>,
    /// What the server said its version is.
    pub server_version: String,
}

impl Peer {
    /// The server's end of an open connection.
    pub(super) fn of(
        slot: &Slot,
        backend: &Backend,
        identity: &Arc<Identity>,
        tls: Option<ClientTls>,
    ) -> io::Result<Self> {
        let stream = backend.channel.stream();
        Ok(Self {
            hostgroup: slot.shared.hostgroup,
            endpoint: slot.shared.endpoint.clone(),
            address: stream.socket().peer_addr()?,
            local: stream.socket().local_addr()?,
            tls,
            connection_id: backend.connection_id,
            identity: Arc::clone(identity),
            server_version: backend.server_version.clone(),
        })
    }
    /// Sends KILL for the connection over one of its own: to the same server, as the same user, who needs no privilege
    /// for that. That connection is in no pool and closed at once.
    ///
    /// The caller holds the connection meant, and has not read the end of its answer, so that what runs there is its own
    /// statement. A KILL QUERY that comes too late, after the statement, does nothing on an idle connection (MySQL 5.7 and later, MariaDB).
    pub fn kill(&self, target: Target, deadline: Instant) -> Result<(), WireError> {
        let mut side = Backend::connect(&ConnectOptions {
            address: self.address,
            tls: self.tls.as_ref(),
            server_name: &self.endpoint.host,
            user: &self.identity.user,
            secret: &self.identity.secret,
            database: None,
            capabilities: CapabilityFlags::empty(),
            collation: UTF8MB4_GENERAL_CI.into(),
            attributes: ATTRIBUTES,
            deadline,
        })?;
        let word = match target {
            Target::Query => "QUERY",
            Target::Connection => "CONNECTION",
        };
        side.query(&format!("KILL {word} {}", self.connection_id), OWN_ANSWER, deadline)?;
        side.quit();
        Ok(())
    }
}
