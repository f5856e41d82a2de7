//! `cargo xtask test`: builds and runs tests, with the servers that they need, and nothing else.

mod deep;
mod programs;
mod selection;

use std::io;
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

use self::programs::{Program, in_minutes};
use self::selection::Selection;
use crate::install;
use crate::services::Fleet;
use crate::steps::{Steps, in_words};
use crate::tally::Tally;
use crate::test_program::TestProgram;
use crate::workspace::cargo;

/// Runs the tests that the words ask for, and prints the counts at the end.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let selection = Selection::read(words)?;
    let mut steps = Steps::default();
    if selection.install {
        steps.note("install", install::run());
    }
    let fleet = Fleet::start(|variable| selection.needs(variable))?;
    fleet.describe();
    for failure in &fleet.failed {
        steps.note("servers", Err(failure.clone()));
    }
    let mut environment = fleet.environment();
    environment.extend(selection.environment());

    let mut tally = Tally::default();
    let began = Instant::now();
    let command = || {
        let mut command = cargo();
        command.args([
            "test",
            "--no-run",
            // What is dear to build is in target/cargo-timings.
            "--timings",
            // What has `test = false` is left out by this alone.
            "--tests",
            "--all-features",
            "--message-format=json-render-diagnostics",
        ]);
        command.args(selection.package_arguments());
        command
    };
    Steps::announce("build", &in_words(&command()));
    let programs = built(&mut command());
    println!("built in {}", in_minutes(began));
    let outcome = programs.and_then(|programs| {
        let mut programs: Vec<_> = programs.iter().map(|program| Program::new(program, &selection.filters)).collect();
        programs.extend(selection.has_doc_tests().then(|| Program::of_documents(selection.package_arguments())));
        let began = Instant::now();
        Steps::announce("tests", &format!("{} programs", programs.len()));
        let failed =
            programs::run(programs, selection.deep, &environment, &mut tally).map_err(|failure| failure.to_string())?;
        println!("run in {}", in_minutes(began));
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    });
    steps.note("tests", outcome);
    drop(fleet);
    if selection.is_all_of_the_deep_run() {
        deep::run(&mut steps);
    }
    if tally.passed == 0 {
        steps.note("tests", Err("no test passed".into()));
    }
    Ok(steps.close(&tally))
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
