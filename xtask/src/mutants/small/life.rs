//! Runs the tests on one mutant, and tells whether they notice it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::generated::Mutant;
use super::subject::{Look, Programs, Subject, read, write};
use crate::mutants::end::{End, end_of};
use crate::test_program::Part;

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
    /// The changed functions that it reaches.
    reached: BTreeSet<usize>,
}

impl<'s> Run<'s> {
    /// Runs the tests on the right code, to measure how long that takes and what it reaches.
    pub(super) fn on_what_is_right(
        subject: &'s Subject,
        look: &'s Look,
        programs: &'s Programs,
    ) -> Result<Self, String> {
        let mut run =
            Self { subject, look, program: &programs[&look.program], took: Duration::ZERO, reached: BTreeSet::new() };
        let reached = subject.target.join("reached");
        write(&reached, "")?;
        let environment = ("LEASEHOLD_REACHED", reached.to_string_lossy().into_owned());
        let began = Instant::now();
        let end = run.end(&environment, None, PATIENCE)?;
        if end != End::Survived {
            return Err(format!("{}: {end}, and nothing is wrong", look.program));
        }
        run.took = began.elapsed();
        run.reached = read(&reached)?.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(run)
    }

    pub(super) fn reaches(&self, function: usize) -> bool {
        self.reached.contains(&function)
    }

    /// Runs the tests with the mutant of this number active, beside those of others.
    pub(super) fn on(&self, number: usize, mutant: &Mutant) -> Result<End, String> {
        self.mutated(number, mutant, self.patience())
    }

    /// The same on a machine that does nothing else, as when the right code was run: it gets less time.
    pub(super) fn alone(&self, number: usize, mutant: &Mutant) -> Result<End, String> {
        self.mutated(number, mutant, self.patience() / 3)
    }

    fn patience(&self) -> Duration {
        (self.took * self.subject.patience.slower).max(self.subject.patience.least)
    }

    fn mutated(&self, number: usize, mutant: &Mutant, patience: Duration) -> Result<End, String> {
        let only = Some(mutant.module()).filter(|_| self.look.own);
        self.end(&("LEASEHOLD_MUTANT", number.to_string()), only.as_deref(), patience)
    }

    /// Runs the tests, all or only those with this in their names.
    fn end(&self, environment: &(&str, String), only: Option<&str>, patience: Duration) -> Result<End, String> {
        let tried = || at(self.subject, self.look, self.program, environment, only, patience);
        let end = tried()?;
        if self.subject.asks_twice && matches!(end, End::Noticed(_)) { tried() } else { Ok(end) }
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = if self.look.own { ", the tests in the changed file" } else { "" };
        write!(f, "{}{own}: {} s, {} functions", self.look.program, self.took.as_secs(), self.reached.len())
    }
}

fn at(
    subject: &Subject,
    look: &Look,
    program: &Path,
    environment: &(&str, String),
    only: Option<&str>,
    patience: Duration,
) -> Result<End, String> {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d $0; exec \"$@\"", MEMORY]).arg(program).args(look.arguments);
    Part(look.program.tests).select(&mut command, only);
    command.current_dir(subject.tree.join(look.program.folder));
    command.env("RUST_MIN_STACK", STACK).envs(look.environment.iter().cloned()).env(environment.0, &environment.1);
    Ok(match end_of(&mut command, patience)? {
        End::Noticed(test) => End::Noticed(format!("{test} of {}", look.program)),
        end => end,
    })
}
