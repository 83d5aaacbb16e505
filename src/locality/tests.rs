//! The manager, with a provider that does as it is told.

use super::provider::{Answer, Category, Lease, Location, Provider, Subject};
use super::{Locality, Report, Snapshot};
use crate::config::Config;
use crate::dns::Dns;
use crate::hostgroups::Endpoint;
use crate::pool::Backends;
use crate::testing::{eventually, server};
use admin::Variables;
use admin::rows::{HostgroupAttributesRow, ServersConfig};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;

const NEAR: &str = "near.cabc.eu-north-1.rds.amazonaws.com";
const FAR: &str = "far.cabc.eu-north-1.rds.amazonaws.com";
const GREEN: &str = "near-green-abc123.cabc.eu-north-1.rds.amazonaws.com";
const OTHER: &str = "mysql.example.com";
const SETTINGS: &str =
    r#"{"aws":{"locality_awareness":{"same_region_multiplier":2,"same_az_multiplier":4}}}"#;

/// Answers at once, or keeps the questions.
#[derive(Default)]
struct Fake {
    silent: Mutex<bool>,
    kept: Mutex<Vec<Lease>>,
    ended: Mutex<bool>,
    /// How often it was asked.
    asked: Mutex<u32>,
    /// It does not return while somebody holds this.
    gate: Mutex<()>,
}

fn place(subject: &Subject) -> Answer {
    let zone = match subject {
        Subject::Endpoint(host) if &**host == FAR || &**host == GREEN => "eu-north-1b",
        Subject::Endpoint(host) if &**host == OTHER => return Err(Category::NotFound),
        _ => "eu-north-1a",
    };
    Ok(Location { region: "eu-north-1".into(), zone: zone.into(), ..Location::default() })
}

impl Fake {
    fn speak(&self) {
        *self.silent.lock() = false;
        let kept = std::mem::take(&mut *self.kept.lock());
        answer(kept);
    }
}

fn answer(leases: Vec<Lease>) {
    for lease in leases {
        let place = place(lease.subject());
        let _ = lease.answer(place);
    }
}

impl Provider for Fake {
    fn name(&self) -> &str {
        "fake"
    }
    fn shows_table(&self) -> bool {
        true
    }
    fn request(&self, leases: Vec<Lease>) {
        assert!(!*self.ended.lock(), "asked after its end");
        *self.asked.lock() += 1;
        drop(self.gate.lock());
        match *self.silent.lock() {
            true => self.kept.lock().extend(leases),
            false => answer(leases),
        }
    }
    fn shut_down(&self) {
        *self.ended.lock() = true;
    }
}

struct Site {
    backends: Arc<Backends>,
    dns: Arc<Dns>,
    fake: Arc<Fake>,
    locality: Locality,
}

impl Site {
    fn new(provided: bool) -> Self {
        let config = Arc::new(Config::new(Variables::default()));
        let dns = Dns::new(Arc::clone(&config), None);
        let backends = Arc::new(Backends::new(config, Arc::clone(&dns)));
        let fake = Arc::new(Fake::default());
        let provider = provided.then(|| Arc::clone(&fake) as Arc<dyn Provider>);
        let locality = Locality::new(Arc::clone(&backends), Arc::clone(&dns), provider);
        let site = Self { backends, dns, fake, locality };
        site.load(SETTINGS);
        site.locality.start().unwrap();
        site
    }
    fn load(&self, settings: &str) {
        let mut attributes = HostgroupAttributesRow::new(7);
        attributes.hostgroup_settings = settings.to_owned();
        let config = ServersConfig {
            servers: [NEAR, FAR, OTHER].map(|host| server(7, host)).to_vec(),
            hostgroup_attributes: vec![attributes],
            ..ServersConfig::default()
        };
        assert_eq!(self.backends.update(|hostgroups| hostgroups.load(&config)), [""; 0]);
        self.locality.look();
    }
    /// What weights of 10 come to.
    fn weights(&self) -> [u64; 3] {
        let snapshot = self.backends.locality();
        [NEAR, FAR, OTHER].map(|host| snapshot.of(7).effective(&Endpoint::new(host, 3306), 10))
    }
    fn report(&self) -> Vec<String> {
        let line = |report: Report| {
            let host = report.server.map_or("self".to_owned(), |(_, endpoint)| {
                endpoint.host.split('.').next().unwrap_or_default().to_owned()
            });
            let multiplier = report.multiplier.map(|multiplier| multiplier.to_string()).unwrap_or_default();
            let error = report.error.map_or("", Category::as_str);
            format!("{host} {} {} {multiplier} {error}", report.state.as_str(), report.location.zone)
        };
        self.locality.report().into_iter().map(line).collect()
    }
}

#[test]
fn answers_become_weights_until_it_is_switched_off() {
    let site = Site::new(true);
    assert_eq!(site.weights(), [10, 10, 10], "it is off");
    assert_eq!(site.report(), ["self disabled   ", "far disabled  1 ", "near disabled  1 "]);
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    assert_eq!(
        site.report(),
        ["self fresh eu-north-1a  ", "far fresh eu-north-1b 2 ", "near fresh eu-north-1a 4 "]
    );
    site.locality.enable(false);
    assert_eq!(site.weights(), [10, 10, 10], "at once");
    site.locality.stop();
}

