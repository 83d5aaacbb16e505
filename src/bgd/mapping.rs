//! Which green server stands for which blue one.

use crate::hostgroups::{Endpoint, HostgroupId, Hostgroups, ServerStatus};
use admin::rows::BgdHostgroupRow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// One server of a deployment's hostgroups as it is placed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub endpoint: Endpoint,
    /// Whether connections to it use TLS.
    pub use_ssl: bool,
    /// Its status, but for what ends by itself.
    pub status: ServerStatus,
}

impl Member {
    /// OFFLINE_SOFT and OFFLINE_HARD servers take no part (contract: "Blue/Green Mapping").
    pub fn eligible(&self) -> bool {
        !self.status.is_offline()
    }
}

/// The servers of a deployment's four hostgroups at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// Members of the writer hostgroup.
    pub blue_writers: Vec<Member>,
    /// Members of the reader hostgroup.
    pub blue_readers: Vec<Member>,
    /// Members of the green writer hostgroup; none in automatic mode.
    pub green_writers: Vec<Member>,
    /// Members of the green reader hostgroup; none in automatic mode.
    pub green_readers: Vec<Member>,
}

impl Members {
    /// The servers of a deployment as they are placed now. OFFLINE_HARD ones are there for their connections alone and left out.
    pub fn of(hostgroups: &Hostgroups, row: &BgdHostgroupRow) -> Self {
        let members = |hostgroup: HostgroupId| -> Vec<Member> {
            let present =
                hostgroups.members(hostgroup).filter(|(_, s)| s.status != ServerStatus::OfflineHard);
            let member = present.map(|(endpoint, server)| Member {
                endpoint: endpoint.clone(),
                use_ssl: server.row.use_ssl,
                status: server.lasting_status(),
            });
            member.collect()
        };
        Self {
            blue_writers: members(row.writer_hostgroup),
            blue_readers: members(row.reader_hostgroup),
            green_writers: row.green_writer_hostgroup.map(members).unwrap_or_default(),
            green_readers: row.green_reader_hostgroup.map(members).unwrap_or_default(),
        }
    }
    /// The green writer's row for a target host; names are compared without case here alone. An OFFLINE_HARD one is as good
    /// as absent: it is there for its connections, or to be restored.
    pub fn green_writer(&self, host: &str, port: u16) -> Option<&Member> {
        self.green_writers.iter().find(|member| {
            member.endpoint.port == port
                && member.endpoint.host.eq_ignore_ascii_case(host)
                && member.status != ServerStatus::OfflineHard
        })
    }
    /// A writer that its deployment has demoted counts as the writer it is: whoever maps it anew must find it, whether it is
    /// about to be restored or to stay where it is.
    pub fn restore_writer(&mut self, demoted: &Endpoint) {
        if self.blue_writers.iter().all(|member| member.endpoint != *demoted) {
            self.blue_writers.extend(self.blue_readers.extract_if(.., |member| member.endpoint == *demoted));
        }
    }
    /// Every blue endpoint.
    pub fn blue_endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints: Vec<_> = self
            .blue_writers
            .iter()
            .chain(&self.blue_readers)
            .map(|member| member.endpoint.clone())
            .collect();
        endpoints.sort();
        endpoints.dedup();
        endpoints
    }
}

/// Whether a pair is the deployment's writer or one of its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The topology's target and the blue writer it replaces.
    Writer,
    /// Configured readers.
    Reader,
}

/// A green server's address, found by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GreenAddress {
    /// The address.
    pub ip: IpAddr,
    /// When it has to be looked up again.
    pub valid_until: Instant,
}

/// A blue server and its green counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Writer or reader.
    pub role: Role,
    /// The blue server.
    pub blue: Endpoint,
    /// The green server's name.
    pub green_host: Arc<str>,
    /// Whether connections to the green server use TLS.
    pub green_use_ssl: bool,
    /// The configured green row is OFFLINE_SOFT: the pair is never resolved, pinned or probed.
    pub offline: bool,
    /// The green server's address, once it is known.
    pub green: Option<GreenAddress>,
    /// The blue name is pinned to the green address.
    pub pinned: bool,
    /// The blue server's connections were drained, which is done once: those by the blue name may lead to the green server since.
    pub drained: bool,
    /// Its pin was given up because the green writer did not answer; it is pinned again once that one answers.
    pub given_up: bool,
}

