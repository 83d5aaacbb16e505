//! A consumer of the Test Anything Protocol: lines in, a verdict out.

/// What one test program has reported so far.
#[derive(Debug, Default)]
pub struct Report {
    planned: Option<usize>,
    run: usize,
    problems: Vec<String>,
}

impl Report {
    /// Takes the next line of the program's output. What is not part of the protocol is ignored.
    pub fn feed(&mut self, line: &str) {
        if let Some(reason) = line.strip_prefix("Bail out!") {
            self.problems.push(format!("bailed out: {}", reason.trim()));
        } else if let Some(count) = plan(line) {
            if self.planned.replace(count).is_some() {
                self.problems.push("more than one plan".to_owned());
            }
        } else if let Some((passed, rest)) = result(line) {
            self.test(passed, rest);
        }
    }

    /// How many tests have reported.
    pub fn tests_run(&self) -> usize {
        self.run
    }

    /// Everything that makes the report a failure, once the output has ended; empty if it is a good one.
    pub fn finish(mut self) -> Vec<String> {
        match self.planned {
            None => self.problems.push("no plan".to_owned()),
            Some(planned) if planned != self.run => {
                self.problems.push(format!("planned {planned} tests, ran {}", self.run));
            }
            Some(_) => {}
        }
        self.problems
    }

    fn test(&mut self, passed: bool, rest: &str) {
        self.run += 1;
        let (word, after_word) = rest.split_once(' ').unwrap_or((rest, ""));
        let description = match word.parse::<usize>() {
            Ok(number) if number != self.run => {
                self.problems.push(format!("test {} has number {number}", self.run));
                after_word
            }
            Ok(_) => after_word,
            Err(_) => rest,
        };
        if !passed {
            let description = description.trim_start_matches("- ");
            self.problems.push(format!("not ok {} - {description}", self.run));
        }
    }
}

/// The number of tests of a plan line, `1..N`, optionally with a comment.
fn plan(line: &str) -> Option<usize> {
    let count = line.strip_prefix("1..")?;
    count.split_whitespace().next()?.parse().ok()
}

/// A result line's verdict and what follows it.
fn result(line: &str) -> Option<(bool, &str)> {
    let (passed, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    // "okay" and "not okay" are no results.
    (rest.is_empty() || rest.starts_with(' ')).then(|| (passed, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(output: &str) -> Vec<String> {
        let mut report = Report::default();
        output.lines().for_each(|line| report.feed(line));
        report.finish()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_good_report_has_no_problem() {
        let output = "TAP version 13\n1..3\n# note\nok 1 - first\nok 2 # SKIP no server\nok\nokay, done\n";
        assert_eq!(problems(output), NONE);
    }

    #[test]
    fn the_plan_may_come_last_and_may_be_empty() {
        assert_eq!(problems("ok 1\n1..1\n"), NONE);
        assert_eq!(problems("1..0 # SKIP nothing here\n"), NONE);
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(
            problems("1..2\nnot ok 1 - status AVAILABLE\nnot ok\n"),
            ["not ok 1 - status AVAILABLE", "not ok 2 - "]
        );
    }

    #[test]
    fn a_plan_must_be_there_once_and_be_met() {
        assert_eq!(problems("ok 1\n"), ["no plan"]);
        assert_eq!(problems(""), ["no plan"]);
        assert_eq!(problems("1..2\nok 1\n"), ["planned 2 tests, ran 1"]);
        assert_eq!(problems("1..1\n1..1\nok 1\n"), ["more than one plan"]);
        assert_eq!(problems("1..99999999999999999999999\nok 1\n"), ["no plan"]);
    }

    #[test]
    fn numbers_must_be_in_sequence() {
        assert_eq!(problems("1..2\nok 1\nok 3 - lost one\n"), ["test 2 has number 3"]);
    }

    #[test]
    fn bailing_out_is_a_failure_whatever_the_plan_says() {
        assert_eq!(problems("1..1\nok 1\nBail out! setup: refused\n"), ["bailed out: setup: refused"]);
    }
}
