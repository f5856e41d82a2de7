//! Locks for threads without an async runtime.
//!
//! [`Locks`] runs a locker on a thread of its own, which renews leases while the caller's thread works or sleeps.
//!
//! ```
//! use std::time::Duration;
//! use leasehold_core::{Memory, blocking};
//!
//! # fn main() -> leasehold_core::Result<()> {
//! let locks = blocking::Locks::new(Memory::new())?;
//! let guard = locks.lock_for("invoice/42", Duration::from_secs(20))?;
//! println!("writes go with token {:?}", guard.fencing_token());
//! assert!(guard.is_held());
//! guard.release()?;
//!
//! let sum = locks.with_lock("ledger", |_guard| 40 + 2)?;
//! assert_eq!(sum, 42);
//! # Ok(()) }
//! ```
//!
//! A locker with connections has to be connected on that thread's runtime, by [`Locks::connect`].
//!
//! Nothing here may be called from within an async runtime, whose thread it would stop; that is the error
//! [`Unsupported`](ErrorKind::Unsupported), also on the threads of tokio's `spawn_blocking`.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::ext::after_work;
use crate::{
    DetachedLock, Error, ErrorKind, Exclusive, FencingToken, GuardHandle, GuardMode, IntoLockKey, LockKey, LockOptions,
    Locker, LockerExt, LossReason, OrBusy, ReleaseOutcome, Result, RwLocker, RwLockerExt, Shared,
};

/// How long dropping a guard waits for the store: after that, the release goes on in the background.
const DROP_WAIT: Duration = Duration::from_secs(2);

/// How long the thread goes on at most for a release in the background, after the last clone and the last guard.
const RELEASE_WAIT: Duration = Duration::from_secs(60);

/// A locker whose methods block the calling thread.
///
/// The runtime behind it is one thread, which ends with the last clone and the last guard. If a release goes on in the
/// background then, the thread ends after it, and after a minute at most: the lease frees what is still held. The process
/// does not wait for the thread when it exits.
#[derive(Clone, Debug)]
pub struct Locks<L> {
    locker: L,
    runtime: Arc<Runtime>,
}

impl<L> Locks<L> {
    /// Blocking calls on a locker that needs no connection, or whose connections belong to another runtime that goes on.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) if the thread cannot be started.
    pub fn new(locker: L) -> Result<Self> {
        Ok(Self { locker, runtime: Runtime::start()? })
    }

    /// Blocking calls on the locker that `connect` makes: its connections live on the runtime of the new thread.
    ///
    /// ```
    /// # use leasehold_core::Memory;
    /// # struct RedisSingle;
    /// # impl RedisSingle { async fn connect(_url: &str) -> leasehold_core::Result<Memory> { Ok(Memory::new()) } }
    /// # fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::blocking;
    ///
    /// let locks = blocking::Locks::connect(|| RedisSingle::connect("redis://127.0.0.1"))?;
    /// let guard = locks.lock("invoice/42")?;
    /// # drop(guard);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `connect`; [`Unsupported`](ErrorKind::Unsupported) from within a runtime;
    /// [`Unavailable`](ErrorKind::Unavailable) if the thread cannot be started.
    pub fn connect<F>(connect: impl FnOnce() -> F) -> Result<Self>
    where
        F: Future<Output = Result<L>>,
    {
        let runtime = Runtime::start()?;
        // Not before: it may need the runtime to be there.
        let locker = runtime.run("connect", async move { connect().await })??;
        Ok(Self { locker, runtime })
    }

    /// The locker that does the work.
    pub fn locker(&self) -> &L {
        &self.locker
    }

