//! The runner as a process, with shell scripts in the places of the daemon and of the binaries.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lab;

use lab::{GOOD_DAEMON, Lab};
use std::fs;
use std::path::Path;
use std::process::Command;

const GOOD: &str = "echo 1..1; echo ok 1 - fine";

#[test]
fn a_good_group_passes_and_leaves_its_logs() {
    let lab =
        Lab::new(GOOD_DAEMON, &[("a-t", GOOD), ("b-t", "echo note >&2; echo 1..1; echo ok 1 # SKIP no")]);
    let run = lab.run(&["--no-isolation", "--repeat", "2"]);
    run.expect(0, &["ok     a-t round 1 (1 tests", "ok     b-t round 2 (1 tests", "\n4 passed, 0 failed\n"]);
    assert!(
        run.stdout.starts_with("On the host's loopback, with free ports and --hosts-file: --no-isolation\n")
    );
    for file in ["daemon.log", "junit.xml", "a-t.1.log", "a-t.2.log", "b-t.1.log", "b-t.2.log"] {
        assert!(lab.logs(1).join(file).is_file(), "{file}");
    }
    assert!(fs::read_to_string(lab.logs(1).join("b-t.1.log")).unwrap().contains("note\n"));
    for file in ["data", "daemon.pid", "runner.pid"] {
        assert!(!lab.logs(1).join(file).exists(), "{file}");
    }

    lab.run(&["--no-isolation", "--only", "b-t"]).expect(0, &["\n1 passed, 0 failed\n"]);
    assert!(lab.logs(2).join("b-t.1.log").is_file() && !lab.logs(2).join("a-t.1.log").exists());
}

#[test]
fn each_bad_binary_is_reported_for_what_it_does() {
    let lab = Lab::new(
        GOOD_DAEMON,
        &[
            ("bails-t", "echo 1..3; echo ok 1; echo 'Bail out! no server'; exit 1"),
            ("dies-t", "echo 1..1; echo ok 1; kill -SEGV $$"),
            ("fails-t", "echo 1..2; echo ok 1; echo 'not ok 2 - is <blue>'; exit 1"),
            ("hangs-t", "echo 1..1; echo ok 1; sleep 600"),
            ("more-t", "echo 1..1; echo ok 1; echo ok 2"),
            ("no-plan-t", "echo ok 1"),
            ("passes-t", GOOD),
            ("silent-t", "exit 0"),
            ("status-t", "echo 1..1; echo ok 1; exit 7"),
        ],
    );
    lab.register("missing-t");
    let run = lab.run(&["--no-isolation", "--timeout", "2"]);
    run.expect(1, &["\n1 passed, 9 failed\n"]);
    for (binary, problem) in [
        ("bails-t", "bailed out: no server"),
        ("dies-t", "ended with signal: 11 (SIGSEGV)"),
        ("fails-t", "not ok 2 - is <blue>"),
        ("hangs-t", "killed: it ran longer than 2 s"),
        ("missing-t", "cannot run "),
        ("more-t", "planned 1 tests, ran 2"),
        ("no-plan-t", "no plan"),
        ("silent-t", "no plan"),
        ("status-t", "ended with exit status: 7 after a good report"),
    ] {
        let (_, after) = run.stdout.split_once(&format!("FAILED {binary} (")).expect(binary);
        let reported = after.lines().nth(1).unwrap();
        assert!(reported.trim().starts_with(problem), "{binary}: {reported}");
        assert!(after.contains(&format!("output: {}", lab.logs(1).join(binary).display())), "{binary}");
    }
    let junit = fs::read_to_string(lab.logs(1).join("junit.xml")).unwrap();
    assert!(
        junit.contains("<testsuites name=\"fake-g1\" tests=\"18\" failures=\"1\" errors=\"8\""),
        "{junit}"
    );
    assert!(junit.contains("<failure message=\"not ok 2 - is &lt;blue&gt;\"/>"), "{junit}");
    assert!(lab.logs(1).join("data").is_dir(), "kept after a failure");
}

