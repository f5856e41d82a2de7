//! What a task has done, step by step, and what failed of it.

use std::process::Command;

use crate::command::{in_words, succeed};
use crate::tally::Tally;

/// The steps that failed, and why.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
}

impl Steps {
    pub(crate) fn run(&mut self, name: &str, command: &mut Command) {
        Self::announce(name, &in_words(command));
        self.note(name, succeed(command));
    }

    /// Runs a task within this one.
    pub(crate) fn run_task(&mut self, name: &str, words: &[&str], task: impl FnOnce(&[&str]) -> Result<bool, String>) {
        Self::announce(name, &format!("cargo xtask {}", words.join(" ")));
        let failed = Err("it failed, as it says above".to_owned());
        self.note(name, task(&words[1..]).and_then(|passed| if passed { Ok(()) } else { failed }));
    }

    /// Says that a step is left out. It does not fail: what it needs is not here.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        println!("\n==> {name}: skipped, {why}");
    }

    pub(crate) fn announce(name: &str, what: &str) {
        println!("\n==> {name}: {what}");
    }

    pub(crate) fn note(&mut self, name: &str, outcome: Result<(), String>) {
        let Err(why) = outcome else {
            self.passed += 1;
            return;
        };
        println!("{name} failed: {why}");
        // One line a step: the whole of it was printed where it happened.
        self.failed.push(format!("{name} ({})", why.lines().next().unwrap_or_default()));
    }

    /// Prints what failed, and then the counts of the tests, alone on the last line.
    pub(crate) fn close(self, mut tally: Tally) -> bool {
        println!();
        // What failed was printed long before: here it is found.
        tally.failures.iter().for_each(|line| println!("  {line}"));
        for test in &tally.unsteady {
            println!("unsteady, failed among others and passed three times alone: {test}");
        }
        self.print_failed();
        // A step can fail although no test did.
        tally.failed = tally.failed.max(self.failed.len() as u64);
        println!("total: {tally}");
        self.failed.is_empty()
    }

    /// Prints what failed, where no tests were run, and then how many steps passed, alone on the last line.
    pub(crate) fn end(self) -> bool {
        println!();
        self.print_failed();
        println!("steps: {} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped);
        self.failed.is_empty()
    }

    fn print_failed(&self) {
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
    }
}
