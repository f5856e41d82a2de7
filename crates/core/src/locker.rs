use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Capabilities, Cursor, DetachedLock, Error, ErrorKind, FencingToken, Holders, LockGuard, LockKey, LockOptions,
    OrBusy, Page, ReadGuard, Result,
};

/// A lock service: hands out at most one [`LockGuard`] per key at a time.
///
/// Object-safe, so that a program can pick its backend at run time (`Arc<dyn Locker>`). The convenient forms
/// (`lock`, `try_lock`, `with_lock`, …) are in [`LockerExt`](crate::LockerExt), which every locker has.
///
/// # What a guard means
/// While [`is_held`](crate::Guard::is_held) is true, the store has promised the key to nobody else. A program can
/// still be stopped between that check and the write that follows; only the
/// [fencing token](crate::Guard::fencing_token), compared by the resource itself, protects against that.
///
/// # Implementing
/// Backend authors implement [`Backend`](crate::Backend) and get this from [`Engine`](crate::Engine); implement it
/// by hand only for wrappers. The conformance suite (feature `conformance`) checks either.
#[async_trait]
pub trait Locker: fmt::Debug + Send + Sync {
    /// What this locker promises beyond mutual exclusion. Never does I/O.
    fn capabilities(&self) -> Capabilities;

    /// Acquires `key` exclusively, waiting as long as `options` say.
    ///
    /// `Ok(Err(busy))`: another holder kept it for the whole wait. That is never the answer to a failing store. [`Busy`](crate::Busy)
    /// says how much of the holder's lease is left, where the store knows that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockKey, LockOptions, Locker, LockerExt, Memory, Wait};
    ///
    /// let locks = Memory::new();
    /// let held = locks.lock("report").await?;
    /// match locks.acquire_or_busy(held.key(), &LockOptions::new().wait(Wait::Never)).await? {
    ///     Ok(_guard) => unreachable!("it is held"),
    ///     Err(busy) => println!("try again in {:?}", busy.remaining),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) or [`Unsupported`](ErrorKind::Unsupported) before anything is
    /// sent; [`Backend`](ErrorKind::Backend) when the store refuses for good;
    /// [`Unavailable`](ErrorKind::Unavailable) or [`Indeterminate`](ErrorKind::Indeterminate) when it could not be
    /// asked until the wait was over. While waiting, transient failures are ridden out.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in the queue and nothing else: an attempt that was already sent finishes
    /// in the background and gives back what it wins.
    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>>;

    /// Takes over a detached lock: under the token that it has, and with an owner id of its own. Of all callers that try, one
    /// gets it. `Ok(None)`: the lock is no longer held, or another caller has attached it.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) unless the backend claims
    /// [`DetachedLock`](crate::Capability::Detach); [`Indeterminate`](ErrorKind::Indeterminate) if the answer was lost: the
    /// lock may have been taken over, and is given back then, so that another try gets it or finds it gone; else as for
    /// [`acquire_or_busy`](Self::acquire_or_busy).
    ///
    /// # Cancel safety
    /// Dropping the future gives back what it may have taken over; what it has not is left to the next try.
    async fn attach(&self, grant: &DetachedLock, options: &LockOptions) -> Result<Option<LockGuard>> {
        let _ = options;
        Err(Error::new(ErrorKind::Unsupported, "attach").with_backend(self.capabilities().backend()).key(grant.key()))
    }
}

/// A lock service with readers: any number of [`ReadGuard`]s, or one [`LockGuard`], per key at a time.
///
/// As a [`Locker`] it is the writers' side.
#[async_trait]
pub trait RwLocker: Locker {
    /// Acquires `key` in shared mode, waiting as long as `options` say. Answers, errors and cancel safety are as for
    /// [`Locker::acquire_or_busy`].
    async fn acquire_read_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<ReadGuard>>;
}

/// The operator's view of a lock service.
#[async_trait]
pub trait Admin: fmt::Debug + Send + Sync {
    /// Asks the store who holds `key` now.
    async fn inspect(&self, key: &LockKey) -> Result<Holders>;

    /// One page of the held keys that start with `prefix`; start with `None` and go on with [`Page::next`].
    ///
    /// Keys that are taken or freed meanwhile may or may not appear; a key that is held all along appears once or,
    /// on stores that scan, more than once.
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page>;

