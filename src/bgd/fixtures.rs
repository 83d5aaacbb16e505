//! Configuration that tests of this module share.

use super::Effects;
use crate::config::Config;
use crate::dns::Dns;
use crate::monitor::probe::Probes;
use crate::pool::Backends;
use crate::testing::{pair, server};
use admin::Variables;
use admin::rows::{BgdHostgroupRow, ServersConfig};
use std::path::PathBuf;
use std::sync::Arc;

/// Those of a daemon that has loaded nothing yet, and looks names up in `hosts`.
pub fn effects(variables: Variables, hosts: Option<PathBuf>) -> Effects {
    let config = Arc::new(Config::new(variables));
    let dns = Dns::new(config.clone(), hosts);
    Effects {
        backends: Arc::new(Backends::new(config.clone(), dns.clone())),
        probes: Arc::new(Probes::new(config.clone())),
        suppression: Arc::default(),
        health: Arc::default(),
        config,
        dns,
    }
}

pub fn row() -> BgdHostgroupRow {
    BgdHostgroupRow {
        writer_hostgroup: 10,
        reader_hostgroup: 20,
        green_writer_hostgroup: Some(30),
        green_reader_hostgroup: Some(40),
        active: true,
        writer_is_also_reader: false,
        check_interval_ms: 1000,
        check_timeout_ms: 800,
        comment: String::new(),
    }
}

/// A blue writer and a blue reader.
pub fn config() -> ServersConfig {
    ServersConfig {
        servers: vec![server(10, "db.x"), server(20, "r1.x")],
        replication: vec![pair(10, 20)],
        bgd: vec![row()],
        ..ServersConfig::default()
    }
}
