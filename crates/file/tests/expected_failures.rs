//! What is known to be wrong: each test says what ought to hold, and is listed in `expected-failures.txt` of the suite.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use leasehold_core::Clock;
use leasehold_file::{FileLocks, LockerExt, Result};
use leasehold_testkit::ahead_of_the_clock;

/// A counter that is ahead of the clock cannot be replaced by it.
async fn expected_failure_tokens_of_a_busy_key_grow_when_its_files_are_removed() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let locks = FileLocks::open(directory.path())?;
    let (clock, mut grants, mut newest) = (Clock::system(), 0, None);
    let begun = clock.now();
    let end = begun.plus(Duration::from_secs(2));
    while clock.now() < end {
        let guard = locks.lock("k").await?;
        (grants, newest) = (grants + 1, guard.fencing_token());
        guard.release().await?;
    }
    std::fs::remove_dir_all(directory.path().join("leasehold")).unwrap();
    let next = FileLocks::open(directory.path())?.lock("k").await?.fencing_token();
    ahead_of_the_clock(grants, clock.now().since(begun));
    assert!(next > newest, "{next:?} after {newest:?}");
    Ok(())
}

leasehold_testkit::main! {
    expected_failure_tokens_of_a_busy_key_grow_when_its_files_are_removed,
}
