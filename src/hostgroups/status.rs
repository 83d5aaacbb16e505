//! Status of servers and of deployments, with the text forms ProxySQL prints.

use admin::rows::ConfiguredStatus;
use std::fmt;

/// A server's status at run time. Text forms as ProxySQL prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// ONLINE
    Online,
    /// SHUNNED: by configuration or after connect failures
    Shunned,
    /// OFFLINE_SOFT
    OfflineSoft,
    /// OFFLINE_HARD
    OfflineHard,
    /// SHUNNED_REPLICATION_LAG: further behind its source than its max_replication_lag
    ShunnedReplicationLag,
    /// SHUNNED_AWS_BGD: an unmapped blue reader during a switchover; never recovers by itself
    ShunnedAwsBgd,
}

impl ServerStatus {
    /// The text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Shunned => "SHUNNED",
            Self::OfflineSoft => "OFFLINE_SOFT",
            Self::OfflineHard => "OFFLINE_HARD",
            Self::ShunnedReplicationLag => "SHUNNED_REPLICATION_LAG",
            Self::ShunnedAwsBgd => "SHUNNED_AWS_BGD",
        }
    }
    /// What runtime_mysql_servers shows, whose statuses a lagging server's is not among.
    pub fn as_runtime_str(self) -> &'static str {
        match self {
            Self::ShunnedReplicationLag => Self::Shunned.as_str(),
            other => other.as_str(),
        }
    }
    /// OFFLINE_SOFT or OFFLINE_HARD: taken out of service, so neither checked, moved nor mapped.
    pub fn is_offline(self) -> bool {
        matches!(self, Self::OfflineSoft | Self::OfflineHard)
    }
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ConfiguredStatus> for ServerStatus {
    fn from(status: ConfiguredStatus) -> Self {
        match status {
            ConfiguredStatus::Online => Self::Online,
            ConfiguredStatus::Shunned => Self::Shunned,
            ConfiguredStatus::OfflineSoft => Self::OfflineSoft,
            ConfiguredStatus::OfflineHard => Self::OfflineHard,
        }
    }
}

/// States of a deployment, in order (contract: "ProxySQL State Machine").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum BgdStatus {
    /// NONE
    #[default]
    None,
    /// AVAILABLE
    Available,
    /// WRITER_SWITCHOVER_INITIATED
    WriterSwitchoverInitiated,
    /// WRITER_SWITCHOVER_IN_PROGRESS
    WriterSwitchoverInProgress,
    /// WRITER_SWITCHOVER_POST_PROCESSING
    WriterSwitchoverPostProcessing,
    /// WRITER_SWITCHOVER_COMPLETED
    WriterSwitchoverCompleted,
    /// READER_SWITCHOVER_IN_PROGRESS
    ReaderSwitchoverInProgress,
    /// SWITCHOVER_COMPLETED
    SwitchoverCompleted,
}

impl BgdStatus {
    /// The text form, as `runtime_mysql_aws_rds_bgd_hostgroups.status` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Available => "AVAILABLE",
            Self::WriterSwitchoverInitiated => "WRITER_SWITCHOVER_INITIATED",
            Self::WriterSwitchoverInProgress => "WRITER_SWITCHOVER_IN_PROGRESS",
            Self::WriterSwitchoverPostProcessing => "WRITER_SWITCHOVER_POST_PROCESSING",
            Self::WriterSwitchoverCompleted => "WRITER_SWITCHOVER_COMPLETED",
            Self::ReaderSwitchoverInProgress => "READER_SWITCHOVER_IN_PROGRESS",
            Self::SwitchoverCompleted => "SWITCHOVER_COMPLETED",
        }
    }
}

impl fmt::Display for BgdStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
