//! `cargo xtask test`: runs every check and every test, with the servers that they need.

use std::io;
use std::process::{Command, ExitCode, Stdio};

use crate::install;
use crate::matrix;
use crate::services::Fleet;
use crate::tally::Tally;
use crate::workspace::cargo;

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
const DOC: &[&str] = &["doc", "--workspace", "--no-deps", "--all-features"];
const TESTS: &[&str] = &["test", "--workspace", "--all-features", "--no-fail-fast"];

/// With the default features alone: what a missing feature is told as, and that nothing needs another store.
const FEATURES: &[&str] = &["test", "--quiet", "-p", "leasehold"];

/// Runs every step, also after one has failed, and prints the counts at the end.
pub(crate) fn run(install: bool) -> Result<ExitCode, String> {
    let mut steps = Steps::default();
    if install {
        steps.note("install", install::run());
    }
    let fleet = Fleet::start()?;
    fleet.describe();
    for failure in &fleet.failed {
        steps.note("servers", Err(failure.clone()));
    }

    steps.run("fmt", cargo().args(FMT));
    steps.run("clippy", cargo().args(CLIPPY));
    steps.run("doc", cargo().args(DOC).env("RUSTDOCFLAGS", "-Dwarnings"));
    steps.run("features", cargo().args(FEATURES));
    Steps::announce("matrix", "cargo xtask matrix --check");
    steps.note(
        "matrix",
        matrix::check().and_then(|code| {
            (code == ExitCode::SUCCESS).then_some(()).ok_or_else(|| "README.md is out of date".to_owned())
        }),
    );
    let tally = steps.run_tests(cargo().args(TESTS).envs(fleet.environment()));
    drop(fleet);

    Ok(steps.close(&tally))
}

/// The steps that failed, and why.
#[derive(Debug, Default)]
struct Steps {
    failed: Vec<String>,
}

impl Steps {
    fn run(&mut self, name: &str, command: &mut Command) {
        Self::announce(name, &in_words(command));
        let outcome = match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(failure) => Err(failure.to_string()),
        };
        self.note(name, outcome);
    }

    fn run_tests(&mut self, command: &mut Command) -> Tally {
        Self::announce("tests", &in_words(command));
        let mut tally = Tally::default();
        let outcome = command.stdout(Stdio::piped()).spawn().and_then(|mut child| {
            child.stdout.take().map_or(Ok(()), |output| tally.stream(output, io::stdout()))?;
            child.wait()
        });
        self.note(
            "tests",
            match outcome {
                Ok(status) if !status.success() => Err(status.to_string()),
                Ok(_) if tally.passed == 0 => Err("no test passed".into()),
                Ok(_) => Ok(()),
                Err(failure) => Err(failure.to_string()),
            },
        );
        tally
    }

    fn announce(name: &str, what: &str) {
        println!("\n==> {name}: {what}");
    }

    fn note(&mut self, name: &str, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            println!("{name} failed: {why}");
            // One line a step: the whole of it was printed where it happened.
            self.failed.push(format!("{name} ({})", why.lines().next().unwrap_or_default()));
        }
    }

    /// Prints what failed, and then the counts, alone on the last line.
    fn close(self, tally: &Tally) -> ExitCode {
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
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The command as text, for example `cargo fmt --check`, without the path of cargo.
fn in_words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    ["cargo".into()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
