//! The tests of this crate that use it from outside, and the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod damage;
mod directories;
mod inspection;
mod leader_example;
mod processes;
mod strangers;
mod support;
mod tokens;

fn main() -> std::process::ExitCode {
    leader_example::as_candidate()
        .unwrap_or_else(|| leasehold_testkit::run(env!("CARGO_PKG_NAME"), Some(conformance::suite())))
}
