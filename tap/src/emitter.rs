//! A producer of the Test Anything Protocol, version 13.

use std::fmt::{Debug, Display};
use std::io::{self, Write};
use std::process::ExitCode;

/// Writes one test program's report and remembers whether it is a good one.
///
/// Every line is flushed, so that a consumer sees results as they happen. When the consumer is gone
/// the report cannot be complete, and the exit status says so.
pub struct Emitter<W: Write = io::Stdout> {
    out: W,
    planned: Option<usize>,
    run: usize,
    failed: usize,
    broken: bool,
}

impl Emitter {
    /// Reports on standard output.
    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }
}

impl<W: Write> Emitter<W> {
    /// Starts a report on `out`.
    pub fn new(out: W) -> Self {
        let mut emitter = Self { out, planned: None, run: 0, failed: 0, broken: false };
        emitter.line("TAP version 13");
        emitter
    }

    /// Announces how many tests will run. Once, before the first test.
    pub fn plan(&mut self, tests: usize) {
        // A second plan makes the report invalid, as does one in the middle of the tests.
        if self.planned.is_some() || self.run > 0 {
            self.broken = true;
        }
        self.planned = Some(tests);
        self.line(&format!("1..{tests}"));
    }

    /// One test result. Returns `passed`.
    pub fn ok(&mut self, passed: bool, description: &str) -> bool {
        self.run += 1;
        if !passed {
            self.failed += 1;
        }
        let verdict = if passed { "ok" } else { "not ok" };
        self.line(&format!("{verdict} {} - {}", self.run, one_line(description)));
        passed
    }

    /// A test that passes when `found` equals `expected`; otherwise both are shown.
    pub fn is<T: PartialEq + Debug>(&mut self, found: T, expected: T, description: &str) -> bool {
        let passed = self.ok(found == expected, description);
        if !passed {
            self.diag(&format!("found    {found:?}"));
            self.diag(&format!("expected {expected:?}"));
        }
        passed
    }

    /// A test that passes when `outcome` is Ok; otherwise the error is shown.
    pub fn ok_result<T, E: Display>(&mut self, outcome: Result<T, E>, description: &str) -> bool {
        let passed = self.ok(outcome.is_ok(), description);
        if let Err(error) = outcome {
            self.diag(&error.to_string());
        }
        passed
    }

    /// A remark: each line of `text` becomes a comment.
    pub fn diag(&mut self, text: &str) {
        for line in text.lines() {
            self.line(&format!("# {line}"));
        }
    }

    /// Counts `tests` tests as skipped, which is not a failure.
    pub fn skip(&mut self, tests: usize, reason: &str) {
        for _ in 0..tests {
            self.run += 1;
            self.line(&format!("ok {} # SKIP {}", self.run, one_line(reason)));
        }
    }

    /// A test of something that is known not to work yet: whatever comes out is shown and is no failure. Returns `passed`.
    pub fn todo(&mut self, passed: bool, description: &str, reason: &str) -> bool {
        self.run += 1;
        let verdict = if passed { "ok" } else { "not ok" };
        self.line(&format!("{verdict} {} - {} # TODO {}", self.run, one_line(description), one_line(reason)));
        passed
    }

    /// Gives up: nothing after this counts.
    pub fn bail_out(&mut self, reason: &str) {
        self.broken = true;
        self.line(&format!("Bail out! {}", one_line(reason)));
    }

    /// Whether the plan was met and no test failed but those that are skipped or to do.
    pub fn succeeded(&self) -> bool {
        !self.broken && self.failed == 0 && self.planned == Some(self.run)
    }

