//! Guards at the ends of other things: of their lease, while it is looked at, and of their thread.

use leasehold_testkit::test;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::noop_waker;
use leasehold_core::{Clock, ErrorKind, LockGuard, LockOptions, LockerExt, Memory, blocking};

use crate::surroundings::{key, resting};

const LEASE: Duration = Duration::from_secs(30);

#[test(multi_thread)]
async fn a_loss_is_told_also_if_the_deadline_passes_while_it_is_looked_for() {
    let clock = Clock::system();
    let locks = Memory::with_clock(clock.clone());
    let (round, passed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let time = std::thread::spawn({
        let (round, passed) = (Arc::clone(&round), Arc::clone(&passed));
        move || {
            for next in 1..=300 {
                while round.load(Ordering::Acquire) < next {
                    std::hint::spin_loop();
                }
                (0..next * 7 % 400).for_each(|_| std::hint::spin_loop());
                clock.advance(LEASE * 2);
                passed.store(next, Ordering::Release);
            }
        }
    });
    let waker = noop_waker();
    for this in 1..=300 {
        let guard = locks.acquire(&key(), &LockOptions::new().ttl(LEASE).renew(false)).await.unwrap().unwrap();
        let mut lookers = Vec::new();
        round.store(this, Ordering::Release);
        while passed.load(Ordering::Acquire) < this {
            let mut looker = Box::pin(guard.lost());
            if looker.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
                lookers.push(looker);
            }
        }
        if let Some(last) = lookers.pop() {
            tokio::time::timeout(Duration::from_secs(20), last).await.expect("it is lost, and nobody was told");
        }
    }
    time.join().unwrap();
}

#[test]
fn a_guard_that_its_thread_leaves_behind_is_handed_over_or_released() {
    thread_local! {
        static KEPT: RefCell<Option<LockGuard>> = const { RefCell::new(None) };
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locks = Memory::new();
    let guard = runtime.block_on(locks.acquire(&key(), &LockOptions::new())).unwrap().unwrap();
    let waiter = runtime.spawn({
        let locks = locks.clone();
        async move { locks.acquire(&key(), &LockOptions::new().label("another")).await }
    });
    // Older than a hand-off may be, so that who waits here lets others go first for a while.
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(30)).await });
    std::thread::spawn(move || {
        KEPT.with(|kept| *kept.borrow_mut() = Some(guard));
    })
    .join()
    .unwrap();
    assert!(runtime.block_on(waiter).unwrap().unwrap().is_some());
}

#[track_caller]
fn free_soon(store: &Memory) {
    let runtime = resting();
    let free = runtime.block_on(store.contender().lock_for("k", LEASE / 2));
    drop(free.expect("it is released, and not left to its lease"));
}

fn last_guard(store: &Memory) -> blocking::LockGuard {
    let locks = blocking::Locks::new(store.contender()).unwrap();
    locks.lock_with("k", &LockOptions::new().ttl(LEASE)).unwrap()
}

#[test]
fn the_last_blocking_guard_is_released_also_if_the_store_fails_once() {
    let store = Memory::new();
    let guard = last_guard(&store);
    store.fail_next(1, ErrorKind::Unavailable);
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Unavailable);
    free_soon(&store);
    let guard = last_guard(&store);
    store.fail_next(1, ErrorKind::Unavailable);
    drop(guard);
    free_soon(&store);
}

#[test]
fn the_last_blocking_guard_is_released_within_a_runtime_that_ends_and_a_silent_store() {
    let store = Memory::new();
    for releases in [true, false] {
        let guard = last_guard(&store);
        store.silent_for(Duration::from_millis(300));
        let ends = resting();
        ends.block_on(async {
            if releases {
                assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Unsupported);
            } else {
                drop(guard);
            }
        });
        drop(ends);
        free_soon(&store);
    }
}
