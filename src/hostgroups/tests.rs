use super::rows::*;
use super::*;
use crate::locality::{Factors, Snapshot};
use crate::testing::{pair, server as row};
use ServerStatus::*;
use admin::Value;
use admin::rows::{ConfiguredStatus, HostgroupAttributesRow, ServerSslParamsRow, ServersConfig};
use proptest::prelude::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const WRITER: HostgroupId = 1;
const READER: HostgroupId = 2;

fn at(host: &str) -> Endpoint {
    Endpoint::new(host, 3306)
}

fn bgd(writer_hostgroup: HostgroupId, reader_hostgroup: HostgroupId) -> BgdHostgroupRow {
    BgdHostgroupRow {
        writer_hostgroup,
        reader_hostgroup,
        green_writer_hostgroup: Some(3),
        green_reader_hostgroup: None,
        active: true,
        writer_is_also_reader: false,
        check_interval_ms: 1000,
        check_timeout_ms: 800,
        comment: String::new(),
    }
}

fn defaults(hostgroup: HostgroupId, json: &str) -> HostgroupAttributesRow {
    HostgroupAttributesRow { servers_defaults: json.into(), ..HostgroupAttributesRow::new(hostgroup) }
}

fn loaded(servers: Vec<ServerRow>) -> Hostgroups {
    let mut hostgroups = Hostgroups::default();
    let config = ServersConfig {
        servers,
        replication: vec![pair(WRITER, READER)],
        bgd: vec![bgd(1, 2)],
        ..ServersConfig::default()
    };
    assert_eq!(hostgroups.load(&config), Vec::<String>::new());
    hostgroups
}

fn status(hostgroups: &Hostgroups, hostgroup: HostgroupId, host: &str) -> Option<ServerStatus> {
    hostgroups.server(hostgroup, &at(host)).map(|server| server.status)
}

fn none_in_use(_: HostgroupId, _: &Endpoint) -> usize {
    0
}

fn rest() -> Recovery {
    Recovery { pause: 10 * SECOND, everywhere: false }
}

#[test]
fn load_restores_configured_placement() {
    let servers = vec![row(WRITER, "w"), row(READER, "r")];
    let config = ServersConfig { servers, replication: vec![pair(1, 2)], ..ServersConfig::default() };
    let mut hostgroups = Hostgroups::default();
    hostgroups.load(&config);
    let before = runtime_mysql_servers_rows(&hostgroups);
    hostgroups.demote(WRITER, READER, &at("w"));
    hostgroups.add_discovered(3, &at("g"));
    hostgroups.shun_aws_bgd(READER, &at("r"));
    let generation = hostgroups.generation();
    hostgroups.load(&config);
    hostgroups.purge(none_in_use);
    assert_eq!(runtime_mysql_servers_rows(&hostgroups), before);
    assert_eq!(hostgroups.generation(), generation + 1);
}

#[test]
fn load_takes_configured_statuses() {
    for (configured, expected) in [
        (ConfiguredStatus::Online, Some(Online)),
        (ConfiguredStatus::Shunned, Some(Shunned)),
        (ConfiguredStatus::OfflineSoft, Some(OfflineSoft)),
        (ConfiguredStatus::OfflineHard, None),
    ] {
        let mut hostgroups = loaded(vec![ServerRow { status: configured, ..row(1, "a") }]);
        assert_eq!(status(&hostgroups, 1, "a"), expected);
        assert!(
            hostgroups
                .select(1, Instant::now() + Duration::from_secs(99), 0, Factors::default(), |_| 0, rest)
                .is_err()
                || configured == ConfiguredStatus::Online,
            "a configured {configured:?} recovers by itself"
        );
    }
}

#[test]
fn removed_servers_wait_for_their_connections() {
    let mut hostgroups = loaded(vec![row(1, "a"), row(1, "b")]);
    let hard = ServerRow { status: ConfiguredStatus::OfflineHard, ..row(1, "b") };
    hostgroups.load(&ServersConfig { servers: vec![hard], ..ServersConfig::default() });
    assert_eq!(status(&hostgroups, 1, "a"), Some(OfflineHard));
    assert_eq!(status(&hostgroups, 1, "b"), Some(OfflineHard));
    hostgroups.purge(|_, endpoint| usize::from(*endpoint == at("a")));
    assert_eq!(status(&hostgroups, 1, "a"), Some(OfflineHard));
    assert_eq!(status(&hostgroups, 1, "b"), None);
    hostgroups.purge(none_in_use);
    assert_eq!(hostgroups.all().count(), 0);
}

