use super::world::{TARGET, World, online};
use super::*;
use crate::bgd::mapping::{GreenAddress, Member};
use crate::hostgroups::ServerStatus;
use Action::*;
use std::net::SocketAddr;

const INITIATED: &str = "SWITCHOVER_INITIATED";
const IN_PROGRESS: &str = "SWITCHOVER_IN_PROGRESS";
const POST: &str = "SWITCHOVER_IN_POST_PROCESSING";
const COMPLETED: &str = "SWITCHOVER_COMPLETED";

fn at(host: &str) -> Endpoint {
    Endpoint::new(host, 3306)
}
fn pin(host: &str, last: u8) -> Action {
    let target = match last {
        14 => TARGET,
        15 => "r1-green-1.x",
        _ => "db-green-2.x",
    };
    Pin { host: Arc::from(host), address: [127, 10, 0, last].into(), target: Arc::from(target) }
}
fn forget(host: &str) -> Action {
    RemoveDns(Arc::from(host))
}
fn publish(from: BgdStatus, to: BgdStatus, cause: &str) -> Action {
    Publish(Transition { from, to, cause: Arc::from(cause) })
}
fn configure(host: &str, also_reader: bool) -> Action {
    ConfigureWriter { endpoint: at(host), reader: 20, also_reader }
}
fn shun(host: &str) -> Action {
    ShunReader { hostgroup: 20, endpoint: at(host) }
}
fn suppress_all() -> Action {
    Suppress(vec![at("db.x"), at("r1.x"), at("r2.x")])
}
fn demote(host: &str) -> Action {
    Demote { endpoint: at(host), reader: 20 }
}
fn reached(statuses: &[&str]) -> World {
    let mut world = World::new();
    world.see(Observation::TablePresent);
    for status in statuses {
        world.status(status);
    }
    world
}
fn direct(world: &World) -> Option<SocketAddr> {
    world.machine.direct().map(|direct| direct.address)
}
fn metadata(topology: Topology) -> Observation {
    Observation::Metadata { topology, members: Members::default() }
}
fn green() -> Option<SocketAddr> {
    Some(([127, 10, 0, 14], 3306).into())
}

#[test]
fn the_table_check_and_the_metadata_are_separate_polls() {
    let mut world = World::new();
    assert_eq!(
        (world.machine.kind(), world.machine.interval()),
        (ProbeKind::TableCheck, Duration::from_secs(1))
    );
    assert_eq!(world.see(Observation::TableAbsent), []);
    assert_eq!(world.machine.kind(), ProbeKind::TableCheck);
    assert_eq!(world.see(Observation::TablePresent), []);
    assert_eq!(
        (world.machine.kind(), world.machine.interval()),
        (ProbeKind::Metadata, Duration::from_secs(1))
    );
}

#[test]
fn absence_in_none_changes_nothing() {
    let mut world = reached(&[]);
    let interval = Duration::from_millis(100);
    world.machine.interval = Some(interval);
    for absent in [Observation::TableAbsent, metadata(Topology::Empty)] {
        assert_eq!(world.see(absent), []);
        assert_eq!((world.machine.kind(), world.machine.interval()), (ProbeKind::Metadata, interval));
    }
    assert_eq!(world.see(Observation::Vanished), []);
    let baseline = Duration::from_secs(1);
    assert_eq!((world.machine.kind(), world.machine.interval()), (ProbeKind::TableCheck, baseline));
}

