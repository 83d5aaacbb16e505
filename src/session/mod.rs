//! One client: login, then statement by statement - route, lease, forward, release.

use crate::config::Config;
use crate::pool::Backends;
use std::sync::Arc;
use wire::login::ServerOptions;
use wire::service::Accepted;

/// What every session shares.
pub struct Sessions {
    _config: Arc<Config>,
    _backends: Arc<Backends>,
}

impl Sessions {
    /// Shared state of the traffic port.
    pub fn new(_config: Arc<Config>, _backends: Arc<Backends>) -> Self {
        unimplemented!()
    }
    /// Serves one client to its end, on its own thread.
    pub fn serve(&self, _accepted: Accepted, _options: &ServerOptions, _accounts: &dyn wire::auth::Accounts) {
        unimplemented!()
    }
}
