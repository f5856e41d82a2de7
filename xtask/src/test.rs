//! `cargo xtask test`: runs every check and every test, with the servers that they need.

mod programs;

use std::io;
use std::process::{ChildStdout, Command, ExitCode, Stdio};

use crate::install;
use crate::matrix;
use crate::services::Fleet;
use crate::tally::Tally;
use crate::test_program::TestProgram;
use crate::workspace::cargo;

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
const DOC: &[&str] = &["doc", "--workspace", "--no-deps", "--all-features"];
const BUILD: &[&str] =
    &["test", "--workspace", "--all-features", "--no-run", "--message-format=json-render-diagnostics"];
const DOC_TESTS: &[&str] = &["test", "--workspace", "--all-features", "--no-fail-fast", "--doc"];

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
    let tally = steps.run_tests(&fleet.environment());
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

    fn run_tests(&mut self, environment: &[(&'static str, String)]) -> Tally {
        let mut tally = Tally::default();
        Self::announce("tests", &in_words(cargo().args(BUILD)));
        let outcome = built(cargo().args(BUILD)).and_then(|programs| {
            let failed = programs::run(programs, environment, &mut tally).map_err(|failure| failure.to_string())?;
            if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
        });
        self.note("tests", outcome);

        Self::announce("doc tests", &in_words(cargo().args(DOC_TESTS)));
        let outcome = printed(cargo().args(DOC_TESTS), |output| tally.stream(output, io::stdout()));
        self.note("doc tests", outcome.map(drop));
        if tally.passed == 0 {
            self.note("tests", Err("no test passed".into()));
        }
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

/// The programs of tests that this command builds.
fn built(command: &mut Command) -> Result<Vec<TestProgram>, String> {
    let messages = printed(command, io::read_to_string)?;
    let programs: Vec<_> = messages.lines().filter_map(TestProgram::read).collect();
    if programs.is_empty() { Err("no program of tests was built".into()) } else { Ok(programs) }
}

/// What is made of a command's output. Where the command fails, that is the error.
fn printed<T>(command: &mut Command, read: impl FnOnce(ChildStdout) -> io::Result<T>) -> Result<T, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|failure| failure.to_string())?;
    let output = child.stdout.take().ok_or("no output")?;
    let read = read(output);
    let status = child.wait().map_err(|failure| failure.to_string())?;
    if status.success() { read.map_err(|failure| failure.to_string()) } else { Err(status.to_string()) }
}

/// The command as text, for example `cargo fmt --check`, without the path of cargo.
fn in_words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    ["cargo".into()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
