use super::*;
use crate::bgd::tests::{BLUE, GREEN, Site, Table};
use crate::hostgroups::{BgdStatus, ServerStatus};
use crate::monitor::probe::Target;
use crate::pool::{Identity, Offer, Processor, Profile, Want};
use crate::testing::{PATIENCE, logged};
use admin::Value;
use admin::rows::{ConfiguredStatus, ServerRow};
use std::net::{IpAddr, SocketAddr};
use wire::CapabilityFlags;
use wire::auth::Secret;

const GREEN_NAME: &str = "db-green-1.bgd.test";
/// A hostgroup that no deployment names.
const OTHER: HostgroupId = 99;

impl Site {
    fn perform(&self, action: Action) -> Option<Observation> {
        Performer::new(10, self.effects.clone()).perform(action, PATIENCE, " on 127.0.0.1:1")
    }
    /// Asks a server on the monitor's connection, or a new one.
    fn probe(&self, name: &str, ip: IpAddr) {
        let address = SocketAddr::new(ip, self.endpoint(0).port);
        let target = Target { address, tls: false, server_name: name, by: None };
        self.effects.probes.query(&target, "SELECT 1", PATIENCE).expect("an answer");
    }
    /// Leaves one free connection in a hostgroup.
    fn pool_one(&self, hostgroup: HostgroupId) {
        let secret = Secret::Clear("monitor".into());
        let want = Want {
            identity: Arc::new(Identity::new("monitor", secret, CapabilityFlags::empty())),
            profile: Arc::new(Profile::login(None, 45)),
            ahead: None,
            last: None,
            processor: Processor::default(),
            session: 0,
        };
        let limits = self.effects.config.variables();
        let now = Instant::now();
        let lease = match self.effects.backends.lease(hostgroup, &want, &limits, now, PATIENCE) {
            Ok(Offer::Open(ticket)) => ticket.open(&want, now + PATIENCE).expect("a connection"),
            Ok(Offer::Ready(_)) => panic!("a connection is there already"),
            Err(refusal) => panic!("{refusal:?}"),
        };
        lease.release(Instant::now(), &limits);
    }
    /// Connections of a hostgroup, used and free.
    fn pooled(&self, hostgroup: HostgroupId) -> i64 {
        let rows = self.effects.backends.servers(false);
        let held = rows.iter().map(|figures| match figures.row().as_slice() {
            [Value::Int(id), _, _, _, Value::Int(used), Value::Int(free), ..]
                if *id == i64::from(hostgroup) =>
            {
                used + free
            }
            _ => 0,
        });
        held.sum()
    }
    fn pins(&self) -> usize {
        self.effects.dns.pins().len()
    }
}

/// No worker, and the green writer in these hostgroups.
fn site(green: &[(HostgroupId, ConfiguredStatus)]) -> Site {
    let site = Site::with(Table::Absent, |config| {
        let port = config.servers[0].port;
        let row = |(hostgroup, status): &(HostgroupId, ConfiguredStatus)| ServerRow {
            status: *status,
            ..ServerRow::new(*hostgroup, GREEN_NAME, port)
        };
        config.servers.extend(green.iter().map(row));
    });
    site.stop_worker();
    site
}

#[test]
fn a_purge_finds_a_servers_connections_by_its_name_wherever_that_led() {
    let site = site(&[]);
    let blue = site.endpoint(0);
    let ask = || {
        site.probe(&blue.host, BLUE);
        site.probe(&blue.host, GREEN);
        site.probe(GREEN_NAME, GREEN);
    };
    ask();
    let before = (site.logins(BLUE), site.logins(GREEN));
    ask();
    assert_eq!((site.logins(BLUE), site.logins(GREEN)), before, "connections are kept");
    site.perform(Action::Pin { host: blue.host.clone(), address: GREEN, target: Arc::from(GREEN_NAME) });
    site.perform(Action::PurgeProbes(blue.clone()));
    ask();
    assert_eq!(
        (site.logins(BLUE), site.logins(GREEN)),
        (before.0 + 1, before.1 + 1),
        "the green server's own is kept"
    );
    site.perform(Action::PurgeDirect(SocketAddr::new(GREEN, blue.port)));
    ask();
    assert_eq!((site.logins(BLUE), site.logins(GREEN)), (before.0 + 1, before.1 + 3), "both by the address");
}

