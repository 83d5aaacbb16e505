use super::*;
use crate::testing::{Server, options};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};

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
            for (user, password) in [("clear", "sesame"), ("hash", "sesame"), ("empty", "")] {
                let opts = opts(&server, user, password).ssl_opts(tls.then(trusting));
                let mut conn = Conn::new(opts).unwrap_or_else(|e| panic!("{plugin:?} tls={tls} {user}: {e}"));
                let answer: Option<String> = conn.query_first("echo hello").unwrap();
                assert_eq!(answer.as_deref(), Some("hello"));
            }
        }
    }
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
            ("sha2", "sesame", "YES"),
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