    /// Waits for any future on the runtime of this locker, such as its `close()` or a method of
    /// [`Admin`](crate::Admin).
    ///
    /// ```
    /// # fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{Admin, LockKey, Memory, blocking};
    ///
    /// let locks = blocking::Locks::new(Memory::new())?;
    /// let guard = locks.lock("k")?;
    /// let seen = locks.block_on(locks.locker().inspect(guard.key()))??;
    /// assert_eq!(seen.holders.len(), 1);
    /// locks.block_on(locks.locker().close())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) from within a runtime.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output> {
        self.runtime.run("block on a future", future)
    }

    fn guard<M: GuardMode>(&self, guard: crate::Guard<M>) -> Guard<M> {
        Guard { guard: Some(guard), runtime: Arc::clone(&self.runtime) }
    }
}

impl<L: Locker> Locks<L> {
    /// Acquires `key`, waiting without a limit: see [`LockerExt::lock`].
    ///
    /// # Errors
    /// As for [`LockerExt::lock`], and [`Unsupported`](ErrorKind::Unsupported) from within a runtime.
    pub fn lock(&self, key: impl IntoLockKey) -> Result<LockGuard> {
        self.lock_with(key, &LockOptions::new())
    }

    /// Asks once for `key`, without waiting. `Ok(None)`: another holder has it. See [`LockerExt::try_lock`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock).
    pub fn try_lock(&self, key: impl IntoLockKey) -> Result<Option<LockGuard>> {
        Ok(self.try_lock_or_busy(key)?.ok())
    }

    /// Asks once for `key`, without waiting; `Busy` says how much of the holder's lease is left. See
    /// [`LockerExt::try_lock_or_busy`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock).
    pub fn try_lock_or_busy(&self, key: impl IntoLockKey) -> Result<OrBusy<LockGuard>> {
        let granted = self.runtime.run("acquire", self.locker.try_lock_or_busy(key))??;
        Ok(granted.map(|guard| self.guard(guard)))
    }

    /// Acquires `key`, waiting for at most `wait`: see [`LockerExt::lock_for`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut).
    pub fn lock_for(&self, key: impl IntoLockKey, wait: Duration) -> Result<LockGuard> {
        let guard = self.runtime.run("acquire", self.locker.lock_for(key, wait))??;
        Ok(self.guard(guard))
    }

    /// Acquires `key` with `options`: see [`LockerExt::lock_with`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut) where `options` limit the wait.
    pub fn lock_with(&self, key: impl IntoLockKey, options: &LockOptions) -> Result<LockGuard> {
        let guard = self.runtime.run("acquire", self.locker.lock_with(key, options))??;
        Ok(self.guard(guard))
    }

    /// Runs `work` while holding the lock on `key`, and releases it.
    ///
    /// `work` is not interrupted when the lock is lost; it may ask the [`GuardHandle`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`Lost`](ErrorKind::Lost) if the lock was lost before the work ended.
    pub fn with_lock<T>(&self, key: impl IntoLockKey, work: impl FnOnce(GuardHandle) -> T) -> Result<T> {
        self.with_lock_options(key, &LockOptions::new(), work)
    }

    /// Runs `work` while holding the lock on `key`, acquired with `options`. Everything else is as for
    /// [`with_lock`](Self::with_lock).
    ///
    /// # Errors
    /// As for [`lock_with`](Self::lock_with), and [`Lost`](ErrorKind::Lost) if the lock was lost before the work ended.
    pub fn with_lock_options<T>(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
        work: impl FnOnce(GuardHandle) -> T,
    ) -> Result<T> {
        let guard = self.lock_with(key, options)?;
        let (key, output) = (guard.key().clone(), work(guard.handle()));
        let done = guard.loss().map_or(Ok(output), Err);
        after_work(done, &guard.release(), self.locker.capabilities().backend(), &key)
    }
}

impl<L: RwLocker> Locks<L> {
    /// Acquires `key` shared, waiting without a limit: see [`RwLockerExt::read`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock).
    pub fn read(&self, key: impl IntoLockKey) -> Result<ReadGuard> {
        self.read_with(key, &LockOptions::new())
    }

