use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result, SharedBackend,
};
use leasehold_redis::{NEXT_EPOCH, PROLONG, Script, ScriptFunction};

use crate::admin::{INSPECT, holders};
use crate::store::{HOLDERS_LUA, RENEW, Store};
use crate::{acquire, admin, release};

pub(crate) const NAME: &str = "redis-rw";

/// What may leave together with that of other keys. In a batch the releases come first: who waits for them may be in it.
pub(crate) static FUNCTIONS: [&ScriptFunction; 2] = [&release::RELEASE, &acquire::TRY_ACQUIRE];

static TAKE_OVER: Script = Script::new(&[NEXT_EPOCH, PROLONG, HOLDERS_LUA, include_str!("lua/take_over.lua")]);

/// The store-level backend of [`RedisRw`](crate::RedisRw): each operation is one script in Redis. Made by
/// [`RedisRwBuilder::backend`](crate::RedisRwBuilder::backend).
#[derive(Debug)]
pub struct RedisRwBackend {
    pub(crate) store: Store,
}

#[async_trait]
impl Backend for RedisRwBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        acquire::try_acquire(&self.store, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        self.store.renew(&RENEW, renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        release::release(&self.store, grant).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.store.take_over(&TAKE_OVER, &RENEW, grant, new_owner, ttl).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        acquire::downgrade(&self.store, writer, claim).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.store.inspect_queued(&INSPECT, key, &|words| holders(&self.store, words)).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.store.list_queued(&INSPECT, prefix, after, &|words| holders(&self.store, words)).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        admin::force_release(&self.store, key, only).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        Some(&self.store)
    }

    fn answers_within(&self) -> Duration {
        self.store.answers_within()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

impl SharedBackend for RedisRwBackend {}

impl RedisRwBackend {
    /// What this backend promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        Capabilities::new(NAME)
            .with(Capability::Shared)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::Queue)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::WriterIntent)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .with(Capability::Detach)
            .without(Capability::Reentrancy, "every acquire is an owner of its own; see redis-reentrant")
    }
}
