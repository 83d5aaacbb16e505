//! Passing a server's answer on, as it comes: one buffer, one write per read, whatever the size.

use wire::WireError;
use wire::channel::Channel;
use wire::infile::{self, pass_file};
use wire::tracker::{Broken, Fed, Progress, ResponseTracker};

/// Why a server is given up that says no more.
const STALLED: WireError = WireError::Malformed("an answer that stops within a packet");

/// How passing on an answer ended.
pub enum Relayed {
    /// All of it has come, and the client has all but its last piece ([`deliver`]). What the server said beyond it is still in its
    /// channel.
    Done(Last),
    /// The server failed where the client can be told: the next packet may be an error.
    Lost(WireError),
    /// The server failed in the middle of a packet, or where no error can stand, so that the client's stream is beyond repair.
    Truncated(WireError),
    /// The client failed, or took nothing for its time limit; the rest of the answer is still to come.
    ClientLost,
    /// The client sent a packet that does not continue its file; the server still waits for the rest.
    OutOfOrder,
    /// [`Tick::Cancel`]; the rest of the answer is still to come.
    Cancelled,
}

/// The last piece of an answer.
pub struct Last {
    /// Bytes of it that the server's channel still has.
    pub used: usize,
    /// What goes to the client is queued there.
    pub rewritten: bool,
}

/// Gives the client the last piece of an answer; false if it has failed. By then the answer has been taken note of, so that who has it
/// finds it counted.
pub fn deliver(client: &mut Channel, server: &mut Channel, last: &Last) -> bool {
    let written = match last.rewritten {
        true => client.flush(),
        false => client.write_raw(server.pending().get(..last.used).unwrap_or_default()),
    };
    server.consume(last.used);
    written.is_ok()
}

/// When the relay asks whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The time limit of the server's socket has passed without a byte.
    Silence,
    /// The same, where a server has no reason to pause.
    Stall,
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
    /// Give the server up.
    GiveUp,
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
    tracker: &mut ResponseTracker<'_>,
    mut tick: impl FnMut(Pause) -> Tick,
) -> (Relayed, Volume) {
    let mut volume = Volume::default();
    // What the client had when it sent its last file: since then it awaits an answer anew.
    let mut before_file = 0;
    let end = loop {
        let pause = match pass(client, server, tracker, &mut volume) {
            Ok(Passed::More) => Pause::MoreToCome,
            Ok(Passed::Last(last)) => break Relayed::Done(last),
            Ok(Passed::FileWanted) => {
                match pass_file(client, server, tracker.next_number(), tracker.shift()) {
                    Ok(()) => {
                        before_file = volume.sent;
                        Pause::MoreToCome
                    }
                    Err(infile::Failed::Client) => break Relayed::ClientLost,
                    Err(infile::Failed::OutOfOrder) => break Relayed::OutOfOrder,
                    Err(infile::Failed::Server(error)) => break Relayed::Lost(error),
                }
            }
            Err(Failed::Client) => break Relayed::ClientLost,
            Err(Failed::Server(error)) if error.is_timeout() => match tracker.is_amid() {
                true => Pause::Stall,
                false => Pause::Silence,
            },
            Err(Failed::Server(error)) => break failed(client, tracker, error, volume.sent - before_file),
        };
        match tick(pause) {
            Tick::Continue => {}
            Tick::Cancel => break Relayed::Cancelled,
            Tick::GiveUp => break failed(client, tracker, STALLED, volume.sent - before_file),
        }
    };
    (end, volume)
}

/// Who cannot go on.
enum Failed {
    Client,
    Server(WireError),
}

/// What is left when the server has failed: the client's stream is made ready for an error, if one can be told.
fn failed(client: &mut Channel, tracker: &mut ResponseTracker<'_>, error: WireError, told: u64) -> Relayed {
    if told > 0 {
        let Some(number) = tracker.break_off(client.output()) else { return Relayed::Truncated(error) };
        client.set_sequence(number);
    }
    Relayed::Lost(error)
}

/// What one read from the server amounts to.
enum Passed {
    More,
    FileWanted,
    /// The answer ends with what was read, which is still to be delivered.
    Last(Last),
}

/// Passes on what one read from the server gives, unless the answer ends with it.
fn pass(
    client: &mut Channel,
    server: &mut Channel,
    tracker: &mut ResponseTracker<'_>,
    volume: &mut Volume,
) -> Result<Passed, Failed> {
    let bytes = server.fill().map_err(Failed::Server)?;
    let queued = client.queued();
    let (rewritten, used, passed) = match tracker.feed(bytes, client.output()) {
        Ok(Fed { progress: Progress::More, rewritten }) => (rewritten, bytes.len(), Ok(Passed::More)),
        Ok(Fed { progress: Progress::FileWanted(used), rewritten }) => {
            (rewritten, used, Ok(Passed::FileWanted))
        }
        Ok(Fed { progress: Progress::Done(used), rewritten }) => {
            volume.received += used as u64;
            return Ok(Passed::Last(Last { used, rewritten }));
        }
        Err(Broken { error, used, rewritten }) => (rewritten, used, Err(Failed::Server(error))),
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
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;
    use wire::socket::Socket;
    use wire::tracker::Sides;
    use wire::{CapabilityFlags, Command};

    /// The relay's end of a connection, and the other one.
    fn pair() -> (Channel, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = Socket::new(listener.accept().unwrap().0).unwrap();
        near.set_timeouts(Some(Duration::from_millis(1)), None);
        (Channel::new(near), far)
    }

    #[test]
    fn a_server_that_stops_within_a_packet_may_be_given_up() {
        // The column count; a definition or its beginning; a row or its beginning.
        let row = b"\x01\0\0\x01\x01\x05\0\0\x02\x03defx\x02\0\0\x03\x01x";
        for (said, stalls, can_be_told) in
            [(&row[..2], true, true), (&row[..5], true, false), (&row[..19], true, false), (row, false, true)]
        {
            let (mut client, mut program) = pair();
            let (mut server, mut database) = pair();
            database.write_all(said).unwrap();
            let sides = Sides::same(CapabilityFlags::CLIENT_DEPRECATE_EOF);
            let mut tracker = ResponseTracker::new(Command::COM_QUERY, sides);
            let mut seen = None;
            let (end, volume) = relay(&mut client, &mut server, &mut tracker, |pause| {
                seen = Some(pause).filter(|pause| *pause != Pause::MoreToCome);
                if seen.is_some() { Tick::GiveUp } else { Tick::Continue }
            });
            let expected = if stalls { Pause::Stall } else { Pause::Silence };
            assert_eq!(seen, Some(expected), "{said:?}");
            assert_eq!(matches!(end, Relayed::Lost(_)), can_be_told, "{said:?}");
            let mut told = vec![0; volume.sent as usize];
            program.read_exact(&mut told).unwrap();
            assert!(row.starts_with(&told));
        }
    }
}