#[test]
fn each_phase_does_its_part_and_publishes_last() {
    use BgdStatus::*;
    let mut world = reached(&[]);
    assert_eq!(world.status("AVAILABLE"), [publish(None, Available, "target status AVAILABLE")]);
    assert_eq!((direct(&world), world.machine.interval()), (green(), Duration::from_millis(250)));
    let initiated = publish(Available, WriterSwitchoverInitiated, "target status SWITCHOVER_INITIATED");
    assert_eq!(world.status(INITIATED), [suppress_all(), initiated]);
    assert_eq!(world.machine.interval(), Duration::from_millis(100));
    let in_progress = publish(
        WriterSwitchoverInitiated,
        WriterSwitchoverInProgress,
        "target status SWITCHOVER_IN_PROGRESS",
    );
    assert_eq!(world.status(IN_PROGRESS), [demote("db.x"), in_progress]);
    assert_eq!(
        world.status(POST),
        [
            pin("db.x", 14),
            Drain(at("db.x")),
            pin("r1.x", 15),
            Drain(at("r1.x")),
            configure("db.x", false),
            shun("r2.x"),
            publish(
                WriterSwitchoverInProgress,
                WriterSwitchoverPostProcessing,
                "target status SWITCHOVER_IN_POST_PROCESSING"
            ),
        ]
    );
    assert_eq!(world.machine.interval(), Duration::from_millis(100));
    let reader = publish(
        WriterSwitchoverPostProcessing,
        ReaderSwitchoverInProgress,
        "target status SWITCHOVER_COMPLETED",
    );
    assert_eq!(world.status(COMPLETED), [forget("db.x"), reader]);
    assert_eq!((direct(&world), world.machine.interval()), (green(), Duration::from_secs(1)));
    assert_eq!(world.pins.keys().collect::<Vec<_>>(), ["r1.x"]);
    assert!(!world.suppressed.is_empty());
    let drained = "mysql.rds_topology is empty";
    assert_eq!(
        world.topology(Topology::Empty),
        [
            publish(ReaderSwitchoverInProgress, SwitchoverCompleted, drained),
            configure("db.x", false),
            forget("db.x"),
            PurgeProbes(at("db.x")),
            forget("r1.x"),
            PurgeProbes(at("r1.x")),
            forget("r2.x"),
            PurgeProbes(at("r2.x")),
            UnshunReader { hostgroup: 20, endpoint: at("r2.x") },
            PurgeDirect(([127, 10, 0, 14], 3306).into()),
            PurgeDirect(([127, 10, 0, 15], 3306).into()),
            DrainGreen(vec![30, 40]),
            ClearSuppression,
            publish(SwitchoverCompleted, None, drained),
        ]
    );
    assert!(world.owns_nothing());
    assert_eq!(
        (world.machine.kind(), world.machine.interval()),
        (ProbeKind::Metadata, Duration::from_secs(1))
    );
}

#[test]
fn late_entry_does_what_the_skipped_phases_would_have_done() {
    let mut world = reached(&[]);
    let actions = world.status(INITIATED);
    assert_eq!((&actions[0], direct(&world)), (&suppress_all(), green()));
    let mut world = reached(&[]);
    assert_eq!(world.status(IN_PROGRESS)[..2], [suppress_all(), demote("db.x")]);
    assert_eq!(direct(&world), green());
    let mut world = reached(&[]);
    let actions = world.status(POST);
    assert_eq!(actions[..2], [suppress_all(), pin("db.x", 14)]);
    assert!(actions.contains(&configure("db.x", false)) && actions.contains(&shun("r2.x")));
    assert_eq!(direct(&world), green());
}

#[test]
fn completion_seen_first_waits_for_the_drain_without_a_map() {
    let mut world = reached(&[COMPLETED]);
    assert_eq!(world.status, BgdStatus::ReaderSwitchoverInProgress);
    assert!(world.owns_nothing() && world.log.len() == 1);
    assert_eq!(world.status(COMPLETED), []);
    world.topology(Topology::Empty);
    assert_eq!((world.status, world.green_drained), (BgdStatus::None, 1));
    assert!(!world.log.iter().any(|action| matches!(action, ConfigureWriter { .. } | Pin { .. })));
}

