//! Servers that lie, stall or talk nonsense.

use super::tests::soon;
use super::*;
use crate::packet::put_framed;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// A valid greeting of a MySQL server whose default is caching_sha2_password.
fn greeting(plugin: &str) -> Vec<u8> {
    let capabilities = (crate::login::CAPABILITIES | CapabilityFlags::CLIENT_SSL).bits().to_le_bytes();
    let mut payload = b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0".to_vec();
    payload.extend_from_slice(&[
        capabilities[0],
        capabilities[1],
        45,
        2,
        0,
        capabilities[2],
        capabilities[3],
        21,
    ]);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    payload
}

/// Logs in to a server that sends these packets, whatever it is told. Returns what it was told, too.
fn log_in(packets: &[Vec<u8>], secret: &Secret) -> (Result<Backend, WireError>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut script = Vec::new();
    let mut sequence = 0;
    for packet in packets {
        put_framed(&mut script, &mut sequence, packet);
    }
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The client may leave in the middle.
        let _ = stream.write_all(&script);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told);
        told
    });
    let result = Backend::connect(&ConnectOptions {
        address,
        tls: None,
        server_name: "",
        user: "bob",
        secret,
        database: None,
        capabilities: crate::login::CAPABILITIES,
        collation: 45,
        attributes: &[],
        deadline: soon(),
    });
    match result {
        Ok(backend) => {
            backend.channel.stream().socket().shutdown(std::net::Shutdown::Both);
            (Ok(backend), server.join().unwrap())
        }
        failed => (failed, server.join().unwrap()),
    }
}

fn switch_to(plugin: &str) -> Vec<u8> {
    [b"\xFE", plugin.as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat()
}
fn clear() -> Secret {
    Secret::Clear("sesame".to_owned())
}
fn code(result: &Result<Backend, WireError>) -> Option<u16> {
    match result {
        Err(WireError::Sql(error)) => Some(error.code),
        _ => None,
    }
}
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_server_may_refuse_before_it_greets() {
    let (result, _) = log_in(&[b"\xFF\x10\x04Too many connections".to_vec()], &clear());
    assert_eq!(code(&result), Some(1040));
}

#[test]
fn an_ok_ends_the_login() {
    let ok = vec![0, 0, 0, 2, 0, 0, 0];
    let (result, told) = log_in(&[greeting("caching_sha2_password"), vec![1, 3], ok], &clear());
    let backend = result.unwrap();
    assert_eq!((backend.server_version.as_str(), backend.connection_id), ("8.4.0", 7));
    assert_eq!(backend.status, StatusFlags::SERVER_STATUS_AUTOCOMMIT);
    assert!(contains(&told, b"caching_sha2_password"));
}

#[test]
fn a_password_in_clear_is_never_sent_without_tls() {
    for packets in [
        vec![greeting("mysql_clear_password")],
        vec![greeting("mysql_native_password"), switch_to("mysql_clear_password")],
    ] {
        let (result, told) = log_in(&packets, &clear());
        assert!(result.is_err());
        assert!(!contains(&told, b"sesame"));
    }
}

#[test]
fn what_the_secret_cannot_answer_is_said() {
    let packets = [greeting("caching_sha2_password"), switch_to("caching_sha2_password")];
    let (result, _) = log_in(&packets, &Secret::NativeStage1([7; 20]));
    assert_eq!(code(&result), Some(2061));
    let (result, _) = log_in(&[greeting("mysql_native_password"), switch_to("dialog")], &clear());
    assert_eq!(code(&result), Some(2061));
    let (result, _) = log_in(&[greeting("mysql_native_password"), vec![0xFE]], &clear());
    assert_eq!(code(&result), Some(2061));
}

#[test]
fn a_bad_public_key_and_an_endless_login_are_refused() {
    for packets in [
        vec![vec![1, 4], b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_vec()],
        vec![vec![1, 4], vec![1]],
        vec![b"\xFEcaching_sha2_password\0".to_vec(), vec![1, 4], vec![1]],
        vec![vec![1, 3]; 1000],
        vec![vec![1]],
        vec![vec![]],
    ] {
        let packets = [vec![greeting("caching_sha2_password")], packets].concat();
        let (result, _) = log_in(&packets, &clear());
        assert!(matches!(result, Err(WireError::Malformed(_))), "{packets:?}");
    }
}

#[test]
fn old_servers_are_refused() {
    for payload in [&b""[..], b"\x09", b"\x0A8.4.0", b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0\0\0"] {
        assert!(ServerGreeting::parse(payload).is_err());
    }
    let mut without_41 = greeting("mysql_native_password");
    let low_flags = b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0".len();
    without_41[low_flags] = 0;
    without_41[low_flags + 1] = 0;
    let (result, _) = log_in(&[without_41], &clear());
    assert!(matches!(result, Err(WireError::Malformed(_))));
}

#[test]
fn an_error_numbered_0_answers_no_statement() {
    for (number, answers) in [(0, false), (1, true)] {
        let (client, mut server) = crate::socket::tests::pair();
        let mut script = Vec::new();
        put_framed(&mut script, &mut number.clone(), b"\xFF\xBF\x0F#HY000idle");
        server.write_all(&script).unwrap();
        let mut status = StatusFlags::empty();
        let mut channel = Channel::new(client);
        let said = query::read_results(&mut channel, crate::login::CAPABILITIES, 10_000, &mut status);
        assert_eq!(matches!(said, Err(WireError::Sql(_))), answers, "{said:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn mutated_greetings_end_in_an_error_or_a_login(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        more in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
    ) {
        let mut payload = greeting("caching_sha2_password");
        for (index, byte) in changes {
            let at = index.index(payload.len());
            payload[at] = byte;
        }
        payload.truncate(cut.index(payload.len() + 1));
        let packets = [vec![payload], more].concat();
        let (result, told) = log_in(&packets, &clear());
        let timed_out = result.as_ref().is_err_and(WireError::is_timeout);
        prop_assert!(!timed_out);
        prop_assert!(!contains(&told, b"sesame"));
    }

    #[test]
    fn wild_greetings_never_panic(bytes: Vec<u8>, length: u8) {
        let _ = ServerGreeting::parse(&bytes);
        let mut payload = greeting("x");
        let nonce_length = b"\x0A8.4.0\0\x07\0\0\0abcdefgh\0".len() + 7;
        payload[nonce_length] = length;
        let greeting = ServerGreeting::parse(&payload);
        prop_assert!(greeting.is_err() || greeting.is_ok_and(|g| g.nonce == b"abcdefghijklmnopqrst"));
    }

    #[test]
    fn wild_results_never_panic(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let (client, mut server) = crate::socket::tests::pair();
        let (mut script, mut sequence) = (Vec::new(), 1);
        packets.iter().for_each(|packet| put_framed(&mut script, &mut sequence, packet));
        server.write_all(&script).unwrap();
        server.shutdown(std::net::Shutdown::Write);
        let mut channel = Channel::new(client);
        let mut status = StatusFlags::empty();
        let _ = query::read_results(&mut channel, crate::login::CAPABILITIES, 10_000, &mut status);
    }
}
