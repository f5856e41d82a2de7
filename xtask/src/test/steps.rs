//! What `cargo xtask test` has done, and what failed of it.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::tally::Tally;

/// The steps that failed, and why.
#[derive(Debug, Default)]
pub(super) struct Steps {
    failed: Vec<String>,
}

impl Steps {
    pub(super) fn run(&mut self, name: &str, command: &mut Command) {
        Self::announce(name, &in_words(command));
        let outcome = match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(failure) => Err(failure.to_string()),
        };
        self.note(name, outcome);
    }

    /// Says that a step is left out. It does not fail: what it needs is not here.
    pub(super) fn skip(name: &str, why: &str) {
        println!("\n==> {name}: skipped, {why}");
    }

    pub(super) fn announce(name: &str, what: &str) {
        println!("\n==> {name}: {what}");
    }

    pub(super) fn note(&mut self, name: &str, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            println!("{name} failed: {why}");
            // One line a step: the whole of it was printed where it happened.
            self.failed.push(format!("{name} ({})", why.lines().next().unwrap_or_default()));
        }
    }

    /// Prints what failed, and then the counts, alone on the last line.
    pub(super) fn close(self, tally: &Tally) -> ExitCode {
        println!();
        // What failed was printed long before: here it is found.
        for line in &tally.failures {
            println!("  {line}");
        }
        for suite in &tally.suites {
            println!("{suite}");
        }
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        println!("total: {} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.ignored);
        self.code()
    }

    /// Prints what failed, where no tests were run.
    pub(super) fn end(self) -> ExitCode {
        println!("\nfailed: {}", if self.failed.is_empty() { "nothing".to_owned() } else { self.failed.join(", ") });
        self.code()
    }

    fn code(&self) -> ExitCode {
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The command as text, for example `cargo fmt --check`, without the path of the program.
pub(super) fn in_words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    [program.to_string_lossy()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
