//! Configuration that tests of this module share.

use admin::rows::{BgdHostgroupRow, ReplicationHostgroupRow, ServerRow, ServersConfig};

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

pub fn server(hostgroup_id: u32, hostname: &str) -> ServerRow {
    ServerRow::new(hostgroup_id, hostname, 3306)
}

/// A blue writer and a blue reader.
pub fn config() -> ServersConfig {
    let replication = ReplicationHostgroupRow {
        writer_hostgroup: 10,
        reader_hostgroup: 20,
        check_type: "read_only".into(),
        comment: String::new(),
    };
    ServersConfig {
        servers: vec![server(10, "db.x"), server(20, "r1.x")],
        replication: vec![replication],
        bgd: vec![row()],
    }
}
