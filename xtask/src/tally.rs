//! Reads the output of a test run: the counts, what failed, and the closing line of each conformance suite.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

/// The most lines of what failed that are kept: a whole suite that fails says little more at its end.
const MOST_LINES: usize = 60;

/// The most names of failed tests that are printed in a row: those of a whole suite would hide what to begin with.
const MOST_NAMES: usize = 10;

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
    place: Place,
}

/// Where in the output of a test binary the next line is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    /// Among what the failed tests said.
    Failures,
    /// In the list of their names, of which so many have come.
    Names(usize),
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
        self.unsteady.extend(other.unsteady);
        self.failures.extend(other.failures);
        self.begin_with.extend(other.begin_with);
    }

    /// Prints the output, with the first names of a long list of failed tests, and adds up the counts.
    pub(crate) fn stream(&mut self, from: impl Read, mut to: impl Write) -> io::Result<()> {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            let before = self.place;
            self.read(&String::from_utf8_lossy(&line));
            if let (Place::Names(names), Place::Elsewhere) = (before, self.place)
                && names > MOST_NAMES
            {
                writeln!(to, "    and {} more\n", names - MOST_NAMES)?;
            }
            if !matches!(self.place, Place::Names(names) if names > MOST_NAMES) {
                to.write_all(&line)?;
            }
            to.flush()?;
            line.clear();
        }
        Ok(())
    }

    fn read(&mut self, line: &str) {
        // A test that runs in a process of its own shows what that printed, moved to the right.
        let result = line.trim_end();
        let line = line.trim();
        if line == "failures:" && self.place == Place::Elsewhere {
            self.place = Place::Failures;
        } else if result == "failures:" {
            self.place = Place::Names(0);
        } else if result.starts_with("test result: ") {
            self.place = Place::Elsewhere;
        } else if self.place != Place::Elsewhere && !line.is_empty() {
            if let Place::Names(names) = &mut self.place {
                *names += 1;
            }
            if self.failures.len() < MOST_LINES {
                self.failures.push(line.to_owned());
            }
        } else if line.starts_with("begin with ") {
            self.begin_with.push(line.to_owned());
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
        assert_eq!(tally, Tally { passed: 62, failed: 1, ignored: 2, suites, failures, ..Tally::default() });
    }

    #[test]
    fn of_a_suite_that_fails_as_a_whole_the_first_names_are_printed_and_what_to_begin_with_is_kept() {
        let names: Vec<String> = (0..304).map(|number| format!("    s::c{number}\n")).collect();
        let output = [
            "failures:\n\n---- s::c0 ----\nis not written yet\n\nfailures:\n",
            &names.concat(),
            "\ntest result: FAILED. 0 passed; 304 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n",
            "\ns  passed 0  failed 304  ignored 0\n\nbegin with c10_try\nbroken: C10\n",
        ]
        .concat();
        let (mut tally, mut printed) = (Tally::default(), Vec::new());
        tally.stream(output.as_bytes(), &mut printed).expect("a slice can be read to its end");
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert_eq!(printed.matches("    s::c").count(), MOST_NAMES, "{printed}");
        assert!(printed.contains("    and 294 more\n") && printed.ends_with("\nbroken: C10\n"), "{printed}");
        assert_eq!((tally.failed, tally.begin_with), (304, vec!["begin with c10_try".to_owned()]));
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
