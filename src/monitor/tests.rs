use super::checks::Checks;
use super::health::{Health, Pong};
use super::probe::{Probes, Target};
use super::suppression::Suppression;
use super::*;
use crate::hostgroups::Endpoint;
use crate::testing::{eventually, pair, server as row, server_options};
use admin::rows::{ServerRow, ServerSslParamsRow, ServersConfig};
use admin::{Value, Variables};
use parking_lot::Condvar;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use wire::auth::{Account, Accounts, StoredPassword};
use wire::login::login;
use wire::reply::{Column, Reply};
use wire::serve::{Entrance, QueryHandler, serve};
use wire::service::{Accepted, Service, ServiceSpec};
use wire::socket::Socket;
use wire::tls::ServerTls;
use wire::{SqlError, WireError};

const LONG: Duration = Duration::from_secs(10);

/// What a fake MySQL server does and has seen.
#[derive(Default)]
struct Script {
    value: Mutex<Option<&'static str>>,
    error: Mutex<Option<SqlError>>,
    /// SELECT statements wait while this is set.
    hang: Mutex<bool>,
    released: Condvar,
    statements: Mutex<Vec<String>>,
    logins: Mutex<Vec<(String, Vec<u8>)>>,
    sockets: Mutex<Vec<Socket>>,
}

struct Server {
    script: Arc<Script>,
    address: SocketAddr,
    service: Service,
}

struct Everyone;

impl Accounts for Everyone {
    fn find(&self, user: &str) -> Option<Account> {
        Some(Account::new(StoredPassword::parse(user)))
    }
}

struct Session(Arc<Script>);

impl QueryHandler for Session {
    fn query(&mut self, sql: &str, reply: Reply<'_>) -> Result<(), WireError> {
        self.0.statements.lock().push(sql.to_owned());
        if sql.starts_with("SET") {
            return reply.ok(0, 0, "");
        }
        let mut hang = self.0.hang.lock();
        while *hang && !self.0.released.wait_for(&mut hang, LONG).timed_out() {}
        drop(hang);
        if let Some(error) = &*self.0.error.lock() {
            return reply.error(error);
        }
        let column = match sql {
            "SHOW REPLICA STATUS" => "Seconds_Behind_Source",
            sql if sql.ends_with("`heartbeat`") => "seconds_behind",
            _ => "read_only",
        };
        let mut rows = reply.rows(&[Column::text(column)])?;
        let value = *self.0.value.lock();
        if value != Some("no row") {
            rows.row([value.map(str::as_bytes)])?;
        }
        rows.finish()
    }
}

impl Server {
    fn new(value: &'static str) -> Self {
        Self::with_tls(value, None)
    }
    fn with_tls(value: &'static str, tls: Option<ServerTls>) -> Self {
        let script = Arc::new(Script { value: Mutex::new(Some(value)), ..Script::default() });
        let options = server_options(tls);
        let of_handler = Arc::clone(&script);
        let handler = move |accepted: Accepted| {
            of_handler.sockets.lock().push(accepted.socket.clone());
            if let Ok((mut channel, login)) = login(accepted.socket, accepted.id, &options, &Everyone) {
                let mut session = Session(Arc::clone(&of_handler));
                of_handler.logins.lock().push((login.user.clone(), login.attributes.clone()));
                let entrance = Entrance { options: &options, accounts: &Everyone };
                let _ = serve(&mut channel, &login, entrance, 1 << 20, &mut session);
            }
        };
        let spec = ServiceSpec { name: "fake", stack: 1 << 20 };
        let service = Service::new(spec, Arc::new(|| 100), Arc::new(handler));
        let address = service.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { script, address, service }
    }
    fn endpoint(&self) -> Endpoint {
        Endpoint::new("127.0.0.1", self.address.port())
    }
    fn logins(&self) -> usize {
        self.script.logins.lock().len()
    }
    fn hang(&self) {
        *self.script.hang.lock() = true;
    }
    fn release(&self) {
        *self.script.hang.lock() = false;
        self.script.released.notify_all();
    }
    fn selects(&self) -> usize {
        self.script.statements.lock().iter().filter(|sql| sql.starts_with("SELECT")).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.release();
        self.service.stop(Duration::ZERO);
    }
}

