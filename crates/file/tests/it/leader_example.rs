//! The example `leader`, which is run nowhere else.

use std::process::ExitCode;

use leasehold_testkit::test;

#[allow(dead_code, reason = "it has a `main` of its own")]
#[path = "../../examples/leader.rs"]
mod leader;

/// The candidates are this program, too.
pub(crate) fn as_candidate() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, directory, name] = &arguments[..] else { return None };
    let is_one = role == leader::CANDIDATE;
    is_one.then(|| ExitCode::from(u8::from(leader::candidate(directory, name).is_err())))
}

#[test]
fn three_processes_that_are_killed_in_turn_lead_in_turn() {
    // It has a runtime of its own.
    std::thread::spawn(leader::story).join().unwrap().unwrap();
}
