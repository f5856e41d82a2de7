use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, OwnerId, Page,
    Renewal, Result, SharedBackend,
};
use leasehold_mysql::{Opened, RENEWAL_BATCH, Step, TableName};

use crate::store::Store;
use crate::{acquire, admin, downgrade, release, renew};

/// The [`Backend`] behind [`MysqlRw`](crate::MysqlRw): the locks of one namespace in one pair of tables.
#[derive(Clone, Debug)]
pub struct MysqlRwBackend {
    store: Store,
}

#[async_trait]
impl Backend for MysqlRwBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
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

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        downgrade::downgrade(&self.store, writer, claim).await
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

    fn renewal_batch(&self) -> usize {
        RENEWAL_BATCH
    }

    fn answers_within(&self) -> Duration {
        Step::LIMIT
    }

    async fn close(&self) {
        self.store.sessions.close().await;
    }
}

impl SharedBackend for MysqlRwBackend {}

impl MysqlRwBackend {
    pub(crate) const NAME: &'static str = "mysql-rw";

    pub(crate) fn new(opened: Opened, readers: &TableName) -> Self {
        Self { store: Store::new(opened, readers) }
    }

    /// The capabilities, which are the same for every server. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::WriterIntent)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Wakeup, "MySQL has no signal of a release; waiters poll")
    }

    /// Deletes the rows of keys that have been free, and of readers that have been expired, for longer than `older_than`,
    /// and answers how many.
    pub(crate) async fn gc(&self, older_than: Duration) -> Result<u64> {
        admin::gc(&self.store, older_than).await
    }
}
