//! Getting a connection: take one, open one, or wait until that is possible. The one place where a statement waits for a server.

use super::kill::interrupted;
use super::registry::{Call, Entry};
use super::settle::lost_connection;
use crate::hostgroups::{Endpoint, HostgroupId, Unavailable};
use crate::pool::{Backends, Lease, Offer, Refusal, Waiter, Want};
use crate::stats::errors::{Errors, Origin};
use admin::Variables;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::socket::Socket;
use wire::{SqlError, WireError};

/// A waiter looks by itself this often, for what nobody signals: the end of a shun.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why there is no connection.
#[derive(Debug)]
pub enum Failure {
    /// To be told to the client.
    Error(SqlError),
    /// The client has gone.
    ClientLeft,
    /// It would have to be waited for.
    NotNow,
    /// The daemon stops.
    Closed,
}

/// How long a statement waits for its connection.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Limits in force.
    pub limits: &'a Variables,
    /// When the statement came.
    pub start: Instant,
    /// How long a connection may have been idle that is not looked at.
    pub trusted: Duration,
    /// A connection that others have used is reset first.
    pub unshared: bool,
    /// It waits at all: otherwise it is [`Failure::NotNow`] where it would have to.
    pub waits: bool,
}

/// For whom a connection is.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The client.
    pub client: &'a Socket,
    /// Its place in the registry.
    pub entry: &'a Entry,
    /// Where failures are counted.
    pub errors: &'a Errors,
}

/// Gets a connection of `hostgroup` that carries what `want` says, within mysql-connect_timeout_server_max. `kept`: one
/// that the session has already, and that serves if what `want` says can be brought to it.
pub fn acquire<'b>(
    backends: &'b Backends,
    hostgroup: HostgroupId,
    want: &Want,
    kept: Option<Lease<'b>>,
    asker: Asker<'_>,
    patience: Patience<'_>,
) -> Result<Lease<'b>, Failure> {
    let Patience { limits, start, trusted, unshared, waits } = patience;
    let first = match kept {
        Some(lease) => Some(Ok(Offer::Ready(lease))),
        None if backends.is_awaited(hostgroup) => None,
        None => Some(backends.lease(hostgroup, want, limits, start, trusted)),
    };
    let offered = match first {
        // So it is nearly always.
        Some(Ok(Offer::Ready(mut lease))) if lease.is_ready(want, unshared) => {
            lease.serve(want.session);
            return Ok(lease);
        }
        other => other,
    };
    let deadline = start + limits.connect_timeout_server_max;
    Search {
        backends,
        hostgroup,
        want,
        asker,
        limits,
        start,
        trusted,
        unshared,
        waits,
        deadline,
        waiter: None,
        unavailable: None,
        failures: 0,
    }
    .run(offered)
}

struct Search<'a, 'b> {
    backends: &'b Backends,
    hostgroup: HostgroupId,
    want: &'a Want,
    asker: Asker<'a>,
    limits: &'a Variables,
    start: Instant,
    trusted: Duration,
    unshared: bool,
    waits: bool,
    deadline: Instant,
    waiter: Option<Waiter>,
    /// Why there was no server when it looked last.
    unavailable: Option<Unavailable>,
    failures: u32,
}

