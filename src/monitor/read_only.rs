//! The read_only check, apart from its IO: whom to check with which statement, and what an answer means.

use crate::hostgroups::{Endpoint, Hostgroups};
use std::collections::HashSet;
use wire::backend::TextResult;

/// One server to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its address, as configured.
    pub endpoint: Endpoint,
    /// Whether its row asks for TLS.
    pub tls: bool,
    /// The statement.
    pub sql: String,
}

/// Every endpoint in a replication hostgroup that is not OFFLINE_*, once. An endpoint in several hostgroups is checked as its
/// first one says.
pub fn targets(hostgroups: &Hostgroups) -> Vec<Target> {
    let mut seen = HashSet::new();
    let mut targets = Vec::new();
    for pair in hostgroups.replication() {
        for hostgroup in [pair.writer_hostgroup, pair.reader_hostgroup] {
            for (endpoint, server) in hostgroups.members(hostgroup) {
                if !server.status.is_offline() && seen.insert(endpoint) {
                    targets.push(Target {
                        endpoint: endpoint.clone(),
                        tls: server.row.use_ssl,
                        sql: statement(&pair.check_type, endpoint),
                    });
                }
            }
        }
    }
    targets
}

/// The simulated form names the server it means, whose value the simulator then looks up (simulator: "Read-Only Simulation").
#[cfg(feature = "test-rds-bgd")]
fn statement(_check_type: &str, endpoint: &Endpoint) -> String {
    format!("SELECT @@global.read_only read_only {endpoint}")
}

#[cfg(not(feature = "test-rds-bgd"))]
fn statement(check_type: &str, _endpoint: &Endpoint) -> String {
    let expression = match check_type {
        "innodb_read_only" => "@@global.innodb_read_only",
        "super_read_only" => "@@global.super_read_only",
        "read_only|innodb_read_only" => "@@global.read_only|@@global.innodb_read_only",
        "read_only&innodb_read_only" => "@@global.read_only&@@global.innodb_read_only",
        _ => "@@global.read_only",
    };
    format!("SELECT {expression} read_only")
}

/// The value of an answer. One that is missing or makes no sense counts as read_only=1, which can at worst withhold a
/// writer, never make one of a replica. Newer servers say OFF instead of 0.
pub fn is_read_only(answer: &TextResult) -> bool {
    let column = answer.columns.iter().position(|name| name.eq_ignore_ascii_case("read_only"));
    let value = column.and_then(|column| answer.rows.first()?.get(column)?.as_deref());
    !value.is_some_and(|value| value == b"0" || value.eq_ignore_ascii_case(b"OFF"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pair, server as row};
    use admin::rows::{ConfiguredStatus, ReplicationHostgroupRow, ServerRow, ServersConfig};

    #[test]
    fn every_server_in_service_is_a_target_once() {
        let offline = ServerRow { status: ConfiguredStatus::OfflineSoft, ..row(1, "soft") };
        let mut hostgroups = Hostgroups::default();
        hostgroups.load(&ServersConfig {
            servers: vec![
                ServerRow { use_ssl: true, ..row(1, "a") },
                row(2, "a"),
                row(2, "b"),
                offline,
                row(4, "b"),
                row(9, "not-in-a-pair"),
            ],
            replication: vec![pair(1, 2), pair(3, 4)],
            ..ServersConfig::default()
        });
        let found: Vec<_> = targets(&hostgroups).into_iter().map(|t| (t.endpoint.host, t.tls)).collect();
        assert_eq!(found, [("a".into(), true), ("b".into(), false)]);
    }

    #[test]
    fn statements_follow_the_flavour_and_the_check_type() {
        let text = |check_type: &str| {
            let check_type = check_type.to_owned();
            let mut hostgroups = Hostgroups::default();
            hostgroups.load(&ServersConfig {
                servers: vec![row(1, "Host")],
                replication: vec![ReplicationHostgroupRow { check_type, ..pair(1, 2) }],
                ..ServersConfig::default()
            });
            targets(&hostgroups).remove(0).sql
        };
        if cfg!(feature = "test-rds-bgd") {
            assert_eq!(text("read_only"), "SELECT @@global.read_only read_only Host:3306");
        } else {
            assert_eq!(text("read_only"), "SELECT @@global.read_only read_only");
            assert_eq!(text("super_read_only"), "SELECT @@global.super_read_only read_only");
            assert_eq!(
                text("read_only&innodb_read_only"),
                "SELECT @@global.read_only&@@global.innodb_read_only read_only"
            );
        }
    }

    #[test]
    fn only_a_clear_no_is_writable() {
        let answer = |column: &str, value: Option<&str>| TextResult {
            columns: vec!["x".into(), column.into()],
            rows: vec![vec![None, value.map(|value| value.as_bytes().to_vec())]],
            ..TextResult::default()
        };
        for (column, value, expected) in [
            ("read_only", Some("0"), false),
            ("READ_ONLY", Some("off"), false),
            ("read_only", Some("1"), true),
            ("read_only", Some("ON"), true),
            ("read_only", Some("NO_LOCK"), true),
            ("read_only", Some(""), true),
            ("read_only", None, true),
            ("other", Some("0"), true),
        ] {
            assert_eq!(is_read_only(&answer(column, value)), expected, "{column} {value:?}");
        }
        assert!(is_read_only(&TextResult::default()));
        assert!(is_read_only(&TextResult {
            columns: vec!["read_only".into()],
            rows: vec![vec![]],
            ..TextResult::default()
        }));
    }
}
