//! Over the wire, with a client of MySQL.

use super::*;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use wire::auth::{Account, Accounts, AuthPlugin, Secret, StoredPassword};
use wire::backend::{Backend, ConnectOptions};
use wire::login::ServerOptions;
use wire::service::{Service, ServiceSpec};

/// Of each role one, whose password is the name.
struct AdminAndStats;

impl Accounts for AdminAndStats {
    fn find(&self, user: &str) -> Option<Account> {
        ["admin", "stats"].contains(&user).then(|| Account::new(StoredPassword::parse(user)))
    }
}

struct Listener {
    admin: Arc<Admin>,
    service: Service,
    port: u16,
    _dir: TempDir,
}

fn listen() -> Listener {
    let Fixture { admin, dir, .. } = fixture();
    let admin = Arc::new(admin);
    let options = ServerOptions {
        server_version: "8.0.11".into(),
        default_plugin: AuthPlugin::Native,
        capabilities: wire::login::CAPABILITIES,
        compress: true,
        offer_tls: true,
        tls: None,
        timeout: Duration::from_secs(10),
    };
    let served = Arc::clone(&admin);
    let service = Service::new(
        ServiceSpec { name: "admin", stack: 2 << 20 },
        Arc::new(|| 10),
        Arc::new(move |accepted| served.serve(accepted, &options, &AdminAndStats)),
    );
    let port = service.listen("127.0.0.1:0".parse().unwrap()).unwrap().port();
    Listener { admin, service, port, _dir: dir }
}

impl Listener {
    fn connect(&self, password: &str) -> mysql::Result<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("admin"))
            .pass(Some(password))
            .prefer_socket(false)
            .read_timeout(Some(Duration::from_secs(30)));
        Conn::new(options)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.service.stop(Duration::from_secs(2));
    }
}

#[test]
fn a_client_configures_the_daemon() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    client.query_drop("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1,'a'),(2,'b')").unwrap();
    assert_eq!(client.affected_rows(), 2);
    let servers: Vec<(u32, String, Option<String>)> =
        client.query("SELECT hostgroup_id, hostname, NULL FROM mysql_servers ORDER BY 1").unwrap();
    assert_eq!(servers, [(1, "a".into(), None), (2, "b".into(), None)]);
    client.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
    client.query_drop("SET mysql-unheard_of='1'").unwrap();
    assert_eq!(client.info_str(), "Unknown global variable: mysql-unheard_of");
    client.select_db("main").unwrap();
    let mut other = listener.connect("admin").unwrap();
    assert_eq!(other.query_first("SELECT COUNT(*) FROM mysql_servers").unwrap(), Some(2));
}

#[test]
fn columns_are_texts_in_text_form_and_have_types_in_binary_form() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    use mysql::consts::ColumnType::{MYSQL_TYPE_LONGLONG as LONGLONG, MYSQL_TYPE_VAR_STRING as STRING};
    let named = |columns: &[mysql::Column]| {
        columns.iter().map(|c| (c.name_str().into_owned(), c.column_type())).collect::<Vec<_>>()
    };
    let expected = |kinds: [mysql::consts::ColumnType; 3]| {
        ["hostgroup_id", "hostname", "two"].map(str::to_owned).into_iter().zip(kinds).collect::<Vec<_>>()
    };
    let sql = "SELECT hostgroup_id, hostname, 1+1 AS two FROM mysql_servers";
    let text = named(client.query_iter(sql).unwrap().columns().as_ref());
    assert_eq!(text, expected([STRING, STRING, STRING]));
    let binary = named(client.exec_iter(sql, ()).unwrap().columns().as_ref());
    assert_eq!(binary, expected([LONGLONG, STRING, STRING]));
}

#[test]
fn errors_are_packets_and_the_connection_goes_on() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    for (sql, code, state) in [
        ("SELEC 1", 1045, "28000"),
        ("SET mysql-wait_timeout=-1", 1231, "42000"),
        ("ATTACH 'x' AS y", 1045, "28000"),
        ("SELECT @@unheard_of", 1193, "HY000"),
    ] {
        match client.query_drop(sql) {
            Err(mysql::Error::MySqlError(error)) => {
                assert_eq!((error.code, error.state.as_str()), (code, state), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7));
}

#[test]
fn a_session_knows_its_user() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let row: Option<(String, String, u32)> =
        client.query_first("SELECT USER(), DATABASE(), CONNECTION_ID()").unwrap();
    assert_eq!(row, Some(("admin".into(), "admin".into(), 0)));
}

#[test]
fn a_statement_ends_when_its_connection_is_cut() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let (started, when_started) = std::sync::mpsc::sync_channel(1);
    let rows = Arc::new(move || {
        started.send(()).unwrap();
        vec![vec![Value::Int(1)]]
    });
    let ddl = "CREATE TABLE begin_here (i INT)";
    listener.admin.register(LiveTable { name: "begin_here", schema: Schema::Main, ddl, rows }).unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT i FROM begin_here UNION ALL SELECT i+1 FROM n) \
                   SELECT MAX(i) FROM n";
    let running = std::thread::spawn(move || client.query_drop(endless));
    when_started.recv_timeout(Duration::from_secs(30)).unwrap();
    // Cuts the connection and joins its thread.
    listener.service.stop(Duration::ZERO);
    assert!(running.join().unwrap().is_err());
    assert_eq!(listener.admin.execute("SELECT 1").map(drop), Ok(()));
}

