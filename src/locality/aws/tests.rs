//! The provider against a fake AWS.

#[allow(dead_code, missing_docs, reason = "shared with the test of the whole program")]
#[path = "../../../tests/support/fake_aws/mod.rs"]
mod fake_aws;

use super::batch::Asker;
use super::environment::Environment;
use super::http::{Client, Patience};
use super::{Aws, PATIENCE, Shared};
use crate::config::Config;
use crate::dns::Dns;
use crate::locality::provider::{Answer, Category, Inbox, Location, Provider, Subject};
use crate::locality::running::Running;
use crate::testing::{eventually, logged};
use admin::Variables;
use fake_aws::{
    ACCOUNT, CONTAINER_TOKEN, FakeAws, FakeCluster, FakeInstance, Fault, KEY, REGION, SECRET, WEB_TOKEN,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TOKEN: &str = "/latest/api/token";
const CREDENTIALS: &str = "/latest/meta-data/iam/security-credentials/pointsman-role";
const INSTANCES: &str = "DescribeDBInstances";
const CLUSTERS: &str = "DescribeDBClusters";

/// Enough for a machine that has much else to do; where an answer comes, it is not waited for.
const GREAT: Patience =
    Patience { api: Duration::from_secs(30), near: Duration::from_secs(30), pause: Duration::from_millis(1) };
/// Credentials.
const KEYS: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)];

/// A fake, and somebody who asks it on the test's own thread.
struct Site {
    fake: FakeAws,
    asker: Asker,
    shared: Arc<Shared>,
    patience: Duration,
    files: tempfile::TempDir,
}