#[test]
fn completion_without_post_processing_returns_the_writer() {
    let mut world = reached(&["AVAILABLE", IN_PROGRESS]);
    assert_eq!(world.status(COMPLETED)[..3], [forget("db.x"), Drain(at("db.x")), configure("db.x", false)]);
    assert_eq!(direct(&world), green());
    assert!(world.demoted.is_empty());

    // A writer that was demoted after the LOAD and before the refresh is in no map yet.
    let mut world = reached(&[IN_PROGRESS]);
    world.refresh(|_| {});
    world.demoted.insert(at("db.x"));
    assert_eq!(world.status(COMPLETED)[..1], [configure("db.x", false)]);
    assert!(world.demoted.is_empty());
}

#[test]
fn repeated_phases_do_nothing_new() {
    for statuses in [&["AVAILABLE"][..], &[INITIATED], &[IN_PROGRESS], &[POST], &[POST, COMPLETED]] {
        let mut world = reached(statuses);
        let last = statuses.last().expect("one");
        assert_eq!(world.status(last), [], "{last}");
        assert_eq!(world.status(&last.to_ascii_lowercase()), [], "{last}");
    }
}

#[test]
fn a_pair_resolved_during_post_processing_is_pinned_and_drained_once() {
    let mut world = reached(&[]);
    let address = world.names.remove(TARGET).expect("known");
    let actions = world.status(POST);
    assert!(!actions.contains(&Drain(at("db.x"))) && actions.contains(&Drain(at("r1.x"))));
    assert_eq!(world.status(POST), []);
    world.names.insert(TARGET.into(), address);
    assert_eq!(world.status(POST), [pin("db.x", 14), Drain(at("db.x"))]);
    assert_eq!(world.status(POST), []);
    assert!(world.drained.values().all(|times| *times == 1));
}

#[test]
fn an_expired_address_is_looked_up_again_and_kept_if_that_fails() {
    let mut world = reached(&["AVAILABLE"]);
    world.now += Duration::from_secs(301);
    world.names.insert(TARGET.into(), [127, 10, 0, 99].into());
    world.status("AVAILABLE");
    assert_eq!(direct(&world), Some(([127, 10, 0, 99], 3306).into()));
    world.now += Duration::from_secs(301);
    world.names.clear();
    world.status("AVAILABLE");
    assert_eq!(direct(&world), Some(([127, 10, 0, 99], 3306).into()));
}

#[test]
fn every_active_phase_before_completion_rolls_back() {
    for (statuses, touched) in [
        (&["AVAILABLE"][..], false),
        (&[INITIATED], false),
        (&[IN_PROGRESS], true),
        (&[POST], true),
        (&[IN_PROGRESS, POST], true),
    ] {
        for observation in [
            Observation::TableAbsent,
            Observation::Vanished,
            Observation::Exit,
            Observation::Metadata { topology: Topology::Empty, members: world::members() },
        ] {
            let mut world = reached(statuses);
            let kind = if observation == Observation::Vanished {
                ProbeKind::TableCheck
            } else {
                ProbeKind::Metadata
            };
            let actions = world.see(observation);
            assert_eq!(world.status, BgdStatus::None);
            assert!(world.owns_nothing(), "{statuses:?}");
            assert_eq!(actions.contains(&configure("db.x", false)), touched, "{statuses:?}");
            assert!(actions.contains(&PurgeProbes(at("db.x"))) && actions.contains(&forget("r1.x")));
            assert!(actions.contains(&PurgeDirect(([127, 10, 0, 14], 3306).into())));
            assert!(matches!(actions.last(), Some(Publish(_))));
            assert_eq!((world.green_drained, world.machine.kind()), (0, kind));
            let drained = actions.iter().filter(|action| matches!(action, Drain(_))).count();
            assert_eq!(drained, if statuses.contains(&POST) { 2 } else { 0 }, "{statuses:?}");
        }
    }
}

