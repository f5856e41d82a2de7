//! Reads the output of a test run: the counts, what failed, and the closing line of each conformance suite.

use std::fmt;

/// The most lines of what failed that are kept: a whole suite that fails says little more at its end.
const MOST_LINES: usize = 60;

/// The sum of the counts of all test binaries, and the closing lines of the suites, in the order of their output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    pub(crate) suites: Vec<String>,
    /// Tests that failed among others and passed alone.
    pub(crate) unsteady: Vec<String>,
    /// What the test binaries printed of their failures.
    pub(crate) failures: Vec<String>,
    /// What each suite that failed says to begin with.
    pub(crate) begin_with: Vec<String>,
}

impl Tally {
    /// What an output says.
    pub(crate) fn of(output: &str) -> Self {
        let mut tally = Self::default();
        let mut among_failures = false;
        for line in output.lines() {
            // A test that runs in a process of its own shows what that printed, moved to the right.
            let (result, line) = (line.trim_end(), line.trim());
            if let Some([passed, failed, ignored]) = binary_result(result) {
                (tally.passed, tally.failed, tally.ignored) =
                    (tally.passed + passed, tally.failed + failed, tally.ignored + ignored);
                among_failures = false;
            } else if line == "failures:" {
                among_failures = true;
            } else if is_suite_line(line) {
                tally.suites.push(line.to_owned());
            } else if among_failures && !line.is_empty() {
                tally.failures.push(line.to_owned());
            } else if line.starts_with("begin with ") {
                tally.begin_with.push(line.to_owned());
            }
        }
        tally.failures.truncate(MOST_LINES);
        tally
    }

    /// Adds what another tally has.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.suites.extend(other.suites);
        self.unsteady.extend(other.unsteady);
        self.failures.extend(other.failures);
        self.begin_with.extend(other.begin_with);
    }
}

/// As the last line of a run says it.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.ignored)
    }
}

/// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn binary_result(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut next = |word: &str| counts.next()?.strip_suffix(word)?.trim().parse().ok();
    Some([next("passed")?, next("failed")?, next("ignored")?])
}

/// Reads a line such as `redis-single  passed 61  failed 0  ignored 2`.
fn is_suite_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "passed", passed, "failed", failed, "ignored", ignored] = words.as_slice() else {
        return false;
    };
    [passed, failed, ignored].iter().all(|count| count.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_suite_lines_and_failures_are_kept() {
        let printed = "\
running 2 tests
test one ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

passed 1 failed 0 ignored 0
redis-single  passed 61  failed 0  ignored 2

failures:

---- two ----
the key was free

failures:
    two

test result: FAILED. 60 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 9.30s

begin with c10_try
";
        let suites = vec!["redis-single  passed 61  failed 0  ignored 2".to_owned()];
        let failures = ["---- two ----", "the key was free", "two"].map(str::to_owned).to_vec();
        let begin_with = vec!["begin with c10_try".to_owned()];
        let expected = Tally { passed: 62, failed: 1, ignored: 2, suites, failures, begin_with, ..Tally::default() };
        assert_eq!(Tally::of(printed), expected);
    }
}