/// Whatever this machine's proxy is, it is not on the way to the fake.
fn asker(
    fake: &FakeAws,
    variables: &[(&'static str, &str)],
    patience: Patience,
    shared: &Arc<Shared>,
) -> Asker {
    let dns = Dns::new(Arc::new(Config::new(Variables::default())), None);
    let client = Client::new(&dns, None, patience, Arc::clone(shared));
    Asker::new(environment(fake, variables), client, Arc::clone(shared))
}

/// Everything is on the fake; nothing is of this machine.
fn environment(fake: &FakeAws, more: &[(&'static str, &str)]) -> Environment {
    let url = fake.url();
    let services = ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL_RDS", "AWS_ENDPOINT_URL_STS"];
    let services = services.into_iter().map(|name| (name, url.clone()));
    Environment::new(services.chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))))
}

impl Site {
    /// With credentials in variables.
    fn new() -> Self {
        Self::with(KEYS)
    }
    fn with(variables: &[(&'static str, &str)]) -> Self {
        let fake = FakeAws::default();
        let shared = Arc::<Shared>::default();
        let asker = asker(&fake, variables, GREAT, &shared);
        let files = tempfile::tempdir().unwrap();
        Self { fake, asker, shared, patience: Duration::from_secs(60), files }
    }
    /// Asks in another environment from now on.
    fn become_of(&mut self, variables: &[(&'static str, &str)]) {
        self.asker = asker(&self.fake, variables, GREAT, &self.shared);
    }
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
    /// What is said of these, by subject, each once.
    fn ask_all(&mut self, subjects: &[Subject]) -> BTreeMap<Subject, Answer> {
        let inbox = Arc::new(Inbox::default());
        let lease = |(ticket, subject): (u64, &Subject)| {
            (subject.clone(), inbox.lease(ticket, subject.clone()).unwrap())
        };
        self.shared.state.lock().current = (0..).zip(subjects).map(lease).collect();
        self.asker.ask(subjects, Instant::now() + self.patience);
        assert!(self.shared.state.lock().current.is_empty(), "all are answered");
        assert!(inbox.drain(Instant::now()));
        let answers = inbox.wait(Some(Instant::now()));
        assert_eq!(answers.len(), subjects.len());
        let subject = |ticket: u64| subjects[usize::try_from(ticket).unwrap()].clone();
        answers.into_iter().map(|(ticket, answer)| (subject(ticket), answer)).collect()
    }
    fn own(&mut self) -> Answer {
        self.ask_all(&[Subject::Own]).remove(&Subject::Own).unwrap()
    }
    fn endpoints(&mut self, hosts: &[&str]) -> Vec<Answer> {
        let subjects: Vec<Subject> = hosts.iter().map(|host| Subject::Endpoint((*host).into())).collect();
        let mut answers = self.ask_all(&subjects);
        subjects.iter().map(|subject| answers.remove(subject).unwrap()).collect()
    }
    fn endpoint(&mut self, host: &str) -> Answer {
        self.endpoints(&[host]).remove(0)
    }
    /// What the log has of asking for one endpoint, which fails for this reason.
    fn failure(&mut self, host: &str, category: Category) -> String {
        let lines = logged(|| assert_eq!(self.endpoint(host), Err(category)));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let hush = ["hush", "secret/", "token+", WEB_TOKEN, CONTAINER_TOKEN, "metadata-token"];
        assert!(!hush.iter().any(|secret| lines[0].contains(secret)), "{lines:?}");
        lines.into_iter().next().unwrap()
    }
}

fn place(zone: &str, zone_id: &str) -> Location {
    Location { region: REGION.into(), zone: zone.into(), zone_id: zone_id.into(), account: ACCOUNT.into() }
}

fn signed(action: &str, key: &str) -> String {
    format!("{action} {REGION} {key}")
}

#[test]
fn an_instance_knows_its_place_and_is_asked_once() {
    let mut site = Site::new();
    assert_eq!(site.own(), Ok(place("eu-north-1a", "eun1-az1")));
    assert_eq!(
        site.fake.calls(),
        [
            TOKEN,
            "/latest/meta-data/placement/region",
            "/latest/meta-data/placement/availability-zone",
            "/latest/meta-data/placement/availability-zone-id",
            "/latest/dynamic/instance-identity/document",
        ]
    );
    assert!(site.own().is_ok());
    assert_eq!(site.fake.calls(), [""; 0]);
}

#[test]
fn a_metadata_token_that_is_over_is_replaced() {
    let mut site = Site::with(&[]);
    let host = site.fake.add_instance("db", "eu-north-1a");
    assert!(site.own().is_ok());
    site.fake.scene().forget_metadata_tokens();
    assert!(site.endpoint(&host).is_ok(), "by the role, with another token");
    let tokens = site.fake.calls().iter().filter(|call| *call == TOKEN).count();
    assert_eq!(tokens, 2);
}

#[test]
fn metadata_that_does_not_answer_is_given_up_in_one_line() {
    let mut site = Site::with(&[]);
    let host = site.fake.add_instance("db", "eu-north-1a");
    site.fake.fail(TOKEN, usize::MAX, Fault::Silent);
    site.asker = asker(&site.fake, &[], Patience { near: Duration::from_millis(500), ..GREAT }, &site.shared);
    let lines = logged(|| {
        assert_eq!(site.own(), Err(Category::Timeout));
        // The role's credentials are there, too.
        assert_eq!(site.endpoint(&host), Err(Category::Timeout));
        assert_eq!(site.own(), Err(Category::Timeout));
    });
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("where this proxy runs (timeout)"), "{lines:?}");
    assert!(lines[0].contains("HttpPutResponseHopLimit to 2"), "{lines:?}");
    assert!(lines[1].contains("no AWS credentials are configured"), "{lines:?}");
    assert!(site.fake.calls().iter().all(|call| call == TOKEN), "nothing without a token");
}

#[test]
fn metadata_that_refuses_or_makes_no_sense_has_a_category() {
    for (route, fault, category) in [
        (TOKEN, Fault::Refuse(403, "x"), Category::AccessDenied),
        (TOKEN, Fault::Refuse(503, "x"), Category::Throttled),
        (TOKEN, Fault::Refuse(404, "x"), Category::ProviderError),
        (TOKEN, Fault::Say(200, "no\r\ntoken".into()), Category::InvalidAnswer),
        (TOKEN, Fault::Redirect("http://127.0.0.1:1/".into()), Category::InvalidAnswer),
        ("/latest/meta-data/placement/region", Fault::Refuse(401, "x"), Category::AccessDenied),
        ("/latest/meta-data/placement/region", Fault::Say(404, String::new()), Category::InvalidAnswer),
        ("/latest/meta-data/placement/region", Fault::Half, Category::InvalidAnswer),
        (
            "/latest/meta-data/placement/availability-zone",
            Fault::Say(200, "<html>".into()),
            Category::InvalidAnswer,
        ),
    ] {
        let mut site = Site::new();
        let shown = format!("{route} {fault:?}");
        site.fake.fail(route, usize::MAX, fault);
        assert_eq!(site.own(), Err(category), "{shown}");
    }
}

#[test]
fn without_metadata_there_is_no_place() {
    let mut site = Site::new();
    site.become_of(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")]);
    assert_eq!(site.own(), Err(Category::ProviderError));
    site.become_of(&[("AWS_EC2_METADATA_DISABLED", "true")]);
    let lines = logged(|| assert_eq!(site.own(), Err(Category::ProviderError)));
    assert!(lines[0].contains("AWS_EC2_METADATA_DISABLED"), "{lines:?}");
    assert_eq!(site.fake.calls(), [""; 0]);
}

#[test]
fn a_task_is_asked_before_its_instance() {
    let mut site = Site::new();
    let task = format!("{}/v4/container", site.fake.url());
    let task = [("ECS_CONTAINER_METADATA_URI_V4", task.as_str())];
    site.become_of(&task);
    assert_eq!(site.own(), Ok(place("eu-north-1a", "")));
    assert_eq!(site.fake.calls(), ["/v4/container/task"]);
    site.become_of(&task);
    site.fake.fail("/v4/container/task", 1, Fault::Refuse(500, "x"));
    assert_eq!(site.own(), Ok(place("eu-north-1a", "eun1-az1")), "the instance knows, too");
    site.become_of(&task);
    site.fake.fail("/v4/container/task", 1, Fault::Say(200, "{}".into()));
    site.fake.fail(TOKEN, 1, Fault::Refuse(403, "x"));
    let lines = logged(|| assert_eq!(site.own(), Err(Category::InvalidAnswer)));
    assert!(lines[0].contains("task metadata"), "{lines:?}");
}

#[test]
fn one_look_answers_for_all_endpoints_of_a_region() {
    let mut site = Site::new();
    let hosts: Vec<String> =
        (0..150).map(|number| site.fake.add_instance(&format!("db-{number}"), "eu-north-1b")).collect();
    site.fake.scene().page = 60;
    let mut asked: Vec<&str> = hosts.iter().map(String::as_str).collect();
    asked.push("gone.cabc.eu-north-1.rds.amazonaws.com");
    let mut answers = site.endpoints(&asked);
    assert_eq!(answers.pop(), Some(Err(Category::NotFound)));
    assert!(answers.iter().all(|answer| *answer == Ok(place("eu-north-1b", ""))));
    assert_eq!(site.fake.calls(), vec![signed(INSTANCES, KEY); 3], "three pages, and no clusters");
}

#[test]
fn pages_without_end_are_given_up() {
    let mut site = Site::new();
    let hosts: Vec<String> =
        (0..201).map(|number| site.fake.add_instance(&format!("db-{number}"), "eu-north-1b")).collect();
    site.fake.scene().page = 1;
    let asked: Vec<&str> = hosts.iter().map(String::as_str).collect();
    assert_eq!(site.endpoints(&asked)[0], Err(Category::InvalidAnswer));
    assert_eq!(site.fake.calls().len(), 200);
}

#[test]
fn a_region_that_fails_is_asked_after_the_others_the_next_time() {
    let mut site = Site::new();
    let regions = ["ap-south-1", "eu-north-1", "us-west-2"];
    let hosts = regions.map(|region| format!("db.cabc.{region}.rds.amazonaws.com"));
    let asked = |site: &mut Site| -> Vec<String> {
        site.endpoints(&hosts.each_ref().map(String::as_str));
        let calls = site.fake.calls();
        calls.iter().filter_map(|call| call.split(' ').nth(1)).map(str::to_owned).collect()
    };
    assert_eq!(asked(&mut site), regions);
    site.fake.fail(INSTANCES, 1, Fault::Refuse(403, "AccessDenied"));
    assert_eq!(asked(&mut site), regions);
    assert_eq!(asked(&mut site), ["eu-north-1", "us-west-2", "ap-south-1"]);
}

#[test]
fn few_instances_are_asked_for_by_name() {
    let mut site = Site::new();
    let hosts: Vec<String> =
        (0..50).map(|number| site.fake.add_instance(&format!("db-{number}"), "eu-north-1b")).collect();
    site.fake.scene().page = 20;
    let answers = site.endpoints(&[&hosts[40], "gone.cabc.eu-north-1.rds.amazonaws.com"]);
    assert_eq!(answers, [Ok(place("eu-north-1b", "")), Err(Category::NotFound)]);
    assert_eq!(site.fake.calls(), [signed(INSTANCES, KEY)], "one page");
    // A name that the API refuses to filter by.
    site.fake.fail(INSTANCES, 1, Fault::Refuse(404, "DBInstanceNotFound"));
    assert_eq!(site.endpoint(&hosts[40]), Ok(place("eu-north-1b", "")));
    assert_eq!(site.fake.calls().len(), 4, "all three pages after it");
}

#[test]
fn each_region_is_asked_on_its_own() {
    let mut site = Site::new();
    let near = site.fake.add_instance("db", "eu-north-1b");
    let far = "db.cxyz.us-west-2.rds.amazonaws.com";
    let instance = FakeInstance { id: "db".into(), host: far.into(), zone: "us-west-2a".into() };
    site.fake.scene().instances.insert("us-west-2".into(), vec![instance]);
    let answers = site.endpoints(&[&near, far, "mysql.example.com"]);
    let far_place = Location { region: "us-west-2".into(), zone: "us-west-2a".into(), ..place("", "") };
    assert_eq!(answers, [Ok(place("eu-north-1b", "")), Ok(far_place), Err(Category::NotFound)]);
    assert_eq!(site.fake.calls(), [signed(INSTANCES, KEY), format!("{INSTANCES} us-west-2 {KEY}")]);
}

#[test]
fn clusters_are_where_their_instances_are() {
    let mut site = Site::new();
    for (id, zone) in [("s-1", "eu-north-1a"), ("s-2", "eu-north-1b"), ("s-3", "eu-north-1b")] {
        site.fake.add_instance(id, zone);
    }
    let host = |prefix: &str| format!("shop.{prefix}-cabc.eu-north-1.rds.amazonaws.com");
    let cluster = FakeCluster {
        writer: host("cluster"),
        reader: host("cluster-ro"),
        custom: vec![host("cluster-custom")],
        members: [("s-1", true), ("s-2", false), ("s-3", false)]
            .map(|(id, writer)| (id.into(), writer))
            .into(),
    };
    site.fake.scene().clusters.insert(REGION.into(), vec![cluster]);
    let answers = site.endpoints(&[&host("cluster"), &host("cluster-ro"), &host("cluster-custom")]);
    assert_eq!(answers, ["eu-north-1a", "eu-north-1b", ""].map(|zone| Ok(place(zone, ""))));
    assert_eq!(site.fake.calls(), [signed(CLUSTERS, KEY), signed(INSTANCES, KEY)]);
    let green = site.fake.add_instance("db-green-abc123", "eu-north-1c");
    assert_eq!(site.endpoint(&green), Ok(place("eu-north-1c", "")), "an instance like others");
}

#[test]
fn asked_too_often_it_asks_again_while_there_is_time() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    site.fake.fail(INSTANCES, 2, Fault::Refuse(400, "Throttling"));
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls().len(), 3);
    site.fake.fail(INSTANCES, usize::MAX, Fault::Refuse(503, "ServiceUnavailable"));
    site.failure(&host, Category::Throttled);
    assert_eq!(site.fake.calls().len(), 4);
    site.asker = asker(&site.fake, KEYS, Patience { pause: site.patience, ..GREAT }, &site.shared);
    site.fake.fail(INSTANCES, usize::MAX, Fault::Refuse(400, "RequestLimitExceeded"));
    site.failure(&host, Category::Throttled);
    assert_eq!(site.fake.calls().len(), 1, "no pause that would outlast its time");
    site.fake.mend();
    let lines = logged(|| assert!(site.endpoint(&host).is_ok()));
    assert_eq!(lines, ["locality: AWS tells where endpoints of eu-north-1 are again"]);
}

#[test]
fn refusals_say_what_to_do() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    site.fake.fail(INSTANCES, usize::MAX, Fault::Refuse(403, "AccessDenied"));
    let line = site.failure(&host, Category::AccessDenied);
    assert!(line.contains("rds:DescribeDBInstances and rds:DescribeDBClusters"), "{line}");
    site.fake.mend();
    for (key, secret, words) in [(KEY, "hush wrong", "clock"), ("AKIDOTHER", SECRET, "valid credentials")] {
        site.become_of(&[("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)]);
        let line = site.failure(&host, Category::AccessDenied);
        assert!(line.contains(words), "{line}");
    }
}

#[test]
fn an_endpoint_that_is_no_url_is_a_mistake_of_the_configuration() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    let keys = [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    for url in ["/rds", "/", "127.0.0.1:1", "http://", "http:///rds", "ftp://127.0.0.1", "http://hush hush"] {
        site.become_of(&[("AWS_ENDPOINT_URL_RDS", url), keys[0], keys[1]]);
        let line = site.failure(&host, Category::ProviderError);
        assert!(line.contains("see AWS_ENDPOINT_URL"), "{url}: {line}");
    }
}

#[test]
fn answers_that_make_no_sense_are_invalid() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    let huge = "x".repeat((16 << 20) + 1);
    let endless = "<DescribeDBInstancesResponse><DescribeDBInstancesResult><DBInstances/><Marker>m</Marker>\
                   </DescribeDBInstancesResult></DescribeDBInstancesResponse>";
    for fault in [
        Fault::Half,
        Fault::Say(200, "hush".into()),
        Fault::Say(200, "<DescribeDBInstancesResponse/>".into()),
        Fault::Say(200, huge),
        Fault::Say(200, endless.into()),
        Fault::Say(204, String::new()),
        Fault::Redirect(format!("{}/elsewhere", site.fake.url())),
    ] {
        let shown: String = format!("{fault:?}").chars().take(60).collect();
        site.fake.fail(INSTANCES, usize::MAX, fault);
        assert_eq!(site.endpoint(&host), Err(Category::InvalidAnswer), "{shown}");
    }
    assert!(!site.fake.calls().contains(&"/elsewhere".to_owned()), "redirects are not followed");
    site.fake.fail(INSTANCES, usize::MAX, Fault::Close);
    assert!(matches!(site.endpoint(&host), Err(Category::ProviderError | Category::InvalidAnswer)));
}

#[test]
fn late_answers_are_not_waited_for() {
    let mut site = Site::new();
    let (host, slow) = (site.fake.add_instance("db", "eu-north-1a"), "x.cabc.us-west-2.rds.amazonaws.com");
    site.fake.fail(INSTANCES, 1, Fault::Late(Duration::from_millis(300)));
    assert!(site.endpoint(&host).is_ok(), "this is in time");
    site.patience = Duration::from_millis(700);
    let begin = Instant::now();
    site.fake.calls();
    for fault in [Fault::Late(Duration::from_secs(20)), Fault::Silent] {
        site.fake.fail(INSTANCES, usize::MAX, fault);
        // The other Region has no time left, and is not asked.
        assert_eq!(site.endpoints(&[&host, slow]), [Err(Category::Timeout), Err(Category::Timeout)]);
        assert_eq!(site.fake.calls().len(), 1);
    }
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
}

#[test]
fn the_role_of_the_instance_is_used_and_renewed() {
    let mut site = Site::with(&[]);
    let host = site.fake.add_instance("db", "eu-north-1a");
    assert!(site.endpoint(&host).is_ok());
    assert!(site.endpoint(&host).is_ok());
    let key = |number: usize| signed(INSTANCES, &format!("ASIAROLE{number}"));
    let calls = site.fake.calls();
    assert_eq!(
        calls.iter().filter(|call| *call == CREDENTIALS).count(),
        1,
        "kept from one to the next: {calls:?}"
    );
    assert_eq!(calls.iter().filter(|call| **call == key(2)).count(), 2, "{calls:?}");
    // Over before their time: new ones, at once.
    site.fake.scene().expire();
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(
        site.fake.calls(),
        [key(2), "/latest/meta-data/iam/security-credentials/".into(), CREDENTIALS.into(), key(3)]
    );
    site.fake.scene().role = false;
    site.fake.scene().expire();
    let line = site.failure(&host, Category::AccessDenied);
    assert!(line.contains("no AWS credentials") && line.contains("docs/locality.md"), "{line}");
}

#[test]
fn credentials_come_by_web_identity() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    let file = site.file("token", &format!("{WEB_TOKEN}\n"));
    let path = file.to_str().unwrap().to_owned();
    let variables =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", path.as_str()), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/x")];
    site.become_of(&variables);
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls(), ["AssumeRoleWithWebIdentity".to_owned(), signed(INSTANCES, "ASIASTS1")]);
    std::fs::write(&file, "hush").unwrap();
    site.become_of(&variables);
    let line = site.failure(&host, Category::AccessDenied);
    assert!(line.contains("trust policy") && line.contains("STS"), "{line}");
    std::fs::remove_file(&file).unwrap();
    site.become_of(&variables);
    site.failure(&host, Category::ProviderError);
}

