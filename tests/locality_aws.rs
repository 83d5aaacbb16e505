//! The real program with `--locality-provider aws`, against a fake AWS.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/daemon.rs"]
mod support;

#[allow(dead_code, missing_docs, reason = "shared with programs that use other parts of it")]
#[path = "support/pair.rs"]
mod pair;

#[allow(dead_code, missing_docs, reason = "shared with the provider's own tests")]
#[path = "support/fake_aws/mod.rs"]
mod fake_aws;

#[allow(dead_code, missing_docs, reason = "shared with other programs of tests")]
#[path = "support/zones.rs"]
mod zones;

use fake_aws::{FakeAws, Fault};
use mysql::prelude::Queryable;
use pair::PATIENCE;
use std::time::{Duration, Instant};
use support::within;
use zones::{FAR, NEAR, Place, World, place};

/// A proxy on an instance in zone a, with a role.
fn start(fake: &FakeAws, variables: &[(&str, &str)]) -> World {
    for (host, zone) in [(NEAR, "eu-north-1a"), (FAR, "eu-north-1b")] {
        assert_eq!(fake.add_instance(host.split('.').next().unwrap(), zone), host);
    }
    let url = fake.url();
    let mut environment = vec![
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str()),
        ("AWS_ENDPOINT_URL_RDS", &url),
        ("AWS_ENDPOINT_URL_STS", &url),
        // Nothing of this machine's.
        ("HOME", "/nonexistent"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    environment.extend_from_slice(variables);
    let environment: Vec<_> =
        environment.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut world = World::with(|_| ["--locality-provider", "aws"].map(str::to_owned).into(), &environment);
    world.switch(true);
    world
}

fn come_to(world: &mut World, expected: [Place; 3]) {
    assert!(within(PATIENCE, || world.places() == expected), "{:?}\n{}", world.places(), world.proxy.log());
}

fn own() -> Place {
    place("", "fresh", "eu-north-1a", None)
}

fn asked(fake: &FakeAws) -> bool {
    fake.calls().iter().any(|call| call.starts_with("DescribeDBInstances"))
}

#[test]
fn the_server_in_the_instances_zone_answers_more() {
    let fake = FakeAws::default();
    let mut world = start(&fake, &[]);
    let (near, far) =
        (place(NEAR, "fresh", "eu-north-1a", Some(9.0)), place(FAR, "fresh", "eu-north-1b", Some(1.0)));
    come_to(&mut world, [own(), far, near]);
    let share = world.share_of_near();
    assert!((0.8..0.97).contains(&share), "{share}, not about 0.9");
    let account = "SELECT DISTINCT account FROM stats_mysql_aws_locality";
    assert_eq!(world.admin.query::<String, _>(account).unwrap(), [fake_aws::ACCOUNT]);
}

#[test]
fn it_ends_quickly_while_aws_does_not_answer() {
    let fake = FakeAws::default();
    fake.fail("DescribeDBInstances", usize::MAX, Fault::Silent);
    // At this level the log has all that may be in it.
    let mut world = start(&fake, &[("RUST_LOG", "trace")]);
    let unknown = |host| place(host, "error", "", Some(1.0));
    come_to(&mut world, [own(), unknown(FAR), unknown(NEAR)]);
    assert!(asked(&fake));
    let again = within(PATIENCE, || asked(&fake));
    assert!(again, "the next question is under way");
    let begin = Instant::now();
    let World { proxy, admin, .. } = world;
    drop(admin);
    let (status, log) = proxy.terminate();
    assert!(status.is_some_and(|status| status.success()), "{log}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert!(!log.contains("it stays loaded"), "{log}");
    assert!(log.contains("where endpoints of eu-north-1 are (timeout)"), "{log}");
    for secret in ["secret/", "token+", "metadata-token"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_proxy_is_asked_for_the_api_and_never_for_metadata() {
    let fake = FakeAws::default();
    // Nobody is there.
    let mut world = start(&fake, &[("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "")]);
    let unknown = |host| place(host, "error", "", Some(1.0));
    come_to(&mut world, [own(), unknown(FAR), unknown(NEAR)]);
    assert!(!asked(&fake));
    assert!(world.proxy.log().contains("where endpoints of eu-north-1 are (provider_error)"));
}
