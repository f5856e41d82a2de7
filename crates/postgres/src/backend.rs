use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result, SharedBackend,
};

use crate::sessions::LIMIT;
use crate::store::Store;
use crate::{admin, renew};

/// The [`Backend`] behind [`Postgres`](crate::Postgres): the locks of one namespace in one schema.
#[derive(Clone, Debug)]
pub struct PostgresBackend {
    pub(crate) store: Store,
}

#[async_trait]
impl Backend for PostgresBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.store.claims.run((self.store.name_of(&claim.key), claim.clone())).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        renew::renew(&self.store, renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.store.releases.run((self.store.name_of(&grant.key), grant.owner)).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        renew::take_over(&self.store, grant, new_owner, ttl).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        renew::downgrade(&self.store, writer, claim).await
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
        self.store.subscriptions.as_ref().map(|subscriptions| subscriptions as _)
    }

    fn answers_within(&self) -> Duration {
        LIMIT
    }

    async fn close(&self) {
        self.store.sessions.close();
    }
}

impl SharedBackend for PostgresBackend {}

impl PostgresBackend {
    pub(crate) const NAME: &'static str = "postgres";

    /// The capabilities, which are the same for every server. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::WriterIntent)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Queue, "a release wakes all who wait, and the first to ask again is granted")
            .without(Capability::Reentrancy, "every acquire is an owner of its own")
    }
}
