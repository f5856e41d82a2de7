//! Whatever is asked of a store that never answers ends.

use std::fmt::Debug;
use std::time::Duration;

use leasehold_core::{Admin, Election, Error, LockOptions, Locker, LockerExt, RwLockerExt, Semaphore, Wait};
use leasehold_testkit::{Fault, FaultyMemory, test};

use crate::surroundings::{key, soon, store};

/// How long this store is given for an answer.
const ANSWERS: Duration = Duration::from_millis(100);

fn falls_silent(store: &FaultyMemory) {
    store.faults.choose(|_| vec![Fault::Hang]);
}

/// The call ends, and says that the store gave no answer.
async fn is_unanswered<T: Debug>(what: &str, call: impl Future<Output = Result<T, Error>>) {
    let error = soon(what, call).await.expect_err(what);
    assert!(error.is_transient(), "{what}: {error}");
}

#[test(multi_thread)]
async fn every_call_ends_though_the_store_is_silent() {
    let store = store().answering_within(ANSWERS);
    let locks = store.engine();
    let brief = LockOptions::new().wait(Wait::UpTo(ANSWERS / 2));
    let held = locks.lock("held").await.unwrap();
    let token = held.fencing_token().unwrap();
    let released = locks.lock("released").await.unwrap();
    let writer = locks.write("writer").await.unwrap();
    let detached = locks.lock("detached").await.unwrap().detach().unwrap();
    let permits = Semaphore::new(locks.clone(), "permits", 3).unwrap();
    let permit = permits.acquire().await.unwrap();
    let election = Election::new(locks.clone(), "election", "it").unwrap();
    let led = election.campaign().await.unwrap();
    falls_silent(&store);

    is_unanswered("a try", locks.try_lock("k")).await;
    is_unanswered("a wait", locks.acquire(&key(), &brief)).await;
    is_unanswered("a reader's try", locks.try_read("r")).await;
    is_unanswered("all of several", locks.lock_all(["a", "b"], &brief)).await;
    is_unanswered("a try of several", locks.lock_all(["a", "b"], &LockOptions::new().wait(Wait::Never))).await;
    is_unanswered("a renewal", held.renew()).await;
    is_unanswered("a release", released.release()).await;
    is_unanswered("a downgrade", writer.downgrade(&LockOptions::new())).await;
    is_unanswered("an attach", locks.attach(&detached, &LockOptions::new())).await;
    is_unanswered("a try of a permit", permits.try_acquire()).await;
    is_unanswered("a wait for permits", permits.acquire_many(2, &brief)).await;
    is_unanswered("a permit's release", permit.release()).await;
    is_unanswered("who leads", election.leader()).await;
    is_unanswered("a resignation", led.resign()).await;
    is_unanswered("an inspection", locks.inspect(&key())).await;
    is_unanswered("a list", locks.list("", None)).await;
    is_unanswered("a forced release", locks.force_release(&key())).await;
    is_unanswered("one of a grant", locks.force_release_grant(&key(), token)).await;
    drop(held);
    soon("a close", locks.close()).await;
}

#[test(multi_thread)]
async fn work_under_a_lock_returns_though_the_store_falls_silent_meanwhile() {
    let store = store().answering_within(ANSWERS);
    let locks = store.engine();
    let work = |_| async { falls_silent(&store) };
    soon("a closure under a lock", locks.with_lock("k", work)).await.unwrap();
    store.faults.heal();
    let election = Election::new(locks, "election", "it").unwrap();
    soon("the last term of a leader", election.run_while_leader(work)).await.unwrap();
}
