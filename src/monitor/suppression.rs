//! Endpoints whose ordinary read_only monitoring is suspended, each with its owner.

use crate::hostgroups::{Endpoint, HostgroupId};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// Suppression keys by endpoint; an endpoint may have several owners.
#[derive(Debug, Default)]
pub struct Suppression {
    owners: Mutex<HashMap<Endpoint, HashSet<HostgroupId>>>,
}

impl Suppression {
    /// Adds keys for a deployment.
    pub fn add(&self, owner: HostgroupId, endpoints: impl IntoIterator<Item = Endpoint>) {
        let mut owners = self.owners.lock();
        for endpoint in endpoints {
            owners.entry(endpoint).or_default().insert(owner);
        }
    }
    /// Removes exactly the keys of a deployment.
    pub fn clear(&self, owner: HostgroupId) {
        self.owners.lock().retain(|_, set| {
            set.remove(&owner);
            !set.is_empty()
        });
    }
    /// Whether checks of an endpoint are suspended.
    pub fn is_suppressed(&self, endpoint: &Endpoint) -> bool {
        self.owners.lock().contains_key(endpoint)
    }
}
