//! Reads the output of a test run: the counts, what failed, and the closing line of each conformance suite.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

/// The most lines of what failed that are kept: a whole suite that fails says little more at its end.
const MOST_LINES: usize = 60;

/// The sum of the counts of all test binaries, and the closing lines of the suites, in the order of their output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    pub(crate) suites: Vec<String>,
    /// What the test binaries printed of their failures.
    pub(crate) failures: Vec<String>,
    within_failures: bool,
}

impl Tally {
    /// Adds up the counts of an output.
    pub(crate) fn read_all(&mut self, output: &str) {
        output.lines().for_each(|line| self.read(line));
    }

    /// The counts, with so many failures at least: a step can fail although no test did.
    pub(crate) fn with_failures(&self, least: u64) -> Self {
        Self { passed: self.passed, failed: self.failed.max(least), ignored: self.ignored, ..Self::default() }
    }

    /// Adds what another tally has.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.suites.extend(other.suites);
        self.failures.extend(other.failures);
    }

    /// Prints every line of the output, and adds up the counts.
    pub(crate) fn stream(&mut self, from: impl Read, mut to: impl Write) -> io::Result<()> {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            to.write_all(&line)?;
            to.flush()?;
            self.read(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    fn read(&mut self, line: &str) {
        // A test that runs in a process of its own shows what that printed, moved to the right.
        let result = line.trim_end();
        let line = line.trim();
        if line == "failures:" {
            self.within_failures = true;
        } else if result.starts_with("test result: ") {
            self.within_failures = false;
        } else if self.within_failures && !line.is_empty() && self.failures.len() < MOST_LINES {
            self.failures.push(line.to_owned());
        }
        if let Some([passed, failed, ignored]) = binary_result(result) {
            self.passed += passed;
            self.failed += failed;
            self.ignored += ignored;
        } else if is_suite_line(line) {
            self.suites.push(line.to_owned());
        }
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
        let mut tally = Tally::default();
        let printed = "\
running 2 tests
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
        tally.stream(printed.as_bytes(), io::sink()).expect("a slice can be read to its end");
        let suites = vec!["redis-single  passed 61  failed 0  ignored 2".to_owned()];
        let failures = ["---- two ----", "the key was free", "two"].map(str::to_owned).to_vec();
        assert_eq!(tally, Tally { passed: 62, failed: 1, ignored: 2, suites, failures, within_failures: false });
    }

    #[test]
    fn other_lines_count_for_nothing() {
        let mut tally = Tally::default();
        for line in ["test result: ok", "passed 1 failed 0 ignored 0", "file  passed x  failed 0  ignored 0", ""] {
            tally.read(line);
        }
        assert_eq!(tally, Tally::default());
    }
}
