//! The fixed host map and the deployments made from it.

use crate::simulator::{RdsBgdCluster, RdsBgdHost};
use std::net::IpAddr;

/// The map as a hosts file: address first.
pub const HOST_MAP: &str = include_str!("../../hosts/cluster_sim_rds_bgd");

/// The entries of a hosts file with one name per address, as (address, name). Comments and blank lines are skipped.
pub fn entries(hosts_file: &str) -> impl Iterator<Item = (&str, &str)> {
    hosts_file.lines().filter_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        Some((words.next()?, words.next()?))
    })
}

/// The map as lines of a hosts file, whichever of name and address its lines begin with. The error is the first line that
/// does not have one of each.
pub fn address_first(map: &str) -> Result<String, String> {
    let is_address = |word: &str| word.parse::<IpAddr>().is_ok();
    entries(map)
        .map(|(first, second)| match (is_address(first), is_address(second)) {
            (true, false) => Ok(format!("{first} {second}\n")),
            (false, true) => Ok(format!("{second} {first}\n")),
            _ => Err(format!("{first} {second}")),
        })
        .collect()
}

/// Cluster 1 with green deployment A: the normal case.
pub fn cluster_1_green_a(port: u16) -> RdsBgdCluster {
    cluster(11, 14, port)
}

/// Cluster 1 with green deployment B: a second switchover of the same blue servers.
pub fn cluster_1_green_b(port: u16) -> RdsBgdCluster {
    cluster(11, 17, port)
}

/// Cluster 2: a second deployment beside cluster 1.
pub fn cluster_2(port: u16) -> RdsBgdCluster {
    cluster(20, 23, port)
}

/// Cluster 3: a third deployment beside clusters 1 and 2.
pub fn cluster_3(port: u16) -> RdsBgdCluster {
    cluster(26, 29, port)
}

/// The cluster whose blue and green writers are 127.10.0.BLUE and 127.10.0.GREEN; two readers follow each of them.
fn cluster(blue: u8, green: u8, port: u16) -> RdsBgdCluster {
    RdsBgdCluster {
        blue_writer: host(blue, port),
        green_writer: host(green, port),
        blue_readers: vec![host(blue + 1, port), host(blue + 2, port)],
        green_readers: vec![host(green + 1, port), host(green + 2, port)],
    }
}

fn host(last_octet: u8, port: u16) -> RdsBgdHost {
    let ip = format!("127.10.0.{last_octet}");
    // The map is part of the program and the tests build every cluster, so an address that is asked for is in it.
    let (_, hostname) =
        entries(HOST_MAP).find(|(address, _)| *address == ip).expect("address of the fixed host map");
    RdsBgdHost { hostname: hostname.to_owned(), ip, port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_groups_add_hosts_is_the_same_map_name_first() {
        let add_hosts = include_str!("../../groups/cluster_sim_rds_bgd/add-hosts");
        let swapped = address_first(add_hosts).unwrap();
        assert_eq!(swapped, address_first(HOST_MAP).unwrap());
        assert_eq!(swapped.lines().count(), 21);
        assert!(entries(add_hosts).all(|(name, _)| name.ends_with(".rds.amazonaws.com")));
    }

    #[test]
    fn addresses_and_names_are_distinct() {
        let addresses: HashSet<_> = entries(HOST_MAP).map(|(address, _)| address).collect();
        let names: HashSet<_> = entries(HOST_MAP).map(|(_, name)| name).collect();
        assert_eq!((addresses.len(), names.len()), (21, 21));
    }

    #[test]
    fn green_names_keep_the_blue_label_and_domain() {
        for cluster in [cluster_1_green_a(3306), cluster_1_green_b(3306), cluster_2(3306), cluster_3(3306)] {
            let blue = std::iter::once(&cluster.blue_writer).chain(&cluster.blue_readers);
            let green = std::iter::once(&cluster.green_writer).chain(&cluster.green_readers);
            for (blue, green) in blue.zip(green) {
                let (label, domain) = blue.hostname.split_once('.').unwrap();
                let suffix = green.hostname.strip_prefix(&format!("{label}-green-")).unwrap();
                assert_eq!(suffix.split_once('.').unwrap().1, domain);
            }
        }
    }

    #[test]
    fn comments_and_incomplete_lines_are_no_entries() {
        let text = "# c\n\n127.0.0.1 a # b\n127.0.0.2\n";
        assert_eq!(entries(text).collect::<Vec<_>>(), [("127.0.0.1", "a")]);
    }

    #[test]
    fn either_order_becomes_a_hosts_file_and_anything_else_is_shown() {
        assert_eq!(address_first("a 127.0.0.1\n::1 b\n").unwrap(), "127.0.0.1 a\n::1 b\n");
        assert_eq!(address_first("127.0.0.1 a\nb c\n"), Err("b c".to_owned()));
        assert_eq!(address_first("127.0.0.1 ::1\n"), Err("127.0.0.1 ::1".to_owned()));
    }
}
