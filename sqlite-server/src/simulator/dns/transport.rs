//! The responder's two threads: datagrams, and connections for answers that fit in none. They look whether they are to stop
//! within [`TICK`].

use super::answer::{Answer, answer};
use super::table::Table;
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

/// Answers connections, one at a time.
pub(super) fn serve_tcp(listener: &TcpListener, table: &Table, stop: &AtomicBool) {
    if let Err(error) = listener.set_nonblocking(true) {
        log::error!("simulator: DNS over TCP: {error}");
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // Whatever goes wrong with one client is its own affair.
            Ok((stream, _)) => drop(serve_client(stream, table, stop)),
            Err(error) => {
                if !is_tick(&error) {
                    log::error!("simulator: DNS over TCP: {error}");
                }
                thread::sleep(TICK);
            }
        }
    }
}

/// Answers the queries of one client until it leaves, says nothing for a while, or gets no answer.
fn serve_client(mut stream: TcpStream, table: &Table, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    while !stop.load(Ordering::Relaxed) {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query)?;
        let Some(Answer { bytes, after }) = ask(table, &query, None) else { break };
        let due = Instant::now() + after;
        while Instant::now() < due && !stop.load(Ordering::Relaxed) {
            thread::sleep(TICK.min(due.saturating_duration_since(Instant::now())));
        }
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat())?;
    }
    Ok(())
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
