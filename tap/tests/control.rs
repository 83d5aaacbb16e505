//! The scripts of groups/control around the runner, with shell scripts in the places of the daemon and of the binaries.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lab;

use lab::{GOOD_DAEMON, Lab, Run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const GOOD: &str = "echo 1..1; echo ok 1 - fine";
const SCRIPTS: [&str; 5] =
    ["common", "ensure-infras", "run-tests-isolated", "destroy-infras", "cluster-simulator-ci"];

/// A workspace with the scripts, and a build of it.
struct Workspace(Lab);

impl Workspace {
    fn new(binaries: &[(&str, &str)]) -> Self {
        Self::with_daemon(GOOD_DAEMON, binaries)
    }

    fn with_daemon(daemon: &str, binaries: &[(&str, &str)]) -> Self {
        let lab = Lab::new(daemon, binaries);
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../groups/control");
        fs::create_dir(lab.path("groups/control")).unwrap();
        for script in SCRIPTS.map(|name| format!("{name}.bash")) {
            symlink(original.join(&script), lab.path("groups/control").join(script)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_tap-runner"), lab.path("bin/tap-runner")).unwrap();
        symlink(lab.path("daemon"), lab.path("bin/pointsman")).unwrap();
        Self(lab)
    }

    fn command(&self, script: &str, options: &[&str]) -> Command {
        let mut command = Command::new(self.0.path(&format!("groups/control/{script}.bash")));
        command.args(options).env("POINTSMAN_BUILD", self.0.path("bin"));
        command.env("INFRA_ID", "run-1").env("TAP_GROUP", "fake-g1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, script: &str, options: &[&str]) -> Run {
        self.command(script, options).output().unwrap().into()
    }

    /// The directory of a run of this INFRA_ID.
    fn logs(&self, run: &str) -> PathBuf {
        self.0.path("groups/logs/run-1").canonicalize().unwrap().join(run)
    }
}

#[test]
fn the_documented_local_run_ends_with_a_report() {
    let workspace = Workspace::new(&[("a-t", GOOD), ("b-t", GOOD)]);
    workspace.run("ensure-infras", &[]).expect(0, &["2 binaries are there\n"]);
    workspace.run("run-tests-isolated", &[]).expect(0, &["\n2 passed, 0 failed\n"]);
    workspace
        .run("run-tests-isolated", &["--only", "b-t", "--repeat", "3"])
        .expect(0, &["\n3 passed, 0 failed\n"]);
    let logs = workspace.logs("");
    workspace
        .run("destroy-infras", &[])
        .expect(0, &[&format!("logs are in {}", logs.parent().unwrap().display())]);
    assert!(logs.join("1/a-t.1.log").is_file() && logs.join("2/b-t.3.log").is_file());
}

#[test]
fn what_is_missing_is_said() {
    let workspace = Workspace::new(&[("a-t", "echo 1..1; echo not ok 1; exit 1")]);
    let refused = |script: &str, variable: Option<(&str, &str)>, message: &str| {
        let mut command = workspace.command(script, &[]);
        command.envs(variable);
        let run = Run::from(command.output().unwrap());
        run.expect(2, &[]);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    };
    for script in ["ensure-infras", "run-tests-isolated", "destroy-infras"] {
        refused(script, Some(("INFRA_ID", "")), "INFRA_ID must be a name");
        refused(script, Some(("INFRA_ID", "../x")), "INFRA_ID must be a name");
    }
    let mut relative = Command::new("bash");
    relative.arg("groups/control/ensure-infras.bash").env("CDPATH", ".");
    relative
        .env("POINTSMAN_BUILD", workspace.0.path("bin"))
        .env("INFRA_ID", "run-1")
        .env("TAP_GROUP", "fake-g1");
    relative.current_dir(workspace.0.path(""));
    Run::from(relative.output().unwrap()).expect(0, &["1 binaries are there\n"]);
    fs::remove_dir(workspace.logs("")).unwrap();
    refused("ensure-infras", Some(("TAP_GROUP", "")), "TAP_GROUP must name a group");
    refused("ensure-infras", Some(("TAP_GROUP", "other-g1")), "known groups: fake-g1");
    refused("ensure-infras", Some(("POINTSMAN_BUILD", "/nowhere")), "make test_rds_bgd");
    refused("run-tests-isolated", None, "run ensure-infras.bash first");
    workspace.run("destroy-infras", &[]).expect(0, &["no runs of run-1"]);

    workspace.run("ensure-infras", &[]).expect(0, &[]);
    workspace.run("run-tests-isolated", &[]).expect(1, &["\n0 passed, 1 failed\n"]);
}

#[test]
fn what_a_killed_runner_left_is_ended() {
    let binary =
        "sleep 600 & echo $! >$TAP_WORKDIR/child.new; mv $TAP_WORKDIR/child.new $TAP_WORKDIR/child; wait";
    let workspace = Workspace::new(&[("a-t", binary)]);
    workspace.run("ensure-infras", &[]).expect(0, &[]);
    let mut runner = workspace.command("run-tests-isolated", &[]).spawn().unwrap();
    let daemon = running(&workspace.logs("1/daemon.pid"));
    let binary = running(&workspace.logs("1/a-t.1.pid"));
    let child = running(&workspace.logs("1/child"));
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert!([daemon, binary, child].into_iter().all(is_alive));

    let run = workspace.run("destroy-infras", &[]);
    run.expect(0, &[&format!("stopping process {binary} with"), &format!("stopping process {daemon} with")]);
    lab::wait_for("all of them end", || ![daemon, binary, child].into_iter().any(is_alive));
    assert!(!run.stdout.contains("SIGKILL"), "{}", run.stdout);
    assert!(workspace.logs("1/daemon.log").is_file());
    for file in ["data", "daemon.pid", "runner.pid", "a-t.1.pid"] {
        assert!(!workspace.logs("1").join(file).exists(), "{file}");
    }
}

#[test]
fn a_daemon_that_was_not_ready_when_its_runner_was_killed_is_ended() {
    let workspace = Workspace::with_daemon("sleep 600 & wait", &[("a-t", GOOD)]);
    workspace.run("ensure-infras", &[]).expect(0, &[]);
    let mut runner = workspace.command("run-tests-isolated", &[]).spawn().unwrap();
    let daemon = running(&workspace.logs("1/daemon.pid"));
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert!(is_alive(daemon));
    workspace.run("destroy-infras", &[]).expect(0, &[&format!("stopping process {daemon} with")]);
    lab::wait_for("it ends", || !is_alive(daemon));
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_unless_nohup_says_otherwise() {
    for (nohup, status, verdict) in [(false, 1, "killed: interrupted"), (true, 0, "\n1 passed, 0 failed\n")] {
        let workspace = Workspace::new(&[(
            "a-t",
            &format!("echo >$TAP_WORKDIR/runs; while [ ! -e $TAP_WORKDIR/go ]; do sleep 0.02; done; {GOOD}"),
        )]);
        workspace.run("ensure-infras", &[]).expect(0, &[]);
        let command = workspace.command("run-tests-isolated", &[]);
        // Set either way: what runs the tests may have the signal ignored itself.
        let hangup = if nohup { "--ignore-signal=HUP" } else { "--default-signal=HUP" };
        let mut wrapped = Command::new("env");
        wrapped.arg(hangup).arg(command.get_program());
        wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let runner =
            wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        lab::wait_for("the binary runs", || workspace.logs("1/runs").exists());
        kill_process(Pid::from_child(&runner), Signal::HUP).unwrap();
        if nohup {
            fs::write(workspace.logs("1/go"), "").unwrap();
        }
        Run::from(runner.wait_with_output().unwrap()).expect(status, &[verdict]);
    }
}

#[test]
fn a_runner_at_work_is_ended_with_its_daemon() {
    let workspace = Workspace::new(&[("a-t", "sleep 600")]);
    workspace.run("ensure-infras", &[]).expect(0, &[]);
    let runner = workspace.command("run-tests-isolated", &[]).spawn().unwrap();
    let daemon = running(&workspace.logs("1/daemon.pid"));
    // Before that it would not be run at all.
    running(&workspace.logs("1/a-t.1.pid"));
    // Waited for at once, or else it would be there until then.
    let waiting = std::thread::spawn(move || Run::from(Child::wait_with_output(runner).unwrap()));
    workspace.run("destroy-infras", &[]).expect(0, &["with SIGTERM"]);
    assert!(!is_alive(daemon));
    waiting.join().unwrap().expect(1, &["killed: interrupted"]);
}

#[test]
fn a_process_that_has_the_number_by_now_is_left_alone() {
    let workspace = Workspace::new(&[("a-t", GOOD)]);
    workspace.run("ensure-infras", &[]).expect(0, &[]);
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    fs::create_dir(workspace.logs("1")).unwrap();
    for file in ["1/runner.pid", "1/daemon.pid", "1/a-t.1.pid"] {
        fs::write(workspace.logs(file), other.id().to_string()).unwrap();
    }
    let run = workspace.run("destroy-infras", &[]);
    let spared = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    run.expect(0, &[]);
    assert!(spared && !run.stdout.contains("stopping"), "{}", run.stdout);
}

#[test]
fn ci_takes_the_groups_from_the_registry_and_notices_a_changed_build() {
    let workspace = Workspace::new(&[("a-t", GOOD)]);
    let registry = r#"{"a-t": ["cluster_sim_b-g1", "cluster_sim_a-g1"], "b-t": ["cluster_sim_b-g1"], "c-t": ["other-g1"]}"#;
    fs::write(workspace.0.path("groups/groups.json"), registry).unwrap();
    let groups = workspace.run("cluster-simulator-ci", &["groups"]);
    assert_eq!(
        (groups.status, groups.stdout.as_str()),
        (Some(0), "[\"cluster_sim_a-g1\", \"cluster_sim_b-g1\"]\n")
    );
    for (registry, problem) in [
        (r#"{"a-t": ["cluster_sim_a-g1"], "a-t": ["other-g1"]}"#, "groups.json: 'a-t' is there twice"),
        (r#"{"a-t": "#, "groups.json: Expecting value"),
    ] {
        fs::write(workspace.0.path("groups/groups.json"), registry).unwrap();
        let refused = workspace.run("cluster-simulator-ci", &["groups"]);
        refused.expect(1, &[]);
        assert!(
            refused.stderr.contains(problem) && !refused.stderr.contains("Traceback"),
            "{}",
            refused.stderr
        );
    }
    let nothing = workspace.run("cluster-simulator-ci", &["verify", "bin"]);
    nothing.expect(2, &[]);
    assert!(nothing.stderr.contains("holds no build"), "{}", nothing.stderr);
}

/// The process whose number a file has, once it is there.
fn running(pid_file: &Path) -> u32 {
    let mut pid = None;
    lab::wait_for("the daemon starts", || {
        pid = fs::read_to_string(pid_file).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    pid.unwrap()
}

fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}