    /// 0 only if the plan was met and no test failed but those that are skipped or to do; 1 otherwise.
    pub fn exit_status(&self) -> ExitCode {
        if self.succeeded() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn line(&mut self, text: &str) {
        if writeln!(self.out, "{text}").and_then(|()| self.out.flush()).is_err() {
            self.broken = true;
        }
    }
}

/// A description may neither end its line nor begin a directive. Backslashes are doubled, so that a consumer can undo it.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace('\\', r"\\").replace('#', r"\#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(write: impl FnOnce(&mut Emitter<Vec<u8>>)) -> (String, bool) {
        let mut emitter = Emitter::new(Vec::new());
        write(&mut emitter);
        let succeeded = emitter.succeeded();
        (String::from_utf8(emitter.out).unwrap(), succeeded)
    }

    #[test]
    fn a_met_plan_succeeds() {
        let (text, succeeded) = report(|tap| {
            tap.plan(4);
            assert!(tap.ok(true, "first"));
            assert!(tap.is(2, 2, "second"));
            tap.skip(2, "no server");
        });
        let expected = "TAP version 13\n1..4\nok 1 - first\nok 2 - second\nok 3 # SKIP no server\nok 4 # SKIP no server\n";
        assert_eq!(text, expected);
        assert!(succeeded);
    }

    #[test]
    fn a_failed_comparison_shows_both_sides() {
        let (text, succeeded) = report(|tap| {
            tap.plan(1);
            assert!(!tap.is("NONE", "AVAILABLE", "status"));
        });
        assert!(
            text.ends_with("not ok 1 - status\n# found    \"NONE\"\n# expected \"AVAILABLE\"\n"),
            "{text}"
        );
        assert!(!succeeded);
    }

    #[test]
    fn an_error_fails_its_test_and_is_shown() {
        let (text, succeeded) = report(|tap| {
            tap.plan(1);
            tap.ok_result(Err::<(), _>("no\nanswer"), "reply");
        });
        assert!(text.ends_with("not ok 1 - reply\n# no\n# answer\n"), "{text}");
        assert!(!succeeded);
    }

    #[test]
    fn fewer_tests_more_tests_and_no_plan_fail() {
        assert!(!report(|tap| tap.plan(1)).1);
        assert!(!report(|tap| tap.skip(1, "x")).1);
        let more = report(|tap| {
            tap.plan(1);
            tap.skip(2, "x");
        });
        assert!(!more.1);
    }

    #[test]
    fn a_second_plan_fails() {
        assert!(!report(|tap| (0..2).for_each(|_| tap.plan(0))).1);
    }

    #[test]
    fn bailing_out_fails_even_with_a_met_plan() {
        let (text, succeeded) = report(|tap| {
            tap.plan(0);
            tap.bail_out("daemon\ngone");
        });
        assert!(text.ends_with("Bail out! daemon gone\n"), "{text}");
        assert!(!succeeded);
    }

    #[test]
    fn a_description_cannot_become_a_directive() {
        let (text, _) = report(|tap| {
            tap.ok(false, "see # SKIP me");
        });
        assert!(text.ends_with("not ok 1 - see \\# SKIP me\n"), "{text}");
    }

    #[test]
    fn what_is_to_do_is_no_failure_and_says_so() {
        let (text, succeeded) = report(|tap| {
            tap.plan(2);
            assert!(!tap.todo(false, "two deployments", "only # one yet"));
            assert!(tap.todo(true, r"a\", "done already"));
        });
        assert!(
            text.ends_with(
                "not ok 1 - two deployments # TODO only \\# one yet\nok 2 - a\\\\ # TODO done already\n"
            ),
            "{text}"
        );
        assert!(succeeded);
    }

    #[test]
    fn the_exit_status_is_0_for_success_alone() {
        let status = |write: fn(&mut Emitter<Vec<u8>>)| {
            let mut emitter = Emitter::new(Vec::new());
            write(&mut emitter);
            emitter.exit_status()
        };
        assert_eq!(status(|tap| tap.plan(0)), ExitCode::SUCCESS);
        assert_eq!(status(|tap| tap.plan(1)), ExitCode::FAILURE);
    }

    #[test]
    fn a_consumer_that_left_is_a_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut emitter = Emitter::new(Closed);
        emitter.plan(0);
        assert!(!emitter.succeeded());
    }
}
