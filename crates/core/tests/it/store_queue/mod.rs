//! What the engine does with a store that queues its waiters itself, on a clock that the tests move.

mod silence;
mod store;

use leasehold_testkit::{Fault, Faulty, Op, test};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Backend, Clock, Engine, EngineOptions, ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, MemoryBackend,
    OwnerId, Result,
};
use tokio::sync::broadcast;

use crate::store_queue::store::{FIRST_LEASE, Queueing};

const LEASE: Duration = Duration::from_secs(60);

type Store = Faulty<Queueing>;

struct Bench {
    store: Store,
    ours: Engine<Store>,
    theirs: Engine<Store>,
}

type WaitingTask = tokio::task::JoinHandle<Result<Option<LockGuard>>>;

fn bench() -> Bench {
    let clock = Clock::tokio();
    let memory = MemoryBackend::new(clock.clone());
    // A key of a store that is not new can be granted 17 times while the clock of a test stands still.
    clock.advance(Duration::from_millis(2));
    let store = Queueing { memory, state: Arc::default(), hints: Arc::new(Mutex::new(broadcast::Sender::new(16))) };
    let store = Faulty::new(store);
    let engine = || Engine::with(store.clone(), EngineOptions::new().clock(clock.clone()));
    Bench { ours: engine(), theirs: engine(), store }
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

fn options() -> LockOptions {
    LockOptions::new().ttl(LEASE)
}

async fn take(engine: &Engine<Store>) -> LockGuard {
    engine.acquire(&key(), &options()).await.unwrap().unwrap()
}

/// Lets everybody run who can, without the clock moving.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

impl Bench {
    async fn waiter(&self, options: LockOptions) -> WaitingTask {
        let engine = self.ours.clone();
        let waiter = tokio::spawn(async move { engine.acquire(&key(), &options).await });
        settle().await;
        waiter
    }

    /// The owners of all claims so far.
    fn claims(&self) -> Vec<OwnerId> {
        self.store.faults.steps(Op::TryAcquire, &key()).into_iter().map(|claim| claim.owner).collect()
    }

    async fn holders(&self) -> usize {
        self.store.inner.memory.inspect(&key()).await.unwrap().holders.len()
    }
}

#[test(paused)]
async fn the_release_of_one_is_the_grant_of_the_next() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    let first = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap().unwrap();
    assert!(next.is_held() && next.fencing_token() > first);
    assert_eq!(bench.claims().len(), 2, "the waiter asked once and was told");
    next.release().await.unwrap();
    assert_eq!(bench.holders().await, 0);
    assert_eq!(bench.store.faults.count(Op::Renew, &key()), 0, "a short hold needs no renewal");
}

#[test(paused)]
async fn the_first_lease_counts_from_when_the_place_was_last_confirmed_and_is_prolonged_to_what_was_asked_for() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    tokio::time::sleep(Duration::from_millis(40)).await;
    let asked = bench.claims().len();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap().unwrap();
    assert_eq!(bench.claims().len(), asked);
    let latest = FIRST_LEASE.checked_sub(Duration::from_millis(40)).unwrap();
    assert!(next.remaining() < latest, "{:?} of a lease that may have begun 40 ms ago", next.remaining());
    while next.remaining() <= FIRST_LEASE {
        assert!(next.is_held(), "lost before it was prolonged");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test(paused)]
async fn what_a_waiter_learns_too_late_is_not_handed_over_while_its_place_is_given_up() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let leaves = bench.waiter(options()).await;
    let waiters = [bench.waiter(options()).await, bench.waiter(options()).await];
    bench.store.inner.state().deaf = true;
    guard.release().await.unwrap();
    bench.store.inner.state().deaf = false;
    bench.store.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_millis(500)), 1);
    while bench.store.faults.left(Op::TryAcquire) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    leaves.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let served = waiters.iter().filter(|waiter| waiter.is_finished()).count();
    assert_eq!(served, 1, "guards at once, {} of them in the store", bench.holders().await);
}

#[test(paused)]
async fn a_listener_that_ended_or_was_not_to_be_had_is_replaced_while_the_wait_goes_on() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    for unreachable in [false, false, true, false] {
        assert!(bench.store.inner.is_listened_to());
        if unreachable {
            bench.store.faults.next(Op::Subscribe, Fault::Refuse(ErrorKind::Unavailable), 1);
        }
        bench.store.inner.breaks();
        tokio::time::timeout(Duration::from_secs(60), async {
            while !bench.store.inner.is_listened_to() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("another listener");
    }
    settle().await;
    let asked = bench.claims().len();
    guard.release().await.unwrap();
    drop(waiter.await.unwrap().unwrap().unwrap());
    assert_eq!(bench.claims().len(), asked, "it was not told of its grant");
}
