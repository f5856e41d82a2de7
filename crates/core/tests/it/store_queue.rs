//! What the engine does with a store that queues its waiters itself, on a clock that the tests move.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, Engine, EngineOptions, FencingToken, GrantRef,
    Holders, LeaseStatus, LockGuard, LockKey, LockOptions, LockerExt, MemoryBackend, Notification, Notifications, Page,
    Renewal, Result, Subscription,
};
use leasehold_testkit::{Fault, Faulty, Op, test};
use tokio::sync::broadcast;

const LEASE: Duration = Duration::from_secs(60);

type Store = Faulty<Queueing>;

struct Bench {
    store: Store,
    ours: Engine<Store>,
    theirs: Engine<Store>,
}

fn bench() -> Bench {
    let clock = Clock::tokio();
    let memory = MemoryBackend::new(clock.clone());
    // A key of a store that is not new can be granted 17 times while the clock of a test stands still.
    clock.advance(Duration::from_millis(2));
    let store = Queueing { memory, state: Arc::default(), hints: broadcast::Sender::new(16) };
    let store = Faulty::new(store);
    let engine = || Engine::with(store.clone(), EngineOptions::new().clock(clock.clone()));
    Bench { ours: engine(), theirs: engine(), store }
}

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

async fn take(engine: &Engine<Store>) -> LockGuard {
    engine.lock_with("k", &LockOptions::new().ttl(LEASE)).await.unwrap()
}

/// Lets everybody run who can, without the clock moving.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

impl Bench {
    async fn waiter(&self) -> tokio::task::JoinHandle<LockGuard> {
        let engine = self.ours.clone();
        let waiter = tokio::spawn(async move { take(&engine).await });
        settle().await;
        waiter
    }

    async fn holders(&self) -> usize {
        self.store.inner.memory.inspect(&key()).await.unwrap().holders.len()
    }
}

#[test(paused)]
async fn the_release_of_one_is_the_grant_of_the_next() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let waiter = bench.waiter().await;
    let first = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap();
    assert!(next.is_held() && next.fencing_token() > first);
    assert_eq!(bench.store.faults.count(Op::TryAcquire, &key()), 2, "the waiter asked once and was told");
    next.release().await.unwrap();
    assert_eq!(bench.holders().await, 0);
    assert_eq!(bench.store.faults.count(Op::Renew, &key()), 0, "a short hold needs no renewal");
}

#[test(paused)]
async fn what_a_waiter_learns_too_late_is_not_handed_over_while_its_place_is_given_up() {
    let bench = bench();
    let guard = take(&bench.theirs).await;
    let leaves = bench.waiter().await;
    let waiters = [bench.waiter().await, bench.waiter().await];
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

const FIRST_LEASE: Duration = Duration::from_secs(3);

/// The memory store with a queue in front of it.
#[derive(Clone, Debug)]
struct Queueing {
    memory: MemoryBackend,
    state: Arc<Mutex<State>>,
    hints: broadcast::Sender<Notification>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Claim>,
    /// Hints are lost.
    deaf: bool,
}

impl Queueing {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn grant_next(&self) {
        let Some(next) = self.state().queue.pop_front() else { return };
        let claim = Claim { ttl: FIRST_LEASE, ..next };
        let Attempt::Granted { epoch } = self.memory.try_acquire(&claim).await.unwrap() else { panic!("not free") };
        if !self.state().deaf {
            let _ = self.hints.send(Notification::Granted { owner: claim.owner, epoch });
        }
    }
}

#[async_trait]
impl Backend for Queueing {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities().with(Capability::Queue)
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let attempt = self.memory.try_acquire(claim).await?;
        let holders = self.memory.inspect(&claim.key).await?.holders;
        let epoch_of_holder = holders.first().and_then(|holder| holder.token).map(FencingToken::epoch);
        if !claim.waits || !matches!(attempt, Attempt::Busy { .. }) {
            return Ok(attempt);
        }
        let mut state = self.state();
        if !state.queue.iter().any(|queued| queued.owner == claim.owner) {
            state.queue.push_back(claim.clone());
        }
        Ok(Attempt::Queued {
            epoch_of_holder,
            latest_epoch: None,
            retry_in: Duration::from_secs(1),
            lease: FIRST_LEASE,
            notifies: true,
        })
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        self.memory.renew(renewals, within).await
    }
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.state().queue.retain(|queued| queued.owner != grant.owner);
        let held = self.memory.release(grant).await?;
        if held == LeaseStatus::Held {
            self.grant_next().await;
        }
        Ok(held)
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.memory.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.memory.list(prefix, after).await
    }
    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.memory.force_release(key, only).await
    }
    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(self)
    }
}

#[async_trait]
impl Notifications for Queueing {
    async fn subscribe(&self, _key: &LockKey) -> Result<Box<dyn Subscription>> {
        Ok(Box::new(Ear(self.hints.subscribe())))
    }
}

struct Ear(broadcast::Receiver<Notification>);

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Notification {
        self.0.recv().await.unwrap_or(Notification::Ended)
    }
}
