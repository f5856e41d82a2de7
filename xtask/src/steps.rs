//! What a task has done, step by step, and what failed of it.

use std::path::Path;
use std::process::{Command, ExitCode};

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
        let outcome = match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(failure) => Err(failure.to_string()),
        };
        self.note(name, outcome);
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

    /// Notes how a task ended that runs within this one.
    pub(crate) fn note_code(&mut self, name: &str, outcome: Result<ExitCode, String>) {
        let failed = Err("it failed, as it says above".to_owned());
        self.note(name, outcome.and_then(|code| if code == ExitCode::SUCCESS { Ok(()) } else { failed }));
    }

    /// Prints what failed, and then the counts, alone on the last line.
    pub(crate) fn close(self, tally: &Tally) -> ExitCode {
        println!();
        // What failed was printed long before: here it is found.
        for line in &tally.failures {
            println!("  {line}");
        }
        for suite in &tally.suites {
            println!("{suite}");
        }
        for test in &tally.unsteady {
            println!("unsteady, failed among others and passed three times alone: {test}");
        }
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        for line in &tally.begin_with {
            println!("{line}");
        }
        println!("total: {}", tally.with_failures(self.failed.len() as u64));
        self.code()
    }

    /// Prints what failed, where no tests were run, and then how many steps passed, alone on the last line.
    pub(crate) fn end(self) -> ExitCode {
        println!();
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        println!("steps: {} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped);
        self.code()
    }

    fn code(&self) -> ExitCode {
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The command as text, for example `cargo fmt --check`, without the path of the program.
pub(crate) fn in_words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    [program.to_string_lossy()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
