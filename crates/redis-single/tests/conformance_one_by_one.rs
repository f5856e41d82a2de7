//! The shared suite without queue and group commit, on the server that `LEASEHOLD_TEST_REDIS` names.

mod fixture;

use std::process::ExitCode;

use leasehold_redis_single::core::conformance;

use crate::fixture::{FastPath, Redis};

fn main() -> ExitCode {
    conformance::exclusive(Redis::named_by("LEASEHOLD_TEST_REDIS").without(&[FastPath::Queue, FastPath::GroupCommit]))
}
