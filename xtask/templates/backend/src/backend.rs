use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Page, Renewal,
    Result,
};

use crate::store::Store;
use crate::{acquire, admin, release, renew};

/// The [`Backend`] behind [`NewStore`](crate::NewStore): each operation on a key is one atomic step of the store.
#[derive(Clone, Debug)]
pub struct NewStoreBackend {
    store: Store,
}

#[async_trait]
impl Backend for NewStoreBackend {
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

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        admin::inspect(&self.store, key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        admin::list(&self.store, prefix, after).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        admin::force_release(&self.store, key, only).await
    }

    fn answers_within(&self) -> Duration {
        Store::ANSWERS_WITHIN
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

impl NewStoreBackend {
    pub(crate) const NAME: &'static str = "new-store";

    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// What the suite checks, and the reason for each thing that it does not. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::LocalHandoff)
            .without(Capability::ForceNotice, "a forced release leaves no mark for the holder")
            .without(Capability::Detach, "a grant keeps its owner")
            .without(Capability::Shared, "exclusive only")
            .without(Capability::Wakeup, "waiters poll")
            .without(Capability::Queue, "waiters of several processes are in no order")
            .without(Capability::WriterIntent, "it has no readers to hold back")
            .without(Capability::Reentrancy, "every acquire is an owner of its own")
    }
}
