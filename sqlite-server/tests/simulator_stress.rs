//! Many probers beside a test that writes without a pause: nothing fails on a lock, and nobody sees half a transaction.
//!
//! A short form runs with the other tests. POINTSMAN_STRESS_SECONDS=60 is the whole of it (`make test-sim-stress`), which also
//! insists on the rate.
#![cfg(feature = "test-rds-bgd")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{TestServer, value_of};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CHECK: &str =
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_NAME='rds_topology'";
const METADATA: &str = "SELECT * FROM mysql.rds_topology";
const BACKENDS: [&str; 2] = ["127.10.0.11", "127.10.0.14"];
const PROBERS: usize = 20;
const TRANSACTIONS_A_SECOND: u32 = 200;
/// Time between two probes of one prober, as short as any monitor is configured.
const BETWEEN_PROBES: Duration = Duration::from_millis(20);

/// What a backend is made to be, one after the other. No state has the rows of another: whoever puts the control row of one
/// beside the rows of the next sees what none of them is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Old,
    New,
    Failing,
    Dropped,
}

impl State {
    const ALL: [Self; 4] = [Self::Old, Self::New, Self::Failing, Self::Dropped];

    fn rows(self) -> usize {
        match self {
            Self::Old => 3,
            Self::New => 5,
            // Kept, and never to be seen.
            Self::Failing => 7,
            Self::Dropped => 0,
        }
    }

    /// Present, error code and text.
    fn control(self) -> (bool, u16, &'static str) {
        match self {
            Self::Old | Self::New => (true, 0, ""),
            Self::Failing => (true, 1105, "made to fail"),
            Self::Dropped => (false, 1146, "Table 'mysql.rds_topology' doesn't exist"),
        }
    }

    /// Makes every backend so, in one transaction.
    fn publish(self, control: &mut Conn, port: u16) {
        control.query_drop("START TRANSACTION").unwrap();
        for ip in BACKENDS {
            let (present, code, text) = self.control();
            let (present, text) = (u8::from(present), text.replace('\'', "''"));
            control
                .query_drop(format!(
                    "DELETE FROM RDS_BGD_TOPOLOGY WHERE backend_ip='{ip}' AND backend_port={port}"
                ))
                .unwrap();
            control
                .query_drop(format!(
                    "INSERT OR REPLACE INTO RDS_BGD_CONTROL VALUES ('{ip}',{port},{present},{code},'{text}')"
                ))
                .unwrap();
            for order in 0..self.rows() {
                control
                    .query_drop(format!(
                        "INSERT INTO RDS_BGD_TOPOLOGY VALUES ('{ip}',{port},{order},'{order}','db',3306,'role','{self:?}')"
                    ))
                    .unwrap();
            }
        }
        control.query_drop("COMMIT").unwrap();
    }

    /// The state that answers a metadata query so. Panics where none does.
    fn seen(monitor: &mut Conn) -> Self {
        match monitor.query::<(String, String, u16, String, String), _>(METADATA) {
            Ok(rows) => {
                let whole = |state: &&Self| {
                    let (present, code, _) = state.control();
                    let name = format!("{state:?}");
                    present && code == 0 && state.rows() == rows.len() && rows.iter().all(|row| row.4 == name)
                };
                *Self::ALL.iter().find(whole).unwrap_or_else(|| panic!("half a transaction: {rows:?}"))
            }
            Err(mysql::Error::MySqlError(error)) => {
                let told =
                    |state: &&Self| (state.control().1, state.control().2) == (error.code, &*error.message);
                *Self::ALL.iter().find(told).unwrap_or_else(|| panic!("the simulator failed: {error}"))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// What a prober did.
#[derive(Default)]
struct Probed {
    probes: u64,
    longest: Duration,
}

/// Probes one backend until told to end.
fn probe(mut monitor: Conn, done: &AtomicBool) -> Probed {
    let mut probed = Probed::default();
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        if probed.probes.is_multiple_of(2) {
            let rows: Vec<u8> = monitor.query(CHECK).unwrap();
            assert!(rows.is_empty() || rows == [1], "{rows:?}");
        } else {
            State::seen(&mut monitor);
        }
        probed.longest = probed.longest.max(began.elapsed());
        probed.probes += 1;
        std::thread::sleep(BETWEEN_PROBES);
    }
    probed
}

/// Publishes one state after the other at the rate wanted, or as fast as it can be done; how many. Each is there once committed.
fn publish_for(time: Duration, mut control: Conn, mut monitor: Conn, port: u16) -> u32 {
    let began = Instant::now();
    let interval = Duration::from_secs(1) / TRANSACTIONS_A_SECOND;
    let mut transactions = 0;
    for state in State::ALL.iter().cycle() {
        if began.elapsed() >= time {
            break;
        }
        state.publish(&mut control, port);
        transactions += 1;
        if transactions % 10 == 0 {
            assert_eq!(State::seen(&mut monitor), *state, "committed, and not there");
        }
        std::thread::sleep((interval * transactions).saturating_sub(began.elapsed()));
    }
    transactions
}

#[test]
fn twenty_probers_and_a_writer_disturb_each_other_in_nothing() {
    let whole = std::env::var("POINTSMAN_STRESS_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let time = Duration::from_secs(whole.unwrap_or(3));
    let server = TestServer::start();
    let mut control = server.connect("127.0.0.1");
    State::Old.publish(&mut control, server.port());
    let done = AtomicBool::new(false);
    let (transactions, probed) = std::thread::scope(|scope| {
        let probers: Vec<_> = (0..PROBERS)
            .map(|number| {
                let ip = BACKENDS[number % BACKENDS.len()];
                let tls = number % 4 < 2;
                let monitor = if tls { server.connect_tls(ip) } else { server.connect(ip) };
                scope.spawn(|| probe(monitor, &done))
            })
            .collect();
        let (port, own) = (server.port(), server.connect(BACKENDS[0]));
        let writer = scope.spawn(move || publish_for(time, control, own, port)).join();
        // Set where the writer failed, too, so that the probers end and the failure is shown.
        done.store(true, Ordering::Relaxed);
        let probed: Vec<Probed> = probers.into_iter().map(|prober| prober.join().unwrap()).collect();
        (writer.unwrap(), probed)
    });
    let probes: u64 = probed.iter().map(|probed| probed.probes).sum();
    let longest = probed.iter().map(|probed| probed.longest).max().unwrap();
    println!(
        "{transactions} transactions and {probes} probes in {time:?}; the longest probe took {longest:?}"
    );
    let logged = value_of(&mut server.connect("127.0.0.1"), "SELECT count(*) FROM RDS_BGD_PROBE_LOG");
    assert_eq!(logged, (probes + u64::from(transactions / 10)).to_string());
    if let Some(seconds) = whole {
        let wanted = u64::from(TRANSACTIONS_A_SECOND) * seconds;
        assert!(u64::from(transactions) * 10 >= wanted * 9, "{transactions} of {wanted} transactions");
    }
    server.stop();
}
