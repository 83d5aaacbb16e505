//! Clients that stall, half close, or scan ports; both versions of TLS; and refusals after the password was proved.

use super::raw_client::{Client, One};
use super::*;
use crate::auth::{Account, StoredPassword};
use crate::testing::{Server, options};
use openssl::ssl::SslVersion;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

fn account() -> One {
    One(Some(Account::new(StoredPassword::parse("sesame"))))
}

#[test]
fn both_versions_of_tls_serve() {
    for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
        for plugin in ["mysql_native_password", "caching_sha2_password", "mysql_clear_password"] {
            let client = Client { plugin: Some(plugin), tls: Some(version), ..Client::default() };
            let ended = client.log_in(&options(AuthPlugin::CachingSha2, true), &account());
            assert_eq!(ended.trace.last().map(String::as_str), Some("OK"), "{plugin}");
            assert!(ended.server.unwrap().0.stream().is_encrypted());
        }
    }
}

#[test]
fn tls_can_be_switched_off_and_passwords_still_come_encrypted() {
    let mut options = options(AuthPlugin::CachingSha2, true);
    options.offer_tls = false;
    let hashed = One(Some(Account::new(StoredPassword::parse(crate::auth::OF_SESAME[0]))));
    let ended = Client::default().log_in(&options, &hashed);
    assert_eq!(ended.trace, ["full", "OK"]);
    assert!(!ended.server.unwrap().1.capabilities.contains(CapabilityFlags::CLIENT_SSL));
}

#[test]
fn a_login_may_be_refused_after_the_password() {
    let everybody = |user: &'static str| {
        struct Named(&'static str, One);
        impl Accounts for Named {
            fn find(&self, user: &str) -> Option<Account> {
                self.1.0.clone().filter(|_| user == self.0)
            }
            fn admit(&self, user: &str) -> Result<(), crate::SqlError> {
                self.1.admit(user)
            }
            fn check_schema(&self, login: &Login) -> Result<(), crate::SqlError> {
                self.1.check_schema(login)
            }
        }
        Named(user, account())
    };
    for (user, database, trace) in [
        ("surplus", None, ["fast", "ERR 1226"]),
        ("user", Some("nowhere"), ["fast", "ERR 1049"]),
        ("user", Some("shop"), ["fast", "OK"]),
    ] {
        let client = Client { user, database, ..Client::default() };
        let ended = client.log_in(&options(AuthPlugin::CachingSha2, true), &everybody(user));
        assert_eq!(ended.trace, trace);
        assert_eq!(ended.last.1, 3, "numbered on");
    }
}

#[test]
fn the_ok_tells_clients_that_track_their_schema() {
    let options = options(AuthPlugin::CachingSha2, true);
    let client = Client { database: Some("shop"), ..Client::default() };
    let ok = client.log_in(&options, &account()).last.0;
    assert_eq!(ok, b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04shop");
    let plain = Client { lacks: CapabilityFlags::CLIENT_SESSION_TRACK, ..client };
    assert_eq!(plain.log_in(&options, &account()).last.0, b"\0\0\0\x02\0\0\0");
}

#[test]
fn a_character_set_of_several_bytes_is_told_1231() {
    let client = Client { collation: 35, ..Client::default() };
    let ended = client.log_in(&options(AuthPlugin::CachingSha2, true), &account());
    let text = b"#42000Variable 'character_set_client' can't be set to the value of 'ucs2'";
    assert!(ended.last.0.ends_with(text), "{:?}", ended.trace);
}

#[test]
fn a_client_of_before_secure_connection_serves() {
    let lacks =
        CapabilityFlags::CLIENT_SECURE_CONNECTION | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
    let client = Client { lacks, plugin: None, ..Client::default() };
    let ended = client.log_in(&options(AuthPlugin::Native, false), &account());
    assert_eq!(ended.trace, ["OK"]);
}

/// The server's end of a connection whose client sends `bytes` and then behaves as `after` says: how the login ended, and
/// the processor time that its thread used.
fn serve(
    timeout: Duration,
    bytes: &[u8],
    after: impl FnOnce(&mut TcpStream) + Send,
) -> (Result<(Channel, Login), WireError>, Duration) {
    let mut options = options(AuthPlugin::CachingSha2, true);
    options.timeout = timeout;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = Socket::new(listener.accept().unwrap().0).unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let before = processor_time();
            let ended = login(socket, 1, &options, &account());
            (ended, processor_time().saturating_sub(before))
        });
        client.write_all(bytes).unwrap();
        after(&mut client);
        let ended = server.join().unwrap();
        drop(client);
        ended
    })
}

/// Of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// An SSLRequest and the beginning of a ClientHello.
fn half_a_hello() -> Vec<u8> {
    let capabilities = CAPABILITIES | CapabilityFlags::CLIENT_SSL;
    let mut request = capabilities.bits().to_le_bytes().to_vec();
    request.resize(32, 0);
    let mut bytes = Vec::new();
    crate::packet::put_framed(&mut bytes, &mut 1, &request);
    bytes.extend_from_slice(b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03");
    bytes
}

#[test]
fn a_half_closed_client_ends_its_login_at_once_and_spins_no_processor() {
    for bytes in [Vec::new(), b"\x50\0\0\x01abc".to_vec(), half_a_hello()] {
        for how in [Shutdown::Write, Shutdown::Both] {
            let (ended, used) =
                serve(Duration::from_secs(100), &bytes, |client| client.shutdown(how).unwrap());
            let error = ended.err().unwrap();
            assert!(!error.is_timeout(), "{bytes:?}: {error}");
            assert!(used < Duration::from_secs(1), "{bytes:?}: {used:?}");
        }
    }
}

#[test]
fn a_silent_client_ends_its_login_in_time_and_spins_no_processor() {
    for bytes in [Vec::new(), b"\x50\0\0\x01abc".to_vec(), half_a_hello()] {
        let (ended, used) = serve(Duration::from_millis(300), &bytes, |_| {});
        let error = ended.err().unwrap();
        assert!(error.is_timeout(), "{bytes:?}: {error}");
        assert!(used < Duration::from_millis(150), "{bytes:?}: {used:?}");
    }
}

#[test]
fn a_client_that_sends_a_byte_at_a_time_ends_in_time() {
    let begun = [half_a_hello(), b"\xFF\xFF\0\x01".to_vec()];
    for bytes in begun {
        // Each byte would renew a limit on single reads; the deadline is the login's.
        let (ended, _) = serve(Duration::from_millis(300), &bytes, |client| {
            client.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            let mut greeting = [0; 256];
            while client.write_all(b"x").is_ok() && !matches!(client.read(&mut greeting), Ok(0)) {}
        });
        let error = ended.err().unwrap();
        assert!(error.is_timeout(), "{error}");
    }
}

#[test]
fn a_port_scanner_harms_nobody() {
    let server = Server::start(options(AuthPlugin::CachingSha2, true));
    for bytes in
        [&b""[..], b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01", b"SSH-2.0-x\r\n", &[0; 4], &[0xFF; 4096]]
    {
        let mut stream = TcpStream::connect(server.address).unwrap();
        // It may have been cut off already.
        let _ = stream.write_all(bytes);
        drop(stream);
    }
    let mut stream = TcpStream::connect(server.address).unwrap();
    let mut first = [0; 5];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(first[4], 10, "a greeting");
}