    /// Asks once for `key` in shared mode, without waiting: see [`RwLockerExt::try_read`].
    ///
    /// # Errors
    /// As for [`lock`](Self::lock).
    pub fn try_read(&self, key: impl IntoLockKey) -> Result<Option<ReadGuard>> {
        let granted = self.runtime.run("acquire", self.locker.try_read(key))??;
        Ok(granted.map(|guard| self.guard(guard)))
    }

    /// Acquires `key` shared, waiting for at most `wait`: see [`RwLockerExt::read_for`].
    ///
    /// # Errors
    /// As for [`lock_for`](Self::lock_for).
    pub fn read_for(&self, key: impl IntoLockKey, wait: Duration) -> Result<ReadGuard> {
        let guard = self.runtime.run("acquire", self.locker.read_for(key, wait))??;
        Ok(self.guard(guard))
    }

    /// Acquires `key` shared, with `options`: see [`RwLockerExt::read_with`].
    ///
    /// # Errors
    /// As for [`lock_with`](Self::lock_with).
    pub fn read_with(&self, key: impl IntoLockKey, options: &LockOptions) -> Result<ReadGuard> {
        let guard = self.runtime.run("acquire", self.locker.read_with(key, options))??;
        Ok(self.guard(guard))
    }
}

/// A guard whose methods block the calling thread.
///
/// Dropping it releases the lock and waits for the store's answer, 2 s at most; the release then goes on in the
/// background, as it does when the guard is dropped within a runtime, also if it was the last: see [`Locks`].
#[must_use = "the lock is released when the guard is dropped; bind it to a name (not `_`) for as long as you need it"]
pub struct Guard<M: GuardMode = Exclusive> {
    /// There until it is released.
    guard: Option<crate::Guard<M>>,
    runtime: Arc<Runtime>,
}

/// A blocking guard that excludes every other grant of its key.
pub type LockGuard = Guard<Exclusive>;

/// A blocking guard that excludes writers, beside any number of other readers.
pub type ReadGuard = Guard<Shared>;

impl<M: GuardMode> Guard<M> {
    /// What is locked.
    pub fn key(&self) -> &LockKey {
        self.guard().key()
    }

    /// The token for the resource: see [`Guard::fencing_token`](crate::Guard::fencing_token).
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.guard().fencing_token()
    }

    /// Whether the lease is certainly still valid: see [`Guard::is_held`](crate::Guard::is_held).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard().is_held()
    }

    /// How long the lease lasts without another renewal: see [`Guard::remaining`](crate::Guard::remaining).
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard().remaining()
    }

    /// Why the lock was lost, if it was.
    #[must_use]
    pub fn loss(&self) -> Option<LossReason> {
        self.guard().loss()
    }

    /// A handle on this guard, for code that only has to know of the lock, in this thread or another.
    pub fn handle(&self) -> GuardHandle {
        self.guard().handle()
    }

    /// Waits until the lock is lost, and for at most `wait`. `Ok(None)`: it was held all the while.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) from within a runtime.
    pub fn wait_lost(&self, wait: Duration) -> Result<Option<LossReason>> {
        let lost = self.guard().lost();
        self.runtime.run("wait for a loss", async { tokio::time::timeout(wait, lost).await.ok() })
    }

    /// Renews the lease now, in addition to the background: see [`Guard::renew`](crate::Guard::renew).
    ///
    /// # Errors
    /// As for [`Guard::renew`](crate::Guard::renew), and [`Unsupported`](ErrorKind::Unsupported) from within a runtime.
    pub fn renew(&self) -> Result<()> {
        self.runtime.run("renew", self.guard().renew())?
    }

    /// Releases the lock, and says how that ended: see [`Guard::release`](crate::Guard::release).
    ///
    /// # Errors
    /// As for [`Guard::release`](crate::Guard::release). From within a runtime it is
    /// [`Unsupported`](ErrorKind::Unsupported), and the release goes on in the background.
    pub fn release(mut self) -> Result<ReleaseOutcome> {
        let guard = self.take();
        let handle = guard.handle();
        let released = self.runtime.run("release", guard.release()).flatten();
        self.runtime.settles(handle, released.is_ok());
        released
    }

    fn take(&mut self) -> crate::Guard<M> {
        self.guard.take().expect("it is taken once, where this guard ends")
    }

    fn guard(&self) -> &crate::Guard<M> {
        self.guard.as_ref().expect("it is taken where this guard ends")
    }
}