#[test]
fn credentials_come_from_profiles() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    let credentials = site.file(
        "credentials",
        &format!("[base]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"),
    );
    let config = site.file(
        "config",
        "[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\nexternal_id = partner 1&2\n\
         [profile program]\ncredential_process = printf '{\"AccessKeyId\":\"AKIDFAKE\",\"SecretAccessKey\":\"wrong\"}'\n\
         [profile person]\nsso_session = x\n[profile ring]\nrole_arn = a\nsource_profile = ring2\n\
         [profile ring2]\nrole_arn = a\nsource_profile = ring\n[profile mfa]\nrole_arn = a\nmfa_serial = b\n\
         [profile nobody]\nrole_arn = a\n",
    );
    let become_of = |site: &mut Site, profile: &str| {
        site.become_of(&[
            ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
            ("AWS_CONFIG_FILE", config.to_str().unwrap()),
            ("AWS_PROFILE", profile),
        ]);
    };
    become_of(&mut site, "base");
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls(), [signed(INSTANCES, KEY)]);
    become_of(&mut site, "role");
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls(), [signed("AssumeRole", KEY), signed(INSTANCES, "ASIASTS1")]);
    become_of(&mut site, "program");
    assert!(site.failure(&host, Category::AccessDenied).contains("SignatureDoesNotMatch"));
    for (profile, words) in [
        ("person", "SSO"),
        ("ring", "without end"),
        ("mfa", "mfa_serial"),
        ("nobody", "nobody to assume it"),
        ("absent", "AWS_PROFILE"),
    ] {
        become_of(&mut site, profile);
        let line = site.failure(&host, Category::ProviderError);
        assert!(line.contains(words), "{line}");
    }
}

