//! The shared suite.

mod fixture;

use std::process::ExitCode;

use leasehold_core::conformance;

use crate::fixture::Mysql;

fn main() -> ExitCode {
    conformance::exclusive(Mysql::advisory_queue(false))
}
