//! A network and mount namespace of the runner's own: 3306, 6032 and 6033 are free whatever else runs on the machine, and
//! /etc/hosts knows the group's names.

use super::host_map::SYSTEM_HOSTS;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, io};

/// The option that the process inside the namespace gets besides, with the run's directory. An environment variable would reach the
/// daemon and the binaries as well.
pub const INSIDE: &str = "inside";
/// Root may make namespaces; others may where user namespaces are allowed.
const WAYS: [&[&str]; 2] = [&["--net", "--mount"], &["--user", "--map-root-user", "--net", "--mount"]];
/// `$0` is the hosts file, or empty; the arguments are the program to become.
const PREPARE: &str =
    r#"ip link set dev lo up && { [ -z "$0" ] || mount --bind "$0" "$SYSTEM_HOSTS"; } && exec "$@""#;

/// Whether [`enter`] can succeed here.
pub fn available() -> bool {
    way(Some(Path::new(SYSTEM_HOSTS))).is_some()
}

/// Replaces this process by itself inside new namespaces with loopback up and `hosts` as /etc/hosts. Returns only if that is
/// not possible, with the reason.
pub fn enter(run_directory: &Path, hosts: Option<&Path>) -> String {
    match way(hosts) {
        Some(way) => format!("unshare: {}", become_isolated(way, run_directory, hosts)),
        None => {
            "no network and mount namespace can be made (unshare, ip link set lo up, mount --bind)".to_owned()
        }
    }
}

fn way(hosts: Option<&Path>) -> Option<&'static [&'static str]> {
    WAYS.into_iter().find(|way| works(way, hosts))
}

fn unshare(way: &[&str], hosts: Option<&Path>) -> Command {
    let mut command = Command::new("unshare");
    command.args(way).args(["--", "sh", "-c", PREPARE]);
    command.arg(hosts.unwrap_or(Path::new(""))).env("SYSTEM_HOSTS", SYSTEM_HOSTS);
    command
}

fn works(way: &[&str], hosts: Option<&Path>) -> bool {
    let mut probe = unshare(way, hosts);
    probe.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn become_isolated(way: &[&str], run_directory: &Path, hosts: Option<&Path>) -> io::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut command = unshare(way, hosts);
    command.arg(program).args(env::args_os().skip(1));
    command.arg(format!("--{INSIDE}")).arg(run_directory).exec()
}