#[test]
fn load_reports_incompatible_and_doubled_rows() {
    let mut hostgroups = Hostgroups::default();
    let ignored = hostgroups.load(&ServersConfig {
        servers: vec![row(1, "a"), ServerRow { weight: 9, ..row(1, " a ") }],
        replication: vec![pair(1, 2), pair(2, 3)],
        bgd: vec![bgd(4, 5), bgd(5, 6)],
        hostgroup_attributes: vec![defaults(3, "[]")],
        ssl_params: vec![ServerSslParamsRow::new("a", 1), ServerSslParamsRow::new(" a", 1)],
    });
    assert_eq!(ignored.len(), 5, "{ignored:?}");
    assert!(ignored[3].contains("a:1") && ignored[4].contains("hostgroup 3"), "{ignored:?}");
    assert!(ignored[0].contains("a:3306") && ignored[1].contains("writer_hostgroup 2"), "{ignored:?}");
    assert!(ignored[2].contains("mysql_aws_rds_bgd_hostgroups"), "{ignored:?}");
    assert_eq!(hostgroups.replication(), [pair(1, 2)]);
    assert_eq!(hostgroups.deployments().keys().copied().collect::<Vec<_>>(), [4]);
    assert_eq!(hostgroups.server(1, &at("a")).unwrap().row.weight, 1);
}

#[test]
fn deployments_keep_their_status_over_load() {
    let mut hostgroups = loaded(vec![]);
    hostgroups.set_bgd_status(1, BgdStatus::Available);
    hostgroups.deployments.get_mut(&1).unwrap().auto_generated = true;
    let load = |hostgroups: &mut Hostgroups, bgd| {
        hostgroups.load(&ServersConfig { bgd, ..ServersConfig::default() });
    };
    load(&mut hostgroups, vec![bgd(1, 7), bgd(10, 11)]);
    let kept = &hostgroups.deployments()[&1];
    assert_eq!((kept.status, kept.auto_generated), (BgdStatus::Available, false));
    assert_eq!(kept.row.reader_hostgroup, 7);
    assert_eq!(hostgroups.deployments()[&10].status, BgdStatus::None);
    load(&mut hostgroups, vec![]);
    assert!(hostgroups.deployments().is_empty());
    hostgroups.set_bgd_status(1, BgdStatus::Available);
    assert!(hostgroups.deployments().is_empty());
}

#[test]
fn selection_follows_weight_and_room() {
    let weighted = |host: &str, weight| ServerRow { weight, ..row(1, host) };
    let mut hostgroups = loaded(vec![weighted("a", 1), weighted("b", 0), weighted("c", 3)]);
    let now = Instant::now();
    let mut chosen = |random, full: &[&str]| {
        hostgroups
            .select(
                1,
                now,
                random,
                Factors::default(),
                |endpoint| if full.contains(&&*endpoint.host) { 1000 } else { 0 },
                rest,
            )
            .map(|(endpoint, _)| endpoint.host.to_string())
    };
    let hosts: Vec<String> = (0..4).map(|random| chosen(random, &[]).unwrap()).collect();
    assert_eq!(hosts, ["a", "c", "c", "c"]);
    assert_eq!(chosen(u64::MAX, &["c"]).unwrap(), "a");
    assert_eq!(chosen(0, &["a", "c"]), Err(Unavailable::Full));
    let refused = |servers| loaded(servers).select(1, now, 7, Factors::default(), |_| 0, rest).map(|_| ());
    assert_eq!(refused(vec![]), Err(Unavailable::NoServer));
    assert_eq!(refused(vec![weighted("b", 0), weighted("x", 0)]), Err(Unavailable::Weightless));
}

