//! `cargo xtask mutants --suite`: breaks real backends on purpose, one line at a time, and checks that a test notices: the suite, or the
//! test that the mutant names.

mod copy;
mod end;
mod list;
pub(crate) mod small;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::panic::resume_unwind;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::services::Fleet;
use crate::test_program::Part;
use copy::Copy;
use end::{End, end_of};
use list::{MUTANTS, Mutant};
use small::AS_ASKED;

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
    // As many as processors, for most of a build and of a run waits.
    let crowd = thread::available_parallelism().map_or(1, usize::from);
    let lanes = (0..crowd).map(Lane::start).collect::<Result<Vec<_>, _>>()?;
    for mutant in &chosen {
        lanes[0].copy.patched(mutant)?;
    }

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
        let patched = lane.copy.patched(mutant)?;
        let patience = patience[&(mutant.backend, mutant.tests)];
        let end = lane.copy.with(mutant.file, &patched, || suite(&lane, mutant.backend, mutant.tests, patience));
        free.lock().map_err(|failure| failure.to_string())?.push(lane);
        let is_caught = matches!(end, Ok(End::Noticed(_) | End::Hung));
        let end = end.map_or_else(|why| format!("NOT RUN: {why}"), |end| end.to_string());
        println!("{:13} {:62} {end} ({} s)", mutant.backend, mutant.wrong, began.elapsed().as_secs());
        Ok(is_caught)
    })?;
    let caught = is_caught.iter().filter(|is_caught| **is_caught).count();
    println!("\nmutants: {caught} of {} caught", chosen.len());
    Ok(if caught == chosen.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where mutants are built and run, one after the other. The servers are its own: a PostgreSQL has the functions of whoever migrated it
/// last, which would be another mutant.
struct Lane {
    copy: Copy,
    fleet: Fleet,
}

impl Lane {
    fn start(number: usize) -> Result<Self, String> {
        Ok(Self { copy: Copy::create(&format!("suite-{number}"), None)?, fleet: Fleet::start(|_| true)? })
    }
}

/// Does this with each of them, so many at a time, and returns the results in their order, or the first failure.
fn at_once<T: Sync, R: Send>(
    all: &[T],
    crowd: usize,
    work: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let in_turn = || {
            let mine =
                iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|place| *place < all.len());
            mine.map(|place| work(&all[place]).map(|result| (place, result))).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..crowd).map(|_| scope.spawn(in_turn)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect::<Vec<_>>()
    })
    .into_iter()
    .collect::<Result<_, _>>()?;
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// How often the suite runs when cases fail in it that pass alone.
const TRIES: usize = 3;

/// Builds these tests of a backend in the copy, and runs them until the first one fails. A busy machine fails some that are right:
/// so it has to fail alone, too.
fn suite(lane: &Lane, backend: &str, tests: &str, patience: Duration) -> Result<End, String> {
    let (package, folder) = match backend {
        "memory" => ("leasehold-core".to_owned(), "core"),
        name => (format!("leasehold-{name}"), name),
    };
    let tests = Part(tests);
    let program = lane.copy.build(&package, tests.program())?;
    let end = |only: Option<&[&str]>| {
        let mut command = Command::new(&program);
        tests.select(&mut command, only);
        command.current_dir(lane.copy.tree.join("crates").join(folder)).envs(lane.fleet.environment());
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
