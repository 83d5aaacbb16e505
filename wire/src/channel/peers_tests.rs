//! Peers that are slow, hasty, or gone, over each kind of stream.

use super::*;
use crate::CapabilityFlags;
use crate::auth::{AuthPlugin, Secret};
use crate::backend::{Backend, ConnectOptions};
use crate::packet::MAX_PAYLOAD;
use crate::socket::tests::pair;
use crate::testing::{Server, options};
use crossbeam_channel::{Receiver, unbounded};
use std::thread;

const LIMIT: usize = 64 << 20;
const PARTIAL: Duration = Duration::from_secs(100);

/// Two ends, inside TLS or not, compressed or not.
fn ends(tls: bool, compression: Option<Algorithm>) -> (Channel, Channel) {
    let (client, server) = pair();
    let (mut client, mut server) = (Channel::new(client), Channel::new(server));
    if tls {
        let keys = crate::tls::tests::server_tls();
        let accepting = thread::spawn(move || server.upgrade(|socket| keys.accept(socket)));
        let tls = crate::tls::tests::unverified(true).unwrap();
        client = client.upgrade(|socket| tls.connect(socket, "localhost")).unwrap();
        server = accepting.join().unwrap().unwrap();
    }
    if let Some(algorithm) = compression {
        client.compress(algorithm);
        server.compress(algorithm);
    }
    (client, server)
}

const KINDS: [(bool, Option<Algorithm>); 5] = [
    (false, None),
    (true, None),
    (false, Some(Algorithm::Zlib)),
    (true, Some(Algorithm::Zlib)),
    (true, Some(Algorithm::Zstd { level: 3 })),
];

#[test]
fn a_write_to_a_peer_that_takes_nothing_ends() {
    let mut noise = vec![0; 1 << 18];
    openssl::rand::rand_bytes(&mut noise).unwrap();
    for (tls, compression) in KINDS {
        let (_client, mut server) = ends(tls, compression);
        server.stream().socket().set_timeouts(None, Some(Duration::from_millis(20)));
        let error = loop {
            if let Err(error) = server.write_raw(&noise) {
                break error;
            }
        };
        assert!(error.is_timeout(), "tls={tls} {compression:?}: {error}");
    }
}

#[test]
fn an_idle_peer_is_given_up() {
    for (tls, compression) in KINDS {
        let (_client, mut server) = ends(tls, compression);
        server.stream().socket().set_timeouts(Some(Duration::from_millis(20)), None);
        assert!(server.read_command(LIMIT, PARTIAL).err().unwrap().is_timeout(), "tls={tls} {compression:?}");
    }
}

#[test]
fn a_peer_that_has_ended_its_direction_says_goodbye_once_and_for_all() {
    for (tls, compression) in KINDS {
        let (mut client, mut server) = ends(tls, compression);
        client.queue(b"\x0E");
        client.flush().unwrap();
        client.stream().socket().shutdown(Shutdown::Write);
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, b"\x0E");
        // It may still read.
        server.write_raw(b"\x01\0\0\x01x").unwrap();
        assert_eq!(client.read_packet(LIMIT, PARTIAL).unwrap(), b"x");
        for _ in 0..3 {
            assert!(matches!(server.read_command(LIMIT, PARTIAL), Err(WireError::Closed)), "tls={tls}");
        }
    }
}

#[test]
fn what_waits_inside_is_counted() {
    for (tls, compression) in KINDS {
        let (mut client, mut server) = ends(tls, compression);
        // Written at once, so that they come at once.
        let (mut framed, mut rest) = (Vec::new(), 2);
        put_framed(&mut framed, &mut 0, &[b'x'; 700]);
        client.write_raw(&framed.repeat(3)).unwrap();
        loop {
            assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), [b'x'; 700]);
            if rest == 0 {
                break;
            }
            assert!(server.buffered() > 0, "tls={tls} {compression:?}");
            rest -= 1;
        }
        assert_eq!(server.buffered(), 0, "tls={tls} {compression:?}");
    }
}

