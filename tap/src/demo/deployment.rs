//! The demonstration's deployment: cluster 1 of the host map, and the names that AWS moves at the end.

use crate::admin::{self, Hostgroups};
use crate::command_line::CommandLine;
use crate::connection::{Connection, Error, quote};
use crate::hosts::{self, HOST_MAP};
use crate::simulator::{RdsBgdCluster, RdsBgdHost, RdsBgdSimulator};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The deployment's hostgroups.
pub const HOSTGROUPS: Hostgroups = Hostgroups::starting_at(10);

/// Configures account, simulator and deployment, so that traffic can start. No topology is published yet.
pub fn configure(
    command_line: &CommandLine,
    admin: &mut Connection,
    cluster: &RdsBgdCluster,
) -> Result<RdsBgdSimulator, Error> {
    let account = &command_line.client;
    admin.execute(&format!(
        "INSERT OR REPLACE INTO mysql_users(username,password,default_hostgroup,active) VALUES ({},{},{},1)",
        quote(&account.username),
        quote(&account.password),
        HOSTGROUPS.writer
    ))?;
    admin.execute("LOAD MYSQL USERS TO RUNTIME")?;
    admin::configure_monitor(admin, account)?;
    // The simulator knows the account only now, and must know the writer before the monitor asks.
    let mut simulator = RdsBgdSimulator::connect(command_line.simulator.clone(), account, false)?;
    simulator.read_only_update(&cluster.blue_writer.host_endpoint(), false)?;

    let mut members =
        vec![(HOSTGROUPS.writer, &cluster.blue_writer), (HOSTGROUPS.green_writer, &cluster.green_writer)];
    members.extend(cluster.blue_readers.iter().map(|host| (HOSTGROUPS.reader, host)));
    members.extend(cluster.green_readers.iter().map(|host| (HOSTGROUPS.green_reader, host)));
    admin::configure_deployment(admin, HOSTGROUPS, &members)?;
    Ok(simulator)
}

/// The daemon's view of DNS: a hosts file that changes as AWS changes its names.
pub struct Names {
    path: PathBuf,
}

impl Names {
    /// Writes the fixed map into `directory`.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join("hosts");
        fs::write(&path, HOST_MAP)?;
        Ok(Self { path })
    }

    /// For `--hosts-file`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on the blue names of `cluster` lead to its green servers.
    pub fn move_to_green(&self, cluster: &RdsBgdCluster) -> io::Result<()> {
        let next = self.path.with_extension("next");
        fs::write(&next, moved_to_green(cluster))?;
        // In one step, so that nobody reads half a file.
        fs::rename(next, &self.path)
    }
}

fn moved_to_green(cluster: &RdsBgdCluster) -> String {
    let pairs: Vec<(&RdsBgdHost, &RdsBgdHost)> =
        std::iter::once((&cluster.blue_writer, &cluster.green_writer))
            .chain(cluster.blue_readers.iter().zip(&cluster.green_readers))
            .collect();
    let line = |(address, name): (&str, &str)| {
        let moved = pairs.iter().find(|(blue, _)| blue.hostname == name);
        format!("{} {name}\n", moved.map_or(address, |(_, green)| green.ip.as_str()))
    };
    hosts::entries(HOST_MAP).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_blue_names_of_the_cluster_move() {
        let cluster = hosts::cluster_1_green_a(3306);
        let text = moved_to_green(&cluster);
        let changed: Vec<_> = hosts::entries(HOST_MAP)
            .zip(hosts::entries(&text))
            .filter(|(before, after)| before != after)
            .map(|((from, name), (to, same))| {
                assert_eq!(name, same);
                (from, to)
            })
            .collect();
        let expected =
            [("127.10.0.11", "127.10.0.14"), ("127.10.0.12", "127.10.0.15"), ("127.10.0.13", "127.10.0.16")];
        assert_eq!(changed, expected);
        assert_eq!(hosts::entries(&text).count(), 21);
    }

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let names = Names::create(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(names.path()).unwrap(), HOST_MAP);
        names.move_to_green(&hosts::cluster_1_green_a(3306)).unwrap();
        assert!(fs::read_to_string(names.path()).unwrap().contains("127.10.0.14 db-1.c1yqcg0ie39o"));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
