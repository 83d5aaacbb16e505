//! What is shown of locality.

use super::groups::{self, Group};
use super::ledger::{Knowledge, Ledger, State};
use super::provider::{Category, Location, Subject};
use crate::hostgroups::{Endpoint, HostgroupId};
use std::time::{Duration, Instant};

/// One server of a hostgroup with a policy, or the proxy itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The server; `None` for the proxy.
    pub server: Option<(HostgroupId, Endpoint)>,
    /// How good what is known is.
    pub state: State,
    /// Where it was found last.
    pub location: Location,
    /// How long ago.
    pub age: Option<Duration>,
    /// What its weight is multiplied by; `None` for the proxy.
    pub multiplier: Option<f64>,
    /// Why the last question has got no answer.
    pub error: Option<Category>,
}

/// The proxy, then each server whose name is an endpoint of AWS's.
pub fn of(groups: &[Group], enabled: bool, ledger: &Ledger, now: Instant) -> Vec<Report> {
    let report = |server, knowledge: Knowledge<'_>, multiplier| Report {
        server,
        state: if enabled { knowledge.state } else { State::Disabled },
        location: knowledge.location.cloned().unwrap_or_default(),
        age: knowledge.age,
        multiplier,
        error: knowledge.error,
    };
    // The own place holds as long as the most patient policy says.
    let patient = groups.iter().map(|group| group.policy).max_by_key(|policy| policy.stale_ttl);
    let own = patient.map(|policy| report(None, ledger.knowledge(&Subject::Own, &policy, now), None));
    let mut reports = Vec::from_iter(own);
    for Group { hostgroup, policy, members } in groups {
        let own = ledger.knowledge(&Subject::Own, policy, now);
        for (endpoint, subject) in members {
            let Some(subject) = subject else { continue };
            let knowledge = ledger.knowledge(subject, policy, now);
            let multiplier = groups::factor(policy, &own, &knowledge);
            reports.push(report(Some((*hostgroup, endpoint.clone())), knowledge, Some(multiplier)));
        }
    }
    reports
}