#[test]
fn a_packet_in_many_parts_is_refused_where_it_exceeds_the_limit() {
    let (client, server) = pair();
    let mut server = Channel::new(server);
    let sender = thread::spawn(move || {
        let mut client = Channel::new(client);
        let part = [&[0xFF, 0xFF, 0xFF, 0][..], &vec![b'x'; MAX_PAYLOAD]].concat();
        client.write_raw(&part).unwrap();
        // The second part's header is enough.
        client.write_raw(&[0xFF, 0xFF, 0xFF, 1]).unwrap();
        client
    });
    let limit = MAX_PAYLOAD + 1000;
    assert!(matches!(server.read_command(limit, PARTIAL), Err(WireError::TooLarge { .. })));
    assert!(server.input.len() <= MAX_PAYLOAD + IDLE_BUFFER, "{}", server.input.len());
    sender.join().unwrap();
}

/// A client of an echo server, and how the server's side ended.
fn logged_in(tls: bool, compress: bool) -> (Server, Backend, Receiver<Result<(), WireError>>) {
    let (sender, ended) = unbounded();
    let server =
        Server::start_with(options(AuthPlugin::Native, true), move |result| sender.send(result).unwrap());
    let mut capabilities = crate::login::CAPABILITIES.difference(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
    capabilities.set(CapabilityFlags::CLIENT_COMPRESS, compress);
    let client = Backend::connect(&ConnectOptions {
        address: server.address,
        tls: crate::tls::tests::unverified(tls),
        server_name: "localhost",
        user: "clear",
        secret: &Secret::Clear("sesame".to_owned()),
        database: None,
        capabilities,
        collation: 45,
        attributes: &[],
        deadline: Instant::now() + PARTIAL,
    });
    (server, client.unwrap(), ended)
}

fn query(sql: &str) -> Vec<u8> {
    let mut framed = Vec::new();
    put_framed(&mut framed, &mut 0, &[b"\x03", sql.as_bytes()].concat());
    framed
}

#[test]
fn commands_that_come_together_are_answered_in_turn() {
    for (tls, compress) in [(false, false), (true, false), (false, true), (true, true)] {
        let (_server, mut client, _) = logged_in(tls, compress);
        assert_eq!(client.channel.is_compressed(), compress);
        let commands = ["ok first", "long 5000000", "ok second", "ok third"];
        client.channel.write_raw(&commands.map(query).concat()).unwrap();
        // Nothing is read before all has been sent, so that the long answer waits for its reader with commands behind it.
        let mut oks = Vec::new();
        while oks.len() < 3 {
            let payload = client.channel.read_packet(LIMIT, PARTIAL).unwrap();
            if payload.starts_with(b"\0\x03\x07") {
                oks.push(payload.to_vec());
            }
        }
        for (ok, name) in oks.iter().zip(["first", "second", "third"]) {
            assert!(ok.ends_with(name.as_bytes()), "{ok:?}");
        }
    }
}

#[test]
fn garbage_inside_tls_ends_the_connection() {
    let (_server, client, ended) = logged_in(true, false);
    let mut socket = client.channel.stream().socket().clone();
    socket.write_all(&[0xFF; 100]).unwrap();
    let end = ended.recv_timeout(PARTIAL).unwrap();
    assert!(end.is_err());
}

#[test]
fn a_record_begun_and_left_ends_the_connection() {
    let (_server, client, ended) = logged_in(true, false);
    let mut socket = client.channel.stream().socket().clone();
    // Application data of 256 bytes, of which three come.
    socket.write_all(&[23, 3, 3, 1, 0, 1, 2, 3]).unwrap();
    socket.shutdown(Shutdown::Write);
    ended.recv_timeout(PARTIAL).unwrap().unwrap();
}