#[test]
fn failed_servers_recover_in_time() {
    let mut hostgroups = loaded(vec![row(1, "a"), row(2, "a"), row(1, "b"), row(2, "b")]);
    let now = Instant::now();
    hostgroups.shun_failed(&at("a"), now);
    hostgroups.shun_failed(&at("a"), now - SECOND);
    assert_eq!((status(&hostgroups, 1, "a"), status(&hostgroups, 2, "a")), (Some(Shunned), Some(Shunned)));
    assert!(!hostgroups.usable(1, &at("a")));
    let mut select = |hostgroup, at| {
        let chosen =
            hostgroups.select(hostgroup, at, 0, Factors::default(), |_| 0, rest).unwrap().0.host.to_string();
        (chosen, status(&hostgroups, 1, "a"), status(&hostgroups, 2, "a"))
    };
    assert_eq!(select(1, now + 9 * SECOND), ("b".into(), Some(Shunned), Some(Shunned)));
    assert_eq!(select(1, now + 10 * SECOND), ("a".into(), Some(Online), Some(Shunned)));
    assert_eq!(select(2, now + 10 * SECOND), ("a".into(), Some(Online), Some(Online)));
    hostgroups.shun_failed(&at("a"), now);
    let everywhere = || Recovery { everywhere: true, ..rest() };
    assert!(hostgroups.select(1, now + 10 * SECOND, 0, Factors::default(), |_| 0, everywhere).is_ok());
    assert_eq!(status(&hostgroups, 2, "a"), Some(Online));
}

#[test]
fn where_no_server_is_left_those_that_rest_are_tried_in_turn() {
    let mut hostgroups =
        loaded(vec![row(1, "a"), row(1, "b"), ServerRow { weight: 0, ..row(1, "c") }, row(2, "a")]);
    let now = Instant::now();
    hostgroups.shun_failed(&at("a"), now);
    hostgroups.shun_failed(&at("b"), now + SECOND / 10);
    let select = |hostgroups: &mut Hostgroups, at| {
        hostgroups
            .select(1, at, 0, Factors::default(), |_| 0, rest)
            .map(|(endpoint, _)| endpoint.host.to_string())
    };
    assert_eq!(select(&mut hostgroups, now + SECOND / 2), Err(Unavailable::Weightless));
    assert_eq!(select(&mut hostgroups, now + SECOND), Ok("a".into()));
    assert_eq!(select(&mut hostgroups, now + SECOND), Err(Unavailable::Weightless), "one at a time");
    assert_eq!(select(&mut hostgroups, now + 3 * SECOND / 2), Ok("b".into()));
    assert_eq!(select(&mut hostgroups, now + 2 * SECOND), Ok("a".into()));
    assert_eq!(status(&hostgroups, 1, "a"), Some(Shunned));
    assert!(hostgroups.acquit(1, &at("a"), false) && !hostgroups.acquit(1, &at("a"), false));
    assert_eq!(select(&mut hostgroups, now + 2 * SECOND), Ok("a".into()));
    assert_eq!((status(&hostgroups, 1, "a"), status(&hostgroups, 2, "a")), (Some(Online), Some(Shunned)));
    hostgroups.shun_failed(&at("a"), now);
    assert!(hostgroups.acquit(1, &at("a"), true));
    assert_eq!(status(&hostgroups, 2, "a"), Some(Online));
}

#[test]
fn who_is_shunned_by_a_switchover_does_not_come_back_by_itself() {
    let mut hostgroups = loaded(vec![row(1, "a")]);
    hostgroups.shun_aws_bgd(1, &at("a"));
    hostgroups.shun_failed(&at("a"), Instant::now());
    let refused = hostgroups.select(1, Instant::now() + 99 * SECOND, 0, Factors::default(), |_| 0, rest);
    assert_eq!(refused, Err(Unavailable::NoServer));
}

#[test]
fn a_switchover_keeps_out_who_would_come_back_by_himself() {
    let shunned = ServerRow { status: ConfiguredStatus::Shunned, ..row(1, "configured") };
    let late = ServerRow { max_replication_lag: 1, ..row(2, "late") };
    let mut hostgroups = loaded(vec![row(1, "failed"), shunned, late]);
    hostgroups.shun_failed(&at("failed"), Instant::now());
    hostgroups.apply_lag(&at("late"), Some(2), 1);
    assert!(hostgroups.shun_aws_bgd(1, &at("failed")) && hostgroups.shun_aws_bgd(2, &at("late")));
    assert!(!hostgroups.shun_aws_bgd(1, &at("configured")));
    hostgroups.apply_lag(&at("late"), Some(0), 1);
    assert!(hostgroups.select(1, Instant::now() + 99 * SECOND, 0, Factors::default(), |_| 0, rest).is_err());
    let statuses = |hostgroups: &Hostgroups| {
        [(1, "failed"), (2, "late"), (1, "configured")]
            .map(|(id, host)| status(hostgroups, id, host).unwrap())
    };
    assert_eq!(statuses(&hostgroups), [ShunnedAwsBgd, ShunnedAwsBgd, Shunned]);
    for (id, host) in [(1, "failed"), (2, "late"), (1, "configured")] {
        hostgroups.unshun_aws_bgd(id, &at(host));
    }
    assert_eq!(statuses(&hostgroups), [Online, Online, Shunned]);
}

