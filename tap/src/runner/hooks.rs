//! The hooks in a group's folder, as far as it has them.

use super::{Places, RunError, group};
use crate::command_line::CommandLine;
use crate::interrupt::Interrupt;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Hooks make preparations of some seconds at most.
const HOOK_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The file that env.sh names in CLUSTER_SIM_HOST_FILE.
pub fn host_file(places: &Places, interrupt: &Interrupt) -> Result<Option<PathBuf>, RunError> {
    let hook = places.folder.join("env.sh");
    if !hook.exists() {
        return Ok(None);
    }
    let mut command = Command::new("bash");
    command.args(["-c", r#"set -eu; . "$0" >&2; printf %s "${CLUSTER_SIM_HOST_FILE:-}""#]).arg(&hook);
    let path = run(command.stdout(Stdio::piped()), &hook, places, interrupt)?;
    Ok((!path.is_empty()).then(|| path.into()))
}

/// pre-proxysql.bash, then pre-proxysql.sql on the admin port.
pub fn before_tests(
    places: &Places,
    command_line: &CommandLine,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let hook = places.folder.join("pre-proxysql.bash");
    if hook.exists() {
        let mut command = Command::new("bash");
        command.arg(&hook).envs(command_line.to_environment());
        run(&mut command, &hook, places, interrupt)?;
    }
    let statements = group::setup_statements(&places.folder, command_line.simulator.port)?;
    if !statements.is_empty() {
        let mut admin = command_line.connect_admin()?;
        statements.iter().try_for_each(|statement| admin.execute(statement).map(drop))?;
    }
    Ok(())
}

/// Runs `command` to its end; what it wrote, a line or two, if its output is a pipe.
fn run(
    command: &mut Command,
    hook: &Path,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<String, RunError> {
    let running = || RunError::io(format!("running {}", hook.display()));
    // A process group of its own, so that what it has started can be ended with it.
    command.env("WORKSPACE", &places.workspace).stdin(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(running())?;
    let deadline = Instant::now() + HOOK_TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(running())? {
            break Some(status);
        }
        if interrupt.raised() || Instant::now() >= deadline {
            break None;
        }
        thread::sleep(POLL_INTERVAL);
    };
    let problem = match status {
        Some(status) if status.success() => {
            let mut output = String::new();
            let read = child.stdout.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut output));
            return read.map(|_| output).map_err(running());
        }
        Some(status) => status.to_string(),
        None => abandon(child, interrupt),
    };
    Err(RunError::Hook { hook: hook.to_owned(), problem })
}

fn abandon(mut child: Child, interrupt: &Interrupt) -> String {
    // It may just have ended by itself.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    if interrupt.raised() {
        "interrupted".to_owned()
    } else {
        format!("it ran longer than {} s", HOOK_TIMEOUT.as_secs())
    }
}
