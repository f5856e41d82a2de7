//! `cargo xtask mutants --suite`: breaks real backends on purpose, one line at a time, and checks that a test notices: the suite, or the
//! test that the mutant names.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::AS_ASKED;
use super::list::{MUTANTS, Mutant};
use crate::command::{at_once, printed};
use crate::services::Fleet;
use crate::tally::failed_test;
use crate::test_program::TestProgram;
use crate::workspace::{crate_of, read, root, write};
use crate::worktree::Worktree;

/// A mutant hangs when its tests take this factor longer than those of the right code, and longer than this time. Nothing takes
/// longer than the longest.
const SLOWER: u32 = 3;
const LEAST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// How often the suite runs when cases fail in it that pass alone, each time without those.
const TRIES: usize = 3;

/// Runs the tests on each mutant whose backend or fault contains one of the words, or on all.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let is_chosen = |mutant: &&Mutant| {
        words.is_empty() || words.iter().any(|word| mutant.backend == *word || mutant.wrong.contains(word))
    };
    let chosen: Vec<_> = MUTANTS.iter().filter(is_chosen).collect();
    chosen.iter().try_for_each(|mutant| mutant.patched(&root()).map(drop))?;
    // As many lanes as processors: most of a build and of a run waits.
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let parts = chosen.chunks(chosen.len().div_ceil(lanes).max(1)).enumerate();
    // One after another: git takes one stash at a time.
    let parts: Vec<_> = parts
        .map(|(lane, part)| Ok((Worktree::of_now(&format!("seeded-{lane}"))?, part)))
        .collect::<Result<_, String>>()?;
    let caught: usize = at_once(&parts, lanes, |(copy, part)| caught(copy, part))?.iter().sum();
    println!("\nmutants: {caught} of {} caught", chosen.len());
    Ok(caught == chosen.len())
}

/// How many of these are caught. Each lane has servers of its own: a PostgreSQL has the functions of whoever migrated it last.
fn caught(copy: &Worktree, part: &[&Mutant]) -> Result<usize, String> {
    let fleet = Fleet::start(|_| true)?;
    let (mut caught, mut patience) = (0, BTreeMap::new());
    for mutant in part {
        let asked = (mutant.backend, mutant.tests);
        let patience = match patience.get(&asked) {
            Some(known) => *known,
            None => *patience.entry(asked).or_insert(on_what_is_right(copy, &fleet, asked)?),
        };
        let (began, file) = (Instant::now(), copy.tree.join(mutant.file));
        let right = read(&file)?;
        write(&file, &mutant.patched(&copy.tree)?)?;
        let end = end(copy, &fleet, asked, patience);
        write(&file, &right)?;
        caught += usize::from(matches!(end, Ok(End::Noticed(_) | End::Hung)));
        let end = end.map_or_else(|why| format!("NOT RUN: {why}"), |end| end.to_string());
        println!("{:13} {:62} {end} ({} s)", mutant.backend, mutant.wrong, began.elapsed().as_secs());
    }
    Ok(caught)
}

/// How long a mutant of this backend may take, by how long the right code does.
fn on_what_is_right(copy: &Worktree, fleet: &Fleet, asked: (&str, &str)) -> Result<Duration, String> {
    let began = Instant::now();
    match end(copy, fleet, asked, LONGEST)? {
        End::Survived => Ok((began.elapsed() * SLOWER).max(LEAST)),
        end => Err(format!("{} without any patch: {end}", asked.0)),
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

/// How a mutant ended.
#[derive(Debug)]
enum End {
    /// Noticed by this test.
    Noticed(String),
    /// Noticed because the tests did not end in time.
    Hung,
    Survived,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noticed(by) => write!(f, "noticed by {by}"),
            Self::Hung => f.write_str("hangs"),
            Self::Survived => f.write_str("SURVIVED"),
        }
    }
}

/// The program with these tests of a package, and the words by which it runs them: its unit tests (`lib`), its `model`, the search, or a
/// module of its program `it`, which for `conformance` runs the suite.
fn program(tests: &str) -> (&str, Option<String>) {
    match tests {
        "lib" | "search" => ("lib", (tests == "search").then(|| "search::".to_owned())),
        "model" => ("model", None),
        "conformance" => ("it", None),
        module => ("it", Some(format!("{module}::"))),
    }
}

/// Builds these tests of a backend in the copy, and runs them until the first one fails. A busy machine fails some that are right:
/// so it has to fail alone, too.
fn end(copy: &Worktree, fleet: &Fleet, (backend, tests): (&str, &str), patience: Duration) -> Result<End, String> {
    let (package, (name, filter)) = (format!("leasehold-{}", crate_of(backend)), program(tests));
    let mut build = copy.cargo();
    build.args(["test", "--quiet", "--no-run", "--all-features", "--message-format=json", "-p", &package]);
    build.args(if name == "lib" { vec!["--lib"] } else { vec!["--test", name] });
    let messages = printed(&mut build)?;
    let program = TestProgram::read_all(&messages).pop().ok_or_else(|| format!("{package} has no such tests"))?;
    let ends = |words: &[String]| {
        let mut command = Command::new(&program.executable);
        command.current_dir(&program.folder).args(words).envs([AS_ASKED]).envs(fleet.environment());
        // As the tests do. And the variant that has no name: a program with every fast path on.
        command
            .env("LEASEHOLD_SEARCH_SHARE", if tests == "search" { "1" } else { "16" })
            .env("LEASEHOLD_CONFORMANCE_VARIANT", "");
        command.envs((tests == "conformance").then_some(("LEASEHOLD_TESTS", "suite")));
        until_one_fails(&mut command, patience)
    };
    let mut words: Vec<_> = filter.into_iter().collect();
    for _ in 0..TRIES {
        let first = ends(&words)?;
        let End::Noticed(case) = &first else { return Ok(first) };
        if !matches!(ends(&["--exact".to_owned(), case.clone()])?, End::Survived) {
            return Ok(first);
        }
        println!("{case} failed among the others, and not alone");
        // What has to notice may be behind it.
        words.extend(["--skip".to_owned(), case.clone()]);
    }
    Err(format!("{tests} of {backend}: one case or another fails among the others, and not alone"))
}

fn until_one_fails(tests: &mut Command, patience: Duration) -> Result<End, String> {
    let failure = |failure: std::io::Error| format!("the tests: {failure}");
    let mut child = tests.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failure)?;
    let (tell, told) = channel();
    let lines = child.stdout.take().map(|output| BufReader::new(output).lines().map_while(Result::ok));
    let first_failure = move || lines?.find_map(|line| failed_test(&line).map(str::to_owned));
    let reader = thread::spawn(move || tell.send(first_failure()));
    let first = told.recv_timeout(patience);
    if !matches!(first, Ok(None)) {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failure)?;
    drop(reader.join());
    Ok(match first {
        Ok(Some(test)) => End::Noticed(test),
        Ok(None) if status.success() => End::Survived,
        Ok(None) => End::Noticed(status.to_string()),
        Err(_) => End::Hung,
    })
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
            if program(mutant.tests).0 == "it" {
                let folder = root().join("crates").join(crate_of(mutant.backend)).join("tests/it");
                let module = folder.join(mutant.tests);
                assert!(module.is_dir() || module.with_extension("rs").is_file(), "there is no {}", module.display());
            }
        }
    }
}
