//! Guards: a place in the used map, and a connection that holds one.

use super::Backends;
use super::connection::{Connection, Served, Shared};
use super::identity::Identity;
use super::inner::{Connected, Keep, Slot};
use super::peer::Peer;
use super::profile::{Profile, Want};
use super::server_pool::SlotId;
use super::statement_cache::{Caller, StatementCache};
use super::statements::StatementText;
use super::variables;
use crate::hostgroups::{Endpoint, HostgroupId};
use admin::Variables;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;
use wire::backend::{Backend, NEW_SESSION, OWN_ANSWER, Request};
use wire::tracker::{Notices, Prepared};
use wire::{Command, UTF8MB4_GENERAL_CI, WireError};

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

/// The pool was closed.
pub(super) struct Closed;

/// A place among the used connections of a server, given up when dropped.
pub(super) struct Place<'a> {
    backends: &'a Backends,
    pub(super) slot: Slot,
    pub(super) given_back: bool,
}

impl<'a> Place<'a> {
    pub(super) fn new(backends: &'a Backends, slot: Slot) -> Self {
        Self { backends, slot, given_back: false }
    }
    pub(super) fn backends(&self) -> &'a Backends {
        self.backends
    }
    /// Counts a connection that was opened. An error if the pool was closed meanwhile.
    pub(super) fn connected(&self) -> Result<(), Closed> {
        let everywhere = self.backends.recovery().everywhere;
        let Connected { closed, back } = self.backends.inner.lock().connected(&self.slot, everywhere);
        if back {
            log::info!("{} can be connected to again", self.slot.shared.endpoint);
            self.backends.wake();
        }
        if closed { Err(Closed) } else { Ok(()) }
    }
    /// Counts a connect failure, and shuns the server if it was one too many.
    pub(super) fn failed(&self, blame: Blame, reason: &dyn Display) {
        let now = Instant::now();
        let variables = self.backends.config.variables();
        // More failures than one statement makes would never come together while one client alone is active.
        let limit = variables.shun_on_failures.min(variables.connect_retries_on_failure.saturating_add(1));
        drop(variables);
        let mut trash = Vec::new();
        // What concerns one user is not told to others.
        let told = (blame != Blame::User).then(|| format!("{}: {reason}", self.slot.shared.endpoint));
        let mut inner = self.backends.inner.lock();
        if let Some(told) = told {
            inner.explain(&self.slot, told);
        }
        let shunned = inner.failed(&self.slot, blame == Blame::Server, now, limit, &mut trash);
        drop(inner);
        super::quit_all(trash);
        let Shared { endpoint, hostgroup, warnings, .. } = &*self.slot.shared;
        if shunned {
            log::warn!(
                "{endpoint} is shunned for up to {} s: it could not be connected to, the last time because: {reason}",
                self.backends.recovery().pause.as_secs()
            );
        } else if blame == Blame::User {
            log::debug!("{endpoint} refused a login for hostgroup {hostgroup}: {reason}");
        } else {
            let level = warnings.level(now);
            log::log!(level, "cannot connect to {endpoint} for hostgroup {hostgroup}: {reason}");
        }
    }
    fn give_back(mut self, connection: Box<Connection<Backend>>, now: Instant, limits: &Variables) {
        let keep = Keep {
            free_pct: limits.free_connections_pct,
            awaited: self.backends.waiting() > 0,
            max_age: limits.connection_max_age,
        };
        let mut trash = Vec::new();
        self.backends.inner.lock().release(&self.slot, connection, now, keep, &mut trash);
        self.given_back = true;
        drop(self);
        super::quit_all(trash);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.given_back {
            self.backends.inner.lock().discard(&self.slot);
        }
        self.backends.waiters.wake_one(self.slot.shared.hostgroup);
    }
}

/// A backend connection in a session's hands. Dropped, it is closed: only [`Lease::release`] puts it back.
pub struct Lease<'a> {
    // Closed before its place is given up, so that max_connections holds at the server too.
    connection: Box<Connection<Backend>>,
    place: Place<'a>,
}