impl Pair {
    fn new(role: Role, blue: &Endpoint, green_host: &str, green_use_ssl: bool, offline: bool) -> Self {
        let green_host = Arc::from(green_host);
        let blue = blue.clone();
        let (green, pinned, drained, given_up) = Default::default();
        Self { role, blue, green_host, green_use_ssl, offline, green, pinned, drained, given_up }
    }
    /// Whether the green name has to be looked up. A pinned pair keeps the address it is pinned to.
    pub fn needs_address(&self, now: Instant) -> bool {
        !self.offline && !self.pinned && self.green.is_none_or(|green| green.valid_until <= now)
    }
    /// Where the green server is reached: its address and the blue server's port (contract: "Direct-Probe Tuple").
    pub fn green_address(&self) -> Option<SocketAddr> {
        self.green.map(|green| SocketAddr::new(green.ip, self.blue.port))
    }
}

/// The pairs of one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The target endpoint it was built for.
    pub target: String,
    /// Writer first, if its blue server was found.
    pub pairs: Vec<Pair>,
}

impl Map {
    /// Pairs the servers: the writer by the topology's target, readers among configured servers.
    pub fn build(row: &BgdHostgroupRow, members: &Members, target: &str) -> Self {
        let mut pairs = Vec::new();
        let blue_writer =
            members.blue_writers.iter().find(|blue| blue.eligible() && is_pair(&blue.endpoint.host, target));
        if let Some(blue) = blue_writer {
            let green =
                row.green_writer_hostgroup.and_then(|_| members.green_writer(target, blue.endpoint.port));
            let use_ssl = green.map_or(blue.use_ssl, |green| green.use_ssl);
            let offline = green.is_some_and(|green| !green.eligible());
            pairs.push(Pair::new(Role::Writer, &blue.endpoint, target, use_ssl, offline));
        }
        if row.green_reader_hostgroup.is_some() {
            let writer = blue_writer.map(|member| &member.endpoint);
            for blue in members.blue_readers.iter().filter(|m| m.eligible() && Some(&m.endpoint) != writer) {
                let green = members
                    .green_readers
                    .iter()
                    .find(|green| green.eligible() && is_pair(&blue.endpoint.host, &green.endpoint.host));
                if let Some(green) = green {
                    pairs.push(Pair::new(
                        Role::Reader,
                        &blue.endpoint,
                        &green.endpoint.host,
                        green.use_ssl,
                        false,
                    ));
                }
            }
        }
        Self { target: target.to_owned(), pairs }
    }
    /// The writer's pair.
    pub fn writer(&self) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.role == Role::Writer)
    }
    /// The writer's pair.
    pub fn writer_mut(&mut self) -> Option<&mut Pair> {
        self.pairs.iter_mut().find(|pair| pair.role == Role::Writer)
    }
    /// Whether an endpoint is the blue half of a pair.
    pub fn has_blue(&self, endpoint: &Endpoint) -> bool {
        self.pairs.iter().any(|pair| pair.blue == *endpoint)
    }
}

/// RDS names the green copy of `db.suffix` `db-green-xxxxxx.suffix`. Names are compared byte by byte; `-old1` names are
/// nothing special.
pub fn is_pair(blue: &str, green: &str) -> bool {
    let ((blue_label, blue_domain), (green_label, green_domain)) = (split(blue), split(green));
    let prefix = green_label.split_once("-green-").map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| !prefix.is_empty() && prefix == blue_label) && blue_domain == green_domain
}

fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('.').map_or((name, None), |(label, domain)| (label, Some(domain)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(green: Option<u32>) -> BgdHostgroupRow {
        let green_reader_hostgroup = green.map(|id| id + 1);
        BgdHostgroupRow {
            green_writer_hostgroup: green,
            green_reader_hostgroup,
            ..crate::bgd::fixtures::row()
        }
    }
    fn member(host: &str, use_ssl: bool, status: ServerStatus) -> Member {
        Member { endpoint: Endpoint::new(host, 3306), use_ssl, status }
    }
    fn online(host: &str) -> Member {
        member(host, false, ServerStatus::Online)
    }

    #[test]
    fn names_pair_as_rds_makes_them() {
        for (blue, green, expected) in [
            ("db.x.rds.amazonaws.com", "db-green-abc123.x.rds.amazonaws.com", true),
            ("db.x.rds.amazonaws.com", "db-green-.x.rds.amazonaws.com", true),
            ("db", "db-green-1", true),
            ("a.x", "a-green-b-green-c.x", true),
            ("a-green-b.x", "a-green-b-green-c.x", false),
            ("db.x", "db.x", false),
            ("db.x", "DB-green-1.x", false),
            ("db.x", "db-GREEN-1.x", false),
            ("db.x", "db-green-1.y", false),
            ("db.x", "db-green-1.x.", false),
            ("db", "db-green-1.", false),
            ("db-old1.x", "db-green-1.x", false),
            (".x", "-green-1.x", false),
            ("", "", false),
        ] {
            assert_eq!(is_pair(blue, green), expected, "{blue} {green}");
        }
    }

    #[test]
    fn the_writer_is_the_eligible_member_that_the_target_names() {
        let members = Members {
            blue_writers: vec![
                member("db.x", true, ServerStatus::OfflineSoft),
                Member { endpoint: Endpoint::new("db.x", 3307), ..member("", true, ServerStatus::Shunned) },
                online("other.x"),
            ],
            ..Members::default()
        };
        let map = Map::build(&row(None), &members, "db-green-1.x");
        let writer = map.writer().expect("a pair");
        assert_eq!(writer.blue, Endpoint::new("db.x", 3307));
        assert!(writer.green_use_ssl, "automatic mode uses the blue writer's TLS");
        assert!(Map::build(&row(None), &members, "no-green-1.x").pairs.is_empty());
    }

    #[test]
    fn tls_of_the_green_writer_comes_from_its_own_row() {
        let mut members = Members { blue_writers: vec![online("db.x")], ..Members::default() };
        members.green_writers = vec![member("DB-green-1.x", true, ServerStatus::Online)];
        assert!(
            Map::build(&row(Some(30)), &members, "db-green-1.x").writer().is_some_and(|w| w.green_use_ssl)
        );
        members.green_writers[0].endpoint.port = 3307;
        assert!(
            Map::build(&row(Some(30)), &members, "db-green-1.x").writer().is_some_and(|w| !w.green_use_ssl)
        );
    }

    #[test]
    fn an_offline_green_writer_is_never_looked_up() {
        let now = Instant::now();
        for (status, offline) in [
            (ServerStatus::OfflineSoft, true),
            (ServerStatus::OfflineHard, false),
            (ServerStatus::Shunned, false),
        ] {
            let members = Members {
                blue_writers: vec![online("db.x")],
                green_writers: vec![member("db-green-1.x", false, status)],
                ..Members::default()
            };
            let map = Map::build(&row(Some(30)), &members, "db-green-1.x");
            let writer = map.writer().expect("a pair");
            assert_eq!((writer.offline, writer.needs_address(now)), (offline, !offline), "{status:?}");
        }
    }

    #[test]
    fn readers_pair_by_name_among_eligible_configured_servers() {
        let members = Members {
            blue_writers: vec![online("db.x")],
            blue_readers: vec![
                online("db.x"),
                online("r1.x"),
                online("r2.x"),
                online("r3.x"),
                member("r4.x", false, ServerStatus::OfflineSoft),
            ],
            green_writers: Vec::new(),
            green_readers: vec![
                online("db-green-9.x"),
                member("r1-green-1.x", false, ServerStatus::Shunned),
                member("r2-green-1.x", false, ServerStatus::OfflineHard),
                online("r4-green-1.x"),
            ],
        };
        let map = Map::build(&row(Some(30)), &members, "db-green-1.x");
        let blues: Vec<_> = map.pairs.iter().map(|pair| (pair.role, &*pair.blue.host)).collect();
        assert_eq!(blues, [(Role::Writer, "db.x"), (Role::Reader, "r1.x")]);
        assert_eq!(Map::build(&row(None), &members, "db-green-1.x").pairs.len(), 1);
    }

    #[test]
    fn each_pair_has_the_port_of_its_own_blue_server() {
        let at = |host, port| Member { endpoint: Endpoint::new(host, port), ..online("") };
        let members = Members {
            blue_writers: vec![at("db.x", 3307)],
            blue_readers: vec![at("r1.x", 3308)],
            green_writers: vec![at("db-green-1.x", 3307)],
            green_readers: vec![at("r1-green-1.x", 3308)],
        };
        let mut map = Map::build(&row(Some(30)), &members, "db-green-1.x");
        let green = GreenAddress { ip: [127, 0, 0, 1].into(), valid_until: Instant::now() };
        map.pairs.iter_mut().for_each(|pair| pair.green = Some(green));
        let ports: Vec<_> = map.pairs.iter().filter_map(Pair::green_address).map(|at| at.port()).collect();
        assert_eq!(ports, [3307, 3308]);
    }

    #[test]
    fn an_address_is_looked_up_again_when_it_expires_unless_pinned() {
        let now = Instant::now();
        let mut pair = Pair::new(Role::Writer, &Endpoint::new("db.x", 3306), "db-green-1.x", false, false);
        assert!(pair.needs_address(now));
        let later = now + Duration::from_secs(5);
        pair.green = Some(GreenAddress { ip: [127, 0, 0, 1].into(), valid_until: later });
        assert!(!pair.needs_address(now));
        assert!(pair.needs_address(later));
        assert_eq!(pair.green_address(), Some(([127, 0, 0, 1], 3306).into()));
        pair.pinned = true;
        assert!(!pair.needs_address(later));
    }
}