#[test]
fn what_the_daemon_logged_meanwhile_is_shown_with_a_failure() {
    let say = |text: &str| {
        format!("echo '{text}' >$TAP_WORKDIR/say; while [ -e $TAP_WORKDIR/say ]; do sleep 0.01; done")
    };
    let lab = Lab::new(
        GOOD_DAEMON,
        &[
            ("a-t", &format!("{}; {GOOD}", say("line of a"))),
            ("b-t", &format!("{}; echo 1..1; echo not ok 1 - b; exit 1", say("line of b"))),
            ("c-t", &format!("{}; {GOOD}", say("thread x panicked at src/y.rs"))),
        ],
    );
    let run = lab.run(&["--no-isolation", "--junit", lab.path("report.xml").to_str().unwrap()]);
    run.expect(
        1,
        &[
            "the daemon's log meanwhile:\n         | line of b\nFAILED c-t",
            "in the daemon's log: thread x panicked at src/y.rs",
            "\n1 passed, 2 failed\n",
        ],
    );
    assert!(!run.stdout.contains("| line of a"), "{}", run.stdout);
    let junit = fs::read_to_string(lab.path("report.xml")).unwrap();
    assert!(junit.contains("<system-err>line of b\n</system-err>"), "{junit}");
}

#[test]
fn a_daemon_that_crashes_is_reported_with_the_binary_that_ran() {
    let lab = Lab::new(
        GOOD_DAEMON,
        &[
            ("a-t", GOOD),
            ("b-t", "echo 1..1; kill -SEGV $(cat $TAP_WORKDIR/daemon.pid); sleep 600"),
            ("c-t", GOOD),
        ],
    );
    let run = lab.run(&["--no-isolation", "--repeat", "3"]);
    run.expect(
        1,
        &[
            "FAILED b-t round 1 (0 tests",
            "killed: the daemon has ended: signal: 11 (SIGSEGV)",
            "not run: the daemon has ended: signal: 11 (SIGSEGV)",
            "FAILED the daemon ended during the run: signal: 11 (SIGSEGV)",
            "\n1 passed, 3 failed\n",
        ],
    );
    assert!(!run.stdout.contains("round 2"), "{}", run.stdout);
    let junit = fs::read_to_string(lab.logs(1).join("junit.xml")).unwrap();
    assert!(junit.contains("<testsuite name=\"daemon\" tests=\"1\" failures=\"0\" errors=\"1\""), "{junit}");
}

#[test]
fn a_daemon_that_does_not_start_or_stop_well_is_a_failure() {
    let lab = Lab::new("echo port 6032 is taken >&2; exit 1", &[("a-t", GOOD)]);
    let run = lab.run(&["--no-isolation"]);
    run.expect(2, &[]);
    assert!(run.stderr.contains("ended before it was ready") && run.stderr.contains("port 6032 is taken"));

    let lab = Lab::new(&GOOD_DAEMON.replace("exit 0", "exit 3"), &[("a-t", GOOD)]);
    let told = "FAILED the daemon ended with exit status: 3, not with status 0\n         | daemon starts";
    lab.run(&["--no-isolation"]).expect(1, &[told, "\n1 passed, 1 failed\n"]);
}

#[test]
fn hooks_run_before_the_first_binary_and_can_stop_the_run() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", GOOD)]);
    lab.hook("pre-proxysql.bash", "echo \"admin at $TAP_ADMINPORT in $WORKSPACE\"; exit ${HOOK_STATUS:-0}");
    lab.run(&["--no-isolation"]).expect(
        0,
        &[&format!("admin at 1 in {}\nok     a-t", lab.path("").canonicalize().unwrap().display())],
    );
    lab.hook("pre-proxysql.bash", "exit 4");
    let run = lab.run(&["--no-isolation"]);
    run.expect(2, &["The daemon's log ends with:\ndaemon starts"]);
    assert!(run.stderr.contains("pre-proxysql.bash failed: exit status: 4"), "{}", run.stderr);
    lab.hook("env.sh", "exit 5");
    let run = lab.run(&["--no-isolation"]);
    run.expect(2, &[]);
    assert!(run.stderr.contains("env.sh failed: exit status: 5"), "{}", run.stderr);
}

#[test]
fn a_signal_ends_the_binary_and_the_daemon() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", "echo $$ >$TAP_WORKDIR/a.pid; sleep 600"), ("b-t", GOOD)]);
    let mut runner = lab.start(&["--no-isolation"]);
    let pid = |name: &str| fs::read_to_string(lab.logs(1).join(name)).ok()?.trim().parse::<i32>().ok();
    lab::wait_for("the binary starts", || pid("a.pid").is_some());
    let children = [pid("a.pid").unwrap(), pid("daemon.pid").unwrap()];
    runner.terminate();
    runner.wait().expect(1, &["killed: interrupted", "not run: interrupted", "\n0 passed, 2 failed\n"]);
    for child in children {
        assert!(!Path::new(&format!("/proc/{child}")).exists(), "{child}");
    }
}

