//! The admin interface's way into the running daemon: configuration in, state out.

use crate::config::Config;
use crate::digest::statistics::Statistics;
use crate::dns::Dns;
use crate::hostgroups::{Hostgroups, rows};
use crate::listeners::Listeners;
use crate::monitor::Monitor;
use crate::monitor::kind::Kind;
use crate::pool::Backends;
use crate::ports;
use crate::process::Process;
use crate::rules::RuleSet;
use crate::session::{Sessions, processlist_rows, users_rows};
use admin::rows::QueryRuleRow;
use admin::{
    ConfigSet, LiveTable, ProcessCommand, Published, Runtime, SavedServers, Schema, Value, Variables, ddl,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::SqlError;
use wire::service::Address;

/// What LOAD publishes into, and what process commands act on.
pub struct DaemonRuntime {
    /// Snapshots of variables and users.
    pub config: Arc<Config>,
    /// Hostgroups.
    pub backends: Arc<Backends>,
    /// Where clients of each service connect.
    pub listeners: Arc<AllListeners>,
    /// Process commands.
    pub process: Process,
    /// How often servers were published.
    pub servers_version: AtomicU64,
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
        // A directory that cannot be written any more must not keep other variables from being loaded.
        if after == before { Ok(()) } else { ports::write(&self.ports_file, &after) }
    }

    /// Writes the addresses bound now to DATADIR/ports.
    pub fn write_ports(&self) -> Result<(), String> {
        ports::write(&self.ports_file, &self.services())
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
                self.servers_version.fetch_add(1, Ordering::Relaxed);
                ignored.iter().for_each(|line| log::warn!("LOAD MYSQL SERVERS: {line}"));
                Ok(Published { ignored })
            }
            ConfigSet::QueryRules(rules) => {
                let ignored = self.config.set_rules(rules);
                ignored.iter().for_each(|line| log::warn!("LOAD MYSQL QUERY RULES: {line}"));
                Ok(Published { ignored })
            }
            ConfigSet::Users(users) => {
                self.config.set_users(&users);
                Ok(Published::default())
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
        self.servers_version.load(Ordering::Relaxed)
    }
}

/// The live tables whose rows the daemon holds. `refused`: clients of the traffic port that were too many.
pub fn live_tables(
    backends: &Arc<Backends>,
    sessions: &Arc<Sessions>,
    config: &Arc<Config>,
    dns: &Arc<Dns>,
    monitor: Option<&Arc<Monitor>>,
    refused: Arc<AtomicU64>,
) -> Vec<LiveTable> {
    type HostgroupRows = fn(&crate::hostgroups::Hostgroups) -> Vec<Vec<admin::Value>>;
    let of_hostgroups = |name, ddl, rows: HostgroupRows| {
        let backends = Arc::clone(backends);
        LiveTable { name, schema: Schema::Main, ddl, rows: Arc::new(move || backends.read(rows)) }
    };
    let of_sessions = |name, ddl, rows: fn(&Sessions, &Config) -> Vec<Vec<admin::Value>>| {
        let (sessions, config) = (Arc::clone(sessions), Arc::clone(config));
        LiveTable { name, schema: Schema::Stats, ddl, rows: Arc::new(move || rows(&sessions, &config)) }
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
        of_sessions("stats_mysql_processlist", ddl::STATS_MYSQL_PROCESSLIST, |sessions, _| {
            processlist_rows(sessions.registry())
        }),
        of_sessions("stats_mysql_users", ddl::STATS_MYSQL_USERS, |sessions, config| {
            users_rows(sessions.registry(), config)
        }),
        of_sessions("stats_mysql_commands_counters", ddl::STATS_MYSQL_COMMANDS_COUNTERS, |sessions, _| {
            sessions.commands_rows()
        }),
        global_table(sessions, dns, monitor, refused),
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

fn global_table(
    sessions: &Arc<Sessions>,
    dns: &Arc<Dns>,
    monitor: Option<&Arc<Monitor>>,
    refused: Arc<AtomicU64>,
) -> LiveTable {
    let (sessions, dns, monitor) = (Arc::clone(sessions), Arc::clone(dns), monitor.cloned());
    let rows = move || {
        let mut rows = sessions.global_rows(refused.load(Ordering::Relaxed));
        let checks = monitor.iter().flat_map(|monitor| monitor.counters());
        let names = dns.counters().map(|(name, count)| (name.to_owned(), count));
        let counted = checks.chain(names);
        rows.extend(counted.map(|(name, count)| vec![Value::Text(name), Value::Text(count.to_string())]));
        rows
    };
    LiveTable {
        name: "stats_mysql_global",
        schema: Schema::Stats,
        ddl: ddl::STATS_MYSQL_GLOBAL,
        rows: Arc::new(rows),
    }
}

/// The live tables of query rules and of what is counted of statements.
pub fn query_tables(config: &Arc<Config>, statistics: &Arc<Statistics>) -> Vec<LiveTable> {
    type Rows = Vec<Vec<admin::Value>>;
    let of_rules = |name, schema, ddl, rows: fn(&RuleSet) -> Rows| {
        let config = Arc::clone(config);
        LiveTable { name, schema, ddl, rows: Arc::new(move || rows(&config.rules())) }
    };
    let of_digests = |name, ddl, rows: fn(&Statistics) -> Rows| {
        let statistics = Arc::clone(statistics);
        LiveTable { name, schema: Schema::Stats, ddl, rows: Arc::new(move || rows(&statistics)) }
    };
    vec![
        of_rules("runtime_mysql_query_rules", Schema::Main, ddl::RUNTIME_MYSQL_QUERY_RULES, |rules| {
            rules.rows().map(QueryRuleRow::values).collect()
        }),
        of_rules(
            "runtime_mysql_query_rules_fast_routing",
            Schema::Main,
            ddl::RUNTIME_MYSQL_QUERY_RULES_FAST_ROUTING,
            RuleSet::fast_routing_rows,
        ),
        of_rules("stats_mysql_query_rules", Schema::Stats, ddl::STATS_MYSQL_QUERY_RULES, RuleSet::hits),
        of_digests("stats_mysql_query_digest", ddl::STATS_MYSQL_QUERY_DIGEST, Statistics::rows),
        of_digests(
            "stats_mysql_query_digest_reset",
            ddl::STATS_MYSQL_QUERY_DIGEST_RESET,
            Statistics::take_rows,
        ),
    ]
}
