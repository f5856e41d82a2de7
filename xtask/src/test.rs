//! `cargo xtask test`: runs every check and every test, with the servers that they need.

mod programs;
mod release;
mod steps;

use std::io;
use std::process::{ChildStdout, Command, ExitCode, Stdio};

use self::steps::{Steps, in_words};
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
        steps.note("install", release::install());
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
    release::check(&mut steps);
    let tally = run_tests(&mut steps, &fleet.environment());
    drop(fleet);

    Ok(steps.close(&tally))
}

fn run_tests(steps: &mut Steps, environment: &[(&'static str, String)]) -> Tally {
    let mut tally = Tally::default();
    Steps::announce("tests", &in_words(cargo().args(BUILD)));
    let outcome = built(cargo().args(BUILD)).and_then(|programs| {
        let failed = programs::run(programs, environment, &mut tally).map_err(|failure| failure.to_string())?;
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    });
    steps.note("tests", outcome);

    Steps::announce("doc tests", &in_words(cargo().args(DOC_TESTS)));
    let outcome = printed(cargo().args(DOC_TESTS), |output| tally.stream(output, io::stdout()));
    steps.note("doc tests", outcome.map(drop));
    if tally.passed == 0 {
        steps.note("tests", Err("no test passed".into()));
    }
    tally
}

/// Runs the steps alone that say whether a release could be made.
pub(crate) fn run_release_steps(install: bool) -> ExitCode {
    let mut steps = Steps::default();
    if install {
        steps.note("install", release::install());
    }
    release::check(&mut steps);
    steps.end()
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
