//! The engine: everything about a lock that is the same for every store.
//!
//! `state/` is the protocol as a state machine without I/O. What happens goes in as an event, and what has to be done comes out as
//! actions, which `driver.rs` carries out. One key with a lease of 12 s; milliseconds since the scene began, event, actions (a test compares
//! this page with what the state machine does):
//!
//! ```text
//! A free key
//!     0  a calls acquire                       send a claim
//!     0  the store grants it                   a has guard 0 of the lease
//! A waiter of this process: the lease is passed on, without the store
//!     0  b calls acquire                       -
//!     0  a releases                            b has guard 1 of the lease
//! A renewal
//!  4000  a third of the lease is over          send a renewal
//!  4000  the store has renewed it              the deadline moves
//! A release
//!     0  b releases                            the lease ends: Released, send a release
//!     0  the store has freed the key           -
//! A busy key: another process holds it
//!     0  c calls acquire                       send a claim
//!     0  the store says that it is busy        subscribe
//!     0  the subscription has begun            send a claim
//!     0  the store says that it is busy        -
//!     0  the store notifies: freed             send a claim
//!     0  the store grants it                   c has guard 0 of the lease, unsubscribe
//! A loss: the store does not answer any more, and the renewal is sent again and again (not shown)
//!  4000  a third of the lease is over          send a renewal
//!  4000  no answer to the renewal              -
//! 11878  the deadline has come                 the lease ends: Lost(Unreachable)
//! ```
//!
//! A call (`acquire`, a release) is a method of `State` (`join`, `release_guard`); an answer or a notification of the store is an
//! `Event`; "a third of the lease is over" is the event `Tick`, which the timer in `driver.rs` sends when the state says that something is
//! due. What is done is an `Action`. Guard n of a lease has n in the low bits of its token. The deadline is the moment before the request
//! was sent, plus the lease, less 1 % and 2 ms; the third of the lease counts from that moment, too.
//!
//! *Busy.* After each "busy" a pause begins, after which the store is asked again: at the latest when the lease in the way is over, if the
//! store tells that. A claim follows the subscription because the key may have been freed before the subscription began. Where the store
//! has a queue (Redis, etcd), it answers a waiter `Queued`; the claim is repeated with the same owner id to keep the place, and the grant
//! comes as a notification. Elsewhere each claim of a waiter has a new owner id. A try ends with its first "busy", a wait with a limit by
//! `TimesUp`.
//!
//! *Renewal.* The third of leases of a second and more is rounded up by at most 16 ms, so that they share batches. If the store does not
//! have the lease any more, it ends: Lost(Stolen), or Lost(ForceReleased) if the store says so. After an error the renewal is sent again,
//! after a twelfth of the lease or a second at most; without an answer, after another third of the lease. Some leases are confirmed by a
//! renewal before the waiter gets them: those of which nobody knows since when they are held (an answer to the claim was lost, and the
//! claim was repeated), and short first leases that nothing renews later. Only there an error ends the lease.
//!
//! A call comes in at `acquire.rs` and joins the wait queue of its key. `requests.rs` sends what `driver.rs` gives it, and the answer comes
//! back as an event. `caller.rs` wakes the task that waits; that task also polls the request, as long as no other waiter needs the answer.
//! A caller that leaves lets its claim go on: what the claim wins goes to the next waiter, or back to the store. A release comes in at
//! `guard_inner.rs`. A guard reads in `cell.rs` whether it is held.
//!
//! In `state/`, a key has three parts: the wait queue (`queue.rs`), the leases (`lease.rs`), and what the store was asked and has
//! answered (`in_store.rs`); `key.rs` says what is next (`advance`). `claim.rs` and `renewals.rs` have what is sent and what an answer
//! means. `release.rs` has how a lease ends, by a release or by a loss. `grant.rs` offers a guard to its waiter; `sleepers.rs` lets others
//! pass one that does not come for it. `local_handoff.rs` passes a lease on (63 times at most, until it is 10 ms old, unless set otherwise,
//! and never beyond an eighth of its ttl). `notifications.rs` and `subscription.rs` have what the store tells, and `backoff.rs` the pauses:
//! between polls of a store without notifications, longer ones in case a notification is lost, and after failures. Renewals go in batches
//! over all keys. All that can happen is in `Event` and `Action` (`event.rs`) and the methods of `State`.
//!
//! Imports point downwards in this order: this file, `acquire` and `owner_change`, `long_wait`, `guard_inner`, `requests`, `inner`, `driver`,
//! `caller`, `observe` and `random`, `cell`, `state`.

mod acquire;
mod caller;
mod cell;
mod driver;
mod guard_inner;
mod handoff_limits;
mod inner;
mod long_wait;
mod observe;
mod owner_change;
mod random;
mod requests;
mod state;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use tokio::sync::Notify;

pub(crate) use self::guard_inner::{GuardInner, WeakGuardState};
pub use self::handoff_limits::LocalHandoff;
pub use self::observe::describe_metrics;
pub(crate) use self::random::SystemRandom;
pub(crate) use self::state::BackOff;