#[test]
fn backward_phases_roll_back_and_only_available_is_entered_again() {
    use BgdStatus::*;
    let mut world = reached(&[IN_PROGRESS]);
    let actions = world.status("AVAILABLE");
    assert!(actions.contains(&configure("db.x", false)) && actions.contains(&ClearSuppression));
    assert_eq!(world.published, [WriterSwitchoverInProgress, None, Available]);
    assert_eq!((direct(&world), world.machine.interval()), (green(), Duration::from_millis(250)));
    assert!(world.status(POST).contains(&pin("db.x", 14)), "the restored writer is mapped");

    let mut world = reached(&[POST, INITIATED]);
    assert_eq!(world.status, None);
    assert!(world.owns_nothing());
    world.status(INITIATED);
    assert_eq!(world.status, WriterSwitchoverInitiated);

    let world = reached(&[POST, COMPLETED, POST]);
    assert_eq!((world.status, world.green_drained), (None, 0));
    assert!(world.owns_nothing());
}

#[test]
fn an_unknown_status_is_backward_from_active_phases_alone() {
    let mut world = reached(&["PROVISIONING"]);
    assert_eq!(world.published, []);
    world.status(IN_PROGRESS);
    world.status("PROVISIONING");
    assert_eq!(world.status, BgdStatus::None);
    assert!(world.owns_nothing());
}

#[test]
fn an_unclassified_result_is_none_without_rollback() {
    for topology in
        [Topology::Unclassified, Topology::Target { endpoint: TARGET.into(), status: String::new() }]
    {
        let mut world = reached(&[POST]);
        let actions = world.topology(topology);
        assert!(matches!(actions[..], [ClearSuppression, Publish(_)]), "{actions:?}");
        assert_eq!((world.status, world.machine.interval()), (BgdStatus::None, Duration::from_secs(1)));
        assert_eq!((world.pins.len(), world.shunned.len()), (2, 1));
        assert_eq!(world.topology(Topology::Empty), [], "in NONE a drain cleans nothing");
        world.see(Observation::Exit);
        assert!(world.owns_nothing());
    }
}

#[test]
fn what_an_unclassified_result_left_is_undone_before_an_earlier_phase() {
    let mut world = reached(&[POST]);
    world.topology(Topology::Unclassified);
    world.status("AVAILABLE");
    assert!(world.pins.is_empty() && world.shunned.is_empty());
    assert_eq!((world.status, direct(&world)), (BgdStatus::Available, green()));

    let mut world = reached(&[IN_PROGRESS]);
    world.topology(Topology::Unclassified);
    assert_eq!(world.demoted.len(), 1);
    world.status(INITIATED);
    assert!(world.demoted.is_empty());

    let mut world = reached(&[POST]);
    world.topology(Topology::Unclassified);
    world.refresh(|_| {});
    assert!(world.owns_nothing());
}

#[test]
fn failures_keep_the_state_and_the_third_in_a_row_drops_the_direct_target() {
    let mut world = reached(&[POST]);
    assert_eq!(world.see(Observation::Failure), []);
    assert_eq!(world.see(Observation::Failure), []);
    world.status(POST);
    assert_eq!(world.see(Observation::Failure), []);
    assert_eq!(world.see(Observation::Failure), []);
    let fallen = [forget("db.x"), PurgeProbes(at("db.x")), forget("r1.x"), PurgeProbes(at("r1.x"))];
    assert_eq!(world.see(Observation::Failure), fallen);
    assert_eq!((direct(&world), world.machine.kind()), (None, ProbeKind::Metadata));
    assert_eq!(world.status, BgdStatus::WriterSwitchoverPostProcessing);
    for _ in 0..5 {
        assert_eq!(world.see(Observation::Failure), [], "the blue writer may fail as often as it likes");
    }
    assert_eq!(world.status(POST), [], "the answer came from the blue writer");
    assert_eq!(direct(&world), green());
    let pinned = [pin("db.x", 14), pin("r1.x", 15)];
    assert_eq!(world.status(POST), pinned, "the green writer answers again, and no pair is drained twice");
    assert_eq!(world.status(POST), []);
}