impl<'a> Lease<'a> {
    pub(super) fn new(connection: Box<Connection<Backend>>, place: Place<'a>) -> Self {
        Self { connection, place }
    }
    /// Whether the server has kept silent since its last answer, as it must.
    pub fn is_quiet(&self) -> bool {
        self.connection.is_quiet()
    }
    /// Whether the server has said something beyond its last answer that was read along with it.
    pub fn has_surplus(&self) -> bool {
        self.connection.transport.channel.has_surplus()
    }
    /// When it was opened.
    pub fn opened(&self) -> Instant {
        self.connection.opened
    }
    /// What the connection carries.
    pub fn profile(&self) -> &Arc<Profile> {
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
    /// Server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.connection.shared.endpoint
    }
    /// Server, for messages.
    pub fn server(&self) -> &dyn Display {
        &self.connection.shared.endpoint
    }
    /// Logs that the server was lost with a statement.
    pub fn log_loss(&self, when: &str, error: &WireError) {
        let level = self.connection.shared.warnings.level(Instant::now());
        log::log!(level, "lost the connection to {} {when}: {error}", self.server());
    }
    /// Whether sessions may share connections of its hostgroup.
    pub fn multiplexes(&self) -> bool {
        self.place.slot.policy.as_ref().is_none_or(|policy| policy.multiplex)
    }
    /// Whether nobody is to take note of it when a session sets this variable.
    pub fn ignores(&self, variable: &str) -> bool {
        let policy = self.place.slot.policy.as_ref();
        policy.is_some_and(|policy| policy.ignored_variables.iter().any(|name| name == variable))
    }
    /// Whether it must not be used for anything but what is open on it.
    pub fn is_retired(&self) -> bool {
        self.connection.shared.is_retired()
    }
    /// Counts one command and its answer, in bytes.
    pub fn count(&mut self, command: Command, sent: u64, received: u64) {
        self.connection.shared.count(command, sent, received);
    }
    /// The id it is used under: by it the same connection can be had again ([`Backends::reclaim`]).
    pub fn id(&self) -> SlotId {
        self.place.slot.id
    }
    /// Hostgroup it belongs to.
    pub fn hostgroup(&self) -> HostgroupId {
        self.connection.shared.hostgroup
    }
    /// Notes that a statement has changed what the connection carries.
    pub fn set_profile(&mut self, profile: &Arc<Profile>) {
        if !Arc::ptr_eq(&self.connection.profile, profile) {
            self.connection.profile = Arc::clone(profile);
        }
    }
    /// Whether it can be used as it is: it carries what is wanted, and nothing that another session may have left. `unshared`: not even
    /// what their statements do not tell of.
    #[inline]
    pub fn is_ready(&self, want: &Want, unshared: bool) -> bool {
        self.touched_by().is_none_or(|session| session == want.session)
            && !(unshared && self.has_served_others(want.session))
            && Arc::ptr_eq(&self.connection.profile, &want.profile)
            && self.connection.schemas == self.place.backends().schema_changes()
            && !self.is_retired()
    }
    /// Brings the connection from what it carries to what is wanted, in one round trip at most. After `WireError::Sql` it
    /// can still be used.
    pub fn prepare(&mut self, want: &Want, deadline: impl Fn() -> Instant) -> Result<(), WireError> {
        let changes = self.place.backends().schema_changes();
        // What the server keeps of a connection's schema, such as its collation, is as it was when the connection entered it: after a
        // change it enters it again.
        let stale = self.connection.schemas != changes && self.connection.profile.schema.is_some();
        let have = &self.connection.profile;
        let serves =
            Arc::ptr_eq(have, &want.profile) || want.ahead.as_ref().is_some_and(|ahead| ahead == have);
        if !serves || stale {
            if self.connection.init_connect.is_some() && have.sets_beyond(&want.profile) {
                // What init_connect has set is not a server's default, so that no SET could bring it back.
                let collation = want.profile.login_collation().unwrap_or(UTF8MB4_GENERAL_CI.into());
                // After part of a reset it is not known what the connection carries, whoever has failed.
                self.reset(collation, deadline()).map_err(|_| WireError::Closed)?;
            }
            if stale || self.connection.profile != want.profile {
                self.restore(&want.profile, stale, deadline())?;
            }
            self.connection.profile = Arc::clone(&want.profile);
        }
        self.connection.schemas = changes;
        Ok(())
    }
    /// `stale`: the schema is entered even if the connection is in it.
    fn restore(&mut self, wanted: &Arc<Profile>, stale: bool, deadline: Instant) -> Result<(), WireError> {
        let Connection { transport, profile, shared, .. } = &mut *self.connection;
        let mut way = profile.way_to(wanted, transport);
        if stale {
            way.schema = wanted.schema.as_deref();
        }
        let requests = way.requests();
        shared.work.sent_all(&requests);
        let mut answers = transport.exchange(&requests, OWN_ANSWER, deadline)?.into_iter();
        if way.set.is_some()
            && let Some(Err(error)) = answers.next()
        {
            // What of it is in force is not known: nobody shall have the connection after this.
            shared.retire();
            return Err(error.into());
        }
        if let Some(Err(error)) = answers.next() {
            // It stays where it was.
            *profile = Arc::new(wanted.in_schema(profile.schema.clone()));
            return Err(error.into());
        }
        Ok(())
    }
    /// Notes that the session may have left on it what nothing tells of, such as a user variable that a function has set.
    pub fn touch(&mut self, session: u64) {
        self.connection.touched = Some(session);
    }
    /// Notes for whom it is used.
    pub fn serve(&mut self, session: u64) {
        self.connection.served = self.connection.served.and(session);
    }
    /// Whether other sessions may have left something that not even their statements tell of, such as a user variable that a trigger
    /// has set, while this one has done nothing of the kind.
    pub fn has_served_others(&self, session: u64) -> bool {
        self.connection.served.has_others_than(session) && self.connection.touched != Some(session)
    }
    /// The session that may have left something, if there is one.
    pub fn touched_by(&self) -> Option<u64> {
        self.connection.touched
    }
    /// Makes the connection forget its session (COM_RESET_CONNECTION), in one round trip. The reset also gives up the
    /// reports on the session, and with some servers the character set and sql_mode of the login and the schema, so these
    /// are set again: as for a session that has logged in with `collation`. init_connect comes before all that.
    pub fn reset(&mut self, collation: u16, deadline: Instant) -> Result<(), WireError> {
        let Connection { transport, profile, statements, init_connect, shared, .. } = &mut *self.connection;
        let fresh = profile.after_reset(collation);
        let login = fresh.login_statement(transport);
        transport.tracking.iter_mut().for_each(Notices::reset);
        let track =
            transport.tracking.is_some().then(|| transport.tracking_statement(&variables::reported()));
        let mut requests: Vec<Request<'_>> = vec![(Command::COM_RESET_CONNECTION, b"")];
        requests.extend(init_connect.iter().map(|sql| (Command::COM_QUERY, sql.as_bytes())));
        if let Some(track) = &track {
            requests.extend([track, NEW_SESSION].map(|sql| (Command::COM_QUERY, sql.as_bytes())));
        }
        requests.push((Command::COM_QUERY, login.as_bytes()));
        requests.extend(fresh.schema.iter().map(|schema| (Command::COM_INIT_DB, schema.as_bytes())));
        statements.clear();
        shared.work.sent_all(&requests);
        for answer in transport.exchange(&requests, OWN_ANSWER, deadline)? {
            transport.note_new_session(&answer?);
        }
        *profile = Arc::new(fresh);
        self.connection.touched = None;
        self.connection.served = Served::default();
        Ok(())
    }
    /// A statement's form on this connection; prepared if need be. After `WireError::Sql` the connection can still be used.
    pub fn statement(
        &mut self,
        text: &Arc<StatementText>,
        caller: Caller<'_>,
        limits: &Variables,
    ) -> Result<Prepared, WireError> {
        self.connection.statement(text, caller, limits)
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
    pub fn release(mut self, now: Instant, limits: &Variables) {
        // The next session would take for its answer what the server has said unasked. Dropped, the connection is closed.
        if self.connection.transport.channel.buffered() > 0 {
            return;
        }
        let Connection { transport, processor, .. } = &mut *self.connection;
        processor.follow(now, || transport.channel.stream().socket().processor());
        self.place.give_back(self.connection, now, limits);
    }
}
