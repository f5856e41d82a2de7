//! `cargo xtask mutants --suite`: breaks real backends on purpose, one line at a time, and checks that a test notices: the suite, or the
//! test that the mutant names.

mod copy;
mod end;
mod list;
pub(crate) mod small;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::services::Fleet;
use crate::test_program::Part;
use copy::Copy;
use end::{End, end_of};
use list::{MUTANTS, Mutant};

/// A mutant hangs when its tests take this factor longer than those of the right code, and longer than this time. Nothing takes
/// longer than the longest.
const SLOWER: u32 = 3;
const LEAST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Runs the suite on each mutant whose backend or fault contains one of the words, or on all.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let chosen = |mutant: &&Mutant| {
        words.is_empty() || words.iter().any(|word| mutant.backend == *word || mutant.wrong.contains(word))
    };
    let chosen: Vec<_> = MUTANTS.iter().filter(chosen).collect();
    let copy = Copy::create("suite", None)?;
    for mutant in &chosen {
        copy.patched(mutant)?;
    }
    let fleet = Fleet::start(|_| true)?;
    fleet.describe();

    let all: BTreeSet<_> = chosen.iter().map(|mutant| (mutant.backend, mutant.tests)).collect();
    let mut patience = BTreeMap::new();
    for (backend, tests) in all {
        let began = Instant::now();
        match suite(&copy, backend, tests, &fleet, LONGEST)? {
            End::Survived => patience.insert((backend, tests), (began.elapsed() * SLOWER).max(LEAST)),
            end => return Err(format!("{backend} without any patch: {end}")),
        };
    }
    let mut caught = 0;
    for mutant in &chosen {
        let began = Instant::now();
        let patched = copy.patched(mutant)?;
        let patience = patience[&(mutant.backend, mutant.tests)];
        let end = copy.with(mutant.file, &patched, || suite(&copy, mutant.backend, mutant.tests, &fleet, patience));
        caught += usize::from(matches!(end, Ok(End::Noticed(_) | End::Hung)));
        let end = end.map_or_else(|why| format!("NOT RUN: {why}"), |end| end.to_string());
        println!("{:13} {:62} {end} ({} s)", mutant.backend, mutant.wrong, began.elapsed().as_secs());
    }
    println!("\nmutants: {caught} of {} caught", chosen.len());
    Ok(if caught == chosen.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How often the suite runs when cases fail in it that pass alone.
const TRIES: usize = 3;

/// Builds these tests of a backend in the copy, and runs them until the first one fails. A busy machine fails some that are right:
/// so it has to fail alone, too.
fn suite(copy: &Copy, backend: &str, tests: &str, fleet: &Fleet, patience: Duration) -> Result<End, String> {
    let (package, folder) = match backend {
        "memory" => ("leasehold-core".to_owned(), "core"),
        name => (format!("leasehold-{name}"), name),
    };
    let tests = Part(tests);
    let program = copy.build(&package, tests.program())?;
    let end = |only: Option<&str>| {
        let mut command = Command::new(&program);
        tests.select(&mut command, only);
        command.current_dir(copy.tree.join("crates").join(folder)).envs(fleet.environment());
        // The variant that has no name: a program with every fast path on.
        end_of(command.env("LEASEHOLD_CONFORMANCE_VARIANT", ""), patience)
    };
    for _ in 0..TRIES {
        let first = end(None)?;
        let End::Noticed(case) = &first else { return Ok(first) };
        if end(Some(case))? != End::Survived {
            return Ok(first);
        }
        println!("{case} failed among the others, and not alone");
    }
    Err(format!("{} of {backend}: one case or another fails among the others, and not alone", tests.0))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn every_mutant_changes_one_place_that_is_there() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(root().join(mutant.file)).expect(mutant.file);
            assert_eq!(text.matches(mutant.right).count(), 1, "{}: {}", mutant.file, mutant.right);
            assert_ne!(mutant.right, mutant.instead, "{}", mutant.wrong);
        }
    }

    /// A module that is not there has no test that could fail: every mutant would survive.
    #[test]
    fn the_tests_that_have_to_notice_are_there() {
        for mutant in MUTANTS.iter().filter(|mutant| Part(mutant.tests).program() == "it") {
            let folder = if mutant.backend == "memory" { "core" } else { mutant.backend };
            let module = root().join("crates").join(folder).join("tests/it").join(mutant.tests);
            assert!(module.is_dir() || module.with_extension("rs").is_file(), "{} has no {}", folder, mutant.tests);
        }
    }

    #[test]
    fn there_are_enough_of_each_backend() {
        for backend in
            ["memory", "file", "redis-single", "redis-rw", "redlock", "mysql-unique", "mysql-rw", "postgres", "etcd"]
        {
            assert!(MUTANTS.iter().filter(|mutant| mutant.backend == backend).count() >= 6, "{backend}");
        }
    }
}