impl<'b> Search<'_, 'b> {
    /// Goes on from what was offered, if something was.
    #[inline(never)]
    fn run(mut self, mut offered: Option<Result<Offer<'b>, Refusal>>) -> Result<Lease<'b>, Failure> {
        let mut now = self.start;
        loop {
            let offered = match offered.take() {
                Some(offered) => offered,
                None => self.look(now)?,
            };
            if let Some(lease) = self.accept(offered)?
                && let Some(lease) = self.finish(lease)?
            {
                return Ok(lease);
            }
            now = Instant::now();
            if now >= self.deadline {
                return Err(Failure::Error(self.timed_out()));
            }
        }
    }
    /// Looks for a connection, when it is this statement's turn. Who comes while others wait for the same hostgroup queues behind them.
    fn look(&mut self, now: Instant) -> Result<Result<Offer<'b>, Refusal>, Failure> {
        if self.waiter.is_none() && self.backends.is_awaited(self.hostgroup) {
            self.queue_or_wait()?;
        }
        if self.waiter.as_ref().is_some_and(|waiter| !waiter.may_look()) {
            self.pause(LOOK_AGAIN)?;
        }
        Ok(self.backends.lease(self.hostgroup, self.want, self.limits, now, self.trusted))
    }
    /// Takes or opens the connection that was offered, or waits for a while.
    fn accept(&mut self, offered: Result<Offer<'b>, Refusal>) -> Result<Option<Lease<'b>>, Failure> {
        match offered {
            Ok(Offer::Ready(lease)) => Ok(Some(lease)),
            Ok(Offer::Open(ticket)) => match ticket.open(self.want, self.one_connect()) {
                Ok(lease) => Ok(Some(lease)),
                Err(failed) => {
                    self.count_error(&failed.endpoint, &failed.error);
                    match failed.retry {
                        true => self.failed(failed.error).map(|()| None),
                        false => Err(Failure::Error(failed.error)),
                    }
                }
            },
            Err(Refusal::Closed) => Err(Failure::Closed),
            Err(Refusal::Unavailable(why)) => {
                self.unavailable = Some(why);
                self.queue_or_wait()?;
                Ok(None)
            }
        }
    }
    /// Makes a connection ready. None if it turned out to be dead, or was retired while it was opened.
    fn finish(&mut self, mut lease: Lease<'b>) -> Result<Option<Lease<'b>>, Failure> {
        let session = self.want.session;
        let touched = lease.touched_by().is_some_and(|other| other != session);
        if (touched || self.unshared && lease.has_served_others(session)) && !self.cleaned(&mut lease) {
            return Ok(None);
        }
        lease.serve(session);
        match lease.prepare(self.want, || self.one_connect()) {
            Ok(()) if lease.is_retired() => Ok(None),
            Ok(()) => Ok(Some(lease)),
            Err(WireError::Sql(error)) => {
                self.count_error(lease.endpoint(), &error);
                lease.release(Instant::now(), self.limits);
                Err(Failure::Error(error))
            }
            Err(error) => {
                log::debug!("a connection to {} was lost before its use: {error}", lease.server());
                // One that was free may have been stale; a new one tells of the server.
                let is_new = lease.opened() >= self.start;
                let endpoint = lease.endpoint().clone();
                drop(lease);
                if is_new {
                    let error = lost_connection(&error);
                    self.count_error(&endpoint, &error);
                    self.failed(error)?;
                }
                Ok(None)
            }
        }
    }
    /// Takes away what another session may have left. A connection that cannot be reset is given up.
    #[cold]
    fn cleaned(&self, lease: &mut Lease<'_>) -> bool {
        let collation = self.want.profile.login_collation().unwrap_or(wire::UTF8MB4_GENERAL_CI.into());
        let reset = lease.reset(collation, self.one_connect());
        if let Err(error) = &reset {
            log::debug!("a connection to {} could not be reset before its use: {error}", lease.server());
        }
        reset.is_ok()
    }
    /// Waits before another attempt to get a new connection; `error` if there were enough.
    #[cold]
    fn failed(&mut self, error: SqlError) -> Result<(), Failure> {
        if self.failures >= self.limits.connect_retries_on_failure {
            return Err(Failure::Error(error));
        }
        self.failures += 1;
        self.pause(self.limits.connect_retries_delay)
    }
    fn count_error(&self, endpoint: &Endpoint, error: &SqlError) {
        let client = self.asker.entry.client.ip();
        self.asker.errors.count(origin(self.hostgroup, Some(endpoint), self.want), client, error);
    }
    fn one_connect(&self) -> Instant {
        self.deadline.min(Instant::now() + self.limits.connect_timeout_server)
    }
    /// Waits for a wake; the first time only queues, because a server may have come between the look and the queue.
    #[cold]
    fn queue_or_wait(&mut self) -> Result<(), Failure> {
        if self.waiter.is_some() {
            return self.pause(LOOK_AGAIN);
        }
        let queued = self.backends.wait_for(self.hostgroup);
        let no_event = |error| SqlError::new(9002, "HY000", format!("cannot wait for a server: {error}"));
        self.waiter = Some(queued.map_err(|error| Failure::Error(no_event(error)))?);
        Ok(())
    }
    /// Sleeps for `time`, until the deadline, or until woken; notices a client that leaves, and KILL.
    #[cold]
    fn pause(&self, time: Duration) -> Result<(), Failure> {
        if !self.waits {
            return Err(if self.backends.is_ending() { Failure::Closed } else { Failure::NotNow });
        }
        let until = self.deadline.min(Instant::now() + time);
        let stream = self.asker.client.stream();
        let mut fds = vec![PollFd::new(stream, PollFlags::RDHUP)];
        let event = self.waiter.as_ref().map(Waiter::event);
        fds.extend(event.as_ref().map(|event| PollFd::new(event, PollFlags::IN)));
        poll_until(&mut fds, until);
        if fds.first().is_some_and(|client| !client.revents().is_empty()) {
            // A daemon that stops has shut the read side of its clients, which looks the same.
            return Err(if self.backends.is_ending() { Failure::Closed } else { Failure::ClientLeft });
        }
        if self.asker.entry.call() == Some(Call::KillQuery) {
            return Err(Failure::Error(interrupted()));
        }
        if let Some(waiter) = &self.waiter {
            waiter.clear();
        }
        Ok(())
    }
    #[cold]
    fn timed_out(&self) -> SqlError {
        let reason = match self.unavailable {
            Some(Unavailable::Weightless) => ": every server that could serve has weight 0",
            Some(Unavailable::Slow) => ": the pings of every server that could serve exceed max_latency_ms",
            Some(Unavailable::Crowded) => ": more servers are ONLINE than max_num_online_servers allows",
            Some(Unavailable::Throttled) => {
                let limit = ": no more connections may be opened in a second (throttle_connections_per_sec)";
                match self.backends.last_failure(self.hostgroup) {
                    Some(failure) => &format!("{limit}, and the last that was tried failed: {failure}"),
                    None => limit,
                }
            }
            _ => "",
        };
        let text = format!(
            "Max connect timeout reached while reaching hostgroup {} after {}ms{reason}",
            self.hostgroup,
            self.start.elapsed().as_millis()
        );
        log::debug!("{text}");
        SqlError::new(9001, "HY000", text)
    }
}

/// Whose error one is.
pub fn origin(hostgroup: HostgroupId, endpoint: Option<&Endpoint>, want: &Want) -> Origin {
    let (user, schema) = (Arc::from(want.identity.user.as_str()), want.profile.schema.clone());
    Origin { hostgroup, endpoint: endpoint.cloned(), user, schema }
}

/// Whether a socket becomes readable within `time`.
pub fn readable_within(socket: &Socket, time: Duration) -> bool {
    poll_until(&mut [PollFd::from_borrowed_fd(socket.stream().as_fd(), PollFlags::IN)], Instant::now() + time)
}

/// Holds a statement back for `time`, unless its client leaves or it is killed.
pub fn hold_back(client: &Socket, entry: &Entry, time: Duration) -> Result<(), Failure> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        let slice = until.min(Instant::now() + LOOK_AGAIN);
        if poll_until(&mut [PollFd::new(client.stream(), PollFlags::RDHUP)], slice) {
            return Err(Failure::ClientLeft);
        }
        if entry.call() == Some(Call::KillQuery) {
            return Err(Failure::Error(interrupted()));
        }
    }
    Ok(())
}

/// Polls until something happens or the time has come; true if something happened.
fn poll_until(fds: &mut [PollFd<'_>], until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}
