//! A command that its server cannot have read is sent once more, on another connection.
//!
//! A server may close a connection in the moment in which it is taken into use. That costs no client a statement: the end of
//! the stream came before any answer, and the server's system answered the command itself with a reset, as systems do for
//! what reaches a socket that is closed. Had the server died with the command read, there would have been nothing to reset.

use super::state::{Pending, Session, Step};
use std::time::Duration;
use wire::channel::Channel;

/// How long a reset may take to follow an end: the way to the server and back.
const WAY_BACK: Duration = Duration::from_millis(100);

impl Session<'_> {
    /// Passes the answer to a command on, which is sent again if its server cannot have read it.
    pub fn pass_on(&mut self, client: &mut Channel, pending: &mut Pending) -> Step {
        let step = self.relay(client, pending);
        if !matches!(step, Step::Again) {
            return step;
        }
        self.send_again(client)
    }
    #[cold]
    fn send_again(&mut self, client: &mut Channel) -> Step {
        let Some(command) = client.last_command() else { return Step::End(None) };
        self.route.go_back();
        self.repeats = true;
        let step = self.handle(&command);
        let step = match step {
            Step::Relay(mut pending) => self.relay(client, &mut pending),
            step => step,
        };
        self.repeats = false;
        step
    }
    /// Parts with a connection that was closed before its server read the command; false if that is not certain.
    pub(super) fn part_unread(&mut self, pending: &Pending) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        let unread = pending.replaceable && lease.backend().channel.stream().socket().is_reset(WAY_BACK);
        if unread {
            log::debug!(
                "{} had closed a connection before a statement came, which is sent again",
                lease.server()
            );
            self.drop_lease();
        }
        unread
    }
}
