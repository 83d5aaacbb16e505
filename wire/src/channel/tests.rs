use super::*;
use crate::packet::MAX_PAYLOAD;
use crate::socket::tests::pair;
use proptest::prelude::*;
use std::io;
use std::thread;

const LIMIT: usize = 64 << 20;
const PARTIAL: Duration = Duration::from_secs(100);

fn channels() -> (Channel, Channel) {
    let (client, server) = pair();
    (Channel::new(client), Channel::new(server))
}

/// Sends bytes from a thread of their own, so that they may exceed what the kernel buffers.
fn send(mut socket: Socket, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    thread::spawn(move || socket.write_all(&bytes).unwrap())
}

#[test]
fn the_answer_carries_the_next_sequence_number() {
    let (mut client, mut server) = channels();
    client.set_sequence(6);
    client.queue(b"hello");
    client.flush().unwrap();
    assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), b"hello");
    server.queue(b"world");
    assert_eq!(server.queued(), 9);
    server.flush().unwrap();
    assert_eq!(client.read_packet(LIMIT, PARTIAL).unwrap(), b"world");
    client.queue(b"!");
    assert_eq!(client.output, b"\x01\0\0\x08!");
}

#[test]
fn commands_are_numbered_from_0() {
    let (mut client, mut server) = channels();
    client.queue_raw(b"\x05\0\0\0hello\x05\0\0\x07world");
    client.flush().unwrap();
    let command = server.read_command(LIMIT, PARTIAL).unwrap();
    assert_eq!(command.framed, b"\x05\0\0\0hello");
    assert_eq!((command.head, command.length), (&b"hello"[..], 5));
    assert!(matches!(server.read_command(LIMIT, PARTIAL), Err(WireError::Malformed(_))));
}

#[test]
fn pipelined_packets_come_one_by_one() {
    let (mut client, mut server) = channels();
    client.queue_raw(b"\x01\0\0\0a\0\0\0\x01\x02\0\0\0bc");
    client.flush().unwrap();
    assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), b"a");
    assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), b"");
    assert_eq!(server.buffered(), 6);
    assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), b"bc");
    drop(client);
    assert!(matches!(server.read_packet(LIMIT, PARTIAL), Err(WireError::Closed)));
}

#[test]
fn large_packets_are_joined_or_kept_as_they_came() {
    for length in [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD] {
        let mut payload = (0..=250u8).collect::<Vec<_>>().repeat(length / 251 + 1);
        payload.truncate(length);
        let (client, server) = pair();
        let mut server = Channel::new(server);
        let mut framed = Vec::new();
        put_framed(&mut framed, &mut 0, &payload);
        let sender = send(client, [framed.clone(), framed.clone()].concat());
        let command = server.read_command(LIMIT, PARTIAL).unwrap();
        assert!(command.framed == framed && command.length == length);
        assert!(command.head == &payload[..length.min(MAX_PAYLOAD)]);
        assert!(server.read_packet(LIMIT, PARTIAL).unwrap() == payload);
        sender.join().unwrap();
        server.shrink();
        assert_eq!(server.input.capacity(), IDLE_BUFFER);
    }
}

#[test]
fn a_packet_over_the_limit_is_refused_by_its_header() {
    let (mut client, mut server) = channels();
    client.write_raw(b"\xFF\xFF\xFE\x03").unwrap();
    assert!(matches!(server.read_packet(1000, PARTIAL), Err(WireError::TooLarge { limit: 1000 })));
    assert!(server.input.len() <= IDLE_BUFFER);
    // The refusal follows the packet.
    server.queue(b"");
    assert_eq!(server.output, [0, 0, 0, 4]);
    let (mut client, mut server) = channels();
    client.write_raw(b"\x05\0\0\0hello\x04\0\0\0here").unwrap();
    assert!(
        matches!(server.read_command(4, PARTIAL), Err(WireError::TooLarge { limit: 4 })),
        "it came whole"
    );
}

#[test]
fn little_memory_is_doubled_and_much_is_what_the_packet_takes() {
    let (client, mut server) = channels();
    let client = client.stream().socket().clone();
    let holds = |server: &Channel| server.input.len();
    for (length, expected) in
        [(FIRST_BUFFER - HEADER, 1), (FIRST_BUFFER, 2), (2 * FIRST_BUFFER - HEADER, 2), (5000, 0)]
    {
        let sender = send(client.clone(), framed(&vec![b'x'; length]));
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().length, length);
        sender.join().unwrap();
        let expected = if expected == 0 { HEADER + length } else { expected * FIRST_BUFFER };
        assert_eq!(holds(&server), expected, "{length}");
    }
}

