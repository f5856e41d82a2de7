//! The backend under test, as the cases see it: a source of independent clients.

use std::sync::Arc;

use async_trait::async_trait;

use super::direct::{Direct, Store};
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
    fn signals_in_turn(&self) -> bool {
        false
    }
    /// See [`Fixture::steps_are_atomic`].
    fn steps_are_atomic(&self) -> bool {
        true
    }
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

impl TestClient {
    /// A client on the engine that every backend crate uses.
    pub fn new<B: Backend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let (engine, faults) = faulty(backend, &clock, local_handoff);
        let engine = Arc::new(engine);
        Self {
            locker: engine.clone(),
            readers: None,
            admin: engine.clone(),
            store: Arc::new(Direct(engine)),
            faults,
            clock,
        }
    }

    /// A client on the engine that every backend crate uses, with shared mode.
    pub fn with_readers<B: SharedBackend>(backend: B, clock: Clock, local_handoff: LocalHandoff) -> Self {
        let (engine, faults) = faulty(backend, &clock, local_handoff);
        let engine = Arc::new(engine);
        let readers: Option<Arc<dyn RwLocker>> = Some(engine.clone());
        Self { locker: engine.clone(), readers, admin: engine.clone(), store: Arc::new(Direct(engine)), faults, clock }
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
    let backend = Faulty::new(backend);
    let faults = backend.faults.clone();
    let settings = EngineOptions::new().clock(clock.clone()).local_handoff(local_handoff);
    (Engine::with(backend, settings), faults)
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

    fn signals_in_turn(&self) -> bool {
        self.0.signals_in_turn()
    }

    fn steps_are_atomic(&self) -> bool {
        self.0.steps_are_atomic()
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

    fn signals_in_turn(&self) -> bool {
        self.0.signals_in_turn()
    }

    fn steps_are_atomic(&self) -> bool {
        self.0.steps_are_atomic()
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.0.environment()
    }
}
