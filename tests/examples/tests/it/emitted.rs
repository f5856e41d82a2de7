//! Everything that the engine tells, on the store in memory, against the tables.

use std::cell::Cell;
use std::time::Duration;

use leasehold::{
    Admin, Clock, Engine, EngineOptions, Error, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, Memory, Wait,
    connect_within, describe_metrics,
};
use leasehold_testkit::{Fault, Op, faulty_memory, test};

use crate::document::Document;
use crate::recorder::seen_of;

#[test]
fn everything_that_is_documented_is_emitted_and_nothing_else() {
    let (seen, ()) = seen_of(async {
        describe_metrics();
        tokio::time::pause();
        let locks = connected_at_the_second_attempt().await;
        others_wait(&locks).await;
        the_store_fails(&locks).await;
        locks_are_lost(&locks).await;
        nobody_is_woken().await;
        locks.close().await;
    });
    let document = Document::read();
    assert_eq!(seen.spans, document.spans);
    assert_eq!(seen.events, document.events);
    let mut documented = document.metrics;
    for (name, metric) in &mut documented {
        let described = (metric.kind.clone(), std::mem::take(&mut metric.unit));
        assert_eq!(seen.described.get(name), Some(&described), "{name}");
        metric.labels.insert("backend".to_owned(), ["memory".to_owned()].into());
    }
    assert_eq!(seen.metrics, documented);
    assert_eq!(seen.described.len(), documented.len());
}

async fn connected_at_the_second_attempt() -> Memory {
    let attempts = Cell::new(0);
    let connect = async || {
        attempts.set(attempts.get() + 1);
        if attempts.get() == 1 {
            return Err(Error::new(ErrorKind::Unavailable, "connect"));
        }
        Ok(Memory::with_clock(Clock::tokio()))
    };
    connect_within(Wait::Forever, connect).await.expect("the second attempt")
}

async fn others_wait(locks: &Memory) {
    let warns = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(5))).warn_after(Duration::from_secs(1));
    let held = locks.lock("k").await.expect("a lock");
    assert!(locks.contender().lock_with("k", &warns).await.is_err(), "busy");
    held.release().await.expect("a release");
    // A lease that is not old yet is handed off.
    let held = locks.lock("k").await.expect("a lock");
    let (next, released) = tokio::join!(locks.lock("k"), held.release());
    released.expect("a release");
    drop(next.expect("a hand-off"));
}

async fn the_store_fails(locks: &Memory) {
    locks.fail_next(1, ErrorKind::Unavailable);
    let guard = locks.lock("k").await.expect("a lock after a failure");
    locks.fail_next(1, ErrorKind::Unavailable);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(guard.is_held(), "renewed after a failure");
    locks.fail_next(1, ErrorKind::Unavailable);
    assert!(guard.release().await.is_err(), "its outcome is unknown");
    locks.fail_next(1, ErrorKind::Backend);
    assert!(locks.lock("k").await.is_err(), "failed for good");
}

/// For every reason.
async fn locks_are_lost(locks: &Memory) {
    let short = LockOptions::new().ttl(Duration::from_secs(2));
    let lock = async |key: &str, options: &LockOptions| locks.lock_with(key, options).await.expect("a lock");
    let expires = lock("expires", &short.clone().renew(false)).await;
    assert_eq!(expires.lost().await, LossReason::Expired);
    let capped = lock("capped", &short.clone().max_hold(Duration::from_secs(1))).await;
    assert_eq!(capped.lost().await, LossReason::MaxHold);
    let forgotten = lock("forgotten", &short).await;
    locks.forget(forgotten.key());
    assert_eq!(forgotten.lost().await, LossReason::Stolen);
    let taken = lock("taken", &short).await;
    locks.contender().force_release(&LockKey::new("taken").expect("a key")).await.expect("a forced release");
    assert_eq!(taken.lost().await, LossReason::ForceReleased);
    let silent = lock("silent", &short).await;
    locks.silent_for(Duration::from_secs(10));
    assert_eq!(silent.lost().await, LossReason::Unreachable);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let other = locks.contender();
    let open = other.lock("open").await.expect("a lock");
    other.close().await;
    assert_eq!(open.lost().await, LossReason::Shutdown);
}

/// The store refuses a subscription.
async fn nobody_is_woken() {
    let store = faulty_memory(&Clock::tokio());
    store.faults.always(Op::Subscribe, Fault::Refuse(ErrorKind::Backend));
    let engine = || Engine::with(store.clone(), EngineOptions::new().clock(Clock::tokio()));
    let _held = engine().lock("k").await.expect("a lock");
    assert!(engine().lock_for("k", Duration::from_secs(1)).await.is_err(), "busy");
}
