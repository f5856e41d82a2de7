//! The hand-off inside a process, where the search of the state machine does not see what the engine makes of it.

use std::time::Duration;

use leasehold_core::{
    Backend, Clock, Engine, EngineOptions, LocalHandoff, LockGuard, LockKey, LockOptions, LockerExt, ReleaseOutcome,
    RwLockerExt,
};
use leasehold_testkit::{Fault, FaultyMemory, Op, faulty_memory, test};
use tokio::task::JoinHandle;

const LEASE: Duration = Duration::from_secs(80);

struct Bench {
    store: FaultyMemory,
    engine: Engine<FaultyMemory>,
}

fn bench(local_handoff: LocalHandoff) -> Bench {
    let store = faulty_memory(&Clock::tokio()).deaf();
    let options = EngineOptions::new().clock(Clock::tokio()).local_handoff(local_handoff);
    Bench { engine: Engine::with(store.clone(), options), store }
}

/// No age limit below an eighth of the lease, which these tests do not reach by themselves.
fn unhurried() -> LocalHandoff {
    LocalHandoff::new().age(LEASE)
}

impl Bench {
    fn claims(&self) -> usize {
        self.store.faults.granted().len()
    }

    async fn take(&self) -> LockGuard {
        self.engine.lock_with("k", &LockOptions::new().ttl(LEASE)).await.unwrap()
    }

    /// Somebody who is in the queue when this returns.
    async fn waiter(&self) -> JoinHandle<LockGuard> {
        self.waiter_with(LockOptions::new().ttl(LEASE)).await
    }

    async fn waiter_with(&self, options: LockOptions) -> JoinHandle<LockGuard> {
        let engine = self.engine.clone();
        let waiter = tokio::spawn(async move { engine.lock_with("k", &options).await.unwrap() });
        tokio::task::yield_now().await;
        waiter
    }
}

/// How many hand-offs there were of this epoch.
fn handoffs(guard: &LockGuard) -> u64 {
    guard.fencing_token().unwrap().get() & 63
}

#[test(paused)]
async fn an_epoch_takes_as_many_handoffs_as_is_set_and_its_count_never_wraps() {
    for (set, most) in [(u16::MAX, LocalHandoff::HARD_LIMIT), (4, 4)] {
        let bench = bench(unhurried().most(set));
        let mut guard = bench.take().await;
        let mut newest = guard.fencing_token().unwrap();
        for _ in 0..=most {
            let next = bench.waiter().await;
            guard.release().await.unwrap();
            guard = next.await.unwrap();
            assert!(guard.fencing_token().unwrap() > newest, "{newest} was not the smaller one");
            newest = guard.fencing_token().unwrap();
        }
        assert_eq!(bench.claims(), 2, "one epoch takes {most} hand-offs and no more");
    }
}

/// Found by a model of the hand-off.
#[test(paused)]
async fn rule_5_a_grant_whose_waiter_left_is_not_handed_over_beside_a_newer_one() {
    let bench = bench(unhurried());
    bench.store.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_secs(1)), 1);
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
    assert_eq!(handoffs(&waiter.await.unwrap()), 1);
}

#[test(paused)]
async fn an_old_epoch_goes_back_to_the_store() {
    let short = Duration::from_millis(11);
    for (bounds, age) in [(LocalHandoff::off(), Duration::ZERO), (LocalHandoff::new(), short), (unhurried(), LEASE / 8)]
    {
        let bench = bench(bounds);
        let guard = bench.take().await;
        let next = bench.waiter().await;
        tokio::time::sleep(age).await;
        drop(guard);
        assert_eq!(handoffs(&next.await.unwrap()), 0, "{bounds:?} at {age:?}");
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
        assert_eq!(handoffs(&next.await.unwrap()), 0, "{other:?}");
        assert_eq!(bench.claims(), claims + 1);
    }
}

/// The reader that leaves first asks whether the lease is still held; the question comes behind the release of the last one.
#[test(paused)]
async fn a_reader_that_left_is_not_told_that_it_lost_what_the_others_have_released_since() {
    let bench = bench(LocalHandoff::new());
    let writer = bench.take().await;
    let options = LockOptions::new().ttl(LEASE);
    let (first, last) = (bench.engine.read_with("k", &options), bench.engine.read_with("k", &options));
    let (first, last, _) = tokio::join!(first, last, async { writer.release().await.unwrap() });
    assert_eq!(bench.claims(), 2, "one grant for the writer, one for both readers");
    bench.store.faults.next(Op::Renew, Fault::Slow(Duration::from_secs(1)), 1);
    let (first, last) = tokio::join!(first.unwrap().release(), last.unwrap().release());
    assert_eq!((first.unwrap(), last.unwrap()), (ReleaseOutcome::Released, ReleaseOutcome::Released));
}

#[test(paused)]
async fn readers_that_queue_together_ride_on_one_grant() {
    let bench = bench(LocalHandoff::new());
    let writer = bench.take().await;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let engine = bench.engine.clone();
        readers.push(tokio::spawn(async move { engine.read_with("k", &LockOptions::new().ttl(LEASE)).await }));
        tokio::task::yield_now().await;
    }
    let later = bench.waiter().await;
    writer.release().await.unwrap();
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(reader.await.unwrap().unwrap());
    }
    assert_eq!(bench.claims(), 2, "one grant for the writer, one for all readers");
    let mut tokens: Vec<_> = guards.iter().map(|guard| guard.fencing_token().unwrap()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 10);
    // Each is a guard of its own: the store's grant ends with the last of them.
    while let Some(guard) = guards.pop() {
        assert!(guard.is_held() && !later.is_finished());
        guard.release().await.unwrap();
    }
    drop(later.await.unwrap());
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