#[test]
fn what_was_opened_by_a_pin_does_not_outlive_it() {
    let drained = |actions: &[Action]| actions.iter().filter(|action| matches!(action, Drain(_))).count();
    let mut given_up = reached(&[POST]);
    for _ in 0..3 {
        given_up.see(Observation::Failure);
    }
    for mut world in [reached(&[POST]), reached(&[POST, COMPLETED]), given_up] {
        assert_eq!(drained(&world.see(Observation::Exit)), 2);
    }
    let mut completed = reached(&[POST, COMPLETED]);
    assert_eq!(drained(&completed.topology(Topology::Empty)), 0, "the names mean the green servers now");
}

#[test]
fn a_load_that_changes_nothing_does_not_undo_a_switchover() {
    let reload = |world: &mut World| world.see(Observation::Reload(world::members()));
    for statuses in [&[][..], &["AVAILABLE"], &[INITIATED], &[COMPLETED], &[POST, COMPLETED, "X"]] {
        assert_eq!(reload(&mut reached(statuses)), [], "{statuses:?}");
    }
    assert_eq!(reload(&mut reached(&[IN_PROGRESS])), [demote("db.x")]);
    for statuses in [&[POST][..], &[POST, COMPLETED]] {
        assert_eq!(reload(&mut reached(statuses)), [configure("db.x", false), shun("r2.x")]);
    }
    let mut skipped = reached(&[IN_PROGRESS, COMPLETED]);
    assert_eq!(reload(&mut skipped), [], "no reader was shunned");
}

#[test]
fn after_the_fall_back_the_green_name_is_looked_up_again() {
    let mut world = reached(&["AVAILABLE"]);
    world.names.insert(TARGET.into(), [127, 10, 0, 99].into());
    for _ in 0..3 {
        world.see(Observation::Failure);
    }
    world.status("AVAILABLE");
    assert_eq!(direct(&world), Some(([127, 10, 0, 99], 3306).into()));
}

#[test]
fn the_green_writer_is_added_where_its_hostgroup_lacks_it() {
    let add = AddGreenWriter { hostgroup: 30, endpoint: at(TARGET) };
    for status in ["AVAILABLE", INITIATED, IN_PROGRESS, POST] {
        let mut world = reached(&[]);
        world.members.green_writers.clear();
        assert!(world.status(status).contains(&add), "{status}");
        assert!(!world.status(status).contains(&add), "{status}");
        // LOAD forgets what was added at run time.
        world.members.green_writers.clear();
        assert!(world.reload().contains(&add), "{status}");
        assert!(!world.reload().contains(&add), "{status}");
    }
    let mut world = reached(&[POST, COMPLETED]);
    world.members.green_writers.clear();
    assert!(!world.reload().contains(&add), "the topology names no server to add any more");
    let mut world = reached(&[]);
    world.members.green_writers[0].status = ServerStatus::OfflineHard;
    assert!(world.status("AVAILABLE").contains(&add));
    let mut world = reached(&[]);
    world.members.green_writers = vec![online("DB-GREEN-1.x")];
    assert!(!world.status("AVAILABLE").contains(&add));
}

#[test]
fn tls_of_the_direct_probe_is_that_of_the_added_row() {
    let mut machine = Machine::new(world::row());
    let mut members = world::members();
    members.green_writers.clear();
    members.blue_writers[0].use_ssl = true;
    let now = Instant::now();
    let topology = Topology::Target { endpoint: TARGET.into(), status: "AVAILABLE".into() };
    let actions = machine.step(Observation::Metadata { topology, members }, now);
    assert!(matches!(actions[..], [AddGreenWriter { .. }, Resolve(_)]), "{actions:?}");
    assert_eq!(machine.step(Observation::GreenWriterAdded { use_ssl: false }, now), []);
    let address = GreenAddress { ip: [127, 10, 0, 14].into(), valid_until: now + Duration::from_secs(1) };
    machine.step(Observation::Resolved(vec![Resolution { host: Arc::from(TARGET), address }]), now);
    assert_eq!(machine.direct().map(|direct| direct.use_ssl), Some(false));
}

