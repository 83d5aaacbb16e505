//! Guards: a place in the used map, and a connection that holds one.

use super::Backends;
use super::connection::Connection;
use super::inner::Slot;
use super::peer::Peer;
use super::profile::{Identity, Profile, Want};
use super::statement_cache::{Caller, StatementCache};
use super::statements::StatementText;
use crate::hostgroups::shun_time;
use mysql_common::collations::{Collation, CollationId};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;
use wire::backend::Backend;
use wire::tracker::Prepared;
use wire::{Command, WireError};

/// Most bytes that the answer to a setting may have.
const SETTING_ANSWER: usize = 64 << 10;

/// Whose fault a failed connect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// It counts towards a shun.
    Server,
    /// The server refused the login.
    User,
    /// We are short of something.
    Ourselves,
}

/// A place among the used connections of a server, given up when dropped.
pub(super) struct Place {
    backends: Arc<Backends>,
    pub(super) slot: Slot,
    given_back: bool,
}

impl Place {
    pub(super) fn new(backends: Arc<Backends>, slot: Slot) -> Self {
        Self { backends, slot, given_back: false }
    }
    pub(super) fn backends(&self) -> &Backends {
        &self.backends
    }
    /// Counts a connect failure, and shuns the server if it was one too many.
    pub(super) fn failed(&self, blame: Blame, reason: &dyn Display) {
        let now = Instant::now();
        let variables = self.backends.config.variables();
        let pause = shun_time(variables.shun_recovery_time, variables.connect_timeout_server_max);
        // More failures than one statement makes would never come together while one client alone is active.
        let limit = variables.shun_on_failures.min(variables.connect_retries_on_failure.saturating_add(1));
        drop(variables);
        let mut trash = Vec::new();
        let shunned = self.backends.inner.lock().failed(
            &self.slot,
            blame == Blame::Server,
            now,
            limit,
            now + pause,
            &mut trash,
        );
        super::quit_all(trash);
        let Slot { endpoint, hostgroup, counters, .. } = &self.slot;
        if shunned {
            log::warn!(
                "{endpoint} is shunned for {} s: {limit} connects failed, the last with: {reason}",
                pause.as_secs()
            );
        } else if blame == Blame::User {
            log::debug!("{endpoint} refused a login for hostgroup {hostgroup}: {reason}");
        } else {
            let level = counters.failure_level(now);
            log::log!(level, "cannot connect to {endpoint} for hostgroup {hostgroup}: {reason}");
        }
    }
    fn give_back(mut self, connection: Connection<Backend>) {
        // While somebody waits, every connection is about to be needed again.
        let free_pct = match self.backends.waiting() {
            0 => self.backends.config.variables().free_connections_pct,
            _ => 100,
        };
        let mut trash = Vec::new();
        self.backends.inner.lock().release(&self.slot, connection, Instant::now(), free_pct, &mut trash);
        self.given_back = true;
        drop(self);
        super::quit_all(trash);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.given_back {
            self.backends.inner.lock().discard(&self.slot);
        }
        self.backends.waiters.wake_one(self.slot.hostgroup);
    }
}

/// A backend connection in a session's hands. Dropped, it is closed: only [`Lease::release`] puts it back.
pub struct Lease {
    // Closed before its place is given up, so that max_connections holds at the server too.
    connection: Connection<Backend>,
    place: Place,
}