#[test]
fn a_pin_is_for_new_connections_until_its_owner_removes_it() {
    let site = site(&[]);
    let host = site.endpoint(0).host;
    let resolved = || site.effects.dns.resolve(&host, Instant::now() + PATIENCE);
    site.perform(Action::Pin { host: host.clone(), address: GREEN, target: Arc::from(GREEN_NAME) });
    assert_eq!(resolved(), Ok(GREEN));
    Performer::new(11, site.effects.clone()).perform(Action::RemoveDns(host.clone()), PATIENCE, "");
    assert_eq!(resolved(), Ok(GREEN), "it is not the other deployment's");
    site.perform(Action::RemoveDns(host.clone()));
    assert_eq!(resolved(), Ok(BLUE));
}

#[test]
fn a_pin_retires_what_leads_elsewhere_and_nothing_else() {
    let site = site(&[]);
    let host = site.endpoint(0).host;
    let pin =
        || site.perform(Action::Pin { host: host.clone(), address: GREEN, target: Arc::from(GREEN_NAME) });
    site.pool_one(10);
    pin();
    assert_eq!(site.pooled(10), 0, "it leads to the blue server");
    site.pool_one(10);
    pin();
    assert_eq!(site.pooled(10), 1, "it leads to the green server");
}

#[test]
fn a_drain_reaches_every_hostgroup_of_the_server_and_no_other_server() {
    use ConfiguredStatus::Online;
    let site = site(&[(30, Online), (OTHER, Online)]);
    for hostgroup in [10, 30, OTHER] {
        site.pool_one(hostgroup);
    }
    site.perform(Action::Drain(Endpoint::new(GREEN_NAME, site.endpoint(0).port)));
    assert_eq!([10, 30, OTHER].map(|hostgroup| site.pooled(hostgroup)), [1, 0, 0]);
}

#[test]
fn green_servers_in_service_are_drained_and_forgotten_and_offline_ones_are_left_alone() {
    use ConfiguredStatus::{OfflineHard, OfflineSoft, Online, Shunned};
    for (writer, reader, drained) in [
        (Some(Online), Some(Online), true),
        (Some(Online), None, true),
        (Some(Shunned), Some(Online), true),
        (None, Some(Shunned), true),
        (Some(OfflineSoft), None, false),
        (Some(OfflineHard), None, false),
        (Some(Online), Some(OfflineSoft), false),
        (Some(Online), Some(OfflineHard), false),
        (Some(OfflineHard), Some(Online), false),
    ] {
        let green = [(30, writer), (40, reader), (OTHER, Some(Online))];
        let green: Vec<_> = green.into_iter().filter_map(|(id, status)| Some((id, status?))).collect();
        let site = site(&green);
        let servers = || {
            site.effects.backends.read(|groups| {
                groups
                    .all()
                    .map(|(id, endpoint, server)| (id, endpoint.clone(), server.status))
                    .collect::<Vec<_>>()
            })
        };
        site.pool_one(OTHER);
        site.probe(GREEN_NAME, GREEN);
        site.perform(Action::Pin {
            host: Arc::from(GREEN_NAME),
            address: GREEN,
            target: Arc::from(GREEN_NAME),
        });
        let (before, logins) = (servers(), site.logins(GREEN));
        site.perform(Action::DrainGreen(vec![30, 40]));
        let case = format!("{writer:?} and {reader:?}");
        assert_eq!(site.pooled(OTHER), i64::from(!drained), "connections, {case}");
        assert_eq!(site.pins(), usize::from(!drained), "the DNS cache, {case}");
        site.probe(GREEN_NAME, GREEN);
        assert_eq!(site.logins(GREEN), logins + usize::from(drained), "the monitor's connection, {case}");
        assert_eq!(servers(), before, "rows stay as they are, {case}");
    }
}

