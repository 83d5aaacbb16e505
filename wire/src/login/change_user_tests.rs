//! COM_CHANGE_USER on a connection that is logged in.

use super::raw_client::{Client, Ended, One};
use super::*;
use crate::auth::{Account, OF_SESAME, StoredPassword};
use crate::packet::put_nul_bytes;
use crate::testing::options;
use openssl::ssl::SslVersion;
use std::thread;

fn one(stored: &str) -> One {
    One(Some(Account::new(StoredPassword::parse(stored))))
}

/// What follows the command byte; the answer in it is worth nothing, as servers have it.
fn argument(client: &Client<'_>, collation: u16) -> Vec<u8> {
    let mut argument = Vec::new();
    put_nul_bytes(&mut argument, client.user.as_bytes());
    argument.extend_from_slice(b"\x04junk");
    put_nul_bytes(&mut argument, client.database.unwrap_or_default().as_bytes());
    argument.extend_from_slice(&collation.to_le_bytes());
    put_nul_bytes(&mut argument, client.plugin.unwrap_or_default().as_bytes());
    // No attributes.
    argument.push(0);
    argument
}

/// Trace, last packet with its number, and the server's view.
type Changed = (Vec<String>, (Vec<u8>, u8), Result<Login, WireError>);

/// Changes to `client` after a login with the same stored password.
fn change(stored: &str, client: &Client<'_>, argument: &[u8]) -> Changed {
    change_at("9.7.0", stored, client, argument)
}

/// The same at a server of this version.
fn change_at(version: &str, stored: &str, client: &Client<'_>, argument: &[u8]) -> Changed {
    let (options, accounts) = (options(AuthPlugin::CachingSha2, true), one(stored));
    let options = ServerOptions { server_version: version.to_owned(), ..options };
    let first = Client { user: "user", password: "sesame", database: None, ..*client };
    let Ended { client: mut channel, server, .. } = first.log_in(&options, &accounts);
    let (mut served, login) = server.unwrap();
    let nonce = login.nonce.to_vec();
    thread::scope(|scope| {
        let change = scope.spawn(|| {
            let command = served.read_packet(1 << 16, options.timeout)?.to_vec();
            let (_, argument) = command.split_first().unwrap();
            let capabilities = login.capabilities | CapabilityFlags::CLIENT_CONNECT_ATTRS;
            change_user(&mut served, argument, capabilities, login.nonce, &options, &accounts)
        });
        channel.reset_sequence();
        channel.queue(&[&[0x11], argument].concat());
        channel.flush().unwrap();
        let (trace, last) = client.follow(&mut channel, nonce);
        (trace, last, change.join().unwrap())
    })
}

#[test]
fn the_password_is_asked_for_anew_and_packets_are_numbered_on() {
    for (plugin, stored, expected) in [
        ("mysql_native_password", "sesame", &["switch to mysql_native_password", "OK"][..]),
        ("caching_sha2_password", "sesame", &["switch to caching_sha2_password", "fast", "OK"]),
        // The login before has taught the server the password.
        ("caching_sha2_password", OF_SESAME[0], &["switch to caching_sha2_password", "fast", "OK"]),
        ("dialog", "sesame", &["switch to caching_sha2_password", "fast", "OK"]),
    ] {
        let client = Client { plugin: Some(plugin), database: Some("shop"), ..Client::default() };
        let (trace, (ok, number), login) = change(stored, &client, &argument(&client, 305));
        assert_eq!(trace, expected, "{plugin}");
        // The switch is packet 1, its answer 2.
        assert_eq!(usize::from(number), expected.len() + 1);
        assert_eq!(ok, b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04shop");
        let login = login.unwrap();
        assert_eq!((login.collation, login.database.as_deref()), (305, Some("shop")));
        assert_eq!(login.secret, Secret::Clear("sesame".to_owned()));
    }
}

#[test]
fn a_refusal_is_numbered_on_and_ends_the_connection() {
    for (user, password, database, code, steps) in [
        ("user", "wrong", None, 1045, &["switch to caching_sha2_password", "full", "ERR 1045"][..]),
        ("stranger", "wrong", None, 1045, &["switch to caching_sha2_password", "full", "ERR 1045"]),
        ("user", "", None, 1045, &["switch to caching_sha2_password", "ERR 1045"]),
        ("user", "sesame", Some("nowhere"), 1049, &["switch to caching_sha2_password", "fast", "ERR 1049"]),
    ] {
        let tls = Some(SslVersion::TLS1_3);
        let client = Client { user, password, database, tls, ..Client::default() };
        let (trace, (_, number), login) = change("sesame", &client, &argument(&client, 45));
        assert_eq!(trace, steps, "{user} {database:?}");
        let answers = steps.iter().filter(|step| step.starts_with("switch") || **step == "full").count();
        assert_eq!(usize::from(number), steps.len() + answers, "{steps:?}");
        assert!(matches!(login, Err(WireError::Sql(error)) if error.code == code));
    }
}

#[test]
fn what_cannot_be_read_is_an_unknown_command() {
    let client = Client::default();
    let whole = argument(&client, 45);
    for length in [0, 3, 8, 11, 12] {
        let (trace, (_, number), login) = change("sesame", &client, &whole[..length]);
        assert_eq!((trace, number), (vec!["ERR 1047".to_owned()], 1), "{length}");
        assert!(login.is_err());
    }
    for attributes in [&b""[..], b"\x04\x01kv", b"\xff"] {
        let argument = [&whole[..whole.len() - 1], attributes].concat();
        for (version, code) in [("9.7.0", 1045), ("10.11.14-MariaDB", 1047)] {
            let (trace, _, login) = change_at(version, "sesame", &client, &argument);
            assert_eq!(trace, [format!("ERR {code}")], "{attributes:?} {version}");
            assert!(login.is_err());
        }
    }
    let (trace, (_, number), _) = change("sesame", &client, &argument(&client, 35));
    assert_eq!((trace, number), (vec!["ERR 1231".to_owned()], 1));
}
