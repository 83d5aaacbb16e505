//! A test group of shell scripts in a directory of its own, and the runner on it.
//!
//! Shared by the tests of the runner and of the scripts around it; each uses what it needs of it.

#![allow(dead_code)]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Says that it is ready, logs what it finds in the file `say`, and ends well when it is asked to. `$3` is its data directory.
pub const GOOD_DAEMON: &str = r#"echo daemon starts "$@" >&2
trap 'exit 0' TERM
printf 'admin 127.0.0.1:1\nmysql 127.0.0.1:2\nsqliteserver 127.0.0.1:3\n' >"$3/ports"
while :; do
    say="$3/../say"
    if [ -s "$say" ]; then cat "$say" >&2; rm "$say"; fi
    sleep 0.02
done"#;

const DEADLINE: Duration = Duration::from_secs(60);

/// The group `fake-g1`, its binaries and its daemon.
pub struct Lab {
    directory: tempfile::TempDir,
}

/// What the runner did.
pub struct Run {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A runner that has not been waited for.
pub struct Runner(Child);

impl Lab {
    /// The daemon and the binaries by name, as shell scripts.
    pub fn new(daemon: &str, binaries: &[(&str, &str)]) -> Self {
        let lab = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(lab.path("groups/fake")).unwrap();
        fs::create_dir(lab.path("bin")).unwrap();
        fs::write(lab.path("groups/groups.json"), "{}").unwrap();
        script(&lab.path("daemon"), daemon);
        for (name, text) in binaries {
            script(&lab.path("bin").join(name), text);
            lab.register(name);
        }
        lab
    }

    /// Adds a binary to the group.
    pub fn register(&self, name: &str) {
        let path = self.path("groups/groups.json");
        let text = fs::read_to_string(&path).unwrap();
        let comma = if text == "{}" { "" } else { "," };
        let text = text.replace('}', &format!("{comma}\"{name}\": [\"fake-g1\"]}}"));
        fs::write(path, text).unwrap();
    }

    /// Adds a file to the group's folder.
    pub fn hook(&self, name: &str, text: &str) {
        fs::write(self.path("groups/fake").join(name), text).unwrap();
    }

    /// Puts a script in the place of a program that the runner uses.
    pub fn shadow(&self, program: &str, text: &str) {
        fs::create_dir_all(self.path("shadow")).unwrap();
        script(&self.path("shadow").join(program), text);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of a run.
    pub fn logs(&self, run: u32) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(format!("groups/logs/{run}"))
    }

    pub fn start(&self, options: &[&str]) -> Runner {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tap-runner"));
        command.args(["--daemon", "daemon", "--group", "fake-g1", "--binaries", "bin"]).args(options);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.path("shadow").display()));
        command.current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Runner(command.spawn().unwrap())
    }

    pub fn run(&self, options: &[&str]) -> Run {
        self.start(options).wait()
    }
}

impl Runner {
    pub fn terminate(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
    }

    /// Closes the other end of its standard output.
    pub fn stop_reading(&mut self) {
        self.0.stdout = None;
    }

    pub fn wait(self) -> Run {
        self.0.wait_with_output().unwrap().into()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Run {
    /// The exit status, and what the standard output contains.
    #[track_caller]
    pub fn expect(&self, status: i32, parts: &[&str]) {
        let shown = format!("{}\n{}", self.stdout, self.stderr);
        assert_eq!(self.status, Some(status), "{shown}");
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is missing:\n{shown}");
        }
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Written by a child process: were it open for writing here while another test forks, starting it would fail.
fn script(path: &Path, text: &str) {
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod +x \"$0\"";
    let status = Command::new("sh").args(["-c", write]).arg(path).arg(text).status().unwrap();
    assert!(status.success());
}
