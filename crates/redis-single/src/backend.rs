use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result,
};
use leasehold_redis::{REWRITE, Script, ScriptFunction};

use crate::store::{RENEW, Store};
use crate::{acquire, admin, release};

pub(crate) const NAME: &str = "redis-single";

/// What may leave together with that of other keys. In a batch the releases come first: who waits for them may be in it.
pub(crate) static FUNCTIONS: [&ScriptFunction; 2] = [&release::RELEASE, &acquire::TRY_ACQUIRE];

static TAKE_OVER: Script = Script::new(&[REWRITE, include_str!("lua/take_over.lua")]);

/// The store-level backend of [`RedisSingle`](crate::RedisSingle): each operation is one script in Redis. Made by
/// [`RedisSingleBuilder::backend`](crate::RedisSingleBuilder::backend).
#[derive(Debug)]
pub struct RedisSingleBackend {
    pub(crate) store: Store,
}

#[async_trait]
impl Backend for RedisSingleBackend {
    fn capabilities(&self) -> Capabilities {
        let claims = Self::claims();
        if self.store.queues {
            claims
        } else {
            claims.without(Capability::Queue, "switched off, or replicas confirm grants")
        }
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        acquire::try_acquire(&self.store, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        self.store.redis.renew(&RENEW, renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        release::release(&self.store, grant).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.store.redis.take_over(&TAKE_OVER, &RENEW, grant, new_owner, ttl).await
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
        Some(&self.store.redis)
    }

    fn answers_within(&self) -> Duration {
        self.store.redis.answers_within()
    }

    async fn close(&self) {
        self.store.redis.close().await;
    }
}

impl RedisSingleBackend {
    /// What this backend promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::Queue)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Shared, "one exclusive holder per key; see redis-rw for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
    }
}
