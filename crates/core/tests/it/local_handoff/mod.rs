//! The nine rules of the hand-off inside a process, each by a test that fails when the rule is taken out.

mod bench;
mod readers;

use std::time::Duration;

use bench::{LEASE, bench, engine, take, token, unhurried};
use leasehold_core::{Backend, ErrorKind, LocalHandoff, LockKey, LockOptions, LockerExt, Wait};
use leasehold_testkit::{Fault, Op, test};

#[test(paused)]
async fn rule_1_a_store_grant_begins_a_larger_epoch_and_a_renewal_keeps_it() {
    let bench = bench(unhurried());
    let first = bench.take().await;
    let (epoch, count) = token(&first);
    assert_eq!(count, 0);
    let next = bench.waiter().await;
    first.renew().await.unwrap();
    drop(first);
    let next = next.await.unwrap();
    assert_eq!(token(&next), (epoch, 1));
    drop(next);
    drop(bench.engine.lock("other").await.unwrap());
    let again = bench.take().await;
    assert!(token(&again).0 > epoch && token(&again).1 == 0);
    assert_eq!(bench.claims(), 3);
}

#[test(paused)]
async fn rule_2_the_count_never_wraps_into_the_epoch() {
    let bench = bench(unhurried().most(u16::MAX));
    let mut guard = bench.take().await;
    let mut newest = guard.fencing_token().unwrap();
    for _ in 0..=LocalHandoff::HARD_LIMIT {
        let next = bench.waiter().await;
        guard.release().await.unwrap();
        guard = next.await.unwrap();
        assert!(guard.fencing_token().unwrap() > newest, "{newest} was not the smaller one");
        newest = guard.fencing_token().unwrap();
    }
    assert_eq!(bench.claims(), 2, "one epoch takes {} hand-offs and no more", LocalHandoff::HARD_LIMIT);
}

#[test(paused)]
async fn rule_3_a_guard_of_an_older_epoch_neither_hands_over_nor_releases_the_newer() {
    let bench = bench(unhurried());
    let stale = bench.take().await;
    bench.clock.advance(LEASE);
    let fresh = bench.take().await;
    let waiter = bench.waiter().await;
    drop(stale);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(fresh.is_held() && !waiter.is_finished(), "the stale guard gave away what was not its own");
    drop(fresh);
    assert_eq!(token(&waiter.await.unwrap()).1, 1);
}

#[test(paused)]
async fn rule_4_what_may_not_last_goes_back_to_the_store() {
    let bench = bench(unhurried());
    // The reply came when most of the lease was over, which counts from before the request.
    let lease = Duration::from_millis(1500);
    bench.late(lease * 8 / 10);
    let unrenewed = LockOptions::new().ttl(lease).renew(false);
    let guard = take(&bench.engine, unrenewed.clone()).await;
    let next = bench.waiter_with(unrenewed).await;
    drop(guard);
    assert_eq!(token(&next.await.unwrap()).1, 0, "handed off with a fifth of the lease left");
    assert_eq!(bench.claims(), 2);
}

#[test(paused)]
async fn rule_4_an_unknown_renewal_goes_back_to_the_store() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let next = bench.waiter().await;
    bench.store.faults.always(Op::Renew, Fault::Refuse(ErrorKind::Unavailable));
    assert!(guard.renew().await.unwrap_err().is_transient());
    drop(guard);
    assert_eq!(token(&next.await.unwrap()).1, 0, "handed off although nobody knows whether it was renewed");
    assert_eq!(bench.claims(), 2);
}

#[test(paused)]
async fn rule_5_guards_are_lost_before_the_next_claim_and_waiters_stay() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let waiter = bench.waiter().await;
    bench.clock.advance(LEASE);
    let next = waiter.await.unwrap();
    assert!(!guard.is_held() && next.is_held());
    assert!(token(&next).0 > token(&guard).0);
}

/// Found by a model of the hand-off.
#[test(paused)]
async fn rule_5_a_grant_whose_waiter_left_is_not_handed_over_beside_a_newer_one() {
    let bench = bench(unhurried());
    bench.late(Duration::from_secs(1));
    let leaves = bench.waiter().await;
    leaves.abort();
    assert!(leaves.await.is_err());
    assert_eq!(bench.claims(), 1);
    bench.store.force_release(&LockKey::new("k").unwrap(), None).await.unwrap();
    let newer = bench.take().await;
    let waiter = bench.waiter().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(newer.is_held() && !waiter.is_finished(), "two guards in one process");
    drop(newer);
    assert_eq!(token(&waiter.await.unwrap()).1, 1);
}

#[test(paused)]
async fn rule_6_every_epoch_has_an_owner_of_its_own() {
    let bench = bench(unhurried().most(1));
    for _ in 0..5 {
        let guard = bench.take().await;
        let next = bench.waiter().await;
        drop(guard);
        drop(next.await.unwrap());
    }
    let owners = bench.store.faults.granted();
    let distinct: std::collections::HashSet<_> = owners.iter().collect();
    assert!(owners.len() == 5 && distinct.len() == owners.len(), "{} of {}", distinct.len(), owners.len());
}

