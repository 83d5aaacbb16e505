//! A network namespace of the runner's own, so that 3306, 6032 and 6033 are free whatever else runs on the machine.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::{env, io};

/// Set for the process inside the namespace, so that it does not isolate itself again.
const ISOLATED: &str = "TAP_RUNNER_ISOLATED";
const BRING_UP_LOOPBACK: [&str; 6] = ["ip", "link", "set", "dev", "lo", "up"];
/// Root may make a namespace; others may where user namespaces are allowed.
const WAYS: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];

/// Whether this process is already inside.
pub fn isolated() -> bool {
    env::var_os(ISOLATED).is_some()
}

/// Replaces this process by itself inside a new namespace with loopback up. Returns only if that is not possible, with
/// the reason.
pub fn enter() -> String {
    match WAYS.into_iter().find(|way| works(way)) {
        Some(way) => format!("unshare: {}", execute(way)),
        None => "`unshare --net` with `ip link set lo up` is not available here".to_owned(),
    }
}

fn works(way: &[&str]) -> bool {
    let mut probe = Command::new("unshare");
    probe.args(way).arg("--").args(BRING_UP_LOOPBACK);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn execute(way: &[&str]) -> io::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let bring_up_and_run = format!("{} && exec \"$0\" \"$@\"", BRING_UP_LOOPBACK.join(" "));
    Command::new("unshare")
        .args(way)
        .args(["--", "sh", "-c", &bring_up_and_run])
        .arg(program)
        .args(env::args_os().skip(1))
        .env(ISOLATED, "1")
        .exec()
}
