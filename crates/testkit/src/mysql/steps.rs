//! Steps that several tests share: connecting, a claim, the whole life of a lock.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test may panic")]

use std::time::Duration;

use leasehold_core::{Admin, Claim, ErrorKind, LockKey, LockOptions, Locker, LockerExt, LossReason, Mode, Wait};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::subject::Subject;

/// A locker on this server, with its tables.
pub async fn migrated<S: Subject>(server: &Server) -> S::Locks {
    S::migrate_at(&server.url()).await.unwrap();
    S::connect_to(&server.url()).await.unwrap()
}

/// A short lease that is not prolonged.
pub fn brief() -> LockOptions {
    LockOptions::new().ttl(Duration::from_millis(300)).renew(false).wait(Wait::UpTo(Duration::from_secs(20)))
}

/// An exclusive claim that does not wait.
pub fn claim(key: &str, ttl: Duration) -> Claim {
    let key = LockKey::new(key).unwrap();
    Claim::new(&key, Mode::Exclusive, ttl)
}

/// All that a lock does, once, by two clients.
pub async fn whole_life<S: Subject>(ours: &S::Locks, theirs: &S::Locks, key: &str) {
    let first = ours.try_lock(key).await.unwrap().expect("it is free");
    assert!(theirs.try_lock(key).await.unwrap().is_none());
    first.renew().await.unwrap();
    let newest = first.fencing_token();
    first.release().await.unwrap();
    let stale = theirs.acquire(&LockKey::new(key).unwrap(), &brief()).await.unwrap().expect("it was released");
    assert!(stale.fencing_token() > newest);
    let taken_over = ours.lock(key).await.unwrap();
    assert!(taken_over.fencing_token() > stale.fencing_token());
    assert_eq!(stale.lost().await, LossReason::Expired);
    theirs.force_release(taken_over.key()).await.unwrap();
    assert_eq!(taken_over.renew().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForceReleased));
    let last = theirs.try_lock(key).await.unwrap().expect("it was freed");
    assert!(last.fencing_token() > taken_over.fencing_token());
    let handed = last.detach().expect("it is held");
    let attached = ours.attach(&handed, &LockOptions::new()).await.unwrap().expect("it was left to the store");
    assert!(theirs.attach(&handed, &LockOptions::new()).await.unwrap().is_none());
    attached.release().await.unwrap();
    S::more_life(ours, theirs, key).await;
}

/// Someone else's transaction that has the key's row locked.
pub async fn row_lock<S: Subject>(server: &Server) -> Conn {
    let mut session = server.session().await.unwrap();
    session.query_drop("BEGIN").await.unwrap();
    session.query_drop(format!("SELECT * FROM leasehold.{} FOR UPDATE", S::TABLE)).await.unwrap();
    session
}
