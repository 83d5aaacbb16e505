//! Follows a server's answer to one command, byte by byte, without a socket and without holding rows: tells the forwarder
//! where the answer ends and what it said, and gives it the form that the client expects.

mod answer;
mod changes;
mod edit;
mod notices;
mod outcome;
mod translate;
mod whole;

use crate::packet::{HEADER, SEQUENCE};
use crate::{Command, WireError};
use answer::Answer;
pub use changes::{Changes, SessionChanges};
use edit::{Chunk, Head};
pub use notices::Notices;
pub use outcome::{Outcome, Prepared};
use translate::Translation;
pub use translate::{LASTING, Sides};
pub use whole::Whole;

/// State of one answer.
pub struct ResponseTracker<'a> {
    answer: Answer,
    translation: Translation<'a>,
    /// Bytes to come of a packet that passes, or of the present part of it.
    passing: usize,
    /// Whether the next part continues a packet that passes.
    continued: bool,
    /// The server's number of the last packet.
    sequence: u8,
    /// The beginning of a packet that cannot pass before more of it has come.
    kept: Vec<u8>,
    /// Bytes fed, until the number of the first packet was among them.
    fed: usize,
    /// The client has spoken last, in a command or a file of however many packets: the server's number goes on from its.
    client_spoke: bool,
}

/// What the bytes fed so far amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The answer goes on; all bytes belong to it.
    More,
    /// The answer is complete after this many of the bytes just fed (normally all of them).
    Done(usize),
    /// After this many bytes the server waits for the file that it has named (LOCAL INFILE): the client speaks next, in
    /// packets whose sequence numbers go on, the last of them empty. What the server says then is fed to the same tracker.
    FileWanted(usize),
}

/// What became of the bytes fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Where the answer stands.
    pub progress: Progress,
    /// What goes to the client was appended to the output; otherwise it is the bytes that belong to the answer, as they are
    /// now.
    pub rewritten: bool,
}

/// The server has said what does not belong into the answer.
#[derive(Debug)]
pub struct Broken {
    /// What is wrong.
    pub error: WireError,
    /// After this many of the bytes just fed, all of which belong to the answer.
    pub used: usize,
    /// As in [`Fed`].
    pub rewritten: bool,
}

