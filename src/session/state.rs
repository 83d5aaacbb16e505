//! The state of one client's session, and what it means for the connection in its hands.
//!
//! After each statement the connection goes back to the pool, unless something would be lost:
//!
//! * a transaction is open, or autocommit is off (as the server's status flags say);
//! * a statement may have left state that lives with the connection: user variables, temporary tables, locks,
//!   prepared statements, whatever [`classify`](super::classify) does not know. It then stays until the session ends, and
//!   is reset before another session gets it;
//! * the next statement may read what this one left (generated id, warnings, an error, FOUND_ROWS()). It then stays
//!   for the next statement, for at most [`LINGER`]. A LAST_INSERT_ID() that comes later finds the id set again.
//!   Warnings of another session are cleared before they could be read. FOUND_ROWS() without SQL_CALC_FOUND_ROWS, and
//!   ROW_COUNT(), are not kept.
//!
//! The schema and ordinary SET statements bind nothing: they are remembered, and are done again on a connection that lacks them.
//!
//! A connection retired by a drain finishes the transaction that is open on it. The next statement after that goes to
//! another connection; if state would be lost by it, the client is told so and disconnected, rather than given wrong results.
use super::Sessions;
use super::classify::{Effect, Statement};
use super::hold::Hold;
use super::local::Answer;
use super::prepared::{Call, Preparing};
use super::registry::Registered;
use super::settings::Settings;
use super::statements::Statements;
use super::wait::{Failure, acquire, readable_within};
use crate::hostgroups::HostgroupId;
use crate::pool::{Identity, Lease, Profile, Want};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::channel::Channel;
use wire::login::Login;
use wire::socket::Socket;
use wire::{CapabilityFlags, Command, SqlError, StatusFlags, WireError};

/// For how long a connection is kept for a client that may still read what its last statement left.
const LINGER: Duration = Duration::from_secs(1);
/// Most bytes of the answer to a statement of our own.
const OWN_ANSWER: usize = 64 << 10;

/// What to do next for the client.
pub enum Step {
    /// Write an answer of our own.
    Answer(Answer),
    /// The command was sent: pass the answer on.
    Relay(Pending),
    /// The command has no answer.
    Silent,
    /// The connection ends, with an error if there is one to tell.
    End(Option<SqlError>),
}

/// A command that was sent and not answered yet.
pub struct Pending {
    pub(super) command: Command,
    pub(super) statement: Statement,
    pub(super) role: Role,
    pub(super) sent: u64,
}

/// What the answer to a command means for the session's prepared statements, named by the client's ids.
pub enum Role {
    /// Nothing.
    Plain,
    /// COM_STMT_PREPARE.
    Prepare(Preparing),
    /// COM_STMT_EXECUTE.
    Execute(u32),
    /// COM_STMT_FETCH.
    Fetch(u32),
    /// COM_STMT_RESET.
    Reset(u32),
}

