use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result, SharedBackend,
};

use crate::nodes::LIMIT;
use crate::renew::BATCH;
use crate::store::Store;
use crate::{acquire, admin, release, renew};

/// The [`Backend`] behind [`Etcd`](crate::Etcd): the locks of one namespace in one etcd.
#[derive(Clone, Debug)]
pub struct EtcdBackend {
    pub(crate) store: Store,
}

#[async_trait]
impl Backend for EtcdBackend {
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
        acquire::downgrade(&self.store, writer, claim).await
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
        Some(&self.store)
    }

    fn renewal_batch(&self) -> usize {
        BATCH
    }

    fn answers_within(&self) -> Duration {
        LIMIT
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

impl SharedBackend for EtcdBackend {}

impl EtcdBackend {
    pub(crate) const NAME: &'static str = "etcd";

    /// The capabilities, which are the same for every server. No I/O.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(Self::NAME)
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::Queue)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::WriterIntent)
            .with(Capability::ForceNotice)
            .with(Capability::Detach)
            .with(Capability::LocalHandoff)
            .without(Capability::Reentrancy, "every acquire is an owner of its own")
            .with_shortest_ttl(SHORTEST_TTL)
            .with_lease_granularity(GRANULARITY)
    }
}

/// What etcd makes of every shorter lease, unless its `--election-timeout` is above a second.
const SHORTEST_TTL: Duration = Duration::from_secs(2);

/// A lease has a second to spare; etcd counts leases in whole seconds, and looks twice a second for those that are over.
const GRANULARITY: Duration = Duration::from_secs(3);
