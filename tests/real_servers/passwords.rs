//! Passwords stored as servers store them: docs/authentication.md, with real servers behind.

use mysql::prelude::Queryable;
use mysql::{Conn, Error, SslOpts};

use crate::servers::Kind;
use crate::setup::{Lab, client, connect};

const PASSWORD: &str = "app-secret";

/// Makes an account on a server and tells the daemon of it by what the server has stored, written as `expression` says.
fn add(lab: &Lab, user: &str, kind: Kind, hostgroup: u16, expression: &str) {
    let mut dba = lab.servers.dba(kind);
    dba.query_drop(format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'")).unwrap();
    dba.query_drop(format!("GRANT ALL ON app.* TO '{user}'@'%'")).unwrap();
    let stored: String = dba
        .query_first(format!("SELECT {expression} FROM mysql.user WHERE user = '{user}'"))
        .unwrap()
        .unwrap();
    add_user(lab, user, kind, hostgroup, &stored);
}

fn add_user(lab: &Lab, user: &str, kind: Kind, hostgroup: u16, stored: &str) {
    let port = lab.servers.port(kind);
    let mut admin = lab.admin();
    for statement in [
        format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES ({hostgroup}, '127.0.0.1', {port})"
        ),
        format!(
            "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('{user}', '{stored}', {hostgroup})"
        ),
        "LOAD MYSQL SERVERS TO RUNTIME".to_owned(),
        "LOAD MYSQL USERS TO RUNTIME".to_owned(),
    ] {
        admin.query_drop(statement).unwrap();
    }
}

fn set_default_plugin(lab: &Lab, plugin: &str) {
    let mut admin = lab.admin();
    admin.query_drop(format!("SET mysql-default_authentication_plugin='{plugin}'")).unwrap();
    admin.query_drop("LOAD MYSQL VARIABLES TO RUNTIME").unwrap();
}

/// Who the server takes a client for that was greeted with `plugin`, which this driver then uses.
fn server_sees(lab: &Lab, user: &str, plugin: &str) -> Result<String, Error> {
    set_default_plugin(lab, plugin);
    let mut conn = Conn::new(client(lab.daemon.traffic_port, user, PASSWORD))?;
    conn.query_first("SELECT CURRENT_USER()").map(Option::unwrap)
}

fn code<T>(result: Result<T, Error>) -> u16 {
    match result {
        Err(Error::MySqlError(error)) => error.code,
        Err(other) => panic!("{other}"),
        Ok(_) => 0,
    }
}

const NATIVE: &str = "mysql_native_password";
const SHA2: &str = "caching_sha2_password";

/// A client of mysql_native_password is switched for its first login; the password is known from then on, also to log in to
/// the server, until the stored form changes.
pub fn sha_crypt_hash(lab: &Lab) {
    for (user, hostgroup, first) in [("crypt_native", 140, NATIVE), ("crypt_sha2", 141, SHA2)] {
        add(lab, user, Kind::MySql, hostgroup, "HEX(authentication_string)");
        for plugin in [first, NATIVE, SHA2] {
            assert_eq!(server_sees(lab, user, plugin).unwrap(), format!("{user}@%"), "{plugin}");
        }
        let wrong = Conn::new(client(lab.daemon.traffic_port, user, "wrong"));
        assert_eq!(code(wrong), 1045);
    }
    set_default_plugin(lab, NATIVE);
}

/// MariaDB takes what a client proves of a `*SHA1` hash.
pub fn native_hash_to_mariadb(lab: &Lab) {
    add(lab, "hash_maria", Kind::MariaDb, 142, "authentication_string");
    for plugin in [NATIVE, SHA2, NATIVE] {
        assert_eq!(server_sees(lab, "hash_maria", plugin).unwrap(), "hash_maria@%", "{plugin}");
    }
    set_default_plugin(lab, NATIVE);
}

/// MySQL 9 does not, until a client has sent the password itself.
pub fn native_hash_to_mysql(lab: &Lab) {
    let mut dba = lab.servers.dba(Kind::MySql);
    dba.query_drop(format!("CREATE USER 'hash_mysql'@'%' IDENTIFIED BY '{PASSWORD}'")).unwrap();
    let stored: String = lab
        .servers
        .dba(Kind::MariaDb)
        .query_first(format!("SELECT PASSWORD('{PASSWORD}')"))
        .unwrap()
        .unwrap();
    add_user(lab, "hash_mysql", Kind::MySql, 143, &stored);
    assert_eq!(code(server_sees(lab, "hash_mysql", NATIVE)), 1045);
    for plugin in [SHA2, NATIVE] {
        assert_eq!(server_sees(lab, "hash_mysql", plugin).unwrap(), "hash_mysql@%", "{plugin}");
    }
    set_default_plugin(lab, NATIVE);
}

pub fn tls_demanded_of_the_client(lab: &Lab) {
    let mut admin = lab.admin();
    for use_ssl in [1, 0] {
        admin
            .query_drop(format!("UPDATE mysql_users SET use_ssl={use_ssl} WHERE username='app_plain'"))
            .unwrap();
        admin.query_drop("LOAD MYSQL USERS TO RUNTIME").unwrap();
        let options = || client(lab.daemon.traffic_port, "app_plain", PASSWORD);
        assert_eq!(code(Conn::new(options())), if use_ssl == 1 { 1045 } else { 0 });
        let tls = SslOpts::default().with_danger_accept_invalid_certs(true);
        let mut encrypted = connect(options().ssl_opts(Some(tls)));
        assert_eq!(encrypted.query_first::<u8, _>("SELECT 1").unwrap(), Some(1));
        // The client's TLS, and not that of the connection to the server, which has none.
        for (name, beginning) in [("Ssl_version", "TLSv1."), ("Ssl_cipher", "TLS_")] {
            let status: Vec<(String, String)> =
                encrypted.query(format!("SHOW STATUS LIKE '{name}'")).unwrap();
            assert!(matches!(&status[..], [(found, value)] if found == name && value.starts_with(beginning)));
        }
    }
}

/// What a server says of a schema it says at the login, and so does the daemon.
pub fn schema_that_is_refused(lab: &Lab) {
    for (user, kind) in [("app_plain", Kind::MySql), ("app_maria", Kind::MariaDb)] {
        for schema in ["nowhere", "mysql"] {
            let login = |port| match Conn::new(client(port, user, PASSWORD).db_name(Some(schema))) {
                Err(Error::MySqlError(error)) => (error.code, error.state, error.message),
                other => panic!("{user} {schema}: {:?}", other.err()),
            };
            assert_eq!(login(lab.daemon.traffic_port), login(lab.servers.port(kind)), "{user} {schema}");
        }
    }
}
