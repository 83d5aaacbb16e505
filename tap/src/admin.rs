//! What scenarios write to and ask of the admin port: configuration of a deployment, and conditions over its live tables.

use crate::connection::{Connection, Credentials, Error, quote};
use crate::simulator::RdsBgdHost;

/// The four hostgroups of one deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hostgroups {
    /// Blue writer
    pub writer: u32,
    /// Blue readers
    pub reader: u32,
    /// Green writer
    pub green_writer: u32,
    /// Green readers
    pub green_reader: u32,
}

impl Hostgroups {
    /// Four consecutive hostgroups.
    pub const fn starting_at(first: u32) -> Self {
        Self { writer: first, reader: first + 1, green_writer: first + 2, green_reader: first + 3 }
    }
}

/// Monitoring as all scenarios want it: the account `user`, a read_only check every 100 ms, and writers that
/// are not readers, so that each server is in one blue hostgroup. No discovery, so that probes are the workers' own.
pub fn configure_monitor(admin: &mut Connection, user: &Credentials) -> Result<(), Error> {
    for (variable, value) in [
        ("mysql-monitor_username", user.username.as_str()),
        ("mysql-monitor_password", user.password.as_str()),
        ("mysql-monitor_enabled", "true"),
        ("mysql-monitor_read_only_interval", "100"),
        ("mysql-monitor_writer_is_also_reader", "false"),
        ("mysql-monitor_aws_rds_topology_discovery_interval", "0"),
        ("mysql-aws_blue_green_deployment_auto_discovery", "true"),
    ] {
        admin.execute(&format!("SET {variable}={}", quote(value)))?;
    }
    admin.execute("LOAD MYSQL VARIABLES TO RUNTIME").map(drop)
}

/// A read_only check every `interval_ms`. A long interval leaves all placement to the deployments.
pub fn check_read_only_every(admin: &mut Connection, interval_ms: u32) -> Result<(), Error> {
    admin.execute(&format!("SET mysql-monitor_read_only_interval={interval_ms}"))?;
    admin.execute("LOAD MYSQL VARIABLES TO RUNTIME").map(drop)
}

/// Discovery in every `cycles`-th read_only cycle, which makes deployments of its own if `auto`.
pub fn discover(admin: &mut Connection, cycles: u32, auto: bool) -> Result<(), Error> {
    admin.execute(&format!("SET mysql-monitor_aws_rds_topology_discovery_interval={cycles}"))?;
    admin.execute(&format!("SET mysql-aws_blue_green_deployment_auto_discovery='{auto}'"))?;
    admin.execute("LOAD MYSQL VARIABLES TO RUNTIME").map(drop)
}

