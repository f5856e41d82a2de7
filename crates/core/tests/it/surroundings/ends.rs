//! Releases that fail, and callers that never come back.

use leasehold_core::{ErrorKind, LockOptions, Locker, LockerExt, Memory};
use leasehold_testkit::{Does, Step, test};

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
        store.next(Step::Release, [Does::Refuse(ErrorKind::Unavailable)]);
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
    let mut forgotten: Vec<_> = (0..3).map(|_| locks.acquire(&key, &options)).collect();
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
