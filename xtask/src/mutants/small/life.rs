//! Runs the tests that reach a mutant, and tells whether they notice it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::subject::{Look, Programs, Subject, read, write};
use crate::mutants::at_once;
use crate::mutants::end::{End, end_of};
use crate::test_program::{Part, names};

/// The limit of the data in memory of a run, in KiB: more than the search needs, and less than would disturb the machine. A file that
/// is mapped is no part of it: an etcd maps 10 GiB of its own.
const MEMORY: &str = "6000000";

/// More than the right code needs on any machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The stack of a thread: a function with an arm for each of its mutants needs more than one without.
const STACK: &str = "33554432";

/// The file to which a program writes the changed functions that it reaches.
const REACHED: &str = "LEASEHOLD_REACHED";

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
        programs: &'s Programs,
        crowd: usize,
    ) -> Result<Self, String> {
        let program = &programs[&look.program];
        let mut run = Self { subject, look, program, took: Duration::ZERO, reached: BTreeMap::new() };
        let began = Instant::now();
        let (end, together) = run.traced("all", None)?;
        if end != End::Survived {
            return Err(format!("{}: {end}, and nothing is wrong", look.program));
        }
        run.took = began.elapsed();
        run.reached = together.into_iter().map(|function| (function, BTreeSet::new())).collect();
        let tests: Vec<_> = run.tests()?.into_iter().enumerate().collect();
        let alone = at_once(&tests, crowd, |(number, test)| run.traced(&number.to_string(), Some(test)))?;
        for ((_, test), (_, functions)) in tests.iter().zip(alone) {
            for function in functions {
                run.reached.entry(function).or_default().insert(test.clone());
            }
        }
        Ok(run)
    }

    pub(super) fn reaches(&self, function: usize) -> bool {
        self.reached.contains_key(&function)
    }

    /// Runs the tests that reach this function with the mutant of this number active, beside those of others.
    pub(super) fn on(&self, number: usize, function: usize) -> Result<End, String> {
        self.mutated(number, function, (self.took * self.subject.patience.slower).max(self.subject.patience.least))
    }

    /// The same on a machine that does nothing else, as when the right code was run: it gets twice the time.
    pub(super) fn alone(&self, number: usize, function: usize) -> Result<End, String> {
        self.mutated(number, function, (self.took * 2).max(self.subject.patience.least / 2))
    }

    /// A busy machine disturbs tests: one that fails has to fail alone, or one or another each time.
    fn mutated(&self, number: usize, function: usize, patience: Duration) -> Result<End, String> {
        let active = ("LEASEHOLD_MUTANT", number.to_string());
        // What several tests only reach together is asked of all.
        let tests = self.reached.get(&function).filter(|tests| !tests.is_empty());
        let tests: Option<Vec<&str>> = tests.map(|tests| tests.iter().map(String::as_str).collect());
        let end = self.end(&active, tests.as_deref(), patience)?;
        let by = match &end {
            End::Noticed(by) if self.subject.asks_twice => by.clone(),
            _ => return Ok(self.by_this(end)),
        };
        let again = self.end(&active, Some(&[&by]), patience)?;
        let end = if again == End::Survived { self.end(&active, tests.as_deref(), patience)? } else { end };
        Ok(self.by_this(end))
    }

    fn by_this(&self, end: End) -> End {
        match end {
            End::Noticed(test) => End::Noticed(format!("{test} of {}", self.look.program)),
            end => end,
        }
    }

    /// Runs one test or all on the right code, and returns the changed functions that were reached.
    fn traced(&self, name: &str, test: Option<&str>) -> Result<(End, BTreeSet<usize>), String> {
        let reached = self.subject.target.join("reach").join(name);
        write(&reached, "")?;
        let environment = (REACHED, reached.to_string_lossy().into_owned());
        let only = test.map(|test| [test]);
        let end = self.end(&environment, only.as_ref().map(|only| &only[..]), PATIENCE)?;
        Ok((end, read(&reached)?.lines().filter_map(|line| line.parse().ok()).collect()))
    }

    /// The names of the tests.
    fn tests(&self) -> Result<Vec<String>, String> {
        let listed = self.command(None).arg("--list").output();
        let listed = listed.map_err(|failure| format!("{}: {failure}", self.look.program))?;
        Ok(names(&String::from_utf8_lossy(&listed.stdout)))
    }

    /// Runs the tests, all or only these.
    fn end(&self, environment: &(&str, String), only: Option<&[&str]>, patience: Duration) -> Result<End, String> {
        end_of(self.command(only).env(environment.0, &environment.1), patience)
    }

    fn command(&self, only: Option<&[&str]>) -> Command {
        let Self { subject, look, program, .. } = self;
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -d $0; exec \"$@\"", MEMORY]).arg(program);
        if only.is_none() {
            command.args(look.filter);
        }
        Part(look.program.tests).select(&mut command, only);
        command.current_dir(subject.tree.join(look.program.folder));
        command.env("RUST_MIN_STACK", STACK).envs(look.environment.iter().cloned());
        command
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} s, {} functions", self.look.program, self.took.as_secs(), self.reached.len())
    }
}
