use std::time::Duration;

use crate::ext::{granted, under};
use crate::{
    GuardHandle, IntoLockKey, LockGuard, LockKey, LockOptions, LockerExt, OrBusy, ReadGuard, Result, RwLocker, Wait,
};

/// The convenient forms of [`RwLocker::acquire_read_or_busy`], and those of the writers' side under names that read well
/// beside them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use leasehold_core::{Memory, RwLockerExt};
///
/// let locks = Memory::new();
/// let (one, two) = (locks.read("index").await?, locks.read("index").await?);
/// assert!(locks.try_write("index").await?.is_none());
/// drop((one, two));
/// locks.with_write("index", |guard| async move { println!("{:?}", guard.fencing_token()) }).await?;
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// As for the methods of [`LockerExt`].
pub trait RwLockerExt: RwLocker {
    /// Acquires `key` in shared mode, waiting as long as `options` say. Answers and errors are as for [`LockerExt::acquire`].
    fn acquire_read(
        &self,
        key: &LockKey,
        options: &LockOptions,
    ) -> impl Future<Output = Result<Option<ReadGuard>>> + Send {
        async move { Ok(self.acquire_read_or_busy(key, options).await?.ok()) }
    }

    /// Acquires `key` shared, with the default options: waits without a limit.
    ///
    /// # Errors
    /// As for [`LockerExt::lock`].
    fn read(&self, key: impl IntoLockKey) -> impl Future<Output = Result<ReadGuard>> + Send {
        async move { self.read_with(key, &LockOptions::new()).await }
    }

    /// Asks once for `key` in shared mode, without waiting. `Ok(None)`: a writer holds it, or waits for it.
    ///
    /// [`try_read_or_busy`](Self::try_read_or_busy) also says how much of the writer's lease is left.
    ///
    /// # Errors
    /// As for [`LockerExt::try_lock`].
    fn try_read(&self, key: impl IntoLockKey) -> impl Future<Output = Result<Option<ReadGuard>>> + Send {
        async move { Ok(self.try_read_or_busy(key).await?.ok()) }
    }

    /// Asks once for `key` in shared mode, without waiting; the answer `Busy` says how much of the writer's lease is
    /// left, where the store knows that.
    ///
    /// # Errors
    /// As for [`LockerExt::try_lock`].
    fn try_read_or_busy(&self, key: impl IntoLockKey) -> impl Future<Output = Result<OrBusy<ReadGuard>>> + Send {
        async move {
            let key = key.into_lock_key()?;
            self.acquire_read_or_busy(&key, &LockOptions::new().wait(Wait::Never)).await
        }
    }

    /// Acquires `key` shared, waiting for at most `wait`.
    ///
    /// # Errors
    /// As for [`LockerExt::lock_for`].
    fn read_for(&self, key: impl IntoLockKey, wait: Duration) -> impl Future<Output = Result<ReadGuard>> + Send {
        async move { self.read_with(key, &LockOptions::new().wait(Wait::UpTo(wait))).await }
    }

    /// Acquires `key` shared, with `options`.
    ///
    /// # Errors
    /// As for [`LockerExt::lock_with`].
    fn read_with(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
    ) -> impl Future<Output = Result<ReadGuard>> + Send {
        async move {
            let key = key.into_lock_key()?;
            granted(self.acquire_read_or_busy(&key, options).await?, &key, self)
        }
    }

    /// Runs `work` while holding `key` shared, with the default options. Everything else is as for
    /// [`LockerExt::with_lock`].
    ///
    /// # Errors
    /// As for [`LockerExt::with_lock`].
    fn with_read<F, W>(&self, key: impl IntoLockKey, work: F) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        async move { under(self.read(key).await?, self.capabilities().backend(), work).await }
    }

    /// Runs `work` while holding `key` shared, acquired with `options`. Everything else is as for
    /// [`LockerExt::with_lock_options`].
    ///
    /// # Errors
    /// As for [`LockerExt::with_lock_options`].
    fn with_read_options<F, W>(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
        work: F,
    ) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        async move { under(self.read_with(key, options).await?, self.capabilities().backend(), work).await }
    }

    /// [`LockerExt::lock`] under a name that stands beside [`read`](Self::read).
    fn write(&self, key: impl IntoLockKey) -> impl Future<Output = Result<LockGuard>> + Send {
        self.lock(key)
    }

    /// [`LockerExt::try_lock`] under a name that stands beside [`try_read`](Self::try_read).
    fn try_write(&self, key: impl IntoLockKey) -> impl Future<Output = Result<Option<LockGuard>>> + Send {
        self.try_lock(key)
    }

    /// [`LockerExt::lock_for`] under a name that stands beside [`read_for`](Self::read_for).
    fn write_for(&self, key: impl IntoLockKey, wait: Duration) -> impl Future<Output = Result<LockGuard>> + Send {
        self.lock_for(key, wait)
    }

    /// [`LockerExt::lock_with`] under a name that stands beside [`read_with`](Self::read_with).
    fn write_with(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
    ) -> impl Future<Output = Result<LockGuard>> + Send {
        self.lock_with(key, options)
    }

    /// [`LockerExt::with_lock`] under a name that stands beside [`with_read`](Self::with_read).
    fn with_write<F, W>(&self, key: impl IntoLockKey, work: F) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        self.with_lock(key, work)
    }

    /// [`LockerExt::with_lock_options`] under a name that stands beside
    /// [`with_read_options`](Self::with_read_options).
    fn with_write_options<F, W>(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
        work: F,
    ) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        self.with_lock_options(key, options, work)
    }
}

impl<L: RwLocker + ?Sized> RwLockerExt for L {}
