mod acquire;
mod attempt;
mod closing;
mod detached;
mod hand_over;
mod keeper;
mod observe;
mod queue;
mod release;
mod sessions;
mod tenure;
mod waiting;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;

pub use self::hand_over::HandOver;
pub use self::queue::Waiters;
pub(crate) use self::release::Hold;

use self::closing::Closing;
use self::keeper::Keeper;
use self::observe::Observer;
use self::queue::Queue;
use self::release::Pending;
use self::sessions::Sessions;
use crate::{
    Admin, Backend, Capabilities, Capability, Clock, Cursor, Error, ErrorKind, Exclusive, Guard, HandOff, Holders,
    LockGuard, LockKey, LockOptions, Locker, LossReason, Mode, Page, ReadGuard, Result, RwLocker, SessionId,
    SharedBackend,
};

/// Everything about a lock that is the same on every store: turns a [`Backend`] into a [`Locker`].
///
/// Queue, waiting, renewal, loss, release and observability are written here, once. Cloning gives another handle on
/// the same engine. A backend crate wraps one in its public type and implements [`Backed`] for it.
pub struct Engine<B: Backend> {
    core: Arc<Core<B>>,
}

struct Core<B> {
    backend: B,
    capabilities: Capabilities,
    clock: Clock,
    observer: Arc<Observer>,
    hand_over: HandOver,
    queue: Arc<Queue>,
    keeper: Keeper,
    sessions: Sessions,
    /// For whom the backend claims, where that is a session.
    session: Option<SessionId>,
    /// Releases that go on after their guard is gone.
    pending: Arc<Pending>,
    /// What an attempt took last, in nanoseconds: the round trip that a wait limit may be exceeded by.
    round_trip: AtomicU64,
    closing: Closing,
    /// The backend was told to close.
    closed: AtomicBool,
}

impl<B: Backend> Engine<B> {
    /// An engine on the machine's clock, that hands over inside the process where the backend claims it.
    pub fn new(backend: B) -> Self {
        Self::with(backend, Settings::new())
    }

    /// An engine with other settings.
    pub fn with(backend: B, settings: Settings) -> Self {
        let capabilities = backend.capabilities();
        let hand_over = if capabilities.has(Capability::HandOver) { settings.hand_over } else { HandOver::off() };
        let core = Core {
            session: backend.session(),
            sessions: Sessions::new(capabilities.has(Capability::Reentrancy)),
            observer: Arc::new(Observer::new(capabilities.backend())),
            hand_over,
            capabilities,
            backend,
            clock: settings.clock,
            queue: settings.waiters.map_or_else(|| Arc::new(Queue::new(!hand_over.is_off())), Waiters::into_queue),
            keeper: Keeper::new(),
            pending: Arc::default(),
            round_trip: AtomicU64::new(u64::try_from(Duration::from_secs(1).as_nanos()).unwrap_or(u64::MAX)),
            closing: Closing::new(),
            closed: AtomicBool::new(false),
        };
        Self { core: Arc::new(core) }
    }

    /// The store-level backend underneath.
    pub fn backend(&self) -> &B {
        &self.core.backend
    }

    /// A handle that does not keep the engine: guards do, and other handles.
    pub fn downgrade(&self) -> WeakEngine<B> {
        WeakEngine(Arc::downgrade(&self.core))
    }

    /// Ends the engine: tells every guard [`Shutdown`](crate::LossReason::Shutdown) and whoever waits
    /// [`ErrorKind::Closed`], releases what was held, waits for releases and attempts under way, and closes the backend.
    /// Later acquisitions fail with [`ErrorKind::Closed`].
    ///
    /// It ends within three times [`Backend::answers_within`], also where the store is silent: what is under way has
    /// twice that, and the backend the third. What is not released by then is not released: its lease frees it.
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the engine closed, and some keys to be freed by their lease.
    pub async fn close(&self) {
        let core = &self.core;
        core.wind_up().await;
        if core.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let limit = core.clock.now().plus(core.backend.answers_within());
        tokio::select! {
            () = core.backend.close() => {}
            () = core.clock.reach(limit) => {}
        }
    }

    /// The part of [`close`](Self::close) before the backend is closed: for a store that several engines share, which
    /// all need it for their releases.
    ///
    /// # Cancel safety
    /// As for [`close`](Self::close).
    pub async fn wind_up(&self) {
        self.core.wind_up().await;
    }

