//! The state of one client's session, and what it means for the connection in its hands.
//!
//! After each statement the connection goes back to the pool, unless something would be lost:
//!
//! * a transaction is open, as the server's status flags say;
//! * there is a [`Reason`] to keep it: the statement left state that lives with the connection. It then
//!   stays until the session ends or the reason does, and is reset before another session gets it;
//! * the next statement may read what this one left and what no answer tells (warnings, an error, SQL_CALC_FOUND_ROWS). It then
//!   stays for the next statement, for at most [`LINGER`].
//!
//! The schema, the character set and ordinary session variables bind nothing: they are the session's
//! [`Profile`], and are set again on a connection that lacks them. A LAST_INSERT_ID() finds its id set again. Warnings of another
//! session are cleared before they could be read. ROW_COUNT() and FOUND_ROWS() are read on the very connection that was given back,
//! if nobody has used it since, or else answered from what the last answer said.
//!
//! A connection retired by a drain finishes the transaction that is open on it. The next statement after that goes to
//! another connection; if state would be lost by it, the client is told so and disconnected, rather than given wrong results.

use super::Sessions;
use super::aside::Parked;
use super::classify::{Effect, Statement};
use super::counts::Counts;
use super::hold::{Hold, Reason};
use super::limits::IdleLimit;
use super::local::Answer;
use super::nearness::Nearness;
use super::prepared::{Call, Preparing};
use super::registry::{Registered, count};
use super::route::Route;
use super::schema::{first_want, is_about_schema};
use super::statements::Statements;
use super::unseen::Complaints;
use super::wait::{Asker, Failure, Patience, acquire, readable_within};
use crate::config::{Kept, User};
use crate::hostgroups::HostgroupId;
use crate::pool::{Lease, Peer, Profile, SlotId, TRUSTED_IDLE, Want};
use rustix::thread::sched_getcpu;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::auth::NONCE;
use wire::backend::SURPLUS;
use wire::channel::Channel;
use wire::login::Login;
use wire::socket::Socket;
use wire::{CapabilityFlags, Command, SqlError, SqlMode, StatusFlags, WireError};

/// For how long a connection is kept for a client that may still read what its last statement left.
const LINGER: Duration = Duration::from_secs(1);

/// MariaDB's library in C makes 2027, "malformed packet", of the errors 2006 and 2013 that a server says: they are its own to
/// find. Seen in version 3.3.20.
const DEAF: &[u8] = b"libmariadb";

/// What to do next for the client.
pub enum Step {
    /// Write an answer of our own.
    Answer(Answer),
    /// The command was sent: pass the answer on.
    Relay(Pending),
    /// COM_CHANGE_USER, with its argument.
    ChangeUser(Vec<u8>),
    /// The server cannot have read the command: it is to be sent again.
    Again,
    /// The command has no answer.
    Silent,
    /// The connection ends, with an error if there is one to tell.
    End(Option<SqlError>),
}

impl From<Failure> for Step {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(error) => Self::Answer(Answer::Error(error)),
            // Who does not wait has an answer of its own.
            Failure::ClientLeft | Failure::NotNow => Self::End(None),
            Failure::Closed => Self::End(Some(SqlError::shutdown())),
        }
    }
}

/// A command that was sent and not answered yet.
pub struct Pending {
    pub(super) command: Command,
    pub(super) statement: Statement,
    pub(super) role: Role,
    pub(super) sent: u64,
    /// Another connection would have done as well.
    pub(super) replaceable: bool,
    /// It went the short way, and its answer has not left it yet.
    pub(super) straight: bool,
}

/// What the answer to a command means beside what it says: statements are named by the client's ids.
pub enum Role {
    /// Nothing.
    Plain,
    /// COM_STMT_PREPARE. Boxed because it is rare, and every command has a role.
    Prepare(Box<Preparing>),
    /// COM_STMT_EXECUTE.
    Execute(u32),
    /// COM_STMT_FETCH.
    Fetch(u32),
    /// COM_STMT_RESET.
    Reset(u32),
    /// COM_SET_OPTION.
    SetOption {
        /// What it says of several statements in one command.
        multi_statements: bool,
    },
}

