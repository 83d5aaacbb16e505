//! The sessions of the traffic port: who they are and what they do, for everybody but their own threads.
//!
//! Each session has an entry that its thread keeps current with a few stores under the entry's own lock, which nobody holds
//! for longer than that. Whoever wants to end a session or its statement leaves word in the entry and wakes the thread; what
//! is done about it - on the server, too - is done by that thread alone. So a statement that ended a moment ago is never
//! mistaken for the next one, its own session's or another's.

use super::commands::Commands;
use super::hold::Hold;
use super::hosts::Hosts;
use super::settings::{Assignment, Setting};
use crate::hostgroups::HostgroupId;
use crate::pool::Peer;
use crate::stats::errors::Errors;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::channel::Traffic;
use wire::socket::Socket;
use wire::{Command, SqlError, StatusFlags, WireError};

/// Bytes of a statement that the process list shows.
pub const SHOWN: usize = 1024;

/// Every session that has logged in.
#[derive(Default)]
pub struct Registry {
    table: Mutex<Table>,
    /// Numbers for `stats_mysql_global`.
    pub counters: Counters,
    /// Statements by their first words, and other commands.
    pub commands: Commands,
    /// Addresses whose logins failed.
    pub hosts: Hosts,
    /// Errors, by whose they were.
    pub errors: Errors,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<u32, Arc<Entry>>,
    users: HashMap<String, u32>,
    /// Statements of sessions that have ended.
    questions: u64,
    /// Bytes of sessions that have ended.
    traffic: Traffic,
}

/// What has happened since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sessions that logged in.
    pub created: AtomicU64,
    /// Sessions that did not end in order, logins included.
    pub aborted: AtomicU64,
    /// Logins refused for the user's max_connections.
    pub refused_users: AtomicU64,
    /// Clients refused for what failed from their addresses before.
    pub blocked: AtomicU64,
    /// KILL QUERY sent to servers.
    pub killed_queries: AtomicU64,
    /// KILL CONNECTION sent to servers.
    pub killed_connections: AtomicU64,
    /// Logins and changes of user refused with error 1045.
    pub refused_passwords: AtomicU64,
    /// Errors that no server has said.
    pub own_errors: AtomicU64,
    /// Of these, those that say that no server could be had in time.
    pub connect_timeouts: AtomicU64,
    /// Of these, those about packets that are no commands.
    pub unexpected_packets: AtomicU64,
    /// Statements lost with a server that was taken out of use.
    pub offline: AtomicU64,
    /// Statements over mysql-long_query_time.
    pub slow: AtomicU64,
    /// Statements that have set autocommit.
    pub autocommits: AtomicU64,
    /// SET NAMES.
    pub set_names: AtomicU64,
}

impl Counters {
    /// Counts a SET statement by what it sets.
    pub fn note_setting(&self, setting: &Setting) {
        let any = |wanted: fn(&Assignment) -> bool| setting.assignments.iter().any(wanted);
        if any(|assignment| matches!(assignment, Assignment::Names(_))) {
            count(&self.set_names);
        }
        if any(|assignment| matches!(assignment, Assignment::Variable(name, _) if name == "autocommit")) {
            count(&self.autocommits);
        }
    }
}

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Why a session is to end before its client says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// KILL CONNECTION.
    Killed,
    /// mysql-max_transaction_time or mysql-max_transaction_idle_time is over.
    Transaction,
}

/// What a session does.
pub struct Activity {
    /// User name.
    pub user: String,
    /// Default schema.
    pub schema: Option<Arc<str>>,
    /// Where its statements go.
    pub hostgroup: HostgroupId,
    /// The command it works on; `None` while it waits for the client's next.
    pub command: Option<Command>,
    /// Since when it does so.
    pub since: Instant,
    /// The server connection that is in its hands, or was last ([`Entry::server`]).
    peer: Option<Arc<Peer>>,
    /// Why it keeps that between statements.
    pub hold: Hold,
    /// Status flags of the last answer.
    pub status: StatusFlags,
    /// Since when a transaction is open.
    pub transaction: Option<Instant>,
    /// Commands so far.
    pub questions: u64,
    /// Bytes that came from the client and went to it, up to the last command.
    pub traffic: Traffic,
    /// The start of the statement that runs, or ran last. Reused, so that it costs a copy and no allocation.
    text: Vec<u8>,
    ending: Option<Ending>,
    kill_query: bool,
}

impl Activity {
    /// The statement that runs, as far as it is kept.
    pub fn statement(&self) -> Option<&[u8]> {
        let runs = matches!(
            self.command,
            Some(Command::COM_QUERY | Command::COM_STMT_PREPARE | Command::COM_STMT_EXECUTE)
        );
        (runs && !self.text.is_empty()).then_some(self.text.as_slice())
    }
}

