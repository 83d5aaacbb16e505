//! A bare TCP relay: a thread per connection that copies bytes both ways and looks at none of them.
//!
//! It is the yardstick of `make bench`: what a proxy with threads costs before it does anything for its cost.
//!
//!     relay LISTEN_ADDRESS SERVER_ADDRESS

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};

const BUFFER: usize = 16 << 10;
const STACK: usize = 128 << 10;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(server)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: relay LISTEN_ADDRESS SERVER_ADDRESS");
        std::process::exit(2);
    };
    for client in TcpListener::bind(listen)?.incoming() {
        let (client, server) = (client?, server.clone());
        let serve = move || {
            // A connection that fails ends; that is all there is to do about it.
            let _ = TcpStream::connect(server).and_then(|server| relay(client, server));
        };
        thread::Builder::new().stack_size(STACK).spawn(serve)?;
    }
    Ok(())
}

fn relay(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let mut ends = [PollFd::new(&client, PollFlags::IN), PollFd::new(&server, PollFlags::IN)];
        poll(&mut ends, None)?;
        let [from_client, from_server] = ends.map(|end| !end.revents().is_empty());
        if from_client && !copy(&client, &server, &mut buffer)? {
            return Ok(());
        }
        if from_server && !copy(&server, &client, &mut buffer)? {
            return Ok(());
        }
    }
}

/// Copies what one read gives; false at the end.
fn copy(mut from: &TcpStream, mut to: &TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    let count = from.read(buffer)?;
    to.write_all(buffer.get(..count).unwrap_or_default())?;
    Ok(count > 0)
}
