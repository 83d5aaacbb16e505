//! Connections that a session has beside the one in its hands: to hostgroups that its statements are not for right now.

use super::hold::{Hold, Reason};
use super::state::{Session, TRANSACTION};
use crate::hostgroups::HostgroupId;
use crate::pool::Lease;
use wire::StatusFlags;

/// A lease put aside for one statement that goes elsewhere.
pub struct Parked<'a> {
    lease: Lease<'a>,
    hold: Hold,
    status: StatusFlags,
}

impl<'a> Session<'a> {
    /// Gives up or puts aside a connection of another hostgroup than the next statement's, if the session may part with it.
    /// A transaction whose user is not transaction_persistent is put aside for that one statement. Without multiplexing, or once
    /// it has called a stored function, the session keeps a connection to each hostgroup that it uses.
    pub(super) fn lease_for(&mut self, hostgroup: HostgroupId) {
        let elsewhere = self.lease.as_ref().is_some_and(|lease| lease.hostgroup() != hostgroup);
        if !elsewhere || self.hold.reasons.leave_something() {
            return;
        }
        if self.in_transaction() {
            if !self.user.transaction_persistent {
                let hold = std::mem::take(&mut self.hold);
                let parked = self.lease.take().map(|lease| Parked { lease, hold, status: self.status });
                self.parked = parked.map(Box::new);
                self.status.remove(TRANSACTION);
            }
        } else if self.hold.reasons.contains(Reason::MultiplexingOff) || self.called_functions {
            self.hold = Hold::default();
            self.kept.extend(self.lease.take());
        } else {
            self.give_back();
        }
    }
    /// Takes up the lease that was put aside, once the statement that went elsewhere is done.
    pub(super) fn unpark(&mut self) {
        let Some(parked) = self.parked.take() else { return };
        let Parked { lease, hold, status } = *parked;
        // What the other statement left beyond its answer cannot be kept beside a transaction.
        self.part_with_current();
        (self.lease, self.hold, self.status) = (Some(lease), hold, status);
    }
    /// The connection that was kept to the statement's hostgroup, if it still serves. What the session has set since is not on it.
    pub(super) fn take_kept(&mut self) -> Option<Lease<'a>> {
        let at = self.kept.iter().position(|lease| lease.hostgroup() == self.hostgroup)?;
        Some(self.kept.swap_remove(at)).filter(|lease| !lease.is_retired() && lease.is_quiet())
    }
    /// Parts with all of them at the end of the session.
    pub(super) fn part_with_aside(&mut self) {
        if let Some(parked) = self.parked.take() {
            self.part_with(parked.lease, true);
        }
        for lease in std::mem::take(&mut self.kept) {
            self.part_with(lease, false);
        }
    }
}
