//! The report in JUnit's XML, for tools that show test results. Written by hand: it is one small tree, and what has to be got
//! right, the escapes, is ten lines.

use super::execution::Outcome;
use super::report::{Test, Verdict};
use std::fmt::Write;

/// One run of one binary, as the report needs it.
pub struct Suite {
    /// The binary, with the round if there are several
    pub name: String,
    /// How it did
    pub outcome: Outcome,
    /// Standard output and standard error; shown for a failure
    pub output: String,
    /// What the daemon logged meanwhile; shown for a failure
    pub daemon_log: String,
}

impl Suite {
    /// A finding that belongs to no binary.
    pub fn error(name: &str, problem: &str) -> Self {
        let outcome = Outcome { problems: vec![problem.to_owned()], ..Outcome::default() };
        Self { name: name.to_owned(), outcome, output: String::new(), daemon_log: String::new() }
    }
}

/// The whole document: a suite for each run of a binary, with a case for each test and one more, `run`, for each problem that is
/// not a failed test.
pub fn document(group: &str, suites: &[Suite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let outcomes = || suites.iter().map(|suite| &suite.outcome);
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escaped(group), totals(outcomes()));
    for suite in suites {
        write_suite(&mut text, suite);
    }
    text.push_str("</testsuites>\n");
    text
}

// Writing to a String cannot fail.
fn write_suite(text: &mut String, Suite { name, outcome, output, daemon_log }: &Suite) {
    let name = escaped(name);
    let _ = writeln!(text, "  <testsuite name=\"{name}\" {}>", totals([outcome]));
    for (index, test) in outcome.tests.iter().enumerate() {
        write_test(text, &name, index + 1, test);
    }
    for problem in &outcome.problems {
        let problem = escaped(problem);
        let _ = writeln!(
            text,
            "    <testcase classname=\"{name}\" name=\"run\"><error message=\"{problem}\"/></testcase>"
        );
    }
    if !outcome.passed() {
        let _ = writeln!(text, "    <system-out>{}</system-out>", escaped(output));
        let _ = writeln!(text, "    <system-err>{}</system-err>", escaped(daemon_log));
    }
    text.push_str("  </testsuite>\n");
}

fn write_test(text: &mut String, suite: &str, number: usize, test: &Test) {
    let description = escaped(&test.description);
    let _ = write!(text, "    <testcase classname=\"{suite}\" name=\"{number} - {description}\"");
    let _ = match &test.verdict {
        Verdict::Passed => writeln!(text, "/>"),
        Verdict::Failed => {
            writeln!(text, "><failure message=\"not ok {number} - {description}\"/></testcase>")
        }
        Verdict::Skipped(reason) => writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(reason)),
        Verdict::Todo(reason) => {
            writeln!(text, "><skipped message=\"to do: {}\"/></testcase>", escaped(reason))
        }
    };
}

/// The attributes with the sums over `outcomes`.
fn totals<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> String {
    let (mut tests, mut failures, mut errors, mut skipped, mut seconds) = (0, 0, 0, 0, 0.0);
    for outcome in outcomes {
        tests += outcome.tests.len() + outcome.problems.len();
        failures += outcome.failed_tests().count();
        errors += outcome.problems.len();
        let passed_over = |test: &&Test| matches!(test.verdict, Verdict::Skipped(_) | Verdict::Todo(_));
        skipped += outcome.tests.iter().filter(passed_over).count();
        seconds += outcome.elapsed.as_secs_f64();
    }
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
    )
}

/// `text` for an attribute or an element. Characters that XML 1.0 cannot have become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(character),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn test(description: &str, verdict: Verdict) -> Test {
        Test { description: description.to_owned(), verdict }
    }

    #[test]
    fn every_test_and_every_problem_is_a_case() {
        let tests = vec![
            test("first", Verdict::Passed),
            test("a < b", Verdict::Failed),
            test("", Verdict::Skipped("no server".into())),
            test("later", Verdict::Todo("soon".into())),
        ];
        let outcome =
            Outcome { tests, problems: vec!["no plan".into()], elapsed: Duration::from_millis(1500) };
        let suite =
            Suite { name: "a-t".into(), outcome, output: "1 & 2\n".into(), daemon_log: "\u{1b}[0m".into() };
        let good = Outcome { tests: vec![test("x", Verdict::Passed)], ..Outcome::default() };
        let good = Suite { name: "b-t".into(), outcome: good, output: "o".into(), daemon_log: "d".into() };
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"g-g1\" tests=\"6\" failures=\"1\" errors=\"1\" skipped=\"2\" time=\"1.500\">
  <testsuite name=\"a-t\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"2\" time=\"1.500\">
    <testcase classname=\"a-t\" name=\"1 - first\"/>
    <testcase classname=\"a-t\" name=\"2 - a &lt; b\"><failure message=\"not ok 2 - a &lt; b\"/></testcase>
    <testcase classname=\"a-t\" name=\"3 - \"><skipped message=\"no server\"/></testcase>
    <testcase classname=\"a-t\" name=\"4 - later\"><skipped message=\"to do: soon\"/></testcase>
    <testcase classname=\"a-t\" name=\"run\"><error message=\"no plan\"/></testcase>
    <system-out>1 &amp; 2\n</system-out>
    <system-err>\u{fffd}[0m</system-err>
  </testsuite>
  <testsuite name=\"b-t\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"0.000\">
    <testcase classname=\"b-t\" name=\"1 - x\"/>
  </testsuite>
</testsuites>
";
        assert_eq!(document("g-g1", &[suite, good]), expected);
    }

    #[test]
    fn a_finding_without_a_binary_is_an_error() {
        let text = document("g", &[Suite::error("daemon", "it said \"no\"")]);
        assert!(text.contains("<error message=\"it said &quot;no&quot;\"/>"), "{text}");
        assert!(text.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{text}");
    }
}