#[test]
fn look_ups_answer_what_was_found_and_a_name_that_fails_is_logged_once() {
    let site = site(&[]);
    let mut performer = Performer::new(10, site.effects.clone());
    // The root has no address, and nobody needs to be asked for that.
    let hosts: Vec<Arc<str>> = [GREEN_NAME, "."].map(Arc::from).into();
    let lines = logged(|| {
        for _ in 0..2 {
            let answer = performer.perform(Action::Resolve(hosts.clone()), PATIENCE, "");
            let Some(Observation::Resolved(found)) = answer else { panic!("no answer") };
            let [Resolution { host, address }] = &found[..] else { panic!("{found:?}") };
            assert_eq!((&**host, address.ip), (GREEN_NAME, GREEN));
            assert!(address.valid_until > Instant::now());
        }
    });
    assert_eq!(lines.iter().filter(|line| line.contains("no address for .")).count(), 1, "{lines:?}");
}

#[test]
fn a_status_is_published_with_a_line_that_tells_what_was_seen_and_where() {
    let site = Site::with(Table::Absent, |_| {});
    site.stop_worker();
    let status = || site.effects.backends.read(|groups| groups.deployments()[&10].status);
    let (from, to) = (BgdStatus::Available, BgdStatus::WriterSwitchoverInitiated);
    let cause = Arc::from("target status SWITCHOVER_INITIATED");
    let lines = logged(|| {
        site.perform(Action::Publish(Transition { from, to, cause }));
    });
    assert_eq!(status(), to);
    assert_eq!(
        lines,
        ["blue/green deployment 10: AVAILABLE -> WRITER_SWITCHOVER_INITIATED \
          (target status SWITCHOVER_INITIATED on 127.0.0.1:1)"]
    );
}

#[test]
fn suppression_is_of_the_deployment_and_ends_with_it() {
    let site = site(&[]);
    let suppressed = |at| site.effects.suppression.admit(&site.endpoint(at)).is_none();
    site.effects.suppression.add(11, [site.endpoint(1)]);
    site.perform(Action::Suppress(vec![site.endpoint(0), site.endpoint(1)]));
    assert!(suppressed(0) && suppressed(1));
    site.perform(Action::ClearSuppression);
    assert!(!suppressed(0) && suppressed(1), "the other deployment's stays");
}

#[test]
fn readers_are_shunned_and_back_and_the_writer_moves() {
    let site = site(&[]);
    let (writer, reader) = (site.endpoint(0), site.endpoint(1));
    let placed = |hostgroup, endpoint: &Endpoint| {
        site.effects.backends.read(|groups| groups.server(hostgroup, endpoint).map(|server| server.status))
    };
    site.perform(Action::ShunReader { hostgroup: 20, endpoint: reader.clone() });
    assert_eq!(placed(20, &reader), Some(ServerStatus::ShunnedAwsBgd));
    site.perform(Action::UnshunReader { hostgroup: 20, endpoint: reader.clone() });
    assert_eq!(placed(20, &reader), Some(ServerStatus::Online));
    site.perform(Action::Demote { endpoint: writer.clone(), reader: 20 });
    assert_eq!((placed(10, &writer), placed(20, &writer)), (None, Some(ServerStatus::Online)));
    let configure =
        |also_reader| Action::ConfigureWriter { endpoint: writer.clone(), reader: 20, also_reader };
    site.perform(configure(true));
    assert_eq!([10, 20].map(|id| placed(id, &writer)), [Some(ServerStatus::Online); 2]);
    site.perform(configure(false));
    assert_eq!((placed(10, &writer), placed(20, &writer)), (Some(ServerStatus::Online), None));
}

#[test]
fn an_added_green_writer_answers_with_the_tls_of_its_row() {
    let site = site(&[(31, ConfiguredStatus::Online)]);
    let port = site.endpoint(0).port;
    let endpoint = Endpoint::new(GREEN_NAME, port);
    let add = |hostgroup| site.perform(Action::AddGreenWriter { hostgroup, endpoint: endpoint.clone() });
    assert_eq!(add(30), Some(Observation::GreenWriterAdded { use_ssl: false }));
    assert_eq!(add(31), None, "it is no hostgroup of this deployment");
    assert!(site.effects.backends.read(|groups| groups.server(30, &endpoint).is_some()));
}
