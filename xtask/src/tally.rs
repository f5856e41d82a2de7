//! Reads the output of a test run: the counts, and what failed.

use std::fmt;

/// The most lines of what failed that are kept: a whole suite that fails says little more at its end.
const MOST_LINES: usize = 60;

/// The sum of the counts of all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// Tests that failed among others and passed alone.
    pub(crate) unsteady: Vec<String>,
    /// What the test binaries printed of their failures.
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// What an output says.
    pub(crate) fn of(output: &str) -> Self {
        let mut tally = Self::default();
        let mut among_failures = false;
        for line in output.lines() {
            // A test that runs in a process of its own shows what that printed, moved to the right.
            if let Some([passed, failed, ignored]) = binary_result(line.trim_end()) {
                tally.add(Self { passed, failed, ignored, ..Self::default() });
                among_failures = false;
            } else if line.trim() == "failures:" {
                among_failures = true;
            } else if among_failures && !line.trim().is_empty() && tally.failures.len() < MOST_LINES {
                tally.failures.push(line.trim().to_owned());
            }
        }
        tally
    }

    /// Adds what another tally has.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.unsteady.extend(other.unsteady);
        self.failures.extend(other.failures);
    }
}

/// As the last line of a run says it.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.ignored)
    }
}

/// The test that a line says has failed, such as `test memory::c01_a_second_holder_is_excluded ... FAILED`.
pub(crate) fn failed_test(line: &str) -> Option<&str> {
    ended_test(line, " ... FAILED")
}

/// The same of one that passed.
pub(crate) fn passed_test(line: &str) -> Option<&str> {
    ended_test(line, " ... ok")
}

fn ended_test<'l>(line: &'l str, end: &str) -> Option<&'l str> {
    line.strip_prefix("test ")?.strip_suffix(end).map(str::trim_end)
}

/// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn binary_result(line: &str) -> Option<[u64; 3]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut next = |word: &str| counts.next()?.strip_suffix(word)?.trim().parse().ok();
    Some([next("passed")?, next("failed")?, next("ignored")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_what_failed_is_kept() {
        let printed = "\
test one ... ok
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

redis-single  passed 61  failed 0  ignored 2

failures:

---- two ----
the key was free

failures:
    two

test result: FAILED. 60 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 9.30s
";
        let failures = ["---- two ----", "the key was free", "two"].map(str::to_owned).to_vec();
        let expected = Tally { passed: 62, failed: 1, ignored: 2, failures, ..Tally::default() };
        assert_eq!(Tally::of(printed), expected);
    }
}