#[test]
fn pings_that_are_not_answered_shun_what_is_in_use() {
    use ConfiguredStatus as C;
    let rows = [(1, C::Online), (2, C::Shunned), (3, C::OfflineSoft), (4, C::Online), (5, C::Online)];
    let mut hostgroups = loaded(rows.map(|(id, status)| ServerRow { status, ..row(id, "a") }).into());
    hostgroups.shun_aws_bgd(4, &at("a"));
    let now = Instant::now();
    assert_eq!(hostgroups.shun_unresponsive(&at("a"), now), (vec![1, 5], true));
    assert_eq!(hostgroups.shun_unresponsive(&at("a"), now + SECOND), (vec![1, 5], false));
    let statuses: Vec<_> = (1..=5).map(|id| status(&hostgroups, id, "a").unwrap()).collect();
    assert_eq!(statuses, [Shunned, Shunned, OfflineSoft, ShunnedAwsBgd, Shunned]);
    assert!(hostgroups.select(1, now + SECOND, 0, Factors::default(), |_| 0, rest).is_err());
    assert!(hostgroups.select(1, now + 2 * SECOND, 0, Factors::default(), |_| 0, rest).is_ok());
}

#[test]
fn choices_follow_weights_times_factors() {
    const CHOICES: u32 = 100_000;
    let weighted = |host: &str, weight| ServerRow { weight, ..row(1, host) };
    let mut hostgroups = loaded(vec![
        weighted("a", 3),
        weighted("b", 5),
        weighted("c", 1),
        weighted("d", 0),
        weighted("e", 7),
    ]);
    // 3 x 1.5 is 4, 5 x 4.0 is 20, and 0 stays 0.
    let factors = [("a", 1.5), ("b", 4.0), ("c", 1.0), ("d", 4.0)].map(|(host, factor)| (at(host), factor));
    let snapshot = Snapshot::new([(1, factors.to_vec())]);
    let neutral = Snapshot::default();
    for (snapshot, weights) in [(&snapshot, [4, 20, 1, 0, 7]), (&neutral, [3, 5, 1, 0, 7])] {
        let mut random = fastrand::Rng::with_seed(17);
        let mut chosen = HashMap::<Arc<str>, u32>::new();
        for _ in 0..CHOICES {
            let factors = snapshot.of(1);
            let (endpoint, _) =
                hostgroups.select(1, Instant::now(), random.u64(..), factors, |_| 0, rest).unwrap();
            *chosen.entry(endpoint.host.clone()).or_default() += 1;
        }
        for (host, weight) in ["a", "b", "c", "d", "e"].into_iter().zip(weights) {
            let share = f64::from(chosen.get(host).copied().unwrap_or(0)) / f64::from(CHOICES);
            let expected = f64::from(weight) / f64::from(weights.iter().sum::<u32>());
            assert!((share - expected).abs() < 0.01, "{host}: {share}, not {expected}");
        }
    }
}

