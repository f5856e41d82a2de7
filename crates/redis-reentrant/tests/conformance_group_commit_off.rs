//! The shared suite without group commit, on the server that `LEASEHOLD_TEST_REDIS` names. Every contender is a session
//! of its own.

mod fixture;

use std::process::ExitCode;

use leasehold_redis_reentrant::core::conformance;

use crate::fixture::Redis;

fn main() -> ExitCode {
    conformance::exclusive(Redis::named_by("LEASEHOLD_TEST_REDIS").without_group_commit())
}
