//! Which host names are endpoints of RDS and Aurora. By their form alone: whether there is such an endpoint, the provider says.
//!
//! Forms, from the RDS and Aurora user guides: `NAME.HASH.REGION.rds.SUFFIX` for instances, with `cluster-`, `cluster-ro-` or
//! `cluster-custom-` before the hash for endpoints of clusters. Some partitions write `rds.REGION` instead of `REGION.rds`.
//! Proxies (`proxy-`) and shard groups are endpoints of another kind.

/// What an endpoint leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// One DB instance, of RDS or Aurora.
    Instance,
    /// A cluster's writer.
    Cluster,
    /// A cluster's readers.
    ClusterReader,
    /// Some of a cluster's instances.
    ClusterCustom,
}

/// What a host name tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointName {
    /// Its form.
    pub kind: EndpointKind,
    /// The identifier of the instance, the cluster or the custom endpoint, in lower case.
    pub id: String,
    /// The Region, in lower case.
    pub region: String,
}

/// Domains of the partitions, and what the names of their Regions begin with; none of these where nothing is given.
const PARTITIONS: &[(&str, &[&str])] = &[
    ("amazonaws.com.cn", &["cn-"]),
    (COMMERCIAL, &[]),
    ("amazonaws.eu", &["eusc-"]),
    ("c2s.ic.gov", &["us-iso-"]),
    ("sc2s.sgov.gov", &["us-isob-"]),
    ("cloud.adc-e.uk", &["eu-isoe-"]),
    ("csp.hci.ic.gov", &["us-isof-"]),
];

/// Where Regions of no other partition are.
const COMMERCIAL: &str = "amazonaws.com";

/// The domain of a Region's partition: `amazonaws.com` for `eu-north-1`.
pub fn suffix_of(region: &str) -> &'static str {
    let own = |prefixes: &[&str]| prefixes.iter().any(|prefix| region.starts_with(prefix));
    PARTITIONS.iter().find(|(_, prefixes)| own(prefixes)).map_or(COMMERCIAL, |(suffix, _)| suffix)
}

/// Longest host name that DNS knows.
const LONGEST_NAME: usize = 253;
const LONGEST_ID: usize = 63;

impl EndpointName {
    /// Reads a host name, in any case, with or without the final dot. `None`: something else, which stays neutral.
    pub fn parse(host: &str) -> Option<Self> {
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.len() > LONGEST_NAME || !host.is_ascii() {
            return None;
        }
        let host = host.to_ascii_lowercase();
        let (domain, suffix) = PARTITIONS.iter().find_map(|(suffix, _)| {
            let rest = host.strip_suffix(suffix)?.strip_suffix('.')?;
            Some((rest, *suffix))
        })?;
        let labels: Vec<&str> = domain.split('.').collect();
        let (id, account, region) = match labels[..] {
            [id, account, region, "rds"] | [id, account, "rds", region] => (id, account, region),
            _ => return None,
        };
        let (kind, hash) = kind_of(account)?;
        let belongs = suffix_of(region) == suffix;
        let is_endpoint = belongs && is_id(id) && is_hash(hash) && is_region(region);
        is_endpoint.then(|| Self { kind, id: id.to_owned(), region: region.to_owned() })
    }
}

/// The label after the identifier: what kind, and whose.
fn kind_of(label: &str) -> Option<(EndpointKind, &str)> {
    let Some(cluster) = label.strip_prefix("cluster-") else {
        return Some((EndpointKind::Instance, label));
    };
    Some(if let Some(hash) = cluster.strip_prefix("ro-") {
        (EndpointKind::ClusterReader, hash)
    } else if let Some(hash) = cluster.strip_prefix("custom-") {
        (EndpointKind::ClusterCustom, hash)
    } else {
        (EndpointKind::Cluster, cluster)
    })
}

/// As RDS demands of identifiers: letters, digits and single hyphens, a letter first and no hyphen last.
fn is_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    id.len() <= LONGEST_ID
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.bytes().all(allowed)
        && !id.ends_with('-')
        && !id.contains("--")
}

