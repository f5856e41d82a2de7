use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, select_all};

use crate::patience::Patience;
use crate::{
    Defaults, Error, ErrorKind, Guard, GuardHandle, GuardMode, LockGuard, LockKey, LockOptions, Locker, LossReason,
    OrBusy, ReleaseOutcome, Result, Wait,
};

/// What a key can be given as: a `&str`, a `String`, a [`LockKey`] or a `&LockKey`, and whatever else becomes one by
/// `TryInto`.
pub trait IntoLockKey: Send {
    /// The key.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidKey`], as for [`LockKey::new`].
    fn into_lock_key(self) -> Result<LockKey>;
}

impl<K: TryInto<LockKey, Error: Into<Error>> + Send> IntoLockKey for K {
    fn into_lock_key(self) -> Result<LockKey> {
        self.try_into().map_err(Into::into)
    }
}

/// The convenient forms of [`Locker::acquire_or_busy`]. Every locker has them, also as `dyn Locker`.
///
/// What tries answers an `Option`: `None`, another holder has the key. What waits answers a guard, or the error
/// [`TimedOut`](ErrorKind::TimedOut). What ends in `_or_busy` answers [`OrBusy`], which says how much of the holder's lease is left.
///
/// A key is given as a `&str`, a `String`, a [`LockKey`] or a `&LockKey`.
///
/// # Cancel safety
/// Dropping the future of any of these methods before it is ready leaves nothing behind: the caller loses its place in
/// the queue, and what it took meanwhile is released in the background.
pub trait LockerExt: Locker {
    /// Acquires `key`, waiting as long as `options` say. `Ok(None)`: another holder kept it for the whole wait.
    ///
    /// # Errors
    /// As for [`acquire_or_busy`](Locker::acquire_or_busy).
    fn acquire(&self, key: &LockKey, options: &LockOptions) -> impl Future<Output = Result<Option<LockGuard>>> + Send {
        async move { Ok(self.acquire_or_busy(key, options).await?.ok()) }
    }

    /// Acquires `key` with the default options: waits without a limit.
    ///
    /// # Errors
    /// As for [`acquire_or_busy`](Locker::acquire_or_busy), and [`InvalidKey`](ErrorKind::InvalidKey).
    fn lock(&self, key: impl IntoLockKey) -> impl Future<Output = Result<LockGuard>> + Send {
        async move { self.lock_with(key, &LockOptions::new()).await }
    }

    /// Asks once for `key`, without waiting. `Ok(None)`: another holder has it.
    ///
    /// [`try_lock_or_busy`](Self::try_lock_or_busy) also says how much of that holder's lease is left.
    ///
    /// # Errors
    /// As for [`acquire_or_busy`](Locker::acquire_or_busy), and [`InvalidKey`](ErrorKind::InvalidKey).
    fn try_lock(&self, key: impl IntoLockKey) -> impl Future<Output = Result<Option<LockGuard>>> + Send {
        async move { Ok(self.try_lock_or_busy(key).await?.ok()) }
    }

    /// Asks once for `key`, without waiting; the answer `Busy` says how much of the holder's lease is left, where the
    /// store knows that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, Memory};
    ///
    /// let locks = Memory::new();
    /// let _held = locks.lock("report").await?;
    /// match locks.try_lock_or_busy("report").await? {
    ///     Ok(_guard) => unreachable!("it is held"),
    ///     Err(busy) => println!("try again in {:?}", busy.remaining),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`try_lock`](Self::try_lock).
    fn try_lock_or_busy(&self, key: impl IntoLockKey) -> impl Future<Output = Result<OrBusy<LockGuard>>> + Send {
        async move {
            let key = key.into_lock_key()?;
            self.acquire_or_busy(&key, &LockOptions::new().wait(Wait::Never)).await
        }
    }

