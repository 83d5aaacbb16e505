use super::*;
use crate::channel::Channel;
use crate::packet::{MAX_PAYLOAD, put_framed};
use crate::socket::tests::pair;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use std::thread;
use std::time::Duration;

const LIMIT: usize = 64 << 20;
const PARTIAL: Duration = Duration::from_secs(100);
const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd { level: 3 }];

fn channels(algorithm: Algorithm) -> (Channel, Channel) {
    let (client, server) = pair();
    let (mut client, mut server) = (Channel::new(client), Channel::new(server));
    client.compress(algorithm);
    server.compress(algorithm);
    (client, server)
}

/// A client that sends bytes of the test's making.
fn raw(algorithm: Algorithm) -> (Channel, Channel) {
    let (client, server) = pair();
    let mut server = Channel::new(server);
    server.compress(algorithm);
    (Channel::new(client), server)
}

fn squeeze(algorithm: Algorithm, payload: &[u8]) -> Vec<u8> {
    match algorithm {
        Algorithm::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(payload).unwrap();
            encoder.finish().unwrap()
        }
        Algorithm::Zstd { level } => zstd::bulk::compress(payload, level.into()).unwrap(),
    }
}

fn header(compressed: usize, sequence: u8, length: usize) -> Vec<u8> {
    let ([a, b, c, _], [d, e, f, _]) = ((compressed as u32).to_le_bytes(), (length as u32).to_le_bytes());
    vec![a, b, c, sequence, d, e, f]
}

/// A compressed packet with `payload`, which claims to be `length` bytes long.
fn packet(algorithm: Algorithm, sequence: u8, payload: &[u8], length: usize) -> Vec<u8> {
    let squeezed = squeeze(algorithm, payload);
    [header(squeezed.len(), sequence, length), squeezed].concat()
}

fn damaged<T>(result: Result<T, WireError>) -> bool {
    matches!(result, Err(WireError::Damaged(_)))
}
fn malformed<T>(result: Result<T, WireError>) -> bool {
    matches!(result, Err(WireError::Malformed(_)))
}

/// From MySQL's description of the protocol.
const CAPTURE: &[u8] =
    b"\x22\0\0\0\x32\0\0\x78\x9c\xd3\x63\x60\x60\x60\x2e\x4e\xcd\x49\x4d\x2e\x51\x50\x32\x30\x34\x32\x36\
    \x31\x35\x33\xb7\xb0\xc4\xcd\x52\x02\0\x0c\xd1\x0a\x6c";

#[test]
fn the_documented_packet_is_understood() {
    let (mut client, mut server) = raw(Algorithm::Zlib);
    client.write_raw(CAPTURE).unwrap();
    let command = server.read_command(LIMIT, PARTIAL).unwrap();
    assert_eq!(command.head, b"\x03select \"012345678901234567890123456789012345\"");
}

#[test]
fn short_packets_go_as_they_are() {
    for algorithm in BOTH {
        let (mut client, mut server) = raw(algorithm);
        client.write_raw(b"\x05\0\0\0\0\0\0\x01\0\0\0\x0E").unwrap();
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, b"\x0E");
        server.queue(b"fine");
        server.flush().unwrap();
        assert_eq!(client.fill().unwrap(), b"\x08\0\0\x01\0\0\0\x04\0\0\x01fine");
    }
}

#[test]
fn what_does_not_shrink_goes_as_it_is() {
    let mut noise = [0; 5000];
    openssl::rand::rand_bytes(&mut noise).unwrap();
    for algorithm in BOTH {
        let mut output = b"kept".to_vec();
        assert!(!compress(algorithm, &noise, &mut output));
        assert_eq!(output, b"kept");
        let (mut client, mut server) = channels(algorithm);
        client.queue(&noise);
        client.flush().unwrap();
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, noise);
    }
}

#[test]
fn repeated_bytes_shrink_and_every_state_serves_again() {
    for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 1 }, Algorithm::Zstd { level: 22 }] {
        for _ in 0..3 {
            let mut output = Vec::new();
            assert!(compress(algorithm, &[7; 10_000], &mut output));
            assert!(output.len() < 200);
            let mut decompression = Decompression::begin(algorithm).unwrap();
            let mut restored = [0; 10_000];
            let step = decompression.step(&output, &mut restored).unwrap();
            assert_eq!(step, Step { read: output.len(), written: 10_000, ended: true });
            assert_eq!(restored, [7; 10_000]);
            decompression.end(10_000);
        }
    }
}

