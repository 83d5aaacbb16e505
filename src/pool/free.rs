//! stats_mysql_free_connections: what is known of connections that nobody uses.

use super::connection::{Connection, Traffic, Usage};
use super::figures::number;
use super::identity::Identity;
use super::peer::Peer;
use super::profile::Profile;
use crate::hostgroups::{Endpoint, HostgroupId};
use crate::json;
use admin::Value;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::backend::Backend;
use wire::{CapabilityFlags, StatusFlags};

/// One free connection.
pub struct FreeConnection {
    fd: i32,
    hostgroup: HostgroupId,
    endpoint: Endpoint,
    identity: Arc<Identity>,
    profile: Arc<Profile>,
    idle: Duration,
    age: Duration,
    usage: Usage,
    traffic: Traffic,
    peer: Option<Arc<Peer>>,
    version: String,
    capabilities: CapabilityFlags,
    status: StatusFlags,
}

impl FreeConnection {
    /// A copy of what there is to show.
    pub(super) fn of(connection: &Connection<Backend>, since: Instant, now: Instant) -> Self {
        let Connection { transport, identity, profile, opened, usage, shared, .. } = connection;
        Self {
            fd: transport.channel.stream().socket().stream().as_fd().as_raw_fd(),
            hostgroup: shared.hostgroup,
            endpoint: shared.endpoint.clone(),
            identity: Arc::clone(identity),
            profile: Arc::clone(profile),
            idle: now.saturating_duration_since(since),
            age: now.saturating_duration_since(*opened),
            usage: *usage,
            traffic: shared.traffic(),
            peer: shared.peer().cloned(),
            version: transport.server_version.clone(),
            capabilities: transport.capabilities,
            status: transport.status,
        }
    }
    /// Its row. What the session before has not set is shown as NULL: the server's own value is in force.
    pub fn row(&self) -> Vec<Value> {
        let variable =
            |name| self.profile.get(name).map(|value| Value::Text(value.trim_matches('\'').to_owned()));
        let autocommit = self.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        vec![
            Value::Int(self.fd.into()),
            Value::Int(self.hostgroup.into()),
            Value::Text(self.endpoint.host.to_string()),
            Value::Int(self.endpoint.port.into()),
            Value::Text(self.identity.user.clone()),
            self.profile.schema.as_ref().map_or(Value::Null, |schema| Value::Text(schema.to_string())),
            Value::Null,
            variable("time_zone").unwrap_or(Value::Null),
            variable("sql_mode").unwrap_or(Value::Null),
            Value::Int(autocommit.into()),
            number(millis(self.idle)),
            Value::Text(self.statistics()),
            Value::Text(self.server()),
        ]
    }
    fn statistics(&self) -> String {
        let Self { traffic, usage: Usage { taken, returned }, .. } = self;
        json::object(&[
            ("address", self.address()),
            ("age_ms", json::number(millis(self.age))),
            ("bytes_recv", json::number(traffic.received)),
            ("bytes_sent", json::number(traffic.sent)),
            ("myconnpoll_get", json::number(*taken)),
            ("myconnpoll_put", json::number(*returned)),
            ("questions", json::number(traffic.queries)),
        ])
    }
    fn server(&self) -> String {
        let of_peer = |show: &dyn Fn(&Peer) -> String| self.peer.as_deref().map_or("null".to_owned(), show);
        json::object(&[
            ("address", self.address()),
            ("client_flag", json::number(self.capabilities.bits().into())),
            ("server_status", json::number(self.status.bits().into())),
            ("server_version", json::text(&self.version)),
            ("thread_id", of_peer(&|peer| peer.connection_id.to_string())),
            ("tls", of_peer(&|peer| peer.tls.is_some().to_string())),
        ])
    }
    /// Where the connection leads, which its name need not any more.
    fn address(&self) -> String {
        self.peer.as_ref().map_or("null".to_owned(), |peer| json::text(&peer.address.to_string()))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
