//! The backend under test, as the cases see it: a source of independent clients.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::direct::Store;
use super::faults::{Faults, Faulty};
use super::fixture::Fixture;
use crate::{
    Admin, Backend, Capabilities, Clock, Engine, EngineOptions, Error, ErrorKind, LocalHandoff, LockGuard, LockKey,
    LockOptions, Locker, LockerExt, ReadGuard, Result, RwLocker, RwLockerExt, SharedBackend, Wait,
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
    /// See [`Fixture::signals_in_turn`].
    fn signals_in_turn(&self) -> bool;
    /// See [`Fixture::steps_are_atomic`].
    fn steps_are_atomic(&self) -> bool;
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
    /// The backend, without the engine.
    pub store: Arc<dyn Store>,
    /// The faults between engine and backend.
    pub faults: Faults,
    /// The clock of its deadlines.
    pub clock: Clock,
}

impl TestClient {
    /// A client on the engine that every backend crate uses.
    pub fn new<B: Backend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        Self::of(faulty(backend, &clock, local_handoff), None, clock)
    }

    /// A client on the engine that every backend crate uses, with shared mode.
    pub fn with_readers<B: SharedBackend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let engine = faulty(backend, &clock, local_handoff);
        Self::of(Arc::clone(&engine), Some(engine), clock)
    }

    fn of<B: Backend>(engine: Arc<Engine<Faulty<B>>>, readers: Option<Arc<dyn RwLocker>>, clock: Clock) -> Self {
        let faults = engine.backend().faults.clone();
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

fn faulty<B: Backend>(backend: B, clock: &Clock, local_handoff: LocalHandoff) -> Arc<Engine<Faulty<B>>> {
    let settings = EngineOptions::new().clock(clock.clone()).local_handoff(local_handoff);
    Arc::new(Engine::with(Faulty::new(backend), settings))
}

/// A fixture as a subject.
pub struct Fixed<F: Fixture> {
    fixture: F,
    client: fn(F::Backend, Clock, LocalHandoff) -> TestClient,
}

impl<F: Fixture> Fixed<F> {
    /// Of a backend that grants exclusively.
    pub fn exclusive(fixture: F) -> Self {
        Self { fixture, client: TestClient::new }
    }
}

impl<F: Fixture<Backend: SharedBackend>> Fixed<F> {
    /// Of one that also grants shared.
    pub fn shared(fixture: F) -> Self {
        Self { fixture, client: TestClient::with_readers }
    }
}

impl<F: Fixture> fmt::Debug for Fixed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fixed").field(&self.fixture.capabilities().backend()).finish()
    }
}

#[async_trait]
impl<F: Fixture> Subject for Fixed<F> {
    fn capabilities(&self) -> Capabilities {
        self.fixture.capabilities()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        self.fixture.available().await
    }

    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient> {
        Ok((self.client)(self.fixture.connect_at(namespace, &clock).await?, clock, local_handoff))
    }

    fn signals_in_turn(&self) -> bool {
        self.fixture.signals_in_turn()
    }

    fn steps_are_atomic(&self) -> bool {
        self.fixture.steps_are_atomic()
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.fixture.environment()
    }
}
