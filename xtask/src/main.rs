//! The project's tasks, run as `cargo xtask <command>`.

#![allow(clippy::disallowed_methods, reason = "waiting for a child process needs no movable clock")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

// One module for each command,
mod api;
mod bench;
mod chaos;
mod check;
mod conformance;
mod matrix;
mod model;
mod mutants;
mod new_backend;
mod release;
mod services;
mod test;
// and what they share.
mod command;
mod install;
mod steps;
mod tally;
mod test_program;
mod tools;
mod workspace;
mod worktree;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--install] [--deep] [CRATE...] [-- FILTER...]
                                      run every test, or those of some crates, on private servers
                                      FILTER: only tests with this in their names
                                      --install: first install the servers that are missing
                                      --deep: also what takes long and finds something rarely
  check [--install]                   format, lints, documents, features, licences, the rules of the repository, the book
                                      --install: first install the programs that are missing
  api                                 write the public interface of each library into its api.txt
  release [--install]                 what else a release needs: its packages, and its public interface
                                      --install: first install the programs that are missing
  conformance [--seconds N] [--seed S] [BACKEND...] [-- ARG...]
                                      run the conformance suite alone; ARG goes to its runner
                                      --seconds: only its model, random scripts of steps, for so long
                                      --seed: only its model, with the scripts of an earlier run
  new-backend NAME [--standalone DIR] write a crate for a store that has none: it compiles, and fails the suite until its steps
                                      are written  --standalone: a crate in DIR, outside of this workspace
  mutants [--install] [--quick] [--again] [--tests=NAME] [--by-test] [FILE...]
                                      change the engine's state machine in every small way that cargo-mutants knows, and
                                      check that its unit tests or its search notice each change
                                      FILE: change only these files, for example grant or key
                                      --install: first install cargo-mutants  --quick: only a first, small search
                                      --again: only the changes that no earlier run has noticed
                                      --tests: only the tests with this in their names, for example --tests=signals::
                                      --by-test: run all tests on each change, and list those that can go
  mutants redis | mysql | postgres | etcd [the same]
                                      the same for the crate around this driver, its tests, and those of the backends on it
                                      FILE: for example store or script/batch, or a folder  --quick: only the crate's own tests
  mutants --suite [WORD...]           break the engine and real backends on purpose, and check that the search, the suite, or the test
                                      that is named, notices
                                      WORD: only the faults of this backend, or with this word in their description
  model [NAME]                        search the states of the engine, or of `redlock`, further than the tests do; takes minutes
  bench [--quick | --record] [WORKLOAD...]
                                      measure the locks, beside bare round trips and other locks
                                      --record: rewrite benches/RESULTS.md and the plots of the READMEs
  bench --against COMMIT [WORKLOAD...]
                                      measure this commit and an earlier one by turns, and say what is worse
  chaos [--quick | --seconds N] [--seed N] [BACKEND...]
                                      real clients on real servers under faults, and a verdict on what the clients saw:
                                      five minutes a backend, or one with --quick; the report is target/chaos/report.json
                                      --seed: the faults of an earlier run again
  chaos --soak DURATION [BACKEND...]  what grows in clients and stores over 1,000,000 keys; at most so long a backend
  services [COMMAND...]               a shell, or another command, beside servers for work by hand, with their variables
  matrix                              write the tables of the READMEs that are made from code
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Arguments after `--` belong to another program.
    let ours = arguments.iter().take_while(|argument| **argument != "--");
    let asks_for_help = ours.into_iter().any(|argument| matches!(*argument, "-h" | "--help" | "help"));
    match api::as_rustdoc().or_else(|| if asks_for_help { None } else { run(&arguments) }) {
        Some(Ok(true)) => ExitCode::SUCCESS,
        Some(Ok(false)) => ExitCode::FAILURE,
        Some(Err(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
        None if arguments.is_empty() || asks_for_help => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        None => {
            eprint!("xtask: no such command: {}\n\n{USAGE}", arguments.join(" "));
            ExitCode::from(2)
        }
    }
}

/// Runs a command, and answers whether all is well. `None`: there is no such command.
fn run(arguments: &[&str]) -> Option<Result<bool, String>> {
    Some(match arguments {
        ["test", rest @ ..] => test::run(rest),
        ["check"] => Ok(check::run(false)),
        ["check", "--install"] => Ok(check::run(true)),
        ["api"] => api::write_all(),
        ["release"] => Ok(release::run(false)),
        ["release", "--install"] => Ok(release::run(true)),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["mutants", "--suite", rest @ ..] => mutants::seeded::run(rest),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["model", rest @ ..] => model::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["chaos", rest @ ..] => chaos::run(rest),
        ["new-backend", rest @ ..] => new_backend::run(rest),
        ["services", rest @ ..] => services::beside(rest),
        ["matrix"] => matrix::write_all(),
        _ => return None,
    })
}