impl LockGuard {
    /// Gives up this guard without releasing the key: see [`LockGuard::detach`](crate::LockGuard::detach).
    ///
    /// # Errors
    /// As for [`LockGuard::detach`](crate::LockGuard::detach).
    #[must_use = "nobody renews or releases the grant until it is attached"]
    pub fn detach(mut self) -> Result<DetachedLock> {
        self.take().detach()
    }

    /// Goes on as a reader: see [`LockGuard::downgrade`](crate::LockGuard::downgrade).
    ///
    /// # Errors
    /// As for [`LockGuard::downgrade`](crate::LockGuard::downgrade), and [`Unsupported`](ErrorKind::Unsupported) from
    /// within a runtime. After an error nobody holds the lock.
    pub fn downgrade(mut self, options: &LockOptions) -> Result<ReadGuard> {
        let writer = self.take();
        let handle = writer.handle();
        let reader = self.runtime.run("downgrade", writer.downgrade(options)).flatten();
        self.runtime.settles(handle, reader.is_ok());
        Ok(Guard { guard: Some(reader?), runtime: Arc::clone(&self.runtime) })
    }
}

impl<M: GuardMode> Drop for Guard<M> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            let handle = guard.handle();
            // Where it may not wait, the guard in the future is dropped, which releases it in the background.
            let released =
                self.runtime.run("release", async { tokio::time::timeout(DROP_WAIT, guard.release()).await });
            self.runtime.settles(handle, matches!(released, Ok(Ok(Ok(_)))));
        }
    }
}

impl<M: GuardMode> fmt::Debug for Guard<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("blocking::Guard").field(&self.guard).finish()
    }
}

/// A runtime on one thread, which ends when this is dropped.
#[derive(Debug)]
struct Runtime {
    handle: Handle,
    _ends: oneshot::Sender<()>,
}

impl Runtime {
    fn start() -> Result<Arc<Self>> {
        let failed = |error| Error::new(ErrorKind::Unavailable, "start a runtime for blocking calls").caused_by(error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (ends, ended) = oneshot::channel::<()>();
        let drives = move || {
            let _ = runtime.block_on(ended);
            // A name that is being looked up must not keep the thread.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("leasehold".to_owned()).spawn(drives).map_err(failed)?;
        Ok(Arc::new(Self { handle, _ends: ends }))
    }

    /// Polls `future` on this thread until it is ready, while the runtime's own thread serves its timers and
    /// connections.
    fn run<F: Future>(&self, operation: &'static str, future: F) -> Result<F::Output> {
        match Handle::try_current() {
            Err(error) if error.is_missing_context() => Ok(self.handle.block_on(future)),
            // Within a runtime, or at the end of a thread, blocking would panic.
            within => {
                // A request that the caller's runtime carried would be lost with that runtime.
                let _entered = within.is_ok().then(|| self.handle.enter());
                drop(future);
                Err(Error::new(ErrorKind::Unsupported, operation)
                    .detail("a blocking call would stop a thread of an async runtime: use the async methods there"))
            }
        }
    }

    /// Keeps the thread for a guard that ended without an answer of the store: its release would end with the thread, and
    /// the key would wait for its lease.
    fn settles(self: &Arc<Self>, guard: GuardHandle, is_settled: bool) {
        if is_settled {
            return;
        }
        let runtime = Arc::clone(self);
        self.handle.spawn(async move {
            let _ = tokio::time::timeout(RELEASE_WAIT, guard.settled()).await;
            drop(runtime);
        });
    }
}
