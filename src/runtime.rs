//! The admin interface's way into the running daemon: configuration in, state out.

use crate::config::Config;
use crate::hostgroups::{Hostgroups, rows};
use crate::listeners::Listeners;
use crate::locality::Locality;
use crate::monitor::Monitor;
use crate::monitor::kind::Kind;
use crate::pool::Backends;
use crate::ports;
use crate::process::Process;
use crate::rules::RuleSet;
use crate::stats::history::save_digests;
use crate::stats::{self, Sources};
use admin::history::History;
use admin::rows::{QueryRuleRow, UserRow, is_json_object};
use admin::{
    ConfigSet, LiveTable, ProcessCommand, Published, Runtime, SavedServers, Schema, Value, Variables, ddl,
    failed,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wire::SqlError;
use wire::service::Address;

/// What LOAD publishes into, and what process commands act on.
pub struct DaemonRuntime {
    /// Snapshots of variables and users.
    pub config: Arc<Config>,
    /// Hostgroups.
    pub backends: Arc<Backends>,
    /// Which servers are near.
    pub locality: Arc<Locality>,
    /// Where clients of each service connect.
    pub listeners: Arc<AllListeners>,
    /// Process commands.
    pub process: Process,
    /// The parts that count.
    pub sources: Sources,
    /// Where figures are kept over time, if it could be opened.
    pub history: Option<Arc<History>>,
}

/// The daemon's three services; the SQLite3 server's is absent without `--sqlite3-server`.
pub struct AllListeners {
    /// admin-mysql_ifaces
    pub admin: Listeners,
    /// mysql-interfaces
    pub traffic: Listeners,
    /// sqliteserver-mysql_ifaces
    pub sqlite: Option<Listeners>,
    /// DATADIR/ports
    pub ports_file: PathBuf,
}

impl AllListeners {
    /// Binds what the variables ask for and writes the addresses really bound to DATADIR/ports.
    pub fn apply(&self, variables: &Variables) -> Result<(), String> {
        let before = self.services();
        self.admin.apply(&variables.admin_interfaces).map_err(|error| error.to_string())?;
        self.traffic.apply(&variables.mysql_interfaces).map_err(|error| error.to_string())?;
        if let Some(sqlite) = &self.sqlite {
            sqlite.apply(&variables.sqliteserver_interfaces).map_err(|error| error.to_string())?;
        }
        let after = self.services();
        if after != before {
            self.write_ports();
        }
        Ok(())
    }

    /// Writes the addresses bound now to DATADIR/ports. Clients are served all the same where that fails.
    pub fn write_ports(&self) {
        if let Err(error) = ports::write(&self.ports_file, &self.services()) {
            log::error!("{error}");
        }
    }

    fn services(&self) -> [(&'static str, Vec<Address>); 3] {
        [
            ("admin", self.admin.addresses()),
            ("mysql", self.traffic.addresses()),
            ("sqliteserver", self.sqlite.as_ref().map(Listeners::addresses).unwrap_or_default()),
        ]
    }
}

impl Runtime for DaemonRuntime {
    fn publish(&self, set: ConfigSet) -> Result<Published, SqlError> {
        match set {
            ConfigSet::Servers(servers) => {
                self.config.set_ssl_params(&servers.ssl_params);
                let ignored = self.backends.update(|hostgroups| hostgroups.load(&servers));
                self.locality.look();
                self.sources.servers_version.fetch_add(1, Ordering::Relaxed);
                ignored.iter().for_each(|line| log::warn!("LOAD MYSQL SERVERS: {line}"));
                Ok(Published { ignored })
            }
            ConfigSet::QueryRules(rules) => {
                let ignored = self.config.set_rules(rules);
                ignored.iter().for_each(|line| log::warn!("LOAD MYSQL QUERY RULES: {line}"));
                Ok(Published { ignored })
            }
            ConfigSet::Users(users) => {
                let is_good = |row: &&UserRow| row.attributes.is_empty() || is_json_object(&row.attributes);
                let ignored = users.iter().filter(|row| row.active && !is_good(row)).map(|row| {
                    let (user, backend) = (row.username.escape_debug(), u8::from(row.backend));
                    format!("mysql_users: attributes of '{user}' (backend={backend}): it is no JSON object")
                });
                let ignored: Vec<String> = ignored.collect();
                ignored.iter().for_each(|line| log::warn!("LOAD MYSQL USERS: {line}"));
                self.config.set_users(&users);
                Ok(Published { ignored })
            }
            // They are kept and shown: there is nothing that peers would be asked.
            ConfigSet::ProxysqlServers(_) => Ok(Published::default()),
            ConfigSet::Variables(variables) => {
                if let Err(reason) = self.listeners.apply(&variables) {
                    // What was bound before the refused address is given back. These addresses were in use until now,
                    // so a second refusal has nothing to add to the first.
                    let _ = self.listeners.apply(&self.config.variables());
                    return Err(SqlError::new(1231, "42000", reason));
                }
                self.locality.enable(variables.aws_locality_awareness);
                self.config.set_variables(*variables);
                Ok(Published::default())
            }
        }
    }

    fn command(&self, command: ProcessCommand) -> Result<(), SqlError> {
        self.process.command(command)
    }

    fn servers_to_save(&self) -> SavedServers {
        self.backends.read(Hostgroups::to_save)
    }

    fn servers_version(&self) -> u64 {
        self.sources.servers_version.load(Ordering::Relaxed)
    }

    fn save_digests(&self) -> Result<u64, SqlError> {
        let history = self.history.as_ref().ok_or_else(|| {
            failed("there is no stats_history: its file could not be opened at the start, as the log says")
        })?;
        save_digests(history, &self.sources.statistics).map_err(|error| {
            failed(format!("nothing was saved, digests are counted on: stats_history: {error}"))
        })
    }

    fn metrics(&self) -> String {
        stats::metrics(&self.sources)
    }
}

/// Tables of what is in force.
pub fn runtime_tables(backends: &Arc<Backends>, config: &Arc<Config>) -> Vec<LiveTable> {
    let of_hostgroups = |name, ddl, rows: fn(&Hostgroups) -> Vec<Vec<Value>>| {
        let backends = Arc::clone(backends);
        LiveTable { name, schema: Schema::Main, ddl, rows: Arc::new(move || backends.read(rows)) }
    };
    let of_rules = |name, ddl, rows: fn(&RuleSet) -> Vec<Vec<Value>>| {
        let config = Arc::clone(config);
        LiveTable { name, schema: Schema::Main, ddl, rows: Arc::new(move || rows(&config.rules())) }
    };
    vec![
        of_hostgroups("runtime_mysql_servers", ddl::RUNTIME_MYSQL_SERVERS, rows::runtime_mysql_servers_rows),
        of_hostgroups(
            "runtime_mysql_replication_hostgroups",
            ddl::RUNTIME_MYSQL_REPLICATION_HOSTGROUPS,
            rows::runtime_mysql_replication_hostgroups_rows,
        ),
        of_hostgroups(
            "runtime_mysql_aws_rds_bgd_hostgroups",
            ddl::RUNTIME_MYSQL_AWS_RDS_BGD_HOSTGROUPS,
            rows::runtime_mysql_aws_rds_bgd_hostgroups_rows,
        ),
        of_hostgroups(
            "runtime_mysql_hostgroup_attributes",
            ddl::RUNTIME_MYSQL_HOSTGROUP_ATTRIBUTES,
            rows::runtime_mysql_hostgroup_attributes_rows,
        ),
        of_hostgroups(
            "runtime_mysql_servers_ssl_params",
            ddl::RUNTIME_MYSQL_SERVERS_SSL_PARAMS,
            rows::runtime_mysql_servers_ssl_params_rows,
        ),
        of_rules("runtime_mysql_query_rules", ddl::RUNTIME_MYSQL_QUERY_RULES, |rules| {
            rules.rows().map(QueryRuleRow::values).collect()
        }),
        of_rules(
            "runtime_mysql_query_rules_fast_routing",
            ddl::RUNTIME_MYSQL_QUERY_RULES_FAST_ROUTING,
            RuleSet::fast_routing_rows,
        ),
    ]
}

/// The tables that log checks, and how many there were.
pub fn monitor_tables(monitor: Option<&Arc<Monitor>>) -> Vec<LiveTable> {
    let log = |name, ddl, kind| {
        let monitor = monitor.cloned();
        let rows = move || monitor.as_ref().map(|monitor| monitor.log_rows(kind)).unwrap_or_default();
        LiveTable { name, schema: Schema::Monitor, ddl, rows: Arc::new(rows) }
    };
    vec![
        log("mysql_server_connect_log", ddl::MYSQL_SERVER_CONNECT_LOG, Kind::Connect),
        log("mysql_server_ping_log", ddl::MYSQL_SERVER_PING_LOG, Kind::Ping),
        log("mysql_server_read_only_log", ddl::MYSQL_SERVER_READ_ONLY_LOG, Kind::ReadOnly),
        log("mysql_server_replication_lag_log", ddl::MYSQL_SERVER_REPLICATION_LAG_LOG, Kind::ReplicationLag),
    ]
}
