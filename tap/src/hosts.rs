//! The fixed host map and the deployments made from it.

use crate::simulator::{RdsBgdCluster, RdsBgdHost};

/// The map as a hosts file: address first.
pub const HOST_MAP: &str = include_str!("../../hosts/cluster_sim_rds_bgd");

/// The entries of a hosts file with one name per address, as (address, name). Comments and blank lines are skipped.
pub fn entries(hosts_file: &str) -> impl Iterator<Item = (&str, &str)> {
    hosts_file.lines().filter_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        Some((words.next()?, words.next()?))
    })
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
        let swapped: Vec<_> = entries(add_hosts).map(|(name, address)| (address, name)).collect();
        assert_eq!(swapped, entries(HOST_MAP).collect::<Vec<_>>());
        assert_eq!(swapped.len(), 21);
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
}
