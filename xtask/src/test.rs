//! `cargo xtask test`: builds and runs tests, with the servers that they need, and nothing else.

mod deep;
mod programs;
mod selection;

use std::time::Instant;

use self::programs::{Program, in_minutes};
use self::selection::Selection;
use crate::command::{in_words, printed};
use crate::install;
use crate::services::Fleet;
use crate::steps::Steps;
use crate::tally::Tally;
use crate::test_program::TestProgram;
use crate::workspace::cargo;

/// What is dear to build is in target/cargo-timings. What has `test = false` is left out by `--tests` alone.
const BUILD: [&str; 6] =
    ["test", "--no-run", "--timings", "--tests", "--all-features", "--message-format=json-render-diagnostics"];

/// Runs the tests that the words ask for, and prints the counts at the end.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let selection = Selection::read(words)?;
    let mut steps = Steps::default();
    if selection.install {
        steps.note("install", install::run());
    }
    let fleet = Fleet::start(|variable| selection.needs(variable))?;
    for failure in &fleet.failed {
        steps.note("servers", Err(failure.clone()));
    }
    let mut environment = fleet.environment();
    environment.extend(selection.environment());
    let mut tally = Tally::default();
    let outcome = build_and_run(&selection, &environment).and_then(|(counted, failed)| {
        tally = counted;
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
    Ok(steps.close(tally))
}

/// The counts, and which programs failed.
fn build_and_run(
    selection: &Selection,
    environment: &[(&'static str, String)],
) -> Result<(Tally, Vec<String>), String> {
    let mut build = cargo();
    build.args(BUILD).args(selection.package_arguments());
    Steps::announce("build", &in_words(&build));
    let began = Instant::now();
    let messages = printed(&mut build)?;
    println!("built in {}", in_minutes(began));
    let programs = TestProgram::read_all(&messages).into_iter();
    let programs: Result<Vec<_>, _> = programs.map(|program| Program::new(program, &selection.filters)).collect();
    let mut programs = programs?;
    programs.extend(selection.has_doc_tests().then(|| Program::of_documents(selection.package_arguments())));
    Steps::announce("tests", &format!("{} programs", programs.len()));
    let began = Instant::now();
    let ended = programs::run(programs, selection.deep, environment)?;
    println!("run in {}", in_minutes(began));
    Ok(ended)
}