#[test(paused)]
async fn rule_7_after_the_bound_another_process_gets_its_turn() {
    let bench = bench(unhurried().most(4));
    let mut guard = bench.take().await;
    let elsewhere = engine(&bench.store, LocalHandoff::new());
    let other = tokio::spawn(async move { take(&elsewhere, LockOptions::new().ttl(LEASE)).await });
    // It polls, and every poll of it may fall on a hand-off; what it must get is a moment in which the key is free.
    let mut handoffs = 0;
    while !other.is_finished() {
        handoffs += 1;
        assert!(handoffs < 1000, "the other process starves");
        let next = bench.waiter().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(guard);
        tokio::select! {
            next = next => guard = next.unwrap(),
            () = tokio::time::sleep(Duration::from_secs(1)) => break,
        }
    }
    assert!(other.await.unwrap().is_held());
}

#[test(paused)]
async fn rule_8_a_cancelled_waiter_uses_up_no_number() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let gone = bench.waiter().await;
    let next = bench.waiter().await;
    gone.abort();
    let _ = gone.await;
    drop(guard);
    assert_eq!(token(&next.await.unwrap()).1, 1);
    assert_eq!(bench.claims(), 1);
}

#[test(paused)]
async fn rule_8_what_was_given_to_a_waiter_that_then_left_goes_to_the_next() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let options = LockOptions::new().ttl(LEASE);
    let key = LockKey::new("k").unwrap();
    let mut leaves = Box::pin(bench.engine.acquire(&key, &options));
    assert!(futures::poll!(&mut leaves).is_pending());
    let next = bench.waiter().await;
    drop(guard);
    drop(leaves);
    assert!(next.await.unwrap().is_held());
    assert_eq!(bench.claims(), 1);
}

#[test(paused)]
async fn rule_9_a_guard_that_was_handed_over_has_what_is_left_of_the_lease() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let next = bench.waiter().await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    let left = guard.remaining();
    drop(guard);
    let next = next.await.unwrap();
    assert_eq!(token(&next).1, 1);
    assert!(next.remaining() <= left, "{:?} after {left:?}", next.remaining());
}

#[test(paused)]
async fn an_old_epoch_goes_back_to_the_store() {
    for (bounds, age) in [(LocalHandoff::new(), Duration::from_millis(11)), (unhurried(), LEASE / 8)] {
        let bench = bench(bounds);
        let guard = bench.take().await;
        let next = bench.waiter().await;
        tokio::time::sleep(age).await;
        drop(guard);
        assert_eq!(token(&next.await.unwrap()).1, 0, "{bounds:?} at {age:?}");
    }
}

#[test(paused)]
async fn only_requests_that_are_alike_are_served_by_a_hand_off() {
    let bench = bench(unhurried());
    for other in [
        LockOptions::new().ttl(LEASE / 2),
        LockOptions::new().ttl(LEASE).reason("another"),
        LockOptions::new().ttl(LEASE).label("another"),
        LockOptions::new().ttl(LEASE).renew(false),
        LockOptions::new().ttl(LEASE).max_hold(LEASE),
    ] {
        let guard = bench.take().await;
        let claims = bench.claims();
        let next = bench.waiter_with(other.clone()).await;
        drop(guard);
        assert_eq!(token(&next.await.unwrap()).1, 0, "{other:?}");
        assert_eq!(bench.claims(), claims + 1);
    }
}

#[test(paused)]
async fn switched_off_every_release_goes_to_the_store() {
    let bench = bench(LocalHandoff::off());
    let guard = bench.take().await;
    let next = bench.waiter().await;
    drop(guard);
    assert_eq!(token(&next.await.unwrap()).1, 0);
    assert_eq!(bench.claims(), 2);
}

#[test(paused)]
async fn while_the_key_is_held_here_nobody_asks_the_store() {
    let bench = bench(unhurried());
    let guard = bench.take().await;
    let waiter = bench.waiter().await;
    let key = LockKey::new("k").unwrap();
    assert!(bench.engine.acquire(&key, &LockOptions::new().wait(Wait::Never)).await.unwrap().is_none());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.claims(), 1);
    drop(guard);
    drop(waiter.await.unwrap());
}

#[test]
fn a_guard_dropped_outside_a_runtime_is_handed_over() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (guard, waiter) = runtime.block_on(async {
        let bench = bench(unhurried());
        let guard = bench.take().await;
        let waiter = bench.waiter().await;
        while !waiter.is_finished() && bench.claims() == 0 {
            tokio::task::yield_now().await;
        }
        (guard, waiter)
    });
    std::thread::spawn(move || drop(guard)).join().unwrap();
    let next = runtime.block_on(waiter).unwrap();
    assert!(next.is_held());
}

/// A successor that ends while its predecessor is still leaving must not leave the epoch to nobody.
#[test(multi_thread)]
async fn two_threads_that_hand_off_back_and_forth_do_not_stall() {
    let locks = leasehold_core::Memory::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let locks = locks.clone();
        tasks.spawn(async move {
            for _ in 0..5_000 {
                // A stalled epoch is noticed by its renewal after a third of the lease, 10 s; this is far less.
                let guard = locks.lock_for("k", Duration::from_secs(5)).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}