#[test]
fn no_factor_brings_in_who_may_not_be_chosen() {
    let now = Instant::now();
    for why in ["full", "slow", "late", "failed", "offline", "weightless", "shunned by a switchover"] {
        let near = ServerRow {
            weight: u32::from(why != "weightless"),
            status: if why == "offline" { ConfiguredStatus::OfflineSoft } else { ConfiguredStatus::Online },
            max_replication_lag: 1,
            ..row(READER, "near")
        };
        let mut hostgroups = loaded(vec![near, row(READER, "other")]);
        match why {
            "slow" => hostgroups.set_latency(&at("near"), SECOND, SECOND / 2),
            "late" => drop(hostgroups.apply_lag(&at("near"), Some(2), 1)),
            "failed" => hostgroups.shun_failed(&at("near"), now),
            "shunned by a switchover" => drop(hostgroups.shun_aws_bgd(READER, &at("near"))),
            _ => {}
        }
        let snapshot = Snapshot::new([(READER, vec![(at("near"), 10.0)])]);
        let in_use = |endpoint: &Endpoint| if why == "full" && *endpoint == at("near") { 1_000 } else { 0 };
        for random in 0..11 {
            let (chosen, _) =
                hostgroups.select(READER, now, random, snapshot.of(READER), in_use, rest).unwrap();
            assert_eq!(*chosen, at("other"), "{why}");
        }
    }
}

/// A server of a hostgroup to choose from.
#[derive(Debug, Clone)]
struct Candidate {
    status: ServerStatus,
    slow: bool,
    full: bool,
    weight: u32,
    factor: Option<f64>,
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let status =
        prop_oneof![6 => Just(Online), 1 => Just(Shunned), 1 => Just(OfflineSoft), 1 => Just(OfflineHard)];
    let factor = prop_oneof![Just(None), (1.0..10.0).prop_map(Some)];
    let rarely = || prop::bool::weighted(0.2);
    (status, rarely(), rarely(), 0..4_u32, factor)
        .prop_map(|(status, slow, full, weight, factor)| Candidate { status, slow, full, weight, factor })
}

/// What is chosen, said as plainly as can be: the part that `random` falls into of all that weigh, one after the other.
fn reference(candidates: &[Candidate], random: u64) -> Result<usize, Unavailable> {
    let online = candidates.iter().enumerate().filter(|(_, each)| each.status == Online);
    let quick: Vec<_> = online.clone().filter(|(_, each)| !each.slow).collect();
    let weighs = |each: &Candidate| (f64::from(each.weight) * each.factor.unwrap_or(1.0)).trunc() as usize;
    let parts = quick.iter().filter(|(_, each)| !each.full);
    let parts: Vec<usize> = parts.flat_map(|(at, each)| vec![*at; weighs(each)]).collect();
    let Some(part) = random.checked_rem(parts.len() as u64) else {
        return Err(
            match (quick.iter().any(|(_, each)| each.weight > 0), quick.is_empty(), online.count()) {
                (true, _, _) => Unavailable::Full,
                (false, false, _) => Unavailable::Weightless,
                (false, true, 0) => Unavailable::NoServer,
                (false, true, _) => Unavailable::Slow,
            },
        );
    };
    Ok(parts[part as usize])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn choices_are_those_of_the_reference(
        candidates in prop::collection::vec(candidate(), 0..20),
        random: u64,
    ) {
        let host = |number: usize| format!("server-{number:02}");
        let mut hostgroups = Hostgroups::default();
        for (number, candidate) in candidates.iter().enumerate() {
            let mut server = Server::new(ServerRow { weight: candidate.weight, ..row(1, &host(number)) }, candidate.status);
            server.slow = candidate.slow;
            hostgroups.groups.entry(1).or_default().insert(at(&host(number)), server);
        }
        let factors = candidates.iter().enumerate().filter_map(|(number, each)| Some((at(&host(number)), each.factor?)));
        let snapshot = Snapshot::new([(1, factors.collect())]);
        let in_use = |endpoint: &Endpoint| {
            let full = candidates.iter().enumerate().any(|(number, each)| each.full && *endpoint.host == host(number));
            if full { 1_000 } else { 999 }
        };
        let chosen = hostgroups.select(1, Instant::now(), random, snapshot.of(1), in_use, rest);
        let chosen = chosen.map(|(endpoint, _)| endpoint.host.to_string());
        prop_assert_eq!(chosen, reference(&candidates, random).map(host));
    }
}

