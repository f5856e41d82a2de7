//! The one list of what is known to be broken, for the suite and for every other test.

use std::fmt;
use std::sync::LazyLock;

/// One line of the list: a test that must fail until a known defect is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The name of the defect.
    pub finding: &'static str,
    /// Where the test fails: suites by the name of their backend (`*` for all, `-name` for all except that), or other test
    /// targets as `crate/target`.
    pub places: &'static str,
    /// The test's name.
    pub test: &'static str,
    /// What is wrong.
    pub reason: &'static str,
}

static LIST: LazyLock<Vec<Expected>> = LazyLock::new(|| {
    let lines = include_str!("expected-failures.txt").lines();
    let lines = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| Expected::read(line).unwrap_or_else(|| unreachable!("it has four columns: {line}"))).collect()
});

impl Expected {
    fn read(line: &'static str) -> Option<Self> {
        let mut columns = line.split(" | ").map(str::trim);
        let expected =
            Self { finding: columns.next()?, places: columns.next()?, test: columns.next()?, reason: columns.next()? };
        columns.next().is_none().then_some(expected)
    }

    /// All entries, in the order of the list.
    pub fn all() -> &'static [Self] {
        &LIST
    }

    /// The entry of this test in this place, if it is expected to fail.
    pub fn of(place: &str, test: &str) -> Option<&'static Self> {
        LIST.iter().find(|expected| expected.test == test && expected.is_at(place))
    }

    fn is_at(&self, place: &str) -> bool {
        let mut places = self.places.split(' ');
        let suites = self.places.starts_with('*') && !place.contains('/');
        let exempt = self.places.split(' ').any(|listed| listed.strip_prefix('-') == Some(place));
        !exempt && (suites || places.any(|listed| listed == place))
    }

    /// Why the test counts as ignored although it failed; an error if it did not fail.
    pub fn settle<E: fmt::Display>(&self, verdict: &Result<(), E>) -> Result<String, String> {
        let Self { finding, test, reason, .. } = self;
        match verdict {
            Err(seen) => {
                let seen = seen.to_string().replace('\n', " ");
                Ok(format!("expected failure {finding}: {reason}; {seen}"))
            }
            Ok(()) => {
                Err(format!("{test} passes, but is listed as the expected failure {finding}: take it off the list"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_test_is_known_where_it_is_listed_and_is_ignored_while_it_fails_there() {
        let line = "D2 | memory redlock | c09_case | it is broken";
        let read = Expected::read(line).expect("four columns");
        assert_eq!((read.finding, read.test, read.reason), ("D2", "c09_case", "it is broken"));
        assert!(read.settle(&Err("broken")).is_ok_and(|why| why.contains("it is broken")));
        assert!(read.settle(&Ok::<_, &str>(())).is_err_and(|why| why.contains("c09_case")));
        assert!(["memory", "redlock"].iter().all(|place| read.is_at(place)) && !read.is_at("file"));
        let all_but_one = Expected { places: "* -file", ..read };
        assert!(all_but_one.is_at("memory") && !all_but_one.is_at("file") && !all_but_one.is_at("core/other"));
        assert_eq!(Expected::read("D2 | memory | c09_case"), None);
        for listed in Expected::all() {
            assert_eq!(Expected::of("core/no-such-target", listed.test), None);
        }
    }
}
