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

/// What the suite runs on: a way to get independent contenders.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// See [`Fixture::capabilities`].
    fn capabilities(&self) -> Capabilities;
    /// See [`Fixture::available`].
    async fn available(&self) -> std::result::Result<(), String>;
    /// A locker of its own in this namespace, whose deadlines run on this clock and whose grants pass on so far.
    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient>;
    /// See [`Fixture::environment`].
    fn environment(&self) -> Vec<(String, String)>;
}

/// A locker of its own, as another process would have it, with its faults, its clock and the store behind it.
#[derive(Debug)]
pub struct TestClient {
    /// What locks.
    pub locker: Arc<dyn Locker>,
    /// What locks shared, where that is claimed.
    pub readers: Option<Arc<dyn RwLocker>>,
    /// The operator's view.
    pub admin: Arc<dyn Admin>,
    /// The store behind it.
    pub store: Arc<dyn Store>,
    /// What goes wrong in between.
    pub faults: Faults,
    /// What its deadlines run on.
    pub clock: Clock,
}

/// How long a step past the engine may take: it is not what is judged.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// The steps of the backend itself, past engine and faults.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// See [`Backend::try_acquire`].
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt>;
    /// See [`Backend::renew`].
    async fn renew(&self, grant: &GrantRef, ttl: Duration) -> Result<LeaseStatus>;
    /// See [`Backend::release`].
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus>;
    /// See [`crate::Notifications::subscribe`].
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>>;
    /// All of them.
    fn steps(&self) -> &dyn Backend;
    /// See [`Engine::close`].
    async fn close(&self);
}

#[async_trait]
impl<B: Backend> Store for Engine<Faulty<B>> {
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.backend().inner.try_acquire(claim).await
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
    /// A contender on the engine that every backend crate uses.
    pub fn new<B: Backend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let (engine, faults) = faulty(backend, &clock, local_handoff);
        let engine = Arc::new(engine);
        Self { locker: engine.clone(), readers: None, admin: engine.clone(), store: engine, faults, clock }
    }

    /// The same, with readers.
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

    /// One attempt with a long lease.
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
