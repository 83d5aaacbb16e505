use super::*;
use crate::testing::{Server, options};
use mysql::prelude::Queryable;
use mysql::{Compression, Conn, OptsBuilder, SslOpts};
use std::io::{Read, Write};

fn opts(server: &Server, user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(server.address.port())
        .prefer_socket(false)
        .user(Some(user))
        .pass(Some(password))
}

fn trusting() -> SslOpts {
    SslOpts::default().with_danger_accept_invalid_certs(true)
}

#[test]
fn a_driver_logs_in_with_each_plugin_and_stored_form() {
    for plugin in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        for tls in [false, true] {
            let server = Server::start(options(plugin, true));
            for (user, password) in
                [("clear", "sesame"), ("hash", "sesame"), ("sha2", "sesame"), ("empty", "")]
            {
                let opts = opts(&server, user, password).ssl_opts(tls.then(trusting));
                let mut conn = Conn::new(opts).unwrap_or_else(|e| panic!("{plugin:?} tls={tls} {user}: {e}"));
                let answer: Option<String> = conn.query_first("echo hello").unwrap();
                assert_eq!(answer.as_deref(), Some("hello"));
            }
        }
    }
}

#[test]
fn a_driver_may_compress_where_that_is_offered() {
    for tls in [false, true] {
        let server = Server::start(options(AuthPlugin::CachingSha2, true));
        let opts = opts(&server, "clear", "sesame").ssl_opts(tls.then(trusting));
        let mut conn = Conn::new(opts.compress(Some(Compression::default()))).unwrap();
        for length in [1, 100, 100_000] {
            let text = "abcdefg".repeat(length);
            let answer: Option<String> = conn.query_first(format!("echo {text}")).unwrap();
            assert_eq!(answer, Some(text));
        }
    }
    let mut options = options(AuthPlugin::Native, false);
    options.compress = false;
    let server = Server::start(options);
    let mut conn =
        Conn::new(opts(&server, "clear", "sesame").compress(Some(Compression::default()))).unwrap();
    let answer: Option<String> = conn.query_first("echo hello").unwrap();
    assert_eq!(answer.as_deref(), Some("hello"));
}

#[test]
fn a_refused_driver_is_told_1045() {
    for plugin in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        let server = Server::start(options(plugin, true));
        for (user, password, using) in [
            ("clear", "wrong", "YES"),
            ("clear", "", "NO"),
            ("hash", "wrong", "YES"),
            ("empty", "wrong", "YES"),
            ("nobody", "sesame", "YES"),
            ("sha2", "wrong", "YES"),
            ("damaged", "sesame", "YES"),
        ] {
            match Conn::new(opts(&server, user, password)) {
                Err(mysql::Error::MySqlError(error)) => {
                    assert_eq!((error.code, error.state.as_str()), (1045, "28000"));
                    let text =
                        format!("Access denied for user '{user}'@'127.0.0.1' (using password: {using})");
                    assert_eq!(error.message, text);
                }
                Err(other) => panic!("{plugin:?} {user}: {other}"),
                Ok(_) => panic!("{plugin:?} {user}: let in"),
            }
        }
    }
}

/// The first packets of a client that logs in as "clear" without TLS.
fn valid_response(auth: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut payload = CAPABILITIES.bits().to_le_bytes().to_vec();
    payload.extend_from_slice(&[0, 0, 0, 1, 45]);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(b"clear\0");
    payload.push(auth.len() as u8);
    payload.extend_from_slice(auth);
    payload.extend_from_slice(tail);
    payload
}

