use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, Engine, Error, ErrorKind, GrantRef, HandOver, Held, Holders,
    LockGuard, LockKey, LockOptions, Locker, MemoryBackend, OwnerId, Page, Renewal, Result, Settings, SharedBackend,
};

/// The memory store, counting claims, with replies that can be late and renewals that can fail.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub(crate) inner: MemoryBackend,
    pub(crate) granted: Arc<Mutex<Vec<OwnerId>>>,
    pub(crate) silent: Arc<Mutex<bool>>,
    pub(crate) late: Arc<Mutex<Duration>>,
}

#[async_trait]
impl Backend for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let attempt = self.inner.try_acquire(claim).await?;
        if matches!(attempt, Attempt::Granted { .. }) {
            self.granted.lock().unwrap().push(claim.owner);
            let late = *self.late.lock().unwrap();
            tokio::time::sleep(late).await;
        }
        Ok(attempt)
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<Held>> {
        if *self.silent.lock().unwrap() {
            return renewals.iter().map(|_| Err(Error::new(ErrorKind::Unavailable, "renew"))).collect();
        }
        self.inner.renew(renewals, within).await
    }
    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        self.inner.release(grant).await
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.inner.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.inner.list(prefix, after).await
    }
    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.inner.force_release(key).await
    }
}

impl SharedBackend for Counting {}

pub(crate) struct Bench {
    pub(crate) clock: Clock,
    pub(crate) store: Counting,
    pub(crate) engine: Engine<Counting>,
}

pub(crate) const LEASE: Duration = Duration::from_secs(80);

pub(crate) fn bench(hand_over: HandOver) -> Bench {
    let clock = Clock::tokio();
    let store = Counting {
        inner: MemoryBackend::new(clock.clone()),
        granted: Arc::default(),
        silent: Arc::default(),
        late: Arc::default(),
    };
    let engine = engine(&store, &clock, hand_over);
    Bench { clock, store, engine }
}

pub(crate) fn engine(store: &Counting, clock: &Clock, hand_over: HandOver) -> Engine<Counting> {
    Engine::with(store.clone(), Settings::new().clock(clock.clone()).hand_over(hand_over))
}

/// No age limit below an eighth of the lease, which these tests do not reach by themselves.
pub(crate) fn unhurried() -> HandOver {
    HandOver::new().age(LEASE)
}

impl Bench {
    pub(crate) fn claims(&self) -> usize {
        self.store.granted.lock().unwrap().len()
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

pub(crate) async fn take(engine: &Engine<Counting>, options: LockOptions) -> LockGuard {
    engine.acquire(&LockKey::new("k").unwrap(), &options).await.unwrap().unwrap()
}

pub(crate) fn token(guard: &LockGuard) -> (u64, u64) {
    let token = guard.fencing_token().unwrap().get();
    (token >> 10, token & 1023)
}
