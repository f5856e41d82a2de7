//! What `connect` returns.
#![cfg(feature = "file")]

use leasehold::{
    Admin, Capability, Election, ErrorKind, LockOptions, Locker, LockerExt, Locks, Result, RwLockerExt, Semaphore, Wait,
};
use leasehold_testkit::test;
use tempfile::TempDir;

async fn connected() -> Result<(Locks, TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let locks = leasehold::connect(&format!("file:{}", directory.path().join("locks").display())).await?;
    Ok((locks, directory))
}

#[test]
async fn every_view_of_it_is_on_one_store() -> Result<()> {
    let (locks, _directory) = connected().await?;
    assert!(locks.capabilities().has(Capability::Shared));
    let guard = locks.lock("k").await?;
    let key = guard.key().clone();
    let now = LockOptions::new().wait(Wait::Never);
    assert!(locks.locker().acquire(&key, &now).await?.is_none());
    assert!(locks.acquire_or_busy(&key, &now).await?.is_err());
    assert!(locks.rw().unwrap().acquire_read(&key, &now).await?.is_none());
    assert_eq!(locks.inspect(&key).await?.holders.len(), 1);
    assert_eq!(locks.admin().list("k", None).await?.keys.len(), 1);
    assert_eq!(locks.force_release(&key).await?.holders.len(), 1);
    assert!(locks.try_lock("k").await?.is_some());
    drop(guard);
    Ok(())
}

#[test]
async fn a_semaphore_and_an_election_take_it_as_it_is() -> Result<()> {
    let (locks, _directory) = connected().await?;
    let permit = Semaphore::new(locks.clone(), "encode", 2)?.acquire().await?;
    let leadership = Election::new(locks.clone(), "scheduler", "host-a")?.campaign().await?;
    drop((permit, leadership));
    Ok(())
}

#[test]
async fn it_is_closed_for_all_its_clones() -> Result<()> {
    let (locks, _directory) = connected().await?;
    let clone = locks.clone();
    let guard = clone.lock("k").await?;
    locks.close().await;
    assert!(!guard.is_held());
    assert_eq!(clone.lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(clone.locker().lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    Ok(())
}

#[test]
async fn debug_shows_the_backend_alone() -> Result<()> {
    let (locks, _directory) = connected().await?;
    assert_eq!(format!("{locks:?}"), "Locks(\"file\")");
    Ok(())
}
