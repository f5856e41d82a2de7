//! The backend under test, as the cases see it: a source of independent clients.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::faults::{Faults, Faulty};
use super::fixture::Fixture;
use crate::{
    Admin, Attempt, Backend, Capabilities, Claim, Clock, Engine, EngineOptions, Error, ErrorKind, GrantRef,
    LeaseStatus, LocalHandoff, LockGuard, LockKey, LockOptions, Locker, ReadGuard, Renewal, Result, RwLocker,
    SharedBackend, Subscription, Wait,
};

/// The backend under test: a source of independent clients. Object-safe, so that the cases are compiled once.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// See [`Fixture::capabilities`].
    fn capabilities(&self) -> Capabilities;
    /// See [`Fixture::available`].
    async fn available(&self) -> std::result::Result<(), String>;
    /// Connects a client in this namespace, with this clock for its deadlines and these limits for local hand-offs.
    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient>;
    /// See [`Fixture::environment`].
    fn environment(&self) -> Vec<(String, String)>;
}

/// A client that is as independent as another process: its locker, its faults, its clock and its backend.
#[derive(Debug)]
pub struct TestClient {
    /// The locker.
    pub locker: Arc<dyn Locker>,
    /// The locker for shared grants, where shared mode is claimed.
    pub readers: Option<Arc<dyn RwLocker>>,
    /// The operator's calls.
    pub admin: Arc<dyn Admin>,
    /// The backend, without engine and faults.
    pub store: Arc<dyn Store>,
    /// The faults between engine and backend.
    pub faults: Faults,
    /// The clock of its deadlines.
    pub clock: Clock,
}

/// The time for a direct call of the backend. Long, because that time is not what a case checks.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// Direct calls of the backend, without engine and faults.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// See [`Backend::try_acquire`]. Asks again while the store has granted the key as often as its clock allows.
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt>;
    /// See [`Backend::renew`].
    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus>;
    /// See [`Backend::release`].
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus>;
    /// See [`crate::Notifications::subscribe`].
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>>;
    /// The backend itself.
    fn steps(&self) -> &dyn Backend;
    /// See [`Engine::close`].
    async fn close(&self);
}

#[async_trait]
impl<B: Backend> Store for Engine<Faulty<B>> {
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        let clock = Clock::system();
        let limit = clock.now().plus(WITHIN);
        loop {
            match self.backend().inner.try_acquire(claim).await {
                Ok(ahead) if ahead == Attempt::AHEAD_OF_THE_CLOCK && clock.now() < limit => {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                answer => return answer,
            }
        }
    }

    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus> {
        let answer = self.backend().inner.renew(&[Renewal { grant: grant.clone(), ttl }], WITHIN).await.pop();
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Indeterminate, "renew").detail("no answer in the batch")))
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.backend().inner.release(grant).await
    }

    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        match self.backend().inner.notifications() {
            Some(notifications) => notifications.subscribe(key).await,
            None => Err(Error::new(ErrorKind::Unsupported, "subscribe").detail("wake-up is claimed and not there")),
        }
    }

    fn steps(&self) -> &dyn Backend {
        &self.backend().inner
    }

    async fn close(&self) {
        Engine::close(self).await;
    }
}

impl TestClient {
    /// A client on the engine that every backend crate uses.
    pub fn new<B: Backend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let (engine, faults) = faulty(backend, &clock, local_handoff);
        let engine = Arc::new(engine);
        Self { locker: engine.clone(), readers: None, admin: engine.clone(), store: engine, faults, clock }
    }

    /// A client on the engine that every backend crate uses, with shared mode.
    pub fn with_readers<B: SharedBackend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let (engine, faults) = faulty(backend, &clock, local_handoff);
        let engine = Arc::new(engine);
        let readers: Option<Arc<dyn RwLocker>> = Some(engine.clone());
        Self { locker: engine.clone(), readers, admin: engine.clone(), store: engine, faults, clock }
    }

    pub(super) async fn acquire(&self, key: &LockKey, options: &LockOptions) -> Result<Option<LockGuard>> {
        self.locker.acquire(key, options).await
    }

    pub(super) async fn acquire_read(&self, key: &LockKey, options: &LockOptions) -> Result<Option<ReadGuard>> {
        match &self.readers {
            Some(readers) => readers.acquire_read(key, options).await,
            None => Err(Error::new(ErrorKind::Unsupported, "acquire").detail("shared mode is claimed and not there")),
        }
    }

    /// Tries once, with a long lease.
    pub(super) async fn try_once(&self, key: &LockKey) -> Result<Option<LockGuard>> {
        self.acquire(key, &LockOptions::new().wait(Wait::Never)).await
    }
}

fn faulty<B: Backend>(backend: B, clock: &Clock, local_handoff: LocalHandoff) -> (Engine<Faulty<B>>, Faults) {
    let faults = Faults::new();
    let settings = EngineOptions::new().clock(clock.clone()).local_handoff(local_handoff);
    (Engine::with(Faulty { inner: backend, faults: faults.clone() }, settings), faults)
}

/// A fixture whose backend grants exclusively, as a subject.
#[derive(Debug)]
pub struct Unshared<F>(pub F);

/// A fixture whose backend also grants shared, as a subject.
#[derive(Debug)]
pub struct Shareable<F>(pub F);

#[async_trait]
impl<F: Fixture> Subject for Unshared<F> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        self.0.available().await
    }

    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient> {
        Ok(TestClient::new(self.0.connect_at(namespace, &clock).await?, clock, local_handoff))
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.0.environment()
    }
}

#[async_trait]
impl<F: Fixture<Backend: SharedBackend>> Subject for Shareable<F> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        self.0.available().await
    }

    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient> {
        Ok(TestClient::with_readers(self.0.connect_at(namespace, &clock).await?, clock, local_handoff))
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.0.environment()
    }
}