/// A command to be sent.
pub enum Message<'a> {
    /// As it came.
    Framed(&'a [u8]),
    /// One on a prepared statement, which has another id on each connection.
    Call(Call<'a>),
}

/// What the session knows of the connection that it gave back last.
pub struct Released {
    /// The id it was used under.
    pub id: SlotId,
    /// The hold it had: of it, what holds nothing.
    pub hold: Hold,
    /// ROW_COUNT() there is what a statement of our own has left.
    pub counts_lost: bool,
}

/// One client's session.
pub struct Session<'a> {
    pub(super) shared: &'a Sessions,
    pub(super) socket: Socket,
    pub(super) id: u32,
    pub(super) peer: IpAddr,
    pub(super) registered: Arc<Registered>,
    /// When the command at hand came, and when its answer had passed.
    pub(super) started: Instant,
    /// Variables in force when it came.
    pub(super) variables: Kept,
    pub(super) ended: Option<Instant>,
    pub(super) idle_limit: IdleLimit,
    pub(super) nearness: Nearness<'a>,
    pub(super) user: User,
    /// Where the statement at hand goes.
    pub(super) hostgroup: HostgroupId,
    pub(super) want: Want,
    /// Collation id of the login, which a reset goes back to.
    pub(super) collation: u16,
    pub(super) lease: Option<Lease<'a>>,
    pub(super) hold: Hold,
    /// Boxed because it is rare, and the session is on its thread's stack.
    pub(super) parked: Option<Box<Parked<'a>>>,
    /// With multiplexing off, connections to other hostgroups, one to each.
    pub(super) kept: Vec<Lease<'a>>,
    pub(super) released: Option<Released>,
    /// The server's end of the last connection, which the session's entry shows.
    pub(super) shown: Option<Arc<Peer>>,
    pub(super) status: StatusFlags,
    pub(super) insert_id: u64,
    /// How many warnings and errors the last statement has left, as COM_PING tells.
    pub(super) warnings: u16,
    pub(super) capabilities: CapabilityFlags,
    /// The challenge of the connection's greeting.
    pub(super) nonce: [u8; NONCE],
    pub(super) statements: Statements,
    /// What ROW_COUNT() and FOUND_ROWS() are.
    pub(super) counts: Counts,
    /// What an answer of our own has left of warnings and errors.
    pub(super) unseen: Option<Complaints>,
    pub(super) route: Route,
    /// The command at hand is sent for the second time.
    pub(super) repeats: bool,
    /// The sql_mode that the server of the last connection gives a new session; before that, another session's.
    pub(super) sql_mode: SqlMode,
    /// Whether the last connection was to a MariaDB.
    pub(super) had_mariadb: Option<bool>,
    /// Functions were called that may have set user variables.
    pub(super) called_functions: bool,
    /// A connection was had in the session's schema.
    pub(super) entered: bool,
    /// The client's library takes error 2013 from no server.
    pub(super) hears_no_loss: bool,
    /// How often COM_CHANGE_USER was refused on the client's connection.
    pub(super) refused_changes: u8,
}

