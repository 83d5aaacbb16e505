//! How long a client may be idle, and the upkeep of its session's entry in the registry.

use super::state::{Session, Step, TRANSACTION};
use super::wait::origin;
use crate::hostgroups::Endpoint;
use crate::pool::{Lease, Profile};
use admin::Variables;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::attributes;
use wire::channel::{Channel, RawCommand, Traffic};
use wire::socket::Socket;
use wire::statement::LAST_PREPARED;
use wire::version::is_mariadb;
use wire::{Command, SqlError, WireError};

/// Shorter limits are taken for this one.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long the client may be idle: as configured when it came, or as it has said since (SET wait_timeout).
pub struct IdleLimit {
    configured: Duration,
    in_force: Duration,
    /// What the limit was taken from.
    profile: Option<Arc<Profile>>,
}

impl IdleLimit {
    /// The configured one, in force on the client's socket from now on. It limits writes as well.
    pub fn new(variables: &Variables, socket: &Socket) -> Self {
        let limit = variables.wait_timeout.max(SHORTEST);
        socket.set_timeouts(Some(limit), Some(limit));
        Self { configured: limit, in_force: limit, profile: None }
    }
    /// Follows what the session has set. True if it has set anything since it was asked last.
    fn follow(&mut self, profile: &Arc<Profile>, socket: &Socket) -> bool {
        if self.profile.as_ref().is_some_and(|known| Arc::ptr_eq(known, profile)) {
            return false;
        }
        // Servers go by wait_timeout alone; interactive_timeout is only what it begins as.
        let seconds = profile.get("wait_timeout").and_then(|value| value.trim_matches('\'').parse().ok());
        let limit = seconds.map_or(self.configured, |seconds| Duration::from_secs(seconds).max(SHORTEST));
        if limit != self.in_force {
            socket.set_timeouts(Some(limit), Some(self.configured));
            self.in_force = limit;
        }
        self.profile = Some(Arc::clone(profile));
        true
    }
}

/// What a client is told that was idle for too long: error 4031, as MySQL tells it from 8.0.24 on. MariaDB just closes the
/// connection, and so does a proxy that says it is one.
fn inactivity(variables: &Variables) -> Option<SqlError> {
    let text = "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for \
                configuring this behavior.";
    (!is_mariadb(&variables.server_version)).then(|| SqlError::new(4031, "HY000", text))
}

/// What becomes of a client whose next command could not be read: the end that was reached, or the error itself.
pub fn unread(client: &mut Channel, error: WireError, variables: &Variables) -> Result<Step, WireError> {
    let told = match &error {
        WireError::TooLarge { .. } => return Ok(Step::End(Some(SqlError::packet_too_large()))),
        WireError::Malformed(_) => Some(SqlError::out_of_order()),
        WireError::Damaged(_) => Some(SqlError::damaged_packet()),
        // Amid a packet it is slow, not idle.
        error if error.is_timeout() && client.buffered() == 0 => inactivity(variables),
        _ => return Err(error),
    };
    // As servers number what they say unasked, or of what is no packet.
    client.reset_sequence();
    Ok(Step::End(told))
}

impl Session<'_> {
    /// A command has come.
    pub fn begin(&mut self, command: &RawCommand<'_>) {
        self.started = Instant::now();
        self.ended = None;
        self.nearness.follow(&self.socket, self.started);
        self.shared.config.refresh(&mut self.variables);
        let Some((&code, argument)) = command.head.split_first() else { return };
        let Some(code) = wire::command(code) else { return };
        let shown = match code {
            Command::COM_QUERY => attributes::sql(argument, self.capabilities).unwrap_or_default(),
            Command::COM_STMT_PREPARE => argument,
            Command::COM_STMT_EXECUTE => self.prepared_sql(argument),
            _ => b"",
        };
        self.registered.entry.begin(code, shown, self.started);
        if code != Command::COM_QUERY {
            self.shared.registry.commands.count_command(self.number(), code);
        }
    }
    /// Counts an error that no server has said.
    pub fn note_error(&self, error: &SqlError) {
        self.shared.registry.note_error(error);
        self.count_error(None, error);
    }
    /// Counts an error in stats_mysql_errors: a server's, or our own.
    pub(super) fn count_error(&self, endpoint: Option<&Endpoint>, error: &SqlError) {
        let origin = origin(self.hostgroup, endpoint, &self.want);
        self.shared.registry.errors.count(origin, self.peer, error);
    }
    /// Counts an error that the server in hand has said, or was lost with.
    #[cold]
    pub(super) fn count_error_of_server(&self, error: &SqlError) {
        self.count_error(self.lease.as_ref().map(Lease::endpoint), error);
    }
    /// Longest command that the client may send, in bytes.
    pub fn max_allowed_packet(&self) -> usize {
        self.variables.max_allowed_packet
    }
    /// The text of the statement that COM_STMT_EXECUTE names.
    fn prepared_sql(&self, argument: &[u8]) -> &[u8] {
        let id = argument.first_chunk().map(|id| u32::from_le_bytes(*id));
        let id = id.map(|id| if id == LAST_PREPARED { self.statements.last() } else { id });
        id.and_then(|id| self.statements.text(id)).unwrap_or_default()
    }
    /// The command has ended; the entry says what is so until the next. `traffic` is what went over the client's connection.
    pub fn finish(&mut self, traffic: Traffic) {
        let now = self.ended.take().unwrap_or_else(Instant::now);
        let profile = &self.want.profile;
        let changed = self.idle_limit.follow(profile, &self.socket);
        let in_transaction = self.status.intersects(TRANSACTION);
        if self.lease.is_none() {
            self.registered.entry.runs_nowhere();
        }
        self.registered.entry.finish(now, |activity| {
            if changed {
                activity.schema.clone_from(&profile.schema);
            }
            activity.status = self.status;
            activity.traffic = traffic;
            activity.transaction = in_transaction.then(|| activity.transaction.unwrap_or(now));
            activity.hold.follow(&self.hold);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_cannot_be_read_is_called_by_its_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
        let mut client = Channel::new(socket);
        for (error, code) in [
            (WireError::TooLarge { limit: 1 }, 1153),
            (WireError::Malformed("packets out of order"), 1156),
            (WireError::Damaged("compressed data is damaged"), 1157),
        ] {
            match unread(&mut client, error, &Variables::default()) {
                Ok(Step::End(Some(told))) => assert_eq!(told.code, code),
                _ => panic!("nothing is told instead of {code}"),
            }
        }
        assert!(unread(&mut client, WireError::Closed, &Variables::default()).is_err());
    }
}
