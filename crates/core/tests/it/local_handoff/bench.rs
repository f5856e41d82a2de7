use std::time::Duration;

use leasehold_core::{
    Clock, Engine, EngineOptions, Guard, GuardMode, LocalHandoff, LockGuard, LockKey, LockOptions, LockerExt,
};
use leasehold_testkit::{Fault, FaultyMemory, Op, faulty_memory};

pub(crate) struct Bench {
    pub(crate) clock: Clock,
    pub(crate) store: FaultyMemory,
    pub(crate) engine: Engine<FaultyMemory>,
}

pub(crate) const LEASE: Duration = Duration::from_secs(80);

pub(crate) fn bench(local_handoff: LocalHandoff) -> Bench {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock).deaf();
    let engine = engine(&store, local_handoff);
    Bench { clock, store, engine }
}

pub(crate) fn engine(store: &FaultyMemory, local_handoff: LocalHandoff) -> Engine<FaultyMemory> {
    Engine::with(store.clone(), EngineOptions::new().clock(Clock::tokio()).local_handoff(local_handoff))
}

/// No age limit below an eighth of the lease, which these tests do not reach by themselves.
pub(crate) fn unhurried() -> LocalHandoff {
    LocalHandoff::new().age(LEASE)
}

impl Bench {
    pub(crate) fn claims(&self) -> usize {
        self.store.faults.granted().len()
    }

    /// The next claim is answered so much later.
    pub(crate) fn late(&self, by: Duration) {
        self.store.faults.next(Op::TryAcquire, Fault::Delay(by), 1);
    }

    pub(crate) async fn take(&self) -> LockGuard {
        take(&self.engine, LockOptions::new().ttl(LEASE)).await
    }

    /// Somebody who is in the queue when this returns.
    pub(crate) async fn waiter(&self) -> tokio::task::JoinHandle<LockGuard> {
        self.waiter_with(LockOptions::new().ttl(LEASE)).await
    }

    pub(crate) async fn waiter_with(&self, options: LockOptions) -> tokio::task::JoinHandle<LockGuard> {
        let engine = self.engine.clone();
        let waiter = tokio::spawn(async move { take(&engine, options).await });
        tokio::task::yield_now().await;
        waiter
    }
}

pub(crate) async fn take(engine: &Engine<FaultyMemory>, options: LockOptions) -> LockGuard {
    engine.acquire(&LockKey::new("k").unwrap(), &options).await.unwrap().unwrap()
}

/// The epoch of a guard, and the number of hand-offs.
pub(crate) fn token<M: GuardMode>(guard: &Guard<M>) -> (u64, u64) {
    let token = guard.fencing_token().unwrap().get();
    (token >> 6, token & 63)
}
