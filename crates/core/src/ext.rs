use std::collections::BTreeSet;
use std::time::Duration;

use crate::{
    Clock, Error, ErrorKind, FencingToken, LockGuard, LockKey, LockOptions, Locker, OrBusy, ReadGuard, Result,
    RwLocker, Wait,
};

/// The convenient forms of [`Locker::acquire`]. Every locker has them, also as `dyn Locker`.
pub trait LockerExt: Locker {
    /// Waits until the key is ours, with the default options.
    ///
    /// # Errors
    /// As for [`acquire`](Locker::acquire), and [`InvalidKey`](ErrorKind::InvalidKey).
    fn lock<K>(&self, key: K) -> impl Future<Output = Result<LockGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            granted(self.acquire_or_busy(&key, &LockOptions::new()).await?, &key, self)
        }
    }

    /// One attempt. `Ok(None)`: another holds it.
    fn try_lock<K>(&self, key: K) -> impl Future<Output = Result<Option<LockGuard>>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            self.acquire(&key, &LockOptions::new().wait(Wait::Never)).await
        }
    }

    /// Waits for at most `wait`.
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut) when another kept it all the while.
    fn lock_for<K>(&self, key: K, wait: Duration) -> impl Future<Output = Result<LockGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            granted(self.acquire_or_busy(&key, &LockOptions::new().wait(Wait::UpTo(wait))).await?, &key, self)
        }
    }

    /// With `options`; [`TimedOut`](ErrorKind::TimedOut) where they limit the wait and another kept it for as long.
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut).
    fn lock_with<K>(&self, key: K, options: &LockOptions) -> impl Future<Output = Result<LockGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            granted(self.acquire_or_busy(&key, options).await?, &key, self)
        }
    }

    /// Runs `work` under the lock and races it against the loss of the lock.
    ///
    /// `work` gets the fencing token. If the lock is lost, the work's future is dropped where it stands and the
    /// answer is [`Lost`](ErrorKind::Lost). The release at the end goes on in the background.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, Memory};
    ///
    /// let locks = Memory::new();
    /// let sum = locks.with_lock("ledger", |token| async move { token.is_some() as u32 + 1 }).await?;
    /// assert_eq!(sum, 2);
    /// # Ok(()) }
    /// ```
    fn with_lock<K, F, W>(&self, key: K, work: F) -> impl Future<Output = Result<W::Output>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
        F: FnOnce(Option<FencingToken>) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        async move {
            let guard = self.lock(key).await?;
            let done = tokio::select! {
                biased;
                reason = guard.lost() => Err(reason),
                // It may have been lost in the very poll in which the work ended.
                output = work(guard.fencing_token()) => guard.loss().map_or(Ok(output), Err),
            };
            done.map_err(|reason| {
                let lost = Error::new(ErrorKind::Lost(reason), "run under the lock");
                lost.with_backend(self.capabilities().backend()).key(guard.key())
            })
        }
    }

    /// Acquires several keys, all or none: in sorted order, so that two callers cannot block each other, and within
    /// one wait. Duplicates count once. The guards come in sorted order of their keys.
    ///
    /// `Ok(None)`: one of them was held by another for the whole wait; the others were released.
    ///
    /// # Errors
    /// As for [`acquire`](Locker::acquire); [`Lost`](ErrorKind::Lost) if an earlier one was lost while waiting for a
    /// later one. Either way none is kept.
    fn lock_all<K>(
        &self,
        keys: impl IntoIterator<Item = K> + Send,
        options: &LockOptions,
    ) -> impl Future<Output = Result<Option<Vec<LockGuard>>>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>>,
    {
        let keys: Result<BTreeSet<LockKey>> = keys.into_iter().map(|key| key.try_into().map_err(Into::into)).collect();
        async move {
            let clock = Clock::system();
            let started = clock.now();
            let mut guards = Vec::new();
            for key in keys? {
                let mut options = options.clone();
                if let Wait::UpTo(patience) = options.wait {
                    options.wait = Wait::UpTo(patience.saturating_sub(clock.now().since(started)));
                }
                match self.acquire(&key, &options).await? {
                    Some(guard) => guards.push(guard),
                    None => return Ok(None),
                }
            }
            match guards.iter().find_map(|guard| Some((guard.loss()?, guard))) {
                Some((reason, guard)) => Err(Error::new(ErrorKind::Lost(reason), "acquire all")
                    .with_backend(self.capabilities().backend())
                    .key(guard.key())),
                None => Ok(Some(guards)),
            }
        }
    }
}

impl<L: Locker + ?Sized> LockerExt for L {}

/// The convenient forms of [`RwLocker::acquire_read`], and those of the write side under names that read well
/// beside them.
pub trait RwLockerExt: RwLocker {
    /// Waits until the key is ours to read.
    ///
    /// # Errors
    /// As for [`LockerExt::lock`].
    fn read<K>(&self, key: K) -> impl Future<Output = Result<ReadGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            granted(self.acquire_read_or_busy(&key, &LockOptions::new()).await?, &key, self)
        }
    }

    /// One attempt to read. `Ok(None)`: a writer holds it, or waits for it.
    fn try_read<K>(&self, key: K) -> impl Future<Output = Result<Option<ReadGuard>>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            self.acquire_read(&key, &LockOptions::new().wait(Wait::Never)).await
        }
    }

    /// Waits for at most `wait` to read.
    ///
    /// # Errors
    /// As for [`LockerExt::lock_for`].
    fn read_for<K>(&self, key: K, wait: Duration) -> impl Future<Output = Result<ReadGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        async move {
            let key = key.try_into().map_err(Into::into)?;
            granted(self.acquire_read_or_busy(&key, &LockOptions::new().wait(Wait::UpTo(wait))).await?, &key, self)
        }
    }

    /// [`lock`](LockerExt::lock), beside [`read`](Self::read).
    fn write<K>(&self, key: K) -> impl Future<Output = Result<LockGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        self.lock(key)
    }

    /// [`try_lock`](LockerExt::try_lock), beside [`try_read`](Self::try_read).
    fn try_write<K>(&self, key: K) -> impl Future<Output = Result<Option<LockGuard>>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        self.try_lock(key)
    }

    /// [`lock_for`](LockerExt::lock_for), beside [`read_for`](Self::read_for).
    fn write_for<K>(&self, key: K, wait: Duration) -> impl Future<Output = Result<LockGuard>> + Send
    where
        K: TryInto<LockKey, Error: Into<Error>> + Send,
    {
        self.lock_for(key, wait)
    }
}

impl<L: RwLocker + ?Sized> RwLockerExt for L {}

fn granted<G>(grant: OrBusy<G>, key: &LockKey, locker: &(impl Locker + ?Sized)) -> Result<G> {
    grant.map_err(|busy| {
        let error = Error::new(ErrorKind::TimedOut, "acquire").with_backend(locker.capabilities().backend()).key(key);
        match busy.remaining {
            Some(left) => {
                error.detail(format!("the holder's lease lasts for another {left:.1?}, unless it is prolonged"))
            }
            None => error,
        }
    })
}
