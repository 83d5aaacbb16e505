//! Configuration that tests of this module share.

use crate::testing::{pair, server};
use admin::rows::{BgdHostgroupRow, ServersConfig};

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
