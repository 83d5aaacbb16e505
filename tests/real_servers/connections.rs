//! Logins on both sides, and connections that are used again.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::daemon::within;
use crate::servers::Kind;
use crate::setup::{Lab, MARIADB, MYSQL, MYSQL_TLS, ROUTES, Route, client, connect};

/// The server's own id of the connection. `CONNECTION_ID()` would be the proxy's to answer.
fn server_thread(conn: &mut Conn) -> u64 {
    conn.query_first("SELECT @@pseudo_thread_id").unwrap().unwrap()
}

/// caching_sha2_password knows nothing of an account that never logged in, so the daemon must send the password: under
/// the server's RSA key without TLS, inside it with TLS.
pub fn first_login(lab: &Lab) {
    for route in &ROUTES {
        let answer: Option<String> = lab.through(route).query_first("SELECT CURRENT_USER()").unwrap();
        assert_eq!(answer.unwrap(), format!("{}@%", route.user));
    }
}

pub fn forgotten_account(lab: &Lab) {
    for route in [MYSQL, MYSQL_TLS] {
        // A transaction keeps its connection, so the next client needs a new one.
        let mut busy = lab.through(&route);
        busy.query_drop("BEGIN").unwrap();
        let used = server_thread(&mut busy);
        lab.servers.dba(route.kind).query_drop("FLUSH PRIVILEGES").unwrap();
        assert_ne!(server_thread(&mut lab.through(&route)), used);
        busy.query_drop("ROLLBACK").unwrap();
    }
}

/// Tools that show types, and drivers that go by them, see what the server would have told them.
pub fn own_status(lab: &Lab) {
    for route in [MYSQL, MARIADB] {
        for sql in ["SHOW STATUS LIKE 'Ssl_version'", "SHOW SESSION STATUS LIKE 'Compression'"] {
            let described = |port| {
                let mut conn = connect(lab.client_of(&route, port));
                // An answer that pointsman gives goes by what a connection to the server has told.
                conn.query_drop("SELECT 1").unwrap();
                let answer = conn.query_iter(sql).unwrap();
                let columns = answer.columns();
                let text = |text: std::borrow::Cow<'_, str>| text.into_owned();
                let described = columns.as_ref().iter().map(|column| {
                    let names =
                        [column.schema_str(), column.table_str(), column.org_table_str(), column.name_str()];
                    let names = (names.map(text), text(column.org_name_str()));
                    let form = (column.column_type(), column.character_set(), column.column_length());
                    (names, form, column.flags(), column.decimals())
                });
                described.collect::<Vec<_>>()
            };
            let (expected, found) =
                (described(lab.servers.port(route.kind)), described(lab.daemon.traffic_port));
            assert_eq!(found, expected, "{:?}: {sql}", route.kind);
        }
    }
}

pub fn wrong_password(lab: &Lab) {
    for (user, password) in [(MYSQL.user, "wrong"), (MARIADB.user, ""), ("nobody", "app-secret")] {
        match Conn::new(client(lab.daemon.traffic_port, user, password)) {
            Err(Error::MySqlError(error)) => {
                assert_eq!((error.code, error.state.as_str()), (1045, "28000"), "{user}: {}", error.message);
            }
            other => panic!("{user}: {:?}", other.err()),
        }
    }
    // The command-line clients each insist on a method of their own: MySQL's on caching_sha2_password, which is the only
    // one it has, MariaDB's on mysql_native_password.
    let input = tempfile::NamedTempFile::new().unwrap();
    let port = lab.daemon.traffic_port.to_string();
    for kind in [Kind::MySql, Kind::MariaDb] {
        let output = lab.servers.command_line(kind, &["-P", &port, "-uapp_plain", "-pwrong"], input.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("ERROR 1045 (28000)"), "{kind:?}: {said}");
    }
}

pub fn tls_to_the_server(lab: &Lab) {
    for route in [MYSQL, MYSQL_TLS] {
        let (_, cipher): (String, String) = lab
            .through(&route)
            .query_first("SHOW SESSION STATUS WHERE Variable_name = 'Ssl_cipher'")
            .unwrap()
            .unwrap();
        assert_eq!(!cipher.is_empty(), route.use_ssl, "{}: cipher {cipher:?}", route.user);
    }
}

pub fn pooled_connection(lab: &Lab) {
    for route in [
        Route { user: "app_pool", hostgroup: 30, kind: Kind::MySql, use_ssl: false, compression: false },
        Route {
            user: "app_pool_maria",
            hostgroup: 31,
            kind: Kind::MariaDb,
            use_ssl: false,
            compression: false,
        },
    ] {
        lab.add(&route);
        let first = server_thread(&mut lab.through(&route));
        await_pool(lab, route.hostgroup, (0, 1, 1));
        let mut second = lab.through(&route);
        assert_eq!(server_thread(&mut second), first);
        // While a transaction is open the connection is the client's; afterwards it is free again.
        second.query_drop("BEGIN").unwrap();
        await_pool(lab, route.hostgroup, (1, 0, 1));
        second.query_drop("COMMIT").unwrap();
        drop(second);
        await_pool(lab, route.hostgroup, (0, 1, 1));
    }
}

/// Waits until the hostgroup's ConnUsed, ConnFree and ConnOK are these.
fn await_pool(lab: &Lab, hostgroup: u16, expected: (u64, u64, u64)) {
    let mut admin = lab.admin();
    let question = format!(
        "SELECT ConnUsed, ConnFree, ConnOK FROM stats_mysql_connection_pool WHERE hostgroup = {hostgroup}"
    );
    let mut seen = None;
    let reached = within(Duration::from_secs(10), || {
        seen = admin.query_first::<(u64, u64, u64), _>(&question).unwrap();
        seen == Some(expected)
    });
    assert!(
        reached,
        "hostgroup {hostgroup}: used, free and opened connections are {seen:?}, not {expected:?}"
    );
}
