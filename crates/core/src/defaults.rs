use async_trait::async_trait;

use crate::locker::through;
use crate::{
    Admin, Capabilities, Cursor, DetachedLock, FencingToken, Holders, LockGuard, LockKey, LockOptions, Locker, OrBusy,
    Page, ReadGuard, Result, RwLocker,
};

/// A locker with defaults for its requests: see [`LockerExt::with_defaults`](crate::LockerExt::with_defaults).
#[derive(Clone, Debug)]
pub struct Defaults<L> {
    locker: L,
    defaults: LockOptions,
}

impl<L> Defaults<L> {
    pub(crate) fn new(locker: L, defaults: LockOptions) -> Self {
        Self { locker, defaults }
    }

    /// The locker without the defaults.
    pub fn inner(&self) -> &L {
        &self.locker
    }

    fn filled(&self, options: &LockOptions) -> LockOptions {
        options.clone().or(&self.defaults)
    }
}

#[async_trait]
impl<L: Locker> Locker for Defaults<L> {
    fn capabilities(&self) -> Capabilities {
        self.locker.capabilities()
    }

    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
        let answer = self.locker.acquire_or_busy(key, &self.filled(options)).await?;
        Ok(answer.map(|guard| guard.with_defaults(&self.defaults)))
    }

    async fn attach(&self, grant: &DetachedLock, options: &LockOptions) -> Result<Option<LockGuard>> {
        let attached = self.locker.attach(grant, &self.filled(options)).await?;
        Ok(attached.map(|guard| guard.with_defaults(&self.defaults)))
    }
}

#[async_trait]
impl<L: RwLocker> RwLocker for Defaults<L> {
    async fn acquire_read_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<ReadGuard>> {
        self.locker.acquire_read_or_busy(key, &self.filled(options)).await
    }
}

through!([L: Admin] Admin for Defaults<L>, by locker);