use self::driver::Driver;
use self::inner::Inner;
use self::state::Traits;
use crate::home::Home;
use crate::{
    Admin, Backend, Capabilities, Capability, Clock, Cursor, DetachedLock, Error, ErrorKind, Exclusive, FencingToken,
    Guard, Holders, LockGuard, LockKey, LockOptions, Locker, Mode, OrBusy, Page, ReadGuard, Result, RwLocker,
    SharedBackend, default_label,
};

/// Turns a [`Backend`] into a [`Locker`]: everything about a lock that is the same for every store.
///
/// The engine has the wait queue, renewal, loss, release and observability. A clone is another handle on the same engine. A
/// backend crate wraps an engine in its public type and implements [`Backed`] for that type.
pub struct Engine<B: Backend> {
    inner: Arc<Inner>,
    backend: Arc<B>,
}

impl<B: Backend> Engine<B> {
    /// An engine with the default options: the machine's clock, and the local hand-off where the backend claims it.
    pub fn new(backend: B) -> Self {
        Self::with(backend, EngineOptions::new())
    }

    /// An engine with other options.
    pub fn with(backend: B, settings: EngineOptions) -> Self {
        let backend = Arc::new(backend);
        let capabilities = backend.capabilities();
        let local_handoff =
            if capabilities.has(Capability::LocalHandoff) { settings.local_handoff } else { LocalHandoff::off() };
        let traits = Traits {
            session: backend.session(),
            reentrant: capabilities.has(Capability::Reentrancy),
            leased: capabilities.has(Capability::Lease),
            queues: capabilities.has(Capability::Queue),
            marks: capabilities.has(Capability::WriterIntent) && !capabilities.has(Capability::Queue),
            notifies: backend.notifications().is_some(),
            answers_within: backend.answers_within(),
            batch: backend.renewal_batch(),
            handoffs: local_handoff.most,
            handoff_age: local_handoff.age,
        };
        let (clock, defaults) = (settings.clock, settings.defaults.or(&LockOptions::new().label(default_label())));
        let driver = settings.waiters.unwrap_or_default().driver(&clock, capabilities.backend());
        let inner = driver.add(|state| {
            Arc::new(Inner {
                backend: Arc::clone(&backend) as _,
                capabilities,
                clock,
                defaults,
                member: state.add(traits),
                driver: Arc::clone(&driver),
                asks: tokio::sync::Mutex::default(),
                closed: OnceLock::new(),
                backend_closed: AtomicBool::new(false),
                idle: Notify::new(),
                home: Home::here().filter(Home::has_workers),
            })
        });
        Self { inner, backend }
    }

    /// The backend of this engine.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// A handle that does not keep the engine alive. Other handles and guards do.
    pub fn downgrade(&self) -> WeakEngine<B> {
        WeakEngine { inner: Arc::downgrade(&self.inner), backend: Arc::downgrade(&self.backend) }
    }

    /// Closes the engine. Every guard is lost with [`Shutdown`](crate::LossReason::Shutdown), every waiter fails with
    /// [`ErrorKind::Closed`], what was held is released, and the backend is closed after the releases and claims under way
    /// have ended. Later acquisitions fail with [`ErrorKind::Closed`].
    ///
    /// It ends within three times [`Backend::answers_within`], also when the store is silent: requests under way have twice
    /// that time, and the backend the third. A key that is not released by then is freed by its lease.
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the engine closed, and some keys to be freed by their lease.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.wind_up().await;
        if inner.backend_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let limit = inner.clock.now().plus(inner.backend.answers_within());
        tokio::select! {
            () = inner.backend.close() => {}
            () = inner.clock.reach(limit) => {}
        }
    }
}

/// Options of an [`Engine`], beside those of each call.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[must_use]
pub struct EngineOptions {
    clock: Clock,
    local_handoff: LocalHandoff,
    waiters: Option<Waiters>,
    defaults: LockOptions,
}

impl EngineOptions {
    /// The default options: the machine's clock, and the default [`LocalHandoff`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock for deadlines.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// What counts where a request does not choose: the ttl, the wait, the label and so on. Without a label here it is the
    /// [default label](crate::default_label); [`LockOptions::no_label`] is for none.
    pub fn defaults(self, defaults: LockOptions) -> Self {
        Self { defaults, ..self }
    }

    /// Sets the limits of local hand-offs.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Puts the waiters of this engine into the same wait queues as those of other engines on the same store. By default an
    /// engine has wait queues of its own.
    pub fn waiters(self, waiters: &Waiters) -> Self {
        Self { waiters: Some(waiters.clone()), ..self }
    }
}

/// The wait queues of a process for the keys of one store, shared by several engines: one for each session.
///
/// All waiters for a key are in one queue, and only the first sends claims to the store. A waiter of the session that holds
/// the key does not wait behind the others.
#[derive(Clone, Debug, Default)]
pub struct Waiters(Arc<OnceLock<Arc<Driver<Inner>>>>);

