//! One deployment: its hosts and the topology AWS would publish for it. Contract: RDS_BGD_Simulator.md, "Topology and Host
//! Types" and "Cluster Fixture".

use crate::connection::Endpoint;

/// One row of `mysql.rds_topology`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdsBgdTopologyRow {
    /// Identifies the DB instance
    pub id: String,
    /// The instance's hostname
    pub endpoint: String,
    /// The instance's port
    pub port: u16,
    /// BLUE_GREEN_DEPLOYMENT_SOURCE or BLUE_GREEN_DEPLOYMENT_TARGET
    pub role: String,
    /// AVAILABLE or SWITCHOVER_...
    pub status: String,
}

/// A server under both of its names: the proxy knows the hostname, the simulator the IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdsBgdHost {
    /// As configured in mysql_servers
    pub hostname: String,
    /// The loopback address that the fixed map gives the hostname
    pub ip: String,
    /// TCP port: 3306 for every endpoint of the fixed map, unless TAP_SIMPORT says otherwise
    pub port: u16,
}

impl RdsBgdHost {
    /// `ip:port`, the key of topology and probe log.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.ip.clone(), self.port)
    }

    /// `hostname:port`, the key of read_only values.
    pub fn host_endpoint(&self) -> Endpoint {
        Endpoint::new(self.hostname.clone(), self.port)
    }
}

/// The servers of one blue/green deployment. A scenario configures those it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdsBgdCluster {
    /// Source of the switchover
    pub blue_writer: RdsBgdHost,
    /// Target of the switchover
    pub green_writer: RdsBgdHost,
    /// Read replicas of the source
    pub blue_readers: Vec<RdsBgdHost>,
    /// Read replicas of the target, in the order of their blue counterparts
    pub green_readers: Vec<RdsBgdHost>,
}

impl RdsBgdCluster {
    /// The IP endpoints of the blue and the green writer.
    pub fn get_writers(&self) -> Vec<Endpoint> {
        vec![self.blue_writer.endpoint(), self.green_writer.endpoint()]
    }

    /// The IP endpoints of the blue servers, writer first.
    pub fn get_blue_endpoints(&self) -> Vec<Endpoint> {
        endpoints(&self.blue_writer, &self.blue_readers)
    }

    /// The IP endpoints of the green servers, writer first.
    pub fn get_green_endpoints(&self) -> Vec<Endpoint> {
        endpoints(&self.green_writer, &self.green_readers)
    }

    /// The IP endpoints of all servers, blue ones first.
    pub fn get_endpoints(&self) -> Vec<Endpoint> {
        let mut all = self.get_blue_endpoints();
        all.extend(self.get_green_endpoints());
        all
    }

    /// What AWS publishes up to post-processing: the two writers by hostname, SOURCE then TARGET, both with `status`. Rows of
    /// readers are added by scenarios that need them.
    pub fn get_topology(&self, status: &str) -> Vec<RdsBgdTopologyRow> {
        vec![
            topology_row("1", &self.blue_writer, "BLUE_GREEN_DEPLOYMENT_SOURCE", status),
            self.target_row(status),
        ]
    }

    /// What AWS publishes once the writer's switchover has completed: the target alone. Contract: RDS_BGD_Monitor.md's
    /// lifecycle; the simulator's document has no such method.
    pub fn get_completed_topology(&self) -> Vec<RdsBgdTopologyRow> {
        vec![self.target_row("SWITCHOVER_COMPLETED")]
    }

    fn target_row(&self, status: &str) -> RdsBgdTopologyRow {
        topology_row("2", &self.green_writer, "BLUE_GREEN_DEPLOYMENT_TARGET", status)
    }
}

fn endpoints(writer: &RdsBgdHost, readers: &[RdsBgdHost]) -> Vec<Endpoint> {
    std::iter::once(writer).chain(readers).map(RdsBgdHost::endpoint).collect()
}

fn topology_row(id: &str, host: &RdsBgdHost, role: &str, status: &str) -> RdsBgdTopologyRow {
    RdsBgdTopologyRow {
        id: id.to_owned(),
        endpoint: host.hostname.clone(),
        port: host.port,
        role: role.to_owned(),
        status: status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::hosts;

    #[test]
    fn endpoints_are_ips_writer_first() {
        let cluster = hosts::cluster_1_green_b(3306);
        let shown = |endpoints: Vec<super::Endpoint>| {
            endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(cluster.get_writers()), "127.10.0.11:3306 127.10.0.17:3306");
        assert_eq!(
            shown(cluster.get_green_endpoints()),
            "127.10.0.17:3306 127.10.0.18:3306 127.10.0.19:3306"
        );
        assert_eq!(cluster.get_endpoints().len(), 6);
        assert_eq!(cluster.get_endpoints()[..3], cluster.get_blue_endpoints());
    }

    #[test]
    fn topology_has_source_and_target_by_hostname_until_completion() {
        let cluster = hosts::cluster_2(3306);
        let rows = cluster.get_topology("AVAILABLE");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].endpoint, cluster.blue_writer.hostname);
        assert_eq!(
            (rows[0].role.as_str(), rows[1].role.as_str()),
            ("BLUE_GREEN_DEPLOYMENT_SOURCE", "BLUE_GREEN_DEPLOYMENT_TARGET")
        );
        assert!(rows.iter().all(|row| row.status == "AVAILABLE" && row.port == 3306));

        let completed = cluster.get_completed_topology();
        assert_eq!(completed.len(), 1);
        assert_eq!(completed[0].endpoint, cluster.green_writer.hostname);
        assert_eq!(completed[0].status, "SWITCHOVER_COMPLETED");
    }
}
