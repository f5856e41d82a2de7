//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod conformance;
mod connecting;
mod convenience;
mod elections;
mod ends_of_threads;
mod local_handoff;
mod log_lines;
mod observed;
mod permits;
mod regressions;
mod simulation;
mod story;
mod suite_catches;
mod surroundings;

fn main() -> std::process::ExitCode {
    let own = suite_catches::program::as_suite();
    own.unwrap_or_else(|| leasehold_testkit::run(env!("CARGO_PKG_NAME"), Some(conformance::suite())))
}
