//! Rows of the runtime_ tables over hostgroups. Column orders are those of the tables' definitions.

use super::{Endpoint, HostgroupId, Hostgroups, Server};
use admin::Value;
use admin::rows::{HostgroupAttributesRow, ServerRow, ServerSslParamsRow};

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
    hostgroups
        .replication()
        .iter()
        .map(|row| {
            vec![
                int(row.writer_hostgroup),
                int(row.reader_hostgroup),
                text(&row.check_type),
                text(&row.comment),
            ]
        })
        .collect()
}

/// runtime_mysql_aws_rds_bgd_hostgroups: writer_hostgroup, reader_hostgroup, green_writer_hostgroup, green_reader_hostgroup,
/// active, writer_is_also_reader, check_interval_ms, check_timeout_ms, comment, auto_generated, status.
pub fn runtime_mysql_aws_rds_bgd_hostgroups_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups
        .deployments()
        .values()
        .map(|deployment| {
            let row = &deployment.row;
            vec![
                int(row.writer_hostgroup),
                int(row.reader_hostgroup),
                row.green_writer_hostgroup.map_or(Value::Null, int),
                row.green_reader_hostgroup.map_or(Value::Null, int),
                int(row.active),
                int(row.writer_is_also_reader),
                int(row.check_interval_ms),
                int(row.check_timeout_ms),
                text(&row.comment),
                int(deployment.auto_generated),
                text(deployment.status.as_str()),
            ]
        })
        .collect()
}

/// runtime_mysql_hostgroup_attributes
pub fn runtime_mysql_hostgroup_attributes_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups.attributes().values().map(HostgroupAttributesRow::values).collect()
}

/// runtime_mysql_servers_ssl_params
pub fn runtime_mysql_servers_ssl_params_rows(hostgroups: &Hostgroups) -> Vec<Vec<Value>> {
    hostgroups.ssl_params().values().map(ServerSslParamsRow::values).collect()
}

fn int(number: impl Into<i64>) -> Value {
    Value::Int(number.into())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
