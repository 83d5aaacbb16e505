use super::*;
use crate::auth::AuthPlugin;
use crate::testing::{Server, options};
use crate::tls::tests::unverified;

/// SHA1("sesame"), all that a native login against a hash lets us know.
fn stage1() -> Secret {
    Secret::NativeStage1(openssl::sha::sha1(b"sesame"))
}

fn clear() -> Secret {
    Secret::Clear("sesame".to_owned())
}

pub(super) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(100)
}

fn connect(server: &Server, user: &str, secret: &Secret, tls: bool) -> Result<Backend, WireError> {
    Backend::connect(&ConnectOptions {
        address: server.address,
        tls: unverified(tls),
        server_name: "db.example.com",
        user,
        secret,
        database: Some("shop"),
        capabilities: crate::login::CAPABILITIES,
        collation: 255,
        attributes: &[("program_name", "tests")],
        deadline: soon(),
    })
}

#[test]
fn every_plugin_stored_form_and_kind_of_connection_logs_in() {
    for plugin in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        for certificate in [false, true] {
            let server = Server::start(options(plugin, certificate));
            for tls in [false, certificate] {
                for (user, secret) in
                    [("clear", clear()), ("hash", clear()), ("empty", Secret::Empty), ("hash", stage1())]
                {
                    let needs_key = plugin == AuthPlugin::CachingSha2 && user == "hash";
                    if needs_key && !certificate {
                        continue;
                    }
                    let cell = format!("{plugin:?} {user} {secret:?} certificate={certificate} tls={tls}");
                    let mut backend =
                        connect(&server, user, &secret, tls).unwrap_or_else(|e| panic!("{cell}: {e}"));
                    assert_eq!(backend.channel.stream().is_encrypted(), tls, "{cell}");
                    backend.simple(Command::COM_PING, b"", soon()).unwrap();
                    backend.quit();
                }
            }
        }
    }
}

#[test]
fn refusals_are_sql_errors() {
    let server = Server::start(options(AuthPlugin::CachingSha2, true));
    for tls in [false, true] {
        for (user, secret) in [
            ("clear", Secret::Clear("wrong".to_owned())),
            ("hash", Secret::Clear("wrong".to_owned())),
            ("clear", Secret::Empty),
            ("nobody", clear()),
            ("damaged", clear()),
        ] {
            match connect(&server, user, &secret, tls) {
                Err(WireError::Sql(error)) => assert_eq!(error.code, 1045),
                Err(other) => panic!("{user}: {other}"),
                Ok(_) => panic!("{user}: let in"),
            }
        }
    }
}

#[test]
fn tls_is_never_replaced_by_plain() {
    let server = Server::start(options(AuthPlugin::Native, false));
    assert!(matches!(connect(&server, "clear", &clear(), true), Err(WireError::Tls(_))));
}

#[test]
fn results_are_read_whole() {
    let server = Server::start(options(AuthPlugin::Native, true));
    for tls in [false, true] {
        let mut backend = connect(&server, "clear", &clear(), tls).unwrap();
        assert_eq!(backend.server_version, "8.4.0-test");
        assert_ne!(backend.connection_id, 0);
        let result = backend.query("rows 3000", 1 << 20, soon()).unwrap();
        assert_eq!(result.columns, ["answer"]);
        assert_eq!(result.rows.len(), 3000);
        assert_eq!(result.rows[2999], [Some(b"2999".to_vec())]);
        assert_eq!(backend.query("ok", 1 << 20, soon()).unwrap(), TextResult::default());
        match backend.query("null", 1 << 20, soon()) {
            Err(WireError::Sql(error)) => assert_eq!(error.code, 1317),
            other => panic!("{other:?}"),
        }
        match backend.query("nonsense", 1 << 20, soon()) {
            Err(WireError::Sql(error)) => assert_eq!(error, SqlError::new(1064, "42000", "what?")),
            other => panic!("{other:?}"),
        }
        assert!(matches!(backend.query("long 2000", 1000, soon()), Err(WireError::TooLarge { limit: 1000 })));
    }
}

