//! TLS with servers by mysql_servers_ssl_params: whom to trust, what to show, and what is said where that fails.

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

use crate::servers::Kind;
use crate::setup::{Lab, PASSWORD, Route, client};

const ROUTE: Route =
    Route { user: "app_ssl", hostgroup: 13, kind: Kind::MySql, use_ssl: true, compression: false };

pub fn parameters(lab: &Lab) {
    lab.add(&ROUTE);
    let (ca, other_ca) = (lab.servers.mysql_file("ca.pem"), lab.daemon.datadir().join("pointsman-ca.pem"));
    set(lab, &[("ssl_ca", &ca), ("tls_version", "TLSv1.2")]);
    assert_eq!(version(lab), "TLSv1.2");
    set(lab, &[("ssl_ca", &ca)]);
    assert_eq!(version(lab), "TLSv1.3");

    set(lab, &[("ssl_ca", other_ca.to_str().unwrap())]);
    let said = refused(lab);
    assert!(said.contains("not trusted"), "{said}");
    set(lab, &[("ssl_ca", "/nowhere/ca.pem")]);
    let said = refused(lab);
    assert!(said.contains("ssl_ca '/nowhere/ca.pem'") && said.contains("No such file"), "{said}");

    // An account that has to show a certificate.
    let mut dba = lab.servers.dba(ROUTE.kind);
    dba.query_drop(format!("ALTER USER '{}'@'%' REQUIRE X509", ROUTE.user)).unwrap();
    set(lab, &[("ssl_ca", &ca)]);
    assert!(refused(lab).contains("Access denied"));
    let (cert, key) = (lab.servers.mysql_file("client-cert.pem"), lab.servers.mysql_file("client-key.pem"));
    set(lab, &[("ssl_ca", &ca), ("ssl_cert", &cert), ("ssl_key", &key)]);
    assert!(!version(lab).is_empty());
    dba.query_drop(format!("ALTER USER '{}'@'%' REQUIRE NONE", ROUTE.user)).unwrap();
    // Others of the same server are as they were.
    lab.through(&crate::setup::MYSQL_TLS).query_drop("DO 1").unwrap();
}

/// Gives the account's row these columns, and has it connect anew.
fn set(lab: &Lab, columns: &[(&str, &str)]) {
    let port = lab.servers.port(ROUTE.kind);
    let names: String = columns.iter().map(|(name, _)| format!(", {name}")).collect();
    let values: String = columns.iter().map(|(_, value)| format!(", '{value}'")).collect();
    let mut admin = lab.admin();
    // Out of use and back, so that no connection of before is left.
    for statement in [
        "DELETE FROM mysql_servers_ssl_params".to_owned(),
        format!(
            "INSERT INTO mysql_servers_ssl_params (hostname, port, username{names}) \
             VALUES ('127.0.0.1', {port}, '{}'{values})",
            ROUTE.user
        ),
        format!("UPDATE mysql_servers SET status='OFFLINE_SOFT' WHERE hostgroup_id={}", ROUTE.hostgroup),
        "LOAD MYSQL SERVERS TO RUNTIME".to_owned(),
        format!("UPDATE mysql_servers SET status='ONLINE' WHERE hostgroup_id={}", ROUTE.hostgroup),
        "LOAD MYSQL SERVERS TO RUNTIME".to_owned(),
    ] {
        admin.query_drop(statement).unwrap();
    }
}

fn asked(lab: &Lab) -> Result<Conn, Error> {
    let mut conn = Conn::new(client(lab.daemon.traffic_port, ROUTE.user, PASSWORD))?;
    conn.query_drop("DO 1")?;
    Ok(conn)
}

/// The version of TLS that the server sees; the form with LIKE would be pointsman's to answer.
fn version(lab: &Lab) -> String {
    let sql = "SHOW SESSION STATUS WHERE Variable_name = 'Ssl_version'";
    let (_, version): (String, String) = asked(lab).unwrap().query_first(sql).unwrap().unwrap();
    version
}

fn refused(lab: &Lab) -> String {
    match asked(lab) {
        Err(Error::MySqlError(error)) => error.message,
        other => panic!("{:?}", other.err()),
    }
}