    /// Acquires `key`, waiting for at most `wait`.
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut) when another holder kept the key for the whole
    /// wait.
    fn lock_for(&self, key: impl IntoLockKey, wait: Duration) -> impl Future<Output = Result<LockGuard>> + Send {
        async move { self.lock_with(key, &LockOptions::new().wait(Wait::UpTo(wait))).await }
    }

    /// Acquires `key` with `options`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use std::time::Duration;
    /// use leasehold_core::{LockOptions, LockerExt, Memory, Wait};
    ///
    /// let locks = Memory::new();
    /// let options = LockOptions::new().ttl(Duration::from_secs(10)).wait(Wait::UpTo(Duration::from_secs(2)));
    /// let guard = locks.lock_with("report", &options).await?;
    /// # drop(guard);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`TimedOut`](ErrorKind::TimedOut) when `options` limit the wait and another holder
    /// kept the key for that long.
    fn lock_with(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
    ) -> impl Future<Output = Result<LockGuard>> + Send {
        async move {
            let key = key.into_lock_key()?;
            granted(self.acquire_or_busy(&key, options).await?, &key, self)
        }
    }

    /// Runs `work` while holding the lock on `key`, with the default options.
    ///
    /// `work` gets a [`GuardHandle`], which knows the fencing token and tells whether the lock is still held. If the lock
    /// is lost, the future of `work` is dropped at its next `await` and the answer is [`Lost`](ErrorKind::Lost). When the
    /// work has ended, the lock is released before the answer comes; a store that gives no answer to that is waited for no longer
    /// than for one request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, Memory};
    ///
    /// let locks = Memory::new();
    /// let sum = locks.with_lock("ledger", |guard| async move {
    ///     assert!(guard.is_held());
    ///     println!("writes go with token {:?}", guard.fencing_token());
    ///     40 + 2
    /// });
    /// assert_eq!(sum.await?, 42);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`lock`](Self::lock), and [`Lost`](ErrorKind::Lost) if the lock was lost before the work ended.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock in the background.
    fn with_lock<F, W>(&self, key: impl IntoLockKey, work: F) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        async move { under(self.lock(key).await?, self.capabilities().backend(), work).await }
    }

    /// Runs `work` while holding the lock on `key`, acquired with `options`. Everything else is as for
    /// [`with_lock`](Self::with_lock).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use std::time::Duration;
    /// use leasehold_core::{LockOptions, LockerExt, Memory, Wait};
    ///
    /// let options = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(2))).reason("nightly report");
    /// let locks = Memory::new();
    /// let token = locks.with_lock_options("report", &options, |guard| async move { guard.fencing_token() }).await?;
    /// assert!(token.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`lock_with`](Self::lock_with), and [`Lost`](ErrorKind::Lost) if the lock was lost before the work ended.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock in the background.
    fn with_lock_options<F, W>(
        &self,
        key: impl IntoLockKey,
        options: &LockOptions,
        work: F,
    ) -> impl Future<Output = Result<W::Output>> + Send
    where
        F: FnOnce(GuardHandle) -> W + Send,
        W: Future<Output: Send> + Send,
    {
        async move { under(self.lock_with(key, options).await?, self.capabilities().backend(), work).await }
    }

    /// This locker with other defaults: `defaults` count for whatever a request does not choose, such as its ttl, wait
    /// or label. A default wait limits [`lock`](Self::lock), which then may fail with
    /// [`TimedOut`](ErrorKind::TimedOut), and counts for each key of [`lock_all`](Self::lock_all).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use leasehold_core::{Admin, LockOptions, Locker, LockerExt, Memory, Wait};
    ///
    /// let defaults = LockOptions::new().ttl(Duration::from_secs(10)).wait(Wait::UpTo(Duration::from_secs(2))).label("billing");
    /// let locks = Memory::new().with_defaults(defaults);
    /// let guard = locks.lock("invoice/42").await?;
    /// let holders = locks.inspect(guard.key()).await?.holders;
    /// assert_eq!(holders[0].label.as_deref(), Some("billing"));
    ///
    /// let locks: Arc<dyn Locker> = Arc::new(locks);
    /// # Ok(()) }
    /// ```
    fn with_defaults(self, defaults: LockOptions) -> Defaults<Self>
    where
        Self: Sized,
    {
        Defaults::new(self, defaults)
    }

    /// Acquires several keys, all or none, within one wait. Duplicates count once. The guards come in sorted order of their keys.
    ///
    /// All keys are asked for at once. Those that another holds are then waited for one after the other, in sorted order and
    /// with nothing kept of what comes behind, so that two callers cannot block each other.
    ///
    /// `Ok(None)`: not all of the keys could be had within the wait; those that could were released.
    ///
    /// # Errors
    /// As for [`acquire_or_busy`](Locker::acquire_or_busy); [`Lost`](ErrorKind::Lost) as soon as a key is lost while another is waited for. After
    /// an error none is kept.
    fn lock_all(
        &self,
        keys: impl IntoIterator<Item = impl IntoLockKey> + Send,
        options: &LockOptions,
    ) -> impl Future<Output = Result<Option<Vec<LockGuard>>>> + Send {
        let keys: Result<BTreeSet<LockKey>> = keys.into_iter().map(IntoLockKey::into_lock_key).collect();
        async move {
            let keys: Vec<LockKey> = keys?.into_iter().collect();
            let (patience, once) = (Patience::of(options), options.clone().wait(Wait::Never));
            let waits = patience.left() != Wait::Never;
            let (mut guards, mut unasked) = (Vec::with_capacity(keys.len()), None);
            let at_once = async { Ok(join_all(keys.iter().map(|key| self.acquire(key, &once))).await) };
            let unanswered =
                || Error::new(ErrorKind::Indeterminate, "acquire all").with_backend(self.capabilities().backend());
            for answer in patience.within(unanswered, at_once).await? {
                match answer {
                    Ok(Some(guard)) => guards.push(guard),
                    Err(error) if !waits || !error.is_transient() => return Err(error),
                    // What comes behind it is released: it would be kept while this one is waited for.
                    Ok(None) => break,
                    Err(error) => {
                        unasked = Some(error);
                        break;
                    }
                }
            }
            while waits && guards.len() < keys.len() {
                let wait = patience.left();
                if wait == Wait::Never {
                    return unasked.map_or(Ok(None), Err);
                }
                let options = options.clone().wait(wait);
                let next = tokio::select! {
                    biased;
                    (reason, key) = first_lost(&guards) => return Err(lost(reason, &key, self)),
                    next = self.acquire(&keys[guards.len()], &options) => next?,
                };
                let Some(guard) = next else { return Ok(None) };
                guards.push(guard);
                unasked = None;
            }
            match guards.iter().find_map(|guard| Some((guard.loss()?, guard))) {
                Some((reason, guard)) => Err(lost(reason, guard.key(), self)),
                None => Ok((guards.len() == keys.len()).then_some(guards)),
            }
        }
    }
}