#[test]
fn an_answer_to_a_question_from_before_it_was_switched_off_is_ignored() {
    let site = Site::new(true);
    *site.fake.silent.lock() = true;
    site.locality.enable(true);
    eventually("it asks", || site.fake.kept.lock().len() == 3);
    assert_eq!(site.report()[2], "near pending  1 ");
    site.locality.enable(false);
    site.fake.speak();
    *site.fake.silent.lock() = true;
    site.locality.enable(true);
    eventually("it asks anew", || site.fake.kept.lock().len() == 3);
    assert_eq!((site.weights(), site.report()[2].as_str()), ([10, 10, 10], "near pending  1 "));
    site.fake.speak();
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    site.locality.stop();
}

#[test]
fn without_a_provider_all_is_neutral_and_the_category_says_why() {
    let site = Site::new(false);
    assert!(!site.locality.shows_table());
    site.locality.enable(true);
    eventually("the category", || site.report()[0] == "self error   provider_unavailable");
    assert_eq!(site.weights(), [10, 10, 10]);
    site.locality.stop();
}

#[test]
fn a_load_changes_or_ends_a_policy() {
    let site = Site::new(true);
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    site.load(&SETTINGS.replace('4', "8"));
    eventually("the new factor", || site.weights() == [80, 20, 10]);
    site.load("");
    eventually("no policy", || site.weights() == [10, 10, 10]);
    assert_eq!(site.report(), [""; 0]);
    site.locality.stop();
}

#[test]
fn a_pinned_name_is_where_the_server_is_that_it_leads_to() {
    let site = Site::new(true);
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    site.dns.pin(NEAR, [127, 0, 0, 1].into(), GREEN.into(), 10);
    site.locality.look();
    eventually("the zone of the green server", || site.weights() == [20, 20, 10]);
    site.dns.remove(NEAR, 10);
    site.locality.look();
    eventually("its own zone", || site.weights() == [40, 20, 10]);
    site.locality.stop();
}

#[test]
fn a_provider_that_does_not_return_keeps_nothing_waiting() {
    let site = Site::new(true);
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    let gate = site.fake.gate.lock();
    let before = *site.fake.asked.lock();
    site.load(&SETTINGS.replace("4}", r#"4,"refresh_interval_seconds":30}"#));
    eventually("it is asked, since the policy is more eager", || *site.fake.asked.lock() > before);
    site.load(&SETTINGS.replace('4', "8"));
    eventually("the new factor", || site.weights() == [80, 20, 10]);
    assert_eq!(site.report()[2], "near fresh eu-north-1a 8 ");
    site.locality.enable(false);
    assert_eq!((site.weights(), site.report()[2].as_str()), ([10, 10, 10], "near disabled  1 "));
    site.locality.enable(true);
    eventually("it is on", || site.report()[2] == "near pending  1 ");
    drop(gate);
    eventually("weights by zone", || site.weights() == [80, 20, 10]);
    site.locality.stop();
}

#[test]
fn nobody_is_asked_while_it_is_off() {
    let site = Site::new(true);
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    site.locality.enable(false);
    let before = *site.fake.asked.lock();
    // Each of these has all asked anew while it is on.
    for refresh in [60, 50, 40] {
        site.load(&SETTINGS.replace("4}", &format!(r#"4,"refresh_interval_seconds":{refresh}}}"#)));
    }
    site.locality.enable(true);
    eventually("weights by zone", || site.weights() == [40, 20, 10]);
    assert_eq!(*site.fake.asked.lock(), before + 1, "asked once, when it was switched on");
    site.locality.stop();
}

#[test]
fn factors_are_published_where_they_or_the_endpoints_are_others() {
    let site = Site::new(false);
    let made = |factor| {
        let members = site.backends.read(|hostgroups| hostgroups.locality()).remove(0).2;
        Snapshot::new([(7, members.into_iter().map(|endpoint| (endpoint, factor)).collect())])
    };
    let publish = |factor| {
        site.backends.set_locality(made(factor));
        site.backends.locality()
    };
    let first = publish(2.0);
    assert!(Arc::ptr_eq(&first, &publish(2.0)), "nothing has changed");
    let second = publish(3.0);
    assert_eq!(second.of(7).effective(&Endpoint::new(NEAR, 3306), 10), 30);
    site.load(SETTINGS);
    assert!(!Arc::ptr_eq(&second, &publish(3.0)), "names of the new LOAD");
    site.locality.stop();
}

#[test]
fn the_end_waits_for_questions_under_way_and_then_lets_the_provider_go() {
    let site = Site::new(true);
    *site.fake.silent.lock() = true;
    site.locality.enable(true);
    eventually("it asks", || site.fake.kept.lock().len() == 3);
    let fake = Arc::clone(&site.fake);
    let late = thread::spawn(move || {
        eventually("the end was told", || *fake.ended.lock());
        fake.speak();
    });
    site.locality.stop();
    assert!(site.fake.kept.lock().is_empty(), "the end came before the answers");
    late.join().unwrap();
    drop(site.locality);
    assert_eq!(Arc::strong_count(&site.fake), 1);
}
