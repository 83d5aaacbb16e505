//! What hostgroups make of what is known.

use super::ledger::{Knowledge, Ledger};
use super::names::EndpointName;
use super::policy::Policy;
use super::provider::{Location, Nearness, Subject};
use super::snapshot::Snapshot;
use crate::dns::normalise;
use crate::hostgroups::{Endpoint, HostgroupId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A hostgroup with a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its number.
    pub hostgroup: HostgroupId,
    /// Its policy.
    pub policy: Policy,
    /// Its servers, with what is asked about each: nothing where the name is no endpoint of AWS's.
    pub members: Vec<(Endpoint, Option<Subject>)>,
}

/// What is asked about a host; `None` for names that stay neutral.
pub fn subject_of(host: &str) -> Option<Subject> {
    EndpointName::parse(host)?;
    Some(Subject::Endpoint(Arc::from(normalise(host))))
}

/// All that is to be known, and how often it is asked for.
pub fn wanted(groups: &[Group]) -> BTreeMap<Subject, Duration> {
    let mut wanted = BTreeMap::<Subject, Duration>::new();
    for group in groups {
        for subject in group.members.iter().filter_map(|(_, subject)| subject.as_ref()) {
            for subject in [subject, &Subject::Own] {
                let refresh = wanted.entry(subject.clone()).or_insert(group.policy.refresh);
                *refresh = group.policy.refresh.min(*refresh);
            }
        }
    }
    wanted
}

/// The factor of a server, 1.0 unless both its place and the proxy's own are known and hold.
pub fn factor(policy: &Policy, own: &Knowledge<'_>, server: &Knowledge<'_>) -> f64 {
    fn holding<'a>(knowledge: &Knowledge<'a>) -> Option<&'a Location> {
        knowledge.location.filter(|_| knowledge.state.holds())
    }
    match holding(own).zip(holding(server)).map_or(Nearness::Remote, |(own, server)| own.nearness(server)) {
        Nearness::Remote => 1.0,
        Nearness::Region => policy.same_region,
        Nearness::Zone => policy.same_zone,
    }
}

/// What selection is to read, and when that has to be made anew because something ceases to hold.
pub fn snapshot(groups: &[Group], ledger: &Ledger, now: Instant) -> (Snapshot, Option<Instant>) {
    let mut ends = Vec::new();
    let factors = groups.iter().map(|Group { hostgroup, policy, members }| {
        let own = ledger.knowledge(&Subject::Own, policy, now);
        let factor = |subject: &Subject| factor(policy, &own, &ledger.knowledge(subject, policy, now));
        let subjects = members.iter().filter_map(|(_, subject)| subject.as_ref()).chain([&Subject::Own]);
        ends.extend(subjects.filter_map(|subject| ledger.expiry(subject, policy)).filter(|end| *end > now));
        let factors = members
            .iter()
            .map(|(endpoint, subject)| (endpoint.clone(), subject.as_ref().map_or(1.0, factor)));
        (*hostgroup, factors.collect())
    });
    (Snapshot::new(factors.collect::<Vec<_>>()), ends.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locality::provider::Category;

    const NEAR: &str = "near.cabc.eu-north-1.rds.amazonaws.com";
    const FAR: &str = "far.cabc.eu-north-1.rds.amazonaws.com";
    const OTHER: &str = "mysql.example.com";

    fn policy(same_zone: f64, refresh: u64, stale: u64) -> Policy {
        let (refresh, stale_ttl) = (Duration::from_secs(refresh), Duration::from_secs(stale));
        Policy { same_region: 2.0, same_zone, refresh, stale_ttl }
    }

    fn group(hostgroup: HostgroupId, policy: Policy, hosts: &[&str]) -> Group {
        let member = |host: &&str| (Endpoint::new(host, 3306), subject_of(host));
        Group { hostgroup, policy, members: hosts.iter().map(member).collect() }
    }

    fn answer_all(ledger: &mut Ledger, now: Instant) {
        for (ticket, subject) in ledger.due(now) {
            let zone = match &subject {
                Subject::Endpoint(host) if &**host == FAR => "eu-north-1b",
                _ => "eu-north-1a",
            };
            let region = "eu-north-1".to_owned();
            let place = Location { region, zone: zone.to_owned(), ..Location::default() };
            ledger.answer(ticket, Ok(place), now, 0.0);
        }
    }

    fn weights(snapshot: &Snapshot, hostgroup: HostgroupId) -> Vec<u64> {
        let mut view = snapshot.of(hostgroup);
        [NEAR, FAR, OTHER].map(|host| view.effective(&Endpoint::new(host, 3306), 10)).to_vec()
    }

    #[test]
    fn each_subject_is_asked_for_as_often_as_the_most_eager_policy_wants() {
        let groups = [
            group(1, policy(4.0, 300, 1_800), &[NEAR, OTHER]),
            group(2, policy(4.0, 60, 1_800), &[FAR]),
            group(3, policy(4.0, 30, 1_800), &[OTHER]),
        ];
        let wanted = wanted(&groups);
        assert_eq!(wanted[&Subject::Own].as_secs(), 60);
        assert_eq!(wanted[&Subject::Endpoint(NEAR.into())].as_secs(), 300);
        assert_eq!(wanted[&Subject::Endpoint(FAR.into())].as_secs(), 60);
        assert_eq!(wanted.len(), 3);
    }

    #[test]
    fn near_servers_weigh_more_until_what_is_known_expires() {
        let groups = [
            group(1, policy(4.0, 300, 1_800), &[NEAR, FAR, OTHER]),
            group(2, policy(8.0, 300, 600), &[NEAR, FAR, OTHER]),
        ];
        let (mut ledger, start) = (Ledger::default(), Instant::now());
        ledger.keep(&wanted(&groups));
        let (before, _) = snapshot(&groups, &ledger, start);
        assert_eq!(weights(&before, 1), [10, 10, 10], "pending");
        answer_all(&mut ledger, start);
        let (known, end) = snapshot(&groups, &ledger, start);
        assert_eq!((weights(&known, 1), weights(&known, 2)), (vec![40, 20, 10], vec![80, 20, 10]));
        assert_eq!(weights(&known, 3), [10, 10, 10], "a hostgroup without a policy");
        let end = end.unwrap();
        assert_eq!(end, start + Duration::from_secs(600));
        let (expired, next) = snapshot(&groups, &ledger, end);
        assert_eq!((weights(&expired, 1), weights(&expired, 2)), (vec![40, 20, 10], vec![10, 10, 10]));
        assert_eq!(next, Some(start + Duration::from_secs(1_800)));
    }

    #[test]
    fn all_is_neutral_while_the_own_place_is_unknown() {
        let groups = [group(1, policy(4.0, 300, 1_800), &[NEAR, FAR])];
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        ledger.keep(&wanted(&groups));
        for (ticket, subject) in ledger.due(now) {
            let place = Location { region: "eu-north-1".into(), ..Location::default() };
            let answer = if subject == Subject::Own { Err(Category::AccessDenied) } else { Ok(place) };
            ledger.answer(ticket, answer, now, 0.0);
        }
        assert_eq!(weights(&snapshot(&groups, &ledger, now).0, 1), [10, 10, 10]);
    }

    #[test]
    fn names_are_asked_for_in_one_form() {
        let subject = subject_of(NEAR);
        assert!(subject.is_some());
        assert_eq!(subject_of(&format!("{}.", NEAR.to_uppercase())), subject);
        assert_eq!(subject_of(OTHER), None);
    }
}
