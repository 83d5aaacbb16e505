//! Connections of the monitor: opened as the monitor user, cached by address, port and TLS, never used for traffic.

use crate::config::Config;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::WireError;
use wire::backend::TextResult;

/// The cache.
pub struct Probes {}

impl Probes {
    /// An empty cache.
    pub fn new(_config: Arc<Config>) -> Self {
        unimplemented!()
    }
    /// Runs one statement: takes a cached connection or opens one (mysql-monitor_connect_timeout), then waits at most `timeout` for the answer. The connection is
    /// kept if the statement gave a result or an SQL error (ERR 1146 included), destroyed otherwise. `server_name` is for TLS alone.
    pub fn query(
        &self,
        _address: SocketAddr,
        _tls: bool,
        _server_name: &str,
        _sql: &str,
        _timeout: Duration,
    ) -> Result<TextResult, WireError> {
        unimplemented!()
    }
    /// Closes cached connections to an address, whatever their TLS; ones in use now are closed when their statement ends.
    pub fn purge(&self, _address: SocketAddr) {
        unimplemented!()
    }
    /// Closes everything.
    pub fn close(&self) {
        unimplemented!()
    }
}
