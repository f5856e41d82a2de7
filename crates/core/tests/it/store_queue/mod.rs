//! What the engine does with a store that queues its waiters itself, on a clock that the tests move.

mod silence;
mod store;

use leasehold_testkit::{Fault, Faulty, Op, test};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Claim, Clock, Engine, EngineOptions, ErrorKind, LocalHandoff, LockGuard, LockKey, LockOptions,
    LockerExt, MemoryBackend, Notification, OwnerId, Result, Wait,
};
use tokio::sync::broadcast;

use crate::store_queue::store::{ASK_AGAIN, FIRST_LEASE, Queueing};

const LEASE: Duration = Duration::from_secs(60);

type Store = Faulty<Queueing>;

struct Bench {
    clock: Clock,
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
    Bench { ours: engine(), theirs: engine(), clock, store }
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
async fn a_waiter_in_the_store_queue_does_not_claim_again_because_the_key_was_freed_here() {
    let bench = bench();
    let ours = Engine::with(
        bench.store.clone(),
        EngineOptions::new().clock(bench.clock.clone()).local_handoff(LocalHandoff::off()),
    );
    let guard = take(&ours).await;
    let theirs = bench.waiter(options()).await;
    bench.store.faults.next(Op::Release, Fault::Delay(Duration::from_millis(5)), 1);
    let release = tokio::spawn(guard.release());
    settle().await;
    let claims = bench.claims().len();
    let next = tokio::spawn(async move { take(&ours).await });
    release.await.unwrap().unwrap();
    settle().await;
    assert!(theirs.is_finished() && !next.is_finished());
    assert_eq!(bench.claims().len() - claims, 1);
    drop(theirs.await.unwrap());
    assert!(next.await.unwrap().is_held());
    assert_eq!(bench.claims().len() - claims, 1);
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
async fn the_deadline_counts_from_when_the_place_was_last_confirmed() {
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
}

#[test(paused)]
async fn the_first_lease_is_prolonged_to_the_one_that_was_asked_for() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap().unwrap();
    assert!(next.remaining() <= FIRST_LEASE);
    while next.remaining() <= FIRST_LEASE {
        assert!(next.is_held(), "lost before it was prolonged");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test(paused)]
async fn without_renewal_the_guard_comes_with_its_whole_lease() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options().renew(false)).await;
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap().unwrap();
    assert!(next.remaining() > FIRST_LEASE, "{:?} left", next.remaining());
}

#[test(paused)]
async fn a_lost_hint_costs_no_more_than_until_the_place_is_confirmed() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    bench.store.inner.state().deaf = true;
    let waiter = bench.waiter(options()).await;
    let since = bench.clock.now();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap().unwrap();
    let took = bench.clock.now().since(since);
    assert!(took <= ASK_AGAIN, "{took:?}");
    assert!(next.remaining() < FIRST_LEASE.checked_sub(took).unwrap(), "it may have been granted {took:?} ago");
}

#[test(paused)]
async fn a_waiter_that_leaves_gives_its_place_up() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    for leaves_by_limit in [true, false] {
        let wait = if leaves_by_limit { Wait::UpTo(Duration::from_millis(50)) } else { Wait::Forever };
        let waiter = bench.waiter(options().wait(wait)).await;
        assert_eq!(bench.store.inner.state().queue.len(), 1);
        if leaves_by_limit {
            assert!(waiter.await.unwrap().unwrap().is_none());
        } else {
            waiter.abort();
        }
        settle().await;
        assert_eq!(bench.store.inner.state().queue.len(), 0, "left by limit: {leaves_by_limit}");
    }
    guard.release().await.unwrap();
    assert_eq!(bench.holders().await, 0);
}

#[test(paused)]
async fn what_was_granted_to_one_who_left_is_given_back() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    waiter.abort();
    // The release and its grant come before the place is given up.
    guard.release().await.unwrap();
    settle().await;
    assert_eq!(bench.holders().await, 0);
}

#[test(paused)]
async fn of_a_grant_that_is_heard_too_late_the_store_is_asked() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    guard.release().await.unwrap();
    // The process stood still for longer than the first lease before it could look at the hint.
    bench.clock.advance(FIRST_LEASE);
    let next = waiter.await.unwrap().unwrap().unwrap();
    assert!(next.is_held() && next.remaining() > FIRST_LEASE, "{next:?}");
    let claims = bench.claims();
    assert!(claims.len() > 2 && claims[1] == claims[2], "it was not asked for, or given up: {claims:?}");
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

/// A waiter of ours that stood still from before it was granted the key until another had it, and the grant.
async fn granted_while_it_stood_still(bench: &Bench, options: LockOptions) -> (WaitingTask, LockGuard, Notification) {
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options).await;
    bench.store.inner.state().deaf = true;
    let owner = *bench.claims().last().unwrap();
    guard.release().await.unwrap();
    bench.store.inner.state().deaf = false;
    let late = Notification::Granted { owner, epoch: bench.store.inner.epoch().await };
    bench.clock.advance(FIRST_LEASE);
    let theirs = take(&bench.theirs).await;
    (waiter, theirs, late)
}

#[test(paused)]
async fn a_grant_that_is_told_after_another_has_the_key_makes_no_guard() {
    for options in [options(), options().ttl(FIRST_LEASE).renew(false)] {
        let bench = bench();
        let (waiter, theirs, late) = granted_while_it_stood_still(&bench, options).await;
        let asked = bench.claims().len();
        tokio::time::sleep(ASK_AGAIN).await;
        settle().await;
        assert!(bench.claims().len() > asked, "it has not asked again");
        bench.store.inner.tell(late);
        settle().await;
        assert!(!waiter.is_finished(), "a guard beside that of another");
        let token = theirs.fencing_token();
        theirs.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap().unwrap();
        assert!(next.is_held() && next.fencing_token() > token);
    }
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

#[test(paused)]
async fn a_store_that_ends_each_listener_at_once_is_not_asked_all_the_time() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter(options()).await;
    let asked = bench.claims().len();
    let minute = bench.clock.now().plus(Duration::from_secs(60));
    while bench.clock.now() < minute {
        bench.store.inner.breaks();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = bench.claims().len() - asked;
    assert!(asked < 60 * 50, "{asked} times in a minute");
    guard.release().await.unwrap();
    drop(waiter.await.unwrap().unwrap().unwrap());
}

#[test(paused)]
async fn a_claim_that_is_carried_out_late_keeps_the_key_for_nobody_for_as_long_as_it_was_late_and_a_second() {
    for late in [100, 1500, 6_000, 28_000].map(Duration::from_millis) {
        let bench = bench();
        bench.store.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
        let lease = Duration::from_secs(3600);
        let error = bench.ours.acquire(&key(), &options().ttl(lease).wait(Wait::Never)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Indeterminate);
        settle().await;
        assert_eq!(bench.holders().await, 0);
        tokio::time::sleep(late).await;
        let owner = bench.claims()[0];
        let claim = Claim { owner, ..Claim::new(&key(), leasehold_core::Mode::Exclusive, lease) };
        assert!(matches!(bench.store.inner.memory.try_acquire(&claim).await, Ok(Attempt::Granted { .. })));
        tokio::time::sleep(late + Duration::from_millis(1100)).await;
        assert_eq!(bench.holders().await, 0, "{late:?} late");
    }
}
