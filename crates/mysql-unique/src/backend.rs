use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result,
};
use leasehold_mysql::{Opened, RENEWAL_BATCH, Step};

use crate::store::Store;
use crate::{acquire, admin, release, renew};

/// The [`Backend`] behind [`MysqlUnique`](crate::MysqlUnique): each operation on a key is one statement.
#[derive(Clone, Debug)]
pub struct MysqlUniqueBackend {
    store: Store,
}

#[async_trait]
impl Backend for MysqlUniqueBackend {
    fn capabilities(&self) -> Capabilities {
        match self.store.advisory_queue {
            Some(_) => Self::claims().with(Capability::Wakeup),
            None => Self::claims(),
        }
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        acquire::try_acquire(&self.store, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        renew::renew(&self.store, renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        release::release(&self.store, grant).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        renew::take_over(&self.store, grant, new_owner, ttl).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        admin::inspect(&self.store, key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        admin::list(&self.store, prefix, after).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        admin::force_release(&self.store, key, only).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.store.advisory_queue.as_ref().map(|queue| queue as _)
    }

    fn renewal_batch(&self) -> usize {
        RENEWAL_BATCH
    }

    fn answers_within(&self) -> Duration {
        Step::LIMIT
    }

    async fn close(&self) {
        if let Some(queue) = &self.store.advisory_queue {
            queue.close().await;
        }
        self.store.sessions.close().await;
    }
}

impl MysqlUniqueBackend {
    pub(crate) const NAME: &'static str = "mysql-unique";

    pub(crate) fn new(opened: Opened) -> Self {
        Self { store: Store::new(opened) }
    }

    /// The capabilities without the advisory queue. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "exclusive only; leasehold-mysql-rw has readers")
            .without(Capability::Wakeup, "waiters poll unless the advisory queue is on")
            .without(Capability::WriterIntent, "it has no readers to hold back")
    }

    /// Deletes the rows of keys that have been free for longer than `older_than`, and answers how many.
    pub(crate) async fn gc(&self, older_than: Duration) -> Result<u64> {
        admin::gc(&self.store, older_than).await
    }
}
