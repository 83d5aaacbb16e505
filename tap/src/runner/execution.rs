//! One run of one test binary.

use super::report::{Report, Test, Verdict};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a silent binary makes us look at the clock, at signals and at the daemon.
const TICK: Duration = Duration::from_millis(100);
/// Between the end of a program's output and its own end.
const EXIT_POLL: Duration = Duration::from_millis(5);
/// The most that one binary may write, in bytes: one that went on and on would fill disk and memory before its time is up.
const OUTPUT_LIMIT: u64 = 4 << 20;
/// Lines read ahead.
const READ_AHEAD: usize = 64;

/// How one binary did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What it reported, in order
    pub tests: Vec<Test>,
    /// What is wrong besides failed tests
    pub problems: Vec<String>,
    /// How long it ran
    pub elapsed: Duration,
}

impl Outcome {
    /// Of a binary that was not started.
    pub fn not_run(reason: &str) -> Self {
        Self { problems: vec![format!("not run: {reason}")], ..Self::default() }
    }

    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.failed_tests().next().is_none()
    }

    /// Number and description of each failed test.
    pub fn failed_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.tests.iter().enumerate();
        numbered
            .filter(|(_, test)| test.verdict == Verdict::Failed)
            .map(|(index, test)| (index + 1, test.description.as_str()))
    }
}

/// Runs `command` to its end, but not longer than `timeout`, nor once `give_up` has a reason; then it is killed. What it has started
/// and left running ends with it. Standard output is judged as TAP; it and standard error go to `log_file`. While it runs, a file beside that with the
/// extension `pid` has its process number, which is that of its process group, too.
pub fn run(
    mut command: Command,
    log_file: &Path,
    timeout: Duration,
    give_up: &mut dyn FnMut() -> Option<String>,
) -> Outcome {
    let started = Instant::now();
    let mut report = Report::default();
    let mut reason_to_kill = || {
        give_up().or_else(|| {
            let too_long = started.elapsed() >= timeout;
            too_long.then(|| format!("it ran longer than {} s", timeout.as_secs_f64()))
        })
    };
    let ended = start(&mut command, log_file)
        .map_err(|error| format!("cannot run {}: {error}", Path::new(command.get_program()).display()))
        .and_then(|running| watch(running, &mut reason_to_kill, &mut report));
    let (tests, problems) = match ended {
        // A report that was cut off has no other news.
        Err(failure) => (report.into_tests(), vec![failure]),
        Ok(status) => {
            let (tests, mut problems) = report.finish();
            let bad = !problems.is_empty() || tests.iter().any(|test| test.verdict == Verdict::Failed);
            if status.signal().is_some() || (!bad && !status.success()) {
                let report = if bad { "bad" } else { "good" };
                problems.push(format!("ended with {status} after a {report} report"));
            }
            // It may have come to its end just because of that, before anyone looked.
            problems.extend(give_up());
            (tests, problems)
        }
    };
    Outcome { tests, problems, elapsed: started.elapsed() }
}

/// A started binary. Dropping it ends it and what is left of its process group.
struct Running {
    child: Child,
    lines: Receiver<String>,
    log: File,
    pid_file: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
        // Nobody is misled by it: who reads it looks whether the process is the binary.
        let _ = fs::remove_file(&self.pid_file);
    }
}

impl Running {
    /// Whether it has ended. It is not waited for: until then its number is its own and its group's.
    fn has_ended(&self) -> io::Result<bool> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.child)), look)?.is_some())
    }

    /// Called before it is waited for alone.
    fn kill_group(&mut self) {
        if kill_process_group(Pid::from_child(&self.child), Signal::KILL).is_err() {
            let _ = self.child.kill();
        }
    }
}