#[test]
fn an_offline_green_writer_is_neither_probed_nor_pinned() {
    let mut world = reached(&[]);
    world.members.green_writers[0].status = ServerStatus::OfflineSoft;
    world.status("AVAILABLE");
    world.status(POST);
    assert_eq!((direct(&world), world.pins.contains_key("db.x")), (None, false));
    assert!(!world.log.iter().any(|action| matches!(action, AddGreenWriter { .. })));
}

#[test]
fn automatic_mode_switches_the_writer_alone() {
    let mut world = World::new();
    let row = BgdHostgroupRow { green_writer_hostgroup: None, green_reader_hostgroup: None, ..world::row() };
    world.machine = Machine::new(row);
    world.members.green_writers.clear();
    world.members.green_readers.clear();
    world.members.blue_writers[0].use_ssl = true;
    world.see(Observation::TablePresent);
    world.status("AVAILABLE");
    assert_eq!(world.machine.direct().map(|direct| direct.use_ssl), Some(true));
    let actions = world.status(POST);
    assert_eq!(actions[1..=3], [pin("db.x", 14), Drain(at("db.x")), configure("db.x", true)]);
    assert!(actions.contains(&shun("r1.x")) && actions.contains(&shun("r2.x")));
    world.status(COMPLETED);
    world.topology(Topology::Empty);
    assert!(world.owns_nothing());
    assert!(!world.log.iter().any(|action| matches!(action, AddGreenWriter { .. } | DrainGreen(_))));
}

#[test]
fn the_writer_reads_where_no_eligible_reader_is_mapped() {
    let member = |host: &str, status| Member { status, ..online(host) };
    let offline = || member("r1.x", ServerStatus::OfflineSoft);
    let shunned = || member("r2.x", ServerStatus::Shunned);
    for (readers, flag, also_reader, shuns) in [
        (vec![online("r1.x"), online("r2.x")], false, false, 1),
        (vec![online("r1.x"), online("r2.x")], true, true, 1),
        (vec![online("r2.x")], false, true, 1),
        (vec![online("r2.x"), online("db.x")], false, true, 1),
        (vec![offline(), online("r2.x")], false, true, 1),
        (vec![offline(), shunned()], false, true, 0),
        (vec![offline()], false, false, 0),
        (vec![online("db.x")], false, false, 0),
        (vec![], false, false, 0),
    ] {
        let mut world = reached(&[]);
        world.refresh(|row| row.writer_is_also_reader = flag);
        world.members.blue_readers = readers.clone();
        let actions = world.status(POST);
        assert!(actions.contains(&configure("db.x", also_reader)), "{readers:?} {flag}");
        assert_eq!(world.shunned.len(), shuns, "{readers:?} {flag}");
        world.see(Observation::TableAbsent);
        assert!(world.log.contains(&configure("db.x", flag)));
    }
}

#[test]
fn readers_are_left_alone_where_no_writer_is_mapped() {
    let mut world = reached(&[]);
    world.target("elsewhere-green-1.x", POST);
    assert_eq!(world.status, BgdStatus::WriterSwitchoverPostProcessing);
    assert!(world.shunned.is_empty() && direct(&world).is_none());
}