#[test]
fn slow_servers_are_not_chosen() {
    let limited = |host: &str, max_latency_ms| ServerRow { max_latency_ms, ..row(1, host) };
    let servers = vec![limited("a", 0), limited("b", 50)];
    let mut hostgroups = loaded(servers.clone());
    let millis = Duration::from_millis;
    let chosen = |hostgroups: &mut Hostgroups| {
        let both = [0, 1].map(|random| {
            hostgroups
                .select(1, Instant::now(), random, Factors::default(), |_| 0, rest)
                .map(|(e, _)| e.host.to_string())
        });
        both.map(|one| one.unwrap_or_else(|error| format!("{error:?}")))
    };
    assert_eq!(chosen(&mut hostgroups), ["a", "b"]);
    hostgroups.set_latency(&at("a"), millis(50), millis(40));
    hostgroups.set_latency(&at("b"), millis(50), millis(40));
    assert_eq!(chosen(&mut hostgroups), ["b", "b"]);
    hostgroups.load(&ServersConfig { servers: servers.clone(), ..ServersConfig::default() });
    assert_eq!(chosen(&mut hostgroups), ["b", "b"], "LOAD does not make a server faster");
    hostgroups.set_latency(&at("b"), millis(51), millis(40));
    assert_eq!(chosen(&mut hostgroups), ["Slow", "Slow"]);
    hostgroups.set_latency(&at("a"), millis(9_999), Duration::ZERO);
    assert_eq!(chosen(&mut hostgroups), ["a", "a"]);
    assert_eq!(hostgroups.latency(&at("a")), Some(millis(9_999)));
    hostgroups.forget_checks();
    assert_eq!((chosen(&mut hostgroups), hostgroups.latency(&at("a"))), (["a", "b"].map(String::from), None));
}

#[test]
fn late_replicas_are_shunned_but_writers_are_not() {
    let limited = |id, max_replication_lag| ServerRow { max_replication_lag, ..row(id, "a") };
    let config = |limit| ServersConfig {
        servers: vec![limited(WRITER, 5), limited(READER, limit), limited(9, 0)],
        replication: vec![pair(WRITER, READER)],
        ..ServersConfig::default()
    };
    let mut hostgroups = Hostgroups::default();
    hostgroups.load(&config(5));
    let statuses =
        |hostgroups: &Hostgroups| [WRITER, READER, 9].map(|id| status(hostgroups, id, "a").unwrap());
    for (lag, lines, reader) in [
        (Some(6), 0, Online),
        (Some(5), 0, Online),
        (Some(6), 0, Online),
        (Some(7), 1, ShunnedReplicationLag),
        (Some(7), 0, ShunnedReplicationLag),
        (None, 1, Online),
        (Some(7), 0, Online),
        (Some(7), 1, ShunnedReplicationLag),
    ] {
        assert_eq!(hostgroups.apply_lag(&at("a"), lag, 2).len(), lines, "{lag:?}");
        assert_eq!(statuses(&hostgroups), [Online, reader, Online], "{lag:?}");
    }
    let shown = |hostgroups: &Hostgroups| runtime_mysql_servers_rows(hostgroups)[1][4].clone();
    assert_eq!(shown(&hostgroups), Value::Text("SHUNNED".into()));
    // It stays so through LOAD and failed pings, and recovers only when it has caught up.
    hostgroups.load(&config(5));
    hostgroups.shun_unresponsive(&at("a"), Instant::now());
    assert_eq!(statuses(&hostgroups)[1], ShunnedReplicationLag);
    assert!(
        hostgroups.select(READER, Instant::now() + 99 * SECOND, 0, Factors::default(), |_| 0, rest).is_err()
    );
    hostgroups.load(&config(50));
    assert_eq!(statuses(&hostgroups)[1], Online, "LOAD gave it another limit");
    hostgroups.apply_lag(&at("a"), Some(51), 1);
    hostgroups.forget_checks();
    assert_eq!(statuses(&hostgroups)[1], Online);
}

#[test]
fn shun_time_is_bounded() {
    for (recovery, connect_max, expected) in
        [(10_000, 10_000, 9_000), (3_000, 10_000, 3_000), (0, 10_000, 1_000), (10_000, 500, 1_000)]
    {
        let millis = Duration::from_millis;
        assert_eq!(shun_time(millis(recovery), millis(connect_max)), millis(expected));
    }
}

