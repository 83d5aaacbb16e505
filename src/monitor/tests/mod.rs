use super::checks::Checks;
use super::health::{Health, Pong};
use super::probe::{Probes, Target};
use super::suppression::Suppression;
use super::*;
use crate::bgd::topology::METADATA;
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

mod connections;
mod discovery;
mod schedule;

const LONG: Duration = Duration::from_secs(10);

/// What a fake MySQL server does and has seen.
#[derive(Default)]
struct Script {
    value: Mutex<Option<&'static str>>,
    error: Mutex<Option<SqlError>>,
    /// mysql.rds_topology, columns first; absent where there is none.
    topology: Mutex<Vec<&'static [&'static str]>>,
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
        if sql == METADATA {
            let topology = self.0.topology.lock();
            let Some((columns, rows)) = topology.split_first() else {
                return reply.error(&SqlError::new(1146, "42S02", "no such table"));
            };
            let columns: Vec<_> = columns.iter().map(|name| Column::text(*name)).collect();
            let mut answer = reply.rows(&columns)?;
            for row in rows {
                answer.row(row.iter().map(|cell| Some(cell.as_bytes())))?;
            }
            return answer.finish();
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
        let rows =
            servers.iter().map(|server| ServerRow { port: server.address.port(), ..row(1, "127.0.0.1") });
        Self::of(Dns::new(config.clone(), None), config, rows.collect())
    }
    fn of(dns: Arc<Dns>, config: Arc<Config>, servers: Vec<ServerRow>) -> Self {
        let backends = Arc::new(Backends::new(config.clone(), dns.clone()));
        let servers = ServersConfig { servers, replication: vec![pair(1, 2)], ..ServersConfig::default() };
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
fn silence_of_an_address_that_the_name_has_left_says_nothing_of_the_server() {
    let server = Server::new("0");
    let hosts = tempfile::tempdir().unwrap();
    let file = hosts.path().join("hosts");
    std::fs::write(&file, "127.0.0.1 db.test\n").unwrap();
    let config = config(|variables| variables.monitor_read_only_timeout = Duration::from_millis(100));
    let (port, dns) = (server.address.port(), Dns::new(config.clone(), Some(file)));
    let fixture = Fixture::of(dns, config, vec![ServerRow { port, ..row(1, "db.test") }]);
    let checks = fixture.checks();
    server.hang();
    let time_out = |elsewhere: bool| {
        let before = server.selects();
        std::thread::scope(|scope| {
            scope.spawn(|| perform_all(&checks));
            eventually("the check", || server.selects() > before);
            if elsewhere {
                fixture.dns.pin("db.test", "127.0.0.2".parse().unwrap(), "green".into(), 7);
            }
        });
        fixture.dns.remove("db.test", 7);
    };
    let endpoint = Endpoint::new("db.test", port);
    let placed = |id| fixture.backends.read(|groups| groups.usable(id, &endpoint));
    (0..3).for_each(|_| time_out(true));
    assert!(placed(1) && !placed(2));
    assert!(
        matches!(&checks.log_rows(Kind::ReadOnly)[2][5], Value::Text(text) if text.contains("any more")),
        "{:?}",
        checks.log_rows(Kind::ReadOnly)
    );
    (0..3).for_each(|_| time_out(false));
    assert!(placed(2) && !placed(1));
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