#[test]
fn refresh_before_post_processing_keeps_the_state_and_rebuilds_the_map() {
    for statuses in [&["AVAILABLE"][..], &[INITIATED], &[IN_PROGRESS]] {
        let mut world = reached(statuses);
        let (status, published) = (world.status, world.published.len());
        world.see(Observation::Failure);
        world.members.blue_readers.push(online("r3.x"));
        world.members.green_readers.push(online("r3-green-1.x"));
        world.refresh(|row| row.check_timeout_ms = 900);
        assert_eq!((direct(&world), world.status), (None, status));
        assert_eq!((world.machine.kind(), world.machine.row().check_timeout_ms), (ProbeKind::Metadata, 900));
        let actions = world.status(statuses[0]);
        assert_eq!(actions.contains(&demote("db.x")), statuses == [IN_PROGRESS]);
        assert_eq!((direct(&world), world.published.len()), (green(), published));
        world.names.insert("r3-green-1.x".into(), [127, 10, 0, 16].into());
        world.status(POST);
        assert!(world.pins.contains_key("r3.x"));
    }
}

#[test]
fn refresh_moves_suppression_with_the_reader_hostgroup() {
    let mut world = reached(&[INITIATED]);
    world.members.blue_readers = vec![online("r9.x")];
    let actions = world.refresh(|row| row.reader_hostgroup = 21);
    assert_eq!(actions, [ClearSuppression, Suppress(vec![at("db.x"), at("r9.x")])]);
    let mut world = reached(&["AVAILABLE"]);
    assert_eq!(world.refresh(|row| row.reader_hostgroup = 21), []);
}

#[test]
fn refresh_in_progress_restores_a_replaced_writer_and_demotes_the_new_one() {
    let mut world = reached(&[IN_PROGRESS]);
    world.members.blue_writers = vec![online("new.x"), online("db.x")];
    world.refresh(|_| {});
    let actions = world.target("new-green-1.x", IN_PROGRESS);
    assert!(actions.contains(&configure("db.x", false)) && actions.contains(&demote("new.x")));
    assert_eq!(world.demoted.iter().collect::<Vec<_>>(), [&at("new.x")]);
}

#[test]
fn refresh_from_post_processing_on_starts_again() {
    for statuses in [&[POST][..], &[POST, COMPLETED]] {
        let mut world = reached(statuses);
        let actions = world.refresh(|row| {
            row.writer_is_also_reader = true;
            row.reader_hostgroup = 21;
        });
        assert!(world.owns_nothing());
        let reader = UnshunReader { hostgroup: 20, endpoint: at("r2.x") };
        let writer = ConfigureWriter { endpoint: at("db.x"), reader: 21, also_reader: true };
        assert!(actions.contains(&reader) && actions.contains(&writer), "{actions:?}");
        assert_eq!((world.status, world.machine.kind()), (BgdStatus::None, ProbeKind::TableCheck));
        assert!(world.machine.row().writer_is_also_reader);
        assert_eq!(world.green_drained, 0);
        world.see(Observation::TablePresent);
        assert!(world.status(POST).contains(&writer));
    }
}

#[test]
fn another_target_in_the_same_phase_rebuilds_the_map_before_post_processing() {
    let mut world = reached(&["AVAILABLE"]);
    let actions = world.target("db-green-2.x", "AVAILABLE");
    assert!(actions.contains(&AddGreenWriter { hostgroup: 30, endpoint: at("db-green-2.x") }));
    assert_eq!(direct(&world), Some(([127, 10, 0, 24], 3306).into()));
    let mut world = reached(&[IN_PROGRESS]);
    world.target("db-green-2.x", IN_PROGRESS);
    assert_eq!(direct(&world), Some(([127, 10, 0, 24], 3306).into()));
    assert_eq!(world.demoted.iter().collect::<Vec<_>>(), [&at("db.x")]);
    let mut world = reached(&[POST]);
    assert_eq!(world.target("db-green-2.x", POST), []);
    assert_eq!(direct(&world), green());
}