/// A command to be sent.
pub enum Message<'a> {
    /// As it came.
    Framed(&'a [u8]),
    /// One on a prepared statement, which has another id on each connection.
    Call(Call<'a>),
}

/// One client's session.
pub struct Session<'a> {
    pub(super) shared: &'a Sessions,
    pub(super) socket: Socket,
    pub(super) id: u32,
    pub(super) peer: IpAddr,
    pub(super) registered: Registered,
    /// When the command at hand came.
    pub(super) started: Instant,
    pub(super) hostgroup: HostgroupId,
    pub(super) want: Want,
    pub(super) settings: Settings,
    pub(super) lease: Option<Lease>,
    pub(super) hold: Hold,
    pub(super) status: StatusFlags,
    pub(super) insert_id: u64,
    pub(super) capabilities: CapabilityFlags,
    pub(super) statements: Statements,
}
impl<'a> Session<'a> {
    /// A session after its login; None if the user has vanished meanwhile.
    pub fn new(shared: &'a Sessions, socket: Socket, registered: Registered, login: Login) -> Option<Self> {
        let users = shared.config.users();
        let user = users.get(&login.user)?;
        let schema = login.database.as_deref().or(user.default_schema.as_deref());
        let profile =
            Profile { schema: schema.filter(|name| !name.is_empty()).map(Arc::from), ..Profile::default() };
        let capabilities = login.capabilities;
        let identity = Identity::new(
            &login.user,
            user.backend_secret.clone().unwrap_or(login.secret),
            capabilities,
            login.collation,
        );
        Some(Self {
            shared,
            socket,
            id: registered.entry.id,
            peer: registered.entry.client.ip(),
            registered,
            started: Instant::now(),
            hostgroup: user.default_hostgroup,
            want: Want { identity: Arc::new(identity), profile },
            settings: Settings::default(),
            lease: None,
            hold: Hold::default(),
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            insert_id: 0,
            capabilities,
            statements: Statements::default(),
        })
    }
    /// Status flags for answers of our own.
    pub fn status(&self) -> StatusFlags {
        self.status
    }
    /// Called before the next command is read: gives up a connection that the client does not come back for.
    pub fn idle(&mut self, client: &Channel) {
        let lingers = self.lease.is_some() && !self.must_keep();
        if lingers && client.buffered() == 0 && !readable_within(&self.socket, LINGER) {
            self.give_back();
            self.registered.entry.released();
        }
    }
    /// The connection in hand, or a new one that carries what the session has set.
    pub(super) fn connected(&mut self, statement: &Statement) -> Result<&mut Lease, Step> {
        if self.lease.is_none() {
            self.lease = Some(self.acquire(statement)?);
        }
        if let Some(peer) = self.lease.as_ref().and_then(Lease::peer) {
            self.registered.entry.runs_on(peer, self.hostgroup);
        }
        let may_read_id = statement.reads_insert_id || statement.effect == Effect::State;
        if may_read_id
            && !self.hold.own_insert_id
            && let Err(error) = self.bring_insert_id()
        {
            return Err(self.lost(&error));
        }
        if statement.reads_diagnostics
            && !self.hold.own_diagnostics
            && let Err(error) = self.clear_diagnostics()
        {
            return Err(self.lost(&error));
        }
        self.lease.as_mut().ok_or(Step::End(None))
    }
    /// Where a statement leads, if a connection that is there already will do as well: a session whose schema does not exist
    /// can leave it so, and set-up statements find the connections that others have set up.
    fn profile_after(&self, effect: &Effect) -> Option<Profile> {
        let now = &self.want.profile;
        match effect {
            Effect::Use(schema) => Some(Profile { schema: Some(Arc::from(schema.as_str())), ..now.clone() }),
            Effect::Set(setting) if !setting.is_autocommit_on() => {
                Some(Profile { settings: self.settings.texts_with(setting)?, ..now.clone() })
            }
            _ => None,
        }
    }
    /// Makes LAST_INSERT_ID() on this connection what it is in this session, instead of what another left there.
    fn bring_insert_id(&mut self) -> Result<(), WireError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        let text = format!("DO LAST_INSERT_ID({})", self.insert_id);
        match lease.backend().query(&text, OWN_ANSWER, deadline) {
            // A server without DO has no ids of its sessions either.
            Ok(_) | Err(WireError::Sql(_)) => self.hold.own_insert_id = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }
    /// Takes away warnings and errors that another session left on this connection.
    fn clear_diagnostics(&mut self) -> Result<(), WireError> {
        let Some(lease) = &mut self.lease else { return Ok(()) };
        let deadline = Instant::now() + self.shared.config.variables().connect_timeout_server;
        // MariaDB keeps them over a statement that reads no table; a derived one is enough.
        match lease.backend().query("SELECT 1 FROM (SELECT 1) t", OWN_ANSWER, deadline) {
            Ok(_) | Err(WireError::Sql(_)) => self.hold.own_diagnostics = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }
    fn acquire(&self, statement: &Statement) -> Result<Lease, Step> {
        let ahead = self.profile_after(&statement.effect);
        let ahead = ahead.map(|profile| Want { identity: Arc::clone(&self.want.identity), profile });
        let want = ahead.as_ref().unwrap_or(&self.want);
        let limits = Arc::clone(&self.shared.config.variables());
        acquire(&self.shared.backends, self.hostgroup, want, &self.socket, &limits).map_err(|failure| {
            match failure {
                Failure::Error(error) => Step::Answer(Answer::Error(error)),
                Failure::ClientLeft => Step::End(None),
                Failure::Closed => Step::End(Some(SqlError::shutdown())),
            }
        })
    }
    /// Parts with a connection that was retired, or that the server closed while the session kept it to no purpose.
    pub(super) fn leave_unusable(&mut self) -> Result<(), Step> {
        let Some(lease) = &self.lease else { return Ok(()) };
        if lease.is_retired() && !self.in_transaction() {
            if self.hold.reasons.leave_something() {
                let text = "Lost connection to MySQL server during query: the server was taken out of use, and what \
                            this session had set up there is lost with it";
                return Err(Step::End(Some(SqlError::new(2013, "HY000", text))));
            }
            self.drop_lease();
        } else if !self.must_keep() && !lease.is_quiet() {
            self.drop_lease();
        }
        Ok(())
    }
    /// Parts with the connection at the end of the session: back to the pool, without what the session left on it.
    pub fn clean_up(&mut self) {
        let dirty = self.hold.reasons.leave_something() || self.in_transaction() || !self.autocommit();
        let unresettable = self.hold.unresettable;
        let Some(mut lease) = self.lease.take() else { return };
        self.hold = Hold::default();
        let time = self.shared.config.variables().connect_timeout_server;
        if lease.is_retired() || unresettable || dirty && lease.reset(Instant::now() + time).is_err() {
            return lease.backend().quit();
        }
        lease.release();
    }
    pub(super) fn must_keep(&self) -> bool {
        let multiplexing = self.shared.config.variables().multiplexing;
        !self.hold.reasons.is_empty() || self.in_transaction() || !self.autocommit() || !multiplexing
    }
    pub(super) fn in_transaction(&self) -> bool {
        self.status.intersects(TRANSACTION)
    }
    pub(super) fn autocommit(&self) -> bool {
        self.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
    }
    pub(super) fn give_back(&mut self) {
        self.hold = Hold::default();
        if let Some(lease) = self.lease.take() {
            lease.release();
        }
    }
    pub(super) fn drop_lease(&mut self) {
        self.hold = Hold::default();
        self.lease = None;
    }
}

/// Status flags of an open transaction.
pub const TRANSACTION: StatusFlags =
    StatusFlags::SERVER_STATUS_IN_TRANS.union(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY);

/// Status flags that describe the session. The others describe the answer they came with: in an answer of our own they would
/// promise more results, or changes of state in the packet.
pub const LASTING: StatusFlags = TRANSACTION
    .union(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
    .union(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES);
