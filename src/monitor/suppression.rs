//! Endpoints whose ordinary read_only monitoring is suspended, each with its owner (contract: "Read-Only Suppression").

use crate::hostgroups::{Endpoint, HostgroupId};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// Suppression keys by endpoint; an endpoint may have several owners.
#[derive(Debug, Default)]
pub struct Suppression {
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    owners: HashMap<Endpoint, HashSet<HostgroupId>>,
    /// Grows with each key that is added.
    added: u64,
}

/// Says since when a check is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission(u64);

impl Suppression {
    /// Adds keys for a deployment.
    pub fn add(&self, owner: HostgroupId, endpoints: impl IntoIterator<Item = Endpoint>) {
        let mut keys = self.keys.lock();
        for endpoint in endpoints {
            if keys.owners.entry(endpoint).or_default().insert(owner) {
                keys.added += 1;
            }
        }
    }
    /// Removes exactly the keys of a deployment.
    pub fn clear(&self, owner: HostgroupId) {
        self.keys.lock().owners.retain(|_, set| {
            set.remove(&owner);
            !set.is_empty()
        });
    }
    /// Lets a check begin; `None` while they are suspended.
    pub fn admit(&self, endpoint: &Endpoint) -> Option<Admission> {
        let keys = self.keys.lock();
        (!keys.owners.contains_key(endpoint)).then_some(Admission(keys.added))
    }
    /// Whether the result of an admitted check may be used. Not after any key was added meanwhile: a suspension that began and
    /// ended during the check has changed what the check saw. One result less is no loss, keys are added rarely.
    pub fn still_admits(&self, endpoint: &Endpoint, admission: Admission) -> bool {
        self.admit(endpoint) == Some(admission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_belong_to_their_owners() {
        let suppression = Suppression::default();
        let [a, b] = ["a", "b"].map(|host| Endpoint::new(host, 1));
        suppression.add(1, [a.clone(), b.clone()]);
        suppression.add(2, [a.clone()]);
        suppression.clear(1);
        assert!(suppression.admit(&a).is_none() && suppression.admit(&b).is_some());
        suppression.clear(2);
        assert!(suppression.admit(&a).is_some());
    }

    #[test]
    fn a_check_does_not_outlive_a_suspension() {
        let suppression = Suppression::default();
        let a = Endpoint::new("a", 1);
        let before = suppression.admit(&a).unwrap();
        assert!(suppression.still_admits(&a, before));
        suppression.add(1, [a.clone()]);
        assert!(!suppression.still_admits(&a, before));
        assert_eq!(suppression.admit(&a), None);
        suppression.clear(1);
        assert!(!suppression.still_admits(&a, before));
        let after = suppression.admit(&a).unwrap();
        suppression.clear(1);
        assert!(suppression.still_admits(&a, after));
    }
}