fn config(change: impl FnOnce(&mut Variables)) -> Arc<Config> {
    let mut variables = Variables { monitor_connect_timeout: LONG, ..Variables::default() };
    variables.monitor_read_only_timeout = LONG;
    change(&mut variables);
    Arc::new(Config::new(variables))
}

fn change(config: &Config, change: impl FnOnce(&mut Variables)) {
    let mut variables = Variables::clone(&config.variables());
    change(&mut variables);
    config.set_variables(variables);
}

mod connections {
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
        assert_eq!(
            *server.script.statements.lock(),
            ["SET wait_timeout=80", "SELECT 1", "SELECT 1", "SELECT 1"]
        );
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
}

/// A monitor's parts over servers that are all configured in the writer hostgroup.
struct Fixture {
    config: Arc<Config>,
    backends: Arc<Backends>,
    dns: Arc<Dns>,
    probes: Arc<Probes>,
    suppression: Arc<Suppression>,
    health: Arc<Health>,
}

impl Fixture {
    fn new(config: Arc<Config>, servers: &[&Server]) -> Self {
        let dns = Dns::new(config.clone(), None);
        let backends = Arc::new(Backends::new(config.clone(), dns.clone()));
        let rows =
            servers.iter().map(|server| ServerRow { port: server.address.port(), ..row(1, "127.0.0.1") });
        let servers = ServersConfig {
            servers: rows.collect(),
            replication: vec![pair(1, 2)],
            ..ServersConfig::default()
        };
        backends.update(|hostgroups| hostgroups.load(&servers));
        let probes = Arc::new(Probes::new(config.clone()));
        Self { config, backends, dns, probes, suppression: Arc::default(), health: Arc::default() }
    }
    fn checks(&self) -> Checks {
        let (config, backends, dns) = (self.config.clone(), self.backends.clone(), self.dns.clone());
        let (suppression, health) = (self.suppression.clone(), self.health.clone());
        Checks::new(config, backends, dns, self.probes.clone(), suppression, health)
    }
    fn monitor(&self) -> Monitor {
        let (config, backends, dns) = (self.config.clone(), self.backends.clone(), self.dns.clone());
        let (suppression, health) = (self.suppression.clone(), self.health.clone());
        Monitor::start(config, backends, dns, self.probes.clone(), suppression, health).unwrap()
    }
    /// Hostgroups in which a server is usable.
    fn places(&self, server: &Server) -> Vec<u32> {
        let endpoint = server.endpoint();
        self.backends
            .read(|hostgroups| [1, 2].into_iter().filter(|id| hostgroups.usable(*id, &endpoint)).collect())
    }
}

fn perform_all(checks: &Checks) {
    perform(checks, Kind::ReadOnly);
}

fn perform(checks: &Checks, kind: Kind) {
    checks.due(kind).iter().for_each(|job| assert!(checks.perform(job, None)));
}

#[test]
fn results_place_servers_and_are_logged() {
    let server = Server::new("1");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let checks = fixture.checks();
    perform_all(&checks);
    assert_eq!(fixture.places(&server), [2]);
    *server.script.value.lock() = Some("0");
    perform_all(&checks);
    assert_eq!(fixture.places(&server), [1, 2]);
    *server.script.value.lock() = None;
    perform_all(&checks);
    assert_eq!(fixture.places(&server), [2], "NULL counts as read_only=1");
    let values: Vec<_> = checks.log_rows(Kind::ReadOnly).into_iter().map(|row| row[4].clone()).collect();
    assert_eq!(values, [1, 0, 1].map(Value::Int));
}

#[test]
fn a_server_is_checked_once_at_a_time() {
    let server = Server::new("1");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let checks = fixture.checks();
    let jobs = checks.due(Kind::ReadOnly);
    assert_eq!((jobs.len(), checks.due(Kind::ReadOnly).len()), (1, 0));
    checks.perform(&jobs[0], None);
    assert_eq!(checks.due(Kind::ReadOnly).len(), 1);
}

