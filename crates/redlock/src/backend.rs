use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result,
};

use crate::node::NAME;
use crate::notifications::QuorumNotifications;
use crate::store::Store;
use crate::upkeep::Upkeep;
use crate::{acquire, admin, release, renew};

/// The store-level backend of [`Redlock`](crate::Redlock): a majority of the nodes decides each operation. Made by
/// [`RedlockBuilder::backend`](crate::RedlockBuilder::backend).
#[derive(Debug)]
pub struct RedlockBackend {
    pub(crate) store: Store,
    notifications: QuorumNotifications,
    upkeep: Upkeep,
}

#[async_trait]
impl Backend for RedlockBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims(self.store.fencing)
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
        Some(&self.notifications)
    }

    fn answers_within(&self) -> Duration {
        self.store.command_timeout
    }

    async fn close(&self) {
        // The other half is for the connections.
        self.store.background.finish(self.answers_within() / 4).await;
        self.store.pending_releases.finish(self.answers_within() / 4).await;
        self.upkeep.abort();
        join_all(self.store.nodes.all().iter().map(|node| node.close())).await;
    }
}

impl RedlockBackend {
    pub(crate) fn new(store: Store, auto_repair: bool) -> Self {
        let notifications = QuorumNotifications(Arc::clone(&store.nodes));
        let upkeep = Upkeep::spawn(&store, auto_repair);
        Self { store, notifications, upkeep }
    }

    /// What this backend promises beyond mutual exclusion, before anything is connected.
    pub(crate) fn claims(fencing: bool) -> Capabilities {
        let capabilities = Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Wakeup)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "one exclusive holder per key; see mysql-rw or file for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
            .without(Capability::Reentrancy, "a locker contends with itself; see redis-reentrant")
            .with_lease_granularity(LAST_NODE);
        if fencing {
            capabilities.with(Capability::Fencing)
        } else {
            capabilities.without(Capability::Fencing, "switched off")
        }
    }
}

/// The node that gets a request last ends the lease last.
const LAST_NODE: Duration = Duration::from_millis(50);