    /// Frees `key` although it is held, and answers who held it.
    ///
    /// A holder that is alive is told [`ForceReleased`](crate::LossReason::ForceReleased) or
    /// [`Stolen`](crate::LossReason::Stolen) no later than at its next renewal; until then it still believes that
    /// it holds. The next grant that the store gives has a larger token all the same; a guard to which its program passes the lease
    /// meanwhile ([`LocalHandoff`](crate::LocalHandoff)) has not. A holder whose key is freed twice before its next renewal is told
    /// `Stolen`, where the store keeps word of one grant only.
    async fn force_release(&self, key: &LockKey) -> Result<Holders>;

    /// Frees `key` as [`force_release`](Self::force_release) does, if the grant with this token still holds it, and answers who
    /// that was. If another has it by now, or nobody, nothing is changed, and the answer has no holders.
    ///
    /// The store compares in the step that frees, so that nobody who was granted the key meanwhile loses it. Of several readers only
    /// the one with this token is released, with those of its program that share its lease. All tokens of one lease, before and
    /// after a local hand-off, mean that lease.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the store cannot end this grant alone: a file that several readers
    /// hold. Nothing was changed then.
    async fn force_release_grant(&self, key: &LockKey, token: FencingToken) -> Result<Holders>;
}

/// Implements a trait for a pointer, by what it points to, or for another type, by a field of it.
macro_rules! through {
    ([$($of:tt)*] Locker for $type:ty $(, by $field:ident)?) => {
        #[async_trait]
        impl<$($of)*> Locker for $type {
            fn capabilities(&self) -> Capabilities {
                through!(@ self $($field)?).capabilities()
            }

            async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
                through!(@ self $($field)?).acquire_or_busy(key, options).await
            }

            async fn attach(&self, grant: &DetachedLock, options: &LockOptions) -> Result<Option<LockGuard>> {
                through!(@ self $($field)?).attach(grant, options).await
            }
        }
    };
    ([$($of:tt)*] RwLocker for $type:ty) => {
        #[async_trait]
        impl<$($of)*> RwLocker for $type {
            async fn acquire_read_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<ReadGuard>> {
                (**self).acquire_read_or_busy(key, options).await
            }
        }
    };
    ([$($of:tt)*] Admin for $type:ty $(, by $field:ident)?) => {
        #[async_trait]
        impl<$($of)*> Admin for $type {
            async fn inspect(&self, key: &LockKey) -> Result<Holders> {
                through!(@ self $($field)?).inspect(key).await
            }

            async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
                through!(@ self $($field)?).list(prefix, after).await
            }

            async fn force_release(&self, key: &LockKey) -> Result<Holders> {
                through!(@ self $($field)?).force_release(key).await
            }

            async fn force_release_grant(&self, key: &LockKey, token: FencingToken) -> Result<Holders> {
                through!(@ self $($field)?).force_release_grant(key, token).await
            }
        }
    };
    (@ $this:ident) => {
        (**$this)
    };
    (@ $this:ident $field:ident) => {
        $this.$field
    };
}
pub(crate) use through;

through!([L: Locker + ?Sized] Locker for Arc<L>);
through!([L: RwLocker + ?Sized] RwLocker for Arc<L>);
through!([T: Admin + ?Sized] Admin for Arc<T>);
through!([L: Locker + ?Sized] Locker for &Arc<L>);
through!([L: RwLocker + ?Sized] RwLocker for &Arc<L>);
through!([T: Admin + ?Sized] Admin for &Arc<T>);
// A reference to, or a box of, a type that is `Backed` is `Backed` itself. Of the others only these: another crate may
// implement `Backed` for a reference to its own type.
through!([] Locker for &dyn Locker);
through!([] Locker for &dyn RwLocker);
through!([] RwLocker for &dyn RwLocker);
through!([] Admin for &dyn Admin);
through!([] Locker for Box<dyn Locker>);
through!([] Locker for Box<dyn RwLocker>);
through!([] RwLocker for Box<dyn RwLocker>);
through!([] Admin for Box<dyn Admin>);
through!([] Locker for &Box<dyn Locker>);
through!([] Locker for &Box<dyn RwLocker>);
through!([] RwLocker for &Box<dyn RwLocker>);
through!([] Admin for &Box<dyn Admin>);
