//! Which check is made when, and what delays none.

use super::*;

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

#[test]
fn servers_that_are_down_delay_no_other_however_many_they_are() {
    let live = Server::new("0");
    // Connections to it are established and never served.
    let silent = TcpListener::bind("0.0.0.0:0").unwrap();
    let config = config(|variables| {
        variables.monitor_threads_max = 4;
        variables.monitor_ping_interval = Duration::from_millis(20);
        // A check that waited its turn behind all of them would be later than this test is patient.
        variables.monitor_connect_timeout = Duration::from_secs(1);
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
    eventually("two threads of each crew at the most", || {
        let counters = monitor.counters();
        let count = |end: &str| {
            let name = format!("MySQL_Monitor_Workers{end}");
            counters.iter().find(|(counter, _)| *counter == name).map(|(_, count)| *count)
        };
        let (probing, retrying, started) = (count(""), count("_Aux"), count("_Started"));
        assert!(probing <= Some(2) && retrying <= Some(2), "{counters:?}");
        retrying == Some(2) && probing >= Some(1) && started >= Some(3)
    });
}
