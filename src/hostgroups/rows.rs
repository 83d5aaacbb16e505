//! Rows of the runtime_ tables over hostgroups. Column orders are those of the tables' definitions.

use super::{Deployment, Endpoint, HostgroupId, Hostgroups, Server};
use admin::Value;
use admin::rows::{HostgroupAttributesRow, ReplicationHostgroupRow, ServerRow, ServerSslParamsRow};

/// runtime_mysql_servers: hostgroup_id, hostname, port, gtid_port, status, weight, compression, max_connections,
/// max_replication_lag, use_ssl, max_latency_ms, comment; ordered by the first three.
pub fn runtime_mysql_servers_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    let row = |(hostgroup_id, endpoint, server): (HostgroupId, &Endpoint, &Server)| {
        let (hostname, port) = (endpoint.host.to_string(), endpoint.port);
        let row = ServerRow { hostgroup_id, hostname, port, ..server.row.clone() };
        row.values(server.status.as_runtime_str())
    };
    hostgroups.all().map(row).collect()
}

/// runtime_mysql_replication_hostgroups: writer_hostgroup, reader_hostgroup, check_type, comment.
pub fn runtime_mysql_replication_hostgroups_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups.replication().iter().map(ReplicationHostgroupRow::values).collect()
}

/// runtime_mysql_aws_rds_bgd_hostgroups: the columns of mysql_aws_rds_bgd_hostgroups, auto_generated, status.
pub fn runtime_mysql_aws_rds_bgd_hostgroups_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    let row = |deployment: &Deployment| {
        let mut row = deployment.row.values();
        row.push(Value::Int(deployment.auto_generated.into()));
        row.push(Value::Text(deployment.status.as_str().into()));
        row
    };
    hostgroups.deployments().values().map(row).collect()
}

/// runtime_mysql_hostgroup_attributes
pub fn runtime_mysql_hostgroup_attributes_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups.attributes().values().map(HostgroupAttributesRow::values).collect()
}

/// runtime_mysql_servers_ssl_params
pub fn runtime_mysql_servers_ssl_params_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups.ssl_params().values().map(ServerSslParamsRow::values).collect()
}