/// Resolves when one of the guards is lost.
async fn first_lost(guards: &[LockGuard]) -> (LossReason, LockKey) {
    if guards.is_empty() {
        return std::future::pending().await;
    }
    let lost = |guard: &LockGuard| {
        let key = guard.key().clone();
        guard.lost().map(|reason| (reason, key)).boxed()
    };
    select_all(guards.iter().map(lost)).await.0
}

fn lost(reason: LossReason, key: &LockKey, locker: &(impl Locker + ?Sized)) -> Error {
    Error::new(ErrorKind::Lost(reason), "acquire all").with_backend(locker.capabilities().backend()).key(key)
}

impl<L: Locker + ?Sized> LockerExt for L {}

/// The guard of `grant`, or the error of a wait that timed out.
pub(crate) fn granted<G>(grant: OrBusy<G>, key: &LockKey, locker: &(impl Locker + ?Sized)) -> Result<G> {
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

/// Runs `work` until it ends or the guard is lost, whichever comes first. After the work the key is free: a program may end with
/// this call, and nothing in the background outlives it.
pub(crate) async fn under<M: GuardMode, W: Future>(
    guard: Guard<M>,
    backend: &'static str,
    work: impl FnOnce(GuardHandle) -> W,
) -> Result<W::Output> {
    let (key, lost) = (guard.key().clone(), guard.lost());
    let done = tokio::select! {
        biased;
        reason = lost => Err(reason),
        // It may have been lost in the very poll in which the work ended.
        output = work(guard.handle()) => guard.loss().map_or(Ok(output), Err),
    };
    let handle = guard.handle();
    let released = guard.release().await;
    if matches!(released, Ok(ReleaseOutcome::AlreadyLost(_))) {
        // What it lost may be given back in the background, with which the program would end.
        let _ = tokio::time::timeout(RELEASED_WITHIN, handle.settled()).await;
    }
    after_work(done, &released, backend, &key)
}

/// How long a form that takes a closure waits for the release of what was lost under it.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);

/// What became of work under a lock, and of the release behind it.
pub(crate) fn after_work<T>(
    done: Result<T, LossReason>,
    released: &Result<ReleaseOutcome>,
    backend: &'static str,
    key: &LockKey,
) -> Result<T> {
    let kept = done.and_then(|output| match released {
        Ok(ReleaseOutcome::AlreadyLost(reason)) => Err(*reason),
        // A release without an answer is repeated, and the lease ends by itself: what the work did, it did under the lock.
        Ok(ReleaseOutcome::Released) | Err(_) => Ok(output),
    });
    kept.map_err(|reason| Error::new(ErrorKind::Lost(reason), "run under the lock").with_backend(backend).key(key))
}
