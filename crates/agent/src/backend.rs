use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, Error, ErrorKind, GrantRef, Holders, LeaseStatus,
    LockKey, Notifications, Page, Renewal, Result, SharedBackend, Subscription,
};

use serde::de::DeserializeOwned;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::client::Connection;
use crate::wire::{Served, Step};

/// The [`Backend`] behind [`AgentLocks`](crate::AgentLocks): the steps of the store that an agent serves.
#[derive(Debug)]
pub struct AgentBackend {
    path: PathBuf,
    served: Served,
    /// One connects, and the others wait for it. `None` when it is closed.
    connection: Mutex<Option<Arc<Connection>>>,
}

/// How long an agent may take to say what it serves.
const GREETING: Duration = Duration::from_secs(1);

/// What an answer takes from the agent to its client, at most. What the store itself is allowed comes before it, with what that may take
/// longer: to take a slow store for a dead agent ends the connection.
const HOP: Duration = Duration::from_millis(500);

impl AgentBackend {
    pub(crate) const NAME: &'static str = "agent";

    /// What every agent gives where the store behind it does: see [`AgentLocks`](crate::AgentLocks).
    pub(crate) fn claims() -> Capabilities {
        let declined = [Capability::Detach, Capability::Reentrancy];
        let claimed = Capability::ALL.iter().filter(|capability| !declined.contains(capability));
        claimed
            .fold(Capabilities::new(Self::NAME), |claims, capability| claims.with(*capability))
            .without(Capability::Detach, "a lock ends with the process that holds it")
            .without(Capability::Reentrancy, "all clients of an agent would be one session")
    }

    pub(crate) async fn connect(path: PathBuf) -> Result<Self> {
        let connection = Connection::open(&path, GREETING).await?;
        let served = connection.served.clone();
        Ok(Self { path, served, connection: Mutex::new(Some(connection)) })
    }

    /// The connection, which is opened anew if the agent has ended meanwhile.
    async fn connection(&self) -> Result<MappedMutexGuard<'_, Arc<Connection>>> {
        let connection = self.connection.lock().await;
        let closed = |_| Error::new(ErrorKind::Closed, "ask");
        let mut connection = MutexGuard::try_map(connection, Option::as_mut).map_err(closed)?;
        if connection.has_ended() {
            // On the runtime of this caller: the connection may have ended with an earlier one.
            let opened = Connection::open(&self.path, GREETING).await?;
            if opened.served != self.served {
                let why = "the agent serves another store than before, or in another version: connect anew";
                return Err(Error::new(ErrorKind::Backend, "connect").detail(why));
            }
            *connection = opened;
        }
        Ok(connection)
    }

    async fn ask<T: DeserializeOwned>(&self, step: Step) -> Result<T> {
        let sent = self.connection().await?.send(&step, None)?;
        sent.answer(self.answers_within()).await
    }
}

#[async_trait]
impl Backend for AgentBackend {
    fn capabilities(&self) -> Capabilities {
        self.served.narrow(&Self::claims())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.ask(Step::TryAcquire(claim.clone())).await
    }

    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        let step = Step::Renew(renewals.to_vec(), within);
        let answered: Result<Vec<_>> = self.ask(step).await;
        answered.unwrap_or_else(|error| renewals.iter().map(|_| Err(error.clone())).collect())
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.ask(Step::Release(grant.clone())).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.ask(Step::Downgrade(writer.clone(), claim.clone())).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.ask(Step::Inspect(key.clone())).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.ask(Step::List(prefix.to_owned(), after.cloned())).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.ask(Step::ForceRelease(key.clone(), only)).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        self.capabilities().has(Capability::Wakeup).then_some(self as _)
    }

    fn renewal_batch(&self) -> usize {
        self.served.renewal_batch
    }

    fn answers_within(&self) -> Duration {
        self.served.answers_within * 5 / 4 + HOP
    }

    async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            connection.end();
        }
    }
}

impl SharedBackend for AgentBackend {}

#[async_trait]
impl Notifications for AgentBackend {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let (sent, notified) = self.connection().await?.subscribe(key)?;
        sent.answer::<()>(self.answers_within()).await?;
        Ok(Box::new(notified))
    }
}
