//! Every cell of the matrix in docs/authentication.md, by a real exchange. The document's tables are compared with what comes of
//! them, so that neither can change alone.

use super::raw_client::{Client, One};
use super::*;
use crate::auth::{Account, OF_SESAME, StoredPassword};
use crate::backend::{Backend, ConnectOptions};
use crate::testing::{Server, options};
use openssl::ssl::SslVersion;

const DOCUMENT: &str = include_str!("../../../docs/authentication.md");

/// Stored forms: what the document calls them, and an example of each. The password is "sesame" where it is not empty.
const FORMS: [(&str, &str); 5] = [
    ("none", ""),
    ("clear", "sesame"),
    ("`*SHA1`", "*EE33294C97C42FFF14EA73AB81E428A6FC7B9A8B"),
    ("`$A$`", OF_SESAME[0]),
    ("damaged `$A$`", "$A$005$cut"),
];

const PLUGINS: [Option<&str>; 5] = [
    Some("mysql_native_password"),
    Some("caching_sha2_password"),
    Some("mysql_clear_password"),
    Some("dialog"),
    None,
];

/// What one login came to, in the document's words.
fn cell(account: &Account, client: &Client<'_>, default: AuthPlugin) -> String {
    let mut options = options(AuthPlugin::Native, true);
    options.default_plugin = default;
    let ended = client.log_in(&options, &One(Some(account.clone())));
    let Ok((_, login)) = ended.server else {
        assert_eq!(ended.trace.last().map(String::as_str), Some("ERR 1045"));
        return "refused".to_owned();
    };
    let switched = ended.trace.iter().find_map(|step| step.strip_prefix("switch to "));
    let mut way = match (switched.or(client.plugin), ended.trace.iter().any(|step| step == "full")) {
        (_, true) => "full",
        (Some("caching_sha2_password"), false) => "fast",
        (Some("mysql_clear_password"), false) => "as it is",
        _ => "native",
    };
    if login.secret == Secret::Empty {
        way = "no password";
    }
    let hash_only = matches!(login.secret, Secret::NativeStage1(_));
    format!("{way}{}", if hash_only { ", hash" } else { "" })
}

fn table(tls: bool, learned: bool, default: AuthPlugin) -> String {
    let mut table = String::new();
    for (name, stored) in FORMS {
        if learned && !matches!(name, "`*SHA1`" | "`$A$`") {
            continue;
        }
        let cells = PLUGINS.map(|plugin| {
            let account = Account::new(StoredPassword::parse(stored));
            if learned {
                account.verify_clear(b"sesame").unwrap();
            }
            let password = if stored.is_empty() { "" } else { "sesame" };
            let tls = tls.then_some(SslVersion::TLS1_3);
            cell(&account, &Client { password, plugin, tls, ..Client::default() }, default)
        });
        let name = format!("{name}{}", if learned { ", learned" } else { "" });
        table += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    table
}

#[test]
fn the_documents_tables_of_clients_hold() {
    for tls in [true, false] {
        for learned in [false, true] {
            let table = table(tls, learned, AuthPlugin::CachingSha2);
            assert!(DOCUMENT.contains(&table), "tls={tls}: docs/authentication.md does not have\n{table}");
        }
    }
}

/// The plugin of the greeting decides for clients of an unknown plugin alone.
#[test]
fn the_greetings_plugin_makes_no_other_difference() {
    for tls in [true, false] {
        for learned in [false, true] {
            let rows = |default| {
                let table = table(tls, learned, default);
                table.lines().map(|row| row.split(" | ").take(3).map(str::to_owned).collect()).collect()
            };
            let (native, sha2): (Vec<Vec<String>>, Vec<_>) =
                (rows(AuthPlugin::Native), rows(AuthPlugin::CachingSha2));
            assert_eq!(native, sha2);
        }
    }
}

/// A server whose accounts all are of mysql_clear_password. It serves one login, with the password "sesame" or none.
fn clear_password_server() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || -> Result<(), WireError> {
        let socket = Socket::new(listener.accept().unwrap().0)?;
        let options = options(AuthPlugin::Clear, true);
        let mut channel = Channel::new(socket);
        channel.set_deadline(Some(Instant::now() + options.timeout));
        channel.queue(&Greeting::new(1, &options)?.to_payload());
        channel.flush()?;
        if let First::Tls(tls) = receive_first(&mut channel, &options)? {
            channel = channel.upgrade(|socket| tls.accept(socket))?;
            channel.read_packet(LOGIN_PACKET, options.timeout)?;
        }
        channel.queue(b"\xFEmysql_clear_password\0");
        channel.flush()?;
        let proved = matches!(channel.read_packet(LOGIN_PACKET, options.timeout)?, b"sesame\0" | b"\0");
        let denied = crate::SqlError::new(1045, "28000", "no").to_payload();
        channel.queue(if proved { &[0, 0, 0, 2, 0, 0, 0] } else { &denied });
        channel.flush()
    });
    address
}