/// One session.
pub struct Entry {
    /// The connection id of the greeting.
    pub id: u32,
    /// The client's address.
    pub client: SocketAddr,
    /// The number in the name of its thread.
    pub thread: u32,
    socket: Socket,
    activity: Mutex<Activity>,
    /// Whether the session has that server connection in its hands. A flag of its own, so that a session that comes back to the same
    /// connection need not lock.
    on_server: AtomicBool,
    /// Whether there is word in the entry, so that the relay need not lock it to see that there is none.
    called: AtomicBool,
}

/// What a session's thread is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// End the statement.
    KillQuery,
    /// End the session.
    End(Ending),
}

impl Entry {
    /// What the session does.
    pub fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock()
    }
    /// A command begins. `text` is what the process list shows of it.
    pub fn begin(&self, command: Command, text: &[u8], now: Instant) {
        let mut activity = self.activity.lock();
        activity.command = Some(command);
        activity.since = now;
        activity.questions += 1;
        activity.text.clear();
        activity.text.extend_from_slice(text.get(..SHOWN).unwrap_or(text));
    }
    /// The server connection in the session's hands.
    pub fn server<'a>(&self, activity: &'a Activity) -> Option<&'a Arc<Peer>> {
        activity.peer.as_ref().filter(|_| self.on_server.load(Ordering::Acquire))
    }
    /// The command was given to a server. `same`: to the one that the last command was given to.
    pub fn runs_on(&self, peer: &Arc<Peer>, same: bool) {
        if !same {
            let mut activity = self.activity.lock();
            activity.hostgroup = peer.hostgroup;
            activity.peer = Some(Arc::clone(peer));
        }
        self.on_server.store(true, Ordering::Release);
    }
    /// The session has no server connection any more.
    pub fn runs_nowhere(&self) {
        self.on_server.store(false, Ordering::Release);
    }
    /// The command has ended; `update` says what is so from now on. A KILL QUERY that came too late is forgotten.
    pub fn finish(&self, now: Instant, update: impl FnOnce(&mut Activity)) {
        let mut activity = self.activity.lock();
        activity.command = None;
        activity.since = now;
        if std::mem::take(&mut activity.kill_query) {
            self.called.store(activity.ending.is_some(), Ordering::Release);
        }
        update(&mut activity);
    }
    /// The session has given its server connection back without a command.
    pub fn released(&self) {
        self.runs_nowhere();
        self.activity.lock().hold = Hold::default();
    }
    /// What the session's thread is asked to do, if anything; asked once for a statement.
    pub fn call(&self) -> Option<Call> {
        if !self.called.load(Ordering::Acquire) {
            return None;
        }
        let mut activity = self.activity.lock();
        if let Some(ending) = activity.ending {
            return Some(Call::End(ending));
        }
        self.called.store(false, Ordering::Release);
        std::mem::take(&mut activity.kill_query).then_some(Call::KillQuery)
    }
    /// The limit that the session's transaction is over, if any and not told yet.
    fn transaction_over(&self, open: Duration, idle: Duration, now: Instant) -> Option<&'static str> {
        let activity = self.activity.lock();
        let since = activity.transaction.filter(|_| activity.ending.is_none())?;
        let idles = activity.command.is_none();
        match () {
            () if now.saturating_duration_since(since) >= open => Some("mysql-max_transaction_time"),
            () if idles && now.saturating_duration_since(activity.since) >= idle => {
                Some("mysql-max_transaction_idle_time")
            }
            () => None,
        }
    }
    /// Asks for the end of the statement that runs now; nothing if there is none.
    pub fn kill_query(&self) {
        let mut activity = self.activity.lock();
        if activity.command.is_some() {
            activity.kill_query = true;
            self.called.store(true, Ordering::Release);
        }
    }
    /// Asks for the end of the session. Its thread is woken, wherever it waits: the client's side ends for it.
    pub fn end(&self, ending: Ending) {
        self.activity.lock().ending.get_or_insert(ending);
        self.called.store(true, Ordering::Release);
        self.socket.shutdown(Shutdown::Both);
    }
}

/// A session's place in the registry, given up when dropped.
pub struct Registered {
    registry: Arc<Registry>,
    /// The entry.
    pub entry: Arc<Entry>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut table = self.registry.table.lock();
        table.entries.remove(&self.entry.id);
        let activity = self.entry.activity.lock();
        table.questions += activity.questions;
        table.traffic = sum(table.traffic, activity.traffic);
        table.leave(&activity.user);
    }
}

