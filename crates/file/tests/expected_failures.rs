//! What is known to be wrong: each test says what ought to hold, and is listed in `expected-failures.txt` of the suite.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_file::{FileLocks, LockerExt, Result};
use leasehold_testkit::tokens_grow_although_all_is_forgotten;

/// A counter that is ahead of the clock cannot be replaced by it.
async fn expected_failure_tokens_of_a_busy_key_grow_when_its_files_are_removed() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let locks = FileLocks::open(directory.path())?;
    let grant = async || {
        let guard = locks.lock("k").await?;
        let token = guard.fencing_token();
        guard.release().await.map(|_| token)
    };
    let forgets = async || {
        std::fs::remove_dir_all(directory.path().join("leasehold")).unwrap();
        FileLocks::open(directory.path())?.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}

leasehold_testkit::main! {
    expected_failure_tokens_of_a_busy_key_grow_when_its_files_are_removed,
}
