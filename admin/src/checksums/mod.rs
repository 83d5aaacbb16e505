//! Checksums of configuration: two that are equal have the same rows.
//!
//! The numbers are pointsman's own: they compare with those of other pointsmans, not with ProxySQL's.

mod sum;

use crate::live::{Registered, WeakRegistered};
use crate::rows::{ConfiguredStatus, ServersConfig};
use crate::tables::Group;
use crate::{LiveTable, Schema, Value, ddl};
use parking_lot::Mutex;
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
pub(crate) use sum::{Sum, of_table};

/// A part of what is in force, as runtime_ tables show it.
struct Part {
    name: &'static str,
    group: Group,
    tables: &'static [&'static str],
    /// What counts of a row.
    counts: fn(table: &str, row: Vec<Value>) -> Option<Vec<Value>>,
}

const PARTS: &[Part] = &[
    Part {
        name: "admin_variables",
        group: Group::Variables,
        tables: &["runtime_global_variables"],
        counts: |_, row| named(row, "admin-"),
    },
    Part {
        name: "mysql_query_rules",
        group: Group::QueryRules,
        tables: &["runtime_mysql_query_rules", "runtime_mysql_query_rules_fast_routing"],
        counts: |_, row| Some(row),
    },
    Part {
        name: "mysql_servers",
        group: Group::Servers,
        tables: &[
            "runtime_mysql_servers",
            "runtime_mysql_replication_hostgroups",
            "runtime_mysql_aws_rds_bgd_hostgroups",
            "runtime_mysql_hostgroup_attributes",
            "runtime_mysql_servers_ssl_params",
        ],
        counts: placed,
    },
    Part {
        name: "mysql_users",
        group: Group::Users,
        tables: &["runtime_mysql_users"],
        counts: |_, row| Some(row),
    },
    Part {
        name: "mysql_variables",
        group: Group::Variables,
        tables: &["runtime_global_variables"],
        counts: |_, row| named(row, "mysql-"),
    },
    Part {
        name: "proxysql_servers",
        group: Group::ProxysqlServers,
        tables: &["runtime_proxysql_servers"],
        counts: |_, row| Some(row),
    },
];

/// What mysql_servers and its hostgroups were loaded as, wherever servers have been placed since.
const SERVERS_AS_LOADED: &str = "mysql_servers_v2";

/// Where a machine listens is its own affair, and what version it has.
const OWN: &[&str] = &["mysql-interfaces", "admin-mysql_ifaces", "admin-version"];

fn named(row: Vec<Value>, prefix: &str) -> Option<Vec<Value>> {
    let own = |name: &str| name.starts_with(prefix) && !OWN.contains(&name);
    matches!(row.first(), Some(Value::Text(name)) if own(name)).then_some(row)
}

/// Shuns come and go without being configuration, and so does the status of a deployment; what discovery made, and servers that
/// are gone but for their connections, is none.
fn placed(table: &str, mut row: Vec<Value>) -> Option<Vec<Value>> {
    match table {
        "runtime_mysql_servers" => {
            if let Some(Value::Text(status)) = row.get_mut(4) {
                match status.as_str() {
                    "OFFLINE_HARD" => return None,
                    "OFFLINE_SOFT" => {}
                    _ => *status = ConfiguredStatus::Online.as_str().into(),
                }
            }
            Some(row)
        }
        "runtime_mysql_aws_rds_bgd_hostgroups" => {
            let made = row.get(9) == Some(&Value::Int(1));
            row.truncate(9);
            (!made).then_some(row)
        }
        _ => Some(row),
    }
}

#[derive(Clone, Default)]
struct Version {
    number: i64,
    /// When it began, in seconds since 1970.
    epoch: i64,
    checksum: String,
}

/// The versions of what is in force: each has a checksum, and a new one begins where that changes.
pub(crate) struct Checksums {
    live: WeakRegistered,
    versions: Mutex<BTreeMap<&'static str, Version>>,
}

impl Checksums {
    /// Over the live tables.
    pub fn new(live: &Registered) -> Arc<Self> {
        let names = PARTS.iter().map(|part| part.name).chain([SERVERS_AS_LOADED]);
        let versions = names.map(|name| (name, Version::default())).collect();
        Arc::new(Self { live: live.downgrade(), versions: Mutex::new(versions) })
    }

    /// Takes note of what a LOAD has put in force.
    pub fn loaded(&self, group: Group) {
        self.look(|part| part.group == group);
    }

    /// Takes note of the servers that a LOAD has put in force.
    pub fn servers(&self, config: &ServersConfig) {
        let mut sum = Sum::default();
        let mut add = |row: Vec<Value>| sum.row(row.iter().map(ValueRef::from));
        for row in &config.servers {
            match row.status {
                ConfiguredStatus::OfflineHard => {}
                ConfiguredStatus::OfflineSoft => add(row.values(row.status.as_str())),
                _ => add(row.values(ConfiguredStatus::Online.as_str())),
            }
        }
        config.replication.iter().for_each(|row| add(row.values()));
        config.bgd.iter().for_each(|row| add(row.values()));
        config.hostgroup_attributes.iter().for_each(|row| add(row.values()));
        config.ssl_params.iter().for_each(|row| add(row.values()));
        self.note(SERVERS_AS_LOADED, sum.show());
    }

    /// One checksum of all.
    pub fn global(&self) -> String {
        self.look(|_| true);
        let mut sum = Sum::default();
        for (name, version) in &*self.versions.lock() {
            sum.row([*name, &version.checksum].into_iter().map(ValueRef::from));
        }
        sum.show()
    }

    /// What servers are in force changes without LOAD, so that it is looked at when somebody asks.
    fn look(&self, which: impl Fn(&Part) -> bool) {
        let Some(live) = self.live.upgrade() else { return };
        for part in PARTS.iter().filter(|part| which(part)) {
            // Before all tables are there, nothing is in force.
            let tables = part.tables.iter().map(|name| live.find(name)).collect::<Option<Vec<_>>>();
            let mut sum = Sum::default();
            for table in tables.iter().flatten() {
                let rows = (table.rows)().into_iter().filter_map(|row| (part.counts)(table.name, row));
                rows.for_each(|row| sum.row(row.iter().map(ValueRef::from)));
            }
            if tables.is_some() {
                self.note(part.name, sum.show());
            }
        }
    }

    fn note(&self, name: &'static str, checksum: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut versions = self.versions.lock();
        let version = versions.entry(name).or_default();
        if version.checksum != checksum {
            let epoch = i64::try_from(now).unwrap_or(i64::MAX);
            *version = Version { number: version.number + 1, epoch, checksum };
        }
    }

    /// runtime_checksums_values
    pub fn table(self: &Arc<Self>) -> LiveTable {
        let checksums = Arc::clone(self);
        let rows = move || {
            checksums.look(|_| true);
            let versions = checksums.versions.lock();
            let row = |(name, version): (&&str, &Version)| {
                vec![
                    Value::from(*name),
                    version.number.into(),
                    version.epoch.into(),
                    version.checksum.as_str().into(),
                ]
            };
            versions.iter().map(row).collect()
        };
        LiveTable {
            name: "runtime_checksums_values",
            schema: Schema::Main,
            ddl: ddl::RUNTIME_CHECKSUMS_VALUES,
            rows: Arc::new(rows),
        }
    }
}
