//! What the engine asks of a backend, beyond what the suite can see from outside.

use leasehold_testkit::test;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, Engine, EngineOptions, GrantRef, Holders, LeaseStatus,
    LockKey, LockOptions, Locker, MemoryBackend, Page, Renewal, Result,
};

/// The leases of a batch of renewals, and how long an answer to it is of use.
type Batch = (Vec<Duration>, Duration);

/// The memory store, which notes down what it is asked.
#[derive(Clone, Debug)]
struct Noting {
    store: MemoryBackend,
    renewals: Arc<Mutex<Vec<Batch>>>,
}

impl Noting {
    fn new(clock: &Clock) -> Self {
        Self { store: MemoryBackend::new(clock.clone()), renewals: Arc::default() }
    }
}

#[async_trait]
impl Backend for Noting {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.store.try_acquire(claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let leases = renewals.iter().map(|renewal| renewal.ttl).collect();
        self.renewals.lock().unwrap().push((leases, within));
        self.store.renew(renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.store.release(grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.store.inspect(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.store.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.store.force_release(key, only).await
    }
}

/// There has to be time for a second try, and a driver has to know by itself that nobody waits any more.
#[test(paused)]
async fn a_renewal_is_given_less_than_a_third_of_the_shortest_lease_of_its_batch() {
    let clock = Clock::tokio();
    let store = Noting::new(&clock);
    let engine = Engine::with(store.clone(), EngineOptions::new().clock(clock));
    let mut guards = Vec::new();
    // Of about the same length, so that some of them are due together.
    for (key, ttl) in [("a", 30_000), ("b", 30_010), ("c", 30_020), ("d", 10_000)] {
        let options = LockOptions::new().ttl(Duration::from_millis(ttl));
        guards.push(engine.acquire(&LockKey::new(key).unwrap(), &options).await.unwrap().unwrap());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    guards[0].renew().await.unwrap();
    let asked = std::mem::take(&mut *store.renewals.lock().unwrap());
    assert!(asked.iter().any(|(leases, _)| leases.len() > 1), "no batch had more than one lease: {asked:?}");
    for (leases, within) in asked {
        let shortest = *leases.iter().min().unwrap();
        assert!(within < shortest / 3 && within > shortest / 5, "{within:?} for {leases:?}");
    }
}