#[test]
fn commands_sent_together_are_answered_in_order() {
    let server = Server::start(options(AuthPlugin::Native, false));
    let mut backend = connect(&server, "clear", &clear(), false).unwrap();
    let requests: [Request<'_>; 5] = [
        (Command::COM_PING, b""),
        (Command::COM_QUERY, b"echo one"),
        (Command::COM_QUERY, b"nonsense"),
        (Command::COM_QUERY, b"null"),
        (Command::COM_QUERY, b"echo two"),
    ];
    let answers = backend.exchange(&requests, 1 << 20, soon()).unwrap();
    let value = |at: usize| answers[at].as_ref().unwrap().rows[0][0].clone();
    assert_eq!(answers[0], Ok(TextResult::default()));
    assert_eq!((value(1), value(4)), (Some(b"one".to_vec()), Some(b"two".to_vec())));
    let codes = [2, 3].map(|at: usize| answers[at].as_ref().unwrap_err().code);
    assert_eq!(codes, [1064, 1317]);
    assert_eq!(backend.exchange(&[], 1, soon()).unwrap(), []);
    assert!(backend.exchange(&[(Command::COM_QUERY, b"long 2000")], 1000, soon()).is_err());
}

#[test]
fn values_over_16_mib_pass_both_ways() {
    let server = Server::start(options(AuthPlugin::Native, true));
    for tls in [false, true] {
        let mut backend = connect(&server, "clear", &clear(), tls).unwrap();
        let value = "v".repeat(20 << 20);
        let result = backend.query(&format!("echo {value}"), 32 << 20, soon()).unwrap();
        assert_eq!(result.rows[0][0].as_deref(), Some(value.as_bytes()));
    }
}

#[test]
fn a_silent_server_is_given_up_at_the_deadline() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let result = Backend::connect(&ConnectOptions {
        address: listener.local_addr().unwrap(),
        tls: None,
        server_name: "",
        user: "u",
        secret: &Secret::Empty,
        database: None,
        capabilities: CapabilityFlags::empty(),
        collation: 45,
        attributes: &[],
        deadline: Instant::now() + Duration::from_millis(30),
    });
    assert!(result.err().unwrap().is_timeout());
}

#[test]
fn a_client_may_leave_tls_without_goodbye() {
    let (sender, ends) = crossbeam_channel::unbounded();
    let options = options(AuthPlugin::Native, true);
    let server = Server::start_with(options, move |result| sender.send(result.is_ok()).unwrap());
    let backend = connect(&server, "clear", &clear(), true).unwrap();
    drop(backend);
    assert!(ends.recv_timeout(Duration::from_secs(100)).unwrap());
}

#[test]
fn a_packet_over_the_limit_is_told_1153() {
    let server = Server::start(options(AuthPlugin::Native, true));
    for tls in [false, true] {
        let mut backend = connect(&server, "clear", &clear(), tls).unwrap();
        let sql = "x".repeat(crate::testing::MAX_PACKET + 1);
        match backend.query(&sql, 1 << 20, soon()) {
            Err(WireError::Sql(error)) => assert_eq!((error.code, &error.state), (1153, b"08S01")),
            other => panic!("{other:?}"),
        }
        assert!(backend.simple(Command::COM_PING, b"", soon()).is_err());
    }
}

#[test]
fn other_commands_have_their_answers() {
    let server = Server::start(options(AuthPlugin::Native, true));
    let mut backend = connect(&server, "clear", &clear(), false).unwrap();
    backend.simple(Command::COM_INIT_DB, b"shop", soon()).unwrap();
    backend.simple(Command::COM_RESET_CONNECTION, b"", soon()).unwrap();
    backend.simple(Command::COM_SET_OPTION, &[0, 0], soon()).unwrap();
    backend.simple(Command::COM_FIELD_LIST, b"t\0", soon()).unwrap();
    for (command, code) in [(Command::COM_STMT_PREPARE, 1295), (Command::COM_PROCESS_KILL, 1047)] {
        match backend.simple(command, b"\x01\0\0\0", soon()) {
            Err(WireError::Sql(error)) => assert_eq!(error.code, code),
            other => panic!("{command:?}: {other:?}"),
        }
    }
    match backend.simple(Command::COM_QUERY, b"echo \xFF", soon()) {
        Err(WireError::Sql(error)) => assert_eq!(error.code, 1300),
        other => panic!("{other:?}"),
    }
}