#[test]
fn credentials_come_from_the_container() {
    let mut site = Site::new();
    let host = site.fake.add_instance("db", "eu-north-1a");
    let (url, token) = (format!("{}/credentials", site.fake.url()), site.file("token", CONTAINER_TOKEN));
    let full = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str());
    let file = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap());
    site.become_of(&[full, file]);
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls(), ["/credentials".to_owned(), signed(INSTANCES, "ASIATASK1")]);
    site.become_of(&[full, ("AWS_CONTAINER_AUTHORIZATION_TOKEN", CONTAINER_TOKEN)]);
    assert!(site.endpoint(&host).is_ok());
    site.become_of(&[full]);
    assert!(site.failure(&host, Category::AccessDenied).contains("container credentials"));
    site.become_of(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/"), file]);
    assert!(site.failure(&host, Category::ProviderError).contains("https"));
}

#[test]
fn credentials_near_their_end_are_not_renewed_for_each_question() {
    let mut site = Site::with(&[]);
    let host = site.fake.add_instance("db", "eu-north-1a");
    site.fake.scene().lifetime = Duration::from_secs(60);
    assert!(site.endpoint(&host).is_ok());
    site.fake.calls();
    assert!(site.endpoint(&host).is_ok());
    assert_eq!(site.fake.calls(), [signed(INSTANCES, "ASIAROLE2")]);
}

