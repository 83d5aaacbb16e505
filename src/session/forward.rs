//! Passing a server's answer on, as it comes: one buffer, one write per read, whatever the size.

use super::infile::{self, pass_file};
use wire::WireError;
use wire::channel::Channel;
use wire::tracker::{Fed, Outcome, Progress, ResponseTracker};

/// How passing on an answer ended.
pub enum Relayed {
    /// The client has all of it. What the server said beyond it is still in its channel.
    Done(Outcome),
    /// The server failed before the client was told anything.
    Unanswered(WireError),
    /// The server failed in the middle of its answer, so that the client's stream is beyond repair.
    Truncated(WireError),
    /// The client failed, or took nothing for its time limit; the rest of the answer is still to come.
    ClientLost,
    /// The client sent a packet that does not continue its file; the server still waits for the rest.
    OutOfOrder,
    /// [`Tick::Cancel`]; the rest of the answer is still to come.
    Cancelled,
}

/// When the relay asks whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The time limit of the server's socket has passed without a byte.
    Silence,
    /// Part of the answer was passed on, and more is to come.
    MoreToCome,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// Go on.
    Continue,
    /// Give the answer up.
    Cancel,
}

/// Bytes of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// Bytes that came from the server.
    pub received: u64,
    /// Bytes that went to the client.
    pub sent: u64,
}

/// Passes on the answer that `tracker` follows. `tick` is asked at each pause.
pub fn relay(
    client: &mut Channel,
    server: &mut Channel,
    mut tracker: ResponseTracker<'_>,
    mut tick: impl FnMut(Pause) -> Tick,
) -> (Relayed, Volume) {
    let mut volume = Volume::default();
    // What the client had when it sent its last file: since then it awaits an answer anew.
    let mut before_file = 0;
    let end = loop {
        let pause = match pass(client, server, &mut tracker, &mut volume) {
            Ok(Progress::More) => Pause::MoreToCome,
            Ok(Progress::Done(_)) => break Relayed::Done(tracker.into_outcome()),
            Ok(Progress::FileWanted(_)) => {
                match pass_file(client, server, tracker.next_number(), tracker.shift()) {
                    Ok(()) => {
                        before_file = volume.sent;
                        Pause::MoreToCome
                    }
                    Err(infile::Failed::Client) => break Relayed::ClientLost,
                    Err(infile::Failed::OutOfOrder) => break Relayed::OutOfOrder,
                    Err(infile::Failed::Server(error)) => break Relayed::Unanswered(error),
                }
            }
            Err(Failed::Client) => break Relayed::ClientLost,
            Err(Failed::Server(error)) if error.is_timeout() => Pause::Silence,
            Err(Failed::Server(error)) => break failed(error, volume.sent - before_file),
        };
        if tick(pause) == Tick::Cancel {
            break Relayed::Cancelled;
        }
    };
    (end, volume)
}

/// Who cannot go on.
enum Failed {
    Client,
    Server(WireError),
}

fn failed(error: WireError, told: u64) -> Relayed {
    match told {
        0 => Relayed::Unanswered(error),
        _ => Relayed::Truncated(error),
    }
}

/// Passes on what one read from the server gives.
fn pass(
    client: &mut Channel,
    server: &mut Channel,
    tracker: &mut ResponseTracker<'_>,
    volume: &mut Volume,
) -> Result<Progress, Failed> {
    let bytes = server.fill().map_err(Failed::Server)?;
    let queued = client.queued();
    let Fed { progress, rewritten } = match tracker.feed(bytes, client.output()) {
        Ok(fed) => fed,
        Err(error) => {
            // What was made of these bytes so far is no packet.
            client.output().truncate(queued);
            return Err(Failed::Server(error));
        }
    };
    let used = match progress {
        Progress::More => bytes.len(),
        Progress::Done(used) | Progress::FileWanted(used) => used,
    };
    let (written, length) = match rewritten {
        true => {
            let length = client.queued() - queued;
            (client.flush(), length)
        }
        false => (client.write_raw(bytes.get(..used).unwrap_or_default()), used),
    };
    written.map_err(|_| Failed::Client)?;
    volume.received += used as u64;
    volume.sent += length as u64;
    server.consume(used);
    Ok(progress)
}