#[test]
fn bounds_of_packets_need_not_agree() {
    for algorithm in BOTH {
        let (mut client, mut server) = raw(algorithm);
        let mut framed = Vec::new();
        put_framed(&mut framed, &mut 0, &[b'x'; 3000]);
        put_framed(&mut framed, &mut 0, &[b'y'; 100]);
        let (first, second) = framed.split_at(1000);
        let (second, third) = second.split_at(1500);
        let sent: Vec<u8> = [first, second, third]
            .iter()
            .zip(0..)
            .flat_map(|(part, sequence)| packet(algorithm, sequence, part, part.len()))
            .collect();
        client.write_raw(&sent).unwrap();
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, [b'x'; 3000]);
        assert!(server.buffered() > 0);
        server.queue(b"first");
        server.flush().unwrap();
        // The answer goes on with the numbers of the compressed packets.
        assert_eq!(client.fill().unwrap(), b"\x09\0\0\x03\0\0\0\x05\0\0\x01first");
        client.consume(16);
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, [b'y'; 100]);
        server.queue(b"second");
        server.flush().unwrap();
        assert_eq!(client.fill().unwrap(), b"\x0A\0\0\x01\0\0\0\x06\0\0\x01second");
    }
}

#[test]
fn a_command_sent_ahead_does_not_change_the_numbers_of_the_answer_before() {
    let (mut client, mut server) = raw(Algorithm::Zlib);
    let ping = b"\x05\0\0\0\0\0\0\x01\0\0\0\x0E";
    client.write_raw(&[ping, &ping[..]].concat()).unwrap();
    for _ in 0..2 {
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().head, b"\x0E");
        server.queue(b"ok");
        server.flush().unwrap();
        assert_eq!(client.fill().unwrap(), b"\x06\0\0\x01\0\0\0\x02\0\0\x01ok");
        client.consume(13);
    }
}

#[test]
fn packets_over_16_mib_pass_both_ways() {
    for algorithm in BOTH {
        for length in [MAX_PAYLOAD, MAX_PAYLOAD + 1] {
            let mut payload = (0..=250u8).collect::<Vec<_>>().repeat(length / 251 + 1);
            payload.truncate(length);
            let (mut client, mut server) = channels(algorithm);
            let sent = payload.clone();
            let sender = thread::spawn(move || {
                client.queue(&sent);
                client.flush().unwrap();
                assert!(client.read_packet(LIMIT, PARTIAL).unwrap() == sent);
            });
            let command = server.read_command(LIMIT, PARTIAL).unwrap();
            assert_eq!(command.length, length);
            server.queue(&payload);
            server.flush().unwrap();
            sender.join().unwrap();
        }
    }
}

#[test]
fn one_compressed_packet_may_hold_almost_16_mib() {
    for algorithm in BOTH {
        let (mut client, mut server) = raw(algorithm);
        let mut framed = Vec::new();
        put_framed(&mut framed, &mut 0, &vec![b'x'; MAX_PAYLOAD - 10]);
        let sent = packet(algorithm, 0, &framed, framed.len());
        client.write_raw(&sent).unwrap();
        assert_eq!(server.read_command(LIMIT, PARTIAL).unwrap().length, MAX_PAYLOAD - 10);
        assert_eq!(server.buffered(), 0);
    }
}

#[test]
fn numbers_inside_are_put_right_for_the_server() {
    let (mut client, mut server) = raw(Algorithm::Zlib);
    let mut framed = Vec::new();
    put_framed(&mut framed, &mut 9, &vec![b'x'; MAX_PAYLOAD + 1]);
    let sender = thread::spawn(move || {
        for (part, sequence) in framed.chunks(1 << 20).zip(0..) {
            client.write_raw(&packet(Algorithm::Zlib, sequence, part, part.len())).unwrap();
        }
        client
    });
    let command = server.read_command(LIMIT, PARTIAL).unwrap();
    assert_eq!((command.framed[3], command.framed[MAX_PAYLOAD + 7]), (0, 1));
    sender.join().unwrap();
}

#[test]
fn a_length_that_is_not_so_is_refused() {
    let payload = [&[0xE8, 0x03, 0, 0][..], &[b'x'; 1000]].concat();
    for algorithm in BOTH {
        for length in [1, 1003, 1005, 0xFF_FFFF] {
            let (mut client, mut server) = raw(algorithm);
            client.write_raw(&packet(algorithm, 0, &payload, length)).unwrap();
            let first = server.read_command(LIMIT, PARTIAL);
            // With a length too great, only what follows the packet shows it.
            assert!(damaged(first) || damaged(server.read_command(LIMIT, PARTIAL)), "{algorithm:?} {length}");
        }
        let squeezed = squeeze(algorithm, &payload);
        let longer = [header(squeezed.len() + 1, 0, 1004), squeezed.clone(), vec![0]].concat();
        let shorter = [header(squeezed.len() - 1, 0, 1004), squeezed].concat();
        for sent in [longer, shorter] {
            let (mut client, mut server) = raw(algorithm);
            client.write_raw(&sent).unwrap();
            let first = server.read_command(LIMIT, PARTIAL);
            assert!(damaged(first) || damaged(server.read_command(LIMIT, PARTIAL)), "{algorithm:?}");
        }
    }
}

