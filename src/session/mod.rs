//! One client: login, then statement by statement - route, lease, forward, release.

mod admission;
mod aside;
mod asked;
mod change_user;
mod classify;
mod commands;
mod counts;
mod dispatch;
mod executed;
mod forward;
mod hold;
mod hosts;
mod in_doubt;
mod kill;
mod kill_among;
mod known;
mod learn;
mod left;
mod left_behind;
mod limits;
mod local;
mod named_id;
mod nearness;
mod own_status;
mod prepared;
mod process_ids;
mod processlist;
mod registry;
mod repeat;
mod route;
mod routines;
mod schema;
mod set_here;
mod set_option;
mod settings;
mod settle;
mod state;
mod statements;
mod straight;
mod sweeper;
#[cfg(test)]
mod tests;
mod unseen;
mod version;
mod wait;
mod watch;
mod wording;

use crate::config::Config;
use crate::digest::statistics::Statistics;
use crate::pool::{Backends, StatementTexts};
use crate::tokens;
use admission::Admission;
pub use kill::unknown_thread;
use parking_lot::Mutex;
use processlist::global_figures;
pub use processlist::{processlist_rows, users_rows};
use registry::Registered;
use registry::count;
pub use registry::{Ending, Entry, Registry};
use state::{Session, Step};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use sweeper::start_sweeper;
use wire::auth::Accounts;
use wire::channel::Channel;
use wire::login::{Login, ServerOptions, login};
use wire::reply::Reply;
use wire::service::{Accepted, refuse};
use wire::socket::Socket;
use wire::{CapabilityFlags, SqlMode, WireError};

/// Longest pause between the pieces of one packet.
const PARTIAL: Duration = Duration::from_secs(30);
/// The error of a client whose server is lost.
const LOST: u16 = 2013;
/// How long a client that is refused may go on sending before it is cut off.
const GOODBYE: Duration = Duration::from_secs(1);

/// What the traffic port offers: a simple server's capabilities, and to have the client asked for its files if it offers them.
pub const CAPABILITIES: CapabilityFlags =
    wire::login::CAPABILITIES.union(CapabilityFlags::CLIENT_LOCAL_FILES);

/// What every session shares.
pub struct Sessions {
    config: Arc<Config>,
    backends: Arc<Backends>,
    texts: StatementTexts,
    known: known::KnownStatements,
    statistics: Arc<Statistics>,
    registry: Arc<Registry>,
    schemas: schema::KnownSchemas,
    homes: nearness::Homes,
    /// What the server that answered last gives new sessions.
    sql_mode: Mutex<SqlMode>,
    started: Instant,
}

impl Sessions {
    /// Shared state of the traffic port.
    pub fn new(config: Arc<Config>, backends: Arc<Backends>, statistics: Arc<Statistics>) -> Self {
        Self {
            config,
            backends,
            registry: Arc::default(),
            schemas: schema::KnownSchemas::default(),
            homes: nearness::Homes::default(),
            statistics,
            texts: StatementTexts::default(),
            known: known::KnownStatements::default(),
            sql_mode: Mutex::default(),
            started: Instant::now(),
        }
    }
    /// Who is there.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
    /// Rows of stats_mysql_commands_counters.
    pub fn commands_rows(&self) -> Vec<Vec<admin::Value>> {
        self.registry.commands.rows()
    }
    /// Names and numbers of stats_mysql_global. `refused`: clients that came when there were mysql-max_connections.
    pub fn global_figures(&self, refused: u64) -> Vec<(&'static str, u64)> {
        let sources = (&*self.registry, &*self.backends, &self.texts);
        global_figures(sources, self.uptime(), refused)
    }
    /// Prepared statements that sessions have open.
    pub fn statement_texts(&self) -> &StatementTexts {
        &self.texts
    }
    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
    /// Serves one client to its end, on its own thread.
    pub fn serve(&self, accepted: Accepted, options: &ServerOptions, accounts: &dyn Accounts) {
        let (id, peer) = (accepted.id, accepted.peer);
        let failed = |error: &WireError| {
            count(&self.registry.counters.aborted);
            self.registry.note_login(error);
            if !matches!(error, WireError::Closed) {
                log::debug!("client {id} from {peer}: {error}");
            }
        };
        // What is there for the whole session is used where it is: moved, it would be on the stack twice.
        let socket = accepted.socket.clone();
        let mut entered = self.let_in(accepted, options, accounts);
        let Entered { client, login, registered } = match &mut entered {
            Ok(entered) => entered,
            Err(error) => return failed(error),
        };
        let new = |login: Box<Login>| Session::new(self, socket, Arc::clone(registered), &login);
        let mut session = login.take().and_then(new);
        let Some(session) = &mut session else { return };
        session.finish(client.traffic());
        let outcome = converse(client, session, &self.config, options, accounts);
        registered.entry.activity().traffic = client.traffic();
        session.clean_up();
        outcome.unwrap_or_else(|error| failed(&error));
    }
    /// Logs a client in and gives it a place in the registry. Not inlined: what is on the stack for that is not to be there all
    /// the time.
    #[inline(never)]
    fn let_in(
        &self,
        accepted: Accepted,
        options: &ServerOptions,
        accounts: &dyn Accounts,
    ) -> Result<Entered, WireError> {
        let Accepted { socket, peer, id } = accepted;
        self.config.keep_alive(&socket);
        self.check_host(&socket, peer)?;
        let place = Mutex::new(None);
        let enter = |user: &str, most| {
            *place.lock() = Some(self.registry.enter(id, peer, socket.clone(), user, most)?);
            // Before the client knows: what it does next finds it so.
            self.registry.hosts.succeeded(peer.ip(), &self.config.variables());
            Ok(())
        };
        let admission = Admission { accounts, shared: self, enter };
        let logged_in = login(socket.clone(), id, options, &admission);
        if let (Err(error), true) = (&logged_in, peer != Socket::UNIX_PEER) {
            self.registry.hosts.failed(peer.ip(), error, &self.config.variables());
        }
        let (client, login) = logged_in?;
        // `login` succeeds only by way of `enter`.
        let registered = place.into_inner().ok_or(WireError::Closed)?;
        Ok(Entered { client, login: Some(Box::new(login)), registered: Arc::new(registered) })
    }
}

