//! Connections that probes use.

use super::*;

fn at(server: &Server, tls: bool) -> Target<'static> {
    Target { address: server.address, tls, server_name: "test", by: None }
}

fn ask(probes: &Probes, server: &Server) -> Result<(), WireError> {
    probes.query(&at(server, false), "SELECT 1", LONG).map(|_| ())
}

#[test]
fn are_reused_and_introduce_themselves() {
    let (server, probes) = (Server::new("0"), Probes::new(config(|_| ())));
    ask(&probes, &server).unwrap();
    *server.script.error.lock() = Some(SqlError::new(1146, "42S02", "no table"));
    assert!(matches!(ask(&probes, &server), Err(WireError::Sql(_))));
    *server.script.error.lock() = None;
    ask(&probes, &server).unwrap();
    assert_eq!(*server.script.statements.lock(), ["SET wait_timeout=80", "SELECT 1", "SELECT 1", "SELECT 1"]);
    let logins = server.script.logins.lock();
    let [(user, attributes)] = &logins[..] else { panic!("{} logins", logins.len()) };
    assert_eq!(user, "monitor");
    assert_eq!(attributes, b"\x0cprogram_name\x11pointsman_monitor");
}

#[test]
fn that_died_while_idle_are_replaced() {
    let (server, probes) = (Server::new("0"), Probes::new(config(|_| ())));
    ask(&probes, &server).unwrap();
    server.script.sockets.lock().iter().for_each(|socket| socket.shutdown(Shutdown::Both));
    ask(&probes, &server).unwrap();
    // The server's farewell to an idle client comes as an answer to nothing.
    *server.script.error.lock() = Some(SqlError::new(4031, "HY000", "inactivity"));
    assert!(ask(&probes, &server).is_err());
    *server.script.error.lock() = None;
    ask(&probes, &server).unwrap();
    assert_eq!(server.logins(), 4);
}

#[test]
fn are_purged_by_address_even_in_use() {
    let (server, other) = (Server::new("0"), Server::new("0"));
    let probes = Probes::new(config(|_| ()));
    ask(&probes, &server).unwrap();
    ask(&probes, &other).unwrap();
    probes.purge(server.address);
    ask(&probes, &server).unwrap();
    ask(&probes, &other).unwrap();
    assert_eq!((server.logins(), other.logins()), (2, 1));
    server.hang();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&probes, &server));
        eventually("the statement", || server.selects() == 3);
        probes.purge(server.address);
        server.release();
        asking.join().unwrap().unwrap();
    });
    ask(&probes, &server).unwrap();
    assert_eq!(server.logins(), 3);
}

#[test]
fn do_not_outlive_their_credentials() {
    let config = config(|_| ());
    let (server, probes) = (Server::new("0"), Probes::new(config.clone()));
    ask(&probes, &server).unwrap();
    change(&config, |variables| {
        variables.monitor_username = "other".into();
        variables.monitor_password = "other".into();
    });
    ask(&probes, &server).unwrap();
    let users: Vec<_> = server.script.logins.lock().iter().map(|(user, _)| user.clone()).collect();
    assert_eq!(users, ["monitor", "other"]);
    change(&config, |variables| variables.monitor_password = "wrong".into());
    assert!(matches!(ask(&probes, &server), Err(WireError::Sql(error)) if error.code == 1045));
}

#[test]
fn are_not_shared_between_tls_and_plain() {
    let directory = tempfile::tempdir().unwrap();
    let tls = ServerTls::load_or_create(directory.path()).unwrap();
    let server = Server::with_tls("0", Some(tls));
    let probes = Probes::new(config(|_| ()));
    for tls in [false, true, false, true] {
        probes.query(&at(&server, tls), "SELECT 1", LONG).unwrap();
    }
    assert_eq!(server.logins(), 2);
}

#[test]
fn are_opened_anew_where_tls_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let tls = ServerTls::load_or_create(directory.path()).unwrap();
    let server = Server::with_tls("0", Some(tls));
    let config = config(|_| ());
    let probes = Probes::new(config.clone());
    let row = |comment: &str, cipher: &str| ServerSslParamsRow {
        ssl_cipher: cipher.into(),
        comment: comment.into(),
        ..ServerSslParamsRow::new("test", server.address.port())
    };
    let logins = || {
        probes.query(&at(&server, true), "SELECT 1", LONG).unwrap();
        server.logins()
    };
    assert_eq!((logins(), logins()), (1, 1));
    config.set_ssl_params(&[row("", "")]);
    assert_eq!((logins(), logins()), (2, 2));
    config.set_ssl_params(&[row("no change of TLS", "")]);
    assert_eq!(logins(), 2);
    config.set_ssl_params(&[row("", "ECDHE-RSA-AES256-GCM-SHA384")]);
    assert_eq!((logins(), logins()), (3, 3));
    change(&config, |variables| variables.ssl_p2s.cipher = "ECDHE-RSA-AES128-GCM-SHA256".into());
    assert_eq!(logins(), 4);
    change(&config, |variables| variables.monitor_ping_timeout = LONG);
    assert_eq!(logins(), 4);
}

#[test]
fn end_with_a_timeout_of_their_statement() {
    let (server, probes) = (Server::new("0"), Probes::new(config(|_| ())));
    server.hang();
    let short = Duration::from_millis(30);
    let error = probes.query(&at(&server, false), "SELECT 1", short).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    server.release();
    ask(&probes, &server).unwrap();
    assert_eq!(server.logins(), 2);
}

#[test]
fn are_not_idle_for_ever() {
    let config = config(|variables| variables.monitor_ping_interval = Duration::from_millis(2));
    let (server, probes) = (Server::new("0"), Probes::new(config));
    ask(&probes, &server).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    probes.sweep();
    eventually("the server's end", || server.service.connections() == 0);
    ask(&probes, &server).unwrap();
    assert!(server.script.statements.lock().contains(&"SET wait_timeout=1".to_owned()));
}

#[test]
fn can_be_cut_and_closed() {
    let (server, probes) = (Server::new("0"), Probes::new(config(|_| ())));
    server.hang();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&probes, &server));
        eventually("the statement", || server.selects() == 1);
        probes.cut();
        assert!(asking.join().unwrap().is_err());
    });
    server.release();
    ask(&probes, &server).unwrap();
    probes.close();
    assert!(ask(&probes, &server).is_err());
    eventually("the end of every connection", || server.service.connections() == 0);
}
