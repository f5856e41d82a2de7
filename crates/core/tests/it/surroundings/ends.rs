//! Who watches a guard.

use std::time::Duration;

use leasehold_core::{Admin, LockKey, LockerExt, LossReason};
use leasehold_testkit::test;

use crate::surroundings::{soon, store};

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
