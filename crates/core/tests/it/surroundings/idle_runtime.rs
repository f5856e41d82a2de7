//! A runtime that nobody drives any more keeps nobody on another one waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join, join_all};
use leasehold_core::{Capability, LockOptions, LockerExt};
use leasehold_testkit::{Fault, FaultyMemory, Op, test};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::surroundings::{MOMENT, PATIENCE, key, live, resting, soon, store};

#[test]
fn a_claim_under_way_on_a_runtime_that_rests_keeps_the_key_from_nobody() {
    let (store, rests, live) = (store(), resting(), live());
    let locks = store.engine();
    store.faults.always(Op::TryAcquire, Fault::Slow(MOMENT));
    // The second makes a task of the first one's claim, and both leave.
    rests.block_on(async {
        let both = join(locks.lock("k"), locks.lock("k"));
        assert!(timeout(MOMENT / 10, both).await.is_err());
    });
    store.faults.always(Op::TryAcquire, Fault::Nothing);
    live.block_on(async {
        let guard = soon("nobody holds the key, and a live caller waits", locks.lock("k")).await.unwrap();
        let tried = soon("a try waits", locks.try_lock("k")).await;
        assert!(matches!(tried, Ok(None)), "{tried:?}");
        drop(guard);
    });
}

#[test(process)]
fn a_request_is_not_driven_by_another_runtime_when_its_own_ends() {
    let panics = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
    }));
    let (store, ends, live) = (store(), resting(), live());
    let locks = store.engine();
    store.faults.always(Op::TryAcquire, Fault::Slow(MOMENT * 4));
    let mut first = Box::pin(locks.lock("k"));
    assert!(ends.block_on(async { timeout(MOMENT / 10, &mut first).await }).is_err());
    let second = {
        let locks = locks.clone();
        live.spawn(async move { locks.lock("k").await })
    };
    live.block_on(async { tokio::time::sleep(MOMENT).await });
    drop(ends);
    drop(first);
    drop(live.block_on(soon("the key is free, and a live caller waits", second)).unwrap().unwrap());
    assert_eq!(panics.load(Ordering::SeqCst), 0, "timers end with their runtime");
}

#[test]
fn who_waits_on_a_runtime_that_rests_is_passed_and_keeps_its_place() {
    for (label, free) in [("one", true), ("one", false), ("another", false)] {
        let (store, rests, live) = (store(), resting(), live());
        let locks = store.engine();
        let held = (!free).then(|| live.block_on(locks.lock("k")).unwrap());
        store.faults.always(Op::TryAcquire, Fault::Slow(MOMENT / 10));
        let (one, other) = (LockOptions::new().label("one"), LockOptions::new().label(label));
        let name = key();
        let mut first = Box::pin(locks.acquire(&name, &one));
        assert!(rests.block_on(async { timeout(MOMENT / 50, &mut first).await }).is_err());
        let second = {
            let (locks, other) = (locks.clone(), other.clone());
            live.spawn(async move { locks.acquire(&key(), &other).await.unwrap().unwrap() })
        };
        live.block_on(async { tokio::time::sleep(MOMENT).await });
        drop(held);
        let guard = live.block_on(soon("a live caller waits behind one that is not driven", second)).unwrap();
        drop(guard);
        drop(rests.block_on(soon("it is driven again", first)).unwrap().unwrap());
    }
}

#[test]
fn a_release_on_a_runtime_that_rests_is_sent_on_one_that_is_driven() {
    let (store, rests, live) = (store(), resting(), live());
    let locks = store.engine();
    let long = LockOptions::new().ttl(PATIENCE * 100);
    let guard = rests.block_on(locks.acquire(&key(), &long)).unwrap().unwrap();
    store.faults.always(Op::Release, Fault::Slow(MOMENT));
    let mut release = Box::pin(guard.release());
    assert!(rests.block_on(async { timeout(MOMENT / 50, &mut release).await }).is_err());
    drop(live.block_on(soon("the key was given back, and a live caller waits", locks.lock("k"))).unwrap());
    drop(release);
}

fn a_release_by_block_on_serves_the_waiters_of_another_runtime(store: FaultyMemory, held_for: Duration) {
    // A claim that is not driven is not given up before the test is.
    let store = store.answering_within(PATIENCE);
    let (rests, live) = (resting(), live());
    let (locks, begin) = (store.engine(), Arc::new(Notify::new()));
    store.faults.always(Op::TryAcquire, Fault::Slow(MOMENT / 10));
    // They ask for different things: nothing passes from one to the other.
    let waiters = ["one", "another"].map(|label| {
        let (locks, begin, options) = (locks.clone(), Arc::clone(&begin), LockOptions::new().label(label));
        live.spawn(async move {
            begin.notified().await;
            locks.acquire(&key(), &options).await.unwrap().unwrap().release().await.unwrap();
        })
    });
    live.block_on(async { tokio::time::sleep(MOMENT).await });
    let guard = rests.block_on(locks.lock("k")).unwrap();
    begin.notify_waiters();
    live.block_on(async { tokio::time::sleep(held_for).await });
    rests.block_on(guard.release()).unwrap();
    // From here on the first runtime is alive, and nobody drives it.
    live.block_on(soon("the key is free, and live callers wait", join_all(waiters)));
}

#[test]
fn a_release_on_a_runtime_that_then_rests_serves_the_waiters_of_a_live_one() {
    for held_for in [MOMENT / 25, MOMENT] {
        for store in [store().deaf(), store(), store().claiming(Capability::Queue).deaf()] {
            a_release_by_block_on_serves_the_waiters_of_another_runtime(store, held_for);
        }
    }
}

#[test]
fn a_guard_that_is_dropped_on_a_thread_is_released_on_the_runtime_that_is_live() {
    // Which of several runtimes is taken may be a matter of their order in a map.
    for _ in 0..12 {
        let (store, rests, live) = (store().answering_within(PATIENCE), resting(), live());
        let locks = store.engine();
        let other = rests.block_on(locks.lock("other")).unwrap();
        let guard = live.block_on(locks.lock("k")).unwrap();
        std::thread::spawn(move || drop(guard)).join().unwrap();
        drop(live.block_on(soon("the guard is dropped, and its key stays", store.engine().lock("k"))).unwrap());
        drop(other);
    }
}

#[test]
fn a_guard_of_a_runtime_that_ended_is_released() {
    let (store, ends, live) = (store(), resting(), live());
    let locks = live.block_on(async { store.engine() });
    let guard = ends.block_on(locks.lock("k")).unwrap();
    drop(ends);
    live.block_on(async {
        drop(guard);
        drop(soon("its key stays", store.engine().lock("k")).await.unwrap());
    });
}

#[test]
fn a_lease_outlasts_a_runtime_that_rests_and_renewals_that_panic_or_hang() {
    let (store, rests, live) = (store(), resting(), live());
    let options = LockOptions::new().ttl(PATIENCE / 4);
    let locks = store.engine();
    let _first = rests.block_on(locks.lock_with("another", &options)).unwrap();
    let guard = live.block_on(locks.acquire(&key(), &options)).unwrap().unwrap();
    store.faults.next(Op::Renew, Fault::Panic, 1);
    store.faults.next(Op::Renew, Fault::Hang, 1);
    let all = async {
        while store.faults.calls(Op::Renew) < 4 {
            tokio::time::sleep(MOMENT).await;
        }
    };
    live.block_on(soon("it is not renewed any more", all));
    assert!(guard.is_held(), "{:?}", guard.loss());
}
