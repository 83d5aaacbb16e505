//! What locality adds to the choice of a server, in time and allocations: `cargo bench --bench locality`.

use admin::rows::{ServerRow, ServersConfig};
use divan::{AllocProfiler, Bencher, black_box};
use pointsman::hostgroups::{Endpoint, Hostgroups, Recovery};
use pointsman::locality::Snapshot;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const SERVERS: [usize; 3] = [2, 4, 16];
/// Choices that are timed together, so that looking at the clock costs nothing beside them.
const SAMPLE: u32 = 1_000;

fn main() {
    divan::main();
}

fn host(number: usize) -> String {
    format!("db-1-reader-{number:02}.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com")
}

fn choose(bencher: Bencher<'_, '_>, servers: usize, factors_for: impl Fn(&[Endpoint]) -> Snapshot) {
    let mut hostgroups = Hostgroups::default();
    let row = |number| ServerRow { weight: 100, ..ServerRow::new(1, host(number), 3306) };
    hostgroups.load(&ServersConfig { servers: (0..servers).map(row).collect(), ..ServersConfig::default() });
    let members: Vec<Endpoint> = hostgroups.members(1).map(|(endpoint, _)| endpoint.clone()).collect();
    let snapshot = factors_for(&members);
    let recovery = || Recovery { pause: Duration::from_secs(10), everywhere: false };
    let (now, mut random) = (Instant::now(), 0_u64);
    bencher.bench_local(|| {
        random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let factors = black_box(&snapshot).of(1);
        hostgroups.select(1, now, random, factors, |_| 0, recovery).map(|(_, row)| row.weight).ok()
    });
}

/// By the configured weights.
#[divan::bench(args = SERVERS, sample_size = SAMPLE)]
fn configured(bencher: Bencher<'_, '_>, servers: usize) {
    choose(bencher, servers, |_| Snapshot::default());
}

/// With a factor for every server.
#[divan::bench(args = SERVERS, sample_size = SAMPLE)]
fn by_locality(bencher: Bencher<'_, '_>, servers: usize) {
    choose(bencher, servers, |members| {
        let factor = |number| [4.0, 2.0, 1.0][number % 3];
        let factors = members.iter().enumerate().map(|(number, at)| (at.clone(), factor(number)));
        Snapshot::new([(1, factors.collect())])
    });
}

/// Factors whose names are equal but not the same, as between a LOAD and the next look.
#[divan::bench(args = SERVERS, sample_size = SAMPLE)]
fn by_locality_after_a_load(bencher: Bencher<'_, '_>, servers: usize) {
    choose(bencher, servers, |members| {
        let anew = members.iter().map(|at| (Endpoint::new(&at.host, at.port), 2.0));
        Snapshot::new([(1, anew.collect())])
    });
}