#[test]
fn statements_are_prepared_and_run_with_values() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let insert = "INSERT INTO mysql_servers (hostgroup_id, hostname, comment) VALUES (?, ?, ?)";
    for (hostgroup, comment) in [(1u32, "it's \\ ?; --"), (2, "")] {
        client.exec_drop(insert, (hostgroup, "a", comment)).unwrap();
        assert_eq!(client.affected_rows(), 1);
    }
    let select = "SELECT hostgroup_id, comment, NULL FROM mysql_servers WHERE hostgroup_id < ?";
    let rows: Vec<(u32, String, Option<String>)> = client.exec(select, (2,)).unwrap();
    assert_eq!(rows, [(1, "it's \\ ?; --".into(), None)]);
    let shown: Vec<(String, String)> = client.exec("SHOW VARIABLES LIKE ?", ("mysql-wait%",)).unwrap();
    assert_eq!(shown, [("mysql-wait_timeout".into(), "28800000".into())]);
    client.exec_drop("LOAD MYSQL SERVERS TO RUNTIME", ()).unwrap();
    client.exec_drop("SET mysql-max_connections = ?", (77,)).unwrap();
    assert_eq!(client.exec_first("SELECT @@mysql-max_connections", ()).unwrap(), Some(77));
    let file: Option<String> = client.exec_first("SELECT CONFIG FILE", ()).unwrap();
    assert!(file.unwrap().contains("mysql_servers"));
    let checksum: Option<String> = client.exec_first("SELECT GLOBAL_CHECKSUM()", ()).unwrap();
    assert!(checksum.unwrap().starts_with("0x"));
    for wrong in ["SELECT nothing", "SELECT 1; SELECT 2", ""] {
        assert!(client.prep(wrong).is_err(), "{wrong}");
    }
    let statement = client.prep("SELECT ?").unwrap();
    client.close(statement).unwrap();
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7));
}

#[test]
fn several_statements_have_several_answers() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let packet = "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'); SELECT 5; SHOW WARNINGS; SELECT 6";
    let mut answers = client.query_iter(packet).unwrap();
    let mut seen = Vec::new();
    while let Some(answer) = answers.iter() {
        seen.push(answer.map(|row| mysql::from_row::<u32>(row.unwrap())).collect::<Vec<_>>());
    }
    drop(answers);
    assert_eq!(seen, [vec![], vec![5], vec![], vec![6]]);
    assert!(client.query_drop("DELETE FROM mysql_servers; SELECT nothing").is_err());
    assert_eq!(client.query_first("SELECT COUNT(*) FROM mysql_servers").unwrap(), Some(1));
}

#[test]
fn a_wrong_password_is_refused() {
    let listener = listen();
    match listener.connect("wrong") {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1045),
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn a_change_of_user_changes_what_the_client_may_do() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let prepared = client.prep("SELECT 1").unwrap();
    let as_user = |user: &str, password: &str| {
        mysql::ChangeUserOpts::new().with_user(Some(user.into())).with_pass(Some(password.into()))
    };
    client.change_user(as_user("stats", "stats")).unwrap();
    assert_eq!(client.query_first::<String, _>("SELECT DATABASE()").unwrap().unwrap(), "stats");
    assert_eq!(client.query_first::<String, _>("SELECT USER()").unwrap().unwrap(), "stats");
    client.query_drop("SELECT * FROM mysql_users").unwrap_err();
    client.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap_err();
    match client.exec_drop(&prepared, ()) {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1243, "it went with its session"),
        other => panic!("{other:?}"),
    }
    client.change_user(as_user("admin", "admin")).unwrap();
    client.query_drop("LOAD MYSQL SERVERS TO RUNTIME").unwrap();
    match client.change_user(as_user("admin", "wrong")) {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1045),
        other => panic!("{other:?}"),
    }
    client.query_drop("SELECT 1").unwrap_err();
}

#[test]
fn a_reset_connection_goes_on_without_its_statements() {
    let listener = listen();
    let mut client = listener.connect("admin").unwrap();
    let prepared = client.prep("SELECT 1").unwrap();
    client.reset().unwrap();
    match client.exec_drop(&prepared, ()) {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1243),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.query_first("SELECT 7").unwrap(), Some(7));
}

#[test]
fn the_status_shows_what_clients_believe_of_transactions() {
    let listener = listen();
    let in_time = || std::time::Instant::now() + Duration::from_secs(30);
    let mut client = Backend::connect(&ConnectOptions {
        address: ([127, 0, 0, 1], listener.port).into(),
        tls: None,
        server_name: "",
        user: "admin",
        secret: &Secret::Clear("admin".to_owned()),
        database: None,
        capabilities: wire::CapabilityFlags::CLIENT_MULTI_STATEMENTS,
        collation: 45,
        attributes: &[],
        deadline: in_time(),
    })
    .unwrap();
    let mut begun = |sql: &str| {
        client.query(sql, 1 << 16, in_time()).unwrap();
        client.status.contains(wire::StatusFlags::SERVER_STATUS_IN_TRANS)
    };
    for (sql, expected) in [
        ("SELECT 1", false),
        ("START TRANSACTION", true),
        ("SAVEPOINT s", true),
        ("ROLLBACK TO SAVEPOINT s", true),
        ("RELEASE SAVEPOINT s", true),
        ("COMMIT", false),
        ("begin", true),
        ("ROLLBACK", false),
        ("BEGIN; SELECT 1; SELECT 2", true),
        ("BEGIN; COMMIT", false),
    ] {
        assert_eq!(begun(sql), expected, "{sql}");
    }
}
