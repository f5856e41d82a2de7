//! The shared suite without group commit, on the five servers that `LEASEHOLD_TEST_REDLOCK` names.

mod fixture;

use std::process::ExitCode;

use leasehold_redlock::core::conformance;

use crate::fixture::Nodes;

fn main() -> ExitCode {
    conformance::exclusive(Nodes::group_commit(false))
}
