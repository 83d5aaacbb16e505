//! One run of one test binary.

use super::report::Report;
use crate::interrupt::Interrupt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a silent binary makes us look at the clock and at signals.
const TICK: Duration = Duration::from_millis(100);
/// Between the end of a program's output and its own end.
const EXIT_POLL: Duration = Duration::from_millis(5);

/// How one binary did.
#[derive(Debug)]
pub struct Outcome {
    /// How many tests reported
    pub tests: usize,
    /// Why it is a failure; empty if it passed
    pub problems: Vec<String>,
    /// How long it ran
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether it passed.
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Runs `command` to its end, but not longer than `timeout`. Standard output is judged as TAP; it and standard error go to
/// `log_file`.
pub fn run(mut command: Command, log_file: &Path, timeout: Duration, interrupt: &Interrupt) -> Outcome {
    let started = Instant::now();
    let mut report = Report::default();
    let ended = start(&mut command, log_file)
        .map_err(|error| format!("cannot run {}: {error}", Path::new(command.get_program()).display()))
        .and_then(|running| watch(running, started + timeout, interrupt, &mut report));
    let tests = report.tests_run();
    let problems = match ended {
        // A report that was cut off has no other news.
        Err(failure) => vec![failure],
        Ok(status) => match report.finish() {
            good if good.is_empty() && !status.success() => {
                vec![format!("ended with {status} after a good report")]
            }
            problems => problems,
        },
    };
    Outcome { tests, problems, elapsed: started.elapsed() }
}

/// A started binary. Dropping it kills it, unless it has been waited for.
struct Running {
    child: Child,
    lines: Receiver<String>,
    log: File,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(command: &mut Command, log_file: &Path) -> io::Result<Running> {
    let log = File::create(log_file)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
    let mut child = command.spawn()?;
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Ends when the child's output does. Not joined: a grandchild that outlives a killed child may hold the pipe.
        thread::Builder::new().name("tap-output".into()).spawn(move || forward_lines(stdout, &sender))?;
    }
    Ok(Running { child, lines, log })
}

fn forward_lines(stdout: ChildStdout, sender: &mpsc::Sender<String>) {
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

/// Reads the report to the end. The error says why the program was given up.
fn watch(
    mut running: Running,
    deadline: Instant,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<ExitStatus, String> {
    loop {
        match running.lines.recv_timeout(TICK) {
            Ok(line) => {
                report.feed(&line);
                writeln!(running.log, "{line}").map_err(|error| format!("cannot write its log: {error}"))?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        check(deadline, interrupt)?;
    }
    loop {
        let status = running.child.try_wait().map_err(|error| format!("cannot wait for it: {error}"))?;
        if let Some(status) = status {
            return Ok(status);
        }
        check(deadline, interrupt)?;
        thread::sleep(EXIT_POLL);
    }
}

fn check(deadline: Instant, interrupt: &Interrupt) -> Result<(), String> {
    if interrupt.raised() {
        return Err("interrupted".to_owned());
    }
    if Instant::now() >= deadline { Err("killed: it ran too long".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> (Outcome, String) {
        let directory = tempfile::tempdir().unwrap();
        let log_file = directory.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let outcome = run(command, &log_file, timeout, &Interrupt::default());
        (outcome, std::fs::read_to_string(log_file).unwrap())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_good_program_passes_and_its_output_is_kept() {
        let (outcome, log) = shell("echo note >&2; echo 1..1; echo ok 1 - a", LONG);
        assert!(outcome.passed(), "{outcome:?}");
        assert_eq!(outcome.tests, 1);
        assert!(log.contains("note\n") && log.contains("1..1\nok 1 - a\n"), "{log}");
    }

    #[test]
    fn a_bad_exit_status_fails_a_good_report() {
        let (outcome, _) = shell("echo 1..1; echo ok 1; exit 3", LONG);
        assert_eq!(outcome.problems, ["ended with exit status: 3 after a good report"]);
    }

    #[test]
    fn a_bad_report_fails_whatever_the_exit_status() {
        let (outcome, _) = shell("echo 1..2; echo not ok 1 - a; exit 1", LONG);
        assert_eq!(outcome.problems, ["not ok 1 - a", "planned 2 tests, ran 1"]);
        let (outcome, _) = shell("echo 1..1; echo not ok 1 - a; exit 0", LONG);
        assert_eq!(outcome.problems, ["not ok 1 - a"]);
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let (outcome, _) = shell("echo 1..1; echo ok 1; exec sleep 60", Duration::from_millis(200));
        assert_eq!(outcome.problems, ["killed: it ran too long"]);
        assert!(outcome.elapsed < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_is_missing_fails() {
        let directory = tempfile::tempdir().unwrap();
        let command = Command::new(directory.path().join("missing"));
        let outcome = run(command, &directory.path().join("log"), LONG, &Interrupt::default());
        assert!(outcome.problems[0].starts_with("cannot run "), "{outcome:?}");
    }
}
