//! Mutable DNS: a responder that answers from the table RDS_BGD_DNS, over UDP and TCP. Off until a statement asks for it:
//! `SELECT rds_bgd_dns_listen('127.0.0.1:0')` says where it listens, an empty address ends it.

mod answer;
mod table;
mod transport;

pub(super) use table::TABLE;

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use table::Table;

/// The function that opens and closes the responder.
const FUNCTION: &str = "rds_bgd_dns_listen";

/// How often a free port is looked for that UDP and TCP both have.
const PORT_TRIES: u32 = 20;

/// The responder, if there is one.
pub(super) struct Dns {
    file: PathBuf,
    running: Mutex<Option<Responder>>,
}

impl Dns {
    /// None yet; it will answer from this database file.
    pub(super) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), running: Mutex::new(None) }
    }

    /// Makes the function known to a session.
    pub(super) fn define(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let dns = Arc::clone(self);
        // Not in triggers and views: there it would run behind the back of whoever wrote the statement.
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
        connection.create_scalar_function(FUNCTION, 1, flags, move |context| {
            let address: String = context.get(0)?;
            dns.listen(&address).map_err(|reason| rusqlite::Error::UserFunctionError(reason.into()))
        })
    }

    /// Listens on `ADDRESS:PORT` in place of the address before, and says where that is (the port may be 0); nowhere where
    /// the address is empty. An address that cannot be had changes nothing.
    fn listen(&self, address: &str) -> Result<String, String> {
        let wanted = match address {
            "" => None,
            address => Some(parse(address)?),
        };
        let Some(wanted) = wanted else {
            // Its threads are joined without the lock.
            let before = self.running.lock().take();
            drop(before);
            return Ok(String::new());
        };
        if self.running.lock().as_ref().is_some_and(|running| running.address == wanted) {
            return Ok(wanted.to_string());
        }
        let responder = Responder::start(wanted, &self.file).map_err(|error| {
            format!("{FUNCTION}: cannot listen on {wanted}: {error}; choose another address")
        })?;
        let bound = responder.address;
        let replaced = self.running.lock().replace(responder);
        drop(replaced);
        Ok(bound.to_string())
    }
}

/// An address that the responder may have: it is for this machine alone.
fn parse(address: &str) -> Result<SocketAddr, String> {
    let parsed: SocketAddr = address.parse().map_err(|_| {
        format!("{FUNCTION}: '{address}' is no ADDRESS:PORT; 127.0.0.1:0 takes any free port")
    })?;
    match parsed.ip().is_loopback() {
        true => Ok(parsed),
        false => Err(format!("{FUNCTION}: {parsed} is not a loopback address, as in 127.0.0.1:0")),
    }
}

/// The threads that answer. Dropping it stops and joins them.
struct Responder {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Responder {
    fn start(wanted: SocketAddr, file: &Path) -> io::Result<Self> {
        let (udp, tcp) = bind(wanted)?;
        let mut responder =
            Self { address: udp.local_addr()?, stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let table = |file| Table::open(file).map_err(io::Error::other);
        let (udp_table, tcp_table) = (table(file)?, table(file)?);
        let stop = Arc::clone(&responder.stop);
        responder.spawn("bgd-dns-udp", move || transport::serve_udp(&udp, &udp_table, &stop))?;
        let stop = Arc::clone(&responder.stop);
        responder.spawn("bgd-dns-tcp", move || transport::serve_tcp(&tcp, &tcp_table, &stop))?;
        Ok(responder)
    }

    fn spawn(&mut self, name: &str, serve: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(thread::Builder::new().name(name.into()).spawn(serve)?);
        Ok(())
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("simulator: a thread of the DNS responder panicked");
            }
        }
    }
}

/// Binds both protocols to one port. With port 0 UDP's choice may be taken for TCP: then another one is tried.
fn bind(wanted: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut tries = if wanted.port() == 0 { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let udp = UdpSocket::bind(wanted)?;
        match TcpListener::bind(udp.local_addr()?) {
            Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            tcp => return Ok((udp, tcp?)),
        }
    }
}

#[cfg(test)]
mod tests;