    fn check(&self, operation: &'static str, key: &LockKey, mode: Mode, options: &LockOptions) -> Result<()> {
        let error = |kind| Error::new(kind, operation).backend(self.core.name()).key(key);
        options.check().map_err(|wrong| wrong.within(operation, self.core.name(), Some(key)))?;
        if mode == Mode::Shared
            && let Some(why) = self.core.capabilities.why_not(Capability::Shared)
        {
            return Err(error(ErrorKind::Unsupported).detail(format!("no shared mode: {why}")));
        }
        if self.core.closing.has_begun() {
            return Err(error(ErrorKind::Closed));
        }
        if Handle::try_current().is_err() {
            return Err(error(ErrorKind::Unsupported).detail("it needs a tokio runtime to run in"));
        }
        Ok(())
    }
}

/// How an [`Engine`] goes about it, beyond what each request says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[must_use]
pub struct Settings {
    clock: Clock,
    hand_over: HandOver,
    waiters: Option<Waiters>,
}

impl Settings {
    /// The machine's clock, and the default [`HandOver`].
    pub fn new() -> Self {
        Self::default()
    }

    /// What deadlines run on.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// How far grants pass from guard to guard inside this process.
    pub fn hand_over(self, hand_over: HandOver) -> Self {
        Self { hand_over, ..self }
    }

    /// Has its waiters queue together with those of other engines on the same store; by default they are by themselves.
    pub fn waiters(self, waiters: &Waiters) -> Self {
        Self { waiters: Some(waiters.clone()), ..self }
    }
}

impl<B: Backend> Core<B> {
    fn name(&self) -> &'static str {
        self.capabilities.backend()
    }
}

impl<B: Backend> Clone for Engine<B> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

impl<B: Backend> fmt::Debug for Engine<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.core.backend).finish()
    }
}

impl<B> fmt::Debug for Core<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("backend", &self.capabilities.backend()).finish_non_exhaustive()
    }
}

/// An [`Engine`] as long as somebody else keeps it: for a store that has several engines and closes them all.
pub struct WeakEngine<B: Backend>(Weak<Core<B>>);

impl<B: Backend> WeakEngine<B> {
    /// The engine, if it is still there.
    pub fn upgrade(&self) -> Option<Engine<B>> {
        Some(Engine { core: self.0.upgrade()? })
    }
}

impl<B: Backend> fmt::Debug for WeakEngine<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakEngine")
    }
}

/// A public type that wraps an [`Engine`] and thereby is a [`Locker`] and [`Admin`], and, on a
/// [`SharedBackend`], an [`RwLocker`].
pub trait Backed: fmt::Debug + Send + Sync + 'static {
    /// The store behind it.
    type Backend: Backend;

    /// The engine that does the work.
    fn engine(&self) -> &Engine<Self::Backend>;
}

impl<B: Backend> Backed for Engine<B> {
    type Backend = B;
    fn engine(&self) -> &Self {
        self
    }
}

#[async_trait]
impl<T: Backed> Locker for T {
    fn capabilities(&self) -> Capabilities {
        self.engine().core.capabilities.clone()
    }

    async fn acquire(&self, key: &LockKey, options: &LockOptions) -> Result<Option<LockGuard>> {
        let engine = self.engine();
        engine.check("acquire", key, Mode::Exclusive, options)?;
        Ok(engine.core.acquire(key, Mode::Exclusive, options).await?.map(Guard::new))
    }

    async fn adopt(&self, grant: &HandOff, options: &LockOptions) -> Result<Option<LockGuard>> {
        let engine = self.engine();
        engine.check("adopt", grant.key(), Mode::Exclusive, options)?;
        if let Some(why) = engine.core.capabilities.why_not(Capability::HandOff) {
            let error = Error::new(ErrorKind::Unsupported, "adopt").backend(engine.core.name());
            return Err(error.key(grant.key()).detail(why));
        }
        Ok(engine.core.adopt(grant, options).await?.map(Guard::<Exclusive>::new))
    }
}

#[async_trait]
impl<T: Backed> RwLocker for T
where
    T::Backend: SharedBackend,
{
    async fn acquire_read(&self, key: &LockKey, options: &LockOptions) -> Result<Option<ReadGuard>> {
        let engine = self.engine();
        engine.check("acquire", key, Mode::Shared, options)?;
        Ok(engine.core.acquire(key, Mode::Shared, options).await?.map(Guard::new))
    }
}

#[async_trait]
impl<T: Backed> Admin for T {
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let core = &self.engine().core;
        core.backend.inspect(key).await.map_err(|error| error.within("inspect", core.name(), Some(key)))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let core = &self.engine().core;
        core.backend.list(prefix, after).await.map_err(|error| error.within("list", core.name(), None))
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        let core = &self.engine().core;
        let held = core.backend.force_release(key).await;
        if held.is_ok() {
            if let Some(ours) = core.queue.holder(key) {
                ours.lose(LossReason::ForceReleased);
            }
            core.queue.freed(key);
        }
        held.map_err(|error| error.within("force-release", core.name(), Some(key)))
    }
}