impl<'a> Session<'a> {
    /// A session after its login; None if the user has vanished meanwhile.
    #[inline(never)]
    pub fn new(
        shared: &'a Sessions,
        socket: Socket,
        registered: Arc<Registered>,
        login: &Login,
    ) -> Option<Self> {
        let user = shared.config.users().get(&login.user)?.clone();
        let variables = shared.config.variables();
        let idle_limit = IdleLimit::new(&variables, &socket);
        let capabilities = login.capabilities;
        let first = first_want(&user, login, &variables);
        let want = Want { session: registered.entry.id.into(), ..first };
        drop(variables);
        let now = Instant::now();
        let sql_mode = *shared.sql_mode.lock();
        let route = Route::new(&user, registered.entry.client.ip(), socket.local_addr().ok());
        Some(Self {
            shared,
            socket,
            id: registered.entry.id,
            peer: registered.entry.client.ip(),
            registered,
            idle_limit,
            started: now,
            variables: shared.config.kept_variables(),
            ended: None,
            nearness: Nearness::new(&shared.homes, now),
            hostgroup: user.default_hostgroup,
            user,
            want,
            collation: login.collation,
            lease: None,
            hold: Hold::default(),
            parked: None,
            kept: Vec::new(),
            released: None,
            shown: None,
            status: status_of(sql_mode),
            sql_mode,
            insert_id: 0,
            warnings: 0,
            capabilities,
            nonce: login.nonce,
            statements: Statements::default(),
            counts: Counts::default(),
            unseen: None,
            route,
            repeats: false,
            had_mariadb: None,
            called_functions: false,
            entered: false,
            hears_no_loss: login.library().is_some_and(|name| name == DEAF),
            refused_changes: 0,
        })
    }
    /// What the client can.
    pub fn capabilities(&self) -> CapabilityFlags {
        self.capabilities
    }
    /// Status flags for answers of our own.
    pub fn status(&self) -> StatusFlags {
        self.status
    }
    /// Called before the next command is read: gives up a connection that the client does not come back for.
    pub fn idle(&mut self, client: &Channel) {
        if self.lease.is_none() || self.must_keep() {
            return;
        }
        let delay = self.variables.connection_delay_multiplex;
        let time = if self.hold.linger { delay.max(LINGER) } else { delay };
        if client.buffered() == 0 && !readable_within(&self.socket, time) {
            self.give_back();
            self.registered.entry.released();
        }
    }
    /// The connection in hand, or a new one that carries what the session has set.
    pub(super) fn connected(&mut self, statement: &Statement) -> Result<(), Step> {
        self.lease_for(self.hostgroup);
        let unshared = self.needs_unshared(statement);
        if unshared
            && self.lease.as_ref().is_some_and(|lease| lease.has_served_others(self.want.session))
            && !self.must_keep()
        {
            self.give_back();
        }
        if self.lease.is_none() {
            let reads = statement.reads_counts || statement.reads_diagnostics || statement.reads_insert_id;
            if !(reads && self.reclaim(statement.reads_counts)) {
                self.lease = Some(self.acquire(statement, unshared)?);
                self.counts.moved();
            }
            self.released = None;
            if self.user.fast_forward {
                self.hold.add(Reason::FastForward);
                // Nobody else has used it, or else it was reset: what can be read there is this session's, or of our own statements.
                self.hold.own_insert_id = true;
                self.hold.own_diagnostics =
                    self.lease.as_mut().is_some_and(|lease| !lease.backend().complains);
            }
        }
        if let Some(lease) = &self.lease {
            self.hostgroup = lease.hostgroup();
        }
        if let Some(peer) = self.lease.as_ref().and_then(Lease::peer) {
            let same = self.shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, peer));
            self.registered.entry.runs_on(peer, same);
            if !same {
                self.shown = Some(Arc::clone(peer));
            }
        }
        Ok(())
    }
    /// Makes what a statement reads of the one before it the session's own, on the connection in hand.
    pub(super) fn bring_readable(
        &mut self,
        command: Command,
        statement: &Statement,
    ) -> Result<(), WireError> {
        let opaque = matches!(
            statement.effect,
            Effect::Hold(Reason::Procedure | Reason::PreparedText | Reason::State)
        );
        // With it, `id IS NULL` is `id = LAST_INSERT_ID()`.
        let is_null = self.want.profile.get("sql_auto_is_null") == Some("'ON'");
        // To ask for the id would change what the counts are.
        let askable = !statement.reads_counts || self.hold.unproven_insert_id.is_none();
        // After RETURNING the connection is asked for the id, which may be what was there.
        let reads_id = statement.reads_insert_id || statement.returns_rows || opaque || is_null;
        if (reads_id || self.counts.needs_id_before(statement)) && askable && !self.hold.own_insert_id {
            self.bring_insert_id(statement)?;
        }
        self.bring_unseen(statement)?;
        let reads_diagnostics = statement.reads_diagnostics
            || opaque && self.shows_complaints_inside()
            || self.tells_warnings_of_before(command);
        if reads_diagnostics && !self.hold.own_diagnostics {
            self.clear_diagnostics()?;
        }
        Ok(())
    }
    /// Whether something would be lost with the connection in hand.
    pub(super) fn is_bound(&self) -> bool {
        self.hold.reasons.leave_something() || self.in_transaction() || self.hold.unknown_insert_id
    }
    /// Whether the answer to a command that has no warnings says how many the statement before had, as MySQL's does.
    fn tells_warnings_of_before(&mut self, command: Command) -> bool {
        let tells = matches!(command, Command::COM_INIT_DB | Command::COM_SET_OPTION);
        tells && self.lease.as_mut().is_some_and(|lease| !lease.backend().is_mariadb())
    }
    /// Whether what is done inside of a procedure or an EXECUTE can read warnings and errors of before: MariaDB's can.
    fn shows_complaints_inside(&mut self) -> bool {
        self.lease.as_mut().is_some_and(|lease| lease.backend().is_mariadb())
    }
    /// Takes the connection that was given back last, if nobody has used it since, and it still has what is to be read there.
    pub(super) fn reclaim(&mut self, reads_counts: bool) -> bool {
        let released = self.released.take_if(|released| !(released.counts_lost && reads_counts));
        let Some(Released { id, hold, .. }) = released else { return false };
        let lease = self.shared.backends.reclaim(self.hostgroup, id);
        // It carries the session's profile: nothing has changed that since.
        self.lease = lease.filter(|lease| !lease.is_retired() && *lease.profile() == self.want.profile);
        self.hold = if self.lease.is_some() { hold } else { Hold::default() };
        if self.hold.complaint && matches!(self.unseen, Some(Complaints::LeftBehind(_))) {
            self.unseen = None;
        }
        self.lease.is_some()
    }
    /// What a statement wants of its connection. For USE the schema is there already if it exists at all, so that a session whose
    /// schema is gone can leave it; for SET a connection will do where others have set the same.
    fn want_for(&self, effect: &Effect) -> Option<Want> {
        let with =
            |profile: &Arc<Profile>, ahead| Want { profile: Arc::clone(profile), ahead, ..self.want.clone() };
        let now = &self.want.profile;
        match effect {
            Effect::Use(schema) => {
                Some(with(&Arc::new(now.in_schema(Some(Arc::from(schema.as_str())))), None))
            }
            Effect::Set(setting) if setting.is_constant() && !setting.is_autocommit_on() => {
                let mut ahead = Profile::clone(now);
                setting.apply(&mut ahead);
                Some(with(now, Some(Arc::new(ahead))))
            }
            _ => None,
        }
    }
    /// Whether the statement could tell that others have set user variables on its connection: of triggers, and of functions that
    /// views call, nobody tells that they have. One that reads what the last statement left goes where that was.
    fn needs_unshared(&self, statement: &Statement) -> bool {
        let reads_variables = matches!(
            statement.effect,
            Effect::Hold(Reason::UserVariable | Reason::Procedure | Reason::PreparedText | Reason::State)
        );
        let reads_there = statement.reads_counts || statement.reads_diagnostics;
        // Of a session that is not looked into nobody knows what it reads.
        self.user.fast_forward || reads_variables && !reads_there && !self.route.ignores_variables
    }
    fn acquire(&mut self, statement: &Statement, unshared: bool) -> Result<Lease<'a>, Step> {
        let kept = self.take_kept();
        self.want.processor.follow(self.started, || u32::try_from(sched_getcpu()).ok());
        let other = self.want_for(&statement.effect);
        let want = other.as_ref().unwrap_or(&self.want);
        let trusted = if self.repeats { Duration::ZERO } else { TRUSTED_IDLE };
        let waits = !self.needs_no_server(&statement.effect);
        let patience = Patience { limits: &self.variables, start: self.started, trusted, unshared, waits };
        let backends = &self.shared.backends;
        let errors = &self.shared.registry.errors;
        let asker = Asker { client: &self.socket, entry: &self.registered.entry, errors };
        let get = |want: &Want, kept| acquire(backends, self.hostgroup, want, kept, asker, patience);
        let lease = match get(want, kept) {
            Err(Failure::Error(error)) if self.entered && other.is_none() && is_about_schema(&error) => {
                // On its own server the session would go on, whatever has become of its schema.
                let profile = Arc::new(want.profile.in_schema(None));
                get(&Want { profile, ..want.clone() }, None)
            }
            got => got,
        };
        self.entered |= lease.is_ok();
        lease.map_err(|failure| match (failure, &statement.effect) {
            (Failure::NotNow, Effect::Set(setting)) => self.set_here(setting),
            (failure, _) => Step::from(failure),
        })
    }
    /// Parts with a connection that was retired, or that the server closed while the session kept it to no purpose but to have the
    /// next statement read there what the last one left. Such a statement is told of the loss, unless another connection will do.
    pub(super) fn leave_unusable(&mut self, statement: &Statement) -> Result<(), Step> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let reads_there = statement.reads_diagnostics && self.hold.complaint
            || statement.reads_counts && !self.counts.are_tellable();
        if self.must_keep() && lease.has_surplus() {
            return Err(self.lost(&SURPLUS));
        }
        if lease.is_retired() && !self.in_transaction() {
            if self.hold.reasons.leave_something() {
                let text = "Lost connection to MySQL server during query: the server was taken out of use, and what \
                            this session had set up there is lost with it";
                count(&self.shared.registry.counters.offline);
                return Err(Step::End(Some(SqlError::new(2013, "HY000", text))));
            }
        } else if self.must_keep() || lease.is_quiet() {
            return Ok(());
        }
        // What was said there can be read there to the end, as long as no table is.
        if reads_there && !statement.names_tables && lease.is_quiet() {
            return Ok(());
        }
        if reads_there {
            return Err(self.lost(&WireError::Closed));
        }
        self.drop_lease();
        Ok(())
    }
    /// Whether the connection that has answered last is in hand, or can be had again, and can still be asked.
    pub(super) fn is_at_hand(&mut self) -> bool {
        if self.lease.is_none() && !self.reclaim(true) {
            return false;
        }
        let lost = |lease: &Lease<'_>| lease.is_retired() || !lease.is_quiet();
        if !self.must_keep() && self.lease.as_ref().is_some_and(lost) {
            self.drop_lease();
        }
        self.lease.is_some()
    }
    /// Parts with the connection at the end of the session: back to the pool, without what the session left on it.
    pub fn clean_up(&mut self) {
        self.part_with_aside();
        self.part_with_current();
    }
    pub(super) fn part_with_current(&mut self) {
        self.released = None;
        let Hold { reasons, interrupted, .. } = std::mem::take(&mut self.hold);
        let dirty = reasons.leave_something() || self.in_transaction();
        match self.lease.take() {
            // A MariaDB that resets a connection with a prepared XA transaction opens no InnoDB table there any more.
            Some(mut lease) if interrupted || reasons.contains(Reason::Xa) => lease.backend().quit(),
            Some(lease) => self.part_with(lease, dirty),
            None => {}
        }
    }
    pub(super) fn part_with(&self, mut lease: Lease<'_>, dirty: bool) {
        let time = self.shared.config.variables().connect_timeout_server;
        let dirty = dirty || lease.touched_by().is_some();
        if lease.is_retired() || dirty && lease.reset(self.collation, Instant::now() + time).is_err() {
            return lease.backend().quit();
        }
        lease.release(Instant::now(), &self.variables);
    }
    pub(super) fn must_keep(&self) -> bool {
        !self.hold.reasons.is_empty() || self.in_transaction()
    }
    pub(super) fn in_transaction(&self) -> bool {
        self.status.intersects(TRANSACTION)
    }
    pub(super) fn give_back(&mut self) {
        if self.hold.interrupted {
            return self.drop_lease();
        }
        let asks_for_id = self.hold.unknown_insert_id || self.hold.named_insert_id;
        let asks = asks_for_id || self.counts.is_found_there();
        let complains = self.hold.complaint;
        // To ask for a count or an id takes warnings and errors away.
        let told = self.read_complaints().and_then(|()| self.ask_for_found_rows());
        let told = told.and_then(|()| match asks_for_id {
            true => self.ask_for_insert_id(),
            false => Ok(()),
        });
        if let Err(error) = told.and_then(|()| self.hear_what_is_set_back()) {
            if let Some(lease) = &self.lease {
                lease.log_loss("after a statement", &error);
            }
            return self.drop_lease();
        }
        let hold = std::mem::take(&mut self.hold);
        if let Some(mut lease) = self.lease.take() {
            self.had_mariadb = Some(lease.backend().is_mariadb());
            // What our own statement has left there is not what the session's has.
            let as_left = hold.set_back.is_none() && !asks;
            self.released = as_left.then_some(Released { id: lease.id(), hold, counts_lost: complains });
            self.want.last = Some(lease.id());
            // Before another session has it, which a process list would take for this one.
            self.registered.entry.runs_nowhere();
            lease.release(*self.ended.get_or_insert_with(Instant::now), &self.variables);
        }
    }
    pub(super) fn drop_lease(&mut self) {
        self.hold = Hold::default();
        self.lease = None;
    }
}

/// Status flags of a session on which a server has not said anything yet, but for the sql_mode that it gives to new ones.
pub fn status_of(sql_mode: SqlMode) -> StatusFlags {
    let mut status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
    status.set(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES, sql_mode.no_backslash_escapes);
    status
}

/// Status flags of an open transaction.
pub const TRANSACTION: StatusFlags =
    StatusFlags::SERVER_STATUS_IN_TRANS.union(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY);
