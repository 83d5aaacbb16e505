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
use super::classify::{Effect, Statement, classify};
use super::forward::{Relayed, relay};
use super::local::{self, Answer};
use super::settings::{Setting, Settings};
use super::wait::{Failure, acquire, readable_within};
use crate::hostgroups::HostgroupId;
use crate::pool::{Identity, Lease, Profile, Want};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::channel::{Channel, RawCommand};
use wire::login::Login;
use wire::socket::Socket;
use wire::tracker::{Outcome, ResponseTracker};
use wire::{Command, SqlError, StatusFlags, WireError};

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
    command: Command,
    statement: Statement,
    sent: u64,
}

/// What the connection in hand means to the session, apart from what the status flags say.
#[derive(Default)]
struct Hold {
    /// State that is lost with the connection.
    state: bool,
    /// State that not even a reset undoes.
    unresettable: bool,
    /// The next statement may read what the last one left.
    linger: bool,
    /// LAST_INSERT_ID() on the connection is this session's, not what an earlier one left. By itself it holds nothing.
    own_insert_id: bool,
    /// Warnings and errors on the connection are this session's, likewise.
    own_diagnostics: bool,
}

/// One client's session.
pub struct Session<'a> {
    shared: &'a Sessions,
    socket: Socket,
    id: u32,
    peer: IpAddr,
    hostgroup: HostgroupId,
    want: Want,
    settings: Settings,
    lease: Option<Lease>,
    hold: Hold,
    status: StatusFlags,
    insert_id: u64,
}