#[test]
fn the_thread_answers_batches_and_gives_questions_up_at_its_end() {
    let fake = FakeAws::default();
    let host = fake.add_instance("db", "eu-north-1b");
    let shared = Arc::<Shared>::default();
    let aws = Aws::start_with(asker(&fake, &[], GREAT, &shared), shared).unwrap();
    let inbox = Arc::new(Inbox::default());
    let subjects = [Subject::Own, Subject::Endpoint(host.as_str().into())];
    let lease = |ticket: u64| {
        let subject = &subjects[usize::try_from(ticket % 2).unwrap()];
        inbox.lease(ticket, subject.clone()).unwrap()
    };
    aws.request(vec![lease(0), lease(1)]);
    let mut answers = Vec::new();
    eventually("both are answered", || {
        answers.extend(inbox.wait(Some(Instant::now() + Duration::from_millis(10))));
        answers.len() == 2
    });
    answers.sort_by_key(|(ticket, _)| *ticket);
    assert_eq!(answers, [(0, Ok(place("eu-north-1a", "eun1-az1"))), (1, Ok(place("eu-north-1b", "")))]);
    fake.calls();
    fake.fail(INSTANCES, usize::MAX, Fault::Silent);
    aws.request(vec![lease(3)]);
    eventually("it is asked", || fake.was_asked());
    aws.request(vec![lease(5)]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            aws.shut_down();
            ended.store(true, Ordering::SeqCst);
        });
        assert!(inbox.drain(Instant::now() + PATIENCE));
        assert!(!ended.load(Ordering::SeqCst), "questions are given up before the call under way has ended");
        // Which ends with the fake.
        drop(fake);
    });
    let answers = inbox.wait(Some(Instant::now()));
    assert_eq!(answers, [(5, Err(Category::ProviderError)), (3, Err(Category::ProviderError))]);
    aws.request(vec![inbox.lease(7, Subject::Own).unwrap()]);
    assert!(inbox.drain(Instant::now()), "nobody takes it");
}