/// Letters and digits that stand for account and Region. A hyphen would be the prefix of another kind of endpoint.
fn is_hash(hash: &str) -> bool {
    !hash.is_empty() && hash.len() <= LONGEST_ID && hash.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// At least two words and a number: `eu-north-1`, `us-gov-west-1`.
fn is_region(region: &str) -> bool {
    let mut parts = region.split('-').rev();
    let is_number =
        |part: &str| !part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    parts.next().is_some_and(is_number) && parts.clone().count() >= 2 && parts.all(is_word)
}

#[cfg(test)]
mod tests {
    use super::EndpointKind::{Cluster, ClusterCustom, ClusterReader, Instance};
    use super::*;

    const ENDPOINTS: &[(&str, EndpointKind, &str, &str)] = &[
        ("db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com", Instance, "db-1", "eu-north-1"),
        ("DB-1.C1YQCG0IE39O.EU-NORTH-1.RDS.AMAZONAWS.COM", Instance, "db-1", "eu-north-1"),
        ("db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com.", Instance, "db-1", "eu-north-1"),
        ("a.c1.us-east-1.rds.amazonaws.com", Instance, "a", "us-east-1"),
        (
            "db-1-green-iqu47r.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com",
            Instance,
            "db-1-green-iqu47r",
            "eu-north-1",
        ),
        ("db-1-old1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com", Instance, "db-1-old1", "eu-north-1"),
        ("shop-instance-1.abc123.us-west-2.rds.amazonaws.com", Instance, "shop-instance-1", "us-west-2"),
        (
            "shop-instance-1-us-west-2a.abc123.us-west-2.rds.amazonaws.com",
            Instance,
            "shop-instance-1-us-west-2a",
            "us-west-2",
        ),
        ("shop.cluster-abc123.us-west-2.rds.amazonaws.com", Cluster, "shop", "us-west-2"),
        ("shop.cluster-ro-abc123.us-west-2.rds.amazonaws.com", ClusterReader, "shop", "us-west-2"),
        ("reports.cluster-custom-abc123.us-west-2.rds.amazonaws.com", ClusterCustom, "reports", "us-west-2"),
        ("multi-az.cluster-cabc.ap-southeast-2.rds.amazonaws.com", Cluster, "multi-az", "ap-southeast-2"),
        (
            "multi-az.cluster-ro-cabc.ap-southeast-2.rds.amazonaws.com",
            ClusterReader,
            "multi-az",
            "ap-southeast-2",
        ),
        (
            "multi-az-instance-3.cabc.ap-southeast-2.rds.amazonaws.com",
            Instance,
            "multi-az-instance-3",
            "ap-southeast-2",
        ),
        ("db.cabc.me-central-1.rds.amazonaws.com", Instance, "db", "me-central-1"),
        ("db.cabc.mx-central-1.rds.amazonaws.com", Instance, "db", "mx-central-1"),
        ("db.cabc.us-gov-west-1.rds.amazonaws.com", Instance, "db", "us-gov-west-1"),
        ("db.cabc.rds.us-gov-east-1.amazonaws.com", Instance, "db", "us-gov-east-1"),
        ("db.cluster-ro-cabc.us-gov-east-1.rds.amazonaws.com", ClusterReader, "db", "us-gov-east-1"),
        ("db.cabc.cn-north-1.rds.amazonaws.com.cn", Instance, "db", "cn-north-1"),
        ("db.cabc.rds.cn-northwest-1.amazonaws.com.cn", Instance, "db", "cn-northwest-1"),
        ("db.cluster-cabc.rds.cn-north-1.amazonaws.com.cn", Cluster, "db", "cn-north-1"),
        ("db.cluster-custom-cabc.cn-north-1.rds.amazonaws.com.cn", ClusterCustom, "db", "cn-north-1"),
        ("db.cabc.rds.us-iso-east-1.c2s.ic.gov", Instance, "db", "us-iso-east-1"),
        ("db.cluster-cabc.rds.us-isob-east-1.sc2s.sgov.gov", Cluster, "db", "us-isob-east-1"),
        ("db.cabc.us-isob-east-1.rds.sc2s.sgov.gov", Instance, "db", "us-isob-east-1"),
        ("db.cabc.rds.us-isof-south-1.csp.hci.ic.gov", Instance, "db", "us-isof-south-1"),
        ("db.cabc.rds.eu-isoe-west-1.cloud.adc-e.uk", Instance, "db", "eu-isoe-west-1"),
        ("db.cabc.eusc-de-east-1.rds.amazonaws.eu", Instance, "db", "eusc-de-east-1"),
        // Identifiers may say anything that RDS lets them say.
        ("proxy-1.cabc.eu-west-1.rds.amazonaws.com", Instance, "proxy-1", "eu-west-1"),
        ("cluster-1.cabc.eu-west-1.rds.amazonaws.com", Instance, "cluster-1", "eu-west-1"),
        ("rds.cabc.eu-west-1.rds.amazonaws.com", Instance, "rds", "eu-west-1"),
    ];

    const NEUTRAL: &[&str] = &[
        "",
        ".",
        "localhost",
        "127.0.0.1",
        "10.0.0.1",
        "::1",
        "db-1",
        "mysql.example.com",
        "db-1.internal.example.com",
        "rds.amazonaws.com",
        "eu-north-1.rds.amazonaws.com",
        "cabc.eu-north-1.rds.amazonaws.com",
        ".cabc.eu-north-1.rds.amazonaws.com",
        "db..eu-north-1.rds.amazonaws.com",
        "db.cabc..rds.amazonaws.com",
        "db.cabc.eu-north-1.rds.amazonaws.com..",
        "a.db.cabc.eu-north-1.rds.amazonaws.com",
        "db.cabc.eu-north-1.rds.amazonaws.com.example.com",
        "db.cabc.eu-north-1.rds.amazonaws.org",
        "db.cabc.eu-north-1.rds.notamazonaws.com",
        "db.cabc.eu-north-1.rds-amazonaws.com",
        "db.cabc.eu-north-1.rdsamazonaws.com",
        "db.cabc.eu-north-1.elb.amazonaws.com",
        "db.cabc.eu-north-1.docdb.amazonaws.com",
        "db.cabc.ng.0001.euw1.cache.amazonaws.com",
        "ec2-1-2-3-4.eu-north-1.compute.amazonaws.com",
        // Proxies and shard groups.
        "app.proxy-cabc.eu-north-1.rds.amazonaws.com",
        "ro.endpoint.proxy-cabc.eu-north-1.rds.amazonaws.com",
        "shards.shardgrp-cabc.eu-north-1.rds.amazonaws.com",
        "app.proxy-cabc.rds.cn-north-1.amazonaws.com.cn",
        // Parts that are none.
        "db.cluster-.eu-north-1.rds.amazonaws.com",
        "db.cluster-ro-.eu-north-1.rds.amazonaws.com",
        "db.cluster-other-cabc.eu-north-1.rds.amazonaws.com",
        "db.ca_bc.eu-north-1.rds.amazonaws.com",
        "1db.cabc.eu-north-1.rds.amazonaws.com",
        "-db.cabc.eu-north-1.rds.amazonaws.com",
        "db-.cabc.eu-north-1.rds.amazonaws.com",
        "d--b.cabc.eu-north-1.rds.amazonaws.com",
        "d_b.cabc.eu-north-1.rds.amazonaws.com",
        "d b.cabc.eu-north-1.rds.amazonaws.com",
        " db.cabc.eu-north-1.rds.amazonaws.com",
        "d\u{e9}.cabc.eu-north-1.rds.amazonaws.com",
        "db.cabc.eu-north.rds.amazonaws.com",
        "db.cabc.north-1.rds.amazonaws.com",
        "db.cabc.eu-north-1a.rds.amazonaws.com",
        "db.cabc.eu--1.rds.amazonaws.com",
        "db.cabc.eu-north-111.rds.amazonaws.com",
        "db.cabc.1.rds.amazonaws.com",
        // Regions of other partitions.
        "db.cabc.cn-north-1.rds.amazonaws.com",
        "db.cabc.eu-north-1.rds.amazonaws.com.cn",
        "db.cabc.us-iso-east-1.rds.amazonaws.com",
        "db.cabc.rds.us-east-1.c2s.ic.gov",
        "db.cabc.eu-west-1.rds.amazonaws.eu",
    ];

    #[test]
    fn endpoints_of_all_partitions_are_known_by_their_form() {
        for (host, kind, id, region) in ENDPOINTS {
            let expected = EndpointName { kind: *kind, id: (*id).into(), region: (*region).into() };
            assert_eq!(EndpointName::parse(host), Some(expected), "{host}");
        }
    }

    #[test]
    fn every_other_name_is_neutral() {
        for host in NEUTRAL {
            assert_eq!(EndpointName::parse(host), None, "{host}");
        }
        let long = |length| format!("{}.cabc.eu-north-1.rds.amazonaws.com", "d".repeat(length));
        assert!(EndpointName::parse(&long(63)).is_some());
        assert_eq!(EndpointName::parse(&long(64)), None);
        assert_eq!(EndpointName::parse(&long(10_000)), None);
        assert!(ENDPOINTS.len() + NEUTRAL.len() >= 60);
    }
}