#[test]
fn a_second_deployment_starts_from_scratch() {
    let mut world = reached(&["AVAILABLE", INITIATED, IN_PROGRESS, POST, COMPLETED]);
    world.topology(Topology::Empty);
    for status in ["AVAILABLE", INITIATED, IN_PROGRESS, POST] {
        world.target("db-green-2.x", status);
    }
    assert_eq!(world.pins.get("db.x"), world.names.get("db-green-2.x"));
    assert_eq!(world.drained.get(&at("db.x")), Some(&2));
}

#[test]
fn completion_gives_the_writers_name_back_at_once_and_readers_stay_pinned() {
    let mut world = reached(&[POST]);
    assert_eq!(world.pins.keys().collect::<Vec<_>>(), ["db.x", "r1.x"]);
    world.status(COMPLETED);
    assert_eq!(world.pins.keys().collect::<Vec<_>>(), ["r1.x"]);
    assert_eq!(world.shunned.iter().collect::<Vec<_>>(), [&at("r2.x")]);
    world.topology(Topology::Empty);
    assert!(world.pins.is_empty() && world.shunned.is_empty());
}

#[test]
fn an_unknown_green_name_is_looked_up_with_each_observation_of_a_writer_phase() {
    let look_ups = |world: &World| world.log.iter().filter(|action| matches!(action, Resolve(_))).count();
    for status in ["AVAILABLE", INITIATED, IN_PROGRESS, POST] {
        let mut world = reached(&[]);
        let address = world.names.remove(TARGET).expect("known");
        for count in 1..=3 {
            world.status(status);
            assert_eq!((look_ups(&world), direct(&world)), (count, None), "{status}");
        }
        world.names.insert(TARGET.into(), address);
        world.status(status);
        assert_eq!((look_ups(&world), direct(&world)), (4, green()), "{status}");
        world.status(status);
        assert_eq!(look_ups(&world), 4, "{status}");
    }
    let mut world = reached(&[COMPLETED]);
    world.status(COMPLETED);
    assert_eq!(look_ups(&world), 0);
}

#[test]
fn a_writer_whose_green_name_is_unknown_takes_traffic_by_its_own_name() {
    let mut world = reached(&[IN_PROGRESS]);
    world.names.clear();
    world.see(Observation::Refresh { row: world::row(), members: world::members() });
    let actions = world.status(POST);
    assert!(actions.contains(&configure("db.x", false)) && world.pins.is_empty(), "{actions:?}");
    world.names = World::new().names;
    let pinned = [pin("db.x", 14), Drain(at("db.x")), pin("r1.x", 15), Drain(at("r1.x"))];
    assert_eq!(world.status(POST), pinned);
}

#[test]
fn clean_up_is_done_once() {
    for statuses in [&["AVAILABLE"][..], &[POST], &[POST, COMPLETED]] {
        let mut world = reached(statuses);
        assert_ne!(world.topology(Topology::Empty), []);
        for again in [Observation::TableAbsent, Observation::Vanished, Observation::Exit] {
            assert_eq!(world.see(again), [], "{statuses:?}");
        }
        assert_eq!(world.topology(Topology::Empty), [], "{statuses:?}");
        assert_eq!(world.machine.interval(), Duration::from_secs(1));
    }
}

#[test]
fn the_log_tells_how_a_topology_drained() {
    for (observation, cause) in [
        (Observation::TableAbsent, "mysql.rds_topology does not exist"),
        (Observation::Vanished, "mysql.rds_topology is gone, error 1146"),
        (
            Observation::Metadata { topology: Topology::Empty, members: world::members() },
            "mysql.rds_topology is empty",
        ),
    ] {
        let mut world = reached(&["AVAILABLE"]);
        let told = publish(BgdStatus::Available, BgdStatus::None, cause);
        assert_eq!(world.see(observation).last(), Some(&told));
    }
}

#[test]
fn a_rollback_leaves_green_names_alone() {
    let mut world = reached(&[POST]);
    let actions = world.see(Observation::Exit);
    let names: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            RemoveDns(host) => Some(&**host),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["db.x", "r1.x", "r2.x"]);
}
