//! The responder's two threads: datagrams, and connections for answers that fit in none. They look whether they are to stop
//! within [`TICK`].

use super::answer::{Answer, answer};
use super::table::Table;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a thread that has nothing to do looks around.
const TICK: Duration = Duration::from_millis(20);
/// What one datagram may hold unless the client allows more.
const DATAGRAM: usize = 512;
/// How long a client of TCP may take over its query, and we over our answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients of TCP at the same time; others wait to be accepted.
const CLIENTS: usize = 64;
/// Bytes of the length before a message of TCP.
const LENGTH: usize = 2;

/// Answers datagrams. Delayed answers wait aside, so that they delay no other.
pub(super) fn serve_udp(socket: &UdpSocket, table: &Table, stop: &AtomicBool) {
    let mut waiting: Vec<(Instant, SocketAddr, Vec<u8>)> = Vec::new();
    let mut packet = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        for (_, peer, bytes) in waiting.extract_if(.., |(due, ..)| *due <= now) {
            send(socket, &bytes, peer);
        }
        let due = waiting.iter().map(|(due, ..)| due.saturating_duration_since(now)).min();
        let nap = due.unwrap_or(TICK).clamp(Duration::from_millis(1), TICK);
        let received = socket.set_read_timeout(Some(nap)).and_then(|()| socket.recv_from(&mut packet));
        let (size, peer) = match received {
            Ok(received) => received,
            Err(error) if is_tick(&error) => continue,
            Err(error) => {
                log::error!("simulator: DNS over UDP: {error}");
                thread::sleep(TICK);
                continue;
            }
        };
        if let Some(Answer { bytes, after }) = ask(table, &packet[..size], Some(DATAGRAM)) {
            if after.is_zero() {
                send(socket, &bytes, peer);
            } else {
                waiting.push((Instant::now() + after, peer, bytes));
            }
        }
    }
}

/// Answers connections side by side: one that is slow, or says nothing, delays no other.
pub(super) fn serve_tcp(listener: &TcpListener, table: &Table, stop: &AtomicBool) {
    if let Err(error) = listener.set_nonblocking(true) {
        log::error!("simulator: DNS over TCP: {error}");
        return;
    }
    let mut clients: Vec<Client> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while clients.len() < CLIENTS {
            match listener.accept().and_then(|(stream, _)| Client::new(stream)) {
                Ok(client) => clients.push(client),
                Err(error) => {
                    if !is_tick(&error) {
                        log::error!("simulator: DNS over TCP: {error}");
                    }
                    break;
                }
            }
        }
        // Whatever goes wrong with one client is its own affair.
        clients.retain_mut(|client| client.go_on(table).is_err_and(|error| is_tick(&error)));
        thread::sleep(TICK);
    }
}

/// A connection, and how far its query or the answer to that has come. The length is a part of both.
struct Client {
    stream: TcpStream,
    query: Vec<u8>,
    answer: Vec<u8>,
    /// When the answer is to be sent.
    due: Instant,
    /// When it has taken too long.
    deadline: Instant,
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Self { stream, query: Vec::new(), answer: Vec::new(), due: now, deadline: now + PATIENCE })
    }

    /// Goes on as far as that needs no waiting, for one query at most. It ends with the reason why: [`is_tick`], or what ends the
    /// connection. So does an answer that is not to be given.
    fn go_on(&mut self, table: &Table) -> io::Result<Infallible> {
        if Instant::now() >= self.deadline {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if self.answer.is_empty() {
            self.read_query()?;
            let answer = ask(table, &self.query[LENGTH..], None).ok_or(ErrorKind::ConnectionAborted)?;
            let length = u16::try_from(answer.bytes.len()).map_err(io::Error::other)?;
            self.answer = [&length.to_be_bytes()[..], &answer.bytes].concat();
            self.query.clear();
            self.due = Instant::now() + answer.after;
            self.deadline = self.due + PATIENCE;
        }
        if Instant::now() >= self.due {
            while !self.answer.is_empty() {
                let sent = self.stream.write(&self.answer)?;
                self.answer.drain(..sent);
            }
            self.deadline = Instant::now() + PATIENCE;
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Reads until the query is whole.
    fn read_query(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM];
        loop {
            let whole = match self.query[..] {
                [high, low, ..] => LENGTH + usize::from(u16::from_be_bytes([high, low])),
                _ => LENGTH,
            };
            let missing = whole - self.query.len();
            if missing == 0 {
                return Ok(());
            }
            match self.stream.read(&mut buffer[..missing.min(DATAGRAM)])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                size => self.query.extend_from_slice(&buffer[..size]),
            }
        }
    }
}

fn ask(table: &Table, query: &[u8], limit: Option<usize>) -> Option<Answer> {
    answer(query, limit, |name| {
        table.entry(name).inspect_err(|error| log::error!("simulator: cannot read RDS_BGD_DNS: {error}"))
    })
}

fn send(socket: &UdpSocket, bytes: &[u8], peer: SocketAddr) {
    if let Err(error) = socket.send_to(bytes, peer) {
        log::warn!("simulator: DNS over UDP: cannot answer {peer}: {error}");
    }
}

/// Whether nothing has happened but time.
fn is_tick(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