#[test]
fn a_thread_that_does_not_come_back_is_left_behind() {
    let (hold, held) = crossbeam_channel::bounded::<()>(0);
    let (done, ended) = crossbeam_channel::bounded::<()>(0);
    let thread = Running::start("held", move || {
        // Disconnected: the test is over.
        let _ = held.recv();
        drop(done);
    });
    let thread = parking_lot::Mutex::new(Some(thread.unwrap()));
    let aws = Aws { shared: Arc::default(), thread, grace: Duration::from_millis(10) };
    let lines = logged(|| {
        aws.shut_down();
        drop(aws);
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("has not come to an end"), "{lines:?}");
    drop(hold);
    assert!(ended.recv().is_err());
}

#[test]
fn a_question_replaces_the_one_before_and_none_takes_the_time_of_another() {
    let shared = Arc::<Shared>::default();
    let aws = Aws { shared: Arc::clone(&shared), thread: Default::default(), grace: Duration::ZERO };
    let inbox = Arc::new(Inbox::default());
    let lease = |ticket, subject: &Subject| inbox.lease(ticket, subject.clone()).unwrap();
    let (late, host) = (Subject::Own, Subject::Endpoint("db.cabc.eu-north-1.rds.amazonaws.com".into()));
    aws.request(vec![lease(0, &host)]);
    aws.request(vec![lease(1, &host)]);
    let answers = || inbox.wait(Some(Instant::now()));
    assert_eq!(answers(), [(0, Err(Category::ProviderError))], "asked anew under another number");
    shared.state.lock().waiting.insert(late.clone(), (lease(2, &late), Instant::now()));
    let (subjects, until) = shared.next().unwrap();
    assert_eq!(subjects, [host]);
    assert!(until > Instant::now());
    assert_eq!(answers(), [(2, Err(Category::Timeout))]);
    assert_eq!(shared.state.lock().current.len(), 1);
}
