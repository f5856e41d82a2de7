use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Notifications,
    OwnerId, Page, Renewal, Result,
};
use leasehold_mysql::{RENEWAL_BATCH, Step};

use crate::admin;
use crate::store::Store;

/// The [`Backend`] behind [`MysqlUnique`](crate::MysqlUnique): each operation on a key is one statement.
#[derive(Clone, Debug)]
pub struct MysqlUniqueBackend {
    pub(crate) store: Store,
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
        let Store { advisory_queue, claims, namespace, .. } = &self.store;
        if let Some(time) = advisory_queue.as_ref().and_then(|queue| queue.defer(claim)) {
            return Ok(Attempt::Busy { retry_in: Some(time) });
        }
        let attempt = claims.run((namespace.name_of(&claim.key), claim.clone())).await?;
        if let Some(queue) = advisory_queue {
            queue.claimed(claim, attempt);
        }
        Ok(attempt)
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let Store { advisory_queue, sessions, statements, namespace, .. } = &self.store;
        let lease = |renewal: &Renewal| (namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl);
        let answers = statements.leases().renew(sessions, renewals.iter().map(lease).collect(), within).await;
        if let Some(queue) = advisory_queue {
            renewals.iter().zip(&answers).for_each(|(renewal, answer)| queue.renewed(renewal, answer));
        }
        answers
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let released = self.store.releases.run((self.store.namespace.name_of(&grant.key), grant.owner)).await;
        if let (Some(queue), Ok(_)) = (&self.store.advisory_queue, &released) {
            queue.released(grant).await;
        }
        released
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let Store { sessions, statements, namespace, .. } = &self.store;
        statements.leases().take_over(sessions, namespace.name_of(&grant.key), grant, new_owner, ttl).await
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
}