/// Configures a replication pair with the given members and no deployment, and loads it to runtime.
pub fn configure_pair(
    admin: &mut Connection,
    hostgroups: Hostgroups,
    members: &[(u32, &RdsBgdHost)],
) -> Result<(), Error> {
    insert_pair(admin, hostgroups, members)?;
    admin.execute("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

fn insert_pair(
    admin: &mut Connection,
    Hostgroups { writer, reader, .. }: Hostgroups,
    members: &[(u32, &RdsBgdHost)],
) -> Result<(), Error> {
    admin.execute(&format!(
        "INSERT INTO mysql_replication_hostgroups(writer_hostgroup,reader_hostgroup) VALUES ({writer},{reader})"
    ))?;
    members.iter().try_for_each(|(hostgroup, host)| admin.execute(&add_server(*hostgroup, host)).map(drop))
}

/// The condition that the deployment with these blue hostgroups is the only one at runtime, made by discovery, without green
/// hostgroups.
pub fn discovered_alone(hostgroups: Hostgroups) -> String {
    let Hostgroups { writer, reader, .. } = hostgroups;
    format!(
        "(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups)=1 AND \
         (SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup={writer} AND \
         reader_hostgroup={reader} AND green_writer_hostgroup IS NULL AND green_reader_hostgroup IS NULL AND \
         active=1 AND auto_generated=1)=1"
    )
}

/// Configures one explicit deployment, polled every 100 ms, with the given members, and loads it to runtime.
pub fn configure_deployment(
    admin: &mut Connection,
    hostgroups: Hostgroups,
    members: &[(u32, &RdsBgdHost)],
) -> Result<(), Error> {
    insert_pair(admin, hostgroups, members)?;
    add_deployment(admin, hostgroups)
}

/// Configures the row of a deployment alone, polled every 100 ms, and loads it to runtime.
pub fn add_deployment(admin: &mut Connection, hostgroups: Hostgroups) -> Result<(), Error> {
    let Hostgroups { writer, reader, green_writer, green_reader } = hostgroups;
    admin.execute(&format!(
        "INSERT INTO mysql_aws_rds_bgd_hostgroups(writer_hostgroup,reader_hostgroup,green_writer_hostgroup,\
         green_reader_hostgroup,check_interval_ms,check_timeout_ms) \
         VALUES ({writer},{reader},{green_writer},{green_reader},100,800)"
    ))?;
    admin.execute("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

/// The statement that configures `host` in `hostgroup`, with all other columns' defaults.
pub fn add_server(hostgroup: u32, host: &RdsBgdHost) -> String {
    format!(
        "INSERT INTO mysql_servers(hostgroup_id,hostname,port) VALUES ({hostgroup},{},{})",
        quote(&host.hostname),
        host.port
    )
}

/// The statement that changes `columns` of `host`, in whichever hostgroups it is.
pub fn update_server(host: &RdsBgdHost, columns: &str) -> String {
    format!("UPDATE mysql_servers SET {columns} WHERE hostname={}", quote(&host.hostname))
}

/// The statement that removes `host` from the configuration.
pub fn remove_server(host: &RdsBgdHost) -> String {
    format!("DELETE FROM mysql_servers WHERE hostname={}", quote(&host.hostname))
}

/// The statement that changes `columns` of the deployment with this blue writer hostgroup.
pub fn update_deployment(writer_hostgroup: u32, columns: &str) -> String {
    format!("UPDATE mysql_aws_rds_bgd_hostgroups SET {columns} WHERE writer_hostgroup={writer_hostgroup}")
}

/// Executes `changes` of the configured servers and loads the outcome to runtime at once.
pub fn change_servers(admin: &mut Connection, changes: &[String]) -> Result<(), Error> {
    changes.iter().try_for_each(|change| admin.execute(change).map(drop))?;
    admin.execute("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

/// Configures `host` in `hostgroup` with a status, whether it was there or not, and loads it to runtime.
pub fn put_server(
    admin: &mut Connection,
    hostgroup: u32,
    host: &RdsBgdHost,
    status: &str,
) -> Result<(), Error> {
    insert_server(admin, hostgroup, host, status)?;
    admin.execute("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

/// [`put_server`] without loading it.
pub fn insert_server(
    admin: &mut Connection,
    hostgroup: u32,
    host: &RdsBgdHost,
    status: &str,
) -> Result<(), Error> {
    let insert = format!(
        "INSERT OR REPLACE INTO mysql_servers(hostgroup_id,hostname,port,status) VALUES ({hostgroup},{},{},{})",
        quote(&host.hostname),
        host.port,
        quote(status)
    );
    admin.execute(&insert).map(drop)
}

/// Changes columns of the deployment with this blue writer hostgroup (`active=0`, say), and loads it to runtime.
pub fn set_deployment(admin: &mut Connection, writer_hostgroup: u32, columns: &str) -> Result<(), Error> {
    change_servers(admin, &[update_deployment(writer_hostgroup, columns)])
}

/// The daemon asks the name server `address` before hosts files and the system's DNS; none where it is empty.
pub fn use_dns_server(admin: &mut Connection, address: &str) -> Result<(), Error> {
    admin.execute(&format!("SET mysql-monitor_dns_server={}", quote(address)))?;
    admin.execute("LOAD MYSQL VARIABLES TO RUNTIME").map(drop)
}

/// Sends clients of `username` that log in from now on to `hostgroup`.
pub fn route_clients(admin: &mut Connection, username: &str, hostgroup: u32) -> Result<(), Error> {
    let user = quote(username);
    admin.execute(&format!("UPDATE mysql_users SET default_hostgroup={hostgroup} WHERE username={user}"))?;
    admin.execute("LOAD MYSQL USERS TO RUNTIME").map(drop)
}

/// Removes every server, replication pair, deployment and attribute of a hostgroup, sends `username` back to hostgroup 0, asks no
/// name server of a test's any more, and waits until no deployment is left at runtime.
pub fn cleanup(admin: &mut Connection, username: &str) -> Result<(), Error> {
    for table in [
        "mysql_aws_rds_bgd_hostgroups",
        "mysql_hostgroup_attributes",
        "mysql_replication_hostgroups",
        "mysql_servers",
    ] {
        admin.execute(&format!("DELETE FROM {table}"))?;
    }
    admin.execute("LOAD MYSQL SERVERS TO RUNTIME")?;
    route_clients(admin, username, 0)?;
    use_dns_server(admin, "")?;
    admin.wait_until("(SELECT COUNT(*) FROM runtime_mysql_aws_rds_bgd_hostgroups)=0")
}

/// The query for the status of the deployment with this blue writer hostgroup.
pub fn status_query(writer_hostgroup: u32) -> String {
    format!(
        "SELECT status FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup={writer_hostgroup}"
    )
}

/// The condition that the deployment with this blue writer hostgroup has `status`.
pub fn status_is(writer_hostgroup: u32, status: &str) -> String {
    format!("({})={}", status_query(writer_hostgroup), quote(status))
}

/// The condition that `host` is an ONLINE member of `hostgroup` at runtime.
pub fn online_in(hostgroup: u32, host: &RdsBgdHost) -> String {
    member_with(hostgroup, host, "status='ONLINE'")
}

/// The condition that `host` is no member of `hostgroup` at runtime, whatever its status.
pub fn absent_from(hostgroup: u32, host: &RdsBgdHost) -> String {
    format!("(SELECT COUNT(*) {})=0", membership(hostgroup, host))
}

/// The condition that `host` is a member of `hostgroup` at runtime for which `condition` on its columns holds.
pub fn member_with(hostgroup: u32, host: &RdsBgdHost, condition: &str) -> String {
    format!("(SELECT COUNT(*) {} AND {condition})=1", membership(hostgroup, host))
}

/// The condition that mysql_servers has `host` in `hostgroup` and in no other.
pub fn configured_in_alone(hostgroup: u32, host: &RdsBgdHost) -> String {
    format!(
        "(SELECT GROUP_CONCAT(hostgroup_id) FROM mysql_servers WHERE hostname={} AND port={})='{hostgroup}'",
        quote(&host.hostname),
        host.port
    )
}

/// The members of `hostgroup` at runtime by name, each as its name and its status.
pub fn members(admin: &mut Connection, hostgroup: u32) -> Result<Vec<String>, Error> {
    let rows = admin.rows(&format!(
        "SELECT hostname || ' ' || status FROM runtime_mysql_servers WHERE hostgroup_id={hostgroup} ORDER BY hostname"
    ))?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

fn membership(hostgroup: u32, host: &RdsBgdHost) -> String {
    format!(
        "FROM runtime_mysql_servers WHERE hostgroup_id={hostgroup} AND hostname={} AND port={}",
        quote(&host.hostname),
        host.port
    )
}

/// The expression for the number of connections, used and free, to the server configured as `host`.
pub fn pooled(host: &RdsBgdHost) -> String {
    format!(
        "(SELECT COALESCE(SUM(ConnUsed+ConnFree),0) FROM stats_mysql_connection_pool WHERE srv_host={} AND srv_port={})",
        quote(&host.hostname),
        host.port
    )
}

/// The expression for the number of read_only checks of `hosts` that started after `since_us`, in µs of the epoch.
pub fn read_only_checks(hosts: &[&RdsBgdHost], since_us: u128) -> String {
    let names: Vec<_> = hosts.iter().map(|host| quote(&host.hostname)).collect();
    format!(
        "(SELECT COUNT(*) FROM mysql_server_read_only_log WHERE hostname IN ({}) AND time_start_us>{since_us})",
        names.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;

    #[test]
    fn conditions_are_scalar_subqueries() {
        let host = hosts::cluster_1_green_a(3306).blue_writer;
        assert_eq!(
            online_in(970, &host),
            "(SELECT COUNT(*) FROM runtime_mysql_servers WHERE hostgroup_id=970 AND \
             hostname='db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com' AND port=3306 AND status='ONLINE')=1"
        );
        assert_eq!(
            status_is(970, "AVAILABLE"),
            "(SELECT status FROM runtime_mysql_aws_rds_bgd_hostgroups WHERE writer_hostgroup=970)='AVAILABLE'"
        );
    }

    #[test]
    fn read_only_checks_count_only_the_named_hosts() {
        let cluster = hosts::cluster_1_green_a(3306);
        let expression = read_only_checks(&[&cluster.blue_writer, &cluster.blue_readers[0]], 17);
        assert!(expression.contains(
            "IN ('db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com','db-1-reader-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com')"
        ));
        assert!(expression.ends_with("AND time_start_us>17)"), "{expression}");
    }
}