#[test]
fn runs_are_isolated_from_the_machine_and_from_each_other() {
    let show = "readlink /proc/self/ns/net; grep db-1.example /etc/hosts; ip -brief address show lo; echo 1..1; echo ok 1";
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", show)]);
    lab.hook("env.sh", "export CLUSTER_SIM_HOST_FILE=$WORKSPACE/map");
    fs::write(lab.path("map"), "# name first\ndb-1.example  127.10.0.11\n").unwrap();
    let (one, other) = (lab.start(&[]), lab.start(&[]));
    let runs = [one.wait(), other.wait()];
    if runs[0].stdout.starts_with("On the host's loopback") {
        println!("SKIPPED: no namespaces can be made here");
        return;
    }
    let shown: Vec<_> = [1, 2].map(|run| fs::read_to_string(lab.logs(run).join("a-t.1.log")).unwrap()).into();
    for (run, shown) in runs.iter().zip(&shown) {
        run.expect(0, &["In a network and mount namespace of its own\nok     a-t", "\n1 passed, 0 failed\n"]);
        assert!(shown.contains("127.10.0.11 db-1.example") && shown.contains("127.0.0.1/8"), "{shown}");
    }
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let namespace = |shown: &str| shown.lines().next().unwrap().to_owned();
    assert_ne!(namespace(&shown[0]), namespace(&shown[1]));
    assert_ne!(namespace(&shown[0]), own.to_str().unwrap());
    assert!(!fs::read_to_string("/etc/hosts").unwrap().contains("db-1.example"));
}

#[test]
fn a_run_that_nobody_reads_goes_on() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", GOOD)]);
    let mut runner = lab.start(&["--no-isolation"]);
    runner.stop_reading();
    let run = runner.wait();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""));
    assert!(lab.logs(1).join("junit.xml").is_file() && !lab.logs(1).join("data").exists());
}

#[test]
fn on_the_hosts_loopback_the_daemon_is_told_names_and_ports() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", GOOD)]);
    fs::write(lab.path("map"), "db-1.example  127.10.0.11\n").unwrap();
    lab.run(&["--no-isolation", "--hosts-file", "map"]).expect(0, &[]);
    let arguments = fs::read_to_string(lab.logs(1).join("daemon.log")).unwrap();
    let hosts = lab.logs(1).join("hosts");
    assert!(arguments.contains(&format!("--hosts-file {} --set", hosts.display())), "{arguments}");
    assert!(arguments.contains("--set sqliteserver-mysql_ifaces=0.0.0.0:"), "{arguments}");
    assert_eq!(fs::read_to_string(hosts).unwrap(), "127.10.0.11 db-1.example\n");
}

#[test]
fn where_no_namespaces_can_be_made_the_run_says_so() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", GOOD)]);
    lab.shadow("unshare", "echo \"unshare: unshare failed: Operation not permitted\" >&2; exit 1");
    lab.run(&["--check"]).expect(0, &["On the host's loopback, with free ports and --hosts-file\n"]);
    let run = lab.run(&[]);
    run.expect(0, &["\n1 passed, 0 failed\n"]);
    let told = "On the host's loopback, with free ports and --hosts-file: no network and mount namespace can be made";
    assert!(run.stdout.starts_with(told) && run.stderr.is_empty(), "{}{}", run.stdout, run.stderr);
}

#[test]
fn a_check_runs_nothing_and_names_what_is_missing() {
    let lab = Lab::new(GOOD_DAEMON, &[("a-t", GOOD)]);
    lab.run(&["--check", "--no-isolation"]).expect(0, &["1 binaries are there\nOn the host's loopback"]);
    lab.register("b-t");
    let run = lab.run(&["--check"]);
    run.expect(2, &[]);
    assert!(run.stderr.contains("bin/b-t is missing"), "{}", run.stderr);
    assert!(!lab.path("groups/logs").exists());
}

#[test]
fn a_scenario_without_a_daemon_bails_out() {
    let output = Command::new(env!("CARGO_BIN_EXE_test_rds_bgd_smoke-t"))
        .envs([("TAP_ADMINHOST", "127.0.0.1"), ("TAP_ADMINPORT", "1")])
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.starts_with("TAP version 13\n1..7\nBail out! setup: cannot connect to 127.0.0.1:1 "),
        "{stdout}"
    );
    assert_eq!(output.status.code(), Some(1));
}
