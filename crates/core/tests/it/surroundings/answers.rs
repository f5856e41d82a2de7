//! "Somebody holds it" is the answer where somebody does, however that lock came to be.

use std::time::Duration;

use leasehold_core::{Capability, LockOptions, Locker, LockerExt, Memory, Wait};
use leasehold_testkit::{Fault, Op, test};

use crate::surroundings::{MOMENT, key, soon, store};

#[test(multi_thread)]
async fn a_try_behind_a_waiter_of_an_attached_lock_is_told_that_it_is_held() {
    let here = Memory::new();
    let there = here.contender();
    let handed = here.lock("k").await.unwrap().detach().unwrap();
    let guard = there.attach(&handed, &LockOptions::new()).await.unwrap().unwrap();
    let waiter = tokio::spawn({
        let there = there.clone();
        async move { there.lock("k").await }
    });
    tokio::time::sleep(MOMENT).await;
    let tried = soon("the try waits for the attached lock", there.try_lock("k")).await;
    assert!(matches!(tried, Ok(None)), "{tried:?}");
    drop(guard);
    drop(soon("the waiter is not served", waiter).await.unwrap().unwrap());
}

#[test(multi_thread)]
async fn a_lock_whose_first_answer_was_lost_is_busy_for_a_caller_behind_a_waiter() {
    for store in [store(), store().claiming(Capability::Queue)] {
        let locks = store.engine();
        store.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
        let guard = locks.lock("k").await.unwrap();
        let waiter = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock("k").await }
        });
        tokio::time::sleep(MOMENT).await;
        let tried = soon("the try waits", locks.try_lock("k")).await;
        assert!(matches!(tried, Ok(None)), "{tried:?}");
        let brief = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)));
        let limited = soon("the limit is over", locks.acquire(&key(), &brief)).await;
        assert!(matches!(limited, Ok(None)), "{limited:?}");
        drop(guard);
        drop(soon("the waiter is not served", waiter).await.unwrap().unwrap());
    }
}
