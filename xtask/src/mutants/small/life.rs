//! Runs the tests that reach a mutant, and tells whether they notice it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::subject::{Look, Subject};
use crate::command::{at_once, printed};
use crate::mutants::end::{End, end_of};
use crate::test_program::{Part, TestProgram};
use crate::workspace::{read, write};

/// The limit of the data in memory of a run, in KiB: more than the search needs, and less than would disturb the machine. A file that
/// is mapped is no part of it: an etcd maps 10 GiB of its own.
const MEMORY: &str = "6000000";

/// More than the right code needs on any machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The stack of a thread: a function with an arm for each of its mutants needs more than one without.
const STACK: &str = "33554432";

/// A run of tests, as it was on the right code.
#[derive(Debug)]
pub(super) struct Run<'s> {
    subject: &'s Subject,
    look: &'s Look,
    program: &'s Path,
    took: Duration,
    /// The changed functions that it reaches, each with the tests that do so alone.
    reached: BTreeMap<usize, BTreeSet<String>>,
}

impl<'s> Run<'s> {
    /// Runs the tests on the right code, to measure how long that takes and what each reaches.
    pub(super) fn on_what_is_right(
        subject: &'s Subject,
        look: &'s Look,
        programs: &'s [TestProgram],
        crowd: usize,
    ) -> Result<Self, String> {
        let program = subject.program_of(look, programs).ok_or_else(|| format!("there are no tests {look}"))?;
        let mut run = Self { subject, look, program, took: Duration::ZERO, reached: BTreeMap::new() };
        let began = Instant::now();
        let (end, together) = run.traced("all", None)?;
        if end != End::Survived {
            return Err(format!("{look}: {end}, and nothing is wrong"));
        }
        run.took = began.elapsed();
        run.reached = together.into_iter().map(|function| (function, BTreeSet::new())).collect();
        let listed = printed(run.command(None).arg("--list"))?;
        let tests: Vec<_> = listed.lines().filter_map(|line| line.strip_suffix(": test")).enumerate().collect();
        let alone = at_once(&tests, crowd, |(number, test)| run.traced(&number.to_string(), Some(&[*test])))?;
        for ((_, test), (_, functions)) in tests.iter().zip(alone) {
            for function in functions {
                run.reached.entry(function).or_default().insert((*test).to_owned());
            }
        }
        Ok(run)
    }

    pub(super) fn reaches(&self, function: usize) -> bool {
        self.reached.contains_key(&function)
    }

    /// Runs the tests that reach this function with the mutant of this number active, beside those of others.
    pub(super) fn on(&self, number: usize, function: usize) -> Result<End, String> {
        self.mutated(number, function, (self.took * self.subject.slower).max(self.subject.least))
    }

    /// The same on a machine that does nothing else, as when the right code was run: it gets twice the time.
    pub(super) fn alone(&self, number: usize, function: usize) -> Result<End, String> {
        self.mutated(number, function, (self.took * 2).max(self.subject.least / 2))
    }

    /// A busy machine disturbs tests: one that fails has to fail alone, or one or another each time.
    fn mutated(&self, number: usize, function: usize, patience: Duration) -> Result<End, String> {
        // What several tests only reach together is asked of all.
        let tests = self.reached.get(&function).filter(|tests| !tests.is_empty());
        let tests: Option<Vec<&str>> = tests.map(|tests| tests.iter().map(String::as_str).collect());
        let end =
            |only: Option<&[&str]>| end_of(self.command(only).env("LEASEHOLD_MUTANT", number.to_string()), patience);
        let mut ended = end(tests.as_deref())?;
        if let End::Noticed(by) = &ended
            && self.subject.asks_twice
            && end(Some(&[by]))? == End::Survived
        {
            ended = end(tests.as_deref())?;
        }
        Ok(match ended {
            End::Noticed(test) => End::Noticed(format!("{test} of {}", self.look)),
            ended => ended,
        })
    }

    /// Runs some tests or all on the right code, and returns the changed functions that were reached.
    fn traced(&self, name: &str, only: Option<&[&str]>) -> Result<(End, BTreeSet<usize>), String> {
        let reached = self.subject.copy.target.join("reach").join(name);
        write(&reached, "")?;
        let end = end_of(self.command(only).env("LEASEHOLD_REACHED", &reached), PATIENCE)?;
        Ok((end, read(&reached)?.lines().filter_map(|line| line.parse().ok()).collect()))
    }

    /// The command that runs the tests, all or only these.
    fn command(&self, only: Option<&[&str]>) -> Command {
        let Self { subject, look, program, .. } = self;
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -d $0; exec \"$@\"", MEMORY]).arg(program);
        if only.is_none() {
            command.args(look.filter);
        }
        Part(look.tests).select(&mut command, only);
        command.current_dir(subject.copy.tree.join(look.folder));
        command.env("RUST_MIN_STACK", STACK).envs(look.environment.iter().cloned());
        command
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} s, {} functions", self.look, self.took.as_secs(), self.reached.len())
    }
}