fn start(command: &mut Command, log_file: &Path) -> io::Result<Running> {
    let log = File::create(log_file)?;
    // A process group of its own: Ctrl-C reaches only us, and what the binary has started can be killed with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?).process_group(0);
    let mut child = command.spawn()?;
    let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
    let stdout = child.stdout.take();
    let running = Running { child, lines, log, pid_file: log_file.with_extension("pid") };
    fs::write(&running.pid_file, running.child.id().to_string())?;
    if let Some(stdout) = stdout {
        // Ends when the child's output does. Not joined: a grandchild in another group may hold the pipe.
        thread::Builder::new().name("tap-output".into()).spawn(move || forward_lines(stdout, &sender))?;
    }
    Ok(running)
}

fn forward_lines(stdout: ChildStdout, sender: &mpsc::SyncSender<String>) {
    // A line that never ends is cut where it is too much.
    for line in BufReader::new(stdout.take(OUTPUT_LIMIT + 1)).split(b'\n').map_while(Result::ok) {
        if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

/// Reads the report to the end. The error says why the program was given up.
fn watch(
    mut running: Running,
    reason_to_kill: &mut dyn FnMut() -> Option<String>,
    report: &mut Report,
) -> Result<ExitStatus, String> {
    let mut check = |log: &File| {
        let length = log.metadata().map_or(0, |log| log.len());
        let flood = || format!("it wrote more than {} MiB", OUTPUT_LIMIT >> 20);
        let reason = (length > OUTPUT_LIMIT).then(flood).or_else(&mut *reason_to_kill);
        reason.map_or(Ok(()), |reason| Err(format!("killed: {reason}")))
    };
    let waiting = |error| format!("cannot wait for it: {error}");
    loop {
        match running.lines.recv_timeout(TICK) {
            Ok(line) => {
                report.feed(&line);
                writeln!(running.log, "{line}").map_err(|error| format!("cannot write its log: {error}"))?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            // What it has left running may hold its output open.
            Err(RecvTimeoutError::Timeout) if running.has_ended().map_err(waiting)? => running.kill_group(),
            Err(RecvTimeoutError::Timeout) => {}
        }
        check(&running.log)?;
    }
    while !running.has_ended().map_err(waiting)? {
        check(&running.log)?;
        thread::sleep(EXIT_POLL);
    }
    running.kill_group();
    running.child.wait().map_err(|error| format!("cannot wait for it: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell_until(
        script: &str,
        timeout: Duration,
        give_up: &mut dyn FnMut() -> Option<String>,
    ) -> (Outcome, String) {
        let directory = tempfile::tempdir().unwrap();
        let log_file = directory.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let outcome = run(command, &log_file, timeout, give_up);
        (outcome, fs::read_to_string(log_file).unwrap())
    }

    fn shell(script: &str) -> (Outcome, String) {
        shell_until(script, LONG, &mut || None)
    }

    fn wait_for_end(pid: &str) {
        let state = format!("/proc/{}/stat", pid.trim());
        let gone = || fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + LONG;
        while !gone() {
            assert!(Instant::now() < deadline, "{state} is there");
            thread::sleep(EXIT_POLL);
        }
    }

    fn failed(outcome: &Outcome) -> Vec<(usize, &str)> {
        outcome.failed_tests().collect()
    }

    #[test]
    fn a_good_program_passes_and_its_output_is_kept() {
        let (outcome, log) = shell("echo note >&2; echo 1..1; echo ok 1 - a");
        assert!(outcome.passed(), "{outcome:?}");
        assert_eq!(outcome.tests.len(), 1);
        assert!(log.contains("note\n") && log.contains("1..1\nok 1 - a\n"), "{log}");
    }

    #[test]
    fn a_bad_exit_status_fails_a_good_report() {
        let (outcome, _) = shell("echo 1..1; echo ok 1; exit 3");
        assert_eq!(outcome.problems, ["ended with exit status: 3 after a good report"]);
    }

    #[test]
    fn a_bad_report_fails_whatever_the_exit_status() {
        let (outcome, _) = shell("echo 1..2; echo not ok 1 - a; exit 1");
        assert_eq!(outcome.problems, ["planned 2 tests, ran 1"]);
        assert_eq!(failed(&outcome), [(1, "a")]);
        let (outcome, _) = shell("echo 1..1; echo not ok 1 - a; exit 0");
        assert_eq!((failed(&outcome), outcome.passed()), (vec![(1, "a")], false));
    }

    #[test]
    fn a_signal_is_named_whatever_the_report_says() {
        let (outcome, _) = shell("echo 1..1; echo ok 1; kill -SEGV $$");
        assert_eq!(outcome.problems.len(), 1);
        assert!(outcome.problems[0].contains("signal: 11"), "{outcome:?}");
        let (outcome, _) = shell("echo 1..2; echo ok 1; kill -KILL $$");
        assert_eq!(
            outcome.problems,
            ["planned 2 tests, ran 1", "ended with signal: 9 (SIGKILL) after a bad report"]
        );
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pid");
        let script = format!(
            "echo 1..1; echo ok 1; sleep 600 & echo $! >{}.new; mv {0}.new {0}; wait",
            pid_file.display()
        );
        let mut begun = None;
        // Given up as soon as the child is known.
        let (outcome, _) = shell_until(&script, LONG, &mut || {
            begun = fs::read_to_string(&pid_file).ok();
            begun.is_some().then(|| "enough".to_owned())
        });
        assert_eq!(outcome.problems, ["killed: enough"]);
        wait_for_end(&begun.unwrap());
    }

    #[test]
    fn what_a_program_leaves_running_ends_with_it() {
        for holds_output in ["", ">/dev/null 2>&1"] {
            let directory = tempfile::tempdir().unwrap();
            let pid_file = directory.path().join("pid");
            let script =
                format!("sleep 600 {holds_output} & echo $! >{}; echo 1..1; echo ok 1", pid_file.display());
            let (outcome, _) = shell(&script);
            assert!(outcome.passed(), "{outcome:?}");
            wait_for_end(&fs::read_to_string(&pid_file).unwrap());
        }
    }

    #[test]
    fn a_program_that_writes_without_end_is_killed() {
        for script in ["exec yes $(printf %09999d)", "exec cat /dev/zero", "exec cat /dev/zero >&2"] {
            let (outcome, _) = shell(script);
            assert_eq!(outcome.problems, ["killed: it wrote more than 4 MiB"], "{script}");
        }
    }

    #[test]
    fn a_reason_to_give_up_counts_although_the_program_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pid");
        let script = format!("echo $$ >{}; echo 1..1; echo ok 1", pid_file.display());
        let (outcome, _) = shell_until(&script, LONG, &mut || {
            let pid = fs::read_to_string(&pid_file).ok()?;
            let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            let runs = state.is_ok_and(|state| !state.contains(") Z "));
            (!runs && !pid.is_empty()).then(|| "the daemon has ended".to_owned())
        });
        assert_eq!(outcome.problems.len(), 1, "{outcome:?}");
        assert!(outcome.problems[0].ends_with("the daemon has ended"), "{outcome:?}");
    }

    #[test]
    fn a_program_that_runs_too_long_is_killed() {
        let (outcome, _) = shell_until("exec sleep 600", Duration::from_millis(200), &mut || None);
        assert_eq!(outcome.problems, ["killed: it ran longer than 0.2 s"]);
        // Also one that says nothing more, but does not end.
        let (outcome, _) = shell_until("exec >&-; exec sleep 600", Duration::from_millis(200), &mut || None);
        assert_eq!(outcome.problems, ["killed: it ran longer than 0.2 s"]);
    }

    #[test]
    fn a_program_that_is_missing_fails() {
        let directory = tempfile::tempdir().unwrap();
        let command = Command::new(directory.path().join("missing"));
        let outcome = run(command, &directory.path().join("log"), LONG, &mut || None);
        assert!(outcome.problems[0].starts_with("cannot run "), "{outcome:?}");
    }
}
