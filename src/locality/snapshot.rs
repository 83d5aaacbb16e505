//! What selection reads: a factor for each server of the hostgroups that have a policy. Never changed once it is published.

use crate::hostgroups::{Endpoint, HostgroupId};
use std::collections::HashMap;

/// Factors of servers. Empty: all are neutral.
#[derive(Debug, Default, PartialEq)]
pub struct Snapshot {
    /// All servers of a hostgroup in their order there, so that a walk through both finds each at once.
    groups: HashMap<HostgroupId, Vec<(Endpoint, f64)>, foldhash::fast::FixedState>,
}

impl Snapshot {
    /// From each hostgroup's servers.
    pub fn new(groups: impl IntoIterator<Item = (HostgroupId, Vec<(Endpoint, f64)>)>) -> Self {
        let sorted = |(id, mut factors): (HostgroupId, Vec<(Endpoint, f64)>)| {
            factors.sort_by(|(one, _), (other, _)| one.cmp(other));
            (id, factors)
        };
        Self { groups: groups.into_iter().map(sorted).collect() }
    }
    /// Whether it says the same of the same endpoints. Equal names of another LOAD are others: they take longer to compare.
    pub fn is(&self, other: &Self) -> bool {
        let same = |((one, factor), (another, other)): (&(Endpoint, f64), &(Endpoint, f64))| {
            one.is_clone_of(another) && factor == other
        };
        let alike = |one: &[(Endpoint, f64)], other: &[(Endpoint, f64)]| {
            one.len() == other.len() && one.iter().zip(other).all(same)
        };
        self.groups.len() == other.groups.len()
            && self.groups.iter().all(|(id, of)| other.groups.get(id).is_some_and(|others| alike(of, others)))
    }
    /// The factors of one hostgroup.
    pub fn of(&self, hostgroup: HostgroupId) -> Factors<'_> {
        let factors = self.groups.get(&hostgroup).map(Vec::as_slice).unwrap_or_default();
        Factors { factors, next: 0 }
    }
}

/// One hostgroup's factors. Cheapest where servers are asked for in their order. By default all are neutral.
#[derive(Debug, Default, Clone, Copy)]
pub struct Factors<'a> {
    factors: &'a [(Endpoint, f64)],
    /// The place of the server that is asked for next in that order.
    next: usize,
}

impl Factors<'_> {
    /// A server's weight for this choice: the configured one times its factor, truncated. 0 stays 0.
    #[inline]
    pub fn effective(&mut self, endpoint: &Endpoint, weight: u32) -> u64 {
        let factor = match self.factors.get(self.next) {
            None if self.factors.is_empty() => return u64::from(weight),
            // Nearly always, as servers are in the same order.
            Some((at, factor)) if at.is_clone_of(endpoint) => *factor,
            _ => {
                let Some(place) = find(self.factors, self.next, endpoint) else { return u64::from(weight) };
                self.next = place;
                self.factors.get(place).map_or(1.0, |(_, factor)| *factor)
            }
        };
        self.next += 1;
        // Truncation is what the contract asks for; no weight is above 10^7 and no factor above 10.0.
        u64::from((f64::from(weight) * factor) as u32)
    }
}

/// The place of an endpoint, which is probably this one.
#[cold]
fn find(factors: &[(Endpoint, f64)], probably: usize, endpoint: &Endpoint) -> Option<usize> {
    match factors.get(probably) {
        Some((at, _)) if at == endpoint => Some(probably),
        _ => factors.binary_search_by(|(at, _)| at.cmp(endpoint)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str) -> Endpoint {
        Endpoint::new(host, 3306)
    }

    #[test]
    fn weights_are_multiplied_and_truncated() {
        let factors = [("a", 2.0), ("b", 4.0), ("c", 1.0), ("d", 1.5)].map(|(host, f)| (server(host), f));
        let snapshot = Snapshot::new([(7, factors.to_vec())]);
        let of = |host: &str, weight| snapshot.of(7).effective(&server(host), weight);
        assert_eq!([of("a", 3), of("b", 3), of("c", 3), of("d", 3)], [6, 12, 3, 4]);
        assert_eq!([of("b", 0), of("d", 1), of("b", 10_000_000)], [0, 1, 40_000_000]);
    }

    #[test]
    fn servers_and_hostgroups_without_a_factor_are_neutral() {
        let snapshot = Snapshot::new([(7, vec![(server("a"), 3.0)])]);
        assert_eq!(snapshot.of(7).effective(&server("b"), 5), 5);
        assert_eq!(snapshot.of(7).effective(&Endpoint::new("a", 3307), 5), 5);
        assert_eq!(snapshot.of(8).effective(&server("a"), 5), 5);
        assert_eq!(Snapshot::default().of(7).effective(&server("a"), u32::MAX), u64::from(u32::MAX));
    }

    #[test]
    fn the_same_is_said_of_the_same_endpoints_alone() {
        let (a, b) = (server("a"), server("b"));
        let of = |endpoint: &Endpoint, factor| Snapshot::new([(7, vec![(endpoint.clone(), factor)])]);
        assert!(of(&a, 2.0).is(&of(&a, 2.0)) && Snapshot::default().is(&Snapshot::default()));
        let other_port = Endpoint { port: 1, ..a.clone() };
        for other in
            [of(&a, 3.0), of(&b, 2.0), of(&server("a"), 2.0), of(&other_port, 2.0), Snapshot::default()]
        {
            assert!(!of(&a, 2.0).is(&other) && !other.is(&of(&a, 2.0)), "{other:?}");
        }
        let two = |one, other| Snapshot::new([(one, vec![(a.clone(), 2.0)]), (other, vec![])]);
        assert!(two(7, 8).is(&two(7, 8)) && !two(7, 8).is(&two(7, 9)));
        assert!(!of(&a, 2.0).is(&Snapshot::new([(7, vec![(a.clone(), 2.0), (b, 2.0)])])));
    }

    #[test]
    fn any_order_of_questions_finds_every_server() {
        let hosts = ["c", "a", "d", "b"];
        let factors = hosts.iter().zip([3.0, 1.0, 4.0, 2.0]).map(|(host, f)| (server(host), f));
        let snapshot = Snapshot::new([(7, factors.collect())]);
        let mut view = snapshot.of(7);
        for host in ["a", "b", "c", "d", "a", "c", "x", "b", "b", "d", "a"] {
            let expected = hosts.iter().position(|at| *at == host).map_or(1, |at| [3, 1, 4, 2][at]);
            assert_eq!(view.effective(&server(host), 1), expected, "{host}");
        }
    }
}
