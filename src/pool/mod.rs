//! Backend connections: who holds them, who waits for them, and how they are retired.
//!
//! One lock holds placement and pools together, so that choosing a server and taking its connection is one step.
//! No IO happens under it: connections are opened, reset and closed outside.

use crate::config::Config;
use crate::dns::Dns;
use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups};
use parking_lot::Mutex;
use std::sync::Arc;

/// Hostgroups and pools, shared by sessions, monitor, blue/green workers and admin.
pub struct Backends {
    _inner: Mutex<Inner>,
}

struct Inner {
    _hostgroups: Hostgroups,
}

impl Backends {
    /// Empty hostgroups. New connections resolve names through `dns` and take limits from `config`.
    pub fn new(_config: Arc<Config>, _dns: Arc<Dns>) -> Self {
        unimplemented!()
    }
    /// Reads placement under the lock.
    pub fn read<R>(&self, _f: impl FnOnce(&Hostgroups) -> R) -> R {
        unimplemented!()
    }
    /// Changes placement under the lock, then: drops free connections of servers that are not usable any more, removes
    /// OFFLINE_HARD servers without connections, wakes every waiting session.
    pub fn update<R>(&self, _f: impl FnOnce(&mut Hostgroups) -> R) -> R {
        unimplemented!()
    }
    /// Drains an endpoint in every hostgroup: free connections are closed, used ones are retired (destroyed when released), and connections
    /// being opened now will be retired at birth.
    pub fn drain(&self, _endpoint: &Endpoint) {
        unimplemented!()
    }
    /// Drains an endpoint in one hostgroup alone.
    pub fn drain_in(&self, _hostgroup: HostgroupId, _endpoint: &Endpoint) {
        unimplemented!()
    }
    /// Rows of stats_mysql_connection_pool.
    pub fn connection_pool_rows(&self) -> Vec<Vec<admin::Value>> {
        unimplemented!()
    }
    /// Wakes every waiting session (placement, pin or shutdown changed).
    pub fn wake(&self) {
        unimplemented!()
    }
    /// Closes everything: free connections are quit, used ones are cut.
    pub fn close(&self) {
        unimplemented!()
    }
}
