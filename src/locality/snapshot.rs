//! What selection reads: a factor for each server of the hostgroups that have a policy. Never changed once it is published.

use crate::hostgroups::{Endpoint, HostgroupId};
use std::cell::Cell;
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
    /// The factors of one hostgroup.
    pub fn of(&self, hostgroup: HostgroupId) -> Factors<'_> {
        let factors = self.groups.get(&hostgroup).map(Vec::as_slice).unwrap_or_default();
        Factors { factors, next: Cell::new(0) }
    }
}

/// One hostgroup's factors. Cheapest where servers are asked for in their order. By default all are neutral.
#[derive(Default)]
pub struct Factors<'a> {
    factors: &'a [(Endpoint, f64)],
    next: Cell<usize>,
}

impl Factors<'_> {
    /// A server's weight for this choice: the configured one times its factor, truncated. 0 stays 0.
    pub fn effective(&self, endpoint: &Endpoint, weight: u32) -> u64 {
        if self.factors.is_empty() {
            return u64::from(weight);
        }
        // At most 10^7 times 10.0: exact in range. Truncation is what the contract asks for.
        (f64::from(weight) * self.factor(endpoint)) as u64
    }
    fn factor(&self, endpoint: &Endpoint) -> f64 {
        let next = self.next.get();
        let place = match self.factors.get(next) {
            Some((at, _)) if at == endpoint => Some(next),
            _ => self.factors.binary_search_by(|(at, _)| at.cmp(endpoint)).ok(),
        };
        let Some(place) = place else { return 1.0 };
        self.next.set(if place + 1 < self.factors.len() { place + 1 } else { 0 });
        self.factors.get(place).map_or(1.0, |(_, factor)| *factor)
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
    fn any_order_of_questions_finds_every_server() {
        let hosts = ["c", "a", "d", "b"];
        let factors = hosts.iter().zip([3.0, 1.0, 4.0, 2.0]).map(|(host, f)| (server(host), f));
        let snapshot = Snapshot::new([(7, factors.collect())]);
        let view = snapshot.of(7);
        for host in ["a", "b", "c", "d", "a", "c", "x", "b", "b", "d", "a"] {
            let expected = hosts.iter().position(|at| *at == host).map_or(1, |at| [3, 1, 4, 2][at]);
            assert_eq!(view.effective(&server(host), 1), expected, "{host}");
        }
    }
}