impl Registered {
    /// The session goes on as another user (COM_CHANGE_USER), within that user's limit.
    pub fn change_user(&self, user: &str, max_connections: u32) -> Result<(), SqlError> {
        let mut table = self.registry.table.lock();
        let mut activity = self.entry.activity.lock();
        if activity.user == user {
            return Ok(());
        }
        table.enter(user, max_connections).inspect_err(|_| count(&self.registry.counters.refused_users))?;
        table.leave(&activity.user);
        user.clone_into(&mut activity.user);
        Ok(())
    }
}

impl Table {
    fn enter(&mut self, user: &str, max_connections: u32) -> Result<(), SqlError> {
        let held = self.users.get_mut(user);
        let current = held.as_ref().map_or(0, |held| **held);
        if current >= max_connections {
            let text = format!(
                "User '{user}' has exceeded the 'max_user_connections' resource (current value: {current})"
            );
            return Err(SqlError::new(1226, "42000", text));
        }
        match held {
            Some(held) => *held += 1,
            None => drop(self.users.insert(user.to_owned(), 1)),
        }
        Ok(())
    }
    fn leave(&mut self, user: &str) {
        if let Some(held) = self.users.get_mut(user) {
            *held -= 1;
            if *held == 0 {
                self.users.remove(user);
            }
        }
    }
}

impl Registry {
    /// Enters a session, or refuses it with error 1226 if its user has `max_connections` already.
    pub fn enter(
        self: &Arc<Self>,
        id: u32,
        client: SocketAddr,
        socket: Socket,
        user: &str,
        max_connections: u32,
    ) -> Result<Registered, SqlError> {
        let activity = Activity {
            user: user.to_owned(),
            schema: None,
            hostgroup: 0,
            command: None,
            since: Instant::now(),
            peer: None,
            hold: Hold::default(),
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            transaction: None,
            questions: 0,
            traffic: Traffic::default(),
            text: Vec::new(),
            ending: None,
            kill_query: false,
        };
        let entry = Arc::new(Entry {
            id,
            client,
            thread: thread_number(),
            socket,
            activity: Mutex::new(activity),
            on_server: AtomicBool::new(false),
            called: AtomicBool::new(false),
        });
        let mut table = self.table.lock();
        table.enter(user, max_connections).inspect_err(|_| count(&self.counters.refused_users))?;
        table.entries.insert(id, Arc::clone(&entry));
        drop(table);
        count(&self.counters.created);
        Ok(Registered { registry: Arc::clone(self), entry })
    }
    /// Counts a login that was refused for its password.
    pub fn note_login(&self, error: &WireError) {
        if matches!(error, WireError::Sql(error) if error.code == 1045) {
            count(&self.counters.refused_passwords);
        }
    }
    /// Counts an error that no server has said.
    pub fn note_error(&self, error: &SqlError) {
        count(&self.counters.own_errors);
        match error.code {
            9001 => count(&self.counters.connect_timeouts),
            1153 | 1156 | 1157 => count(&self.counters.unexpected_packets),
            _ => {}
        }
    }
    /// The session with that connection id.
    pub fn find(&self, id: u32) -> Option<Arc<Entry>> {
        self.table.lock().entries.get(&id).cloned()
    }
    /// All sessions, by id.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.table.lock().entries.values().cloned().collect()
    }
    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.table.lock().entries.len()
    }
    /// How many sessions a user has.
    pub fn of_user(&self, user: &str) -> u32 {
        self.table.lock().users.get(user).copied().unwrap_or(0)
    }
    /// Commands of all clients since the start.
    pub fn questions(&self) -> u64 {
        let (ended, entries) = {
            let table = self.table.lock();
            (table.questions, table.entries.values().cloned().collect::<Vec<_>>())
        };
        ended + entries.iter().map(|entry| entry.activity.lock().questions).sum::<u64>()
    }
    /// Bytes that came from all clients and went to them since the start.
    pub fn traffic(&self) -> Traffic {
        let (ended, entries) = {
            let table = self.table.lock();
            (table.traffic, table.entries.values().cloned().collect::<Vec<_>>())
        };
        entries.iter().map(|entry| entry.activity.lock().traffic).fold(ended, sum)
    }
    /// Ends sessions that are inside a transaction for longer than `open`, or idle there for longer than `idle`.
    pub fn end_transactions(&self, open: Duration, idle: Duration, now: Instant) {
        for entry in self.entries() {
            let Some(limit) = entry.transaction_over(open, idle, now) else { continue };
            log::warn!("client {} from {} is disconnected: {limit} is over", entry.id, entry.client);
            entry.end(Ending::Transaction);
        }
    }
}

fn sum(one: Traffic, other: Traffic) -> Traffic {
    Traffic { received: one.received + other.received, sent: one.sent + other.sent }
}

/// The number of a thread whose name ends in one, as listeners name theirs.
fn thread_number() -> u32 {
    let current = std::thread::current();
    let number = current.name().and_then(|name| name.rsplit_once('-')?.1.parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests;
