//! Typed rows of the configuration tables.

pub use crate::attributes::{HostgroupAttributesRow, ServerSslParamsRow, ServersDefaults};
pub use crate::proxysql_servers::ProxysqlServerRow;
pub use crate::query_rules::{FastRoutingRow, QueryRuleRow, QueryRulesConfig};

use crate::Value;

/// Whether the text of a column `attributes` is what it must be to say anything.
pub fn is_json_object(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(serde_json::Value::Object(_)))
}

/// A row of mysql_servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    /// hostgroup_id
    pub hostgroup_id: u32,
    /// hostname, trimmed
    pub hostname: String,
    /// port
    pub port: u16,
    /// gtid_port
    pub gtid_port: u16,
    /// status
    pub status: ConfiguredStatus,
    /// weight, 0 to 10,000,000
    pub weight: u32,
    /// compression
    pub compression: bool,
    /// max_connections
    pub max_connections: u32,
    /// max_replication_lag, seconds
    pub max_replication_lag: u32,
    /// use_ssl
    pub use_ssl: bool,
    /// max_latency_ms
    pub max_latency_ms: u32,
    /// comment
    pub comment: String,
}

impl ServerRow {
    /// A row whose other columns have the defaults of mysql_servers.
    pub fn new(hostgroup_id: u32, hostname: impl Into<String>, port: u16) -> Self {
        Self {
            hostgroup_id,
            hostname: hostname.into(),
            port,
            gtid_port: 0,
            status: ConfiguredStatus::Online,
            weight: 1,
            compression: false,
            max_connections: 1000,
            max_replication_lag: 0,
            use_ssl: false,
            max_latency_ms: 0,
            comment: String::new(),
        }
    }

    /// The row as mysql_servers holds it and runtime_mysql_servers shows it.
    pub fn values(&self, status: &str) -> Vec<Value> {
        vec![
            self.hostgroup_id.into(),
            self.hostname.as_str().into(),
            self.port.into(),
            self.gtid_port.into(),
            status.into(),
            self.weight.into(),
            self.compression.into(),
            self.max_connections.into(),
            self.max_replication_lag.into(),
            self.use_ssl.into(),
            self.max_latency_ms.into(),
            self.comment.as_str().into(),
        ]
    }
}

/// Statuses that mysql_servers may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfiguredStatus {
    /// ONLINE
    Online,
    /// SHUNNED
    Shunned,
    /// OFFLINE_SOFT
    OfflineSoft,
    /// OFFLINE_HARD
    OfflineHard,
}

impl ConfiguredStatus {
    /// The text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Shunned => "SHUNNED",
            Self::OfflineSoft => "OFFLINE_SOFT",
            Self::OfflineHard => "OFFLINE_HARD",
        }
    }
}

/// A row of mysql_replication_hostgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationHostgroupRow {
    /// writer_hostgroup
    pub writer_hostgroup: u32,
    /// reader_hostgroup
    pub reader_hostgroup: u32,
    /// check_type, lower case
    pub check_type: String,
    /// comment
    pub comment: String,
}

impl ReplicationHostgroupRow {
    /// The row as mysql_replication_hostgroups holds it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.writer_hostgroup.into(),
            self.reader_hostgroup.into(),
            self.check_type.as_str().into(),
            self.comment.as_str().into(),
        ]
    }
}

/// A row of mysql_aws_rds_bgd_hostgroups. Green hostgroups are NULL only in rows that discovery makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BgdHostgroupRow {
    /// writer_hostgroup, the deployment's key
    pub writer_hostgroup: u32,
    /// reader_hostgroup
    pub reader_hostgroup: u32,
    /// green_writer_hostgroup
    pub green_writer_hostgroup: Option<u32>,
    /// green_reader_hostgroup
    pub green_reader_hostgroup: Option<u32>,
    /// active
    pub active: bool,
    /// writer_is_also_reader
    pub writer_is_also_reader: bool,
    /// check_interval_ms, 100 to 600,000
    pub check_interval_ms: u32,
    /// check_timeout_ms, 80 to 3,000
    pub check_timeout_ms: u32,
    /// comment
    pub comment: String,
}

impl BgdHostgroupRow {
    /// The row as mysql_aws_rds_bgd_hostgroups holds it.
    pub fn values(&self) -> Vec<Value> {
        vec![
            self.writer_hostgroup.into(),
            self.reader_hostgroup.into(),
            self.green_writer_hostgroup.into(),
            self.green_reader_hostgroup.into(),
            self.active.into(),
            self.writer_is_also_reader.into(),
            self.check_interval_ms.into(),
            self.check_timeout_ms.into(),
            self.comment.as_str().into(),
        ]
    }
}

/// Everything LOAD MYSQL SERVERS commits at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServersConfig {
    /// mysql_servers
    pub servers: Vec<ServerRow>,
    /// mysql_replication_hostgroups
    pub replication: Vec<ReplicationHostgroupRow>,
    /// mysql_aws_rds_bgd_hostgroups
    pub bgd: Vec<BgdHostgroupRow>,
    /// mysql_hostgroup_attributes
    pub hostgroup_attributes: Vec<HostgroupAttributesRow>,
    /// mysql_servers_ssl_params
    pub ssl_params: Vec<ServerSslParamsRow>,
}

/// A row of mysql_users.
#[derive(Clone, PartialEq, Eq)]
pub struct UserRow {
    /// username
    pub username: String,
    /// password as stored: clear, `*HEX` or another form
    pub password: String,
    /// active
    pub active: bool,
    /// use_ssl
    pub use_ssl: bool,
    /// default_hostgroup
    pub default_hostgroup: u32,
    /// default_schema
    pub default_schema: Option<String>,
    /// schema_locked
    pub schema_locked: bool,
    /// transaction_persistent
    pub transaction_persistent: bool,
    /// fast_forward
    pub fast_forward: bool,
    /// backend
    pub backend: bool,
    /// frontend
    pub frontend: bool,
    /// max_connections
    pub max_connections: u32,
    /// attributes
    pub attributes: String,
    /// comment
    pub comment: String,
}
impl UserRow {
    /// A row whose other columns have the defaults of mysql_users.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self {
            username: username.into(),
            password: password.into(),
            active: true,
            use_ssl: false,
            default_hostgroup: 0,
            default_schema: None,
            schema_locked: false,
            transaction_persistent: true,
            fast_forward: false,
            backend: true,
            frontend: true,
            max_connections: 10_000,
            attributes: String::new(),
            comment: String::new(),
        }
    }
}

impl std::fmt::Debug for UserRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserRow").field("username", &self.username).finish_non_exhaustive()
    }
}