impl Waiters {
    /// Wait queues without waiters.
    pub fn new() -> Self {
        Self::default()
    }

    fn driver(&self, clock: &Clock, backend: &'static str) -> Arc<Driver<Inner>> {
        Arc::clone(self.0.get_or_init(|| Driver::new(clock.clone(), backend)))
    }
}

impl<B: Backend> Clone for Engine<B> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), backend: Arc::clone(&self.backend) }
    }
}

impl<B: Backend> fmt::Debug for Engine<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.backend).finish()
    }
}

/// A weak handle on an [`Engine`]: for a store that has several engines and closes them all.
pub struct WeakEngine<B: Backend> {
    inner: Weak<Inner>,
    backend: Weak<B>,
}

impl<B: Backend> WeakEngine<B> {
    /// The engine, if another handle or a guard keeps it alive.
    pub fn upgrade(&self) -> Option<Engine<B>> {
        Some(Engine { inner: self.inner.upgrade()?, backend: self.backend.upgrade()? })
    }
}

impl<B: Backend> fmt::Debug for WeakEngine<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakEngine")
    }
}

/// Implemented by a public type that wraps an [`Engine`]. The type is then a [`Locker`] and [`Admin`], and, on a
/// [`SharedBackend`], an [`RwLocker`].
pub trait Backed: fmt::Debug + Send + Sync {
    /// The backend of the wrapped engine.
    type Backend: Backend;

    /// The wrapped engine.
    fn engine(&self) -> &Engine<Self::Backend>;
}

/// Implements [`Backed`](crate::Backed) and `From` its backend for a type of a crate, which has an [`Engine`](crate::Engine) of that
/// backend in its field `engine`; and, for its builder, `with` a backend and options.
///
/// It is invoked as `backed!(MyLocks, MyBackend);`.
#[macro_export]
macro_rules! backed {
    ($locks:ident, $backend:ident) => {
        impl $locks {
            pub(crate) fn with(backend: $backend, options: $crate::EngineOptions) -> Self {
                Self { engine: $crate::Engine::with(backend, options) }
            }
        }

        impl From<$backend> for $locks {
            fn from(backend: $backend) -> Self {
                Self::with(backend, $crate::EngineOptions::new())
            }
        }

        impl $crate::Backed for $locks {
            type Backend = $backend;
            fn engine(&self) -> &$crate::Engine<$backend> {
                &self.engine
            }
        }
    };
}

impl<B: Backend> Backed for Engine<B> {
    type Backend = B;
    fn engine(&self) -> &Self {
        self
    }
}

impl<T: Backed + ?Sized> Backed for &T {
    type Backend = T::Backend;
    fn engine(&self) -> &Engine<T::Backend> {
        (**self).engine()
    }
}

impl<T: Backed + ?Sized> Backed for Box<T> {
    type Backend = T::Backend;
    fn engine(&self) -> &Engine<T::Backend> {
        (**self).engine()
    }
}

#[async_trait]
impl<T: Backed> Locker for T {
    fn capabilities(&self) -> Capabilities {
        self.engine().inner.capabilities.clone()
    }

    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
        Ok(self.engine().inner.acquire(key, Mode::Exclusive, options).await?.map(Guard::new))
    }

    async fn attach(&self, grant: &DetachedLock, options: &LockOptions) -> Result<Option<LockGuard>> {
        let (engine, options) = (self.engine(), options.clone().or(&self.engine().inner.defaults));
        engine.inner.check("attach", grant.key(), Mode::Exclusive, &options)?;
        if let Some(why) = engine.inner.capabilities.why_not(Capability::Detach) {
            let error = Error::new(ErrorKind::Unsupported, "attach").with_backend(engine.inner.name());
            return Err(error.key(grant.key()).detail(why));
        }
        Ok(engine.inner.attach(grant, &options).await?.map(Guard::<Exclusive>::new))
    }
}

#[async_trait]
impl<T: Backed> RwLocker for T
where
    T::Backend: SharedBackend,
{
    async fn acquire_read_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<ReadGuard>> {
        Ok(self.engine().inner.acquire(key, Mode::Shared, options).await?.map(Guard::new))
    }
}

#[async_trait]
impl<T: Backed> Admin for T {
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        let core = &self.engine().inner;
        let found = core.bounded_for_operators("inspect", core.backend.inspect(key)).await;
        found.map_err(|error| error.within("inspect", core.name(), Some(key)))
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let core = &self.engine().inner;
        let page = core.bounded_for_operators("list", core.backend.list(prefix, after)).await;
        page.map_err(|error| error.within("list", core.name(), None))
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.engine().inner.force_release(key, None).await
    }

    async fn force_release_grant(&self, key: &LockKey, token: FencingToken) -> Result<Holders> {
        self.engine().inner.force_release(key, Some(token.epoch())).await
    }
}