impl<'a> ResponseTracker<'a> {
    /// For the answer to `command`.
    pub fn new(command: Command, sides: Sides<'a>) -> Self {
        Self {
            answer: Answer::new(command, &sides),
            translation: Translation::new(sides),
            passing: 0,
            continued: false,
            sequence: 0,
            kept: Vec::new(),
            fed: 0,
            client_spoke: true,
        }
    }
    /// Whether the command has an answer at all (COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA and COM_QUIT have none).
    pub fn expects_answer(command: Command) -> bool {
        !matches!(command, Command::COM_STMT_CLOSE | Command::COM_STMT_SEND_LONG_DATA | Command::COM_QUIT)
    }
    /// Feeds the next bytes as they came from the server, in any chunking. Sequence numbers may be changed in place; what
    /// changes the length goes to `out` with all the rest of these bytes. A packet that comes in pieces and may have to
    /// change is held back until it is complete.
    pub fn feed(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<Fed, Broken> {
        if self.fed == 0
            && self.answer.is_fresh()
            && !self.answer.reads_rows
            && let Some(whole) = Whole::see(bytes, self.answer.deprecates_eof)
            && let Some(rewritten) = self.translation.whole(&whole, self.answer.reads_first_row, bytes, out)
        {
            self.answer.take(&whole);
            (self.fed, self.sequence, self.client_spoke) = (bytes.len(), whole.sequence, false);
            return Ok(Fed { progress: Progress::Done(bytes.len()), rewritten });
        }
        self.feed_packets(bytes, out)
    }
    fn feed_packets(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<Fed, Broken> {
        let first = self.check_first_number(bytes);
        let mut chunk = Chunk::new(bytes, out);
        self.answer.resume();
        let fed = first.and_then(|()| self.feed_chunk(&mut chunk));
        let used = chunk.used();
        let rewritten = chunk.finish();
        let progress = match fed {
            Err(error) => return Err(Broken { error, used, rewritten }),
            Ok(false) => Progress::More,
            Ok(true) if self.answer.wants_file() => {
                self.client_spoke = true;
                Progress::FileWanted(used)
            }
            Ok(true) => Progress::Done(used),
        };
        Ok(Fed { progress, rewritten })
    }
    /// Whether the server is in the middle of a packet, or of definitions, which it sends together: it has no reason to pause.
    pub fn is_amid(&self) -> bool {
        self.is_amid_packet() || !self.kept.is_empty() || self.answer.is_amid_definitions()
    }
    fn is_amid_packet(&self) -> bool {
        self.passing > 0 || self.continued
    }
    /// Prepares for an error that takes the place of all that is to come, because the server is lost: what the client must have
    /// before it goes to `out`. Returns the error's number; `None` where the client could not take it for one.
    pub fn break_off(&mut self, out: &mut Vec<u8>) -> Option<u8> {
        if self.is_amid_packet() || !self.answer.may_fail() {
            return None;
        }
        let mut chunk = Chunk::new(&mut [], out);
        let number = self.translation.pass(&mut chunk, self.sequence.wrapping_add(1), false);
        chunk.finish();
        Some(number)
    }
    /// What the sequence numbers of the client's packets must be lessened by amid an answer, when it sends a file.
    pub fn shift(&self) -> u8 {
        self.translation.shift()
    }
    /// The number that the client's next packet has amid an answer.
    pub fn next_number(&self) -> u8 {
        self.sequence.wrapping_add(self.shift()).wrapping_add(1)
    }
    /// What the answer said, once `Done`.
    pub fn outcome(&self) -> &Outcome {
        &self.answer.outcome
    }
    /// As `outcome`.
    pub fn into_outcome(self) -> Outcome {
        self.answer.outcome
    }

    /// Answers are numbered from 1: 0 is what a server says unasked, before it closes an idle connection or one it kills.
    #[inline]
    fn check_first_number(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let Some(ahead) = SEQUENCE.checked_sub(self.fed) else { return Ok(()) };
        self.fed += bytes.len();
        if bytes.get(ahead) == Some(&0) { Err(WireError::Closed) } else { Ok(()) }
    }
    /// True if the server has said all that it has to say for the present.
    fn feed_chunk(&mut self, chunk: &mut Chunk<'_>) -> Result<bool, WireError> {
        self.passing = chunk.pass(self.passing);
        while self.passing == 0 && (self.continued || !self.answer.is_at_rest()) {
            let head = if self.kept.is_empty() { Head::of(chunk.rest()) } else { None };
            match head {
                Some(head) if self.passes(head) => {
                    self.check_number(head)?;
                    let number = self.begin_passing(chunk, head);
                    if number != head.sequence {
                        chunk.renumber(number);
                    }
                    self.passing = chunk.pass(HEADER + head.length);
                }
                Some(head) if chunk.rest().len() >= HEADER + head.length => {
                    self.check_number(head)?;
                    let said = self.answer.read(chunk.payload(head.length))?;
                    self.translation.packet(chunk, head, None, said)?;
                    self.sequence = head.sequence;
                    self.client_spoke = false;
                }
                _ if !self.keep(chunk)? => break,
                _ => {}
            }
        }
        let at_rest = self.passing == 0 && !self.continued && self.answer.is_at_rest();
        if at_rest {
            self.translation.end(chunk, self.sequence);
        }
        Ok(at_rest)
    }
    /// Packets are numbered one after the other; what is not is no answer.
    #[inline]
    fn check_number(&mut self, head: Head) -> Result<(), WireError> {
        match head.sequence == self.sequence.wrapping_add(1) || self.client_spoke {
            true => Ok(()),
            false => Err(WireError::Malformed("packets of an answer out of order")),
        }
    }
    #[inline]
    fn passes(&self, head: Head) -> bool {
        self.continued || !self.answer.reads(head.first, head.length)
    }
    /// Takes note of a packet, or part of one, that passes; returns the number that it has for the client.
    #[inline]
    fn begin_passing(&mut self, chunk: &mut Chunk<'_>, head: Head) -> u8 {
        let number = self.translation.pass(chunk, head.sequence, self.continued);
        if !self.continued && self.answer.pass() {
            self.translation.definitions_ended();
        }
        self.sequence = head.sequence;
        self.client_spoke = false;
        self.continued = head.continues();
        number
    }
    /// Takes bytes of a packet that comes in pieces out of the chunk: no more than tell whether it passes, or else all of
    /// it. False if the chunk has no more.
    fn keep(&mut self, chunk: &mut Chunk<'_>) -> Result<bool, WireError> {
        let Some(head) = Head::of(&self.kept) else {
            let byte = chunk.take(1);
            self.kept.extend_from_slice(byte);
            return Ok(!byte.is_empty());
        };
        let missing = (HEADER + head.length).saturating_sub(self.kept.len());
        self.check_number(head)?;
        if self.passes(head) {
            let number = self.begin_passing(chunk, head);
            let out = chunk.output();
            out.extend(
                self.kept.drain(..).enumerate().map(|(at, byte)| if at == SEQUENCE { number } else { byte }),
            );
            self.passing = chunk.pass(missing);
            return Ok(true);
        }
        self.kept.extend_from_slice(chunk.take(missing));
        if self.kept.len() < HEADER + head.length {
            return Ok(false);
        }
        let kept = std::mem::take(&mut self.kept);
        let payload = kept.get(HEADER..).unwrap_or_default();
        let said = self.answer.read(payload)?;
        self.translation.packet(chunk, head, Some(payload), said)?;
        self.sequence = head.sequence;
        self.client_spoke = false;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