impl Lease {
    pub(super) fn new(connection: Connection<Backend>, place: Place) -> Self {
        Self { connection, place }
    }
    /// Whether the server has kept silent since its last answer, as it must.
    pub fn is_quiet(&self) -> bool {
        self.connection.is_quiet()
    }
    /// What the connection carries.
    pub fn profile(&self) -> &Profile {
        &self.connection.profile
    }
    /// The connection itself.
    pub fn backend(&mut self) -> &mut Backend {
        &mut self.connection.transport
    }
    /// The server's end.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        self.connection.shared.peer()
    }
    /// Server, for messages.
    pub fn server(&self) -> &dyn Display {
        &self.place.slot.endpoint
    }
    /// Logs that the server was lost with a statement.
    pub fn log_loss(&self, when: &str, error: &WireError) {
        let level = self.place.slot.counters.failure_level(Instant::now());
        log::log!(level, "lost the connection to {} {when}: {error}", self.server());
    }
    /// Whether it must not be used for anything but what is open on it.
    pub fn is_retired(&self) -> bool {
        self.connection.shared.is_retired()
    }
    /// Counts one command and its answer, in bytes.
    pub fn count(&self, sent: u64, received: u64) {
        self.place.slot.counters.count(sent, received);
    }
    /// Notes that a statement has changed what the connection carries.
    pub fn set_profile(&mut self, profile: Profile) {
        self.connection.profile = profile;
    }
    /// Brings the connection from what it carries to what is wanted. After `WireError::Sql` it can still be used.
    pub fn prepare(&mut self, want: &Want, deadline: Instant) -> Result<(), WireError> {
        let Some(steps) = self.connection.profile.steps_to(&want.profile) else { return Ok(()) };
        if steps.reset {
            // A server that cannot do it has done nothing wrong by the client; another connection will do.
            self.reset(deadline).map_err(|_| WireError::Closed)?;
        }
        let Connection { transport, profile, .. } = &mut self.connection;
        for text in steps.settings {
            transport.query(text, SETTING_ANSWER, deadline)?;
            profile.settings = profile.settings.iter().chain([text]).cloned().collect();
        }
        if let Some(schema) = steps.schema {
            transport.simple(Command::COM_INIT_DB, schema.as_bytes(), deadline)?;
            profile.schema = want.profile.schema.clone();
        }
        Ok(())
    }
    /// Makes the connection forget its session (COM_RESET_CONNECTION). The reset also gives up the character set and
    /// collation of the login, and some servers the schema, so these are set again.
    pub fn reset(&mut self, deadline: Instant) -> Result<(), WireError> {
        let Connection { transport, profile, identity, statements, .. } = &mut self.connection;
        let collation = Collation::resolve(CollationId::from(identity.collation));
        if collation.id() == CollationId::UNKNOWN_COLLATION_ID {
            return Err(WireError::Malformed("a collation without a known name cannot be set again"));
        }
        transport.simple(Command::COM_RESET_CONNECTION, b"", deadline)?;
        statements.clear();
        let names = format!("SET NAMES {} COLLATE {}", collation.charset(), collation.collation());
        transport.query(&names, SETTING_ANSWER, deadline)?;
        profile.settings = Profile::default().settings;
        if let Some(schema) = &profile.schema {
            transport.simple(Command::COM_INIT_DB, schema.as_bytes(), deadline)?;
        }
        Ok(())
    }
    /// A statement's form on this connection; prepared if need be. After `WireError::Sql` the connection can still be used.
    pub fn statement(
        &mut self,
        text: &Arc<StatementText>,
        caller: Caller<'_>,
        deadline: Instant,
    ) -> Result<Prepared, WireError> {
        let limit = self.place.backends().config.variables().max_stmts_per_connection;
        self.connection.statement(text, caller, limit, deadline)
    }
    /// Notes that a statement was prepared on it.
    pub fn add_statement(&mut self, text: &Arc<StatementText>, prepared: Prepared, caller: Caller<'_>) {
        let limit = self.place.backends().config.variables().max_stmts_per_connection;
        self.connection.statements.add(text, prepared, caller, limit);
    }
    /// The statements prepared on it.
    pub fn statements(&mut self) -> &mut StatementCache {
        &mut self.connection.statements
    }
    /// Queues the closing of statements, in front of the next command.
    #[inline]
    pub fn queue_closes(&mut self) {
        self.connection.queue_closes();
    }
    /// Notes that what the connection was logged in with has changed.
    pub fn set_identity(&mut self, identity: Arc<Identity>) {
        self.connection.identity = identity;
    }
    /// Puts the connection back into the pool, which closes it if it or its server is out of use.
    pub fn release(self) {
        self.place.give_back(self.connection);
    }
}