#[test]
fn read_only_results_move_servers() {
    type Statuses = (Option<ServerStatus>, Option<ServerStatus>);
    // (status in writer, in reader), read_only, also reader, (writer, reader) after, whether that is a move
    let table: [(Statuses, bool, bool, Statuses, bool); 13] = [
        ((Some(Online), None), true, false, (Some(OfflineHard), Some(Online)), true),
        ((Some(Shunned), None), true, false, (Some(OfflineHard), Some(Online)), true),
        ((Some(Online), Some(Shunned)), true, false, (Some(OfflineHard), Some(Shunned)), true),
        ((Some(Online), Some(OfflineSoft)), true, false, (Some(OfflineHard), Some(OfflineSoft)), true),
        ((Some(OfflineSoft), Some(Online)), true, false, (Some(OfflineSoft), Some(Online)), false),
        ((None, Some(Online)), true, false, (None, Some(Online)), false),
        ((None, Some(Online)), false, false, (Some(Online), Some(OfflineHard)), true),
        ((None, Some(Online)), false, true, (Some(Online), Some(Online)), true),
        ((Some(OfflineHard), Some(Online)), false, true, (Some(Online), Some(Online)), true),
        ((Some(Online), None), false, true, (Some(Online), None), false),
        ((Some(Online), Some(Online)), false, false, (Some(Online), Some(Online)), false),
        ((Some(OfflineSoft), Some(Online)), false, false, (Some(OfflineSoft), Some(Online)), false),
        ((None, Some(OfflineSoft)), false, false, (None, Some(OfflineSoft)), false),
    ];
    for (number, (before, read_only, also_reader, after, moves)) in table.into_iter().enumerate() {
        let mut hostgroups = loaded(vec![]);
        for (hostgroup, status) in [(WRITER, before.0), (READER, before.1)] {
            if let Some(status) = status {
                let server = Server::new(row(hostgroup, "a"), status);
                hostgroups.groups.entry(hostgroup).or_default().insert(at("a"), server);
            }
        }
        assert_eq!(hostgroups.read_only_moves(&at("a"), read_only), moves, "row {number}");
        let lines = hostgroups.apply_read_only(&at("a"), read_only, also_reader);
        assert_eq!(lines.len(), usize::from(moves), "row {number}: {lines:?}");
        let now = (status(&hostgroups, WRITER, "a"), status(&hostgroups, READER, "a"));
        assert_eq!(now, after, "row {number}");
        assert!(hostgroups.apply_read_only(&at("a"), read_only, also_reader).is_empty(), "row {number}");
    }
}

#[test]
fn one_result_reaches_every_pair() {
    let mut hostgroups = Hostgroups::default();
    hostgroups.load(&ServersConfig {
        servers: vec![row(1, "a"), row(4, "a"), row(6, "b")],
        replication: vec![pair(1, 2), pair(3, 4), pair(5, 6)],
        ..ServersConfig::default()
    });
    assert_eq!(hostgroups.apply_read_only(&at("a"), true, true).len(), 1);
    assert_eq!(hostgroups.apply_read_only(&at("a"), false, true).len(), 2);
    assert!(hostgroups.usable(1, &at("a")) && hostgroups.usable(3, &at("a")));
    assert!(!hostgroups.usable(5, &at("a")) && !hostgroups.usable(5, &at("b")));
}

#[test]
fn attributes_survive_moves() {
    let special = ServerRow { weight: 7, use_ssl: true, comment: "x".into(), ..row(WRITER, "a") };
    let mut hostgroups = loaded(vec![special.clone(), row(WRITER, "b"), row(READER, "b")]);
    hostgroups.demote(WRITER, READER, &at("a"));
    hostgroups.purge(none_in_use);
    let expected = ServerRow { hostgroup_id: READER, ..special.clone() };
    assert_eq!(hostgroups.server(READER, &at("a")).unwrap().row, expected);
    hostgroups.configure_writer(WRITER, READER, &at("a"), false);
    assert_eq!(hostgroups.server(WRITER, &at("a")).unwrap().row, special);
    assert_eq!(status(&hostgroups, READER, "a"), Some(OfflineHard));
}

#[test]
fn a_writer_returns_with_its_own_attributes() {
    let own = ServerRow { weight: 9, ..row(WRITER, "a") };
    let mut hostgroups = loaded(vec![own.clone(), ServerRow { weight: 2, ..row(READER, "a") }]);
    hostgroups.demote(WRITER, READER, &at("a"));
    hostgroups.purge(none_in_use);
    hostgroups.configure_writer(WRITER, READER, &at("a"), true);
    assert_eq!(hostgroups.server(WRITER, &at("a")).unwrap().row, own);
    assert_eq!(hostgroups.server(READER, &at("a")).unwrap().row.weight, 2);
}