#[test]
fn the_documents_table_of_servers_holds() {
    let secrets = [
        ("no password", Secret::Empty),
        ("the password", Secret::Clear("sesame".to_owned())),
        ("its hash", Secret::NativeStage1(openssl::sha::sha1(b"sesame"))),
    ];
    let mut table = String::new();
    for (name, secret) in secrets {
        let mut cells = Vec::new();
        for plugin in [AuthPlugin::Native, AuthPlugin::CachingSha2, AuthPlugin::Clear] {
            for tls in [true, false] {
                let server = Server::start(options(plugin, true));
                // A `$A$` hash makes an account of caching_sha2_password alone that asks for the password itself.
                let (user, address) = match (plugin, &secret) {
                    (AuthPlugin::Clear, _) => ("any", clear_password_server()),
                    (_, Secret::Empty) => ("empty", server.address),
                    (AuthPlugin::CachingSha2, _) => ("sha2", server.address),
                    (AuthPlugin::Native, _) => ("hash", server.address),
                };
                let connected = Backend::connect(&ConnectOptions {
                    address,
                    tls: crate::tls::tests::unverified(tls),
                    server_name: "",
                    user,
                    secret: &secret,
                    database: None,
                    capabilities: CAPABILITIES,
                    collation: 45,
                    attributes: &[],
                    deadline: Instant::now() + Duration::from_secs(60),
                });
                cells.push(match connected {
                    Ok(_) => "yes",
                    Err(WireError::Sql(error)) if error.code == crate::backend::CR_AUTH_PLUGIN_ERR => "1045",
                    Err(other) => panic!("{name} {plugin:?} tls={tls}: {other}"),
                });
            }
        }
        table += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    assert!(DOCUMENT.contains(&table), "docs/authentication.md does not have\n{table}");
}

#[test]
fn strangers_wrong_passwords_and_impossible_forms_look_the_same() {
    for tls in [None, Some(SslVersion::TLS1_2), Some(SslVersion::TLS1_3)] {
        for plugin in PLUGINS {
            for default in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
                let options = options(default, true);
                let trace = |user, stored: &str, password, require_tls| {
                    let account = Account { require_tls, ..Account::new(StoredPassword::parse(stored)) };
                    let client = Client { user, password, plugin, tls, ..Client::default() };
                    client.log_in(&options, &One(Some(account))).trace
                };
                let stranger = trace("stranger", "", "guess", false);
                assert_eq!(stranger.last().map(String::as_str), Some("ERR 1045"));
                for (form, stored) in FORMS {
                    let seen = trace("user", stored, "guess", false);
                    let expected =
                        if form == "`$A$`" { trace("decoy", "", "guess", false) } else { stranger.clone() };
                    assert_eq!(seen, expected, "{form} {plugin:?} {tls:?} {default:?}");
                    if tls.is_none() && form != "`$A$`" {
                        assert_eq!(
                            trace("user", stored, "sesame", true),
                            stranger,
                            "use_ssl {form} {plugin:?}"
                        );
                    }
                }
            }
        }
    }
}