impl<'a> Session<'a> {
    /// A session after its login; None if the user has vanished meanwhile.
    pub fn new(shared: &'a Sessions, socket: Socket, id: u32, peer: IpAddr, login: Login) -> Option<Self> {
        let users = shared.config.users();
        let user = users.get(&login.user)?;
        let schema = login.database.as_deref().or(user.default_schema.as_deref());
        let profile =
            Profile { schema: schema.filter(|name| !name.is_empty()).map(Arc::from), ..Profile::default() };
        let identity = Identity::new(&login.user, login.secret, login.capabilities, login.collation);
        Some(Self {
            shared,
            socket,
            id,
            peer,
            hostgroup: user.default_hostgroup,
            want: Want { identity: Arc::new(identity), profile },
            settings: Settings::default(),
            lease: None,
            hold: Hold::default(),
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            insert_id: 0,
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
        }
    }
    /// Handles one command up to its answer.
    pub fn handle(&mut self, command: &RawCommand<'_>) -> Step {
        let Some((&code, argument)) = command.head.split_first() else { return unknown_command() };
        let Some(code) = wire::command(code) else { return unknown_command() };
        let complete = command.head.len() == command.length;
        let statement = match code {
            Command::COM_QUIT => return Step::End(None),
            Command::COM_PING => return Step::Answer(Answer::Ok),
            Command::COM_STATISTICS => return Step::Answer(Answer::Text(self.shared.statistics())),
            Command::COM_RESET_CONNECTION => return self.reset(),
            Command::COM_QUERY if complete => {
                if let Some(answer) = local::answer(argument, self.id, &self.want.identity.user, self.peer) {
                    return Step::Answer(answer);
                }
                classify(argument, self.status.contains(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES))
            }
            Command::COM_INIT_DB => match str::from_utf8(argument) {
                Ok(schema) => Effect::Use(schema.to_owned()).into(),
                Err(_) => Effect::State.into(),
            },
            // Too long to be judged, or meant to leave something.
            Command::COM_QUERY | Command::COM_STMT_PREPARE | Command::COM_SET_OPTION => Effect::State.into(),
            Command::COM_FIELD_LIST
            | Command::COM_STMT_EXECUTE
            | Command::COM_STMT_SEND_LONG_DATA
            | Command::COM_STMT_CLOSE
            | Command::COM_STMT_RESET
            | Command::COM_STMT_FETCH => Statement::default(),
            _ => return unknown_command(),
        };
        self.send(code, statement, command.framed)
    }
    /// Sends a command to a server. It is sent a second time only if the first was cut short by a failing write: a command
    /// that a server has not whole it cannot have executed.
    fn send(&mut self, command: Command, statement: Statement, framed: &[u8]) -> Step {
        if let Err(step) = self.leave_unusable() {
            return step;
        }
        let answered = ResponseTracker::expects_answer(command);
        if self.lease.is_none() && !answered {
            return Step::Silent;
        }
        let held = self.lease.is_some() && self.must_keep();
        let mut again = true;
        loop {
            let written = match self.connected(&statement) {
                Ok(lease) => lease.backend().channel.write_raw(framed),
                Err(step) => return step,
            };
            match written {
                Ok(()) if answered => {
                    return Step::Relay(Pending { command, statement, sent: framed.len() as u64 });
                }
                Ok(()) => return Step::Silent,
                Err(error) if held || !again => return self.lost(&error),
                Err(_) => self.drop_lease(),
            }
            again = false;
        }
    }
    /// The connection in hand, or a new one that carries what the session has set.
    fn connected(&mut self, statement: &Statement) -> Result<&mut Lease, Step> {
        if self.lease.is_none() {
            self.lease = Some(self.acquire(statement)?);
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
    fn leave_unusable(&mut self) -> Result<(), Step> {
        let Some(lease) = &self.lease else { return Ok(()) };
        if lease.is_retired() && !self.in_transaction() {
            if self.hold.state {
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
    /// Passes the answer on and draws the consequences.
    pub fn relay(&mut self, client: &mut Channel, pending: Pending) -> Step {
        let Some(lease) = &mut self.lease else { return Step::End(None) };
        let (relayed, received) = relay(client, lease.backend(), pending.command);
        lease.count(pending.sent, received);
        match relayed {
            Relayed::Done(outcome) => {
                self.settle(pending, &outcome);
                Step::Silent
            }
            Relayed::Unanswered(error) => self.lost(&error),
            Relayed::Truncated(error) => {
                lease.log_loss("amid an answer", &error);
                self.drop_lease();
                Step::End(None)
            }
            Relayed::ClientLost => {
                self.drop_lease();
                Step::End(None)
            }
        }
    }
    /// The server was lost with a statement that it may have executed. Without the state that was on the connection
    /// the session cannot go on.
    fn lost(&mut self, error: &WireError) -> Step {
        if let Some(lease) = &self.lease {
            lease.log_loss("with a statement", error);
        }
        let stateful = self.hold.state;
        self.drop_lease();
        self.status.remove(TRANSACTION);
        let error = lost_connection(error);
        if stateful { Step::End(Some(error)) } else { Step::Answer(Answer::Error(error)) }
    }
    /// Takes note of what a statement has done, and lets the connection go if nothing holds it.
    fn settle(&mut self, pending: Pending, outcome: &Outcome) {
        let Pending { command, statement, .. } = pending;
        let Some(lease) = &mut self.lease else { return };
        let before = lease.backend().status;
        if let Some(status) = outcome.status {
            (self.status, lease.backend().status) = (status & LASTING, status);
        }
        let failed = outcome.error.is_some();
        match statement.effect {
            Effect::Nothing => {}
            Effect::Use(schema) if !failed => {
                self.want.profile.schema = Some(Arc::from(schema));
                lease.set_profile(self.want.profile.clone());
            }
            // A connection taken for this statement was there before it failed.
            Effect::Use(_) if lease.profile() != &self.want.profile => return self.drop_lease(),
            Effect::Use(_) => {}
            Effect::Set(setting) if !failed => {
                self.hold.state |= !remember(&mut self.settings, setting, before);
                self.want.profile.settings = self.settings.texts();
                lease.set_profile(self.want.profile.clone());
            }
            Effect::Set(_) | Effect::State => self.hold.state = true,
        }
        self.hold.unresettable |= command == Command::COM_SET_OPTION;
        if outcome.last_insert_id != 0 {
            self.insert_id = outcome.last_insert_id;
            self.hold.own_insert_id = true;
        }
        self.hold.own_diagnostics |= failed || outcome.warnings != 0;
        self.hold.linger =
            failed || statement.read_by_next || outcome.last_insert_id != 0 || outcome.warnings != 0;
        if !self.hold.linger && !self.must_keep() {
            self.give_back();
        }
    }
    /// COM_RESET_CONNECTION: the session starts anew, whatever connection it gets next.
    fn reset(&mut self) -> Step {
        self.clean_up();
        self.settings.clear();
        self.want.profile.settings = self.settings.texts();
        self.status = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        self.insert_id = 0;
        Step::Answer(Answer::Ok)
    }
    /// Parts with the connection at the end of the session: back to the pool, without what the session left on it.
    pub fn clean_up(&mut self) {
        let dirty = self.hold.state || self.in_transaction() || !self.autocommit();
        let unresettable = self.hold.unresettable;
        let Some(mut lease) = self.lease.take() else { return };
        self.hold = Hold::default();
        let time = self.shared.config.variables().connect_timeout_server;
        if lease.is_retired() || unresettable || dirty && lease.reset(Instant::now() + time).is_err() {
            return lease.backend().quit();
        }
        lease.release();
    }
    fn must_keep(&self) -> bool {
        let multiplexing = self.shared.config.variables().multiplexing;
        self.hold.state || self.in_transaction() || !self.autocommit() || !multiplexing
    }
    fn in_transaction(&self) -> bool {
        self.status.intersects(TRANSACTION)
    }
    fn autocommit(&self) -> bool {
        self.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
    }
    fn give_back(&mut self) {
        self.hold = Hold::default();
        if let Some(lease) = self.lease.take() {
            lease.release();
        }
    }
    fn drop_lease(&mut self) {
        self.hold = Hold::default();
        self.lease = None;
    }
}

const TRANSACTION: StatusFlags =
    StatusFlags::SERVER_STATUS_IN_TRANS.union(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY);

/// Status flags that describe the session. The others describe the answer they came with: in an answer of our own they would
/// promise more results, or changes of state in the packet.
const LASTING: StatusFlags = TRANSACTION
    .union(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
    .union(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES);

impl From<Effect> for Statement {
    fn from(effect: Effect) -> Self {
        Self { effect, ..Self::default() }
    }
}

/// Remembers a setting, unless it says only what was so before. False if it cannot be remembered.
fn remember(settings: &mut Settings, setting: Setting, before: StatusFlags) -> bool {
    let no_change = setting.is_autocommit_on()
        && !settings.sets("autocommit")
        && before.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
    no_change || settings.add(setting)
}

fn unknown_command() -> Step {
    Step::Answer(Answer::Error(SqlError::unknown_command()))
}
fn lost_connection(error: &WireError) -> SqlError {
    SqlError::new(2013, "HY000", format!("Lost connection to MySQL server during query ({error})"))
}
