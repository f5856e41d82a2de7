//! The example `leader`, which is run nowhere else.

use std::process::ExitCode;

use leasehold_testkit::{Flavor, Test};

#[allow(dead_code, reason = "it has a `main` of its own")]
#[path = "../examples/leader.rs"]
mod leader;

fn main() -> ExitCode {
    // The candidates are this program, too.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, directory, name] = &arguments[..]
        && role == leader::CANDIDATE
    {
        return ExitCode::from(u8::from(leader::candidate(directory, name).is_err()));
    }
    let story = Test::new("three_processes_that_are_killed_in_turn_lead_in_turn", Flavor::CurrentThread, || {
        // It has a runtime of its own.
        std::thread::spawn(leader::story).join().map_err(|_| "it panicked".to_owned())?.map_err(|e| e.to_string())
    });
    leasehold_testkit::run(env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"), vec![story], None)
}
