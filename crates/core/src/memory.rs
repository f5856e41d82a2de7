use std::time::Duration;

use crate::memory_backend::MemoryBackend;
use crate::{Backed, Clock, Engine, EngineOptions, ErrorKind, LockKey};

/// Locks in the memory of this process: for tests, for examples, and as the reference of what a backend does.
///
/// Clones and [`contender`](Self::contender)s share one store; a contender is an engine of its own and so stands for
/// another process.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use leasehold_core::{LockerExt, Memory};
///
/// let here = Memory::new();
/// let there = here.contender();
/// let guard = here.lock("k").await?;
/// assert!(there.try_lock("k").await?.is_none());
/// guard.release().await?;
/// assert!(there.try_lock("k").await?.is_some());
/// # Ok(()) }
/// ```
///
/// # Paused time
/// On a clock that follows tokio's, waits and leases of hours take no time in a test that pauses it:
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::{Clock, ErrorKind, LockOptions, LockerExt, LossReason, Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// tokio::time::pause();
/// let locks = Memory::with_clock(Clock::tokio());
/// let held = locks.lock_with("k", &LockOptions::new().renew(false)).await?;
/// let refused = locks.lock_for("k", Duration::from_secs(10)).await.unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::TimedOut);
/// tokio::time::sleep(Duration::from_secs(60)).await;
/// assert_eq!(held.loss(), Some(LossReason::Expired));
/// # Ok(()) }
/// ```
///
/// # Failures
/// [`fail_next`](Self::fail_next), [`silent_for`](Self::silent_for) and [`forget`](Self::forget) make the store fail, for
/// all clones and contenders, so that a program can test what it does then. A forced release is
/// [`force_release`](crate::Admin::force_release).
#[derive(Clone, Debug)]
pub struct Memory {
    engine: Engine<MemoryBackend>,
}

impl Memory {
    /// A new, empty store.
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// A new, empty store on a clock that the caller can move, or that follows tokio's: see the
    /// [example](Self#paused-time).
    pub fn with_clock(clock: Clock) -> Self {
        MemoryBackend::new(clock).into()
    }

    /// Another locker on the same store, with an engine of its own, as another process would have it.
    #[must_use]
    pub fn contender(&self) -> Self {
        self.engine.backend().clone().into()
    }

    /// Closes the locker: see [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }

    /// Makes the next `operations` of the store fail with `kind`; zero calls that off.
    ///
    /// An operation is each request to the store: to acquire, renew, release, attach, downgrade, inspect, list or release
    /// by force. With [`Indeterminate`](ErrorKind::Indeterminate) it is carried out and its answer is lost, with any other
    /// kind it is not carried out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{ErrorKind, LockerExt, Memory};
    ///
    /// let locks = Memory::new();
    /// locks.fail_next(1, ErrorKind::Unavailable);
    /// assert_eq!(locks.try_lock("k").await.unwrap_err().kind(), ErrorKind::Unavailable);
    /// assert!(locks.try_lock("k").await?.is_some());
    ///
    /// // Who waits is not told of failures that pass.
    /// locks.fail_next(3, ErrorKind::Unavailable);
    /// let guard = locks.lock("k").await?;
    /// # drop(guard);
    /// # Ok(()) }
    /// ```
    pub fn fail_next(&self, operations: usize, kind: ErrorKind) {
        self.engine.backend().fail_next(operations, kind);
    }

    /// Makes the store silent for `time` on its clock: an operation that begins meanwhile is not carried out, gets no
    /// answer, and fails with [`Indeterminate`](ErrorKind::Indeterminate) after a second or when the silence ends.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use std::time::Duration;
    /// use leasehold_core::{Clock, LockerExt, LossReason, Memory};
    ///
    /// tokio::time::pause();
    /// let locks = Memory::with_clock(Clock::tokio());
    /// let guard = locks.lock("k").await?;
    /// locks.silent_for(Duration::from_secs(600));
    /// assert_eq!(guard.lost().await, LossReason::Unreachable);
    /// # Ok(()) }
    /// ```
    pub fn silent_for(&self, time: Duration) {
        self.engine.backend().silent_for(time);
    }

    /// Makes the store forget who holds `key`, as a store does that restarts without its data. The holder learns of it
    /// with its next renewal, as [`Stolen`](crate::LossReason::Stolen).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, LossReason, Memory};
    ///
    /// let locks = Memory::new();
    /// let guard = locks.lock("k").await?;
    /// locks.forget(guard.key());
    /// assert!(guard.is_held(), "nobody has told it yet");
    /// assert!(guard.renew().await.is_err());
    /// assert_eq!(guard.loss(), Some(LossReason::Stolen));
    /// # Ok(()) }
    /// ```
    pub fn forget(&self, key: &LockKey) {
        self.engine.backend().forget(key);
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl From<MemoryBackend> for Memory {
    fn from(backend: MemoryBackend) -> Self {
        let clock = backend.clock().clone();
        Self { engine: Engine::with(backend, EngineOptions::new().clock(clock)) }
    }
}

impl Backed for Memory {
    type Backend = MemoryBackend;
    fn engine(&self) -> &Engine<MemoryBackend> {
        &self.engine
    }
}
