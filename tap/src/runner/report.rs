//! A consumer of the Test Anything Protocol: lines in, a verdict out.

/// What became of one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// `ok`
    Passed,
    /// `not ok`
    Failed,
    /// Not run, with the reason; never a failure
    Skipped(String),
    /// Known not to work yet, with the reason; never a failure
    Todo(String),
}

/// One result line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Without its number and its directive
    pub description: String,
    /// With the directive taken into account
    pub verdict: Verdict,
}

/// What one test program has reported so far.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of tests planned, and how many had run by then
    plan: Option<(usize, usize)>,
    tests: Vec<Test>,
    problems: Vec<String>,
    bailed_out: bool,
}

impl Report {
    /// Takes the next line of the program's output. What is not part of the protocol is ignored.
    pub fn feed(&mut self, line: &str) {
        if self.bailed_out {
            return;
        }
        if let Some(reason) = line.strip_prefix("Bail out!") {
            self.bailed_out = true;
            self.problems.push(format!("bailed out: {}", unescaped(reason.trim())));
        } else if let Some(count) = plan(line) {
            if self.plan.replace((count, self.tests.len())).is_some() {
                self.problems.push("more than one plan".to_owned());
            }
        } else if let Some((passed, rest)) = result(line) {
            self.test(passed, rest);
        }
    }

    /// The tests, and everything besides failed ones that makes the report a failure, once the output has ended.
    pub fn finish(mut self) -> (Vec<Test>, Vec<String>) {
        let run = self.tests.len();
        match self.plan {
            // Whoever gives up cannot keep to a plan.
            _ if self.bailed_out => {}
            None => self.problems.push("no plan".to_owned()),
            Some((planned, _)) if planned != run => {
                self.problems.push(format!("planned {planned} tests, ran {run}"));
            }
            Some((_, before)) if 0 < before && before < run => {
                self.problems.push("the plan is in the middle of the tests".to_owned());
            }
            Some(_) => {}
        }
        (self.tests, self.problems)
    }

    /// The tests of a report that was cut off.
    pub fn into_tests(self) -> Vec<Test> {
        self.tests
    }

    fn test(&mut self, passed: bool, rest: &str) {
        let expected = self.tests.len() + 1;
        let (word, after_word) = rest.split_once(' ').unwrap_or((rest, ""));
        let text = match word.parse::<usize>() {
            Ok(number) if number != expected => {
                self.problems.push(format!("test {expected} has number {number}"));
                after_word
            }
            Ok(_) => after_word,
            Err(_) => rest,
        };
        let (description, directive) = split_directive(text);
        let verdict = directive.unwrap_or(if passed { Verdict::Passed } else { Verdict::Failed });
        let description = unescaped(description.trim().trim_start_matches("- "));
        self.tests.push(Test { description, verdict });
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

/// Cuts at the first `#` that is not escaped and begins a directive.
fn split_directive(text: &str) -> (&str, Option<Verdict>) {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if character == '#'
            && !escaped
            && let Some(directive) = directive(&text[at + 1..])
        {
            return (&text[..at], Some(directive));
        }
        escaped = character == '\\' && !escaped;
    }
    (text, None)
}

fn directive(comment: &str) -> Option<Verdict> {
    let comment = comment.trim();
    let (word, reason) = comment.split_once(' ').unwrap_or((comment, ""));
    let reason = unescaped(reason.trim());
    match word.to_ascii_lowercase().as_str() {
        "skip" => Some(Verdict::Skipped(reason)),
        "todo" => Some(Verdict::Todo(reason)),
        _ => None,
    }
}

/// Takes one backslash away before each `#` and each other backslash.
fn unescaped(text: &str) -> String {
    text.replace(r"\#", "#").replace(r"\\", r"\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(output: &str) -> (Vec<Test>, Vec<String>) {
        let mut report = Report::default();
        output.lines().for_each(|line| report.feed(line));
        report.finish()
    }

    fn problems(output: &str) -> Vec<String> {
        finish(output).1
    }

    fn test(description: &str, verdict: Verdict) -> Test {
        Test { description: description.to_owned(), verdict }
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_good_report_has_no_problem() {
        let output = "TAP version 13\n1..3\n# note\nok 1 - first\n  ok 7 - of another program\nok 2 second\nok\nokay, done\n";
        let (tests, problems) = finish(output);
        assert_eq!(problems, NONE);
        assert_eq!(tests, ["first", "second", ""].map(|description| test(description, Verdict::Passed)));
    }

    #[test]
    fn the_plan_may_come_last_and_may_be_empty() {
        assert_eq!(problems("ok 1\n1..1\n"), NONE);
        assert_eq!(problems("1..0 # SKIP nothing here\n"), NONE);
        assert_eq!(problems("ok 1\n1..2\nok 2\n"), ["the plan is in the middle of the tests"]);
    }

    #[test]
    fn failed_tests_are_kept_by_name() {
        let (tests, problems) = finish("1..2\nnot ok 1 - status AVAILABLE\nnot ok\n");
        assert_eq!(tests, [test("status AVAILABLE", Verdict::Failed), test("", Verdict::Failed)]);
        assert_eq!(problems, NONE);
    }

    #[test]
    fn a_plan_must_be_there_once_and_be_met() {
        assert_eq!(problems("ok 1\n"), ["no plan"]);
        assert_eq!(problems(""), ["no plan"]);
        assert_eq!(problems("1..2\nok 1\n"), ["planned 2 tests, ran 1"]);
        assert_eq!(problems("1..1\nok 1\nok 2\n"), ["planned 1 tests, ran 2"]);
        assert_eq!(problems("1..1\n1..1\nok 1\n"), ["more than one plan"]);
        assert_eq!(problems("1..99999999999999999999999\nok 1\n"), ["no plan"]);
    }

    #[test]
    fn numbers_must_be_in_sequence() {
        assert_eq!(problems("1..2\nok 1\nok 3 - lost one\n"), ["test 2 has number 3"]);
    }

    #[test]
    fn bailing_out_is_a_failure_and_ends_the_report() {
        let (tests, found) = finish("1..1\nok 1\nBail out! setup: refused\nnot ok 2\n");
        assert_eq!((tests.len(), found), (1, vec!["bailed out: setup: refused".to_owned()]));
        assert_eq!(problems("1..9\nBail out!\n"), ["bailed out: "]);
    }

    #[test]
    fn directives_decide_whatever_the_result_says() {
        let output = "1..4\nok 1 # SKIP no server\nnot ok 2 - two # todo later\nok 3 - three # TODO\nnot ok 4 - see #4 # SKIP\n";
        let (tests, problems) = finish(output);
        assert_eq!(problems, NONE);
        assert_eq!(tests[0], test("", Verdict::Skipped("no server".into())));
        assert_eq!(tests[1], test("two", Verdict::Todo("later".into())));
        assert_eq!(tests[2], test("three", Verdict::Todo(String::new())));
        assert_eq!(tests[3], test("see #4", Verdict::Skipped(String::new())));
    }

    #[test]
    fn what_the_emitter_escapes_is_no_directive() {
        let mut output = Vec::new();
        {
            let mut tap = crate::emitter::Emitter::new(&mut output);
            tap.plan(2);
            tap.ok(false, "see # SKIP me");
            tap.todo(false, r"ends with \", "#9");
        }
        let (tests, problems) = finish(&String::from_utf8(output).unwrap());
        assert_eq!(problems, NONE);
        assert_eq!(tests[0], test("see # SKIP me", Verdict::Failed));
        assert_eq!(tests[1], test(r"ends with \", Verdict::Todo("#9".into())));
    }
}