#[test]
fn a_bomb_costs_no_memory() {
    for algorithm in BOTH {
        let (mut client, mut server) = raw(algorithm);
        let mut framed = Vec::new();
        put_framed(&mut framed, &mut 0, &vec![0; MAX_PAYLOAD - 10]);
        client.write_raw(&packet(algorithm, 0, &framed, framed.len())).unwrap();
        let refused = server.read_command(1 << 20, PARTIAL);
        assert!(matches!(refused, Err(WireError::TooLarge { limit: 1_048_576 })));
        assert!(server.input.len() <= 4096);
    }
}

#[test]
fn a_zstd_window_that_no_packet_needs_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&[b'x'; 1000]).unwrap();
    let frame = encoder.finish().unwrap();
    let (mut client, mut server) = raw(BOTH[1]);
    client.write_raw(&[header(frame.len(), 0, 1000), frame].concat()).unwrap();
    assert!(damaged(server.read_command(LIMIT, PARTIAL)));
}

#[test]
fn packets_out_of_order_are_refused() {
    let (mut client, mut server) = raw(Algorithm::Zlib);
    client.write_raw(&packet(Algorithm::Zlib, 1, b"\x01\0\0\0\x0E", 5)).unwrap();
    assert!(malformed(server.read_command(LIMIT, PARTIAL)));
}

#[test]
fn an_end_within_a_packet_is_no_goodbye() {
    let whole = packet(Algorithm::Zlib, 0, b"\x05\0\0\0hello", 9);
    for length in [3, 7, whole.len() - 6] {
        let (mut client, mut server) = raw(Algorithm::Zlib);
        client.write_raw(&whole[..length]).unwrap();
        drop(client);
        match server.read_command(LIMIT, PARTIAL) {
            Err(WireError::Io(error)) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof),
            other => panic!("{length}: {:?}", other.err()),
        }
    }
    let (client, mut server) = raw(Algorithm::Zlib);
    drop(client);
    assert!(matches!(server.read_command(LIMIT, PARTIAL), Err(WireError::Closed)));
}

#[test]
fn a_packet_begun_has_its_own_time_limit() {
    for length in [3, 12] {
        let (mut client, mut server) = raw(Algorithm::Zlib);
        client.write_raw(&packet(Algorithm::Zlib, 0, b"\x05\0\0\0hello", 9)[..length]).unwrap();
        assert!(
            server.read_command(LIMIT, Duration::from_millis(20)).err().unwrap().is_timeout(),
            "{length}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn packets_survive_any_chunking(
        payloads in prop::collection::vec(prop::collection::vec(0u8..4, 0..9000), 1..6),
        packets in prop::collection::vec(1usize..7000, 1..6),
        cuts in prop::collection::vec(1usize..5000, 1..6),
        zstd: bool,
    ) {
        let algorithm = BOTH[usize::from(zstd)];
        let (mut client, mut server) = raw(algorithm);
        let sent = payloads.clone();
        let sender = thread::spawn(move || {
            let (mut framed, mut wire, mut sequence) = (Vec::new(), Vec::new(), 0u8);
            sent.iter().for_each(|payload| put_framed(&mut framed, &mut 0, payload));
            let (mut rest, mut sizes) = (&framed[..], packets.iter().cycle());
            while !rest.is_empty() {
                let (part, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                wire.extend(packet(algorithm, sequence, part, part.len()));
                sequence = sequence.wrapping_add(1);
                rest = tail;
            }
            let (mut rest, mut cuts) = (&wire[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                client.write_raw(chunk).unwrap();
                rest = tail;
            }
            client
        });
        for payload in &payloads {
            prop_assert_eq!(server.read_packet(LIMIT, PARTIAL).unwrap(), &payload[..]);
        }
        prop_assert_eq!(server.buffered(), 0);
        sender.join().unwrap();
    }

    #[test]
    fn wild_bytes_end_and_never_panic(bytes: Vec<u8>, length in 0usize..0xFF_FFFF, zstd: bool, lie: bool) {
        let algorithm = BOTH[usize::from(zstd)];
        let (mut client, mut server) = raw(algorithm);
        let sent = if lie { packet(algorithm, 0, &bytes, length) } else {
            [header(bytes.len(), 0, length), bytes].concat()
        };
        client.write_raw(&sent).unwrap();
        drop(client);
        while server.read_packet(1 << 20, PARTIAL).is_ok() {}
    }

    #[test]
    fn channels_understand_one_another(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50_000), 1..4),
        level in 1u8..=22,
        zstd: bool,
    ) {
        let algorithm = if zstd { Algorithm::Zstd { level } } else { Algorithm::Zlib };
        let (mut client, mut server) = channels(algorithm);
        let sent = payloads.clone();
        let sender = thread::spawn(move || {
            for payload in &sent {
                client.reset_sequence();
                client.queue(payload);
                client.flush().unwrap();
                assert_eq!(client.read_packet(LIMIT, PARTIAL).unwrap(), payload);
            }
        });
        for payload in &payloads {
            let command = server.read_command(LIMIT, PARTIAL).unwrap();
            prop_assert_eq!(command.head, &payload[..]);
            server.queue(payload);
            server.flush().unwrap();
        }
        sender.join().unwrap();
    }
}