/// Sends raw bytes in answer to the greeting, says no more, and returns what the server answers.
fn answer_to(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    // The server may have hung up on the first bytes of many.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => answer,
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let (mut framed, mut sequence) = (Vec::new(), sequence);
    crate::packet::put_framed(&mut framed, &mut sequence, payload);
    framed
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn garbage_is_told_1043() {
    let server = Server::start(options(AuthPlugin::Native, true));
    let mut huge = valid_response(b"", b"shop\0mysql_native_password\0");
    huge.resize(LOGIN_PACKET + 1, b'x');
    let attributes = b"shop\0mysql_native_password\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx";
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        packet(1, b""),
        packet(1, b"\0\0\0\0"),
        packet(1, &huge),
        packet(1, &valid_response(b"", attributes)),
        packet(1, &valid_response(b"", b"").into_iter().take(38).collect::<Vec<_>>()),
    ] {
        let answer = answer_to(&server, &bytes);
        assert!(contains(&answer, b"#08S01Bad handshake"), "{bytes:?}: {answer:?}");
    }
}

#[test]
fn a_client_that_stops_in_mid_packet_is_dropped() {
    let mut options = options(AuthPlugin::Native, false);
    options.timeout = Duration::from_millis(50);
    let server = Server::start(options);
    for bytes in [&b""[..], b"\x50\0", b"\x50\0\0\x01abc"] {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        stream.write_all(bytes).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn a_client_of_an_unknown_plugin_is_switched() {
    for plugin in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        let server = Server::start(options(plugin, false));
        let answer = answer_to(&server, &packet(1, &valid_response(b"whatever", b"shop\0dialog\0")));
        let request = [b"\x02\xFE", plugin.name().as_bytes(), b"\0"].concat();
        assert!(contains(&answer, &request), "{answer:?}");
    }
}

#[test]
fn a_lone_nul_is_no_password() {
    let server = Server::start(options(AuthPlugin::CachingSha2, false));
    let answer = answer_to(&server, &packet(1, &valid_response(&[0], b"shop\0caching_sha2_password\0")));
    assert!(contains(&answer, b"(using password: NO)"), "{answer:?}");
}

#[test]
fn bytes_in_clear_behind_an_ssl_request_do_not_pass_for_tls() {
    let server = Server::start(options(AuthPlugin::Native, true));
    let mut request = (CAPABILITIES | CapabilityFlags::CLIENT_SSL).bits().to_le_bytes().to_vec();
    request.resize(32, 0);
    let login = packet(2, &valid_response(b"", b"shop\0mysql_native_password\0"));
    let answer = answer_to(&server, &[packet(1, &request), login].concat());
    assert!(!contains(&answer, b"Access denied"), "{answer:?}");
}

mod mutations {
    use super::*;
    use proptest::prelude::*;

    fn shared() -> &'static Server {
        static SERVER: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
        SERVER.get_or_init(|| Server::start(options(AuthPlugin::CachingSha2, true)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn mutated_logins_end_and_harm_nobody(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
            reframe: bool,
        ) {
            let tail = b"shop\0caching_sha2_password\0\x06\x02os\x02vm";
            let payload = valid_response(&[7; 32], tail);
            let mut bytes = if reframe { payload } else { packet(1, &payload) };
            for (index, byte) in changes {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            let bytes = if reframe { packet(1, &bytes) } else { bytes };
            // Nobody gets in with this answer, whatever is changed about it.
            let answer = answer_to(shared(), &bytes);
            prop_assert!(!contains(&answer, b"\0\0\0\x02\0\0\0"), "{:?}", answer);
            prop_assert_eq!(answer.first_chunk().map(|header| crate::packet::parse_header(*header).1), Some(0));
        }

        #[test]
        fn wild_responses_never_panic(bytes: Vec<u8>) {
            let offered = CAPABILITIES | CapabilityFlags::CLIENT_SSL;
            let mut payload = CAPABILITIES.bits().to_le_bytes().to_vec();
            payload.extend_from_slice(&bytes);
            for payload in [&bytes, &payload] {
                let _ = ClientResponse::parse(payload, offered);
                let _ = ClientResponse::parse_change_user(payload, CAPABILITIES);
            }
        }
    }
}
