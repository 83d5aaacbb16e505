//! Passing a server's answer on, as it comes: one buffer, one write per read, whatever the size.

use wire::backend::Backend;
use wire::channel::Channel;
use wire::tracker::{Outcome, Progress, ResponseTracker};
use wire::{Command, WireError};

/// Where a packet's header has its sequence number.
const SEQUENCE: usize = 3;

/// How passing on an answer ended.
pub enum Relayed {
    /// The client has all of it.
    Done(Outcome),
    /// The server failed before it said anything.
    Unanswered(WireError),
    /// The server failed in the middle of its answer, so that the client's stream is beyond repair.
    Truncated(WireError),
    /// The client failed; the rest of the answer is still to come.
    ClientLost,
}

/// Passes on the answer to `command`; also returns its bytes so far.
pub fn relay(
    client: &mut Channel,
    backend: &mut Backend,
    command: Command,
    new_id: Option<u32>,
) -> (Relayed, u64) {
    let mut tracker = ResponseTracker::new(command, backend.capabilities);
    let mut received = 0u64;
    loop {
        let failed = |error, received| match received {
            0 => Relayed::Unanswered(error),
            _ => Relayed::Truncated(error),
        };
        let bytes = match backend.channel.fill() {
            Ok(bytes) => bytes,
            Err(error) => return (failed(error, received), received),
        };
        // Answers are numbered from 1: 0 is what a server says unasked, before it closes an idle connection or one it kills.
        if received == 0 && bytes.get(SEQUENCE) == Some(&0) {
            return (Relayed::Unanswered(WireError::Closed), received);
        }
        let (used, done) = match tracker.feed(bytes) {
            Ok(Progress::More) => (bytes.len(), false),
            Ok(Progress::Done(used)) => (used.min(bytes.len()), true),
            // Connections are opened without LOCAL_FILES.
            Ok(Progress::FileWanted(_)) => {
                return (
                    failed(WireError::Malformed("a request for a file, which was not offered"), received),
                    received,
                );
            }
            Err(error) => return (failed(error, received), received),
        };
        let surplus = bytes.len() - used;
        let mut renumbered = Vec::new();
        let mut passed = bytes.get(..used).unwrap_or_default();
        if let (Some(id), 0) = (new_id, received) {
            renumbered.extend_from_slice(passed);
            renumber(&mut renumbered, id);
            passed = &renumbered;
        }
        if client.write_raw(passed).is_err() {
            return (Relayed::ClientLost, received);
        }
        received += used as u64;
        backend.channel.consume(used);
        if done {
            let end = match surplus {
                0 => Relayed::Done(tracker.outcome().clone()),
                _ => Relayed::Truncated(WireError::Malformed("bytes after the end of an answer")),
            };
            return (end, received);
        }
    }
}

/// Gives the statement of a COM_STMT_PREPARE_OK another id.
fn renumber(answer: &mut [u8], id: u32) {
    if let Some([.., 0, a, b, c, d]) = answer.get_mut(..9) {
        [*a, *b, *c, *d] = id.to_le_bytes();
    }
}
