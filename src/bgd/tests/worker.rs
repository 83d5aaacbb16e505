//! When a worker polls, what it leaves alone, and how it ends.

use super::*;
use crate::bgd::control::{Control, REST};
use crate::bgd::dispatcher::{RESTART_DELAY, Workers};
use crate::bgd::worker::{End, Poller, Worker};
use crossbeam_channel::bounded;
use std::ops::Range;
use std::thread;

/// What does not happen within this is taken not to happen.
const QUIET: Duration = Duration::from_millis(250);
const LONG: u32 = 600_000;

/// `n` polls of one kind from now on, and the times between them.
fn gaps(site: &Site, n: usize) -> Vec<Duration> {
    let times = || site.servers.times.lock().clone();
    let before = times().len();
    eventually("polls", || times().len() > before + n);
    times()[before..].windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Asserts how often polls come: one is never much too soon, since a poll that arrives late makes up for the one after it, and on a
/// busy machine at least one of them is not much too late. The range tells an interval from the next shorter and the next longer.
#[track_caller]
fn assert_every(range: Range<u64>, gaps: &[Duration]) {
    let mean = gaps.iter().sum::<Duration>() / u32::try_from(gaps.len()).unwrap();
    let shortest = gaps.iter().min().unwrap();
    assert!(mean >= millis(range.start) && *shortest < millis(range.end), "{range:?}: {gaps:?}");
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn with_interval(table: Table, interval: u32) -> Site {
    Site::with(table, |config| config.bgd[0].check_interval_ms = interval)
}

/// A site with a second deployment in the hostgroups 110, 120, 130 and 140.
fn with_another() -> Site {
    let site = Site::with(Table::Target("AVAILABLE"), |config| {
        config.servers.extend([server(110, "other.bgd.test"), server(120, "r2.bgd.test")]);
        let mut other = config.bgd[0].clone();
        (other.writer_hostgroup, other.reader_hostgroup) = (110, 120);
        (other.green_writer_hostgroup, other.green_reader_hostgroup) = (Some(130), Some(140));
        config.bgd.push(other);
    });
    publish_other(&site, Table::Target("AVAILABLE"));
    site
}

fn publish_other(site: &Site, table: Table) {
    let mut tables = site.servers.tables.lock();
    tables.extend([OTHER_BLUE, OTHER_GREEN].map(|address| (address, table.clone())));
}

fn other_status(site: &Site) -> BgdStatus {
    site.effects.backends.read(|groups| groups.deployments()[&110].status)
}

fn reach_other(site: &Site, status: &'static str, expected: BgdStatus) {
    publish_other(site, Table::Target(status));
    eventually(&format!("the other is {expected:?}"), || other_status(site) == expected);
}

#[test]
fn the_interval_begins_with_the_poll_and_not_with_its_answer() {
    let site = with_interval(Table::Absent, 400);
    *site.servers.slowness.lock() = millis(300);
    assert_every(300..700, &gaps(&site, 4));
}

#[test]
fn each_phase_is_polled_as_often_as_it_has_to_be() {
    let site = with_interval(Table::Target("AVAILABLE"), 1000);
    site.wait(BgdStatus::Available);
    let times = site.servers.times.lock().clone();
    let first = times[1] - times[0];
    assert!(first > millis(500), "the table check and the metadata are polls of their own: {first:?}");
    assert_every(170..500, &gaps(&site, 6));
    let fast = [
        ("SWITCHOVER_INITIATED", BgdStatus::WriterSwitchoverInitiated),
        ("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress),
        ("SWITCHOVER_IN_POST_PROCESSING", BgdStatus::WriterSwitchoverPostProcessing),
    ];
    for (status, state) in fast {
        site.reach(status, state);
        assert_every(60..170, &gaps(&site, 6));
    }
    site.reach("SWITCHOVER_COMPLETED", BgdStatus::ReaderSwitchoverInProgress);
    assert_every(500..u64::MAX, &gaps(&site, 2));
}

#[test]
fn after_a_table_that_vanished_the_check_comes_a_configured_interval_later() {
    let site = with_interval(Table::Target("AVAILABLE"), 1000);
    site.servers.tables.lock().insert(GREEN, Table::Absent);
    let checks = || site.servers.seen.lock().iter().filter(|seen| **seen == (BLUE, true)).count();
    eventually("the second check", || checks() == 2);
    let seen = site.servers.seen.lock().clone();
    let times = site.servers.times.lock().clone();
    assert_eq!(seen[..4], [(BLUE, true), (BLUE, false), (GREEN, false), (BLUE, true)]);
    // While the deployment was available it was 250 ms.
    assert!(times[3] - times[2] > millis(500), "{:?}", times[3] - times[2]);
}

#[test]
fn changed_variables_are_noticed_within_a_nap() {
    let site = with_interval(Table::Absent, LONG);
    let polls = || site.servers.seen.lock().len();
    eventually("the first poll", || polls() == 1);
    let mut quickest = Duration::MAX;
    for n in 2..7 {
        let variables = Variables::clone(&site.effects.config.variables());
        let changed = Instant::now();
        site.effects.config.set_variables(variables);
        eventually("a poll", || polls() == n);
        quickest = quickest.min(changed.elapsed());
    }
    // Asleep for a nap at most, and not for ten minutes.
    assert!(quickest < millis(300), "{quickest:?}");
}

#[test]
fn a_changed_configuration_is_polled_with_at_once_and_another_load_is_not() {
    let mut site = with_interval(Table::Absent, LONG);
    let polls = |site: &Site| site.servers.seen.lock().len();
    eventually("the first poll", || polls(&site) == 1);
    site.load(|config| config.servers[0].weight = 7);
    thread::sleep(QUIET);
    assert_eq!(polls(&site), 1);
    site.load(|config| config.bgd[0].check_timeout_ms = 900);
    eventually("the second poll", || polls(&site) == 2);
}

#[test]
fn a_new_worker_lets_its_configuration_rest() {
    let mut site = Site::with(Table::Absent, |config| config.bgd[0].active = false);
    let loaded = Instant::now();
    site.load(|config| config.bgd[0].active = true);
    eventually("a poll", || !site.servers.times.lock().is_empty());
    let rest = site.servers.times.lock()[0] - loaded;
    assert!(rest >= REST, "{rest:?}");
}

#[test]
fn a_stop_is_noticed_while_nothing_is_due() {
    let site = with_interval(Table::Absent, LONG);
    eventually("the first poll", || site.servers.seen.lock().len() == 1);
    let asked = Instant::now();
    site.dispatcher.stop();
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn a_switchover_changes_no_configuration() {
    let site = Site::new(Table::Target("AVAILABLE"));
    let generation = || site.effects.backends.read(|groups| groups.generation());
    let before = generation();
    to_post_processing(&site);
    site.reach("SWITCHOVER_COMPLETED", BgdStatus::ReaderSwitchoverInProgress);
    let seen = site.servers.seen.lock().clone();
    let through_blue = seen.iter().filter(|(address, _)| *address == BLUE).count();
    assert_eq!(
        through_blue, 2,
        "the table check and the first metadata; each refresh has one more: {seen:?}"
    );
    site.publish(Table::Empty);
    site.wait(BgdStatus::None);
    assert_eq!(generation(), before);
}

#[test]
fn a_deployment_that_discovery_makes_does_not_concern_others() {
    let site = Site::with(Table::Target("AVAILABLE"), |config| {
        config.servers.push(server(110, "other.bgd.test"));
        config.replication.push(crate::testing::pair(110, 120));
    });
    site.reach("SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
    site.wait_for_query(GREEN);
    // A LOAD would have the worker demote it again.
    let [writer, other] = [0, 2].map(|at| site.endpoint(at));
    site.effects.backends.update(|groups| groups.configure_writer(10, 20, &writer, false));
    let before = site.servers.seen.lock().len();
    publish_other(&site, Table::Target("AVAILABLE"));
    site.effects.backends.update(|groups| groups.add_deployment(&other));
    eventually("the new one's state", || other_status(&site) == BgdStatus::Available);
    thread::sleep(QUIET);
    assert_eq!(site.placed(10, 0), Some(ServerStatus::Online));
    assert!(
        !site.servers.seen.lock()[before..].iter().any(|(address, _)| *address == BLUE),
        "it was refreshed"
    );
}

#[test]
fn two_deployments_leave_each_others_effects_alone() {
    let mut site = with_another();
    to_post_processing(&site);
    reach_other(&site, "SWITCHOVER_IN_POST_PROCESSING", BgdStatus::WriterSwitchoverPostProcessing);
    let pins = |site: &Site| site.pinned().into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>();
    let suppressed = |site: &Site, at| site.effects.suppression.admit(&site.endpoint(at)).is_none();
    assert_eq!(pins(&site), ["db.bgd.test", "other.bgd.test"].map(str::to_owned).into());
    // Servers: 0 and 1 are the writer and the reader of the one, 2 and 3 of the other.
    let first_stands = |site: &Site| {
        pins(site).contains("db.bgd.test")
            && site.placed(20, 1) == Some(ServerStatus::ShunnedAwsBgd)
            && (0..2).all(|at| suppressed(site, at))
    };
    // The other is cancelled, switched over, disabled.
    publish_other(&site, Table::Empty);
    eventually("a rollback", || other_status(&site) == BgdStatus::None);
    assert!(first_stands(&site));
    assert_eq!((site.placed(120, 3), suppressed(&site, 2)), (Some(ServerStatus::Online), false));
    for status in ["AVAILABLE", "SWITCHOVER_IN_POST_PROCESSING"] {
        publish_other(&site, Table::Target(status));
        eventually(status, || other_status(&site) != BgdStatus::None);
    }
    eventually("pinned again", || pins(&site).contains("other.bgd.test"));
    reach_other(&site, "SWITCHOVER_COMPLETED", BgdStatus::ReaderSwitchoverInProgress);
    assert!(first_stands(&site) && suppressed(&site, 3));
    publish_other(&site, Table::Empty);
    eventually("success", || other_status(&site) == BgdStatus::None);
    assert!(first_stands(&site));
    reach_other(&site, "SWITCHOVER_IN_PROGRESS", BgdStatus::WriterSwitchoverInProgress);
    assert_eq!((site.placed(110, 2), site.placed(120, 2)), (None, Some(ServerStatus::Online)));
    site.load(|config| config.bgd[1].active = false);
    eventually("its end", || !suppressed(&site, 2));
    eventually("the first one's effects", || first_stands(&site));
    assert_eq!(site.status(), BgdStatus::WriterSwitchoverPostProcessing);
    // And the first one's end leaves the other's alone.
    site.load(|config| config.bgd[1].active = true);
    eventually("it is back", || other_status(&site) == BgdStatus::WriterSwitchoverInProgress);
    site.publish(Table::Empty);
    site.wait(BgdStatus::None);
    assert!(suppressed(&site, 2) && suppressed(&site, 3) && !suppressed(&site, 0));
    assert_eq!((site.placed(110, 2), site.placed(120, 2)), (None, Some(ServerStatus::Online)));
}

#[test]
fn the_table_of_a_cluster_is_no_deployment_and_ends_one_without_rollback() {
    let site = Site::new(Table::Cluster);
    eventually("polls", || site.servers.seen.lock().len() > 3);
    assert_eq!(site.status(), BgdStatus::None);
    assert!(site.servers.seen.lock().iter().all(|(address, _)| *address == BLUE), "no green server is known");
    to_post_processing(&site);
    site.publish(Table::Cluster);
    site.wait(BgdStatus::None);
    let name = ("db.bgd.test".to_owned(), GREEN);
    assert_eq!((site.pinned(), site.suppressed()), (vec![name], false), "the contract: no rollback");
    assert_eq!(site.placed(20, 1), Some(ServerStatus::ShunnedAwsBgd));
    site.dispatcher.stop();
    assert_eq!(
        (site.pinned(), site.placed(20, 1)),
        (vec![], Some(ServerStatus::Online)),
        "its exit undoes all"
    );
}

#[test]
fn a_worker_that_panics_rolls_back() {
    let site = Site::new(Table::Target("AVAILABLE"));
    site.dispatcher.stop();
    let control = Arc::new(Control::default());
    let mut poller = Poller::new(site.effects.clone(), site.loaded.bgd[0].clone(), control.clone());
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            poller.guard(|poller| {
                poller.poll_until_stopped();
                panic!("a fault");
            })
        });
        to_post_processing(&site);
        assert!(site.suppressed() && !site.pinned().is_empty());
        control.stop();
        assert_eq!(worker.join().unwrap(), End::Panicked);
    });
    assert_eq!((site.status(), site.pinned(), site.suppressed()), (BgdStatus::None, vec![], false));
    assert_eq!(
        (site.placed(10, 0), site.placed(20, 1)),
        (Some(ServerStatus::Online), Some(ServerStatus::Online))
    );
}

#[test]
fn a_deployment_whose_worker_has_panicked_gets_another_after_a_while() {
    let site = Site::new(Table::Absent);
    site.dispatcher.stop();
    let (bell, rung) = bounded(1);
    let mut workers = Workers::new(site.effects.clone(), bell.clone());
    let now = Instant::now();
    assert_eq!(workers.attend(now), None);
    let failed = Worker::spawn(10, Arc::default(), bell, || End::Panicked).unwrap();
    workers.running.get_mut(&10).unwrap().worker = failed;
    eventually("its end", || workers.running[&10].worker.ended());
    assert!(rung.recv_timeout(QUIET).is_ok());
    let due = now + RESTART_DELAY;
    assert_eq!((workers.attend(now), workers.running.len()), (Some(due), 0));
    assert_eq!((workers.attend(now + RESTART_DELAY / 2), workers.running.len()), (Some(due), 0));
    assert_eq!((workers.attend(due), workers.running.len()), (None, 1));
    workers.stop();
}
