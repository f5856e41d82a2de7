//! How many files stay open.
#![cfg(target_os = "linux")]

use leasehold_file::{Admin, FileLocks, LockKey, LockerExt, Result};
use leasehold_testkit::test;

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the folder of open files").count()
}

#[test(process)]
async fn taking_away_ones_own_lock_leaves_no_open_file() -> Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let locks = FileLocks::open(directory.path())?;
    let mut before = 0;
    for round in 0..20 {
        let guard = locks.lock("k").await?;
        locks.force_release(&LockKey::new("k")?).await?;
        drop(guard);
        // The first one opens what is kept for the next.
        before = if round == 0 { open_files() } else { before };
    }
    let left = open_files() - before;
    assert!(left < 10, "{left} files were left open by 19 locks that were taken away");
    Ok(())
}
