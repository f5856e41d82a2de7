use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Mode, OwnerId,
    Page, Renewal, Result, SharedBackend,
};
use leasehold_mysql::{RENEWAL_BATCH, Step};

use crate::admin;
use crate::readers::{downgrade, release_reader, try_acquire_reader};
use crate::store::Store;

/// The [`Backend`] behind [`MysqlRw`](crate::MysqlRw): the locks of one namespace in one pair of tables.
#[derive(Clone, Debug)]
pub struct MysqlRwBackend {
    pub(crate) store: Store,
}

#[async_trait]
impl Backend for MysqlRwBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        match claim.mode {
            Mode::Exclusive => self.store.claims.run((self.store.namespace.name_of(&claim.key), claim.clone())).await,
            Mode::Shared => try_acquire_reader(&self.store, claim).await,
        }
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let Store { sessions, statements, namespace, .. } = &self.store;
        let is_writer = |renewal: &Renewal| renewal.grant.mode == Mode::Exclusive;
        let leases = |writers: bool| -> Vec<_> {
            let these = renewals.iter().filter(|renewal| is_writer(renewal) == writers);
            these.map(|renewal| (namespace.name_of(&renewal.grant.key), renewal.grant.owner, renewal.ttl)).collect()
        };
        let mut writers = statements.writers().renew(sessions, leases(true), within).await.into_iter();
        let mut readers = statements.readers().renew(sessions, leases(false), within).await.into_iter();
        let answer = |renewal| if is_writer(renewal) { writers.next() } else { readers.next() };
        renewals.iter().map(answer).map(|answer| answer.unwrap_or(Ok(LeaseStatus::NotHeld))).collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let name = self.store.namespace.name_of(&grant.key);
        match grant.mode {
            Mode::Exclusive => self.store.releases.run((name, grant.owner)).await,
            Mode::Shared => release_reader(&self.store, name, grant.owner).await,
        }
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let Store { sessions, statements, namespace, .. } = &self.store;
        let leases = match grant.mode {
            Mode::Exclusive => statements.writers(),
            Mode::Shared => statements.readers(),
        };
        leases.take_over(sessions, namespace.name_of(&grant.key), grant, new_owner, ttl).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        downgrade(&self.store, writer, claim).await
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
}