#[test]
fn a_header_alone_claims_no_memory() {
    let (mut client, mut server) = channels();
    client.write_raw(b"\xFE\xFF\xFF\0some of it").unwrap();
    let result = server.read_packet(LIMIT, Duration::from_millis(20));
    assert!(result.err().unwrap().is_timeout());
    assert!(server.input.len() <= IDLE_BUFFER);
}

#[test]
fn a_packet_begun_has_its_own_time_limit() {
    let (mut client, mut server) = channels();
    let idle = Some(Duration::from_secs(1000));
    server.stream().socket().set_timeouts(idle, None);
    client.write_raw(b"\x05\0\0").unwrap();
    assert!(server.read_packet(LIMIT, Duration::from_millis(20)).err().unwrap().is_timeout());
    assert_eq!(server.stream().socket().replace_read_timeout(idle), idle);
    // What came is kept, and the rest completes it.
    client.write_raw(b"\0hello").unwrap();
    assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), b"hello");
}

#[test]
fn an_end_within_a_packet_is_no_goodbye() {
    let (mut client, mut server) = channels();
    client.write_raw(b"\x05\0\0\0he").unwrap();
    drop(client);
    match server.read_packet(LIMIT, PARTIAL) {
        Err(WireError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deadline_bounds_a_packet_that_trickles_in() {
    let (client, server) = pair();
    let mut server = Channel::new(server);
    server.set_deadline(Some(Instant::now() + Duration::from_millis(50)));
    let sender = thread::spawn(move || {
        let mut client = client;
        while client.write_all(b"\x50\0\0\0aaaaaa").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    while server.read_packet(LIMIT, PARTIAL).is_ok() {}
    assert!(server.read_packet(LIMIT, PARTIAL).err().unwrap().is_timeout());
    drop(server);
    sender.join().unwrap();
}

#[test]
fn forwarding_reads_what_is_there() {
    let (mut client, mut server) = channels();
    client.queue_raw(b"abc");
    client.write_raw(b"def").unwrap();
    assert_eq!(server.fill().unwrap(), b"abcdef");
    server.consume(2);
    assert_eq!(server.fill().unwrap(), b"cdef");
    server.consume(100);
    assert_eq!(server.buffered(), 0);
    drop(client);
    assert!(matches!(server.fill(), Err(WireError::Closed)));
}

#[test]
fn a_large_answer_gets_the_larger_buffer() {
    let (client, server) = pair();
    let mut server = Channel::new(server);
    let sender = send(client, vec![7; 200_000]);
    let mut total = 0;
    while total < 200_000 {
        let count = server.fill().unwrap().len();
        total += count;
        server.consume(count);
    }
    sender.join().unwrap();
    assert_eq!(server.input.len(), FORWARD_BUFFER);
    server.shrink();
    assert_eq!(server.input.capacity(), IDLE_BUFFER);
}

#[test]
fn a_gentle_close_lets_the_last_words_arrive() {
    let (mut client, mut server) = channels();
    client.write_raw(&[0; 100_000]).unwrap();
    server.queue(b"too much");
    server.flush().unwrap();
    let closing = thread::spawn(move || server.close_gently(PARTIAL));
    assert_eq!(client.read_packet(LIMIT, PARTIAL).unwrap(), b"too much");
    drop(client);
    closing.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn packets_survive_any_chunking(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6000), 1..6),
        cuts in prop::collection::vec(1usize..5000, 1..6),
        commands: bool,
    ) {
        let (client, server) = pair();
        let mut server = Channel::new(server);
        let sent = payloads.clone();
        let sender = thread::spawn(move || {
            let (mut client, mut framed) = (client, Vec::new());
            sent.iter().for_each(|payload| put_framed(&mut framed, &mut 0, payload));
            let (mut rest, mut cuts) = (&framed[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                client.write_all(chunk).unwrap();
                rest = tail;
            }
        });
        for payload in &payloads {
            if commands {
                let command = server.read_command(LIMIT, PARTIAL).unwrap();
                prop_assert_eq!(command.head, &payload[..]);
                prop_assert_eq!(&command.framed[HEADER..], &payload[..]);
            } else {
                prop_assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), &payload[..]);
            }
        }
        sender.join().unwrap();
    }
}