#[test]
fn a_suspension_stops_checks_and_their_results() {
    let server = Server::new("1");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let checks = fixture.checks();
    let jobs = checks.due(Kind::ReadOnly);
    server.hang();
    std::thread::scope(|scope| {
        let performing = scope.spawn(|| checks.perform(&jobs[0], None));
        eventually("the check", || server.selects() == 1);
        fixture.suppression.add(1, [server.endpoint()]);
        fixture.suppression.clear(1);
        server.release();
        performing.join().unwrap();
    });
    assert_eq!((fixture.places(&server), checks.log_rows(Kind::ReadOnly).len()), (vec![1], 0));
    let jobs = checks.due(Kind::ReadOnly);
    fixture.suppression.add(1, [server.endpoint()]);
    jobs.iter().for_each(|job| assert!(checks.perform(job, None)));
    assert_eq!((jobs.len(), server.selects(), checks.due(Kind::ReadOnly).len()), (1, 1, 0));
    fixture.suppression.clear(1);
    perform_all(&checks);
    assert_eq!((fixture.places(&server), checks.log_rows(Kind::ReadOnly).len()), (vec![2], 1));
}

#[test]
fn only_timeouts_in_a_row_count_as_read_only() {
    let server = Server::new("0");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let checks = fixture.checks();
    let failing = |times: usize, timeout: bool| {
        let limit = if timeout { Duration::from_millis(30) } else { LONG };
        change(&fixture.config, |variables| variables.monitor_read_only_timeout = limit);
        if timeout {
            server.hang();
        } else {
            server.release();
            *server.script.error.lock() = Some(SqlError::new(1227, "42000", "not allowed"));
        }
        (0..times).for_each(|_| perform_all(&checks));
    };
    failing(2, true);
    failing(4, false);
    failing(2, true);
    assert_eq!(fixture.places(&server), [1]);
    failing(1, true);
    assert_eq!(fixture.places(&server), [2]);
    let rows = checks.log_rows(Kind::ReadOnly);
    let text = |row: usize| match &rows[row][5] {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(text(0).starts_with("timeout") && text(2).contains("not allowed"), "{rows:?}");
    assert_eq!(rows[0][3], Value::Int(0));
}

#[test]
fn a_name_without_address_is_an_error_in_the_log() {
    let fixture = Fixture::new(config(|_| ()), &[]);
    let servers = vec![row(1, "")];
    let config = ServersConfig { servers, replication: vec![pair(1, 2)], ..ServersConfig::default() };
    fixture.backends.update(|hostgroups| hostgroups.load(&config));
    let checks = fixture.checks();
    perform_all(&checks);
    assert!(
        matches!(&checks.log_rows(Kind::ReadOnly)[0][5], Value::Text(text) if text.contains("no address"))
    );
}

#[test]
fn a_slow_server_delays_no_other_and_a_stop_waits_for_none() {
    let (slow, quick) = (Server::new("0"), Server::new("1"));
    slow.hang();
    let config = config(|variables| {
        variables.monitor_read_only_interval = Duration::from_millis(20);
        variables.monitor_read_only_timeout = Duration::from_secs(600);
    });
    let fixture = Fixture::new(config, &[&slow, &quick]);
    let monitor = fixture.monitor();
    eventually("the slow server's check", || slow.selects() == 1);
    // It begins as a writer, and only one that was demoted has a move to make when it is writable.
    for (value, places) in [("1", vec![2]), ("0", vec![1, 2]), ("1", vec![2]), ("0", vec![1, 2])] {
        *quick.script.value.lock() = Some(value);
        eventually("the move", || fixture.places(&quick) == places);
    }
    assert_eq!(slow.selects(), 1);
    let stopping = Instant::now();
    monitor.stop();
    assert!(stopping.elapsed() < LONG, "stop waited for the slow server");
}

#[test]
fn a_load_has_only_new_servers_checked_early() {
    let (first, second) = (Server::new("1"), Server::new("1"));
    let config = config(|variables| {
        variables.monitor_enabled = false;
        variables.monitor_read_only_interval = Duration::from_secs(3600);
        variables.monitor_ping_interval = Duration::from_secs(3600);
    });
    let fixture = Fixture::new(config, &[&first]);
    let monitor = fixture.monitor();
    change(&fixture.config, |variables| variables.monitor_enabled = true);
    eventually("the first check", || fixture.places(&first) == [2]);
    let load = |servers: &[&Server]| {
        change(&fixture.config, |variables| variables.monitor_ping_timeout += Duration::from_millis(1));
        let rows =
            servers.iter().map(|server| ServerRow { port: server.address.port(), ..row(2, "127.0.0.1") });
        let loaded = ServersConfig {
            servers: rows.collect(),
            replication: vec![pair(1, 2)],
            ..ServersConfig::default()
        };
        fixture.backends.update(|hostgroups| hostgroups.load(&loaded));
    };
    (0..5).for_each(|_| load(&[&first]));
    load(&[&first, &second]);
    let checks = |kind, server: &Server| {
        let port = Value::Int(server.address.port().into());
        monitor.log_rows(kind).into_iter().filter(|row| row[1] == port).count()
    };
    let once = |kind| [&first, &second].iter().all(|server| checks(kind, server) == 1);
    eventually("one check of each kind of each", || {
        [Kind::Connect, Kind::Ping, Kind::ReadOnly].into_iter().all(once)
    });
    load(&[&first, &second]);
    // A check that is about to end is not begun again.
    eventually("checks at the new interval", || {
        change(&fixture.config, |variables| variables.monitor_read_only_interval += Duration::from_secs(1));
        [&first, &second].iter().all(|server| checks(Kind::ReadOnly, server) > 1)
    });
    assert!(once(Kind::Connect) && once(Kind::Ping));
}

/// Ends of a kind's checks so far, as the log tells them: None for success.
fn errors(checks: &Checks, kind: Kind) -> Vec<Option<String>> {
    let error = |row: Vec<Value>| match row.last() {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    checks.log_rows(kind).into_iter().map(error).collect()
}

#[test]
fn connects_are_new_each_time_and_pings_are_not() {
    let server = Server::new("0");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let checks = fixture.checks();
    (0..2).for_each(|_| perform(&checks, Kind::Connect));
    eventually("the end of the connections", || server.service.connections() == 0);
    (0..3).for_each(|_| perform(&checks, Kind::Ping));
    assert_eq!(server.logins(), 3);
    assert!(fixture.backends.read(|hostgroups| hostgroups.latency(&server.endpoint()).is_some()));
    let latency = fixture.backends.connection_pool_rows()[0][13].clone();
    assert!(matches!(latency, Value::Int(1..)), "{latency:?}");
    change(&fixture.config, |variables| variables.monitor_password = "wrong".into());
    perform(&checks, Kind::Connect);
    assert_eq!(errors(&checks, Kind::Ping), [None, None, None]);
    let connects = errors(&checks, Kind::Connect);
    assert!(connects[..2] == [None, None] && connects[2].as_ref().unwrap().contains("1045"), "{connects:?}");
    assert_eq!((checks.counts(Kind::Connect), checks.counts(Kind::Ping)), ((2, 1), (3, 0)));
    let row = &checks.log_rows(Kind::Connect)[0];
    assert!(row.len() == 5 && matches!(row[3], Value::Int(1..)), "{row:?}");
}

#[test]
fn who_answers_no_ping_is_shunned_and_who_refuses_the_monitor_is_not() {
    let server = Server::new("0");
    let fixture = Fixture::new(config(|variables| variables.monitor_ping_max_failures = 2), &[&server]);
    let checks = fixture.checks();
    let responds = || fixture.health.responds(&server.endpoint(), 2);
    change(&fixture.config, |variables| variables.monitor_password = "wrong".into());
    (0..3).for_each(|_| perform(&checks, Kind::Ping));
    assert!(responds() && fixture.places(&server) == [1]);
    server.service.stop(Duration::ZERO);
    perform(&checks, Kind::Ping);
    assert!(responds() && fixture.places(&server) == [1]);
    perform(&checks, Kind::Ping);
    assert!(!responds() && fixture.places(&server).is_empty());
    let status = fixture.backends.connection_pool_rows()[0][3].clone();
    assert_eq!(status, Value::Text("SHUNNED".into()));
}

#[test]
fn late_replicas_leave_and_return() {
    let server = Server::new("7");
    let fixture = Fixture::new(config(|_| ()), &[]);
    let port = server.address.port();
    let servers = vec![ServerRow { port, max_replication_lag: 5, ..row(2, "127.0.0.1") }];
    let loaded = ServersConfig { servers, replication: vec![pair(1, 2)], ..ServersConfig::default() };
    fixture.backends.update(|hostgroups| hostgroups.load(&loaded));
    let checks = fixture.checks();
    let used = |value: Option<&'static str>| {
        *server.script.value.lock() = value;
        perform(&checks, Kind::ReplicationLag);
        !fixture.places(&server).is_empty()
    };
    assert!(!used(Some("7")));
    assert!(used(Some("5")));
    assert!(!used(None), "NULL is taken for mysql-monitor_slave_lag_when_null");
    *server.script.error.lock() = Some(SqlError::new(1227, "42000", "not allowed"));
    assert!(!used(Some("0")), "an error says nothing");
    *server.script.error.lock() = None;
    assert!(used(Some("no row")), "it is nobody's replica");
    change(&fixture.config, |variables| variables.monitor_replication_lag_heartbeat = "p.heartbeat".into());
    assert!(!used(Some("9")));
    assert!(server.script.statements.lock().last().unwrap().ends_with("FROM `p`.`heartbeat`"));
    let lags: Vec<_> = checks.log_rows(Kind::ReplicationLag).into_iter().map(|row| row[4].clone()).collect();
    let int = Value::Int;
    assert_eq!(lags, [int(7), int(5), int(60), Value::Null, Value::Null, int(9)]);
    checks.forget();
    assert_eq!(fixture.places(&server), [2]);
}

#[test]
fn servers_that_are_down_delay_no_other_however_many_they_are() {
    let live = Server::new("0");
    // Connections to it are established and never served.
    let silent = TcpListener::bind("0.0.0.0:0").unwrap();
    let config = config(|variables| {
        variables.monitor_threads_max = 4;
        variables.monitor_ping_interval = Duration::from_millis(20);
        variables.monitor_connect_timeout = Duration::from_secs(600);
    });
    let fixture = Fixture::new(config, &[]);
    let port = silent.local_addr().unwrap().port();
    let mut servers: Vec<_> =
        (1..=100).map(|last| ServerRow { port, ..row(1, &format!("127.0.1.{last}")) }).collect();
    let load = |servers: &[ServerRow]| {
        let loaded = ServersConfig { servers: servers.to_vec(), ..ServersConfig::default() };
        fixture.backends.update(|hostgroups| hostgroups.load(&loaded));
    };
    load(&servers);
    let monitor = fixture.monitor();
    let pinged = || monitor.log_rows(Kind::Ping).into_iter().map(|row| row[0].clone());
    servers.push(ServerRow { port: live.address.port(), ..row(2, "127.0.0.1") });
    load(&servers);
    let here = Value::Text("127.0.0.1".into());
    eventually("pings of the live server", || pinged().filter(|host| *host == here).count() > 5);
    assert_eq!(fixture.places(&live), [2]);
    let counters = monitor.counters();
    let threads = counters.iter().filter(|(name, _)| name.starts_with("MySQL_Monitor_Workers"));
    let threads: Vec<_> = threads.map(|(name, count)| (name.as_str(), *count)).collect();
    let [(_, probing @ 1..=2), ("MySQL_Monitor_Workers_Aux", 2), (_, started)] = threads[..] else {
        panic!("{threads:?}")
    };
    assert!(started >= probing + 2, "{threads:?}");
    let stopping = Instant::now();
    monitor.stop();
    assert!(stopping.elapsed() < LONG, "stop waited for servers that are down");
}

#[test]
fn what_checks_have_found_is_forgotten_without_checks() {
    let server = Server::new("0");
    let fixture = Fixture::new(config(|_| ()), &[&server]);
    let endpoint = server.endpoint();
    for _ in 0..3 {
        fixture.health.note(&endpoint, Pong::Missed);
    }
    fixture.backends.set_latency(&endpoint, LONG);
    let monitor = fixture.monitor();
    change(&fixture.config, |variables| variables.monitor_enabled = false);
    eventually("nothing is known", || {
        fixture.health.responds(&endpoint, 3)
            && fixture.backends.read(|hostgroups| hostgroups.latency(&endpoint).is_none())
    });
    drop(monitor);
}
