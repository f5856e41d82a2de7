//! Releases that fail, and callers that never come back.

use std::time::Duration;

use leasehold_core::{Admin, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, Memory};
use leasehold_testkit::{Fault, Op, test};

use crate::surroundings::{MOMENT, PATIENCE, key, live, soon, store};

#[test]
fn a_release_that_failed_once_is_repeated_though_nobody_has_the_locker() {
    for drops in [true, false] {
        let (store, live) = (store(), live());
        let guard = {
            let locks = store.engine();
            let long = LockOptions::new().ttl(PATIENCE * 100);
            live.block_on(locks.acquire(&key(), &long)).unwrap().unwrap()
        };
        store.faults.next(Op::Release, Fault::Refuse(ErrorKind::Unavailable), 1);
        live.block_on(async {
            if drops {
                drop(guard);
            } else {
                assert!(guard.release().await.is_err());
            }
            drop(soon("it is not repeated", store.engine().lock("k")).await.unwrap());
        });
    }
}

#[test(multi_thread)]
async fn callers_that_are_kept_and_never_polled_again_keep_nobody_for_ever() {
    let locks = Memory::new();
    let guard = locks.lock("k").await.unwrap();
    let (key, options) = (key(), LockOptions::new());
    let mut forgotten: Vec<_> = (0..3).map(|_| Box::pin(locks.acquire(&key, &options))).collect();
    for waits in &mut forgotten {
        assert!(futures::poll!(waits).is_pending());
    }
    let waiter = tokio::spawn({
        let locks = locks.clone();
        async move { locks.lock("k").await }
    });
    tokio::time::sleep(MOMENT).await;
    guard.release().await.unwrap();
    drop(soon("the one who is polled is not served", waiter).await.unwrap().unwrap());
    drop(forgotten);
}

#[test(multi_thread)]
async fn who_watches_a_guard_ends_with_it_and_keeps_no_locker() {
    let store = store();
    let locks = store.engine();
    let known = locks.downgrade();
    let (mut watchers, mut handles) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let guard = locks.lock(format!("k{number}")).await.unwrap();
        watchers.push(tokio::spawn(guard.ended()));
        handles.push(guard.handle());
        if number % 2 == 0 { drop(guard) } else { drop(guard.release().await) }
    }
    for watcher in watchers {
        assert_eq!(soon("the guard has ended", watcher).await.unwrap(), None);
    }
    let lost = locks.lock("lost").await.unwrap();
    let watcher = tokio::spawn(lost.ended());
    locks.force_release(&LockKey::new("lost").unwrap()).await.unwrap();
    assert_eq!(soon("the guard is lost", watcher).await.unwrap(), Some(LossReason::ForceReleased));
    assert_eq!(lost.handle().ended().await, lost.loss());
    let handle = lost.handle();
    drop((lost, locks));
    // What is under way keeps it.
    let gone = async {
        while known.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon("handles keep no locker", gone).await;
    assert_eq!((handle.loss(), handle.is_held()), (Some(LossReason::ForceReleased), false));
    assert!(handles.iter().all(|handle| !handle.is_held() && handle.remaining().is_zero()));
}