impl Sessions {
    /// Refuses a client whose address has failed too often, in place of the greeting.
    fn check_host(&self, socket: &Socket, peer: SocketAddr) -> Result<(), WireError> {
        let refusal = self.registry.hosts.refusal(peer.ip(), &self.config.variables());
        let Some(error) = refusal.filter(|_| peer != Socket::UNIX_PEER) else { return Ok(()) };
        count(&self.registry.counters.blocked);
        refuse(socket.clone(), &error);
        Err(error.into())
    }
}

/// A client that has logged in.
struct Entered {
    client: Channel,
    /// For its taker, and gone when the session has begun.
    login: Option<Box<Login>>,
    registered: Arc<Registered>,
}

/// Command after command, until the client leaves or cannot be served further.
#[inline(never)]
fn converse(
    client: &mut Channel,
    session: &mut Session<'_>,
    config: &Config,
    options: &ServerOptions,
    accounts: &dyn Accounts,
) -> Result<(), WireError> {
    loop {
        client.shrink();
        session.idle(client);
        let limit = session.max_allowed_packet();
        let step = match client.read_command(limit, PARTIAL) {
            Ok(command) => {
                session.begin(&command);
                session.handle(&command)
            }
            Err(error) => limits::unread(client, error, &config.variables())?,
        };
        let step = match step {
            Step::Relay(mut pending) => session.pass_on(client, &mut pending),
            Step::ChangeUser(argument) => {
                session.change_user(client, &argument, options, accounts)?;
                Step::Silent
            }
            step => step,
        };
        let step = match step {
            Step::Answer(answer) => session.answer(answer),
            step => step,
        };
        session.finish(client.traffic());
        if !conclude(client, session, step)? {
            return Ok(());
        }
    }
}

/// Tells the client what is to be told. False if it is to be left.
#[inline(never)]
fn conclude(client: &mut Channel, session: &mut Session<'_>, step: Step) -> Result<bool, WireError> {
    let reply = Reply { channel: client, capabilities: session.capabilities(), status: session.status() };
    let told = match &step {
        Step::Answer(answer) => answer.error(),
        Step::End(error) => error.as_ref(),
        _ => None,
    };
    if let Some(error) = told {
        session.note_error(error);
        if error.code == LOST && session.hears_no_loss {
            // As its server's connection ends, so it is told.
            return Ok(false);
        }
    }
    match step {
        Step::Answer(answer) => answer.write(reply)?,
        Step::End(Some(error)) => {
            reply.error(&error)?;
            // Others need not wait for the client to go.
            session.clean_up();
            client.close_gently(GOODBYE);
            return Ok(false);
        }
        Step::End(None) => return Ok(false),
        Step::Silent | Step::Again | Step::Relay(_) | Step::ChangeUser(_) => {}
    }
    Ok(true)
}
