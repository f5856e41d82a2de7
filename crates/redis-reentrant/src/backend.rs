use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    Page, Renewal, Result, SessionId,
};
use leasehold_redis::{ScriptFunction, digest};

use crate::admin::{INSPECT, holders};
use crate::store::{Store, session_id};
use crate::{acquire, admin, release, renew};

pub(crate) const NAME: &str = "redis-reentrant";

/// The scripts that may leave together with those of other keys.
pub(crate) static FUNCTIONS: [&ScriptFunction; 2] = [&acquire::TRY_ACQUIRE, &release::RELEASE];

/// The store-level backend of a [`Session`](crate::Session): each operation is one script in Redis. Made by
/// [`RedisReentrantBuilder::backend`](crate::RedisReentrantBuilder::backend).
///
/// The owner in the store is the session; the owner id of a claim names one level of the session.
pub struct SessionBackend {
    store: Arc<Store>,
    pub(crate) id: Arc<str>,
    session: SessionId,
}

#[async_trait]
impl Backend for SessionBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        acquire::try_acquire(&self.store, &self.id, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        renew::renew(&self.store, &self.id, renewals, within).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        release::release(&self.store, &self.id, grant).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.store.redis.inspect(&INSPECT, key, &|words| holders(&self.store, words)).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.store.redis.list(&INSPECT, prefix, after, &|words| holders(&self.store, words)).await
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
}

impl SessionBackend {
    pub(crate) fn new(store: Arc<Store>, id: Arc<str>) -> Self {
        let session = session_id(&digest(&id)).unwrap_or(SessionId(0));
        Self { store, id, session }
    }

    /// What a session promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        Capabilities::new(NAME)
            .with(Capability::Lease)
            .with(Capability::Fencing)
            .with(Capability::Wakeup)
            .with(Capability::CrossProcess)
            .with(Capability::CrossHost)
            .with(Capability::ForceNotice)
            .with(Capability::Reentrancy)
            .without(Capability::Shared, "one exclusive session per key; see redis-rw for readers")
            .without(Capability::WriterIntent, "there are no readers to hold back")
            .without(Capability::Queue, "a level granted to a waiter that died would live as long as its session")
            .without(Capability::Detach, "a level belongs to its session; open a session with the same id instead")
    }
}

impl fmt::Debug for SessionBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever knows the whole id can act as the session.
        let start: String = self.id.chars().take(6).collect();
        f.debug_struct("SessionBackend")
            .field("id", &format!("{start}…"))
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