#[test]
fn unknown_endpoints_are_not_invented() {
    let mut hostgroups = loaded(vec![row(WRITER, "a")]);
    hostgroups.demote(WRITER, READER, &at("x"));
    hostgroups.configure_writer(WRITER, READER, &at("x"), true);
    assert!(hostgroups.apply_read_only(&at("x"), false, true).is_empty());
    assert_eq!(hostgroups.all().count(), 1);
}

#[test]
fn green_writer_is_added_once() {
    let soft = ServerRow { status: ConfiguredStatus::OfflineSoft, ..row(3, "soft") };
    let hard = ServerRow { weight: 5, ..row(3, "hard") };
    let mut hostgroups = loaded(vec![soft, hard]);
    hostgroups.server_mut(3, &at("hard")).unwrap().status = OfflineHard;
    for (host, added) in [("soft", false), ("hard", true), ("hard", false), ("new", true)] {
        assert_eq!(hostgroups.add_discovered(3, &at(host)), added, "{host}");
    }
    assert_eq!(hostgroups.server(3, &at("hard")).unwrap().row.weight, 1);
    assert_eq!(hostgroups.server(3, &at("new")).unwrap().row.max_connections, 1000);
}

#[test]
fn a_green_writer_has_what_servers_defaults_says() {
    let attributes = defaults(3, "  {\"weight\": 0, \"use_ssl\": 1, \"max_connections\": \"many\"} ");
    let mut hostgroups = Hostgroups::default();
    let config = ServersConfig { hostgroup_attributes: vec![attributes], ..ServersConfig::default() };
    assert_eq!(hostgroups.load(&config).len(), 1);
    assert!(hostgroups.add_discovered(3, &at("g")) && hostgroups.add_discovered(4, &at("g")));
    let of = |id: HostgroupId| &hostgroups.server(id, &at("g")).unwrap().row;
    assert_eq!(*of(3), ServerRow { weight: 0, use_ssl: true, ..row(3, "g") });
    assert_eq!(*of(4), row(4, "g"));
}

#[test]
fn switchover_shun_only_touches_online() {
    let shunned = ServerRow { status: ConfiguredStatus::Shunned, ..row(2, "s") };
    let mut hostgroups = loaded(vec![row(2, "a"), shunned]);
    assert!(!hostgroups.unshun_aws_bgd(2, &at("a")));
    assert!(hostgroups.shun_aws_bgd(2, &at("a")) && !hostgroups.shun_aws_bgd(2, &at("a")));
    assert!(!hostgroups.shun_aws_bgd(2, &at("s")) && !hostgroups.unshun_aws_bgd(2, &at("s")));
    assert_eq!(status(&hostgroups, 2, "a"), Some(ShunnedAwsBgd));
    assert!(hostgroups.unshun_aws_bgd(2, &at("a")) && hostgroups.usable(2, &at("a")));
}

#[test]
fn rows_follow_the_tables_columns() {
    let mut hostgroups = loaded(vec![ServerRow { comment: "c".into(), use_ssl: true, ..row(2, "a") }]);
    hostgroups.set_bgd_status(1, BgdStatus::WriterSwitchoverInitiated);
    let (int, text) = (Value::Int, |text: &str| Value::Text(text.into()));
    let zero = || int(0);
    let server = vec![
        int(2),
        text("a"),
        int(3306),
        zero(),
        text("ONLINE"),
        int(1),
        zero(),
        int(1000),
        zero(),
        int(1),
        zero(),
        text("c"),
    ];
    assert_eq!(runtime_mysql_servers_rows(&hostgroups), [server]);
    let pair = vec![int(1), int(2), text("read_only"), text("")];
    assert_eq!(runtime_mysql_replication_hostgroups_rows(&hostgroups), [pair]);
    let deployment = vec![
        int(1),
        int(2),
        int(3),
        Value::Null,
        int(1),
        zero(),
        int(1000),
        int(800),
        text(""),
        zero(),
        text("WRITER_SWITCHOVER_INITIATED"),
    ];
    assert_eq!(runtime_mysql_aws_rds_bgd_hostgroups_rows(&hostgroups), [deployment]);
}
