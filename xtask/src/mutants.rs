//! `cargo xtask mutants --suite`: breaks real backends on purpose, one line at a time, and checks that a test notices: the suite, or the
//! test that the mutant names.

mod copy;
mod end;
mod list;
pub(crate) mod small;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use self::copy::Copy;
use self::end::{End, end_of};
use self::list::{MUTANTS, Mutant};
use self::small::AS_ASKED;
use crate::command::{at_once, printed};
use crate::services::Fleet;
use crate::test_program::{Part, TestProgram};
use crate::workspace::{crate_of, read, root};

/// A mutant hangs when its tests take this factor longer than those of the right code, and longer than this time. Nothing takes
/// longer than the longest.
const SLOWER: u32 = 3;
const LEAST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Runs the suite on each mutant whose backend or fault contains one of the words, or on all.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let chosen = |mutant: &&Mutant| {
        words.is_empty() || words.iter().any(|word| mutant.backend == *word || mutant.wrong.contains(word))
    };
    let chosen: Vec<_> = MUTANTS.iter().filter(chosen).collect();
    chosen.iter().try_for_each(|mutant| mutant.patched(&root()).map(drop))?;
    // As many as processors: most of a build and of a run waits.
    let crowd = thread::available_parallelism().map_or(1, usize::from);
    let lanes = (0..crowd).map(Lane::start).collect::<Result<Vec<_>, _>>()?;

    let all: BTreeSet<_> = chosen.iter().map(|mutant| (mutant.backend, mutant.tests)).collect();
    let mut patience = BTreeMap::new();
    for (backend, tests) in all {
        let began = Instant::now();
        match suite(&lanes[0], backend, tests, LONGEST)? {
            End::Survived => patience.insert((backend, tests), (began.elapsed() * SLOWER).max(LEAST)),
            end => return Err(format!("{backend} without any patch: {end}")),
        };
    }
    let free = Mutex::new(lanes);
    let is_caught = at_once(&chosen, crowd, |mutant| {
        let began = Instant::now();
        let lane = free.lock().ok().and_then(|mut free| free.pop()).ok_or("no lane is free")?;
        let copy = &lane.copy;
        let right = fs::read(copy.tree.join(mutant.file)).map_err(|failure| format!("{}: {failure}", mutant.file))?;
        copy.write(mutant.file, mutant.patched(&copy.tree)?.as_bytes())?;
        let patience = patience[&(mutant.backend, mutant.tests)];
        let end = suite(&lane, mutant.backend, mutant.tests, patience);
        copy.write(mutant.file, &right)?;
        free.lock().map_err(|failure| failure.to_string())?.push(lane);
        let is_caught = matches!(end, Ok(End::Noticed(_) | End::Hung));
        let end = end.map_or_else(|why| format!("NOT RUN: {why}"), |end| end.to_string());
        println!("{:13} {:62} {end} ({} s)", mutant.backend, mutant.wrong, began.elapsed().as_secs());
        Ok(is_caught)
    })?;
    let caught = is_caught.iter().filter(|is_caught| **is_caught).count();
    println!("\nmutants: {caught} of {} caught", chosen.len());
    Ok(caught == chosen.len())
}

/// Where mutants are built and run, one after the other. Its servers are its own: a PostgreSQL has the functions of whoever migrated
/// it last, which would be another mutant.
struct Lane {
    copy: Copy,
    fleet: Fleet,
}

impl Lane {
    fn start(number: usize) -> Result<Self, String> {
        let copy = Copy::create(&format!("suite-{number}"), |_, text| Some(text))?;
        Ok(Self { copy, fleet: Fleet::start(|_| true)? })
    }
}

impl Mutant {
    /// The text of its file with the fault. Fails if the text that it replaces does not stand there once: it would change nothing.
    fn patched(&self, tree: &Path) -> Result<String, String> {
        let text = read(&tree.join(self.file))?;
        match text.matches(self.right).count() {
            1 => Ok(text.replacen(self.right, self.instead, 1)),
            times => Err(format!("{:?} stands {times} times in {}: {}", self.right, self.file, self.wrong)),
        }
    }
}

/// How often the suite runs when cases fail in it that pass alone.
const TRIES: usize = 3;

/// Builds these tests of a backend in the copy, and runs them until the first one fails. A busy machine fails some that are right:
/// so it has to fail alone, too.
fn suite(lane: &Lane, backend: &str, tests: &str, patience: Duration) -> Result<End, String> {
    let tests = Part(tests);
    let package = format!("leasehold-{}", crate_of(backend));
    let mut build = lane.copy.cargo();
    build.args(["test", "--quiet", "--no-run", "--all-features", "--message-format=json", "-p", &package]);
    let messages = printed(build.args(tests.target()))?;
    let program = TestProgram::read_all(&messages).pop().ok_or_else(|| format!("{package} has no such tests"))?;
    let end = |only: Option<&[&str]>| {
        let mut command = Command::new(&program.executable);
        tests.select(&mut command, only);
        command.current_dir(&program.folder).envs(lane.fleet.environment());
        // The variant that has no name: a program with every fast path on.
        end_of(command.env("LEASEHOLD_CONFORMANCE_VARIANT", "").env(AS_ASKED, "1"), patience)
    };
    for _ in 0..TRIES {
        let first = end(None)?;
        let End::Noticed(case) = &first else { return Ok(first) };
        if end(Some(&[case]))? != End::Survived {
            return Ok(first);
        }
        println!("{case} failed among the others, and not alone");
    }
    Err(format!("{} of {backend}: one case or another fails among the others, and not alone", tests.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_changes_one_place_that_is_there_and_a_test_that_has_to_notice() {
        for mutant in MUTANTS {
            mutant.patched(&root()).unwrap();
            assert_ne!(mutant.right, mutant.instead, "{}", mutant.wrong);
            // A module that is not there has no test that could fail: every mutant would survive.
            if Part(mutant.tests).program() == "it" {
                let folder = root().join("crates").join(crate_of(mutant.backend)).join("tests/it");
                let module = folder.join(mutant.tests);
                assert!(module.is_dir() || module.with_extension("rs").is_file(), "there is no {}", module.display());
            }
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
