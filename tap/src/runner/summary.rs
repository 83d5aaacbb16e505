//! What the runner prints about outcomes.

use super::execution::Outcome;
use std::fmt::Write;
use std::time::Duration;

/// How much of a log is shown; the rest is in its file.
const EXCERPT_LINES: usize = 40;

/// All runs of one binary.
#[derive(Debug, Default)]
pub struct Tally {
    /// The binary
    pub name: String,
    /// Runs that passed
    pub passed: u32,
    /// Runs that failed, or that could not begin
    pub failed: u32,
    /// Over all runs
    pub elapsed: Duration,
}

impl Tally {
    /// Nothing has run yet.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Counts one run.
    pub fn add(&mut self, outcome: &Outcome) {
        if outcome.passed() {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        self.elapsed += outcome.elapsed;
    }
}

/// One line for a run, and one more for each failed test and each problem.
pub fn describe(name: &str, outcome: &Outcome) -> String {
    let verdict = if outcome.passed() { "ok" } else { "FAILED" };
    let seconds = outcome.elapsed.as_secs_f64();
    let mut text = format!("{verdict:<6} {name} ({} tests, {seconds:.1} s)\n", outcome.tests.len());
    // Writing to a String cannot fail.
    for (number, description) in outcome.failed_tests() {
        let _ = writeln!(text, "         not ok {number} - {description}");
    }
    for problem in &outcome.problems {
        let _ = writeln!(text, "         {problem}");
    }
    text
}

/// The last lines of `log`, indented; says how many are left out.
pub fn excerpt(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    let left_out = lines.len().saturating_sub(EXCERPT_LINES);
    let mut text = String::new();
    if left_out > 0 {
        let _ = writeln!(text, "         | ({left_out} lines before these)");
    }
    for line in &lines[left_out..] {
        let _ = writeln!(text, "         | {line}");
    }
    text
}

/// The closing table. Its last line is `N passed, N failed`; a daemon that ended badly counts as one more failure.
pub fn table(tallies: &[Tally], daemon_failed: bool) -> String {
    let width = tallies.iter().map(|tally| tally.name.len()).max().unwrap_or(0).max("binary".len());
    let mut text = format!("{:<width$}  passed  failed  seconds\n", "binary");
    for Tally { name, passed, failed, elapsed } in tallies {
        let _ = writeln!(text, "{name:<width$}  {passed:>6}  {failed:>6}  {:>7.1}", elapsed.as_secs_f64());
    }
    let passed: u32 = tallies.iter().map(|tally| tally.passed).sum();
    let failed: u32 = tallies.iter().map(|tally| tally.failed).sum();
    let _ = writeln!(text, "{passed} passed, {} failed", failed + u32::from(daemon_failed));
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::{Test, Verdict};
    use super::*;

    fn outcome(verdict: Verdict, problems: &[&str]) -> Outcome {
        let problems = problems.iter().map(|problem| (*problem).to_owned()).collect();
        let tests = vec![Test { description: "status".into(), verdict }];
        Outcome { tests, problems, elapsed: Duration::from_millis(1500) }
    }

    #[test]
    fn a_failure_lists_its_tests_and_problems() {
        assert_eq!(describe("a-t", &outcome(Verdict::Passed, &[])), "ok     a-t (1 tests, 1.5 s)\n");
        assert_eq!(
            describe("a-t", &outcome(Verdict::Failed, &["no plan"])),
            "FAILED a-t (1 tests, 1.5 s)\n         not ok 1 - status\n         no plan\n"
        );
    }

    #[test]
    fn an_excerpt_is_the_end_of_the_log() {
        assert_eq!(excerpt("a\nb\n"), "         | a\n         | b\n");
        let log: String = (0..EXCERPT_LINES + 2).map(|line| format!("{line}\n")).collect();
        let text = excerpt(&log);
        assert!(text.starts_with("         | (2 lines before these)\n         | 2\n"), "{text}");
        assert_eq!(text.lines().count(), EXCERPT_LINES + 1);
    }

    #[test]
    fn the_table_closes_with_the_sums() {
        let mut tally = Tally::new("a-t");
        tally.add(&outcome(Verdict::Passed, &[]));
        tally.add(&outcome(Verdict::Passed, &["no plan"]));
        let text = table(&[tally, Tally::new("long-name-t")], true);
        assert_eq!(
            text,
            "binary       passed  failed  seconds\n\
             a-t               1       1      3.0\n\
             long-name-t       0       0      0.0\n\
             1 passed, 2 failed\n"
        );
    }
}
